"""Runs as they happen, for whoever looks (O4). Each piece of news is made once, however many look at it, and they are
told no more often than they are few: watching must not cost the runs anything.

Numbers of entries are their places in the journal. Of a run that began here they are known once the journal was read
for the first viewer; a session that runs in another process is read now and then.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.events import Event, Recorded
from hummingbird.domain.journal import Entry, RunEnded
from hummingbird.domain.ledger import Ledger
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.status import Status, status
from hummingbird.domain.web_limits import (
    LIVE_ALIVE_S,
    LIVE_BEHIND_BYTES,
    LIVE_LOOK_CAP_S,
    LIVE_LOOK_S,
    LIVE_PAUSE_S,
    LIVE_VIEWERS,
    LIVE_WRITES_PER_S,
)
from hummingbird.ports.observer import Observer

Read: TypeAlias = Callable[[str], Awaitable[Sequence[Entry]]]
Fragment: TypeAlias = Callable[[Entry, int, str], str]  # of an entry, its number and its session

ALIVE = b": still here\n\n"
RELOAD = b"event: reload\ndata: \n\n"


@dataclass
class Run:
    """One that goes on in this process. `told`: its entries so far, the first of which is number `offset` + 1."""

    order: WorkOrder
    told: list[Entry] = field(default_factory=list)
    now: Status = field(default_factory=Status)
    ledger: Ledger = field(default_factory=Ledger)
    began_at: float = 0.0
    over: bool = False


class Live:
    """Fulfils RunWatcher. Belongs to one event loop. `read` gives a session's journal, `fragment` a piece of a page."""

    def __init__(self, read: Read, fragment: Fragment) -> None:
        self._read, self._fragment = read, fragment
        self._runs: dict[str, Run] = {}
        self._streams: dict[str, Stream] = {}
        self._overview = News()
        self.viewers = 0
        self.closed = False

    def __call__(self, order: WorkOrder) -> Observer:
        run = self._runs[order.session_id] = Run(order)
        self._overview.tell()

        def see(event: Event) -> None:
            if isinstance(event, Recorded):
                self._see(run, event.entry)

        return see

    @property
    def runs(self) -> Sequence[Run]:
        """Those that go on here, the longest first."""
        return tuple(self._runs.values())

    def run_of(self, session_id: str) -> Run | None:
        return self._runs.get(session_id)

    @property
    def full(self) -> bool:
        return self.viewers >= LIVE_VIEWERS or self.closed

    @property
    def pause_s(self) -> float:
        """Between two pieces of news."""
        return max(LIVE_PAUSE_S, self.viewers / LIVE_WRITES_PER_S)

    def close(self) -> None:
        """Everybody who looks is told that it is over."""
        self.closed = True
        for news in (self._overview, *(stream.news for stream in self._streams.values())):
            news.tell()

    async def overview(self, page: Callable[[], str]) -> AsyncIterator[bytes]:
        """The page that shows what runs now, whenever that has changed. Made once for all who look."""
        with self._viewing():
            seen = -1
            while not self.closed:
                if seen != self._overview.count:
                    seen = self._overview.count
                    yield self._overview.made(page)
                yield b"" if await self._news(self._overview, seen, LIVE_ALIVE_S) else ALIVE

    async def session(self, session_id: str, after: int) -> AsyncIterator[bytes]:
        """The entries of a session behind that number, and those that come."""
        with self._viewing():
            stream = self._streams.get(session_id)
            if stream is None:
                stream = self._streams[session_id] = Stream(last=after)
            stream.viewers += 1
            try:
                while not self.closed:
                    await self._follow(session_id, stream)
                    seen = stream.news.count
                    if piece := stream.since(after):
                        after = stream.last
                        yield piece
                    silence_s = LIVE_ALIVE_S if stream.run else min(stream.look_s, LIVE_ALIVE_S)
                    yield b"" if await self._news(stream.news, seen, silence_s) else ALIVE
            finally:
                stream.viewers -= 1
                if not stream.viewers:
                    self._streams.pop(session_id, None)

    async def _news(self, news: "News", seen: int, silence_s: float) -> bool:
        """Whether there is any; False after a silence. Then not at once, so that much becomes one piece."""
        try:
            async with asyncio.timeout(silence_s):
                await news.after(seen)
        except TimeoutError:
            return False
        if not self.closed:
            await asyncio.sleep(self.pause_s)
        return True

    @contextmanager
    def _viewing(self) -> Iterator[None]:
        self.viewers += 1
        try:
            yield
        finally:
            self.viewers -= 1

    def _see(self, run: Run, entry: Entry) -> None:
        run.began_at = run.began_at or entry.at
        run.told.append(entry)
        run.now = status((entry,), run.now)
        run.ledger.apply(entry)
        if isinstance(entry, RunEnded):
            run.over = True
            if self._runs.get(run.order.session_id) is run:
                del self._runs[run.order.session_id]
        self._overview.tell()
        if stream := self._streams.get(run.order.session_id):
            stream.news.tell()

    async def _follow(self, session_id: str, stream: "Stream") -> None:
        """What there is by now: of a run of ours what it told, once it is known which numbers that has; else what the
        journal holds."""
        async with stream.filling:
            run = self._runs.get(session_id)
            if run is not None and run is not stream.run:
                kept = await self._kept(session_id)
                stream.run, stream.offset = run, _begun(kept, run.told)
                self._fill(session_id, stream, kept[: stream.offset], 0)
            elif stream.run is None and time.monotonic() >= stream.next_look:
                seen = stream.last
                self._fill(session_id, stream, await self._kept(session_id), 0)
                stream.look_s = LIVE_LOOK_S if stream.last > seen else min(2 * stream.look_s, LIVE_LOOK_CAP_S)
                stream.next_look = time.monotonic() + stream.look_s
            if stream.run is not None:
                self._fill(session_id, stream, stream.run.told, stream.offset)
                if stream.run.over:  # another process may go on with it
                    stream.run, stream.look_s = None, LIVE_LOOK_S
                    stream.next_look = time.monotonic() + LIVE_LOOK_S

    async def _kept(self, session_id: str) -> Sequence[Entry]:
        try:
            return await self._read(session_id)
        except HummingbirdError:
            return ()  # the page says why when it is loaded

    def _fill(self, session_id: str, stream: "Stream", entries: Sequence[Entry], offset: int) -> None:
        for number in range(stream.last + 1, offset + len(entries) + 1):
            stream.add(self._fragment(entries[number - offset - 1], number, session_id), number)


def _begun(kept: Sequence[Entry], told: Sequence[Entry]) -> int:
    """How many entries of a journal are older than what was told; the newest may not be written yet."""
    if not told:
        return len(kept)
    return next((at for at in reversed(range(len(kept))) if kept[at] == told[0]), len(kept))


class News:
    """That something has happened, for any number who wait for it."""

    def __init__(self) -> None:
        self.count = 0
        self._event = asyncio.Event()
        self._made: tuple[int, bytes] = (-1, b"")

    def tell(self) -> None:
        self.count += 1
        self._event.set()

    async def after(self, seen: int) -> None:
        while self.count == seen:
            self._event.clear()
            await self._event.wait()

    def made(self, page: Callable[[], str]) -> bytes:
        if self._made[0] != self.count:
            self._made = self.count, sent("runs", page(), 0)
        return self._made[1]


@dataclass
class Stream:
    """The news of one session, made once, up to number `last`. What was before its first viewer came, the page has.
    `run` tells of what is behind `offset`; without one, the journal is looked at from time to time."""

    news: News = field(default_factory=News)
    filling: asyncio.Lock = field(default_factory=asyncio.Lock)
    viewers: int = 0
    run: Run | None = None
    offset: int = 0
    next_look: float = 0.0
    look_s: float = LIVE_LOOK_S
    last: int = 0
    _pieces: dict[int, bytes] = field(default_factory=dict)
    _weight: int = 0

    def add(self, fragment: str, number: int) -> None:
        piece = fragment.encode("utf-8", "replace")
        self._pieces[number] = piece
        self._weight += len(piece)
        self.last = number
        while self._weight > LIVE_BEHIND_BYTES:
            oldest = next(iter(self._pieces))
            self._weight -= len(self._pieces.pop(oldest))

    def since(self, after: int) -> bytes:
        """Nothing if there is nothing new."""
        if after >= self.last:
            return b""
        if after + 1 not in self._pieces:
            return RELOAD
        fragments = b"".join(self._pieces[number] for number in range(after + 1, self.last + 1))
        return sent("entries", fragments.decode(), self.last)


def sent(event: str, text: str, number: int) -> bytes:
    """As the browser's EventSource reads it."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {event}\nid: {number}\n{lines}\n".encode()

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
from hummingbird.domain.events import Event, Left, Recorded
from hummingbird.domain.journal import Entry, RunEnded
from hummingbird.domain.ledger import Ledger
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.status import Status, status
from hummingbird.domain.web_limits import (
    LIVE_ALIVE_S,
    LIVE_BACKLOG,
    LIVE_BEHIND_BYTES,
    LIVE_FEW,
    LIVE_LOOK_CAP_S,
    LIVE_LOOK_S,
    LIVE_PAUSE_S,
    LIVE_PIECE_BYTES,
    LIVE_READS_AT_ONCE,
    LIVE_SENTENCES,
    LIVE_WRITES_PER_S,
)
from hummingbird.ports.observer import Observer
from hummingbird.web.pace import Pace

Read: TypeAlias = Callable[[str], Awaitable[Sequence[Entry]]]
Granted: TypeAlias = Callable[[int, float], bool]  # so many writes, after so many seconds
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
    """Fulfils RunWatcher. Belongs to one event loop. `read` gives a session's journal, `fragment` a piece of a page,
    `mask` hides the credentials that are known here."""

    def __init__(self, read: Read, fragment: Fragment, mask: Callable[[str], str] = str) -> None:
        self._read, self._fragment, self._mask = read, fragment, mask
        self._runs: dict[str, Run] = {}
        self._sentences: dict[str, str] = {}
        self._streams: dict[str, Stream] = {}
        self._shelf, self._reading = Shelf(), asyncio.Semaphore(LIVE_READS_AT_ONCE)
        self._pace = Pace()
        self._overview = News(self._pause_s, lambda: LIVE_ALIVE_S, self._granted)
        self._page: tuple[int, bytes] = (-1, b"")
        self.viewers = 0
        self.closed = False

    def __call__(self, order: WorkOrder) -> Observer:
        run = self._runs[order.session_id] = Run(order)
        self._overview.tell()

        def see(event: Event) -> None:
            if isinstance(event, Recorded):
                self._see(run, event.entry)
            elif isinstance(event, Left):
                self._leave(run)

        return see

    def say(self, session_id: str, sentence: str) -> None:
        """What became of something that was asked for on its page and is in no journal."""
        self._sentences.pop(session_id, None)
        self._sentences[session_id] = self._mask(sentence)
        while len(self._sentences) > LIVE_SENTENCES:
            del self._sentences[next(iter(self._sentences))]
        if stream := self._streams.get(session_id):
            stream.news.tell()

    def said(self, session_id: str) -> str:
        return self._sentences.get(session_id, "")

    @property
    def runs(self) -> Sequence[Run]:
        """Those that go on here, the longest first."""
        return tuple(self._runs.values())

    def run_of(self, session_id: str) -> Run | None:
        return self._runs.get(session_id)

    def _pause_s(self) -> float:
        """Between two pieces of news."""
        return max(LIVE_PAUSE_S, self.viewers / LIVE_WRITES_PER_S)

    def _granted(self, writes: int, waited_s: float) -> bool:
        return self.viewers <= LIVE_FEW or self._pace.grants(writes, waited_s)

    def close(self) -> None:
        """Everybody who looks is told that it is over."""
        self.closed = True
        for news in (self._overview, *(stream.news for stream in self._streams.values())):
            news.wake()

    async def overview(self, page: Callable[[], str]) -> AsyncIterator[bytes]:
        """The page that shows what runs now, whenever that has changed. Made once for all who look."""
        with self._viewing():
            yield self._made(page)
            seen = self._overview.released
            while not self.closed:
                if await self._overview.after(seen):
                    seen = self._overview.released
                    yield self._made(page)
                else:
                    yield ALIVE

    def _made(self, page: Callable[[], str]) -> bytes:
        if self._page[0] != self._overview.count:
            self._page = self._overview.count, sent("runs", page(), 0)
        return self._page[1]

    async def session(self, session_id: str, after: int) -> AsyncIterator[bytes]:
        """The entries of a session behind that number, and those that come."""
        with self._viewing():
            stream = self._streams.get(session_id)
            if stream is None:
                stream = self._streams[session_id] = Stream(self._pause_s, self._shelf, self._granted)
            stream.joined()
            told, told_at = self.said(session_id), time.monotonic()
            try:
                while not self.closed:
                    seen = stream.news.released
                    await self._follow(session_id, stream, after)
                    while piece := stream.since(after):
                        after = stream.last if piece is RELOAD else stream.upto(after)
                        yield piece
                    if told != self.said(session_id):
                        told = self.said(session_id)
                        yield sent("told", told, after)
                    if await stream.news.after(seen):
                        told_at = time.monotonic()
                    elif time.monotonic() - told_at >= LIVE_ALIVE_S or self.closed:  # most silences end with a look
                        told_at = time.monotonic()
                        yield ALIVE
            finally:
                stream.viewers -= 1
                if not stream.viewers and self._streams.get(session_id) is stream:
                    stream.rest()
                    del self._streams[session_id]

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
            self._leave(run)
        self._overview.tell()
        if stream := self._streams.get(run.order.session_id):
            stream.news.tell()

    def _leave(self, run: Run) -> None:
        """It is over here, though it may go on elsewhere: from now on the journal tells."""
        run.over = True
        if self._runs.get(run.order.session_id) is run:
            del self._runs[run.order.session_id]
            self._overview.tell()
            if stream := self._streams.get(run.order.session_id):
                stream.news.tell()

    async def _follow(self, session_id: str, stream: "Stream", after: int) -> None:
        """What there is by now: of a run of ours what it told, once it is known which numbers that has; else what the
        journal holds."""
        async with stream.filling:
            run = self._runs.get(session_id)
            if (run is not None and run is not stream.run) or stream.lacks(after):
                if (kept := await self._kept(session_id)) is None:
                    return  # the next look may do better
                stream.run, stream.offset = run, len(kept) if run is None else _begun(kept, run.told)
                self._fill(session_id, stream, kept[: stream.offset], 0, after)
            elif stream.run is None and time.monotonic() >= stream.next_look:
                seen = stream.last
                self._fill(session_id, stream, await self._kept(session_id) or (), 0, after)
                stream.looked(new=stream.last > seen)
            if stream.run is not None:
                self._fill(session_id, stream, stream.run.told, stream.offset, after)
                if stream.run.over:  # another process may go on with it, which is rare
                    stream.run = None
                    stream.looked(new=False, look_s=4 * LIVE_LOOK_S)

    async def _kept(self, session_id: str) -> Sequence[Entry] | None:
        try:
            async with self._reading:
                return await self._read(session_id)
        except HummingbirdError:
            return None  # the page says why when it is loaded

    def _fill(self, session_id: str, stream: "Stream", entries: Sequence[Entry], offset: int, after: int) -> None:
        """Those that nobody has made yet, and no more than a page may lack."""
        end = offset + len(entries)
        stream.length = max(stream.length, end)
        first = max(offset, min(after, end), end - LIVE_BACKLOG) + 1
        for number in range(first, end + 1):
            if not stream.has(number):
                stream.add(self._fragment(entries[number - offset - 1], number, session_id), number)


def _begun(kept: Sequence[Entry], told: Sequence[Entry]) -> int:
    """How many entries of a journal are older than what was told; the newest may not be written yet."""
    if not told:
        return len(kept)
    return next((at for at in reversed(range(len(kept))) if kept[at] == told[0]), len(kept))


class News:
    """That something has happened, for any number who wait for it. They are woken together and not at once, so that
    much becomes one piece; after a silence too."""

    def __init__(
        self, pause_s: Callable[[], float], silence_s: Callable[[], float], granted: Granted = lambda *_: True
    ) -> None:
        self._pause_s, self._silence_s, self._granted = pause_s, silence_s, granted
        self.count = self.released = self._waiting = 0
        self._told_at = time.monotonic()
        self._event = asyncio.Event()
        self._soon: asyncio.TimerHandle | None = None
        self._later: asyncio.TimerHandle | None = None

    def tell(self) -> None:
        self.count += 1
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(self._pause_s(), self._release)

    async def after(self, seen: int) -> bool:
        """Whether there is any; False after a silence."""
        if self.released == seen:
            if self._later is None:
                self._later = asyncio.get_running_loop().call_later(self._silence_s(), self._break)
            self._waiting += 1
            try:
                await self._event.wait()
            finally:
                self._waiting -= 1
        return self.released != seen

    def wake(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    def rest(self) -> None:
        """The silence begins anew; or nobody waits any more."""
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _release(self) -> None:
        if not self._granted(self._waiting, time.monotonic() - self._told_at):
            self._soon = asyncio.get_running_loop().call_later(self._pause_s(), self._release)
            return
        self._soon, self._told_at = None, time.monotonic()
        self.released = self.count
        self.wake()

    def _break(self) -> None:
        self._later = None
        self.wake()


class Stream:
    """The news of one session, made once, up to number `last`. What was before, pages have; `length` is how many
    entries there are known to be. `run` tells of what is behind `offset`; without one, the journal is looked at from
    time to time."""

    def __init__(self, pause_s: Callable[[], float], shelf: "Shelf", granted: Granted = lambda *_: True) -> None:
        self.news, self._shelf = News(pause_s, self._silence_s, granted), shelf
        self.filling = asyncio.Lock()
        self.viewers = 0
        self.run: Run | None = None
        self.offset = self.length = self.last = 0
        self.next_look, self.look_s = 0.0, LIVE_LOOK_S
        self._pieces: dict[int, bytes] = {}
        self._cut: tuple[int, int, bytes] = (0, 0, b"")

    def _silence_s(self) -> float:
        return LIVE_ALIVE_S if self.run else min(self.look_s, LIVE_ALIVE_S)

    def joined(self) -> None:
        """Somebody comes, who may know of something new."""
        self.viewers += 1
        self.look_s = LIVE_LOOK_S
        if self.next_look > time.monotonic() + LIVE_LOOK_S:
            self.next_look = time.monotonic() + LIVE_LOOK_S
            self.news.rest()
            self.news.wake()

    def looked(self, *, new: bool, look_s: float | None = None) -> None:
        """At the journal: less often where look after look shows nothing."""
        self.look_s = LIVE_LOOK_S if new else look_s or min(2 * self.look_s, LIVE_LOOK_CAP_S)
        self.next_look = time.monotonic() + self.look_s
        self.news.rest()

    def has(self, number: int) -> bool:
        return number in self._pieces

    def lacks(self, after: int) -> bool:
        """Whether there is something behind that number which was never made, or was let go."""
        return after < self.length and not self.has(after + 1)

    def add(self, fragment: str, number: int) -> None:
        self._pieces[number] = fragment.encode("utf-8", "replace")
        self.last = max(self.last, number)
        self._shelf.put(self, number, len(self._pieces[number]))

    def let_go(self, number: int) -> None:
        del self._pieces[number]

    def rest(self) -> None:
        """Nobody looks any more."""
        self.news.rest()
        for number in self._pieces:
            self._shelf.take(self, number)

    def upto(self, after: int) -> int:
        """The number that whoever has seen all up to `after` is told next: with not much more than may wait in the
        socket of somebody who reads slowly."""
        weight, number = 0, after
        while number < self.last and weight < LIVE_PIECE_BYTES:
            number += 1
            weight += len(self._pieces.get(number, b""))
        return number

    def since(self, after: int) -> bytes:
        """Up to there; nothing if there is nothing new. Most who look are at the same place."""
        if after >= self.last:
            return b""
        upto = self.upto(after)
        numbers = range(after + 1, upto + 1)
        if not all(number in self._pieces for number in numbers):
            return RELOAD
        if self._cut[:2] != (after, upto):
            fragments = b"".join(self._pieces[number] for number in numbers)
            self._cut = after, upto, sent("entries", fragments.decode(), upto)
        return self._cut[2]


class Shelf:
    """How much all streams hold together, however many there are: the oldest pieces are let go, and who lacks them
    loads the page anew."""

    def __init__(self) -> None:
        self._weights: dict[tuple[Stream, int], int] = {}
        self.weight = 0

    def put(self, stream: Stream, number: int, weight: int) -> None:
        self._weights[stream, number] = weight
        self.weight += weight
        while self.weight > LIVE_BEHIND_BYTES and len(self._weights) > 1:
            oldest, of = next(iter(self._weights))
            self.take(oldest, of)
            oldest.let_go(of)

    def take(self, stream: Stream, number: int) -> None:
        self.weight -= self._weights.pop((stream, number))


def sent(event: str, text: str, number: int) -> bytes:
    """As the browser's EventSource reads it."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {event}\nid: {number}\n{lines}\n".encode()

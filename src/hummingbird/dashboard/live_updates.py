"""Streams runs to the browsers that watch them, as server-sent events.

Each update is rendered once, however many viewers there are, and with more viewers updates come less often: watching
must not slow down the runs.

Entries are numbered by their position in the journal. For a run in this process the numbers are known once the journal
was read for the first viewer. The journal of a session that runs in another process is reread from time to time.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from hummingbird.core.errors import HummingbirdError
from hummingbird.core.events import EntryRecorded, RunDetached, RunEvent
from hummingbird.core.journal import JournalEntry, RunEnded
from hummingbird.core.orders import WorkOrder
from hummingbird.core.projections import RunStatus, UsageLedger, compute_status
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.dashboard.queries import (
    LIVE_ALIVE_S,
    LIVE_BACKLOG,
    LIVE_BEHIND_BYTES,
    LIVE_FEW,
    LIVE_LATEST_S,
    LIVE_LOOK_CAP_S,
    LIVE_LOOK_S,
    LIVE_PAUSE_S,
    LIVE_PIECE_BYTES,
    LIVE_READS_AT_ONCE,
    LIVE_SENTENCES,
    LIVE_SHARE,
    LIVE_WRITE_CPU_S,
    LIVE_WRITES_PER_S,
)


class BroadcastRate:
    """Limits updates to a share of this process's CPU time, so that viewers cannot slow down runs on a slow machine.

    No update is delayed longer than LIVE_LATEST_S.
    """

    def __init__(self) -> None:
        self._began, self._spent = time.process_time(), 0.0

    def allows(self, writes: int, waited_s: float) -> bool:
        earned = LIVE_SHARE * (time.process_time() - self._began)
        if self._spent > earned and waited_s < LIVE_LATEST_S:
            return False
        self._spent = max(self._spent, earned) + writes * LIVE_WRITE_CPU_S  # unused CPU time does not accumulate
        return True


JournalReader: TypeAlias = Callable[[str], Awaitable[Sequence[JournalEntry]]]
WriteGrant: TypeAlias = Callable[[int, float], bool]  # (number of writes, seconds waited) → may they be sent?
FragmentRenderer: TypeAlias = Callable[[JournalEntry, int, str], str]  # (entry, its number, session id) → HTML

KEEP_ALIVE = b": still here\n\n"
RELOAD = b"event: reload\ndata: \n\n"


@dataclass
class LiveRun:
    """A run in this process, with its entries so far."""

    order: WorkOrder
    entries: list[JournalEntry] = field(default_factory=list)
    status: RunStatus = field(default_factory=RunStatus)
    ledger: UsageLedger = field(default_factory=UsageLedger)
    began_at: float = 0.0
    is_over: bool = False


class LiveUpdates:
    """Watches the runs of this process and streams them to viewers.

    Must be used from one event loop. `read` loads a session's journal, `fragment` renders an entry as HTML, and `mask`
    hides known credentials. Calling the object with an order returns the observer of that run.
    """

    def __init__(self, read: JournalReader, fragment: FragmentRenderer, mask: Callable[[str], str] = str) -> None:
        self._read, self._fragment, self._mask = read, fragment, mask
        self._runs: dict[str, LiveRun] = {}
        self._sentences: dict[str, str] = {}
        self._streams: dict[str, LiveSessionStream] = {}
        self._shelf, self._reading = FragmentCache(), asyncio.Semaphore(LIVE_READS_AT_ONCE)
        self._pace = BroadcastRate()
        self._overview = NewsSignal(self._pause_s, lambda: LIVE_ALIVE_S, self._may_write)
        self._page: tuple[int, bytes] = (-1, b"")
        self.viewers = 0
        self.closed = False

    def __call__(self, order: WorkOrder) -> RunObserver:
        run = self._runs[order.session_id] = LiveRun(order)
        self._overview.announce()

        def observe(event: RunEvent) -> None:
            if isinstance(event, EntryRecorded):
                self._add_entry(run, event.entry)
            elif isinstance(event, RunDetached):
                self._finish_run(run)

        return observe

    def show_message(self, session_id: str, sentence: str) -> None:
        """Show a message on the session's page: the outcome of a request that no journal records."""
        self._sentences.pop(session_id, None)
        self._sentences[session_id] = self._mask(sentence)
        while len(self._sentences) > LIVE_SENTENCES:
            del self._sentences[next(iter(self._sentences))]
        if stream := self._streams.get(session_id):
            stream.news.announce()

    def message_for(self, session_id: str) -> str:
        return self._sentences.get(session_id, "")

    @property
    def runs(self) -> Sequence[LiveRun]:
        """The runs of this process, oldest first."""
        return tuple(self._runs.values())

    def find_run(self, session_id: str) -> LiveRun | None:
        return self._runs.get(session_id)

    def _pause_s(self) -> float:
        return max(LIVE_PAUSE_S, self.viewers / LIVE_WRITES_PER_S)

    def _may_write(self, writes: int, waited_s: float) -> bool:
        return self.viewers <= LIVE_FEW or self._pace.allows(writes, waited_s)

    def close(self) -> None:
        """End all streams."""
        self.closed = True
        for news in (self._overview, *(stream.news for stream in self._streams.values())):
            news.wake_all()

    async def stream_overview(self, page: Callable[[], str]) -> AsyncIterator[bytes]:
        """Yield the table of current runs whenever it changes; it is rendered once for all viewers."""
        with self._count_viewer():
            yield self._overview_event(page)
            seen = self._overview.released
            while not self.closed:
                if await self._overview.wait_for_news(seen):
                    seen = self._overview.released
                    yield self._overview_event(page)
                else:
                    yield KEEP_ALIVE

    def _overview_event(self, page: Callable[[], str]) -> bytes:
        if self._page[0] != self._overview.count:
            self._page = self._overview.count, format_event("runs", page(), 0)
        return self._page[1]

    async def stream_session(self, session_id: str, after: int) -> AsyncIterator[bytes]:
        """Yield the entries of a session after number `after`, and new ones as they come."""
        with self._count_viewer():
            stream = self._streams.get(session_id)
            if stream is None:
                stream = self._streams[session_id] = LiveSessionStream(self._pause_s, self._shelf, self._may_write)
            stream.add_viewer()
            told, told_at = self.message_for(session_id), time.monotonic()
            try:
                while not self.closed:
                    seen = stream.news.released
                    await self._update_stream(session_id, stream, after)
                    while piece := stream.event_since(after):
                        after = stream.last if piece is RELOAD else stream.next_cut(after)
                        yield piece
                    if told != self.message_for(session_id):
                        told = self.message_for(session_id)
                        yield format_event("told", told, after)
                    if await stream.news.wait_for_news(seen):
                        told_at = time.monotonic()
                    elif (
                        time.monotonic() - told_at >= LIVE_ALIVE_S or self.closed
                    ):  # waits usually end to reread the journal, which is no reason for a comment
                        told_at = time.monotonic()
                        yield KEEP_ALIVE
            finally:
                stream.viewers -= 1
                if not stream.viewers and self._streams.get(session_id) is stream:
                    stream.close()
                    del self._streams[session_id]

    @contextmanager
    def _count_viewer(self) -> Iterator[None]:
        self.viewers += 1
        try:
            yield
        finally:
            self.viewers -= 1

    def _add_entry(self, run: LiveRun, entry: JournalEntry) -> None:
        run.began_at = run.began_at or entry.at
        run.entries.append(entry)
        run.status = compute_status((entry,), run.status)
        run.ledger.apply(entry)
        if isinstance(entry, RunEnded):
            self._finish_run(run)
        self._overview.announce()
        if stream := self._streams.get(run.order.session_id):
            stream.news.announce()

    def _finish_run(self, run: LiveRun) -> None:
        """Mark the run as over in this process. Another one may continue it, so from now on the journal is read."""
        run.is_over = True
        if self._runs.get(run.order.session_id) is run:
            del self._runs[run.order.session_id]
            self._overview.announce()
            if stream := self._streams.get(run.order.session_id):
                stream.news.announce()

    async def _update_stream(self, session_id: str, stream: "LiveSessionStream", after: int) -> None:
        """Add the entries that are new since the last call.

        For a run in this process they come from its observer, once the journal tells which numbers they have; for
        others, they come from the journal.
        """
        async with stream.filling:
            run = self._runs.get(session_id)
            if (run is not None and run is not stream.run) or stream.lacks_fragment_after(after):
                if (kept := await self._read_journal(session_id)) is None:
                    return  # try again on the next call
                stream.run, stream.offset = run, len(kept) if run is None else _entries_before(kept, run.entries)
                self._add_fragments(session_id, stream, kept[: stream.offset], 0, after)
            elif stream.run is None and time.monotonic() >= stream.next_look:
                seen = stream.last
                self._add_fragments(session_id, stream, await self._read_journal(session_id) or (), 0, after)
                stream.schedule_next_look(new=stream.last > seen)
            if stream.run is not None:
                self._add_fragments(session_id, stream, stream.run.entries, stream.offset, after)
                if stream.run.is_over:  # another process may continue it, which is rare
                    stream.run = None
                    stream.schedule_next_look(new=False, look_s=4 * LIVE_LOOK_S)

    async def _read_journal(self, session_id: str) -> Sequence[JournalEntry] | None:
        try:
            async with self._reading:
                return await self._read(session_id)
        except HummingbirdError:
            return None  # the page shows the error when it is loaded

    def _add_fragments(
        self, session_id: str, stream: "LiveSessionStream", entries: Sequence[JournalEntry], offset: int, after: int
    ) -> None:
        """Render the entries that are not rendered yet, at most the last LIVE_BACKLOG."""
        end = offset + len(entries)
        stream.length = max(stream.length, end)
        first = max(offset, min(after, end), end - LIVE_BACKLOG) + 1
        for number in range(first, end + 1):
            if not stream.has_fragment(number):
                stream.add_fragment(self._fragment(entries[number - offset - 1], number, session_id), number)


def _entries_before(kept: Sequence[JournalEntry], told: Sequence[JournalEntry]) -> int:
    """Return how many entries of the journal are older than `told`, whose newest may not be written yet."""
    if not told:
        return len(kept)
    return next((at for at in reversed(range(len(kept))) if kept[at] == told[0]), len(kept))


class NewsSignal:
    """Wakes all who wait for news.

    It wakes them together and after a pause, so that several news become one update; and also after a silence.
    """

    def __init__(
        self, pause_s: Callable[[], float], silence_s: Callable[[], float], granted: WriteGrant = lambda *_: True
    ) -> None:
        self._pause_s, self._silence_s, self._granted = pause_s, silence_s, granted
        self.count = self.released = self._waiting = 0
        self._told_at = time.monotonic()
        self._event = asyncio.Event()
        self._soon: asyncio.TimerHandle | None = None
        self._later: asyncio.TimerHandle | None = None

    def announce(self) -> None:
        self.count += 1
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(self._pause_s(), self._release)

    async def wait_for_news(self, seen: int) -> bool:
        """Wait for news; return False after a silence."""
        if self.released == seen:
            if self._later is None:
                self._later = asyncio.get_running_loop().call_later(self._silence_s(), self._end_silence)
            self._waiting += 1
            try:
                await self._event.wait()
            finally:
                self._waiting -= 1
        return self.released != seen

    def wake_all(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    def cancel_silence_timer(self) -> None:
        """Restart the silence, or end it when nobody waits any more."""
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _release(self) -> None:
        if not self._granted(self._waiting, time.monotonic() - self._told_at):
            self._soon = asyncio.get_running_loop().call_later(self._pause_s(), self._release)
            return
        self._soon, self._told_at = None, time.monotonic()
        self.released = self.count
        self.wake_all()

    def _end_silence(self) -> None:
        self._later = None
        self.wake_all()


class LiveSessionStream:
    """The rendered entries of one session, shared by its viewers.

    It holds entries up to number `last`; viewers have the older ones on their page. `length` is the known number of
    entries. `run` provides the entries after number `offset`; without a run, the journal is reread from time to time.
    """

    def __init__(
        self, pause_s: Callable[[], float], shelf: "FragmentCache", granted: WriteGrant = lambda *_: True
    ) -> None:
        self.news, self._shelf = NewsSignal(pause_s, self._silence_s, granted), shelf
        self.filling = asyncio.Lock()
        self.viewers = 0
        self.run: LiveRun | None = None
        self.offset = self.length = self.last = 0
        self.next_look, self.look_s = 0.0, LIVE_LOOK_S
        self._pieces: dict[int, bytes] = {}
        self._cut: tuple[int, int, bytes] = (0, 0, b"")

    def _silence_s(self) -> float:
        return LIVE_ALIVE_S if self.run else min(self.look_s, LIVE_ALIVE_S)

    def add_viewer(self) -> None:
        """Count a viewer and reread the journal soon: a new viewer may expect news."""
        self.viewers += 1
        self.look_s = LIVE_LOOK_S
        if self.next_look > time.monotonic() + LIVE_LOOK_S:
            self.next_look = time.monotonic() + LIVE_LOOK_S
            self.news.cancel_silence_timer()
            self.news.wake_all()

    def schedule_next_look(self, *, new: bool, look_s: float | None = None) -> None:
        """Schedule the next read of the journal; the interval doubles while nothing is new."""
        self.look_s = LIVE_LOOK_S if new else look_s or min(2 * self.look_s, LIVE_LOOK_CAP_S)
        self.next_look = time.monotonic() + self.look_s
        self.news.cancel_silence_timer()

    def has_fragment(self, number: int) -> bool:
        return number in self._pieces

    def lacks_fragment_after(self, after: int) -> bool:
        """Return True when the entry after that number exists but is not held: never rendered, or dropped."""
        return after < self.length and not self.has_fragment(after + 1)

    def add_fragment(self, fragment: str, number: int) -> None:
        self._pieces[number] = fragment.encode("utf-8", "replace")
        self.last = max(self.last, number)
        self._shelf.add(self, number, len(self._pieces[number]))

    def drop_fragment(self, number: int) -> None:
        del self._pieces[number]

    def close(self) -> None:
        """Release everything after the last viewer has left."""
        self.news.cancel_silence_timer()
        for number in self._pieces:
            self._shelf.remove(self, number)

    def next_cut(self, after: int) -> int:
        """Return the last entry number of the next update for a viewer who has seen all up to `after`.

        An update is not much larger than LIVE_PIECE_BYTES, which is what may wait in the socket of a slow reader.
        """
        weight, number = 0, after
        while number < self.last and weight < LIVE_PIECE_BYTES:
            number += 1
            weight += len(self._pieces.get(number, b""))
        return number

    def event_since(self, after: int) -> bytes:
        """Return the next update after number `after`, b"" if there is nothing new, or RELOAD if entries were dropped.

        The last update is cached, since most viewers are at the same entry.
        """
        if after >= self.last:
            return b""
        upto = self.next_cut(after)
        numbers = range(after + 1, upto + 1)
        if not all(number in self._pieces for number in numbers):
            return RELOAD
        if self._cut[:2] != (after, upto):
            fragments = b"".join(self._pieces[number] for number in numbers)
            self._cut = after, upto, format_event("entries", fragments.decode(), upto)
        return self._cut[2]


class FragmentCache:
    """Limits how many bytes all streams hold together.

    It drops the oldest fragments; a viewer who still needs one reloads the page.
    """

    def __init__(self) -> None:
        self._weights: dict[tuple[LiveSessionStream, int], int] = {}
        self.weight = 0

    def add(self, stream: LiveSessionStream, number: int, weight: int) -> None:
        self._weights[stream, number] = weight
        self.weight += weight
        while self.weight > LIVE_BEHIND_BYTES and len(self._weights) > 1:
            oldest, of = next(iter(self._weights))
            self.remove(oldest, of)
            oldest.drop_fragment(of)

    def remove(self, stream: LiveSessionStream, number: int) -> None:
        self.weight -= self._weights.pop((stream, number))


def format_event(event: str, text: str, number: int) -> bytes:
    """Encode a server-sent event, as a browser's EventSource reads it."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {event}\nid: {number}\n{lines}\n".encode()

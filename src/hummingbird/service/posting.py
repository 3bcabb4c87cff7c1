"""How something is said exactly once (N3): look, write, and where the end of a write is in doubt, look again.

A write that GitLab seemed to fail may have succeeded, and may be slow to appear; so it is looked for more than once
before it is written again. What tells one note from another, the caller knows.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hummingbird.domain.errors import WriteUncertain
from hummingbird.domain.limits import NOTE_LOOKS_S, NOTE_WRITES
from hummingbird.domain.orders import WorkOrder
from hummingbird.ports.clock import Clock
from hummingbird.ports.forge import NoteSeen, Posted, Thread
from hummingbird.service import gates

Threads: TypeAlias = Sequence[Thread]
Look: TypeAlias = Callable[[], Awaitable[Threads]]
Found: TypeAlias = Callable[[Threads], Posted | None]
Write: TypeAlias = Callable[[Threads], Awaitable[Posted]]


def placeholder_of(order: WorkOrder) -> Found:
    """Its own, or that of an order of the same session whose run died."""

    def found(threads: Threads) -> Posted | None:
        place = gates.placeholder_of(order, threads)
        return Posted(place[0].id, place[1].id, place[1].internal) if place else None

    return found


def end_of(order: WorkOrder) -> Found:
    """An order ends once, well or not."""

    def found(threads: Threads) -> Posted | None:
        ends = ((thread, gates.ended(order, (thread,))) for thread in threads)
        return next((Posted(thread.id, note.id, note.internal) for thread, note in ends if note), None)

    return found


def finding_of(order: WorkOrder, mark: str) -> Found:
    """One that this order has told."""
    return _first(
        lambda note, _: note.marker is not None and (note.marker.order, note.marker.finding) == (order.id, mark)
    )


def answer_to(note_id: int) -> Found:
    return _first(lambda note, _: note.answers == note_id)


def refusal_of(note_id: int, person_id: int) -> Found:
    """Any answer that this person had in the thread. One whose question is gone counts for everybody: who deletes a
    question and asks again must not make us say more."""

    def counts(note: NoteSeen, thread: Thread) -> bool:
        asked = next((each.author_id for each in thread.notes if each.id == note.answers), person_id)
        return bool(note.answers) and (note.answers == note_id or asked == person_id)

    return _first(counts)


def _first(fits: Callable[[NoteSeen, Thread], bool]) -> Found:
    def found(threads: Threads) -> Posted | None:
        fitting = (
            Posted(thread.id, note.id, note.internal)
            for thread in threads
            for note in thread.notes
            if fits(note, thread)
        )
        return next(fitting, None)

    return found


@dataclass(frozen=True, slots=True)
class Posting:
    clock: Clock

    async def once(self, look: Look, found: Found, write: Write, seen: Threads | None = None) -> Posted:
        """What is there already, or what was written now. `seen`: what a look has just shown. Raises what looking and
        writing raise; WriteUncertain only after NOTE_WRITES writes of which none was found."""
        threads = await look() if seen is None else seen
        for left in reversed(range(NOTE_WRITES)):
            if posted := found(threads):
                return posted
            try:
                return await write(threads)
            except WriteUncertain:
                threads = await self._after_doubt(look, found)
                if not left and not found(threads):
                    raise
        posted = found(threads)
        assert posted is not None, "the last write raises if it cannot be found"
        return posted

    async def _after_doubt(self, look: Look, found: Found) -> Threads:
        threads: Threads = ()
        for pause_s in NOTE_LOOKS_S:
            await self.clock.sleep(pause_s)
            threads = await look()
            if found(threads):
                break
        return threads

    async def surely(self, write: Callable[[], Awaitable[None]]) -> None:
        """For what may be done twice. Raises what it raises; WriteUncertain only after as many tries."""
        for pause_s in NOTE_LOOKS_S:
            try:
                return await write()
            except WriteUncertain:
                await self.clock.sleep(pause_s)
        return await write()

"""A small object that processes of several hosts change (O3): read, changed, and written on the condition that nobody
was first; else the same once more on what is there then. No lease, no lock, no clock.

An answer may get lost, and others may have written since, so nobody can always tell from outside whether a change is
there. Therefore a change looks at what it changes: done twice, it is done once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from secrets import randbelow
from time import monotonic
from typing import TypeAlias

from hummingbird.domain.errors import JournalBehind, ObjectsUnusable
from hummingbird.domain.session_limits import (
    SHARED_PAUSE_CAP_S,
    SHARED_PAUSE_S,
    SHARED_REST_S,
    SHARED_S,
    SHARED_TRIES,
)
from hummingbird.ports.objects import Looked, VersionedObjects

Change: TypeAlias = Callable[[bytes | None], Awaitable[bytes | None]]
_DOUBLINGS = 10  # more lead beyond the cap


async def exchanged(
    objects: VersionedObjects, name: str, change: Change, *, most_bytes: int, held: Looked | None = None
) -> Looked | None:
    """What is there once it is changed. `change` is given what is there, None for nothing, and gives what is to be
    there, or None if that is well as it is; no two contents that it gives are alike. `held`: what was there a while
    ago, which saves a look if it still is. Goes on until it is done, so it wants `Patience` around it. Raises
    ObjectsUnusable, and what `change` raises."""
    found, attempt, failures = held or await objects.look(name, most_bytes), 0, 0
    while (content := await change(found.content if found else None)) is not None:
        failure: ObjectsUnusable | None = None
        try:
            if version := await objects.swap(name, content, found.version if found else None):
                return Looked(content, version)
        except ObjectsUnusable as error:
            failure = error
        await asyncio.sleep(_pause_s(attempt))
        before, found, attempt = found, await objects.look(name, most_bytes), attempt + 1
        if found is not None and found.content == content:
            break  # the answer was lost, or was a no to what the store itself had tried before
        if failure is not None and _same(before, found):
            failures += 1  # a connection that had been idle for too long does that
            if failures == SHARED_TRIES:
                raise failure
    return found


def _same(one: Looked | None, other: Looked | None) -> bool:
    return (one and one.version) == (other and other.version)


def _pause_s(attempt: int) -> float:
    """Anything up to a bound that doubles: those who collided should not meet again."""
    return min(SHARED_PAUSE_S * 2.0 ** min(attempt, _DOUBLINGS), SHARED_PAUSE_CAP_S) * randbelow(1000) / 1000


class Patience:
    """With one bucket, for all of a process that ask it on behalf of runs: where it said nothing to one of them, none
    waits for it for SHARED_REST_S (S2), so that what a note is kept waiting for does not add up. A failure that is told
    costs no time and counts for nothing here; nor does a read that works, for writes may hang nevertheless."""

    def __init__(self) -> None:
        self._rests_until = 0.0

    @property
    def rests(self) -> bool:
        return monotonic() < self._rests_until

    def check(self, what: str) -> None:
        """Raises JournalBehind while it rests. `what`: the subject of a sentence."""
        if self.rests:
            raise JournalBehind(f"{what} cannot be used: the store said nothing a moment ago. See whether it works.")

    @asynccontextmanager
    async def in_time(self, what: str) -> AsyncIterator[None]:
        """Around all that is asked of a bucket for one verb. Raises JournalBehind while it rests, when the bucket
        cannot be used, and after SHARED_S; what was being written then may be written or not."""
        self.check(what)
        async with self.anyway(what):
            yield

    @asynccontextmanager
    async def anyway(self, what: str) -> AsyncIterator[None]:
        """As `in_time`, for what has to be known even if it takes that long again."""
        try:
            async with asyncio.timeout(SHARED_S):
                yield
        except TimeoutError as error:
            self._rests_until = monotonic() + SHARED_REST_S
            raise JournalBehind(
                f"{what} cannot be used: the store did not do it within {SHARED_S:.0f} s. See whether it works."
            ) from error
        except ObjectsUnusable as error:
            raise JournalBehind(f"{what} cannot be used. {error}") from error

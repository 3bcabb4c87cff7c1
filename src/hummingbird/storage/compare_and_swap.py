"""Update a small object that several hosts share, with conditional writes instead of locks.

The object is read, changed, and written only if nobody else wrote meanwhile; otherwise the change is repeated on the
new content. A response may get lost and others may have written since, so it cannot always be known whether a change
arrived. Therefore a change must be idempotent: applied twice, it counts once.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from secrets import randbelow
from time import monotonic
from typing import TypeAlias

from hummingbird.core.errors import JournalWriteDelayed, ObjectStoreUnusable
from hummingbird.core.protocols.storage import VersionedContent, VersionedObjectStore
from hummingbird.core.sessions import SHARED_PAUSE_CAP_S, SHARED_PAUSE_S, SHARED_REST_S, SHARED_S, SHARED_TRIES

ContentUpdate: TypeAlias = Callable[[bytes | None], Awaitable[bytes | None]]
_DOUBLINGS = 10  # further doublings would exceed the cap, and in the end overflow


async def update_object(
    objects: VersionedObjectStore,
    name: str,
    change: ContentUpdate,
    *,
    most_bytes: int,
    held: VersionedContent | None = None,
) -> VersionedContent | None:
    """Apply a change to an object and return what is there afterwards.

    `change` gets the current content (None if there is no object) and returns the new one, or None if nothing needs to
    change. It must never return the same content twice. `held` is what was read earlier; it saves a request if it is
    still current. This retries until it succeeds, so call it inside `BucketCircuitBreaker.guard`. Raises
    ObjectStoreUnusable, and what `change` raises.
    """
    found, attempt, failures = held or await objects.get_versioned(name, most_bytes), 0, 0
    while (content := await change(found.content if found else None)) is not None:
        failure: ObjectStoreUnusable | None = None
        try:
            if version := await objects.compare_and_swap(name, content, found.version if found else None):
                return VersionedContent(content, version)
        except ObjectStoreUnusable as error:
            failure = error
        await asyncio.sleep(_conflict_pause_s(attempt))
        before, found, attempt = found, await objects.get_versioned(name, most_bytes), attempt + 1
        if found is not None and found.content == content:
            break  # our write arrived: its response was lost, or the store refused its own retry
        if failure is not None and _is_same_version(before, found):
            failures += 1  # may happen on a connection that was idle for too long
            if failures == SHARED_TRIES:
                raise failure
    return found


def _is_same_version(one: VersionedContent | None, other: VersionedContent | None) -> bool:
    return (one and one.version) == (other and other.version)


def _conflict_pause_s(attempt: int) -> float:
    """Return a random pause below a bound that doubles, so that writers that collided do not collide again."""
    return min(SHARED_PAUSE_S * 2.0 ** min(attempt, _DOUBLINGS), SHARED_PAUSE_CAP_S) * randbelow(1000) / 1000


class BucketCircuitBreaker:
    """Keep the runs of a process from waiting again and again for a bucket that hangs.

    After one request timed out, all requests fail at once for SHARED_REST_S, so that the delays of a note do not add
    up. An error response costs no time and does not open the breaker. A successful read does not close it, because
    writes may hang nevertheless.
    """

    def __init__(self) -> None:
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        """Return whether requests fail at once."""
        return monotonic() < self._open_until

    def raise_if_open(self, what: str) -> None:
        """Raise JournalWriteDelayed while the breaker is open. `what` is the subject of the error sentence."""
        if self.is_open:
            raise JournalWriteDelayed(
                f"{what} cannot be used: the store did not answer a moment ago. Check whether it works."
            )

    @asynccontextmanager
    async def guard(self, what: str) -> AsyncIterator[None]:
        """Guard all requests of one operation.

        Raises JournalWriteDelayed while the breaker is open, when the bucket cannot be used, and after SHARED_S; then
        it is unknown whether a write arrived.
        """
        self.raise_if_open(what)
        async with self.limit_time(what):
            yield

    @asynccontextmanager
    async def limit_time(self, what: str) -> AsyncIterator[None]:
        """Like `guard`, but also while the breaker is open: for what must be known even if it takes that long again."""
        try:
            async with asyncio.timeout(SHARED_S):
                yield
        except TimeoutError as error:
            self._open_until = monotonic() + SHARED_REST_S
            raise JournalWriteDelayed(
                f"{what} cannot be used: the store did not finish within {SHARED_S:.0f} s. Check whether it works."
            ) from error
        except ObjectStoreUnusable as error:
            raise JournalWriteDelayed(f"{what} cannot be used. {error}") from error

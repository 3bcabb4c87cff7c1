"""Let work make sure, right before it changes something outside, that nobody else can have begun with it.

A process that stood still for minutes does not notice when it wakes up: its next step may be a note that another
process has posted meanwhile. The worker binds the lease of the message that it works on, and whoever writes asks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class WorkLease(Protocol):
    """The right to work on something."""

    async def ensure(self) -> None:
        """Return if nobody else gets this work for long enough to finish one write.

        Raises ReceiptExpired when another process may have it by now.
        """
        ...


_current: ContextVar[WorkLease | None] = ContextVar("hummingbird_work_lease", default=None)


@contextmanager
def bind_work_lease(lease: WorkLease) -> Iterator[None]:
    """Bind the lease for the duration of a `with` block, including tasks that are started in it."""
    token = _current.set(lease)
    try:
        yield
    finally:
        _current.reset(token)


async def ensure_work_lease() -> None:
    """Make sure that this task's work is still its own; work without a lease always is. Raises ReceiptExpired."""
    lease = _current.get()
    if lease is not None:
        await lease.ensure()

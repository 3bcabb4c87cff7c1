"""Hold what belongs to the work of the current asyncio task: the ids for its log lines, and its lease.

The code that does the work binds both once; the log formatter reads the ids, and whoever writes to the outside asks for
the lease.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LogContext:
    """The ids of the current work; an id is empty where there is none."""

    order: str = ""
    session: str = ""
    event: str = ""


_NOTHING = LogContext()
_current_ids: ContextVar[LogContext] = ContextVar("hummingbird_work", default=_NOTHING)


def current_log_context() -> LogContext:
    """Return the ids of the current work."""
    return _current_ids.get()


@contextmanager
def bind_log_context(order_id: str = "", session_id: str = "", *, event_id: str = "") -> Iterator[None]:
    """Bind ids for the duration of a `with` block, including tasks that are started in it.

    Ids that are not given keep their outer value.
    """
    around = _current_ids.get()
    work = LogContext(order_id or around.order, session_id or around.session, event_id or around.event)
    token = _current_ids.set(work)
    try:
        yield
    finally:
        _current_ids.reset(token)


class WorkLease(Protocol):
    """The right to work on something.

    A process that stood still for minutes does not notice when it wakes up: its next step may be a note that another
    process has posted meanwhile. So it asks right before each change outside.
    """

    async def ensure(self) -> None:
        """Return if nobody else gets this work for long enough to finish one write.

        Raises ReceiptExpired when another process may have it by now.
        """
        ...


_current_lease: ContextVar[WorkLease | None] = ContextVar("hummingbird_work_lease", default=None)


@contextmanager
def bind_work_lease(lease: WorkLease) -> Iterator[None]:
    """Bind the lease for the duration of a `with` block, including tasks that are started in it."""
    token = _current_lease.set(lease)
    try:
        yield
    finally:
        _current_lease.reset(token)


async def ensure_work_lease() -> None:
    """Make sure that this task's work is still its own; work without a lease always is. Raises ReceiptExpired."""
    lease = _current_lease.get()
    if lease is not None:
        await lease.ensure()

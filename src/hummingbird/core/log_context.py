"""Hold the ids of the work that the current log lines are about.

The code that does the work binds them once, and the log formatter reads them. Each asyncio task has its own context.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogContext:
    """The ids of the current work; an id is empty where there is none."""

    order: str = ""
    session: str = ""
    event: str = ""


_NOTHING = LogContext()
_current: ContextVar[LogContext] = ContextVar("hummingbird_work", default=_NOTHING)


def current_log_context() -> LogContext:
    """Return the ids of the current work."""
    return _current.get()


@contextmanager
def bind_log_context(order_id: str = "", session_id: str = "", *, event_id: str = "") -> Iterator[None]:
    """Bind ids for the duration of a `with` block, including tasks that are started in it.

    Ids that are not given keep their outer value.
    """
    around = _current.get()
    work = LogContext(order_id or around.order, session_id or around.session, event_id or around.event)
    token = _current.set(work)
    try:
        yield
    finally:
        _current.reset(token)

"""Which piece of work a line of the log is about (O1): whoever does the work says so once, and whoever writes lines
reads it. Each task of asyncio has its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """Ids; empty where there is none."""

    order: str = ""
    session: str = ""
    event: str = ""


_NOTHING = Work()
_current: ContextVar[Work] = ContextVar("hummingbird_work", default=_NOTHING)


def current_work() -> Work:
    return _current.get()


@contextmanager
def working_on(order_id: str = "", session_id: str = "", *, event_id: str = "") -> Iterator[None]:
    """Until it is left, also in the tasks that are begun meanwhile. What is not given stays as it was around it."""
    around = _current.get()
    work = Work(order_id or around.order, session_id or around.session, event_id or around.event)
    token = _current.set(work)
    try:
        yield
    finally:
        _current.reset(token)

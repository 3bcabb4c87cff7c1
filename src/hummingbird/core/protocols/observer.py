"""Define the protocols of run observers and of the clock.

Observers are consoles, dashboard pages, metrics and the library's callbacks.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from hummingbird.core.events import RunEvent
from hummingbird.core.orders import WorkOrder


class Clock(Protocol):
    """The time; a protocol so that tests can control it. Its methods raise nothing."""

    def now(self) -> float:
        """Return wall-clock seconds since the epoch, as the journal records them."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Sleep; can be cancelled at any time."""
        ...


class RunObserver(Protocol):
    """Receive the events of a run.

    The loop calls it on its own thread, so it must return quickly. An observer that raises is not called again.
    """

    def __call__(self, event: RunEvent) -> None: ...


# Called when the run of an order starts or resumes in this process; returns the observer for that run.
RunWatcher: TypeAlias = Callable[[WorkOrder], RunObserver]

"""Who watches a run: consoles, pages, metrics, the library's callbacks."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from hummingbird.domain.events import Event
from hummingbird.domain.orders import WorkOrder


class Observer(Protocol):
    """Called on the loop's own thread: must return quickly. One that raises is not called again."""

    def __call__(self, event: Event) -> None: ...


# Asked when an order's run begins or goes on, in whatever process: whoever watches that one from here on.
RunWatcher: TypeAlias = Callable[[WorkOrder], Observer]

"""Who watches a run: consoles, pages, metrics, the library's callbacks."""

from typing import Protocol

from hummingbird.domain.events import Event


class Observer(Protocol):
    """Called on the loop's own thread: must return quickly. One that raises is not called again."""

    def __call__(self, event: Event) -> None: ...

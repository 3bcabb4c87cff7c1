"""Who watches a run of the service: consoles, pages, metrics, traces. Each gets the same events, and none of them can
disturb another one or the run."""

import logging
from collections.abc import Sequence

from hummingbird.domain.events import Event
from hummingbird.domain.orders import WorkOrder
from hummingbird.ports.observer import Observer, RunWatcher

_log = logging.getLogger("hummingbird")


def everything(observer: Observer | None) -> tuple[RunWatcher, ...]:
    """One who sees all runs alike, whatever they are for."""
    return () if observer is None else (lambda _: observer,)


def observing(watchers: Sequence[RunWatcher], order: WorkOrder) -> Observer | None:
    return _Several([begin(order) for begin in watchers]) if watchers else None


class _Several:
    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)

    def __call__(self, event: Event) -> None:
        for observer in tuple(self._observers):
            try:
                observer(event)
            except Exception:  # noqa: BLE001 - a border: observers are many, and a run is worth more than being watched
                _log.exception("Somebody who watches a run failed and sees nothing more of it.")
                self._observers.remove(observer)

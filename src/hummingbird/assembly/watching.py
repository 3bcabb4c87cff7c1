"""Who watches a run of the service: consoles, pages, metrics, traces. Each gets the same events, and none of them can
disturb another one or the run."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hummingbird.domain.events import Event, Left
from hummingbird.domain.orders import WorkOrder
from hummingbird.ports.observer import Observer, RunWatcher

_log = logging.getLogger("hummingbird")


def everything(observer: Observer | None) -> tuple[RunWatcher, ...]:
    """One who sees all runs alike, whatever they are for."""
    return () if observer is None else (lambda _: observer,)


@contextmanager
def watched(watchers: Sequence[RunWatcher], order: WorkOrder) -> Iterator[Observer | None]:
    """Whoever is told that a run begins is told when it is over here, also where it never came to be one."""
    observer = _Several(list(_begun(watchers, order))) if watchers else None
    try:
        yield observer
    finally:
        if observer is not None:
            observer(Left())


def _begun(watchers: Sequence[RunWatcher], order: WorkOrder) -> Iterator[Observer]:
    for begin in watchers:
        try:
            yield begin(order)
        except Exception:  # noqa: BLE001 - a border: as for what they are told later
            _log.exception("Somebody who wants to watch a run failed and sees nothing of it.")


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

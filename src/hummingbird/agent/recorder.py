"""Writing down: one place where an entry goes to the journal, into the state, and to whoever watches."""

from collections.abc import Iterable

import msgspec

from hummingbird.agent.state import RunState
from hummingbird.domain.events import Event, Recorded
from hummingbird.domain.journal import Entry
from hummingbird.ports.clock import Clock
from hummingbird.ports.journal import Journal
from hummingbird.ports.observer import Observer


class Recorder:
    """`state` is always the projection of everything recorded so far; `known`: what somebody has of it already, and
    leaves to this one."""

    def __init__(
        self, journal: Journal, clock: Clock, observers: Iterable[Observer] = (), known: RunState | None = None
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._observers = list(observers)
        self.state = (known or RunState()).caught_up(journal.entries())

    def record(self, entry: Entry) -> None:
        """Raises JournalUnwritable; the state is then as before."""
        stamped = msgspec.structs.replace(entry, at=self._clock.now())
        self._journal.append(stamped)
        self.state.apply(stamped)
        self.tell(Recorded(stamped))

    async def outlive(self) -> None:
        await self._journal.outlive()

    async def commit(self) -> None:
        await self._journal.commit()

    def tell(self, event: Event) -> None:
        for observe in tuple(self._observers):
            try:
                observe(event)
            except Exception:  # noqa: BLE001 - border: a console that was closed must not end the run; not asked again
                self._observers.remove(observe)

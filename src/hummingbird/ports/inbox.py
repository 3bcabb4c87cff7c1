"""What we ask of a queue that others put events into (E1): any order, perhaps twice, and gone when we say so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Letter:
    """`attributes` are those with a text. `receives` counts this time too."""

    id: str
    body: str
    receives: int
    receipt: str
    attributes: Mapping[str, str] = field(default_factory=dict)


class Inbox(Protocol):
    """Every verb raises QueueUnusable when the queue cannot be reached or is closed."""

    async def receive(self, wait_s: float) -> Sequence[Letter]:
        """At most QUEUE_BATCH; those that are not deleted come again. Waits while there are none. Cancelling it gives
        back what nobody has seen; what was given back before comes again when its time is over."""
        ...

    async def delete(self, letter: Letter) -> None:
        """Done also if it is gone."""
        ...

    async def close(self) -> None:
        """May be called more than once."""
        ...

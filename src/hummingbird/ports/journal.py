"""Where a run's entries go."""

from collections.abc import Sequence
from typing import Protocol

from hummingbird.domain.journal import Entry


class Journal(Protocol):
    """Append-only. Raises JournalUnwritable when an entry cannot be stored or another process has it open."""

    def entries(self) -> Sequence[Entry]:
        """Everything that was appended, in order, those of earlier processes included."""
        ...

    def append(self, entry: Entry) -> None:
        """Takes note of an entry."""
        ...

    async def outlive(self) -> None:
        """Returns when all that was appended outlives this process: after each answer of a model, which is paid for."""
        ...

    async def commit(self) -> None:
        """Returns when it outlives the machine too, a power cut for one (L2): before each effect, and at the end."""
        ...

    def close(self) -> None: ...

"""Who can be asked about a tool call, and where a yes that holds for always is kept (T9)."""

from typing import Protocol

from hummingbird.domain.permissions import Answer, Grant, Question


class Asker(Protocol):
    """A person at the other end. Takes as long as they take; one that raises, or is silent for a day, says no.

    Cancelled when the run is interrupted: the question is then to be taken off the screen.
    """

    @property
    def name(self) -> str:
        """Who decided, for the journal."""
        ...

    async def ask(self, question: Question) -> Answer: ...


class Grants(Protocol):
    """Grants of a project that outlive their session. They belong where no tool can write.

    Raises JournalUnwritable when they cannot be read or written, UsageFault when somebody's edit has broken them.
    """

    async def keys(self, project: str) -> frozenset[str]:
        """Of all calls that this project may always make, as of now: other processes save too."""
        ...

    async def save(self, project: str, grant: Grant) -> None:
        """Returns when it survives a power cut. Saving it again changes nothing."""
        ...

"""Define the protocols for asking a person: about permissions, and for clarification."""

from collections.abc import Sequence
from typing import Protocol

from hummingbird.core.permissions import PermissionAnswer, PermissionGrant, PermissionQuestion


class PermissionAsker(Protocol):
    """Ask a person whether a tool call is allowed.

    The question waits as long as the person does. An asker that raises, or that gets no answer within a day, means no.
    It is cancelled when the run is interrupted, and must then remove the question from the screen.
    """

    @property
    def name(self) -> str:
        """Return who decides, for the journal."""
        ...

    async def ask(self, question: PermissionQuestion) -> PermissionAnswer:
        """Ask the question and return the person's answer."""
        ...


class GrantStore(Protocol):
    """Store the permanent grants of a project, in a place that no tool can write to.

    Raises JournalUnwritable when grants cannot be read or written, UsageError when a manual edit has broken them.
    """

    async def list_keys(self, project: str) -> frozenset[str]:
        """Return the keys of all calls that this project may always make, including those other processes saved."""
        ...

    async def save(self, project: str, grant: PermissionGrant) -> None:
        """Save a grant, and return once it survives a power cut. Saving it again changes nothing."""
        ...


class Clarifier(Protocol):
    """Ask a person something that only they know.

    The question waits as long as the person does. It is cancelled when the run is interrupted, and must then be removed
    from the screen.
    """

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        """Return the person's own words or one of the choices; empty means that they would rather not say."""
        ...

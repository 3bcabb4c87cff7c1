"""Where what is remembered from session to session is kept (C7)."""

from collections.abc import Callable
from typing import Protocol

from hummingbird.domain.memory import Page, Paper, Remembered


class Memory(Protocol):
    """Two pages that people edit and that several sessions write to at once.

    Raises JournalUnwritable when the place cannot be written now (disk full, no permission, held by another process),
    UsageFault when a person has to do something about a file first. Whatever is raised, the old page is still there.
    """

    def read(self) -> Remembered:
        """As it is now. Never raises: what is wrong is among the faults."""
        ...

    async def change(self, paper: Paper, change: Callable[[Page], Page]) -> Page:
        """Gives the page as it is now to `change` and keeps what that returns; nobody else writes meanwhile. What
        `change` raises comes out, and nothing is written."""
        ...

    def of_project(self, project: str) -> "Memory":
        """The memory of a project, apart from all others."""
        ...

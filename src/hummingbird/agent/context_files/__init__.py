"""Files that people and the agent edit: MEMORY.md and USER.md, context files such as AGENTS.md, and skills."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hummingbird.agent.context_files.memory_pages import MemoryKind, MemoryPage, MemoryPages


@dataclass(frozen=True, slots=True)
class ContextFile:
    """A file that speaks to agents; `name` is its path as a person would write it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ContextFiles:
    """The context files, the nearest last, because it overrides the others.

    `faults` are sentences for the person about what was left out.
    """

    files: tuple[ContextFile, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as the prompt lists it."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """The text of a skill; `files` are other files in its folder, as paths that a tool can read."""

    name: str
    text: str
    folder: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillIndex:
    """All skills; `faults` are sentences for the person about what was left out."""

    skills: tuple[Skill, ...] = ()
    faults: tuple[str, ...] = ()


class SkillStore(Protocol):
    """Find and load skills: texts that say how a task is done in this project."""

    def list_skills(self) -> SkillIndex:
        """Return all skills that can be loaded. Never raises: problems are among the faults."""
        ...

    def load(self, name: str) -> LoadedSkill:
        """Return the skill as it is now.

        Raises SourceNotFound for a name that is not listed, and InputUnreadable for a skill that has been broken since.
        """
        ...


class MemoryStore(Protocol):
    """Two pages that people edit and that several sessions write to at once.

    Raises JournalUnwritable when the place cannot be written now (disk full, no permission, held by another process),
    and UsageError when a person has to do something about a file first. Whatever is raised, the old page is still
    there.
    """

    def read(self) -> MemoryPages:
        """Return the pages as they are now. Never raises: problems are among the faults."""
        ...

    async def edit(self, paper: MemoryKind, change: Callable[[MemoryPage], MemoryPage]) -> MemoryPage:
        """Pass the current page to `change` and store what it returns, while nobody else writes.

        Raises what `change` raises, and then writes nothing.
        """
        ...

    def for_project(self, project: str) -> "MemoryStore":
        """Return the memory of a project, which is separate from all others."""
        ...

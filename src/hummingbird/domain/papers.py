"""What lies on disk for the agent to read before it begins (C9): files of a project that speak to agents, and skills.

Nouns only. Where they lie is for whoever reads them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContextFile:
    """`name`: its path, as a person would say it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ContextFiles:
    """The nearest last: it has the last word. `faults`: sentences about what was left out, for the person."""

    files: tuple[ContextFile, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skill:
    name: str
    description: str


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """`files`: what else lies in its folder, as paths that a tool can read."""

    name: str
    text: str
    folder: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillIndex:
    """`faults`: sentences about what was left out, for the person."""

    skills: tuple[Skill, ...] = ()
    faults: tuple[str, ...] = ()

"""What a chat brings along in its prompt (C7, C9): personality, memory, files of the project, skills. Read once when
the conversation begins; the same bytes until it ends (L5).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hummingbird.adapters.papers.context_files import context_files
from hummingbird.adapters.papers.memory_files import FileMemory
from hummingbird.adapters.papers.reading import read
from hummingbird.adapters.papers.skill_folders import SkillFolders
from hummingbird.agent.chat_prompt import PromptParts
from hummingbird.domain.errors import InputUnreadable
from hummingbird.domain.memory import Page, Paper, Remembered, Room, prompt_part
from hummingbird.domain.mind_limits import PERSONALITY_CHARS
from hummingbird.domain.papers import Skill
from hummingbird.domain.secrets import Secrets
from hummingbird.ports.memory import Memory
from hummingbird.ports.skills import Skills

MEMORY_FOLDER, SKILLS_FOLDER, PERSONALITY = "memory", "skills", "PERSONALITY.md"
OWN_SKILLS = ".hummingbird/skills"  # in a workspace


@dataclass(frozen=True, slots=True)
class ProjectMemory:
    """Facts of one project, and what is known of the user, who is the same everywhere."""

    project: Memory
    everywhere: Memory

    def read(self) -> Remembered:
        facts, user = self.project.read(), self.everywhere.read()
        return Remembered(facts.memory, user.user, tuple(dict.fromkeys([*facts.faults, *user.faults])))

    async def change(self, paper: Paper, change: Callable[[Page], Page]) -> Page:
        return await (self.project if paper is Paper.MEMORY else self.everywhere).change(paper, change)

    def of_project(self, project: str) -> Memory:
        return ProjectMemory(self.everywhere.of_project(project), self.everywhere)


def memory_of(state: Path, project: str = "") -> Memory:
    """`state`: Hummingbird's own folder."""
    everywhere = FileMemory(state / MEMORY_FOLDER)
    return ProjectMemory(everywhere.of_project(project), everywhere) if project else everywhere


def remembered_of(state: Path, project: str, secrets: Secrets) -> str:
    """What a workflow on this project is told of it; nothing if nothing is known."""
    facts = memory_of(state).of_project(project).read()
    return prompt_part(Remembered(memory=facts.memory), secrets=secrets).text


@dataclass(frozen=True, slots=True)
class Mind:
    """`faults`: sentences for the person, about what was left out."""

    parts: PromptParts
    skills: Skills
    listed: tuple[Skill, ...]
    faults: tuple[str, ...]


def mind(state: Path, workspace: Path, memory: Memory, room: Room, secrets: Secrets) -> Mind:
    """Blocking: reads files."""
    kept = prompt_part(memory.read(), room, secrets)
    files = context_files(workspace)
    skills = SkillFolders([state / SKILLS_FOLDER, workspace / OWN_SKILLS])
    index = skills.listed()
    personality, fault = _personality(state / PERSONALITY)
    parts = PromptParts(
        personality=personality, memory=kept.text, context_files=files.files, skills=tuple(index.skills)
    )
    faults = (*fault, *kept.faults, *files.faults, *index.faults)
    return Mind(parts, skills, tuple(index.skills), faults)


def _personality(path: Path) -> tuple[str, tuple[str, ...]]:
    try:
        found = read(path, PERSONALITY_CHARS * 4)
    except InputUnreadable as error:
        return "", (str(error),)
    return ("", ()) if found is None else (found.text, ())

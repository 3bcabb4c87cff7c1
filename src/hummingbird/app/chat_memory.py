"""Loads what a chat adds to its prompt: personality, memory, files of the project, skills.

It is read once when the conversation begins, so that the prompt stays the same until it ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hummingbird.agent.context_files import MemoryStore, Skill, SkillStore
from hummingbird.agent.context_files.instruction_files import SkillFolders, find_context_files, read_text_file
from hummingbird.agent.context_files.memory_files import FileMemory
from hummingbird.agent.context_files.memory_pages import (
    MemoryBudget,
    MemoryKind,
    MemoryPage,
    MemoryPages,
    render_memory_prompt,
)
from hummingbird.agent.prompts import PERSONALITY_CHARS, PromptParts
from hummingbird.core.errors import InputUnreadable
from hummingbird.core.masking import Secrets

MEMORY_FOLDER, SKILLS_FOLDER, PERSONALITY_FILE = "memory", "skills", "PERSONALITY.md"
WORKSPACE_SKILLS_FOLDER = ".hummingbird/skills"  # relative to the workspace


@dataclass(frozen=True, slots=True)
class ProjectAndUserMemory:
    """The facts about one project, together with what is known about the user in all projects."""

    project: MemoryStore
    everywhere: MemoryStore

    def read(self) -> MemoryPages:
        facts, user = self.project.read(), self.everywhere.read()
        return MemoryPages(facts.memory, user.user, tuple(dict.fromkeys([*facts.faults, *user.faults])))

    async def edit(self, paper: MemoryKind, change: Callable[[MemoryPage], MemoryPage]) -> MemoryPage:
        return await (self.project if paper is MemoryKind.MEMORY else self.everywhere).edit(paper, change)

    def for_project(self, project: str) -> MemoryStore:
        return ProjectAndUserMemory(self.everywhere.for_project(project), self.everywhere)


def open_memory(state: Path, project: str = "") -> MemoryStore:
    """Return the memory in the state folder, for one project or for none."""
    everywhere = FileMemory(state / MEMORY_FOLDER)
    return ProjectAndUserMemory(everywhere.for_project(project), everywhere) if project else everywhere


def project_memory_text(state: Path, project: str, secrets: Secrets) -> str:
    """Return the facts about the project for a workflow's prompt; empty if none are known."""
    facts = open_memory(state).for_project(project).read()
    return render_memory_prompt(MemoryPages(memory=facts.memory), secrets=secrets).text


@dataclass(frozen=True, slots=True)
class ChatKnowledge:
    """What a chat knows when it begins; `faults` tell the user what was left out."""

    parts: PromptParts
    skills: SkillStore
    listed_skills: tuple[Skill, ...]
    faults: tuple[str, ...]


def load_chat_knowledge(
    state: Path, workspace: Path, memory: MemoryStore, room: MemoryBudget, secrets: Secrets
) -> ChatKnowledge:
    """Read all files that a chat's prompt is made of. Blocks on disk access."""
    kept = render_memory_prompt(memory.read(), room, secrets)
    files = find_context_files(workspace)
    skills = SkillFolders([state / SKILLS_FOLDER, workspace / WORKSPACE_SKILLS_FOLDER])
    index = skills.list_skills()
    personality, fault = _read_personality(state / PERSONALITY_FILE)
    parts = PromptParts(
        personality=personality, memory=kept.text, context_files=files.files, skills=tuple(index.skills)
    )
    faults = (*fault, *kept.faults, *files.faults, *index.faults)
    return ChatKnowledge(parts, skills, tuple(index.skills), faults)


def _read_personality(path: Path) -> tuple[str, tuple[str, ...]]:
    try:
        found = read_text_file(path, PERSONALITY_CHARS * 4)
    except InputUnreadable as error:
        return "", (str(error),)
    return ("", ()) if found is None else (found.text, ())

"""Gives a library's agent what a chat has: a todo list, memory, recall, skills, files of a project, a personality."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from hummingbird.agent.context_files.instruction_files import SkillFolders, find_context_files
from hummingbird.agent.context_files.memory_files import FileMemory
from hummingbird.agent.context_files.memory_pages import render_memory_prompt
from hummingbird.agent.prompts import BASE_RULES, PromptParts, build_chat_prompt, build_system_prompt
from hummingbird.agent.tools.chat_tools import MemoryTool, SkillTool, TodoTool
from hummingbird.agent.tools.recall import RecallTool
from hummingbird.app.agent_config import AgentConfig
from hummingbird.core.journal import JournalEntry
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import Tool


def create_own_tools(
    config: AgentConfig, entries: Callable[[], Sequence[JournalEntry]], now: Callable[[], float], secrets: Secrets
) -> list[Tool]:
    """Return the built-in tools that the configuration asks for."""
    tools: list[Tool] = []
    if config.todo:
        tools.append(TodoTool(entries))
    if config.recall:
        tools.append(RecallTool(None, entries, secrets))
    if config.memory is not None:
        tools.append(MemoryTool(FileMemory(Path(config.memory)), now, secrets=secrets))
    skills = SkillFolders([Path(folder) for folder in config.skills])
    if found := skills.list_skills().skills:
        tools.append(SkillTool(skills, tuple(found)))
    return tools


def choose_prompt(config: AgentConfig, instructions: str, secrets: Secrets) -> Callable[[str], str]:
    """Return what makes the system prompt of the notes of the tools. Reads the files that belong into it, once."""
    if config.build_prompt is not None:
        return config.build_prompt
    if not (config.skills or config.personality or config.memory or config.context_files):
        return partial(build_system_prompt, workflow=instructions)
    remembered = None if config.memory is None else FileMemory(Path(config.memory)).read()
    parts = PromptParts(
        base=build_system_prompt("", instructions, BASE_RULES),
        personality=config.personality,
        memory="" if remembered is None else render_memory_prompt(remembered, secrets=secrets).text,
        context_files=() if config.context_files is None else find_context_files(Path(config.context_files)).files,
        skills=tuple(SkillFolders([Path(folder) for folder in config.skills]).list_skills().skills),
    )
    return lambda notes: build_chat_prompt(replace(parts, tools=notes))

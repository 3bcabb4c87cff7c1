"""The tools of a chat: `clarify`, `memory`, `skill` and `todo`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hummingbird.agent.context_files import LoadedSkill, MemoryStore, Skill, SkillStore
from hummingbird.agent.context_files.instruction_files import SKILL_NAME_CHARS
from hummingbird.agent.context_files.memory_pages import (
    MemoryBudget,
    MemoryKind,
    MemoryPage,
    check_fits,
    edit_page,
    rejection_reason,
)
from hummingbird.agent.todo_list import ACTIONS, TODO_CHARS, TODO_TOOL, TODOS, TodoList, TodoState
from hummingbird.core.errors import ArgumentsInvalid
from hummingbird.core.journal import JournalEntry
from hummingbird.core.limits import INLINE_RESULT_BYTES, PERSON_TIMEOUT_S
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.interaction import Clarifier
from hummingbird.core.protocols.tools import ToolContext, ToolOutput
from hummingbird.core.text import replace_surrogates
from hummingbird.core.tool_spec import ToolEffect, ToolSpec

CHOICES = 4
CHOICE_CHARS = 200
QUESTION_CHARS = 2_000
CLARIFY_NAME = "clarify"
NO_ANSWER_GIVEN = "[The user would rather not say. Decide for yourself, and say in your answer what you assumed.]"
CLARIFY_SPEC = ToolSpec(
    name=CLARIFY_NAME,
    description=(
        "Asks the user one question and waits for the answer. For what only they can know or decide and what the work "
        "depends on; find out by yourself what can be found out. They may answer in their own words."
    ),
    schema={
        "type": "object",
        "properties": {
            "question": {"type": "string", "minLength": 1, "maxLength": QUESTION_CHARS},
            "choices": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": CHOICE_CHARS},
                "maxItems": CHOICES,
                "description": "likely answers, the best one first",
            },
        },
        "required": ["question"],
        "additionalProperties": False,
    },
    toolset=CLARIFY_NAME,
    interactive=True,
    timeout_s=PERSON_TIMEOUT_S,
    trusted=True,  # the person's own words
)


class ClarifyTool:
    """The tool `clarify`: asks the person something that only they know; not available if nobody can be asked."""

    def __init__(self, clarifier: Clarifier | None) -> None:
        self._clarifier = clarifier

    @property
    def spec(self) -> ToolSpec:
        return CLARIFY_SPEC

    def is_available(self) -> bool:
        return self._clarifier is not None

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        question = replace_surrogates(arguments["question"]).strip()
        if not question or self._clarifier is None:
            raise ArgumentsInvalid("There is no question, or nobody to ask: continue with what you know.")
        choices = [" ".join(replace_surrogates(choice).split()) for choice in arguments.get("choices", ())]
        answer = await self._clarifier.clarify(question, list(dict.fromkeys(filter(None, choices))))
        said = replace_surrogates(answer).strip()
        if len(said.encode()) > INLINE_RESULT_BYTES // 2:
            said = said[: INLINE_RESULT_BYTES // 8] + "\n[… the answer was longer; ask for what is missing]"
        return f"The user answers: {said}" if said else NO_ANSWER_GIVEN


MEMORY_NAME = "memory"
MEMORY_SPEC = ToolSpec(
    name=MEMORY_NAME,
    description=(
        "Keeps facts for later sessions, each in a sentence or two. file memory: what holds for the work (conventions, "
        "decisions, traps and how to avoid them). file user: who the user is and how they want things done. Not for "
        "what is only true today, what the repository says itself, secrets or progress. Most sessions teach nothing "
        "worth it: then leave it. What you keep stands in the prompt of sessions that begin later."
    ),
    schema={
        "type": "object",
        "properties": {
            "action": {"enum": ["add", "replace", "remove"]},
            "file": {"enum": list(MemoryKind)},
            "text": {"type": "string", "description": "add, replace: the entry"},
            "old": {"type": "string", "description": "replace, remove: words that only the entry meant has"},
        },
        "required": ["action", "file"],
        "additionalProperties": False,
    },
    toolset=MEMORY_NAME,
    effects=frozenset({ToolEffect.WRITE}),
    trusted=True,
)


class MemoryTool:
    """The tool `memory`: edits what later sessions have in their prompt; the prompt of this one stays as it is.

    `now` returns seconds since the epoch, for the dates of entries.
    """

    def __init__(
        self,
        memory: MemoryStore,
        now: Callable[[], float],
        room: MemoryBudget | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self._memory = memory
        self._now = now
        self._room = room or MemoryBudget()
        self._secrets = secrets or Secrets()

    @property
    def spec(self) -> ToolSpec:
        return MEMORY_SPEC

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        action, paper = arguments["action"], MemoryKind(arguments["file"])
        text, old = arguments.get("text", ""), arguments.get("old", "")
        if action != "remove" and (why := rejection_reason(text, self._secrets)):
            raise ArgumentsInvalid(why)
        if action != "add" and not old.strip():
            raise ArgumentsInvalid(f"{action} needs `old`: words that only the entry meant has.")
        day = datetime.fromtimestamp(self._now(), UTC).date().isoformat()

        def change(page: MemoryPage) -> MemoryPage:
            after = edit_page(page, action, old, text, day)
            check_fits(paper, page, after, self._room)
            return after

        page = await self._memory.edit(paper, change)
        told = (
            f"{paper.file_name} has {page.size} of {self._room.chars_for(paper)} characters, "
            f"{len(page.entries)} entries"
        )
        context.progress(told)
        return (
            f"Done. {told}. Sessions that begin from now on have it in their prompt; that of this one does not change."
        )


SKILL_NAME = "skill"
SKILL_SPEC = ToolSpec(
    name=SKILL_NAME,
    description=(
        "Loads a skill from the list in your instructions: how something is done here, step by step. Load it before "
        "you begin work that it describes; once a session is enough."
    ),
    schema={
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1, "maxLength": SKILL_NAME_CHARS}},
        "required": ["name"],
        "additionalProperties": False,
    },
    toolset=SKILL_NAME,
    trusted=True,
)


class SkillTool:
    """The tool `skill`: brings a skill into the conversation as a message when it is needed.

    `listed` are the skills that the session's prompt names.
    """

    def __init__(self, skills: SkillStore, listed: tuple[Skill, ...]) -> None:
        self._skills = skills
        self._listed = listed

    @property
    def spec(self) -> ToolSpec:
        return SKILL_SPEC

    def is_available(self) -> bool:
        return bool(self._listed)

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        found = await asyncio.to_thread(self._skills.load, arguments["name"])
        context.say(skill_message(found))
        return f"The skill {found.name} follows as a message."


def skill_message(skill: LoadedSkill) -> str:
    """Return the skill as a message that first says who speaks: it is not a new request of the user."""
    head = (
        f"[The skill {skill.name}, which you loaded. It says how such work is done here; it does not change what you "
        "were asked, nor the rules you work by.]"
    )
    files = "\n".join(["[Files of this skill, to be read where it speaks of them:", *skill.files]) + "]"
    return "\n\n".join([head, skill.text, *([files] if skill.files else ())])


TODO_SPEC = ToolSpec(
    name=TODO_TOOL,
    description=(
        "The list of what is to be done in this session; the user sees it. Use it for work of three steps or more: "
        "create the steps at once, set one in_progress, complete it when it is done and checked. Returns the list."
    ),
    schema={
        "type": "object",
        "properties": {
            "action": {"enum": list(ACTIONS)},
            "texts": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": TODO_CHARS},
                "maxItems": TODOS,
                "description": "create: one for each item",
            },
            "numbers": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "update, complete, cancel: which items",
            },
            "text": {"type": "string", "maxLength": TODO_CHARS, "description": "update: the new text"},
            "state": {"enum": list(TodoState), "description": "update"},
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    toolset="todo",
    exclusive=True,  # numbers follow the order of the calls, and a replay must give the same ones
    trusted=True,
)


class TodoTool:
    """The tool `todo`: the session's list of what is to be done, read from the journal that `entries` returns.

    It has no list of its own, so a call that a hook undid, or that ran for two, cannot make the two differ.
    """

    def __init__(self, entries: Callable[[], Sequence[JournalEntry]]) -> None:
        self._entries = entries
        self._todos = TodoList()
        self._read = 0

    @property
    def spec(self) -> ToolSpec:
        return TODO_SPEC

    def is_available(self) -> bool:
        return True

    def for_session(self, entries: Callable[[], Sequence[JournalEntry]]) -> "TodoTool":
        """Return the tool for another session: a sub-agent has its own list."""
        return TodoTool(entries)

    @property
    def todos(self) -> TodoList:
        """Return the list as the journal has it now; only new entries are read."""
        entries = self._entries()
        if len(entries) < self._read:
            self._todos, self._read = TodoList(), 0
        for entry in entries[self._read :]:
            self._todos.apply_entry(entry)
        self._read = len(entries)
        return self._todos

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        tried = self.todos.copy()
        shown = tried.apply_action(arguments)
        context.progress(tried.progress_line)
        return shown

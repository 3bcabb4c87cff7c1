"""`memory` (C7): what the model keeps for sessions to come. The prompt of this one stays as it is (L5)."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from hummingbird.domain.errors import ArgumentsInvalid
from hummingbird.domain.memory import Page, Paper, Room, changed, check_room, objection
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.tools import Effect, ToolSpec
from hummingbird.ports.memory import Memory
from hummingbird.ports.tool import Output, ToolContext

NAME = "memory"
SPEC = ToolSpec(
    name=NAME,
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
            "file": {"enum": list(Paper)},
            "text": {"type": "string", "description": "add, replace: the entry"},
            "old": {"type": "string", "description": "replace, remove: words that only the entry meant has"},
        },
        "required": ["action", "file"],
        "additionalProperties": False,
    },
    toolset=NAME,
    effects=frozenset({Effect.WRITE}),
    trusted=True,
)


class MemoryTool:
    """`now`: seconds since the epoch, for the dates of entries."""

    def __init__(
        self, memory: Memory, now: Callable[[], float], room: Room | None = None, secrets: Secrets | None = None
    ) -> None:
        self._memory = memory
        self._now = now
        self._room = room or Room()
        self._secrets = secrets or Secrets()

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        action, paper = arguments["action"], Paper(arguments["file"])
        text, old = arguments.get("text", ""), arguments.get("old", "")
        if action != "remove" and (why := objection(text, self._secrets)):
            raise ArgumentsInvalid(why)
        if action != "add" and not old.strip():
            raise ArgumentsInvalid(f"{action} needs `old`: words that only the entry meant has.")
        day = datetime.fromtimestamp(self._now(), UTC).date().isoformat()

        def change(page: Page) -> Page:
            after = changed(page, action, old, text, day)
            check_room(paper, page, after, self._room)
            return after

        page = await self._memory.change(paper, change)
        told = f"{paper.file} has {page.size} of {self._room.of(paper)} characters, {len(page.entries)} entries"
        context.progress(told)
        return (
            f"Done. {told}. Sessions that begin from now on have it in their prompt; that of this one does not change."
        )

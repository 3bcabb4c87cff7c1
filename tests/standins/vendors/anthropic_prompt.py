"""An Anthropic request as one sequence of blocks: tools, then system, then messages.

Rules, thinking signatures and the cache all read this sequence; it judges nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tests.standins.vendors.models import Claude
from tests.standins.vendors.refusals import Raw
from tests.standins.vendors.tokens import plain

Tier = Literal["tools", "system", "messages"]
UNCACHEABLE = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True)
class Block:
    tier: Tier
    role: str
    message: int
    index: int
    raw: Raw
    clears: bool = False

    @property
    def kind(self) -> str:
        return str(self.raw.get("type", "tool" if self.tier == "tools" else ""))

    @property
    def place(self) -> str:
        if self.tier == "messages":
            return f"messages.{self.message}.content.{self.index}"
        return f"{self.tier}.{self.index}"

    @property
    def markers(self) -> list[Raw]:
        """The block's own cache marker and those inside a tool result."""
        inner = self.raw.get("content")
        parts = inner if isinstance(inner, list) and self.kind == "tool_result" else []
        holders = [self.raw, *(part for part in parts if isinstance(part, dict))]
        return [holder["cache_control"] for holder in holders if holder.get("cache_control") is not None]

    @property
    def cacheable(self) -> bool:
        return self.kind not in UNCACHEABLE and not self.clears

    def seen(self) -> list[object]:
        return [self.role, plain(self.raw)]


def blocks_of(content: object) -> list[Raw]:
    """Message or system content as blocks; a string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def sequence(body: Raw) -> tuple[Block, ...]:
    return (*_tools(body), *_system(body), *messages(body))


def messages(body: Raw) -> tuple[Block, ...]:
    """The conversation without its message borders: neighbours of one role are merged by the API anyway."""
    found = []
    for number, message in enumerate(body.get("messages") or ()):
        clears = message.get("clear_at") == "next_user_message"
        for index, raw in enumerate(blocks_of(message.get("content"))):
            found.append(Block("messages", str(message.get("role")), number, index, raw, clears))
    return tuple(found)


def _tools(body: Raw) -> Iterator[Block]:
    for index, tool in enumerate(body.get("tools") or ()):
        if not tool.get("defer_loading"):
            yield Block("tools", "tools", 0, index, tool)


def _system(body: Raw) -> Iterator[Block]:
    for index, raw in enumerate(blocks_of(body.get("system"))):
        yield Block("system", "system", 0, index, raw)


def rendered(body: Raw, model: Claude | None) -> tuple[Block, ...]:
    """What the model is shown: cleared and ignored system entries are sent, but not shown."""
    last_user = max((block.message for block in messages(body) if block.role == "user"), default=-1)
    ignored = model is not None and model.system_entries == "ignored"

    def shown(block: Block) -> bool:
        entry = block.tier == "messages" and block.role == "system"
        # facts/llm.md 0.4: clear_at entries vanish once a later user message exists; Sonnet 5 ignores all entries
        return not entry or not (ignored or (block.clears and block.message < last_user))

    return tuple(block for block in sequence(body) if shown(block))


def breakpoints(body: Raw, blocks: tuple[Block, ...]) -> dict[int, str]:
    """Positions in `blocks` that are written to the cache, with their lifetime; the automatic one included."""
    found = {at: str(block.markers[-1].get("ttl") or "5m") for at, block in enumerate(blocks) if block.markers}
    automatic = body.get("cache_control")
    last = last_cacheable(blocks)
    if isinstance(automatic, dict) and last is not None:
        found.setdefault(last, str(automatic.get("ttl") or "5m"))
    return found


def last_cacheable(blocks: tuple[Block, ...]) -> int | None:
    """Where the automatic breakpoint lands."""
    # facts/llm.md 1, prompt caching: on the last cacheable block; thinking and clear_at entries are none
    return next((at for at in range(len(blocks) - 1, -1, -1) if blocks[at].cacheable), None)

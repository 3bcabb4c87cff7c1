"""Conversations that are too long for their window, for tests of what makes room in them."""

from collections.abc import Sequence
from typing import Any

from hummingbird.agent.budget import CHAT_LIMITS
from hummingbird.agent.compaction import CompactEngine
from hummingbird.core.protocols.model import ModelReply
from hummingbird.core.usage import TokenUsage
from tests.agent.stage import Stage, stage, tool
from tests.standins.scripted_model import ScriptedModel, tool_call_reply

WINDOW = 40_000
LONG = "nothing of note happened here. " * 200
COMPACT = {"engine": CompactEngine(), "limits": CHAT_LIMITS}


def look(text: str = LONG) -> Any:
    return tool("look", text)


def turns(count: int, full_at: int = 0) -> list[ModelReply]:
    """Calls, each with a little text; from the `full_at`-th on, the provider says that the context is nearly full."""
    made = []
    for number in range(1, count + 1):
        reply = tool_call_reply(("look", f'{{"n": {number}}}'), text=f"step {number}")
        used = 31_000 if full_at and number >= full_at else 1_000
        made.append(ModelReply(reply.message, reply.finish, TokenUsage(fresh=used, output=10)))
    return made


def long_stage(model: ScriptedModel, side: Sequence[ScriptedModel] = (), **given: Any) -> Stage:
    return stage(model, tools=[look()], side_models=side, **{**COMPACT, **given})

"""Cache breakpoints, and bytes that are made once."""

import json
from typing import Any

from hummingbird.core.messages import (
    AssistantMessage,
    Message,
    Notice,
    NoticeKind,
    ProviderEcho,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.models.anthropic import encode_request
from hummingbird.models.wire_format import ModelProfile
from tests.wire.dialogue import TOOLS

MODEL = "claude-opus-5-5"
PROFILE = ModelProfile(MODEL, 1_000_000, system_entries=True)
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


def made(messages: list[Message], cached: int, **more: Any) -> dict[str, Any]:
    request = ModelRequest("Be brief.", TOOLS, messages, "s", "c", cached, **more)
    built: dict[str, Any] = json.loads(encode_request(request, PROFILE, stream=False))
    return built


def marks(body: dict[str, Any]) -> list[tuple[int, int]]:
    """(message, block) of every breakpoint in the conversation."""
    return [
        (at, index)
        for at, turn in enumerate(body["messages"])
        for index, block in enumerate(turn["content"])
        if "cache_control" in block
    ]


def step(number: int, calls: int = 1) -> list[Message]:
    ids = [f"t{number}x{n}" for n in range(calls)]
    uses = [{"type": "tool_use", "id": i, "name": "read", "input": {"path": "p"}} for i in ids]
    asked = tuple(ToolCall(i, "read", '{"path":"p"}') for i in ids)
    return [
        AssistantMessage("", "hm", asked, ProviderEcho("anthropic", MODEL, [THOUGHT, *uses])),
        *(ToolMessage(i, "read", f"result {i}") for i in ids),
    ]


def test_every_call_reads_what_the_last_one_wrote() -> None:
    """U1·B2, then U1·B1 M1 U2·B2, then U1 M1 U2·B1 M2 U3·B2."""
    messages: list[Message] = [UserMessage("go")]
    seen, cached = [], 0
    for number in range(4):
        seen.append(marks(made(messages, cached)))
        cached = len(messages)
        messages = [*messages, *step(number)]
    assert seen == [[(0, 0)], [(0, 0), (2, 0)], [(2, 0), (4, 0)], [(4, 0), (6, 0)]]


def test_the_system_prompt_ends_with_a_breakpoint_and_there_are_never_more_than_four() -> None:
    body = made([UserMessage("go"), *step(0), *step(1)], 3)
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert json.dumps(body).count("cache_control") == 3


def test_parallel_results_carry_the_breakpoint_on_the_last_one() -> None:
    """Block positions."""
    messages: list[Message] = [UserMessage("go"), *step(0, calls=3)]
    assert marks(made(messages, 1)) == [(0, 0), (2, 2)]
    assert marks(made([*messages, *step(1)], 5)) == [(2, 2), (4, 0)]


def test_a_notice_that_extends_a_message_moves_b2_and_leaves_b1_where_it_was_written() -> None:
    """The answer was dropped, a notice joined the message that held B2."""
    messages: list[Message] = [UserMessage("go"), *step(0)]
    nudged = [*messages, Notice(NoticeKind.EMPTY, "Say something.")]
    assert marks(made(messages, 1)) == [(0, 0), (2, 0)]
    assert marks(made(nudged, 3)) == [(2, 0), (3, 0)]
    assert marks(made([*nudged, *step(1)], 4)) == [(3, 0), (5, 0)]


def test_a_call_that_ended_with_a_paused_answer_is_marked_before_it() -> None:
    """Never on thinking, never inside an answer."""
    paused = AssistantMessage("w", echo=ProviderEcho("anthropic", MODEL, [THOUGHT]), paused=True)
    assert marks(made([UserMessage("go"), paused], 1)) == [(0, 0)]
    assert marks(made([UserMessage("go"), paused, *step(0)], 2)) == [(0, 0), (2, 0)]


def test_the_same_conversation_asked_again_has_one_breakpoint() -> None:
    assert marks(made([UserMessage("go")], 1)) == [(0, 0)]
    assert marks(made([UserMessage("go")], 7)) == [(0, 0)]

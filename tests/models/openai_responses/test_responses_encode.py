"""Requests as Responses bodies."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.errors import InvalidRequest
from hummingbird.core.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    Notice,
    NoticeKind,
    ProviderEcho,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hummingbird.core.protocols.model import ModelRequest
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.models.openai_responses import openai_responses_wire
from hummingbird.models.registry import profile_for
from hummingbird.models.wire_format import ModelProfile
from tests.wire.asked import asked
from tests.wire.dialogue import TOOLS
from tests.wire.openai_types import check_responses

WIRE = openai_responses_wire()
PROFILE = profile_for("openai", "gpt-6.1-sol")
GO = UserMessage("why?")
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "sealed"}
SAID = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}],
}
CALLED = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "read",
    "arguments": '{"path":"a"}',
    "status": "completed",
}
OURS = AssistantMessage(
    "I look.",
    "hm",
    (ToolCall("call_1", "read", '{"path":"a"}'),),
    ProviderEcho("openai_responses", "gpt-6.1-sol", [REASONING, SAID, CALLED]),
)


def body(request: ModelRequest, profile: ModelProfile = PROFILE, *, stream: bool = False) -> dict[str, Any]:
    built: dict[str, Any] = json.loads(WIRE.encode(request, profile, stream=stream))
    check_responses(built)
    return built


def notice(text: str) -> Notice:
    return Notice(NoticeKind.SOFT_BUDGET, text)


def test_nothing_is_stored_and_reasoning_comes_back_encrypted() -> None:
    built = body(asked([GO]), stream=True)
    assert built["store"] is False
    assert built["include"] == ["reasoning.encrypted_content"]
    assert built["reasoning"] == {"summary": "auto"}
    assert built["instructions"] == "Be brief."
    assert built["max_output_tokens"] == 16_000
    assert built["stream"] is True
    assert "prompt_cache_options" not in built


@pytest.mark.thorough
def test_a_model_that_does_not_reason_is_not_asked_for_reasoning() -> None:
    """It would refuse that."""
    built = body(asked([GO]), profile_for("openai", "my-own-model"))
    assert "include" not in built
    assert "reasoning" not in built


@pytest.mark.thorough
def test_the_cache_key_is_the_session_and_fits() -> None:
    """A stable prompt-cache key per session."""
    assert body(asked([GO]))["prompt_cache_key"] == "s-1"
    assert body(asked([GO], session_id="s" * 100))["prompt_cache_key"] == "s" * 64
    assert "prompt_cache_key" not in body(asked([GO]), ModelProfile("gpt-6.1-sol", 1))


def test_effort_is_sent_only_when_set() -> None:
    assert body(asked([GO]), ModelProfile("gpt-6.1-sol", 1, effort="low"))["reasoning"] == {"effort": "low"}
    assert "reasoning" not in body(asked([GO]), ModelProfile("gpt-4.1", 1))


def test_own_turns_are_replayed_verbatim() -> None:
    """Reasoning with its encrypted content, the message with its phase, the call with its id."""
    history: list[Message] = [GO, OURS, ToolMessage("call_1", "read", "x"), notice("hurry")]
    assert body(asked(history))["input"] == [
        {"role": "user", "content": "why?"},
        REASONING,
        SAID,
        CALLED,
        {"type": "function_call_output", "call_id": "call_1", "output": "x"},
        {"role": "developer", "content": "hurry"},
    ]


@pytest.mark.parametrize("model", ["gpt-6-luna", "gpt-5.4"])
def test_turns_of_other_models_are_converted_without_their_secrets(model: str) -> None:
    history: list[Message] = [GO, OURS, ToolMessage("call_1", "read", "x")]
    assert body(asked(history), ModelProfile(model, 1))["input"][1:3] == [
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'},
    ]


def test_malformed_arguments_and_made_up_names_are_sent_as_text() -> None:
    call = ToolCall("toolu_1", "no such tool!", '{"path": ')
    history: list[Message] = [GO, AssistantMessage(calls=(call,)), ToolMessage("toolu_1", "no such tool!", "?")]
    sent = body(asked(history))["input"][1]
    assert (sent["name"], sent["arguments"]) == ("no_such_tool_", '{"path": ')


def test_tools_are_not_strict_and_stay_when_they_are_disabled() -> None:
    with_tools, without = (WIRE.encode(asked([GO], disable_tools=off), PROFILE, stream=False) for off in (False, True))
    built = body(asked([GO], disable_tools=True))
    assert built["tool_choice"] == "none"
    assert [(tool["name"], tool["strict"]) for tool in built["tools"]] == [(tool.name, False) for tool in TOOLS]
    assert built["tools"][0]["parameters"] == TOOLS[0].schema
    assert without.replace(b',"tool_choice":"none"', b"") == with_tools
    assert {"tools", "tool_choice"}.isdisjoint(body(asked([GO], tools=(), disable_tools=True)))


def test_a_foreign_turn_that_is_empty_without_its_echo_leaves_no_hole() -> None:
    empty = AssistantMessage(echo=ProviderEcho("anthropic", "claude-opus-5-5", [{"type": "thinking"}]))
    assert body(asked([GO, empty, UserMessage("and?")]))["input"] == [
        {"role": "user", "content": "why?"},
        {"role": "user", "content": "and?"},
    ]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "no message to answer"),
        ([GO, AssistantMessage("done")], "assistant's own"),
        ([GO, AssistantMessage("hm", paused=True)], "paused answer"),
        ([GO, OURS, UserMessage("stop")], "before the results of call_1"),
    ],
)
def test_an_invalid_conversation_is_never_sent(messages: list[Message], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        WIRE.encode(asked(messages), PROFILE, stream=False)


def test_a_tool_name_that_the_api_refuses_is_never_sent() -> None:
    with pytest.raises(InvalidRequest, match=r"'a\.b'"):
        WIRE.encode(asked([GO], tools=(ToolDefinition("a.b", "", {}),)), PROFILE, stream=False)


STEPS = st.lists(st.sampled_from(["user", "notice", "text", "call", "ours"]), max_size=12)


def grow(messages: list[Message], steps: list[str]) -> list[Message]:
    messages = list(messages)
    for step in steps:
        number = len(messages)
        if step in {"text", "call", "ours"} and isinstance(messages[-1], AssistantMessage):
            messages.append(UserMessage("go on"))
        if step == "user":
            messages.append(UserMessage(f"word {number}"))
        elif step == "notice":
            messages.append(notice(f"note {number}"))
        elif step == "text":
            messages.append(AssistantMessage(f"text {number}"))
        else:
            call = ToolCall(f"call_{number}", "read", "{}")
            items = [REASONING, {**CALLED, "call_id": call.id}]
            echo = ProviderEcho("openai_responses", "gpt-6.1-sol", items) if step == "ours" else None
            messages.append(AssistantMessage(calls=(call,), echo=echo))
            messages.append(ToolMessage(call.id, "read", f"out {number}"))
    return [*messages, UserMessage("and?")] if isinstance(messages[-1], AssistantMessage) else messages


@pytest.mark.thorough
@given(STEPS, STEPS)
def test_a_longer_conversation_begins_with_the_shorter_one(first: list[str], more: list[str]) -> None:
    """Nothing that was sent is ever taken back."""
    shorter = grow([GO], first)
    before, after = body(asked(shorter))["input"], body(asked(grow(shorter, more)))["input"]
    assert after[: len(before)] == before


def test_text_that_utf_8_cannot_hold_is_sent_all_the_same() -> None:
    """Encoding is total."""
    bad = "a\ud800b"
    call = ToolCall("call_1", bad, bad)
    history: list[Message] = [UserMessage(bad), AssistantMessage(bad, calls=(call,)), ToolMessage("call_1", bad, bad)]
    tools = (ToolDefinition("read", bad, {}),)
    assert "a?b" in json.dumps(body(asked([*history, notice(bad)], system=bad, tools=tools)))


def test_an_image_goes_along_with_its_text() -> None:
    said = UserMessage("what is it?", (ImagePart("shot.png", "image/png", "aGk="),))
    shown = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}
    assert body(asked([said]))["input"] == [
        {"role": "user", "content": [{"type": "input_text", "text": "what is it?"}, shown]}
    ]

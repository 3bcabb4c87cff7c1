"""Requests as Chat Completions bodies."""

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
from hummingbird.models.openai_chat import openai_chat_wire, to_chat_call_id
from hummingbird.models.wire_format import ModelProfile
from tests.wire.asked import asked
from tests.wire.dialogue import TOOLS
from tests.wire.openai_types import check_chat

WIRE = openai_chat_wire()
PROFILE = ModelProfile("llama-4", 128_000, max_tokens_key="max_tokens")
GO = UserMessage("why?")


def body(request: ModelRequest, profile: ModelProfile = PROFILE, *, stream: bool = False) -> dict[str, Any]:
    built: dict[str, Any] = json.loads(WIRE.encode(request, profile, stream=stream))
    check_chat(built)
    return built


def called(*calls: ToolCall, text: str = "") -> AssistantMessage:
    return AssistantMessage(text, calls=calls)


def notice(text: str) -> Notice:
    return Notice(NoticeKind.SOFT_BUDGET, text)


def test_only_the_keys_that_every_server_knows_are_sent() -> None:
    assert set(body(asked([GO]))) == {"model", "messages", "tools", "max_tokens"}
    assert set(body(asked([GO], tools=()))) == {"model", "messages", "max_tokens"}
    assert set(body(asked([GO]), stream=True)) == {"model", "messages", "tools", "max_tokens", "stream"}


def test_usage_in_a_stream_is_asked_for_where_the_profile_says_that_it_is_taken() -> None:
    counting = ModelProfile("llama-4", 1, include_usage=True)
    assert body(asked([GO]), counting, stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body(asked([GO]), counting)


def test_openais_own_keys_are_sent_where_the_profile_says_so() -> None:
    """A stable prompt-cache key per session."""
    built = body(asked([GO]), ModelProfile("gpt-5.6-sol", 1, effort="none", cache_key=True))
    assert built["prompt_cache_key"] == "s-1"
    assert built["reasoning_effort"] == "none"
    assert built["max_completion_tokens"] == asked([GO]).max_output_tokens
    assert "max_tokens" not in built


def test_there_is_one_system_message_and_it_comes_first() -> None:
    """Many chat templates take no other."""
    history: list[Message] = [
        GO,
        called(ToolCall("a", "read_file", "{}")),
        ToolMessage("a", "read_file", "x"),
        notice("hurry"),
    ]
    roles = [message["role"] for message in body(asked(history))["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user"]


def test_a_notice_is_user_text_that_says_what_it_is_and_joins_its_neighbours() -> None:
    history: list[Message] = [GO, AssistantMessage("hm"), UserMessage("and?"), notice("hurry"), UserMessage("please")]
    last = body(asked(history))["messages"][-1]
    assert last == {"role": "user", "content": "and?\n\n<notice>\nhurry\n</notice>\n\nplease"}


def test_calls_and_results_stand_as_the_api_wants_them() -> None:
    history: list[Message] = [
        GO,
        called(ToolCall("aaaaaaaa1", "read_file", '{"path": "a"}'), ToolCall("aaaaaaaa2", "read_file", '{"path":"b"}')),
        ToolMessage("aaaaaaaa1", "read_file", "A"),
        ToolMessage("aaaaaaaa2", "read_file", "B", is_error=True),
    ]
    _, _, assistant, first, second = body(asked(history))["messages"]
    assert assistant["content"] == "", "some servers refuse null"
    assert assistant["tool_calls"][0] == {
        "id": "aaaaaaaa1",
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path": "a"}'},
    }
    assert (first["tool_call_id"], first["content"]) == ("aaaaaaaa1", "A")
    assert (second["tool_call_id"], second["content"]) == ("aaaaaaaa2", "B")


def test_ids_of_other_providers_get_the_shape_that_every_server_takes() -> None:
    """A session moves between providers."""
    history: list[Message] = [
        GO,
        called(ToolCall("toolu_01ABC", "read_file", "{}")),
        ToolMessage("toolu_01ABC", "read_file", "x"),
    ]
    _, _, assistant, result = body(asked(history))["messages"]
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"] == to_chat_call_id("toolu_01ABC")
    assert len(result["tool_call_id"]) == 9
    assert result["tool_call_id"].isalnum()
    assert to_chat_call_id("Abc012345") == "Abc012345"


@pytest.mark.parametrize("arguments", ['{"path": "a', "[1]", "nonsense", ""])
def test_arguments_that_are_no_object_never_poison_the_conversation(arguments: str) -> None:
    """Servers that parse old arguments answer 400 to every later request."""
    history: list[Message] = [
        GO,
        called(ToolCall("a", "read_file", arguments)),
        ToolMessage("a", "read_file", "not JSON"),
    ]
    sent = body(asked(history))["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"_malformed": arguments}


def test_names_that_a_model_made_up_are_cleaned() -> None:
    history: list[Message] = [
        GO,
        called(ToolCall("a", "Read File!", "{}")),
        ToolMessage("a", "Read File!", "no such tool"),
    ]
    assert body(asked(history))["messages"][2]["tool_calls"][0]["function"]["name"] == "Read_File_"


def test_tools_stay_byte_identical_when_they_are_disabled() -> None:
    with_tools, without = (WIRE.encode(asked([GO], disable_tools=off), PROFILE, stream=False) for off in (False, True))
    assert json.loads(without)["tool_choice"] == "none"
    assert without.replace(b',"tool_choice":"none"', b"") == with_tools
    assert "tool_choice" not in body(asked([GO], tools=(), disable_tools=True))


def test_keys_that_a_server_wants_back_are_replayed_to_the_same_model_only() -> None:
    """DeepSeek's reasoning_content, OpenRouter's reasoning_details."""
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    echo = ProviderEcho("openai_chat", "llama-4", {"reasoning_details": details})
    history: list[Message] = [GO, AssistantMessage("hm", "thought", echo=echo), UserMessage("and?")]
    sent = json.loads(WIRE.encode(asked(history), PROFILE, stream=False))["messages"][2]
    assert sent == {"role": "assistant", "content": "hm", "reasoning_details": details}
    other = json.loads(WIRE.encode(asked(history), ModelProfile("llama-5", 1), stream=False))["messages"][2]
    assert other == {"role": "assistant", "content": "hm"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "no message to answer"),
        ([GO, AssistantMessage("done")], "assistant's own"),
        ([GO, AssistantMessage("hm", paused=True)], "paused answer"),
        ([AssistantMessage("hm"), GO], "begins with an assistant"),
        ([GO, called(ToolCall("a", "read_file", "{}")), UserMessage("stop")], "before the results"),
        ([GO, ToolMessage("a", "read_file", "x")], "nobody asked for"),
    ],
)
def test_an_invalid_conversation_is_never_sent(messages: list[Message], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        WIRE.encode(asked(messages), PROFILE, stream=False)


def test_a_tool_name_that_the_api_refuses_is_never_sent() -> None:
    with pytest.raises(InvalidRequest, match=r"'read file'.*letters, digits"):
        WIRE.encode(asked([GO], tools=(ToolDefinition("read file", "", {"type": "object"}),)), PROFILE, stream=False)


def test_text_is_sent_as_it_is() -> None:
    """Quotes, control characters and what is no ASCII survive."""
    text = 'a "quoted"\\ \x00\x1f line\nümlaut 🐦 </notice>'
    history: list[Message] = [UserMessage(text), AssistantMessage(text), notice(text)]
    sent = body(asked(history, system=text))["messages"]
    assert [message["content"] for message in sent[:3]] == [text] * 3
    assert sent[3]["content"] == f"<notice>\n{text}\n</notice>"


STEPS = st.lists(st.sampled_from(["user", "notice", "text", "one call", "two calls"]), max_size=12)


def grow(messages: list[Message], steps: list[str]) -> list[Message]:
    """These messages and more, ending where the model is asked."""
    messages = list(messages)
    for step in steps:
        number = len(messages)
        if step in {"text", "one call", "two calls"} and isinstance(messages[-1], AssistantMessage):
            messages.append(UserMessage("go on"))
        if step == "user":
            messages.append(UserMessage(f"word {number}"))
        elif step == "notice":
            messages.append(notice(f"note {number}"))
        elif step == "text":
            messages.append(AssistantMessage(f"text {number}"))
        else:
            ids = [f"{number}{name}" for name in ("a", "b")][: 2 if step == "two calls" else 1]
            messages.append(called(*(ToolCall(i, "read_file", "{}") for i in ids)))
            messages.extend(ToolMessage(i, "read_file", f"out {i}") for i in ids)
    return [*messages, UserMessage("and?")] if isinstance(messages[-1], AssistantMessage) else messages


def blocks(messages: list[Message]) -> list[str]:
    found: list[str] = []
    for message in body(asked(messages))["messages"]:
        if message["role"] == "user":
            found += [f"user {part}" for part in message["content"].split("\n\n")]
        else:
            found.append(json.dumps(message))
    return found


@pytest.mark.thorough
@given(STEPS, STEPS)
def test_a_longer_conversation_begins_with_the_shorter_one(first: list[str], more: list[str]) -> None:
    """Nothing that was sent is ever taken back."""
    shorter = grow([GO], first)
    longer = grow(shorter, more)
    assert blocks(longer)[: len(blocks(shorter))] == blocks(shorter)


def test_the_system_prompt_and_tools_are_what_was_asked() -> None:
    built = body(asked([GO]))
    assert built["messages"][0] == {"role": "system", "content": "Be brief."}
    assert [tool["function"]["name"] for tool in built["tools"]] == [tool.name for tool in TOOLS]
    assert built["tools"][0]["function"]["parameters"] == TOOLS[0].schema
    assert body(asked([GO], system=""))["messages"][0]["role"] == "user"


def test_text_that_utf_8_cannot_hold_is_sent_all_the_same() -> None:
    """Encoding is total."""
    bad = "a\ud800b"
    call = ToolCall("call_1", bad, bad)
    history: list[Message] = [UserMessage(bad), AssistantMessage(bad, calls=(call,)), ToolMessage("call_1", bad, bad)]
    tools = (ToolDefinition("read", bad, {}),)
    assert "a?b" in json.dumps(body(asked([*history, notice(bad)], system=bad, tools=tools)))


def test_an_image_goes_along_with_the_texts_that_stand_together() -> None:
    said = UserMessage('a "quoted" word', (ImagePart("shot.png", "image/png", "aGk="),))
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    together = {"type": "text", "text": 'why?\n\na "quoted" word'}
    assert body(asked([GO, said]))["messages"][1:] == [{"role": "user", "content": [together, shown]}]

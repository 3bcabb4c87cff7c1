"""Canonical messages as Anthropic's body."""

import json
from dataclasses import replace
from typing import Any

import pytest

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
from hummingbird.models.anthropic import encode_request
from hummingbird.models.wire_format import ModelProfile
from tests.wire.anthropic_types import check

MODEL = "claude-opus-5-5"
PROFILE = ModelProfile(MODEL, 1_000_000, system_entries=True, summarised_thinking=True)
OLD = ModelProfile("claude-sonnet-4-6", 1_000_000)
TOOLS = (ToolDefinition("read", "Read it.", {"type": "object", "properties": {"path": {"type": "string"}}}),)
ASKED = AssistantMessage("", "", (ToolCall("a", "read", '{"path":"x"}'), ToolCall("b", "read", "{}")))
RESULTS = (ToolMessage("a", "read", "one"), ToolMessage("b", "read", "two", is_error=True))


def request(*messages: Message, **changes: Any) -> ModelRequest:
    given: dict[str, Any] = {
        "system": "Be brief.",
        "tools": TOOLS,
        "messages": messages,
        "session_id": "s",
        "call_id": "c",
        **changes,
    }
    return ModelRequest(**given)


def body(asked: ModelRequest, profile: ModelProfile = PROFILE, *, stream: bool = False) -> dict[str, Any]:
    """The body as a server reads it, checked against the SDK's types."""
    made: dict[str, Any] = json.loads(encode_request(asked, profile, stream=stream))
    check({"model": profile.model, **made})
    return made


def turns(asked: ModelRequest, profile: ModelProfile = PROFILE) -> list[Any]:
    """Roles and blocks, without the cache breakpoints."""
    return [
        (turn["role"], [{k: v for k, v in block.items() if k != "cache_control"} for block in turn["content"]])
        for turn in body(asked, profile)["messages"]
    ]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def notice(words: str) -> Notice:
    return Notice(NoticeKind.SOFT_BUDGET, words)


def test_the_body_has_what_the_profile_asks_for_and_no_model() -> None:
    """Thinking summarised, effort only when set; the endpoint names the model."""
    profile = ModelProfile(MODEL, 1, summarised_thinking=True, effort="high")
    made = body(request(UserMessage("hi"), max_output_tokens=99), profile, stream=True)
    assert made["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert made["output_config"] == {"effort": "high"}
    assert (made["max_tokens"], made["stream"]) == (99, True)
    assert "model" not in made
    plainly = body(request(UserMessage("hi")), OLD)
    assert not plainly.keys() & {"thinking", "output_config", "stream", "tool_choice"}


def test_results_come_first_and_the_users_words_after_them_in_one_message() -> None:
    assert turns(request(UserMessage("go"), ASKED, *RESULTS, UserMessage("and hurry"))) == [
        ("user", [text("go")]),
        (
            "assistant",
            [
                {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}},
                {"type": "tool_use", "id": "b", "name": "read", "input": {}},
            ],
        ),
        (
            "user",
            [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {"type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": True},
                text("and hurry"),
            ],
        ),
    ]


def test_an_answer_of_the_same_model_is_replayed_as_it_came() -> None:
    """Thinking blocks also when empty, redacted ones too."""
    content = [
        {"type": "thinking", "thinking": "", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "text", "text": "Looking. ", "citations": None},
        {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "ü", "n": [1.5, None]}},
    ]
    said = AssistantMessage("other words", "", ASKED.calls[:1], ProviderEcho("anthropic", MODEL, content))
    assert turns(request(UserMessage("go"), said, RESULTS[0]))[1] == ("assistant", content)


ELSEWHERE = [{"type": "text", "text": "not to be replayed"}]


@pytest.mark.parametrize(
    "echo", [ProviderEcho("gemini", MODEL, ELSEWHERE), ProviderEcho("anthropic", "claude-opus-5", ELSEWHERE), None]
)
def test_an_answer_from_elsewhere_is_told_without_its_thinking(echo: ProviderEcho | None) -> None:
    """A session moves between providers."""
    said = AssistantMessage("Looking.", "secret thoughts", ASKED.calls[:1], echo)
    assert turns(request(UserMessage("go"), said, RESULTS[0]))[1] == (
        "assistant",
        [text("Looking."), {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}}],
    )


def test_foreign_names_and_ids_are_made_legal_and_still_pair() -> None:
    odd = AssistantMessage(calls=(ToolCall("functions.read:0", "re ad!", "{}"), ToolCall("Ü", "r" * 200, "{}")))
    results = (ToolMessage("functions.read:0", "re ad!", "1"), ToolMessage("Ü", "r", "2"))
    _, (_, calls), (_, answers) = turns(request(UserMessage("go"), odd, *results))
    assert [call["name"] for call in calls] == ["re_ad_", "r" * 64]
    assert [call["id"] for call in calls] == [answer["tool_use_id"] for answer in answers]
    assert all(call["id"].isalnum() and call["id"].isascii() for call in calls)


@pytest.mark.parametrize("arguments", ["", "{not json", "[1]", '"text"', "null", '{"a": 1} trailing', "\ud800"])
def test_malformed_arguments_are_wrapped_in_an_object(arguments: str) -> None:
    """The model sees what it wrote."""
    said = AssistantMessage(calls=(ToolCall("a", "read", arguments),))
    _, (_, (call,)), _ = turns(request(UserMessage("go"), said, ToolMessage("a", "read", "no JSON", is_error=True)))
    assert call["input"] == {"_malformed": arguments.replace("\ud800", "?")}


def test_well_formed_arguments_keep_their_bytes() -> None:
    """Numbers and order are the model's."""
    said = AssistantMessage(calls=(ToolCall("a", "read", '{"b": 1.0, "a": 12345678901234567890123}'),))
    made = encode_request(request(UserMessage("go"), said, ToolMessage("a", "read", "x")), PROFILE, stream=False)
    assert b'"input":{"b": 1.0, "a": 12345678901234567890123}' in made


def test_a_notice_after_results_is_a_system_entry_with_a_border_before_it() -> None:
    """The border keeps small models from reading it as tool output."""
    assert turns(request(UserMessage("go"), ASKED, *RESULTS, notice("3 calls left"), notice("be quick")))[2:] == [
        ("user", [*turns(request(UserMessage("go"), ASKED, *RESULTS))[2][1], text("[The tool results end here.]")]),
        ("system", [text("3 calls left"), text("be quick")]),
    ]


def test_a_notice_after_the_users_words_is_a_system_entry() -> None:
    assert turns(request(UserMessage("go"), notice("continue"))) == [
        ("user", [text("go")]),
        ("system", [text("continue")]),
    ]


def test_a_notice_stays_a_system_entry_when_the_conversation_goes_on() -> None:
    """Shown once, it stays at that place."""
    told = turns(
        request(
            UserMessage("go"), notice("n"), ASKED, *RESULTS, notice("m"), AssistantMessage("done"), UserMessage("?")
        )
    )
    assert [role for role, _ in told] == ["user", "system", "assistant", "user", "system", "assistant", "user"]


def test_older_models_get_a_notice_as_marked_text_after_the_results() -> None:
    """Never presented as the user's words."""
    told = turns(request(UserMessage("go"), ASKED, *RESULTS, notice("3 calls left")), OLD)
    assert [role for role, _ in told] == ["user", "assistant", "user"]
    assert told[2][1][2:] == [text("<notice>\n3 calls left\n</notice>")]


@pytest.mark.parametrize(
    "messages",
    [
        (UserMessage("go"), AssistantMessage("cut o"), notice("n")),
        (UserMessage("go"), AssistantMessage("cut o"), notice("n"), notice("n")),
        (UserMessage("go"), notice("n"), UserMessage("wait")),
        (UserMessage("go"), ASKED, *RESULTS, notice("n"), UserMessage("wait")),
    ],
)
def test_where_no_system_entry_may_stand_a_notice_is_marked_text(messages: tuple[Message, ...]) -> None:
    """After the assistant, or before the user."""
    told = turns(request(*messages))
    assert "system" not in {role for role, _ in told}
    marked = [block for _, blocks in told for block in blocks if block.get("text", "").startswith("<notice>")]
    assert len(marked) == sum(isinstance(message, Notice) for message in messages)


@pytest.mark.parametrize("nothing", ["", " \n"])
def test_empty_texts_get_a_placeholder_because_empty_blocks_are_refused(nothing: str) -> None:
    said = AssistantMessage(nothing, "", (ToolCall("a", "read", "{}"),))
    told = turns(request(UserMessage(nothing), said, ToolMessage("a", "read", nothing), notice(nothing)))
    assert told[0] == ("user", [text("(empty message)")])
    assert [block["type"] for block in told[1][1]] == ["tool_use"]
    assert told[2][1][0]["content"] == "(no output)"
    assert "system" not in body(request(UserMessage("x"), system=nothing))


def test_an_answer_with_nothing_to_tell_here_gets_a_placeholder() -> None:
    """Its content was another wire's."""
    said = AssistantMessage(echo=ProviderEcho("openai", "gpt", [{"x": 1}]))
    assert turns(request(UserMessage("go"), said, UserMessage("?")))[1] == ("assistant", [text("(no text)")])


def test_a_paused_answer_is_sent_back_as_the_end_of_the_conversation() -> None:
    """pause_turn."""
    content = [{"type": "text", "text": "wor"}]
    paused = AssistantMessage("wor", echo=ProviderEcho("anthropic", MODEL, content), paused=True)
    assert turns(request(UserMessage("go"), paused))[-1] == ("assistant", content)
    later = turns(request(UserMessage("go"), paused, AssistantMessage("king"), UserMessage("?")))
    assert later[1:] == [("assistant", [*content, text("king")]), ("user", [text("?")])]


def test_disabling_tools_leaves_their_bytes_alone() -> None:
    free, final = (
        encode_request(request(UserMessage("x"), disable_tools=off), PROFILE, stream=False) for off in (False, True)
    )
    assert json.loads(final)["tool_choice"] == {"type": "none"}
    assert final.replace(b'"tool_choice":{"type":"none"},', b"") == free


def test_a_history_with_calls_is_never_sent_without_tools() -> None:
    """A 400, or an empty answer."""
    made = body(request(UserMessage("go"), ASKED, *RESULTS, tools=()))
    assert [tool["name"] for tool in made["tools"]] == ["read"]
    assert made["tool_choice"] == {"type": "none"}
    assert "tools" not in body(request(UserMessage("go"), tools=()))


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (ASKED,),
        (UserMessage("x"), ASKED),
        (UserMessage("x"), RESULTS[0]),
        (UserMessage("x"), AssistantMessage("y")),
    ],
)
def test_an_invalid_conversation_is_not_built(messages: tuple[Message, ...]) -> None:
    with pytest.raises(InvalidRequest, match="cannot be sent to Anthropic"):
        encode_request(request(*messages), PROFILE, stream=False)


def test_a_tool_name_that_would_be_refused_is_named() -> None:
    with pytest.raises(InvalidRequest, match="'read file'"):
        encode_request(request(UserMessage("x"), tools=(ToolDefinition("read file", "", {}),)), PROFILE, stream=False)


def test_text_that_utf8_cannot_hold_is_sent_all_the_same() -> None:
    """total."""
    told = turns(request(UserMessage("a\ud800b"), AssistantMessage("c\udfff"), UserMessage("€")))
    assert [blocks[0]["text"] for _, blocks in told] == ["a?b", "c?", "€"]


def test_an_image_stands_before_its_text_and_is_named_where_the_model_takes_none() -> None:
    said = UserMessage("what is it?", (ImagePart("shot.png", "image/png", "aGk="),))
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert turns(request(said)) == [("user", [{"type": "image", "source": source}, text("what is it?")])]
    blind = text("what is it?\n\n[1 image(s) left out: this model takes none]")
    assert turns(request(said), replace(PROFILE, takes_images=False)) == [("user", [blind])]

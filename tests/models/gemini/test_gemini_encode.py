"""Canonical messages as Gemini's body."""

import json
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
from hummingbird.models.gemini import FOREIGN_SIGNATURE, encode_request
from hummingbird.models.wire_format import ModelProfile
from tests.wire.gemini_types import check

MODEL = "gemini-3.8-flash"
PROFILE = ModelProfile(MODEL, 1_000_000, signs_calls=True, summarised_thinking=True)
OLD = ModelProfile("gemini-2.5-flash", 1_000_000)
TOOLS = (ToolDefinition("read", "Read it.", {"type": "object", "additionalProperties": False}),)
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


def body(asked: ModelRequest, profile: ModelProfile = PROFILE) -> dict[str, Any]:
    """The body as a server reads it, checked against the SDK's types."""
    made: dict[str, Any] = json.loads(encode_request(asked, profile))
    check(made)
    return made


def turns(asked: ModelRequest, profile: ModelProfile = PROFILE) -> list[Any]:
    return [(turn["role"], turn["parts"]) for turn in body(asked, profile)["contents"]]


def test_the_body_has_system_tools_and_limits_where_gemini_looks_for_them() -> None:
    made = body(
        request(UserMessage("hi"), max_output_tokens=99), ModelProfile(MODEL, 1, summarised_thinking=True, effort="low")
    )
    assert made == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "read",
                        "description": "Read it.",
                        "parametersJsonSchema": {"type": "object", "additionalProperties": False},
                    }
                ]
            }
        ],
        "generationConfig": {
            "maxOutputTokens": 99,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"},
        },
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }
    assert body(request(UserMessage("hi"), system="", tools=()), OLD) == {
        "generationConfig": {"maxOutputTokens": 16_000},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }


def test_results_notices_and_words_share_the_turn_after_the_calls() -> None:
    """As many responses as calls, directly after them; errors say so; a notice is marked."""
    told = turns(
        request(UserMessage("go"), ASKED, *RESULTS, Notice(NoticeKind.FINAL, "last one"), UserMessage("hurry"))
    )
    assert told[2:] == [
        (
            "user",
            [
                {"functionResponse": {"name": "read", "response": {"output": "one"}}},
                {"functionResponse": {"name": "read", "response": {"error": "two"}}},
                {"text": "<notice>\nlast one\n</notice>"},
                {"text": "hurry"},
            ],
        )
    ]


def test_an_answer_of_the_same_model_is_replayed_with_its_signatures_in_place() -> None:
    parts = [
        {"text": "hm", "thought": True},
        {"text": "Looking."},
        {"functionCall": {"name": "read", "args": {"path": "x"}, "id": "g1"}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "Read", "args": {}}},
        {"text": "", "thoughtSignature": "bW9yZQ=="},
    ]
    said = AssistantMessage("Looking.", "hm", ASKED.calls, ProviderEcho("gemini", MODEL, parts))
    told = turns(request(UserMessage("go"), said, *RESULTS))
    assert told[1] == ("model", parts)
    responses = [part["functionResponse"] for part in told[2][1]]
    assert [(r["name"], r.get("id")) for r in responses] == [("read", "g1"), ("Read", None)], "as the calls have it"


ELSEWHERE = [{"text": "not to be replayed"}]


@pytest.mark.parametrize(
    "echo", [ProviderEcho("anthropic", MODEL, ELSEWHERE), ProviderEcho("gemini", "gemini-4-argon", ELSEWHERE), None]
)
def test_calls_from_elsewhere_carry_the_signature_that_says_so(echo: ProviderEcho | None) -> None:
    """On the first call of the turn, and only where signatures are wanted."""
    said = AssistantMessage("Looking.", "secret", ASKED.calls, echo)
    assert turns(request(UserMessage("go"), said, *RESULTS))[1] == (
        "model",
        [
            {"text": "Looking."},
            {"functionCall": {"name": "read", "args": {"path": "x"}}, "thoughtSignature": FOREIGN_SIGNATURE},
            {"functionCall": {"name": "read", "args": {}}},
        ],
    )
    assert not any("thoughtSignature" in part for part in turns(request(UserMessage("go"), said, *RESULTS), OLD)[1][1])


def test_foreign_names_are_made_legal_and_results_follow() -> None:
    odd = AssistantMessage(calls=(ToolCall("a", "1 bad!", "{}"), ToolCall("b", "-x", "{broken")))
    told = turns(request(UserMessage("go"), odd, ToolMessage("a", "1 bad!", "x"), ToolMessage("b", "-x", "y")))
    calls = [part["functionCall"] for part in told[1][1]]
    assert [call["name"] for call in calls] == ["_1_bad_", "_-x"]
    assert calls[1]["args"] == {"_malformed": "{broken"}
    assert [part["functionResponse"]["name"] for part in told[2][1]] == ["_1_bad_", "_-x"]


def test_disabling_tools_keeps_the_declarations() -> None:
    made = body(request(UserMessage("x"), disable_tools=True))
    assert made["toolConfig"] == {"functionCallingConfig": {"mode": "NONE"}}
    assert made["tools"] == body(request(UserMessage("x")))["tools"]
    assert "toolConfig" not in body(request(UserMessage("x"), disable_tools=True, tools=()))


def test_empty_texts_get_a_placeholder() -> None:
    told = turns(request(UserMessage(" "), AssistantMessage(echo=ProviderEcho("openai", "m", [1])), UserMessage("")))
    assert told == [
        ("user", [{"text": "(empty message)"}]),
        ("model", [{"text": "(no text)"}]),
        ("user", [{"text": "(empty message)"}]),
    ]


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (ASKED,),
        (UserMessage("x"), ASKED),
        (UserMessage("x"), AssistantMessage("y")),
        (UserMessage("x"), AssistantMessage("y", paused=True)),
    ],
)
def test_an_invalid_conversation_is_not_built(messages: tuple[Message, ...]) -> None:
    with pytest.raises(InvalidRequest, match=r"Gemini"):
        encode_request(request(*messages), PROFILE)


def test_a_tool_name_that_would_be_refused_is_named() -> None:
    with pytest.raises(InvalidRequest, match="'2read'"):
        encode_request(request(UserMessage("x"), tools=(ToolDefinition("2read", "", {}),)), PROFILE)


def test_text_that_utf8_cannot_hold_is_sent_all_the_same() -> None:
    """total."""
    said = AssistantMessage("c\udfff", calls=(ToolCall("a", "re\ud800ad", "\ud800"),))
    told = turns(request(UserMessage("a\ud800b"), said, ToolMessage("a", "x", "\ud800")))
    assert told[0][1] == [{"text": "a?b"}]


def test_an_image_stands_before_its_text() -> None:
    said = UserMessage("what is it?", (ImagePart("shot.png", "image/png", "aGk="),))
    shown = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    assert turns(request(said)) == [("user", [shown, {"text": "what is it?"}])]

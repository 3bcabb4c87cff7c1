"""Chat Completions answers and streams as replies: tolerant of what compatible servers leave out."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from hummingbird.core.errors import ContextOverflow, CredentialRefused, ProviderReplyUnreadable, ProviderUnavailable
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import ProviderEcho, UserMessage
from hummingbird.core.protocols.model import ModelReply
from hummingbird.core.usage import TokenUsage
from hummingbird.models.openai_chat import openai_chat_wire
from hummingbird.models.wire_format import ModelProfile
from tests.wire.asked import asked

WIRE = openai_chat_wire("vllm.example")
PROFILE = ModelProfile("llama-4", 128_000, echo_keys=("reasoning_content", "reasoning_details"))
REQUEST = asked([UserMessage("why?")])


def decoded(message: Any, **choice: Any) -> ModelReply:
    return WIRE.decode({"choices": [{"message": message, "finish_reason": "stop", **choice}]}, REQUEST, PROFILE)


def call(arguments: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "x", "type": "function", "function": {"name": "read", "arguments": arguments}, **fields}


@pytest.mark.parametrize("content", [None, "", "text"])
def test_content_may_be_null_empty_or_text(content: Any) -> None:
    assert decoded({"content": content}).message.text == (content or "")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", FinishReason.STOP),
        ("tool_calls", FinishReason.STOP),
        (None, FinishReason.STOP),
        ("", FinishReason.STOP),
        ("never heard of it", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("content_filter", FinishReason.REFUSAL),
        ("error", FinishReason.MALFORMED),
        (5, FinishReason.STOP),
    ],
)
def test_finish_reasons_are_understood_or_mean_stop(reason: Any, finish: FinishReason) -> None:
    assert decoded({"content": "x"}, finish_reason=reason).finish is finish


def test_a_refusal_ends_as_one_with_its_words() -> None:
    reply = decoded({"content": None, "refusal": "I won't."})
    assert (reply.finish, reply.message.text) == (FinishReason.REFUSAL, "I won't.")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("", "{}"),
        (None, "{}"),
        ({"path": "a"}, '{"path":"a"}'),
        ([1], "[1]"),
        ('{"path": "a"', '{"path": "a"'),
        ("{}", "{}"),
    ],
)
def test_arguments_may_be_empty_an_object_or_broken(arguments: Any, text: str) -> None:
    assert decoded({"tool_calls": [call(arguments)]}).message.calls[0].arguments == text


@pytest.mark.parametrize("ids", [[{}, {}], [{"id": "call_0"}, {"id": "call_0"}], [{"id": None}, {"id": ""}]])
def test_calls_always_get_ids_of_our_own(ids: list[dict[str, Any]]) -> None:
    """Missing and repeated ids alike; the same ids for the same call."""
    calls = [{"function": {"name": "read", "arguments": "{}"}, **given} for given in ids]
    first = decoded({"tool_calls": calls}).message.calls
    assert len({each.id for each in first}) == 2
    assert all(len(each.id) == 9 and each.id.isalnum() for each in first)
    assert decoded({"tool_calls": calls}).message.calls == first


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_is_readable_under_either_name(key: str) -> None:
    assert decoded({"content": "x", key: "because"}).message.reasoning == "because"


def test_only_the_keys_that_the_server_wants_back_are_echoed() -> None:
    reply = decoded({"content": "x", "reasoning_content": "because", "audio": None, "annotations": []})
    assert reply.message.echo == ProviderEcho("openai_chat", "llama-4", {"reasoning_content": "because"})
    assert decoded({"content": "x", "reasoning": "because"}).message.echo is None


def test_parts_are_read() -> None:
    """Mistral's."""
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "so"}]
    message = decoded({"content": parts}).message
    assert (message.text, message.reasoning) == ("so", "hm")


@pytest.mark.parametrize(
    "odd",
    [
        {"content": [{"type": "text", "text": "so"}, {"type": "video"}]},
        {"content": "so", "tool_calls": [{"type": "custom", "custom": {"name": "x"}}]},
        {"content": "so", "tool_calls": [call("{}"), 5]},
        {"content": "so", "tool_calls": 5},
        {"content": "so", "function_call": "x"},
    ],
)
def test_an_unknown_part_makes_the_answer_malformed_and_its_bill_stays(odd: Any) -> None:
    """It was paid for, and cannot be acted on."""
    answer = {"choices": [{"message": odd, "finish_reason": "stop"}], "usage": {"prompt_tokens": 7}}
    reply = WIRE.decode(answer, REQUEST, PROFILE)
    assert (reply.finish, reply.usage, reply.usage_known) == (FinishReason.MALFORMED, TokenUsage(7), True)
    assert (reply.message.text, reply.message.calls, reply.message.echo) == ("so", (), None)


OLDER = {"name": "older", "arguments": '{"a": 1}'}


@pytest.mark.parametrize(("calls", "names"), [(None, ["older"]), ([], ["older"]), ([call("{}")], ["read"])])
def test_older_form_of_a_call_counts_where_there_is_no_newer_one(calls: Any, names: list[str]) -> None:
    """llama-cpp-python sends both."""
    message = {"content": None, "function_call": OLDER, "tool_calls": calls}
    events = [
        chunk({"function_call": {"name": "older", "arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ": 1}"}}),
    ]
    if calls:
        events.insert(0, chunk({"tool_calls": [{"index": 0, **calls[0]}]}))
    for reply in (decoded(message), streamed([*events, chunk({}, "tool_calls")])[0]):
        assert [one.name for one in reply.message.calls] == names
        assert reply.finish is FinishReason.STOP
        if names == ["older"]:
            assert reply.message.calls[0].arguments == '{"a": 1}'


@pytest.mark.parametrize("choices", [[], "x", [5], [{}], [{"message": None}]])
def test_a_billed_answer_without_a_message_is_malformed(choices: Any) -> None:
    reply = WIRE.decode({"choices": choices, "usage": {"prompt_tokens": 7}}, REQUEST, PROFILE)
    assert (reply.finish, reply.usage) == (FinishReason.MALFORMED, TokenUsage(7))


@pytest.mark.parametrize(
    ("raw", "counted"),
    [
        (None, False),
        ({}, False),
        ({"prompt_tokens": "7"}, False),
        ({"prompt_tokens": float("inf")}, False),
        ({"prompt_tokens": 0}, True),
        ({"prompt_tokens": None, "completion_tokens": 3}, True),
    ],
)
def test_an_answer_without_usage_is_not_counted(raw: Any, counted: bool) -> None:
    """Unknown is not nothing."""
    reply = WIRE.decode({"choices": [{"message": {"content": "x"}}], "usage": raw}, REQUEST, PROFILE)
    assert reply.usage_known is counted


@pytest.mark.parametrize("answer", ["plain text", None, [], {}, {"choices": []}, {"choices": [{}]}, {"choices": "x"}])
def test_what_is_no_answer_is_unreadable(answer: Any) -> None:
    with pytest.raises(ProviderReplyUnreadable):
        WIRE.decode(answer, REQUEST, PROFILE)


def test_an_error_inside_a_200_is_raised_by_its_code() -> None:
    """OpenRouter, in the answer or in the choice."""
    with pytest.raises(CredentialRefused, match=r"vllm\.example"):
        WIRE.decode({"error": {"message": "bad key", "code": 401}}, REQUEST, PROFILE)
    with pytest.raises(ProviderUnavailable):
        decoded({"content": ""}, error={"message": "upstream", "code": 502})
    with pytest.raises(ContextOverflow):
        WIRE.decode({"detail": "This model's maximum context length is 10."}, REQUEST, PROFILE)


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (None, TokenUsage()),
        ({"prompt_tokens": 100, "completion_tokens": 7}, TokenUsage(100, output=7)),
        (
            {
                "prompt_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "completion_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 15},
            },
            TokenUsage(10, 60, 30, 20, 15),
        ),
        ({"prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "prompt_tokens_details": None}, TokenUsage(36, 64)),
        ({"prompt_tokens": None, "completion_tokens": "x"}, TokenUsage()),
    ],
)
def test_usage_is_normalised_and_kept_as_it_came(raw: Any, usage: TokenUsage) -> None:
    """prompt_tokens includes what was cached."""
    reply = WIRE.decode({"choices": [{"message": {"content": "x"}}], "usage": raw}, REQUEST, PROFILE)
    assert reply.usage == usage
    assert reply.raw_usage == (raw or {})


def chunk(delta: Any, finish: Any = None, **fields: Any) -> tuple[str, Any]:
    return "", {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **fields}


DONE = ("[DONE]", None)


def streamed(events: Iterable[tuple[str, Any]]) -> tuple[ModelReply, list[Delta]]:
    assembler = WIRE.create_assembler()
    deltas = [delta for event, content in events for delta in assembler.feed(event, content)]
    return WIRE.decode(assembler.result(), REQUEST, PROFILE), deltas


def test_a_stream_gives_the_very_reply_that_one_piece_gives() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 3}
    details = [{"type": "reasoning.text", "index": 0, "text": "Let me see.", "signature": "sig"}]
    whole = {
        "content": "I look.",
        "reasoning_content": "Let me see.",
        "reasoning_details": details,
        "tool_calls": [call('{"path": "a"}'), call("", id="y")],
    }
    expected = WIRE.decode(
        {"choices": [{"message": whole, "finish_reason": "tool_calls"}], "usage": usage}, REQUEST, PROFILE
    )
    reply, deltas = streamed(
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "Let me ", "reasoning_details": [{**details[0], "text": "Let me "}]}),
            chunk({"reasoning_content": "see.", "reasoning_details": [{**details[0], "text": "see."}]}),
            chunk({"content": "I "}, usage=None),
            chunk({"content": "look."}),
            chunk({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "read", "arguments": ""}}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"path":'}}]}),
            chunk({"tool_calls": [{"index": 1, "id": "y", "function": {"name": "read", "arguments": ""}}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": ' "a"}'}}]}),
            chunk({}, "tool_calls"),
            ("", {"choices": [], "usage": usage}),
            DONE,
        ]
    )
    assert reply == expected
    assert [d.text for d in deltas if isinstance(d, ReasoningDelta)] == ["Let me ", "see."]
    assert [d.text for d in deltas if isinstance(d, TextDelta)] == ["I ", "look."]
    assert "".join(d.part for d in deltas if isinstance(d, CallDelta) and d.index == 0) == '{"path": "a"}'


@pytest.mark.parametrize(
    "pieces",
    [
        [{"function": {"name": "read", "arguments": "{}"}}, {"function": {"name": "wait", "arguments": "{}"}}],
        [
            {"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}},
            {"index": 0, "id": "b", "function": {"name": "wait", "arguments": "{}"}},
        ],
        [
            {"index": 0, "id": "same", "function": {"name": "read", "arguments": {}}},
            {"index": 1, "id": "same", "function": {"name": "wait", "arguments": ""}},
        ],
        [
            {"index": 0, "id": "a", "function": {"name": "read", "arguments": "{"}},
            {"index": 0, "id": "a", "function": {"name": "read", "arguments": "}"}},
            {"index": 1, "id": "b", "function": {"name": "wait"}},
        ],
    ],
)
def test_streamed_calls_are_told_apart_however_they_are_numbered(pieces: list[Any]) -> None:
    """No index, every index 0, the same id twice, the name repeated."""
    events = [chunk({"tool_calls": [piece]}) for piece in pieces]
    calls = streamed([*events, chunk({}, "tool_calls")])[0].message.calls
    assert [(each.name, each.arguments) for each in calls] == [("read", "{}"), ("wait", "{}")]


def test_a_stream_without_finish_reason_ends_with_done() -> None:
    """Ollama gives null or an empty one."""
    reply, _ = streamed([chunk({"content": "x"}, ""), DONE])
    assert (reply.message.text, reply.finish) == ("x", FinishReason.STOP)


@pytest.mark.parametrize("events", [[], [chunk({"content": "hal"})], [chunk({"tool_calls": [call("{")]})], [DONE]])
def test_a_stream_that_ends_in_the_middle_is_unreadable(events: list[tuple[str, Any]]) -> None:
    """Nothing of it enters history."""
    with pytest.raises(ProviderReplyUnreadable):
        streamed(events)


def test_an_error_inside_a_stream_is_raised_by_its_code() -> None:
    with pytest.raises(ProviderUnavailable, match="overloaded"):
        streamed([chunk({"content": "hal"}), ("", {"error": {"message": "overloaded", "code": 503}})])
    with pytest.raises(CredentialRefused):
        streamed([("error", {"object": "error", "message": "no", "code": 401})])


def test_parts_in_a_stream_are_told_and_joined() -> None:
    """Mistral's thinking comes as parts, its text as parts or as a string."""

    def thought(text: str) -> tuple[str, Any]:
        return chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]})

    end = chunk({"content": [{"type": "text", "text": "full."}]}, "stop")
    reply, deltas = streamed(
        [chunk({"content": ""}), thought("Let me "), thought("see."), chunk({"content": "It is "}), end]
    )
    assert (reply.message.text, reply.message.reasoning) == ("It is full.", "Let me see.")
    assert deltas == [ReasoningDelta("Let me "), ReasoningDelta("see."), TextDelta("It is "), TextDelta("full.")]


def test_another_choice_is_not_mixed_in() -> None:
    other = ("", {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]})
    assert streamed([chunk({"content": "one"}), other, chunk({}, "stop")])[0].message.text == "one"


def test_an_echo_survives_the_journal() -> None:
    reply = decoded({"content": "x", "reasoning_details": [{"type": "reasoning.encrypted", "data": "=="}]})
    assert reply.message.echo is not None
    assert json.loads(json.dumps(reply.message.echo.content)) == reply.message.echo.content

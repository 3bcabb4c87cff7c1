"""Every refusal of the two OpenAI surfaces: the fair request passes, the broken one is told why."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.standins.vendors.samples import Change, add, cut, put, sample
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct, SurfaceName

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)

CALL = {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": "{}"}}
ANSWER = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
ITEM = {"type": "function_call", "call_id": "call_2", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
ARGUMENTS = "messages.2.tool_calls.0.function.arguments"


def asks(lab: VendorLab, surface: SurfaceName, *changes: Change) -> httpx2.Response:
    chosen = sample(surface)
    for change in changes:
        change(chosen.body)
    return send(lab.url + chosen.path, headers=chosen.headers, json=chosen.body)


def told(response: httpx2.Response) -> tuple[int, str, str]:
    error = response.json()["error"]
    return response.status_code, str(error["code"]), error["message"]


@pytest.fixture
def lab() -> Iterator[VendorLab]:
    with VendorLab(Script([Turn(text="yes")] * 5)) as running:
        yield running


def case(name: str, words: str, broken: Change, *fair: Change) -> Any:
    return pytest.param(words, broken, fair, id=name)


def insert(key: str, at: int, item: dict[str, Any]) -> Change:
    return lambda body: body[key].insert(at, item)


@pytest.mark.parametrize(
    ("words", "broken", "fair"),
    [
        case("no message", "empty array", put("messages", [])),
        case("model missing", "model", cut("model")),
        case("a role nobody knows", "Invalid value: 'narrator'", put("messages.0.role", "narrator")),
        case("unknown key", "Unrecognized request argument supplied: top_k", put("top_k", 5)),
        case("usage wish without a stream", "'stream_options'", put("stream_options", {"include_usage": True})),
        case("usage wish of no shape", "expected an object", put("stream_options", True), put("stream", True)),
        case("a field of another server", "messages[2].reasoning_content", put("messages.2.reasoning_content", "hm")),
        case("max_tokens", "Use 'max_completion_tokens' instead", put("max_tokens", 5)),
        case("no content", "expected a string, got null", put("messages.1.content", None)),
        case("no calls in a list of calls", "tool_calls': empty array", put("messages.2.tool_calls", [])),
        case("calls of the user", "tool_calls", put("messages.1.tool_calls", [CALL])),
        case("call without an answer", "did not have response messages: call_1", cut("messages.3")),
        case(
            "call answered after the next turn",
            "did not have response messages",
            insert("messages", 3, {"role": "user", "content": "wait"}),
        ),
        case("one of two calls without an answer", "response messages: call_2", add("messages.2.tool_calls", CALL)),
        case("answer without a call", "must be a response to a preceeding message", cut("messages.2")),
        case("answer twice", "must be a response to a preceeding message", add("messages", ANSWER)),
        case("answer without its id", "tool_call_id", cut("messages.3.tool_call_id")),
        case("same id twice", "Duplicate value", add("messages.2.tool_calls", {**CALL, "id": "call_1"})),
        case("call without id", "Missing required parameter", cut("messages.2.tool_calls.0.id")),
        case("call of no type", "Missing required parameter", cut("messages.2.tool_calls.0.type")),
        case("arguments as an object", "function.arguments': expected a string", put(ARGUMENTS, {"path": "a"})),
        case("a bad name in history", "function.name", put("messages.2.tool_calls.0.function.name", "read it")),
        case("no tools in tools", "'tools': empty array", put("tools", [])),
        case("tool without function", "tools[0].function.name", put("tools.0", {"type": "function", "name": "read"})),
        case("tool with a bad name", "does not match pattern", put("tools.0.function.name", "read it")),
        case("parameters of no object", "parameters", put("tools.0.function.parameters", "none")),
        case("tool_choice without tools", "only allowed when 'tools'", cut("tools"), put("tool_choice", "none")),
        case("unknown tool_choice", "Invalid value: 'maybe'", put("tool_choice", "maybe")),
        case(
            "tool_choice names no tool",
            "not in 'tools'",
            put("tool_choice", {"type": "function", "function": {"name": "write"}}),
        ),
        case("unknown effort", "Invalid value: 'heroic'", put("reasoning_effort", "heroic")),
        case(
            "effort beside tools",
            "Function tools with reasoning_effort are not supported",
            put("reasoning_effort", "low"),
        ),
        case(
            "cache options on an older model", "prompt_cache_options", put("prompt_cache_options", {"mode": "explicit"})
        ),
    ],
)
def test_chat_refuses_a_broken_request_and_takes_the_fair_one(
    lab: VendorLab, words: str, broken: Change, fair: tuple[Change, ...]
) -> None:
    assert asks(lab, "openai-chat", *fair).status_code == 200
    status, _, message = told(asks(lab, "openai-chat", *fair, broken))
    assert status == 400
    assert words in message


@pytest.mark.parametrize(
    ("model", "effort", "status"),
    [
        ("gpt-5.4", None, 200),
        ("gpt-5.4", "none", 200),
        ("gpt-5.4", "high", 400),
        ("gpt-5.5", "low", 400),
        ("gpt-5.6-sol", None, 400),
        ("gpt-5.6-sol", "none", 200),
        ("gpt-6-sol", None, 400),
        ("gpt-6.1-terra", "low", 400),
        ("gpt-6.1-terra", "none", 200),
    ],
)
def test_function_tools_and_reasoning_meet_in_chat_as_the_model_allows(
    lab: VendorLab, model: str, effort: str | None, status: int
) -> None:
    """Responses is for OpenAI's own models."""
    changes = [put("model", model)] + ([put("reasoning_effort", effort)] if effort else [])
    assert asks(lab, "openai-chat", *changes).status_code == status
    alone: list[Change] = [put("messages", [{"role": "user", "content": "x"}]), cut("tools")]
    assert asks(lab, "openai-chat", *changes, *alone).status_code == 200


@pytest.mark.parametrize("choice", ["none", "auto", "required", {"type": "function", "function": {"name": "read"}}])
def test_the_known_tool_choices_pass_in_chat(lab: VendorLab, choice: Any) -> None:
    assert asks(lab, "openai-chat", put("tool_choice", choice)).status_code == 200


def with_reasoning(lab: VendorLab) -> Change:
    """The sample with the reasoning item of a real answer before its call."""
    item = asks(lab, "openai-responses").json()["output"][0]
    assert item["type"] == "reasoning"
    return insert("input", 1, item)


@pytest.mark.parametrize(
    ("words", "broken", "fair"),
    [
        case("no input", "'input'", put("input", [])),
        case("input missing", "'input'", cut("input")),
        case("model missing", "model", cut("model")),
        case("unknown key", "Unknown parameter: 'messages'", put("messages", [])),
        case("too few output tokens", "expected a value >= 16", put("max_output_tokens", 5)),
        case("unknown effort", "Invalid value: 'heroic'", put("reasoning", {"effort": "heroic"})),
        case("unknown item", "Invalid value: 'poem'", put("input.0", {"type": "poem"})),
        case("unknown key in an item", "input[1].mood", put("input.1.mood", "sad")),
        case("a role nobody knows", "Invalid value: 'tool'", put("input.0.role", "tool")),
        case("the user's text as chat has it", "Supported values are", put("input.0.content.0.type", "text")),
        case(
            "the assistant's text as the user's",
            "Supported values are",
            insert("input", 1, {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        ),
        case("content of no shape", "input[0].content", put("input.0.content", 5)),
        case(
            "unknown phase",
            "Invalid value: 'epilogue'",
            insert("input", 1, {"role": "assistant", "content": "x", "phase": "epilogue"}),
        ),
        case("call without output", "No tool output found for function call call_1", cut("input.2")),
        case(
            "one of two calls without output", "No tool output found for function call call_2", insert("input", 2, ITEM)
        ),
        case("output without call", "No tool call found for function call output with call_id call_1", cut("input.1")),
        case("output before its call", "No tool call found", lambda body: body["input"].reverse()),
        case("same call_id twice", "Duplicate call_id", insert("input", 2, {**ITEM, "call_id": "call_1"})),
        case("two outputs of one call", "Duplicate call_id", add("input", OUTPUT)),
        case("call without call_id", "input[1].call_id", cut("input.1.call_id")),
        case("call_id too long", "input[1].call_id", put("input.1.call_id", "c" * 65)),
        case("call_id of an output too long", "input[2].call_id", put("input.2.call_id", "c" * 65)),
        case("illegal name in a call", "input[1].name", put("input.1.name", "no such tool!")),
        case("illegal name of a tool", "tools[0].name", put("tools.0.name", "no good")),
        case("arguments as an object", "input[1].arguments", put("input.1.arguments", {"path": "a"})),
        case("output as an object", "input[2].output", put("input.2.output", {"text": "x"})),
        case("tools of no shape", "'tools': expected an array", put("tools", {"read": {}})),
        case("id of another kind", "begins with 'fc'", put("input.1.id", "call_1")),
        case(
            "tool as chat has it", "tools[0].name", put("tools.0", {"type": "function", "function": {"name": "read"}})
        ),
        case("parameters of no object", "parameters", put("tools.0.parameters", "none")),
        case("unknown tool_choice", "Invalid value: 'maybe'", put("tool_choice", "maybe")),
        case(
            "tool_choice as chat has it",
            "not found in 'tools'",
            put("tool_choice", {"type": "function", "function": {"name": "read"}}),
        ),
        case(
            "tool_choice without tools", "must be specified with 'tools'", cut("tools"), put("tool_choice", "required")
        ),
        case("unknown predecessor", "Previous response with id", put("previous_response_id", "resp_1")),
        case("unknown cache mode", "prompt_cache_options", put("prompt_cache_options", {"mode": "psychic"})),
    ],
)
def test_responses_refuses_a_broken_request_and_takes_the_fair_one(
    lab: VendorLab, words: str, broken: Change, fair: tuple[Change, ...]
) -> None:
    assert asks(lab, "openai-responses", *fair).status_code == 200
    status, _, message = told(asks(lab, "openai-responses", *fair, broken))
    assert status == 400
    assert words in message


@pytest.fixture
def thinking() -> Iterator[VendorLab]:
    turn = Turn(thinking="hm", calls=(Call("read", {"path": "a.log"}),))
    with VendorLab(Script([turn, Turn(text="yes"), Turn(text="yes")])) as running:
        yield running


def test_reasoning_is_replayed_before_its_call(thinking: VendorLab) -> None:
    assert asks(thinking, "openai-responses", with_reasoning(thinking)).status_code == 200


def test_reasoning_without_what_it_led_to_is_refused(thinking: VendorLab) -> None:
    reasoned = with_reasoning(thinking)
    alone: list[Change] = [reasoned, cut("input.3"), cut("input.2")]
    status, _, message = told(asks(thinking, "openai-responses", *alone))
    assert status == 400
    assert "without its required following item" in message
    followed = add("input", {"role": "user", "content": "well?"})
    assert told(asks(thinking, "openai-responses", *alone, followed))[0] == 400
    said = add("input", {"role": "assistant", "content": [{"type": "output_text", "text": "so"}]})
    assert asks(thinking, "openai-responses", *alone, said).status_code == 200


def test_a_call_that_reasoning_led_to_is_refused_without_it(thinking: VendorLab) -> None:
    """If it is named by its id."""
    reasoning, call = asks(thinking, "openai-responses").json()["output"]
    both = [put("input.1", {**call, "call_id": "call_1"}), insert("input", 1, reasoning)]
    status, _, message = told(asks(thinking, "openai-responses", both[0]))
    assert status == 400
    assert f"without its required 'reasoning' item: '{reasoning['id']}'" in message
    assert asks(thinking, "openai-responses", *both).status_code == 200
    assert asks(thinking, "openai-responses", both[0], cut("input.1.id")).status_code == 200


def test_reasoning_needs_its_summary_even_if_empty(thinking: VendorLab) -> None:
    response = asks(thinking, "openai-responses", with_reasoning(thinking), cut("input.1.summary"))
    assert "input[1].summary" in told(response)[2]


@pytest.mark.parametrize("sealed", ["Zm9yZ2Vk", "", 5])
def test_tampered_reasoning_is_invalid_encrypted_content(thinking: VendorLab, sealed: Any) -> None:
    """Drop the reasoning items and try once more."""
    reasoned = with_reasoning(thinking)
    status, code, _ = told(asks(thinking, "openai-responses", reasoned, put("input.1.encrypted_content", sealed)))
    assert (status, code) == (400, "invalid_encrypted_content")
    assert asks(thinking, "openai-responses", reasoned, cut("input.1")).status_code == 200


def test_reasoning_under_another_id_is_invalid_encrypted_content(thinking: VendorLab) -> None:
    reasoned = with_reasoning(thinking)
    response = asks(thinking, "openai-responses", reasoned, put("input.1.id", "rs_other"))
    assert told(response)[1] == "invalid_encrypted_content"


def test_an_id_alone_is_found_only_if_it_was_stored(thinking: VendorLab) -> None:
    reasoned = with_reasoning(thinking)
    status, _, message = told(asks(thinking, "openai-responses", reasoned, cut("input.1.encrypted_content")))
    assert status == 404
    assert "Items are not persisted when `store` is set to false" in message
    reference = insert("input", 1, {"type": "item_reference", "id": "rs_nothing"})
    assert told(asks(thinking, "openai-responses", reference, put("store", True)))[0] == 404


def test_a_stored_item_may_be_named_by_its_id() -> None:
    turns = [Turn(thinking="hm", calls=(Call("read", {"path": "a"}),)), Turn(text="yes")]
    with VendorLab(Script(turns)) as lab:
        item = asks(lab, "openai-responses", put("store", True)).json()["output"][0]
        reference = insert("input", 1, {"type": "item_reference", "id": item["id"]})
        assert asks(lab, "openai-responses", reference).status_code == 200


@pytest.mark.parametrize(
    ("surface", "change"),
    [
        ("openai-chat", put("messages.1.content", "x" * 2000)),
        ("openai-responses", put("input.0.content.0.text", "x" * 2000)),
    ],
)
def test_a_prompt_beyond_the_window_has_its_code(surface: SurfaceName, change: Change) -> None:
    """An overflow is recognised by this code."""
    with VendorLab(Script([Turn(text="yes")]), conduct=Conduct(window_tokens=300)) as lab:
        assert asks(lab, surface).status_code == 200
        assert told(asks(lab, surface, change))[:2] == (400, "context_length_exceeded")

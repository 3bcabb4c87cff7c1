"""Every refusal of the Anthropic surface: the fair request passes, the broken one is told why."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.standins.vendors.samples import Change, add, cut, put, sample
from tests.standins.vendors.script import Script, Turn
from tests.standins.vendors.server import VendorLab

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)

Headers = dict[str, str]
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
CALL = {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
SYSTEM = {"role": "system", "content": "Ten calls are left."}
TEXT = {"type": "text", "text": "more"}
OLD = put("model", "claude-sonnet-4-6")
CLEAR = {"anthropic-beta": "mid-conversation-system-clear-at-2026-08-21"}
BINDING = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}


def asks(lab: VendorLab, *changes: Change, headers: Headers | None = None) -> httpx2.Response:
    chosen = sample("anthropic")
    for change in changes:
        change(chosen.body)
    return send(lab.url + chosen.path, headers=chosen.headers | (headers or {}), json=chosen.body)


def told(response: httpx2.Response) -> tuple[int, str, str]:
    error = response.json().get("error", {})
    return response.status_code, error.get("type", ""), error.get("message", "")


@pytest.fixture
def lab() -> Iterator[VendorLab]:
    with VendorLab(Script([Turn(text="yes")] * 5)) as running:
        yield running


def case(name: str, words: str, broken: Change, *fair: Change, headers: Headers | None = None) -> Any:
    return pytest.param(words, broken, fair, headers or {}, id=name)


def marked(count: int) -> Change:
    """A conversation with so many cache markers."""
    blocks = [{"type": "text", "text": f"part {number}", "cache_control": MARK} for number in range(count)]
    return put("messages.0.content", blocks)


def split_answers(body: dict[str, Any]) -> None:
    body["messages"][1]["content"].append(CALL)
    body["messages"].append({"role": "user", "content": [{**RESULT, "tool_use_id": "toolu_2"}]})


@pytest.mark.parametrize(
    ("words", "broken", "fair", "headers"),
    [
        case("max_tokens is required", "max_tokens: Field required", cut("max_tokens")),
        case("max_tokens is a number", "max_tokens: Input", put("max_tokens", "many")),
        case("max_tokens 0 does not stream", "0 cannot be combined", put("stream", True), put("max_tokens", 0)),
        case("no message", "at least one message", put("messages", [])),
        case("first message is the user's", 'first message must use the "user" role', cut("messages.0")),
        case("a role nobody knows", "role: Input should be", put("messages.0.role", "narrator")),
        case(
            "no prefill",
            "does not support assistant message prefill",
            add("messages", {"role": "assistant", "content": "So"}),
        ),
        case("unknown key", "top_sekret: Extra inputs", put("top_sekret", 1)),
        case("unknown key in a message", "messages.0.name: Extra inputs", put("messages.0.name", "Jo")),
        case("unknown key in a block", "text.mood: Extra inputs", put("messages.0.content.0.mood", "sad")),
        case("unknown block", "Input tag 'poem'", put("messages.0.content.0.type", "poem")),
        case("empty message", "non-empty content", put("messages.0.content", [])),
        case("content of no shape", "valid string or list", put("messages.0.content", 5)),
        case("empty text", "text content blocks must be non-empty", put("messages.0.content.0.text", " ")),
        case("text block without text", "text.text: Field required", cut("messages.0.content.0.text")),
        case("system of no shape", "system: Input should be", put("system", 5)),
        case("tools of no shape", "tools: Input should be a valid list", put("tools", {"read": {}})),
        case("result of no shape", "tool_result.content: Input", put("messages.2.content.0.content", 5)),
        case(
            "marker on empty text",
            "cache_control cannot be set for empty text blocks",
            put("messages.0.content.0", {"type": "text", "text": "", "cache_control": MARK}),
        ),
        case("empty text in system", "system.0: text content blocks", put("system.0.text", "")),
        case("system holds text only", "only text blocks", put("system.0", {"type": "image"})),
        case("call without an answer", "`tool_use` ids were found without `tool_result`", cut("messages.2.content.0")),
        case("call without an answer at the end", "ids were found without `tool_result`", cut("messages.2")),
        case("one of two calls without an answer", "immediately after: toolu_2", add("messages.1.content", CALL)),
        case(
            "answer one message late",
            "immediately after: toolu_1",
            lambda body: body["messages"].insert(2, {"role": "user", "content": "wait"}),
        ),
        case(
            "answer split over two messages",
            "immediately after: toolu_2",
            split_answers,
        ),
        case("answer twice", "single result", lambda body: body["messages"][2]["content"].insert(1, RESULT)),
        case(
            "answer without a call",
            "unexpected `tool_use_id`",
            lambda body: body["messages"][2]["content"].insert(0, {**RESULT, "tool_use_id": "toolu_9"}),
        ),
        case("answer first of all", "unexpected `tool_use_id`", put("messages.0.content.0", RESULT)),
        case("answer after text", "must come first", lambda body: body["messages"][2]["content"].reverse()),
        case(
            "same id twice",
            "ids must be unique",
            add(
                "messages",
                *[{"role": "assistant", "content": [{**CALL, "id": "toolu_1"}]}, {"role": "user", "content": [RESULT]}],
            ),
        ),
        case("history with calls but no tools", "must define tools", cut("tools")),
        case("history with calls but empty tools", "must define tools", put("tools", [])),
        case("call whose name no tool can have", "should match pattern", put("messages.1.content.1.name", "a b")),
        case("input is not an object", "valid dictionary", put("messages.1.content.1.input", '{"path": "a"}')),
        case("call without id", "tool_use.id: Field required", cut("messages.1.content.1.id")),
        case("result without id", "tool_use_id: Field required", cut("messages.2.content.0.tool_use_id")),
        case(
            "result with a strange part", "Input tag 'video'", put("messages.2.content.0.content", [{"type": "video"}])
        ),
        case(
            "result with empty text",
            "must be non-empty",
            put("messages.2.content.0.content", [{"type": "text", "text": ""}]),
        ),
        case(
            "thinking without signature",
            "`signature` are required",
            lambda body: body["messages"][1]["content"].insert(0, {"type": "thinking", "thinking": "hm"}),
        ),
        case("tool without name", "tools.0.name: Field required", cut("tools.0.name")),
        case(
            "tool with a bad name",
            "String should match pattern",
            put("tools.0.name", "read it"),
            put("messages.1.content.1.name", "read"),
        ),
        case("tool without schema", "input_schema: Field required", cut("tools.0.input_schema")),
        case("schema of no object", "input_schema.type", put("tools.0.input_schema.type", "array")),
        case("tool with a strange key", "custom.colour: Extra inputs", put("tools.0.colour", "red")),
        case("two tools of one name", "unique", lambda body: body["tools"].append(body["tools"][0])),
        case("unknown tool_choice", "does not match any of the expected tags", put("tool_choice", {"type": "maybe"})),
        case("tool_choice as a word", "valid dictionary", put("tool_choice", "auto")),
        case(
            "parallel switch on none",
            "disable_parallel_tool_use: Extra",
            put("tool_choice", {"type": "none", "disable_parallel_tool_use": True}),
        ),
        case(
            "tool_choice without tools",
            "while providing `tools`",
            cut("tools"),
            put("tool_choice", {"type": "auto"}),
            put("messages", [{"role": "user", "content": "x"}]),
        ),
        case(
            "tool_choice names no tool",
            "not found in provided tools",
            put("tool_choice", {"type": "tool", "name": "write"}),
            OLD,
        ),
        case("unknown effort", "output_config.effort", put("output_config", {"effort": "heroic"})),
        case("unknown output_config", "output_config.tone: Extra", put("output_config", {"tone": "kind"})),
        case("unknown thinking", "expected tags", put("thinking", {"type": "deep"})),
        case("budget too small", "at least 1024", put("thinking", {"type": "enabled", "budget_tokens": 10}), OLD),
        case(
            "binding needs its beta",
            "block_binding: Extra inputs",
            put("thinking", {"type": "adaptive", "block_binding": {}}),
        ),
        case(
            "binding needs adaptive",
            "between_tools.block_binding: Extra",
            put("thinking", {"type": "between_tools", "block_binding": {}}),
            headers=BINDING,
        ),
        case(
            "binding of an unknown kind",
            "prefix_mismatch_behavior",
            put("thinking", {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "shrug"}}),
            headers=BINDING,
        ),
        case("context management needs its beta", "context_management: Extra", put("context_management", {})),
        case(
            "document in an assistant message",
            "`document` blocks",
            lambda body: body["messages"][1]["content"].insert(0, {"type": "document"}),
        ),
        case("citations on the user's text", "citations: not allowed", put("messages.0.content.0.citations", [])),
        case("five cache markers", "maximum of 4 blocks", marked(5), marked(4)),
        case("four markers and the automatic one", "maximum of 4 blocks", put("cache_control", MARK), marked(4)),
        case("marker of an unknown kind", "'ephemeral'", put("system.0.cache_control", {"type": "eternal"})),
        case("marker with an unknown lifetime", "'5m' or '1h'", put("system.0.cache_control", {**MARK, "ttl": "2h"})),
        case(
            "marker with an unknown key",
            "cache_control.scope: Extra",
            put("system.0.cache_control", {**MARK, "scope": "org"}),
        ),
        case(
            "longer lifetime after shorter",
            "must not come after",
            put("messages.0.content.0.cache_control", HOUR),
            put("system.0.cache_control", MARK),
        ),
        case(
            "longer automatic lifetime after shorter",
            "must not come after",
            put("cache_control", HOUR),
            put("system.0.cache_control", MARK),
        ),
        case(
            "automatic lifetime against the explicit one",
            "conflicts",
            put("cache_control", HOUR),
            put("messages.2.content.1.cache_control", MARK),
        ),
        case(
            "marker on a deferred tool",
            "`defer_loading`",
            put("tools.0.cache_control", MARK),
            put("tools.0.defer_loading", True),
        ),
        case("system entry on an older model", "role 'system' is not supported", add("messages", SYSTEM), OLD),
        case(
            "system entry first",
            'first message must use the "user" role',
            lambda body: body["messages"].insert(0, SYSTEM),
        ),
        case(
            "system entry after the assistant",
            "must follow a user message",
            lambda body: body["messages"].insert(2, SYSTEM),
        ),
        case(
            "system entry before the user",
            "must be last or be followed",
            lambda body: body["messages"].extend([SYSTEM, {"role": "user", "content": "x"}]),
        ),
        case(
            "two system entries", "must be last or be followed", lambda body: body["messages"].extend([SYSTEM, SYSTEM])
        ),
        case(
            "system entry with a picture",
            "Input tag 'image'",
            add("messages", {"role": "system", "content": [{"type": "image"}]}),
        ),
        case(
            "clear_at needs its beta",
            "clear_at: Extra inputs",
            add("messages", {**SYSTEM, "clear_at": "next_user_message"}),
        ),
        case(
            "clear_at on a user message", "clear_at: Extra inputs", put("messages.0.clear_at", "never"), headers=CLEAR
        ),
        case(
            "clear_at of an unknown kind",
            "clear_at: Input",
            add("messages", {**SYSTEM, "clear_at": "noon"}),
            headers=CLEAR,
        ),
        case(
            "marker on a clear_at entry",
            "not allowed with clear_at",
            add(
                "messages",
                {"role": "system", "clear_at": "next_user_message", "content": [{**TEXT, "cache_control": MARK}]},
            ),
            headers=CLEAR,
        ),
    ],
)
def test_a_broken_request_is_refused_and_the_fair_one_is_not(
    lab: VendorLab, words: str, broken: Change, fair: tuple[Change, ...], headers: Headers
) -> None:
    assert asks(lab, *fair, headers=headers).status_code == 200
    status, kind, message = told(asks(lab, *fair, broken, headers=headers))
    assert (status, kind) == (400, "invalid_request_error")
    assert words in message

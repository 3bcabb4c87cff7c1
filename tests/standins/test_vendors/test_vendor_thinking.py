"""Thinking is bound to its conversation: what the API does when the conversation before it changed."""

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.standins.vendors.samples import sample
from tests.standins.vendors.script import Call, Part, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)

BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
Body = dict[str, Any]


def script() -> Script:
    calls = (Call("read", {"path": "a"}, id="toolu_t"),)
    return Script([Turn(thinking="hm, the log", calls=calls), Turn(text="yes"), Turn(text="yes again")])


def post(lab: VendorLab, body: Body, headers: dict[str, str] | None = None) -> httpx2.Response:
    chosen = sample("anthropic")
    return send(lab.url + chosen.path, headers=chosen.headers | (headers or {}), json=body)


def begun(lab: VendorLab, model: str = "claude-opus-5-5") -> Body:
    """A conversation whose last assistant turn holds a signed thought."""
    body = sample("anthropic").body | {"model": model}
    content = post(lab, body).json()["content"]
    assert content[0]["type"] == "thinking"
    result = {"type": "tool_result", "tool_use_id": "toolu_t", "content": "full"}
    body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    return body


def edit_system(body: Body) -> None:
    body["system"][0]["text"] += " Warning: budget is low."


def edit_tools(body: Body) -> None:
    body["tools"][0]["description"] = "Reads."


def edit_message(body: Body) -> None:
    body["messages"][0]["content"][0]["text"] = "Why, oh why?"


def drop_message(body: Body) -> None:
    del body["messages"][2]["content"][1]


def prepend_message(body: Body) -> None:
    body["messages"].insert(0, {"role": "user", "content": "By the way."})


EDITS = [edit_system, edit_tools, edit_message, drop_message, prepend_message]


def test_an_unchanged_conversation_keeps_its_thinking() -> None:
    with VendorLab(script()) as lab:
        assert post(lab, begun(lab)).status_code == 200


def test_cache_markers_and_what_comes_later_do_not_matter() -> None:
    """cache_control never enters stored history; notices are appended."""
    with VendorLab(script()) as lab:
        body = begun(lab)
        body["system"][0]["cache_control"] = {"type": "ephemeral"}
        body["messages"][2]["content"][1]["cache_control"] = {"type": "ephemeral"}
        body["messages"][-1]["content"].append({"type": "text", "text": "Ten calls are left."})
        body["tool_choice"] = {"type": "none"}
        assert post(lab, body).status_code == 200


def test_a_string_and_its_one_text_block_are_the_same_message() -> None:
    with VendorLab(script()) as lab:
        body = begun(lab)
        body["messages"][0]["content"] = body["messages"][0]["content"][0]["text"]
        body["system"] = body["system"][0]["text"]
        assert post(lab, body).status_code == 200


@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_prefix_is_a_400(edit: Callable[[Body], None]) -> None:
    with VendorLab(script()) as lab:
        body = begun(lab)
        edit(body)
        response = post(lab, body)
    assert response.status_code == 400
    assert "The block is bound to a different conversation" in response.json()["error"]["message"]


@pytest.mark.parametrize("edit", EDITS)
def test_an_older_account_loses_the_block_without_a_word(edit: Callable[[Body], None]) -> None:
    with VendorLab(script(), conduct=Conduct(binding="drop")) as lab:
        body = begun(lab)
        kept = post(lab, body).json()["usage"]["input_tokens"]
        edit(body)
        answer = post(lab, body).json()
    assert answer["type"] == "message"
    assert "input_transformations" not in answer
    assert answer["usage"]["input_tokens"] < kept


def test_drop_block_takes_the_block_out_and_reports_it() -> None:
    with VendorLab(script()) as lab:
        body = begun(lab) | {"thinking": DROP}
        edit_message(body)
        answer = post(lab, body, BETA).json()
    assert answer["input_transformations"] == [
        {"type": "thinking_dropped", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}
    ]


def test_an_older_account_gets_the_error_when_it_asks_for_it() -> None:
    with VendorLab(script(), conduct=Conduct(binding="drop")) as lab:
        binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}
        body = begun(lab) | {"thinking": binding}
        edit_message(body)
        assert post(lab, body, BETA).status_code == 400


def test_replaying_without_the_thinking_heals_the_conversation() -> None:
    """Such a 400 is answered once by replaying without thinking."""
    with VendorLab(script()) as lab:
        body = begun(lab)
        edit_message(body)
        del body["messages"][3]["content"][0]
        assert post(lab, body).status_code == 200


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-5", "claude-fable-5"])
def test_models_without_binding_take_a_changed_prefix(model: str) -> None:
    with VendorLab(script()) as lab:
        body = begun(lab, model)
        edit_message(body)
        assert post(lab, body).status_code == 200


def test_thinking_of_another_model_is_dropped_silently() -> None:
    """A change of model opens a new wire epoch."""
    with VendorLab(script()) as lab:
        body = begun(lab)
        kept = post(lab, body).json()["usage"]["input_tokens"]
        answer = post(lab, body | {"model": "claude-fable-5-1"}).json()
    assert answer["type"] == "message"
    assert answer["usage"]["input_tokens"] < kept


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-opus-5"])
@pytest.mark.parametrize("field", ["thinking", "signature"])
def test_edited_thinking_is_a_400_on_every_model(model: str, field: str) -> None:
    with VendorLab(script()) as lab:
        body = begun(lab, model)
        forged = base64.b64encode(b"\x00" * 64).decode()
        body["messages"][3]["content"][0][field] = forged
        response = post(lab, body)
    assert response.status_code == 400
    assert "Invalid `signature`" in response.json()["error"]["message"]


def test_thinking_cannot_carry_a_cache_marker() -> None:
    """Breakpoints never stand on thinking blocks."""
    with VendorLab(script()) as lab:
        body = begun(lab)
        body["messages"][3]["content"][0]["cache_control"] = {"type": "ephemeral"}
        response = post(lab, body)
    assert response.status_code == 400
    assert "thinking.cache_control" in response.json()["error"]["message"]


def test_a_popped_notice_breaks_the_thinking_that_saw_it() -> None:
    """What was shown stays, because the answer is bound to it."""
    turns = [Turn(thinking="one", text="a"), Turn(thinking="two", text="b"), Turn(text="c")]
    with VendorLab(Script(turns)) as lab:
        body: Body = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": "go"}]}
        body["messages"] += [{"role": "assistant", "content": post(lab, body).json()["content"]}]
        body["messages"] += [{"role": "user", "content": "on"}, {"role": "system", "content": "Hurry up."}]
        content = post(lab, body).json()["content"]
        kept = [*body["messages"], {"role": "assistant", "content": content}, {"role": "user", "content": "and?"}]
        popped = [message for message in kept if message["role"] != "system"]
        assert post(lab, body | {"messages": popped}).status_code == 400
        assert post(lab, body | {"messages": kept}).status_code == 200


@pytest.mark.parametrize(
    ("model", "display", "shown"),
    [
        ("claude-opus-5-5", None, ""),
        ("claude-opus-5", None, ""),
        ("claude-sonnet-5-5", None, ""),
        ("claude-opus-5-5", "summarized", "hm, the log"),
        ("claude-fable-5-1", None, "hm, the log"),
        ("claude-fable-5-1", "omitted", ""),
    ],
)
def test_thinking_is_shown_as_the_model_and_the_request_have_it(model: str, display: str | None, shown: str) -> None:
    """Prose between calls may hide in empty thinking."""
    with VendorLab(script()) as lab:
        thinking = {"thinking": {"type": "adaptive", "display": display}} if display else {}
        content = post(lab, sample("anthropic").body | {"model": model} | thinking).json()["content"]
    assert content[0] == {"type": "thinking", "thinking": shown, "signature": content[0]["signature"]}


@pytest.mark.parametrize(
    ("model", "thinking", "thinks"),
    [
        ("claude-sonnet-4-6", None, False),
        ("claude-sonnet-4-6", {"type": "adaptive"}, True),
        ("claude-haiku-5-5", None, True),
        ("claude-haiku-5-5", {"type": "disabled"}, False),
    ],
)
def test_thoughts_come_only_where_thinking_is_on(model: str, thinking: Any, thinks: bool) -> None:
    with VendorLab(script()) as lab:
        body = sample("anthropic").body | {"model": model} | ({"thinking": thinking} if thinking else {})
        answer = post(lab, body).json()
    assert (answer["content"][0]["type"] == "thinking") == thinks
    assert (answer["usage"]["output_tokens_details"]["thinking_tokens"] > 0) == thinks


MIXED = (
    Part("text", "\n\n"),
    Part("thinking", "first"),
    Part("text", " "),
    Part("redacted_thinking", "secret"),
    Part("text", "I look."),
    Part("thinking", "second"),
)


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_comes_in_several_blocks_between_others(stream: bool) -> None:
    with VendorLab(Script([Turn(parts=MIXED)])) as lab:
        body = sample("anthropic").body | {"stream": stream, "thinking": {"type": "adaptive", "display": "summarized"}}
        response = post(lab, body)
    if stream:
        assert response.text.count('"content_block_start", "index"') == len(MIXED)
    else:
        kinds = [(block["type"], block.get("text") or block.get("thinking")) for block in response.json()["content"]]
        assert kinds == [(part.kind, None if part.kind == "redacted_thinking" else part.text) for part in MIXED]


@pytest.mark.parametrize(("taken", "status"), [((), 200), ((0,), 400), ((2,), 400), ((4,), 400), ((5,), 200)])
def test_a_block_before_thinking_cannot_be_taken_away(taken: tuple[int, ...], status: int) -> None:
    """Signed content is replayed verbatim, white space too."""
    calls = (Call("read", {"path": "a"}, id="toolu_t"),)
    with VendorLab(Script([Turn(parts=MIXED, calls=calls), Turn(text="yes")])) as lab:
        body = sample("anthropic").body
        content = post(lab, body).json()["content"]
        left = [block for at, block in enumerate(content) if at not in taken]
        result = {"type": "tool_result", "tool_use_id": "toolu_t", "content": "full"}
        body["messages"] += [{"role": "assistant", "content": left}, {"role": "user", "content": [result]}]
        assert post(lab, body).status_code == status


def test_white_space_that_no_thinking_follows_is_refused() -> None:
    with VendorLab(Script([Turn(text="yes")])) as lab:
        body = sample("anthropic").body
        body["messages"][1]["content"][0]["text"] = "\n"
        refused = post(lab, body)
    assert refused.status_code == 400
    assert "text content blocks must be non-empty" in refused.text

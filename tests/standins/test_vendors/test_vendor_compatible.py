"""Somebody else's chat server, with the habits that adapters meet in the field."""

from functools import partial
from typing import Any

import httpx2
import pytest

from tests.standins.vendors.samples import Change, add, put, sample
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct, Quirk

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)

TURN = Turn(text="", thinking="hm", calls=(Call("read", {"path": "a"}), Call("read", {})))


def asks(
    *changes: Change, quirks: set[Quirk], turn: Turn = TURN, window: int | None = None, path: str = ""
) -> httpx2.Response:
    chosen = sample("openai-chat")
    for change in (put("model", "local-llama"), *changes):
        change(chosen.body)
    conduct = Conduct(openai="compatible", quirks=frozenset(quirks), window_tokens=window)
    with VendorLab(Script([turn]), conduct=conduct) as lab:
        return send(lab.url + chosen.path, headers=chosen.headers, json=chosen.body)


def choice(response: httpx2.Response) -> Any:
    return response.json()["choices"][0]


def test_a_plain_compatible_server_takes_any_model_and_max_tokens() -> None:
    response = asks(put("max_tokens", 100), quirks=set())
    assert response.status_code == 200
    assert set(response.json()["usage"]) == {"prompt_tokens", "completion_tokens", "total_tokens"}


@pytest.mark.parametrize(("quirk", "finish"), [("null_finish_reason", None), ("empty_finish_reason", "")])
def test_the_finish_reason_may_be_missing(quirk: Quirk, finish: str | None) -> None:
    assert choice(asks(quirks={quirk}))["finish_reason"] == finish
    assert choice(asks(quirks=set()))["finish_reason"] == "tool_calls"


def test_call_ids_may_be_missing_or_repeated() -> None:
    missing = choice(asks(quirks={"missing_call_ids"}))["message"]["tool_calls"]
    repeated = choice(asks(quirks={"duplicate_call_ids"}))["message"]["tool_calls"]
    assert all("id" not in call for call in missing)
    assert len({call["id"] for call in repeated}) == 1


def test_arguments_may_be_an_object_or_empty() -> None:
    objects = choice(asks(quirks={"object_arguments"}))["message"]["tool_calls"]
    empty = choice(asks(quirks={"empty_arguments"}))["message"]["tool_calls"]
    assert objects[0]["function"]["arguments"] == {"path": "a"}
    assert [call["function"]["arguments"] for call in empty] == ['{"path": "a"}', ""]


@pytest.mark.parametrize("stream", [False, True])
def test_arguments_as_an_object_come_through_a_stream_too(stream: bool) -> None:
    text = asks(put("stream", stream), quirks={"object_arguments"}).text
    assert '"arguments": {"path": "a"}' in text


def test_a_body_may_be_plain_text() -> None:
    response = asks(quirks={"plain_text_body"}, turn=Turn(text="model is loading"))
    assert (response.status_code, response.text) == (200, "model is loading")


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_may_arrive_inside_a_200(stream: bool) -> None:
    response = asks(put("stream", stream), quirks={"error_in_200"}, turn=Turn(text="no provider"))
    assert response.status_code == 200
    assert '"code": 502' in response.text


@pytest.mark.parametrize(
    ("quirk", "key"), [("detail_errors", "detail"), ("object_errors", "message"), ("no_usage", "error")]
)
def test_errors_have_many_shapes(quirk: Quirk, key: str) -> None:
    response = asks(put("messages", []), quirks={quirk})
    assert response.status_code == 400
    assert key in response.json()


@pytest.mark.parametrize("role", ["system", "developer"])
def test_only_one_leading_system_message_is_taken(role: str) -> None:
    more = add("messages", {"role": role, "content": "Ten calls are left."})
    assert asks(more, quirks=set()).status_code == 200
    refused = asks(more, quirks={"one_system_message"})
    assert refused.status_code == 400
    assert "System message must be at the beginning" in refused.text


def test_only_the_minimal_keys_are_taken() -> None:
    more = put("prompt_cache_key", "session")
    assert asks(more, quirks=set()).status_code == 200
    assert asks(more, quirks={"minimal_keys"}).status_code == 400
    assert asks(put("max_tokens", 5), quirks={"minimal_keys"}).status_code == 200
    counted = [put("stream", True), put("stream_options", {"include_usage": True})]
    assert asks(counted[0], quirks={"minimal_keys"}).status_code == 200
    assert asks(*counted, quirks=set()).status_code == 200
    assert asks(*counted, quirks={"minimal_keys"}).status_code == 400


def test_ids_may_have_to_be_nine_letters_and_digits() -> None:
    named = [put("messages.2.tool_calls.0.id", "abcDEF123"), put("messages.3.tool_call_id", "abcDEF123")]
    assert asks(*named, quirks={"strict_ids"}).status_code == 200
    assert asks(quirks={"strict_ids"}).status_code == 400
    own = choice(asks(*named, quirks={"strict_ids"}))["message"]["tool_calls"]
    assert all(len(call["id"]) == 9 and call["id"].isalnum() for call in own)


@pytest.mark.parametrize("arguments", ["{broken", "[1]", "", "5"])
def test_the_arguments_of_old_calls_may_be_parsed(arguments: str) -> None:
    written = put("messages.2.tool_calls.0.function.arguments", arguments)
    assert asks(quirks={"parses_arguments"}).status_code == 200
    assert asks(written, quirks=set()).status_code == 200
    assert asks(written, quirks={"parses_arguments"}).status_code == 400


@pytest.mark.parametrize("stream", [False, True])
def test_content_may_come_in_parts(stream: bool) -> None:
    said = asks(put("stream", stream), quirks={"content_parts"}, turn=Turn(text="so")).text
    assert '"content":[{"type":"text","text":"so"}]' in said.replace('": ', '":').replace(", ", ",")


def test_reasoning_may_have_to_be_echoed_beside_calls() -> None:
    assert asks(quirks=set()).status_code == 200
    assert asks(quirks={"echo_reasoning"}).status_code == 400
    echoed = put("messages.2.reasoning_content", "hm")
    assert asks(echoed, quirks={"echo_reasoning"}).status_code == 200


def test_only_max_tokens_may_be_known() -> None:
    assert asks(quirks=set()).status_code == 200
    assert asks(quirks={"max_tokens_only"}).status_code == 400
    renamed: list[Change] = [put("max_tokens", 5), put("max_completion_tokens", None)]
    assert asks(*renamed, quirks={"max_tokens_only"}).status_code == 200


def test_fields_may_be_null_or_absent() -> None:
    body = asks(quirks={"no_usage", "null_created", "empty_choices"}).json()
    assert "usage" not in body
    assert body["created"] is None
    assert body["choices"] == []
    assert choice(asks(quirks={"empty_content"}))["message"]["content"] == ""
    assert choice(asks(quirks=set()))["message"]["content"] is None


@pytest.mark.parametrize("quirk", ["reasoning", "reasoning_content"])
def test_thinking_has_two_names(quirk: Quirk) -> None:
    assert choice(asks(quirks={quirk}))["message"][quirk] == "hm"
    assert f'"{quirk}": "hm"' in asks(put("stream", True), quirks={quirk}).text
    assert quirk not in asks(quirks=set()).text


def test_an_overflow_is_told_by_text_alone_or_not_at_all() -> None:
    """Maximum context length, or a prompt that stops growing."""
    long = put("messages.1.content", "x" * 2000)
    refused = asks(long, quirks={"object_errors"}, window=300)
    assert "maximum context length is 300 tokens" in refused.json()["message"]
    cut_short = asks(long, quirks={"front_cut"}, window=300)
    assert cut_short.json()["usage"]["prompt_tokens"] == 300


def test_quirks_do_not_touch_openai_itself() -> None:
    chosen = sample("openai-chat")
    with VendorLab(Script([TURN]), conduct=Conduct(quirks=frozenset({"null_finish_reason"}))) as lab:
        response = send(lab.url + chosen.path, headers=chosen.headers, json=chosen.body)
    assert choice(response)["finish_reason"] == "tool_calls"

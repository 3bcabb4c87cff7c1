"""What Anthropic refuses depends on model, version, memory and place: each dependence by itself."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.standins.vendors.samples import Change, add, cut, put, sample
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)

Headers = dict[str, str]
MARK = {"type": "ephemeral"}
SYSTEM = {"role": "system", "content": "Ten calls are left."}
OLDER_VERSION = {"anthropic-version": "2023-06-01"}
FORCED = {"type": "tool", "name": "read"}


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


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_sampling_is_refused_by_the_current_version_only(lab: VendorLab, name: str) -> None:
    assert asks(lab, put(name, 1), headers=OLDER_VERSION).status_code == 200
    assert told(asks(lab, put(name, 1)))[2].startswith(f"{name}: not supported")


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["messages"][1]["content"].insert(0, {"type": "document"}),
        put("messages.0.content.0.citations", []),
    ],
)
def test_what_the_current_version_forbids_the_older_one_takes(lab: VendorLab, change: Change) -> None:
    assert asks(lab, change, headers=OLDER_VERSION).status_code == 200
    assert asks(lab, change).status_code == 400


@pytest.mark.parametrize("version", ["", "1999-01-01"])
def test_the_version_header_is_needed(lab: VendorLab, version: str) -> None:
    assert told(asks(lab, headers={"anthropic-version": version}))[:2] == (400, "invalid_request_error")


@pytest.mark.parametrize(
    ("model", "refused"),
    [
        ("claude-opus-5-5", True),
        ("claude-sonnet-5-5", True),
        ("claude-fable-5-1", True),
        ("claude-mythos-5-2", True),
        ("claude-haiku-5-5", False),
        ("claude-fable-5", False),
        ("claude-opus-5", False),
        ("claude-sonnet-4-6", False),
    ],
)
@pytest.mark.parametrize("choice", [FORCED, {"type": "any"}])
def test_a_forced_tool_is_refused_by_the_models_that_do(
    lab: VendorLab, model: str, refused: bool, choice: dict[str, str]
) -> None:
    assert asks(lab, put("model", model), put("tool_choice", {"type": "none"})).status_code == 200
    response = asks(lab, put("model", model), put("tool_choice", choice))
    assert (response.status_code == 400) == refused


@pytest.mark.parametrize(
    ("model", "disabled", "enabled"),
    [
        ("claude-opus-5-5", 400, 400),
        ("claude-sonnet-5-5", 400, 400),
        ("claude-fable-5", 400, 400),
        ("claude-mythos-5-1", 400, 400),
        ("claude-haiku-5-5", 200, 400),
        ("claude-opus-5", 200, 400),
        ("claude-sonnet-5", 200, 400),
        ("claude-opus-4-8", 200, 400),
        ("claude-opus-4-7", 200, 400),
        ("claude-opus-4-6", 200, 200),
        ("claude-sonnet-4-6", 200, 200),
        ("claude-haiku-4-5", 200, 200),
    ],
)
def test_thinking_can_be_switched_where_the_model_allows_it(
    lab: VendorLab, model: str, disabled: int, enabled: int
) -> None:
    budget = {"type": "enabled", "budget_tokens": 1024}
    larger = put("max_tokens", 4000)
    assert asks(lab, put("model", model), put("thinking", {"type": "disabled"})).status_code == disabled
    assert asks(lab, put("model", model), larger, put("thinking", budget)).status_code == enabled


@pytest.mark.parametrize(
    ("model", "status"),
    [
        ("claude-opus-4-7", 400),
        ("claude-haiku-4-5", 400),
        ("claude-opus-4-8", 200),
        ("claude-opus-5", 200),
        ("claude-sonnet-5", 200),
        ("claude-sonnet-5-5", 200),
        ("claude-haiku-5-5", 200),
        ("claude-fable-5", 200),
    ],
)
def test_a_system_entry_is_taken_by_the_models_that_know_it(lab: VendorLab, model: str, status: int) -> None:
    """Notices are system entries where the model takes one."""
    assert asks(lab, put("model", model), add("messages", SYSTEM)).status_code == status


def test_a_system_entry_may_stand_before_the_assistant(lab: VendorLab) -> None:
    more: list[Any] = [SYSTEM, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}]
    assert asks(lab, add("messages", *more)).status_code == 200


def test_an_older_model_takes_a_prefill(lab: VendorLab) -> None:
    prefill = add("messages", {"role": "assistant", "content": "So"})
    assert asks(lab, put("model", "claude-haiku-4-5"), prefill).status_code == 200


def test_only_a_turn_that_was_paused_may_be_resent_without_a_user() -> None:
    script = Script([Turn(text="Still looking.", stop="pause_turn"), Turn(text="Done.")])
    with VendorLab(script) as lab:
        content = asks(lab).json()["content"]
        changed = [{"type": "text", "text": "Not what it said."}]
        assert asks(lab, add("messages", {"role": "assistant", "content": changed})).status_code == 400
        assert asks(lab, add("messages", {"role": "assistant", "content": content})).status_code == 200


def test_consecutive_turns_of_one_role_are_merged(lab: VendorLab) -> None:
    assert asks(lab, add("messages", {"role": "user", "content": "and hurry"})).status_code == 200


def test_a_tool_that_the_model_invented_may_be_replayed() -> None:
    """An unknown tool gets an error result, and the conversation goes on."""
    script = Script([Turn(calls=(Call("teleport", {}, id="toolu_x"),)), Turn(text="ok")])
    with VendorLab(script) as lab:
        content = asks(lab).json()["content"]
        result = {"type": "tool_result", "tool_use_id": "toolu_x", "content": "no such tool", "is_error": True}
        more: list[Any] = [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        assert asks(lab, add("messages", *more)).status_code == 200


def test_a_prompt_beyond_the_window_is_told_its_size() -> None:
    """An overflow is recognised by this text."""
    with VendorLab(Script([Turn(text="yes")]), conduct=Conduct(window_tokens=200)) as lab:
        assert asks(lab).status_code == 200
        status, kind, message = told(asks(lab, put("messages.0.content.0.text", "x" * 900)))
    assert (status, kind) == (400, "invalid_request_error")
    assert message.startswith("prompt is too long: ")
    assert message.endswith("tokens > 200 maximum")


def test_warming_the_cache_takes_no_turn_from_the_script() -> None:
    script = Script([Turn(text="later")])
    with VendorLab(script, conduct=Conduct(cache_minimum=1)) as lab:
        warmed = asks(lab, put("max_tokens", 0), put("cache_control", MARK)).json()
        read = asks(lab, put("cache_control", MARK)).json()["usage"]
    assert (warmed["content"], warmed["stop_reason"]) == ([], "max_tokens")
    assert read["cache_read_input_tokens"] == warmed["usage"]["cache_creation_input_tokens"] > 0
    script.assert_consumed()


def vertex(lab: VendorLab, *changes: Change) -> httpx2.Response:
    chosen = sample("vertex-anthropic")
    for change in changes:
        change(chosen.body)
    return send(lab.url + chosen.path, headers=chosen.headers, json=chosen.body)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (cut("anthropic_version"), "anthropic-version"),
        (put("anthropic_version", "2023-06-01"), "anthropic_version"),
        (put("model", "claude-sonnet-5-5"), "model: Extra inputs"),
        (put("max_tokens", None), "max_tokens"),
    ],
)
def test_vertex_wants_the_version_in_the_body_and_the_model_in_the_path(
    lab: VendorLab, change: Change, words: str
) -> None:
    assert vertex(lab).status_code == 200
    response = vertex(lab, change)
    assert response.status_code == 400
    assert words in told(response)[2]


def test_vertex_takes_automatic_caching_and_betas_in_the_body(lab: VendorLab) -> None:
    betas = put("anthropic_beta", ["mid-conversation-system-clear-at-2026-08-21"])
    entry = add("messages", {**SYSTEM, "clear_at": "next_user_message"})
    assert vertex(lab, put("cache_control", MARK), betas, entry).status_code == 200

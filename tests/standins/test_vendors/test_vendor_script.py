"""Scripts: played once, in order, to the end, or the test that owns them fails."""

import json
import threading
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.standins.vendors.samples import sample
from tests.standins.vendors.script import Call, DepartedError, Fault, Script, Turn, read_script
from tests.standins.vendors.server import VendorLab

# plain HTTP needs no certificates, and loading them takes longer than the rest of a test
send = partial(httpx2.post, verify=False)


def post(lab: VendorLab) -> httpx2.Response:
    chosen = sample("anthropic")
    return send(lab.url + chosen.path, headers=chosen.headers, json=chosen.body)


def test_steps_are_played_in_order() -> None:
    script = Script([Turn(text="one"), Fault("drop")])
    script.extend(Turn(text="three"))
    assert script.remaining == 3
    assert [script.next({}), script.next({}), script.next({})] == [
        Turn(text="one"),
        Fault("drop"),
        Turn(text="three"),
    ]
    script.assert_consumed()


def test_a_step_may_be_computed_from_the_request() -> None:
    script = Script([lambda body: Turn(text=str(body["max_tokens"]))])
    with VendorLab(script) as lab:
        assert post(lab).json()["content"][-1]["text"] == "1000"


def test_what_was_not_played_is_named() -> None:
    script = Script([Turn(text="never said"), Turn(calls=(Call("read"),)), Fault("stall"), lambda body: Turn()])
    with pytest.raises(AssertionError, match=r"4 scripted .*never said.*calling read.*Fault stall.*computed"):
        script.assert_consumed()


def test_a_request_beyond_the_script_is_a_500_that_says_so_and_fails_the_test() -> None:
    """M8 in small: departing from a script is loud."""
    script = Script([Turn(text="only one")])
    with VendorLab(script) as lab:
        post(lab)
        response = post(lab)
    assert response.status_code == 500
    assert "departed from the script" in response.json()["error"]["message"]
    assert response.headers["x-should-retry"] == "false"
    assert lab.requests[-1].refusal
    with pytest.raises(AssertionError, match="request 2 is beyond the script"):
        script.assert_consumed()


def test_an_assertion_inside_a_step_reaches_the_test() -> None:
    def objecting(body: dict[str, Any]) -> Turn:
        raise AssertionError("the prompt lacks the log")

    script = Script([objecting])
    with VendorLab(script) as lab:
        assert post(lab).status_code == 500
    with pytest.raises(AssertionError, match="lacks the log"):
        script.assert_consumed()


def test_a_refused_request_leaves_the_script_untouched() -> None:
    script = Script([Turn(text="still here")])
    chosen = sample("anthropic")
    with VendorLab(script) as lab:
        send(lab.url + chosen.path, headers=chosen.headers, json={**chosen.body, "messages": []})
        assert script.remaining == 1


def test_many_threads_get_each_step_once() -> None:
    script = Script([Turn(text=str(number)) for number in range(200)])
    seen: list[str] = []

    def take() -> None:
        for _ in range(50):
            step = script.next({})
            assert isinstance(step, Turn)
            seen.append(step.text)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen, key=int) == [str(number) for number in range(200)]
    with pytest.raises(DepartedError):
        script.next({})


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    steps = [
        {"text": "hm", "calls": [{"name": "read", "arguments": {"path": "a"}}]},
        {"kind": "truncate", "after": 1, "turn": {"text": "cut"}},
    ]
    path.write_text(json.dumps(steps))
    script = read_script(path)
    assert script.next({}) == Turn(text="hm", calls=(Call("read", {"path": "a"}),))
    assert script.next({}) == Fault("truncate", after=1, turn=Turn(text="cut"))


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1}), ('{"a": ', None), ("[1]", None), ("", None)],
)
def test_arguments_are_an_object_only_if_they_are_one(arguments: Any, wanted: Any) -> None:
    assert Call("x", arguments).arguments_object == wanted

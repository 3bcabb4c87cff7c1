"""docs/examples.md: each of its programs is run as it stands, beside a stand-in of the model's vendor."""

import ast
import asyncio
import inspect
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.docs.reading import ROOT, blocks
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab

BLOCKS = [block for block in blocks(ROOT / "docs" / "examples.md") if block.language == "python"]
CI_BOT = 2
SAID = Turn(text="It was killed.")
SCRIPTS = [
    ([SAID], "It was killed.\n"),
    ([Turn(calls=(Call("read_file", {"path": "Makefile"}),)), Turn(text="pytest.")], "pytest. ['read_file']\n"),
    ([SAID], "It was killed.\n"),
    ([Turn(text='{"job": "test", "flaky": true}')], "test True\n"),
    ([SAID], "It was killed.\n"),
    ([Turn(text="one two three")], "one two three\ncompleted\n"),
    ([], ""),
    (
        [Turn(calls=(Call("close_issue", {"number": 7}),)), Turn(text="Done.")],
        "asked: close_issue {'number': 7}\nDone.\n",
    ),
    ([SAID], "It was killed.\n"),
    ([SAID], ""),
]


def test_there_are_ten() -> None:
    assert len(BLOCKS) == len(SCRIPTS) == 10


@pytest.mark.parametrize("number", range(10))
def test_example_prints_what_its_model_said(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    turns, printed = SCRIPTS[number]
    monkeypatch.chdir(tmp_path)
    with VendorLab(Script(turns)) as lab:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", lab.anthropic_url)
        names: dict[str, object] = {"__name__": "example"}
        program = compile(BLOCKS[number].text, f"example {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with pytest.raises(SystemExit, match="0") if number == CI_BOT else nullcontext():
            running = eval(program, names)
            if inspect.iscoroutine(running):
                asyncio.run(running)
        if "app" in names:
            lab.script.extend(SAID)
            _ask_endpoint(names["app"])
        lab.script.assert_consumed()
    assert capsys.readouterr().out == printed


def _ask_endpoint(app: object) -> None:
    from starlette.testclient import TestClient

    with TestClient(app) as client:  # type: ignore[arg-type]  # it is the example's
        reply = client.post("/ask", json={"question": "Why 137?"})
    assert (reply.status_code, reply.json()) == (200, {"text": "It was killed.", "error": None})

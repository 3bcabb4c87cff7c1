"""Tab in the shell offers cases, workflows, models and sessions: tried with bash and click's own script."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_sessions_commands import Site

PRESS_TAB = """
eval "$(_HUMMINGBIRD_COMPLETE=bash_source hummingbird)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_hummingbird_completion hummingbird
printf '%s\\n' "${COMPREPLY[@]}"
"""
CONFIGURATION = """
workflows:
  explain-red-nightly:
    prompt: prompt.md
    projects: {acme/widgets: {}}
"""


def press_tab(folder: Path, *words: str) -> list[str]:
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "HUMMINGBIRD_HOME": str(folder / "state"),
    }
    pressed = subprocess.run(
        ["bash", "-c", PRESS_TAB, "bash", "hummingbird", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not pressed.stderr
    return pressed.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("lab", "compiler"), "compiler-error"),
        (("eval", "hostile", "compiler"), "compiler-error"),
        (("run", "--workflow", ""), "explain-red-nightly"),
        (("run", "--model", "claude-son"), "claude-sonnet-5-5"),
        (("ser",), "serve"),
    ],
    ids=["case", "second case", "workflow", "model", "command"],
)
def test_tab_offers(tmp_path: Path, words: tuple[str, ...], offered: str) -> None:
    (tmp_path / "hummingbird.yaml").write_text(CONFIGURATION)
    (tmp_path / "prompt.md").write_text("Look.")
    found = press_tab(tmp_path, *words)
    assert offered in found
    assert all(one.startswith(words[-1]) for one in found)


def test_tab_offers_sessions(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.keep("aaa111", "old trouble")
    assert site.type("list").code == 0
    assert press_tab(tmp_path, "sessions", "show", "aa") == ["aaa111"]


def test_tab_says_nothing_about_a_broken_configuration(tmp_path: Path) -> None:
    (tmp_path / "hummingbird.yaml").write_text("workflows: [")
    assert press_tab(tmp_path, "run", "--workflow", "") == []

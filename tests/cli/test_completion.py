"""Tab in the shell offers cases, workflows, models and sessions: tried with bash and click's own script."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hummingbird.cli.main import commands
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
        (("chat", "--model", "claude-son"), "claude-sonnet-5-5"),
        (("ser",), "serve"),
    ],
    ids=["case", "second case", "workflow", "model", "model of a chat", "command"],
)
def test_tab_offers(tmp_path: Path, words: tuple[str, ...], offered: str) -> None:
    (tmp_path / "hummingbird.yaml").write_text(CONFIGURATION)
    (tmp_path / "prompt.md").write_text("Look.")
    found = press_tab(tmp_path, *words)
    assert offered in found
    assert all(one.startswith(words[-1]) for one in found)


def test_tab_offers_something_wherever_a_case_model_workflow_or_session_is_asked_for() -> None:
    asked_for = {"case", "cases", "model", "models", "workflow", "session", "resume", "resume_session"}

    def left_out(command: click.Command, name: str) -> list[str]:
        here = [
            f"{name} {one.name}"
            for one in command.params
            if one.name in asked_for and one._custom_shell_complete is None
        ]
        below = command.commands.items() if isinstance(command, click.Group) else ()
        return here + [fault for word, one in below for fault in left_out(one, f"{name} {word}")]

    context = click.Context(commands)
    found = {word: commands.get_command(context, word) for word in commands.list_commands(context)}
    assert len(found) > 10
    assert [fault for word, one in found.items() if one is not None for fault in left_out(one, word)] == []


def test_tab_offers_sessions(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.keep("aaa111", "old trouble")
    assert site.type("list").code == 0
    assert press_tab(tmp_path, "sessions", "show", "aa") == ["aaa111"]
    assert press_tab(tmp_path, "chat", "--resume", "aa") == ["aaa111"]


def test_tab_says_nothing_about_a_broken_configuration(tmp_path: Path) -> None:
    (tmp_path / "hummingbird.yaml").write_text("workflows: [")
    assert press_tab(tmp_path, "run", "--workflow", "") == []

"""What can be typed behind `hummingbird chat`."""

import sys
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.chat.request import ChatRequest
from hummingbird.cli.chat import chat


class Work(ModuleType):
    """In place of what the command does."""

    def __init__(self) -> None:
        super().__init__("hummingbird.app.chat_command")
        self.calls: list[tuple[str | None, ChatRequest, SandboxChoice, bool]] = []

    def chat_command(self, config: str | None, wish: ChatRequest, chosen: SandboxChoice, *, verbose: bool) -> int:
        self.calls.append((config, wish, chosen, verbose))
        return 7


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    made = Work()
    monkeypatch.setitem(sys.modules, "hummingbird.app.chat_command", made)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return made


def typed(*words: str) -> Any:
    return CliRunner().invoke(chat, list(words))


def test_options_become_a_wish(work: Work) -> None:
    words = "-q hello --json --resume abc --model owl --plan --project a/b --workflow w --toolsets todo,memory, "
    more = "--sandbox podman --workspace /src --config c.yaml --no-color -v"
    more += " --max-usd 0.5 --max-turns 7 --effort low --append-system-prompt Briefly"
    assert typed(*words.split(), *more.split()).exit_code == 7
    wish = ChatRequest(
        query="hello",
        as_json=True,
        resume="abc",
        model="owl",
        plan=True,
        project="a/b",
        workflow="w",
        toolsets=("todo", "memory"),
        max_usd=0.5,
        max_turns=7,
        effort="low",
        instructions="Briefly",
        workspace="/src",
        colour=False,
    )
    assert work.calls == [("c.yaml", wish, SandboxChoice("podman", "", ""), True)]


def test_a_message_may_be_an_argument_and_p_is_an_alias(work: Work) -> None:
    assert typed("hello", "--output-format", "json").exit_code == 7
    assert (
        typed("-p", "hello", "--output-format", "stream-json", "--allow-edits", "--allow", "Bash(ls *)").exit_code == 7
    )
    assert typed("-p").exit_code == 7
    assert typed("-c", "-m", "owl").exit_code == 7
    assert typed("-r", "abc").exit_code == 7
    wishes = [wish for _, wish, _, _ in work.calls]
    assert (wishes[3].newest, wishes[3].model, wishes[4].resume) == (True, "owl", "abc")
    assert (wishes[0].message, wishes[0].query, wishes[0].only_result) == ("hello", None, True)
    assert (wishes[1].query, wishes[1].as_json, wishes[1].accept_edits) == ("hello", True, True)
    assert (wishes[1].allow, wishes[2].query) == (("Bash(ls *)",), "-")
    for words in (["a", "-q", "b"], ["-q", "b", "--json", "--output-format", "json"], ["--plan", "--allow-edits"]):
        assert typed(*words).exit_code == 2, words


def test_nothing_said_is_a_conversation_with_what_is_configured(work: Work) -> None:
    typed()
    assert work.calls[0][1] == ChatRequest()
    typed("--toolsets", "")
    assert work.calls[1][1].toolsets == ()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_the_environment_can_turn_colours_off(
    work: Work, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    typed()
    assert not work.calls[0][1].colour


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--resume", "a", "--continue"], "exclude each other"),
        (["--workflow", "w"], "--workflow needs --project"),
        (["-q", " "], "--query is empty"),
        (["--context", "c", "--sandbox", "podman"], "is for Kubernetes"),
    ],
)
def test_what_does_not_go_together_is_said(work: Work, words: list[str], sentence: str) -> None:
    done = typed(*words)
    assert done.exit_code == 2
    assert sentence in done.output
    assert work.calls == []


def test_help_teaches_with_examples() -> None:
    text = typed("--help").output
    assert 'hummingbird chat -q "Why does @build.log end early?"' in text
    assert "Exit code 1" in text

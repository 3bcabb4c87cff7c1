"""Without a terminal: answers on standard output and nothing else, exit codes, JSON lines, broken pipes."""

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from hummingbird.chat.screen import MESSAGE_BYTES
from hummingbird.core.journal import RunEnded, load_entry
from tests.chat.bird_program import answer_piped
from tests.chat.window import PROGRAM, environment
from tests.cli.typing_in import ended
from tests.thoroughly import also

COMMAND = [sys.executable, "-W", "error", str(PROGRAM)]
PATIENCE_S = 60.0


def ran(*arguments: str, said: bytes = b"", folder: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """In this process: starting one takes longer than most of what is tried here."""
    with chdir(folder or "."):
        done = ended(lambda: asyncio.run(answer_piped(arguments)), {}, said)
    return subprocess.CompletedProcess([*COMMAND, *arguments], done.code, done.out.encode(), done.err.encode())


def test_one_question_prints_the_answer_and_nothing_else() -> None:
    command = [*COMMAND, "-q", "markdown"]
    done = subprocess.run(command, capture_output=True, env=environment(), timeout=PATIENCE_S, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith(b"# Birds\n\nA **hummingbird** hovers.")
    assert done.stderr == b""


def test_a_query_from_standard_input_may_be_long_and_not_utf_8() -> None:
    done = ran("-q", "-", said=b"\xff" + b"x" * (MESSAGE_BYTES + 1))
    assert done.returncode == 0
    assert b"all of them in the file /kept/pasted-1.t" in done.stdout
    assert done.stderr.decode().count("not all UTF-8") == 1


def test_what_is_piped_in_goes_along_with_the_question_and_mentions_no_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2")
    done = ran("-q", "review this", said=b"+ a line and @secret\n", folder=tmp_path)
    assert done.stdout == b"heard 33 characters: review this\n\n+ a line and @secret\n"
    assert ran("-q", "review this", said=b"").stdout == b"heard 11 characters: review this\n"


def test_a_call_that_nobody_could_allow_is_told_with_the_option_that_allows_it() -> None:
    done = ran("-q", "edit")
    assert done.stderr.decode().splitlines()[-1] == (
        "hummingbird: not allowed: Edit wings.py. To allow it: --allow-edits"
    )
    assert done.returncode == 3
    done = ran("-q", "ask")
    assert "not allowed: Run make all. To allow it: --allow terminal" in done.stderr.decode()
    assert done.returncode == 3
    done = ran(said=b"edit\nhello\n")
    assert done.returncode == 3
    assert done.stdout.endswith(b"heard 5 characters: hello\n")


def test_the_result_alone_is_one_json_document() -> None:
    done = ran("-q", "tools", "--result")
    assert json.loads(done.stdout)["final_response"] == "done with tools"


def test_json_is_one_event_a_line_and_the_result_last() -> None:
    done = ran("-q", "tools", "--json")
    lines = done.stdout.splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds[0] == "run_started"
    assert {"tool_started", "progress", "tool_finished", "reasoning_delta", "text_delta"} <= set(kinds)
    assert isinstance(load_entry(lines[-2], 1), RunEnded)
    assert json.loads(lines[-1]) == {
        "kind": "result",
        "final_response": "done with tools",
        "exit_reason": "completed",
        "cost": "0.0123",
        "not_allowed": [],
    }


def test_whatever_breaks_in_a_line_the_next_one_is_taken() -> None:
    """Also in what a command wants to be said: /retry says the last message again."""
    done = ran(said=b"break\n/retry\nfirst\nlast")
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == 1
    assert out.index("characters: first") < out.index("characters: last")
    assert "hummingbird: unexpected ValueError: nobody expected that" in err
    assert "Traceback" not in err


def test_each_piped_line_is_a_message_or_a_command() -> None:
    done = ran(said="first\n\n/cost\n/nonsense\nfail\nlast ünit".encode())
    out, err = done.stdout.decode(), done.stderr.decode()
    assert out.index("characters: first") < out.index("tokens of context") < out.index("characters: last ünit")
    assert "There is no command /nonsense" in err
    assert "There is no model: name one with --model." in err
    assert done.returncode == 2


def test_commands_speak_json_too() -> None:
    done = ran("--json", said=b"/cost\nhello\n")
    kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert kinds[0] == "said"
    assert kinds[-1] == "result"


def test_an_at_file_goes_along(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("wing")
    assert ran("-q", "see @a.txt", folder=tmp_path).stdout.startswith(
        b"heard 40 characters: see @a.txt\n\nThe file a.txt"
    )


def test_nobody_is_asked_and_the_denial_says_how_to_allow_it() -> None:
    done = ran("-q", "ask", "--json")
    result = json.loads(done.stdout.splitlines()[-1])
    assert "answered None" in result["final_response"]
    assert "add a rule to chat.permissions" in result["final_response"]
    assert result["not_allowed"] == [{"call": "Run make all", "option": "--allow terminal"}]


@pytest.mark.thorough
def test_an_interrupted_question_ends_with_130(tmp_path: Path) -> None:
    process = subprocess.Popen([*COMMAND, "-q", "slow 600", "--json"], stdout=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest = process.communicate()[0]
    assert process.wait(PATIENCE_S) == 130
    assert json.loads(rest.splitlines()[-1])["exit_reason"] == "interrupted"


@pytest.mark.thorough
@pytest.mark.parametrize("arguments", [["-q", "slow 600", "--json"], also(["--json"])])
def test_a_reader_that_goes_away_ends_it_quietly(arguments: list[str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL if "-q" in arguments else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    if process.stdin is not None:
        process.stdin.write(b"slow 600\nanother\n")
        process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE_S) == 141
    assert process.stderr.read() == b""
    process.stderr.close()
    if process.stdin is not None:
        process.stdin.close()


@pytest.mark.thorough
def test_what_goes_on_is_told_to_a_terminal_on_standard_error() -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "-q", "tools"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(),
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(theirs)
    told = os.read(ours, 65_536).decode()
    os.close(ours)
    assert done.stdout == b"done with tools\n"
    assert "✓ Ran make all" in told


@pytest.mark.thorough
def test_no_answer_is_nothing_on_standard_output(tmp_path: Path) -> None:
    """Whoever takes the output for the answer would take our words for it."""
    given = {"PATH": os.environ["PATH"], "HUMMINGBIRD_HOME": str(tmp_path), "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    command = [sys.executable, "-m", "hummingbird", "chat", "--model", "openai-chat:away", "-q", "hello"]
    done = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Nothing answers at http://127.0.0.1:9" in done.stderr

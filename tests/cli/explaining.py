"""`hummingbird explain` with pipes or with a terminal, in this process or in one of its own."""

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

from tests.cli.typing_in import typed

COMMAND = [sys.executable, "-m", "hummingbird", "explain"]
LOGS = Path(__file__).parents[1] / "fixtures" / "evidence"
COMPILER, TEST, LINT = LOGS / "log-purescript-compiler.log", LOGS / "log-rxjava-test.log", LOGS / "log-tldr-lint.log"
COLUMNS = 60


def run(*arguments: str | Path, given: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """In this process: starting one takes longer than most of what is tried here."""
    done = typed("explain", *map(str, arguments), environment=environment, piped=given)
    return subprocess.CompletedProcess([*COMMAND, *arguments], done.code, done.out.encode(), done.err.encode())


def run_process(*arguments: str | Path, given: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """With nothing in the environment but what the test says."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=given, env=environment, capture_output=True, check=False
    )


def on_terminal(
    *arguments: str | Path, given: bytes | None = b"", environment: dict[str, str] | None = None
) -> tuple[int, str]:
    """All that a person sees on a terminal of a few columns; with `given=None` the input is the terminal too."""
    mine, its = pty.openpty()
    termios.tcsetwinsize(its, (24, COLUMNS))
    try:
        process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdin=its if given is None else subprocess.PIPE, stdout=its, stderr=its,
            env={"TERM": "xterm", **(environment or {})},
        )  # fmt: skip
    finally:
        os.close(its)
    if process.stdin:
        with process.stdin as stdin:
            stdin.write(given or b"")
    seen = _all_of(mine)
    return process.wait(), seen.decode().replace("\r\n", "\n")


def _all_of(terminal: int) -> bytes:
    seen = b""
    try:
        while piece := os.read(terminal, 65536):
            seen += piece
    except OSError:  # how Linux says that nobody has the other side open any more
        pass
    finally:
        os.close(terminal)
    return seen

"""Typing a command without a process of its own: the same way in, the same exit codes, an environment of one's own."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from tempfile import TemporaryFile

import pytest
from click.testing import CliRunner

from hummingbird.cli.main import main


@dataclass(frozen=True, slots=True)
class Typed:
    code: int
    out: str
    err: str


def typed(
    *arguments: str, environment: Mapping[str, str] | None = None, answer: str | None = None, piped: bytes = b""
) -> Typed:
    """`environment` is all there is, besides what programs need to be found. `answer`: what a person at a terminal
    types; without one nobody is there, and standard input is what is `piped` in."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    wanted = {**dict.fromkeys(os.environ), **kept, **(environment or {})}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["hummingbird", *arguments])
        return ended(main, wanted, piped if answer is None else answer.encode(), somebody=answer is not None)


def ended(
    program: Callable[[], int | None], environment: Mapping[str, str | None], given: bytes, *, somebody: bool = False
) -> Typed:
    """Run a program that reads `given` from standard input. `somebody`: a person is at a terminal."""
    with TemporaryFile() as pipe, pytest.MonkeyPatch.context() as patched:
        pipe.write(given)
        pipe.seek(0)
        with CliRunner(env=environment).isolation(input=pipe) as (out, err, _both):
            patched.setattr(sys.stdin, "isatty", lambda: somebody)
            try:
                code = program() or 0
            except SystemExit as done:
                code = done.code if isinstance(done.code, int) else 1
            sys.stdout.flush()
            sys.stderr.flush()
            return Typed(code, out.getvalue().decode(), err.getvalue().decode())

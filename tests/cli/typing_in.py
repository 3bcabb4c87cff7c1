"""Typing a command without a process of its own: the same way in, the same exit codes, an environment of one's own."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

from hummingbird.cli.main import main


@dataclass(frozen=True, slots=True)
class Typed:
    code: int
    out: str
    err: str


def typed(*arguments: str, environment: Mapping[str, str] | None = None, answer: str | None = None) -> Typed:
    """`environment` is all there is, besides what programs need to be found. `answer`: what a person at a terminal
    types; without one nobody is there."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    wanted = {**dict.fromkeys(os.environ), **kept, **(environment or {})}
    runner = CliRunner(env=wanted)
    with pytest.MonkeyPatch.context() as patched, runner.isolation(input=answer or "") as (out, err, _both):
        patched.setattr(sys, "argv", ["hummingbird", *arguments])
        patched.setattr(sys.stdin, "isatty", lambda: answer is not None)
        code = 0
        try:
            main()
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else 1
        return Typed(code, out.getvalue().decode(), err.getvalue().decode())

"""`hummingbird lab` as a process of its own that serves until it is told to stop."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cli.typing_in import typed

COMMAND = [sys.executable, "-m", "hummingbird", "lab"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """For what ends by itself, in this process."""
    done = typed("lab", *arguments)
    return subprocess.CompletedProcess([*COMMAND, *arguments], done.code, done.out, done.err)


class Lab:
    """`told`: what its first line says. After `stop`: `code` and `errors`, all that was on standard error."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        self.told: dict[str, Any] = json.loads(self.line) if self.line else {}
        self.code, self.rest, self.errors = 0, "", ""

    def error_line(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(how)
        self.rest, self.errors = self.process.communicate(timeout=60)
        self.code = self.process.returncode


@contextmanager
def serving(*arguments: str) -> Iterator[Lab]:
    lab = Lab(*arguments)
    try:
        yield lab
    finally:
        if lab.process.returncode is None:
            lab.stop()

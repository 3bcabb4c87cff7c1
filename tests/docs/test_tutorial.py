"""docs/tutorial.md, typed as it stands there: every command is run, and every line that it shows has to come."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reading import ROOT, Block, blocks
from tests.free_ports import find_free_port, find_free_ports

NOT_TYPED = ("make ", ". .venv")  # they set up what the tests run in
KEPT = re.compile(r"(?:export|cd) |[A-Z]+=|mkdir \S+ && cd ")
PATIENCE_S = 60.0


class Terminal:
    """One shell for all commands, and the programs that do not end by themselves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gitlab, self.service = find_free_ports(5), find_free_port()
        self.before: list[str] = []
        self.programs: dict[str, subprocess.Popen[bytes]] = {}
        self.log = folder / "log"
        bin_folder = Path(sys.executable).parent
        self.environment = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": str(folder), "LANG": "C.UTF-8"}

    def typed(self, command: str) -> str:
        """What the command prints; what it prints so far, if it goes on."""
        command = command.replace("8200", str(self.gitlab)).replace("8080", str(self.service))
        name = " ".join(command.split()[:2])
        if name == "hummingbird serve" or re.match(r"hummingbird lab \S", command):
            return self._started(name, command)
        printed = self._shell(command)
        if KEPT.match(command):
            self.before.append(command.replace("mkdir ", "mkdir -p ", 1))
        return printed

    def _shell(self, command: str) -> str:
        script = "\n".join(["set -e", *self.before, command])
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout.decode())
        return done.stdout.decode()

    def _started(self, name: str, command: str) -> str:
        if name in self.programs:
            self.end(name)
        port = f" --port {self.service}" if "serve" in name else ""
        script = "\n".join(["set -e", *self.before, f"exec {command}{port}"])
        with self.log.open("ab") as log:
            self.programs[name] = subprocess.Popen(
                ["bash", "-c", script], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        return ""

    def end(self, name: str) -> None:
        program = self.programs.pop(name)
        program.send_signal(signal.SIGTERM)
        program.wait(PATIENCE_S)

    def told(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    for name in list(made.programs):
        made.end(name)


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.skipif(not shutil.which("curl"), reason="the tutorial needs curl")
def test_every_command_of_the_tutorial_does_what_it_shows(terminal: Terminal) -> None:
    commands = 0
    for block in blocks(ROOT / "docs" / "tutorial.md"):
        for command, shown in _steps(block):
            if command.startswith(NOT_TYPED):
                continue
            if "has stopped" in "".join(shown):
                terminal.end("hummingbird serve")
            printed = terminal.typed(command) if command else ""
            commands += bool(command)
            _expect(terminal, block, command, shown, printed)
    assert commands >= 18


def _expect(terminal: Terminal, block: Block, command: str, shown: list[str], printed: str) -> None:
    """Programs that go on may need a moment, and whoever asks for what they do may have to ask again."""
    until = time.monotonic() + PATIENCE_S
    ports = {"8200": str(terminal.gitlab), "8080": str(terminal.service)}
    asks = command.startswith("curl") and " -d " not in command
    while missing := _missing(shown, printed or terminal.told(), ports):
        what = f"line {block.line}: {command or 'the log'} does not show {missing!r}"
        assert asks or not printed, what
        assert time.monotonic() < until, what
        time.sleep(0.2)
        printed = terminal.typed(command) if asks else ""


def _missing(shown: list[str], printed: str, ports: dict[str, str]) -> str:
    """The first line that is shown and does not come, in the order in which they stand there."""
    lines = iter(printed.splitlines())
    for wanted in shown:
        for said, real in ports.items():
            wanted = wanted.replace(said, real)  # noqa: PLW2901 - the same line, with the ports of this test
        pattern = ".*".join(re.escape(part) for part in wanted.strip().split("…"))
        if wanted.strip() not in {"", "…"} and not any(re.fullmatch(pattern, line.strip()) for line in lines):
            return wanted
    return ""


def _steps(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Commands with the lines below them; lines without a command are what a program says that goes on."""
    command, shown = "", list[str]()
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command or shown:
                yield command, shown
            command, shown = line.removeprefix("$ "), []
        else:
            shown.append(line)
    yield command, shown

"""A window of a real terminal: tmux draws, we type and look."""

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "chat" / "bird_program.py"


def need_tmux() -> None:
    if shutil.which("tmux") is None and os.environ.get("CI") != "true":
        pytest.skip("tmux is not installed")


def environment(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "LC_ALL": "C.UTF-8", **more}


class Window:
    """Close it, or a server is left behind."""

    def __init__(
        self, folder: Path, columns: int = 100, rows: int = 30, early: Sequence[str] = (), **more: str
    ) -> None:
        """`early` is typed before the program listens."""
        if early:
            more["BIRD_START"] = str(folder / "start")
        self._socket = f"bird-{uuid.uuid4().hex[:8]}"
        self._environment = environment(**more)
        self._folder = folder
        settings = [word for name, value in more.items() for word in ("-e", f"{name}={value}")]
        command = f"{sys.executable} {PROGRAM}; echo ENDED $?; sleep 60"
        size = ["-x", str(columns), "-y", str(rows)]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, *settings, "-c", str(folder), command)
        if early:
            self.wait_for("starting")
            for line in early:
                self.send(line)
            (folder / "start").touch()
        self.wait_for("bird is here")
        self.wait_for("ready")

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self._socket, *words]
        ran = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=True, timeout=60)
        return ran.stdout

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def send(self, text: str) -> None:
        self.type(text)
        self.press("Enter")

    def paste(self, content: bytes) -> None:
        file = self._folder / "pasted"
        file.write_bytes(content)
        self._tmux("load-buffer", str(file))
        self._tmux("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self, *options: str) -> str:
        return self._tmux("capture-pane", "-p", *options).rstrip("\n")

    def all(self) -> str:
        """With what has scrolled away, long lines in one piece."""
        return self.screen("-S", "-", "-J")

    def coloured(self) -> str:
        return self.screen("-e", "-S", "-")

    def last(self, lines: int) -> str:
        return "\n".join(self.screen().splitlines()[-lines:])

    def record(self, file: Path) -> None:
        """Write what the program prints from now on to the file, byte for byte."""
        self._tmux("pipe-pane", "-O", f"cat > {file}")

    def title(self) -> str:
        return self._tmux("display-message", "-p", "#{pane_title}")

    def wait_for(self, words: str | Callable[[str], bool], seconds: float = 60.0) -> str:
        """The screen on which they stand. Fails with what was there instead."""
        until = time.monotonic() + seconds
        while True:
            seen = self.screen()
            if words in seen if isinstance(words, str) else words(seen):
                return seen
            if time.monotonic() > until:
                pytest.fail(f"{words!r} did not appear within {seconds} s in:\n{seen}")
            time.sleep(0.03)

    def wait_until_printed(self, words: str) -> None:
        """Also when they have scrolled away by the time that we look."""
        self.wait_for(lambda _: words in self.all())

    def leave(self) -> None:
        """With two Ctrl-C that come at once."""
        self.press("C-c", "C-c")
        self.wait_for("ENDED 0")

    def close(self) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False, timeout=20)

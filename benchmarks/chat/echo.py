"""How long a key takes to appear on the screen while an answer streams at 200 deltas a second, and for how long
the screen stands still while ten megabytes are pasted. In a pseudo-terminal: `hummingbird chat` as it is, in a session
of thousands of entries, while one long answer streams and while short ones begin and end, each of which is stored; the
screen alone with the scripted partner of the tests; beside a bare prompt of prompt_toolkit with nothing to do, and one
above which the same deltas are printed as prompt_toolkit's own `patch_stdout` does it.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from benchmarks.chat import long_session
from benchmarks.chat.paced_vendor import ASKS_FOR_LONG, paced_vendor
from benchmarks.chat.spread import share, verdict

P99_MS = 50.0

_ROOT = Path(__file__).parents[2]
_PROGRAM = _ROOT / "tests" / "chat" / "bird_program.py"
_BARE = _ROOT / "benchmarks" / "chat" / "bare_prompt.py"
_LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"  # none of them is streamed, or part of an escape sequence
_PASTE = b"0123456789abcde\n" * 640 * 1024


class Terminal:
    """A program in a terminal of its own. Close it."""

    def __init__(self, *words: str, environment: Mapping[str, str] | None = None) -> None:
        given = {**(os.environ if environment is None else environment), "PYTHONPATH": str(_ROOT)}
        self.process, self._side = pty.fork()
        if self.process == 0:
            os.execve(sys.executable, [sys.executable, *words], {**given, "TERM": "xterm-256color"})
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.set_blocking(self._side, False)

    def write(self, content: bytes) -> None:
        while content:
            try:
                content = content[os.write(self._side, content) :]
            except BlockingIOError:
                select.select([], [self._side], [], 0.1)

    def read(self, seconds: float) -> bytes:
        if not select.select([self._side], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self._side, 65_536)
        except BlockingIOError:
            return b""

    def wait_for(self, wanted: bytes, seconds: float = 15.0) -> None:
        began, seen = time.perf_counter(), b""
        while wanted not in seen:
            seen = seen[-4_096:] + self.read(0.05)
            if time.perf_counter() - began > seconds:
                raise TimeoutError(f"{wanted!r} did not appear: {seen[-500:]!r}")

    def drain(self, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            self.read(left)

    def longest_pause(self, content: bytes, until: bytes) -> float:
        """Between two pieces of output, while this is written."""
        last, longest, seen = time.perf_counter(), 0.0, b""
        while until not in seen:
            if content:
                with suppress(BlockingIOError):
                    content = content[os.write(self._side, content[:4_096]) :]
            if piece := self.read(0.0005):
                now = time.perf_counter()
                last, longest, seen = now, max(longest, now - last), seen[-4_096:] + piece
        return longest

    def close(self) -> None:
        os.kill(self.process, signal.SIGTERM)
        os.waitpid(self.process, 0)


def echoes(terminal: Terminal, keys: int) -> list[float]:
    taken = []
    for number in range(keys):
        letter = _LETTERS[number % len(_LETTERS)].encode()
        terminal.drain(0.013)  # out of step with what is redrawn
        began = time.perf_counter()  # before it is written: whoever reads it may run before we go on
        terminal.write(letter)
        terminal.wait_for(letter)
        taken.append(time.perf_counter() - began)
        if number % len(_LETTERS) == len(_LETTERS) - 1:
            terminal.write(b"\x15")
            terminal.drain(0.1)
    terminal.write(b"\x15")
    terminal.drain(0.1)
    return sorted(taken)


def report(keys: int) -> None:
    print(f"## Chat: how long a typed key takes to appear, {keys} keys\n")
    print(f"| prompt | meanwhile | p50 ms | p99 ms | longest ms | p50 ÷ bare, idle | p99 at most {P99_MS:.0f} ms |")
    print("|---|---|--:|--:|--:|--:|---|")
    bare = _bare(keys)
    _row("bare prompt_toolkit", "nothing", bare, bare)
    _row("bare prompt_toolkit, `patch_stdout`", "200 deltas/s", _bare(keys, "stream"), bare)
    _of_the_agent(keys, bare)
    terminal = Terminal(str(_PROGRAM))
    try:
        terminal.wait_for(b"ready")
        terminal.drain(1.0)
        _row("Hummingbird's screen, scripted partner", "nothing", echoes(terminal, keys), bare)
        terminal.write(b"slow 120\r")
        terminal.wait_for(b"answering")
        _row("Hummingbird's screen, scripted partner", "200 deltas/s", echoes(terminal, keys), bare)
        pause = terminal.longest_pause(b"\x1b[200~" + _PASTE + b"\x1b[201~", b"characters]")
        print(f"\nWhile {len(_PASTE):,} bytes are pasted, the screen stands still for {pause * 1000:.0f} ms at most.\n")
    finally:
        terminal.close()


def _of_the_agent(keys: int, bare: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder, paced_vendor() as address:
        home = Path(folder)
        size = long_session.write(home / "state")
        name = f"**`hummingbird chat`**, {long_session.ENTRIES:,} entries, {size / 1e6:.1f} MB"
        environment = {
            **{one: os.environ[one] for one in ("PATH", "HOME", "LANG") if one in os.environ},
            "HUMMINGBIRD_HOME": str(home / "state"),
            "ANTHROPIC_API_KEY": "k-123456789",
            "ANTHROPIC_BASE_URL": address,
        }
        words = ["-m", "hummingbird", "chat", "--workspace", folder, "--resume", long_session.SESSION]
        words += ["--model", "anthropic:claude-sonnet-5-5"]
        terminal = Terminal(*words, environment=environment)
        try:
            terminal.wait_for(b"ready", 60.0)
            terminal.write(b"hello\r")
            terminal.wait_for(b"word10 ", 60.0)
            terminal.drain(3.0)
            terminal.write(b"and again\r" * (keys // 8 + 4))  # they wait in line, and are answered while keys are typed
            _row(name, "short answers begin and end", echoes(terminal, keys), bare)
            terminal.write(b"\x03")
            terminal.drain(3.0)
        finally:
            terminal.close()
        terminal = Terminal(*words, environment=environment)
        try:
            terminal.wait_for(b"ready", 60.0)
            terminal.write(f"{ASKS_FOR_LONG}\r".encode())
            terminal.wait_for(b"word10 ", 60.0)
            _row(name, "200 deltas/s", echoes(terminal, keys), bare)
        finally:
            terminal.close()


def _bare(keys: int, *how: str) -> list[float]:
    terminal = Terminal(str(_BARE), *how)
    try:
        terminal.wait_for(b"bare>")
        terminal.drain(1.0)
        return echoes(terminal, keys)
    finally:
        terminal.close()


def _row(name: str, meanwhile: str, taken: list[float], bare: list[float]) -> None:
    p50, p99, ratio = share(taken, 0.5), share(taken, 0.99), share(taken, 0.5) / share(bare, 0.5)
    figures = f"{p50:.1f} | {p99:.1f} | {max(taken) * 1000:.1f} | {ratio:.1f}×"
    print(f"| {name} | {meanwhile} | {figures} | {verdict(met=p99 <= P99_MS)} |", flush=True)

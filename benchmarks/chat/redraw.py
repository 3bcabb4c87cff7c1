"""What the terminal gets while an answer streams: bytes per second, bytes per byte of text, and screens cleared."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

_PROGRAM = Path(__file__).parents[2] / "tests" / "chat" / "bird_program.py"
_ROOT = Path(__file__).parents[2]
_CLEARS = (b"\x1b[2J", b"\x1b[3J")
_WORD_BYTES = 8  # of "word123 " on the average


def report(seconds: int) -> None:
    """Print the table for an answer of 200 words a second that is longer than the window."""
    written, clears, took = _stream(seconds)
    text = seconds * 200 * _WORD_BYTES
    print(f"## Chat: what the terminal gets while an answer streams, 200 words a second, {seconds} s\n")
    print("| program | bytes/s | bytes per byte of text | screens or scrollbacks cleared |")
    print("|---|--:|--:|--:|")
    print(f"| Hummingbird's screen, scripted partner | {written / took:,.0f} | {written / text:.1f} | {clears} |")
    print()


def _stream(seconds: int) -> tuple[int, int, float]:
    """Return what was written between the first and the last word: bytes, clearings, and how long it took."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": f"{_ROOT}:{_ROOT / 'src'}", "TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen(
        [sys.executable, str(_PROGRAM)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        _read_until(ours, b"ready")
        os.write(ours, f"slow {seconds}\r".encode())
        _read_until(ours, b"word1 ")
        began = time.monotonic()
        found = _read_until(ours, f"word{seconds * 200 - 1}".encode())
        return len(found), sum(found.count(mark) for mark in _CLEARS), time.monotonic() - began
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(ours)


def _read_until(descriptor: int, sign: bytes) -> bytes:
    found = b""
    while sign not in found:
        if not select.select([descriptor], [], [], 60.0)[0]:
            raise TimeoutError(f"{sign!r} did not appear")
        found += os.read(descriptor, 65_536)
    return found

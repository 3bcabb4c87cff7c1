"""Calling the host's tools, and looking at the machine behind their backs."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hummingbird.core.protocols.tools import ByteStream, Tool, ToolContext

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def context(progress: Callable[[str], None] = lambda _: None) -> ToolContext:
    return ToolContext("session", "call", progress=progress)


async def called(tool: Tool, seen: ToolContext | None = None, **arguments: Any) -> tuple[str, str]:
    """What it says of its output, and the output."""
    output = await tool(arguments, seen or context())
    if isinstance(output, ByteStream):
        return output.note, b"".join([chunk async for chunk in output.chunks]).decode("utf-8", "replace")
    assert isinstance(output, str)
    return "", output


def processes_with(word: str) -> list[int]:
    """Whoever has this word in its arguments and is no zombie."""
    return [pid for pid in _pids() if word.encode() in _contents(pid, "cmdline") and _state(pid) not in ("Z", "X", "")]


def started_with(word: str, by: int) -> list[int]:
    """Those of them that this process started, itself or through others: tests beside this one start some too."""
    return [pid for pid in processes_with(word) if by in _above(pid)]


def _above(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1 and len(found) < 50:
        fields = _contents(pid, "stat").rpartition(b")")[2].split()
        pid = int(fields[1]) if len(fields) > 1 else 0
        found.append(pid)
    return found


def _pids() -> list[int]:
    return [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and int(entry.name) != os.getpid()
    ]


def _contents(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _state(pid: int) -> str:
    return _contents(pid, "stat").rpartition(b")")[2].decode().strip()[:1]


def started(program: str, *arguments: str | Path) -> "subprocess.Popen[bytes]":
    """Another process with our code, to be ended by whoever wants it."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def written(path: bytes, text: str) -> None:
    """Under a name that need not be text."""
    with open(path, "w") as file:  # noqa: PTH123 - as it says
        file.write(text)


async def seen_soon(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait for what the machine does; the bound only tells that it never will."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:  # noqa: ASYNC110 - the machine sets no event
        await asyncio.sleep(0.01)
    return condition()

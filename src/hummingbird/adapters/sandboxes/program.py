"""A program of this machine, run to its end: its words kept short, its time bounded, and never left behind.

Knows neither podman nor what makes images.
"""

import asyncio
import os
import re
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from hummingbird.adapters.sandboxes.finishing import finished, let_go
from hummingbird.domain.errors import SandboxBroken
from hummingbird.domain.limits import CLIENT_WORDS_BYTES, ERROR_TEXT_CHARS, PROGRAM_LEAVING_S
from hummingbird.domain.text import shortened

Told: TypeAlias = Callable[[str], None]

_COMPLAINT = re.compile(r"(?i)(e|err|error|fatal)\b\s*:")
_LAST_LINES = 50


@dataclass(frozen=True, slots=True)
class Said:
    """How a program ended. `words`: what it had to say about that, on one line."""

    code: int
    out: bytes
    words: str


async def said(argv: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> Said:
    """Raises SandboxBroken when it cannot be started or does not end in time."""
    process = await started(argv, environment)
    try:
        async with asyncio.timeout(timeout_s):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise SandboxBroken(f"{_named(argv)} did not end within {timeout_s:g} s. Look at it by hand.") from error
    finally:
        await end(process)
    assert process.returncode is not None
    return Said(process.returncode, out, shortened(err.decode("utf-8", "replace"), ERROR_TEXT_CHARS))


async def followed(argv: Sequence[str], environment: Mapping[str, str], told: Told, stall_s: float) -> Said:
    """Tells every line as it comes, of stdout and stderr. Raises SandboxBroken when none came for so long."""
    process = await started(argv, environment, asyncio.subprocess.STDOUT)
    assert process.stdout is not None
    last: deque[str] = deque(maxlen=_LAST_LINES)
    try:
        async for line in _lines(process.stdout, stall_s):
            told(line)
            last.append(line)
    except TimeoutError as error:
        raise SandboxBroken(f"{_named(argv)} said nothing for {stall_s:g} s.") from error
    finally:
        await end(process)
    assert process.returncode is not None
    return Said(process.returncode, b"", _complaints(last))


async def started(
    argv: Sequence[str],
    environment: Mapping[str, str],
    stderr: int = asyncio.subprocess.PIPE,
    folder: str | None = None,
) -> asyncio.subprocess.Process:
    """To be ended with `end`. Raises SandboxBroken when it cannot be started."""
    spawning = _spawned(argv, environment, stderr, folder)
    return await finished(spawning, end)  # asyncio does not come back from a start that is cancelled


async def end(process: asyncio.subprocess.Process) -> None:
    """With its children, and with time to clean up: mounts and lock files are among what it may have to undo."""
    _signal(process, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(PROGRAM_LEAVING_S):
            await process.wait()
    _signal(process, signal.SIGKILL)
    await let_go(process)


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


async def _spawned(
    argv: Sequence[str], environment: Mapping[str, str], stderr: int, folder: str | None
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,  # Ctrl-C in a terminal is ours to handle
        )
    except OSError as error:
        raise SandboxBroken(f"{argv[0]} could not be started: {error.strerror}. Is it still installed?") from error


async def _lines(stream: asyncio.StreamReader, stall_s: float) -> AsyncIterator[str]:
    rest = b""
    while True:
        async with asyncio.timeout(stall_s):
            chunk = await stream.read(CLIENT_WORDS_BYTES)
        *whole, rest = (rest + (chunk or b"\n")).replace(b"\r", b"\n").split(b"\n")
        rest = rest[-CLIENT_WORDS_BYTES:]
        for line in whole:
            if text := line.decode("utf-8", "replace").strip():
                yield text
        if not chunk:
            return


def _complaints(lines: Sequence[str]) -> str:
    """The lines that say what went wrong, if any say so; else the last ones."""
    chosen = [line for line in lines if _COMPLAINT.match(line)] or list(lines)
    return shortened(" ".join(chosen[-3:]), ERROR_TEXT_CHARS)


def _named(argv: Sequence[str]) -> str:
    """The program and what it was told to do first, for a sentence."""
    verbs = [word for word in argv[1:] if not word.startswith("-")]
    return f"`{' '.join([os.path.basename(argv[0]), *verbs[:1]])}`"  # noqa: PTH119 - a name for people, not a path

"""Runs programs on this machine to their end: with bounded output, a time limit, and no process left behind."""

import asyncio
import os
import re
import signal
from asyncio.subprocess import Process
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from hummingbird.core.errors import SandboxBroken
from hummingbird.core.limits import (
    CLIENT_LEAVING_S,
    CLIENT_WORDS_BYTES,
    ERROR_TEXT_CHARS,
    FRAME_BYTES,
    PROGRAM_LEAVING_S,
)
from hummingbird.core.text import shorten_line

T = TypeVar("T")


async def run_to_completion(work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[object]] | None = None) -> T:
    """Return the work's outcome, and let the work finish even when the caller is cancelled.

    Half-done work would leave a process or a pod behind. When cancelled, wait until the work has ended, undo its
    result with `undo`, and only then raise CancelledError.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():
            raise
        await _wait_uncancellable(task)
        if undo is not None and not task.cancelled() and task.exception() is None:
            await _wait_uncancellable(asyncio.ensure_future(undo(task.result())))
        raise


async def release_process(process: Process, *listening: asyncio.Task[None]) -> None:
    """Read what is left of an ended or killed program's output, then close its streams.

    A process that the program started may hold the streams open for ever, and asyncio would wait for their end along
    with the program's.
    """
    try:
        if listening:
            await asyncio.wait(listening, timeout=CLIENT_LEAVING_S)
    finally:
        _close_streams(process)
    await asyncio.gather(*listening, return_exceptions=True)
    for stream in (process.stdout, process.stderr):
        with suppress(OSError):
            while stream is not None and await stream.read(FRAME_BYTES):
                pass  # a closed transport is released one loop iteration later, and the loop may end before
    await process.wait()


def _close_streams(process: Process) -> None:
    if process.stdin is not None and process.stdin.transport.get_write_buffer_size():
        process.stdin.transport.abort()  # close() would wait for somebody to read what is still buffered
    transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]  # the only way to them
    for pipe in map(transport.get_pipe_transport, range(3)):
        if pipe is not None:
            pipe.close()


async def _wait_uncancellable(task: asyncio.Future[Any]) -> None:
    """Wait for the task, however often we are cancelled. An exception of the task stays with the task."""
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()


LineCallback: TypeAlias = Callable[[str], None]

_ERROR_LINE = re.compile(r"(?i)(e|err|error|fatal)\b\s*:")
_LAST_LINES = 50


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended. `error_summary` is what it said about a failure, on one line."""

    code: int
    out: bytes
    error_summary: str


async def run_program(argv: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> ProgramResult:
    """Run a program and collect its output. Raises SandboxBroken when it cannot start or does not end in time."""
    process = await start_program(argv, environment)
    try:
        async with asyncio.timeout(timeout_s):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise SandboxBroken(
            f"{_command_label(argv)} did not end within {timeout_s:g} s. Look at it by hand."
        ) from error
    finally:
        await stop_process(process)
    assert process.returncode is not None
    return ProgramResult(process.returncode, out, shorten_line(err.decode("utf-8", "replace"), ERROR_TEXT_CHARS))


async def stream_program(
    argv: Sequence[str], environment: Mapping[str, str], report_line: LineCallback, stall_s: float
) -> ProgramResult:
    """Run a program and pass each line of its stdout and stderr to `report_line` as it comes.

    Raises SandboxBroken when the program cannot start or writes nothing for `stall_s` seconds.
    """
    process = await start_program(argv, environment, asyncio.subprocess.STDOUT)
    assert process.stdout is not None
    last: deque[str] = deque(maxlen=_LAST_LINES)
    try:
        async for line in _read_lines(process.stdout, stall_s):
            report_line(line)
            last.append(line)
    except TimeoutError as error:
        raise SandboxBroken(f"{_command_label(argv)} wrote nothing for {stall_s:g} s.") from error
    finally:
        await stop_process(process)
    assert process.returncode is not None
    return ProgramResult(process.returncode, b"", _summarize_errors(last))


async def start_program(
    argv: Sequence[str],
    environment: Mapping[str, str],
    stderr: int = asyncio.subprocess.PIPE,
    folder: str | None = None,
) -> asyncio.subprocess.Process:
    """Start a program, which the caller must end with `stop_process`. Raises SandboxBroken when it cannot start."""
    spawning = _spawn(argv, environment, stderr, folder)
    return await run_to_completion(spawning, stop_process)  # a cancelled asyncio start would lose the process


async def stop_process(process: asyncio.subprocess.Process) -> None:
    """End the process and its children: SIGTERM first, so that it can undo mounts and lock files, then SIGKILL."""
    _signal_group(process, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(PROGRAM_LEAVING_S):
            await process.wait()
    _signal_group(process, signal.SIGKILL)
    await release_process(process)


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


async def _spawn(
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


async def _read_lines(stream: asyncio.StreamReader, stall_s: float) -> AsyncIterator[str]:
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


def _summarize_errors(lines: Sequence[str]) -> str:
    """Return the lines that look like errors, or the last lines if none does."""
    chosen = [line for line in lines if _ERROR_LINE.match(line)] or list(lines)
    return shorten_line(" ".join(chosen[-3:]), ERROR_TEXT_CHARS)


def _command_label(argv: Sequence[str]) -> str:
    """Return the program's name and first argument, for an error message."""
    verbs = [word for word in argv[1:] if not word.startswith("-")]
    return f"`{' '.join([os.path.basename(argv[0]), *verbs[:1]])}`"  # noqa: PTH119 - a name for people, not a path

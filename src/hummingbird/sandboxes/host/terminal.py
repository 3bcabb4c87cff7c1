"""Runs commands on the host: in the foreground, or in the background beside the conversation. None outlives it.

A thread reads a command's output, so that it is taken and the end noticed whatever the event loop does, even when the
next call comes on another event loop.
"""

import asyncio
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hummingbird.core.errors import ArgumentsInvalid, CallDenied, CommandFailed, UsageError
from hummingbird.core.limits import PROGRESS_CHARS, PROGRESS_LINES
from hummingbird.core.protocols.tools import ByteStream, Tool, ToolContext, ToolOutput
from hummingbird.core.shell.evaluation import refusal_reason
from hummingbird.core.shell.values import (
    BACKGROUND_FINISHED,
    BACKGROUND_GLANCE_S,
    BACKGROUND_KEPT_BYTES,
    BACKGROUND_RUNNING,
    COMMAND_BYTES,
    COMMAND_KEPT_BYTES,
    COMMAND_TIMEOUT_CAP_S,
    COMMAND_TIMEOUT_S,
    ENDING_S,
    LEFT_RUNNING_S,
    OUTPUT_CHUNK_BYTES,
    OUTPUT_PAUSE_S,
    OUTPUT_UNHURRIED_BYTES,
    PROCESS_READ_BYTES,
    PROGRESS_S,
    STANDING_CHARS,
    TERM_GRACE_S,
)
from hummingbird.core.text import TerminalTextCleaner, shorten_line
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.sandboxes.host.tool_specs import PROCESS_SPEC, TERMINAL_SPEC

_LAST_LINE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class OutputSlice:
    """Part of the output: from byte `start` to `end`, where to go on. `lost_bytes` before it were not kept."""

    content: bytes
    start: int
    end: int
    lost_bytes: int


class OutputBuffer:
    """Keeps the beginning and the end of a command's output. One thread writes it, others read it."""

    def __init__(self, kept: int) -> None:
        self._half = kept // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._lock = threading.Lock()
        self.total = 0

    def add(self, content: bytes) -> None:
        with self._lock:
            self.total += len(content)
            room = self._half - len(self._head)
            self._head += content[:room] if room > 0 else b""
            self._tail += content[max(0, room) :]
            if len(self._tail) > 2 * self._half:
                del self._tail[: -self._half]

    def read_slice(self, offset: int, most: int) -> OutputSlice:
        with self._lock:
            if offset < len(self._head):
                content = bytes(self._head[offset : offset + most])
                return OutputSlice(content, offset, offset + len(content), 0)
            tail = self._tail_bytes()
            begins = max(min(offset, self.total), self.total - len(tail))
            content = tail[begins - (self.total - len(tail)) :][:most]
            return OutputSlice(content, begins, begins + len(content), max(0, begins - offset))

    def full_content(self) -> bytes:
        """Return all that was kept, with a line where something is missing."""
        with self._lock:
            tail = self._tail_bytes()
            lost = self.total - len(self._head) - len(tail)
            between = b"\n[%d bytes of the output were not kept]\n" % lost if lost > 0 else b""
            return bytes(self._head) + between + tail

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines that are not empty, oldest first."""
        with self._lock:
            end = bytes((self._tail or self._head)[-_LAST_LINE_BYTES:])
        lines = end.decode("utf-8", "replace").replace("\r", "\n").split("\n")
        return [line for line in lines if line.strip()][-count:]

    def _tail_bytes(self) -> bytes:
        return bytes(self._tail[-self._half :])


_REAPER = Path(__file__).with_name("process_reaper.py")
_MARK = "HUMMINGBIRD_COMMAND"


class HostCommand:
    """A command, which starts when the object is created. Raises CommandFailed when it cannot be started.

    `exit_code` is the command's own; it is known before everything that the command started has ended (`is_finished`).
    """

    def __init__(
        self, command: str, shell: Sequence[str], folder: Path, environment: Mapping[str, str], kept: int
    ) -> None:
        self.command = command
        self.output = OutputBuffer(kept)
        self.exit_code: int | None = None
        self.is_finished = False
        self.started_at = time.monotonic()
        self.seconds = 0.0
        self.ended_by = ""  # who asked for the end, if anybody did
        self._mark = os.urandom(12).hex()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._lock = threading.Lock()
        self._spawn([*shell, command], folder, {**environment, _MARK: self._mark})
        threading.Thread(target=self._listen_loop, name="hummingbird command", daemon=True).start()

    @property
    def title(self) -> str:
        return shorten_line("".join(c if c.isprintable() else " " for c in self.command), STANDING_CHARS)

    @property
    def age_s(self) -> float:
        return self.seconds if self.is_finished else time.monotonic() - self.started_at

    def _spawn(self, arguments: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        control, self._control = os.pipe()
        self._out, out = os.pipe()
        self._report, report = os.pipe()
        ours = [self._control, self._out, self._report]
        told = [str(report), str(os.getpid()), str(TERM_GRACE_S), *arguments]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a command that was asked for
                [sys.executable or "python3", "-I", "-S", str(_REAPER), *told],
                stdin=control,
                stdout=out,
                stderr=subprocess.DEVNULL,
                pass_fds=(report,),
                cwd=folder,
                env=dict(environment),
                start_new_session=True,  # Ctrl-C in a terminal is ours to handle
            )
        except (OSError, ValueError) as error:
            for fd in ours:
                os.close(fd)
            why = getattr(error, "strerror", None) or str(error)
            raise CommandFailed(f"The command could not be started: {why}.") from error
        finally:
            for fd in (control, out, report):
                os.close(fd)

    def request_end(self, by: str = "") -> None:
        """Make the process reaper end the command with everything it started. Returns at once."""
        with self._lock:
            control, self._control = self._control, -1
        if control >= 0:
            if not self.is_finished:
                self.ended_by = by
            os.close(control)

    async def terminate(self, by: str = "") -> None:
        """End the command and wait until nothing of it is left."""
        self.request_end(by)
        if not await self.wait_for(lambda: self.is_finished, ENDING_S):
            with suppress(ProcessLookupError):
                self._process.kill()
            await self.wait_for(lambda: self.is_finished, ENDING_S)

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for the condition; return whether it became true in time."""
        told = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiting.append(told)
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    await told[1].wait()
                    told[1].clear()
        except TimeoutError:
            return condition()
        finally:
            with self._lock:
                self._waiting.remove(told)
        return True

    def _listen_loop(self) -> None:
        poll = select.poll()
        for fd in (self._out, self._report):
            os.set_blocking(fd, False)
            poll.register(fd, select.POLLIN)
        there = True
        while there:
            for fd, _ in poll.poll():
                if fd == self._report:
                    there = self._read_report()
                elif self._read_output() == b"":
                    poll.unregister(fd)
        self._finish()

    def _read_report(self) -> bool:
        """Read the exit code from the reaper; return False once the reaper is gone."""
        said = os.read(self._report, 64)
        if said and self.exit_code is None:
            self.exit_code = int(said.split()[0])
            self._notify_waiters()
        return bool(said)

    def _read_output(self) -> bytes | None:
        """Read some output: return b"" at its end, and None when there is nothing now."""
        try:
            content = os.read(self._out, OUTPUT_CHUNK_BYTES)
        except BlockingIOError:
            return None
        self.output.add(content)
        if self.output.total > OUTPUT_UNHURRIED_BYTES:
            time.sleep(OUTPUT_PAUSE_S)
        return content

    def _finish(self) -> None:
        self._process.wait()
        if self._process.returncode:  # somebody killed the reaper, so nobody looks after its children
            _kill_marked(f"{_MARK}={self._mark}".encode())
        for _ in range(64):  # output that is still in the pipe
            if not self._read_output():
                break
        self.seconds = time.monotonic() - self.started_at
        self.is_finished = True
        self.request_end()
        for fd in (self._out, self._report):
            os.close(fd)
        self._notify_waiters()

    def _notify_waiters(self) -> None:
        with self._lock:
            waiting = tuple(self._waiting)
        for loop, event in waiting:
            with suppress(RuntimeError):  # that event loop is closed, so nobody waits on it
                loop.call_soon_threadsafe(event.set)


def _kill_marked(mark: bytes) -> None:
    """Kill the processes with this mark in their environment, until there are none."""
    for _ in range(100):
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        marked = [pid for pid in pids if _has_mark(pid, mark)]
        if not marked:
            return
        for pid in marked:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _has_mark(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


_SET_DUMPABLE = 4  # PR_SET_DUMPABLE of prctl(2): root owns the /proc files of a process that is not dumpable


def hide_process_environment() -> bool:
    """Hide this process's environment, for good, from other processes of the same user; return whether that worked.

    Commands get an environment without credentials and must not find ours in /proc either. Programs that this process
    starts are not affected. Works on Linux only; root can read everything anyway.
    """
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0)


# Nobody is there to turn a page or to type a password.
_NON_INTERACTIVE = {
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
}
_USER = "the user"


class HostTerminal:
    """Runs the commands of one conversation and keeps track of background processes.

    `environment` is all that commands get, besides variables that keep programs from waiting for input; it must hold no
    credentials.

    A background process belongs to the task of the run that began it (`task_id`, also for calls of sub-agents). Whoever
    gave a run its task lists its processes with `list_running(task_id)` and ends them with `stop_task(task_id)`.
    Processes of a generated task id, which nobody knows, end with `close`.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], timeout_s: float = COMMAND_TIMEOUT_S) -> None:
        self._folder = folder
        self._environment = {"PATH": os.defpath, **environment, **_NON_INTERACTIVE}
        path = self._environment["PATH"]
        self._shell = (shutil.which("bash", path=path) or shutil.which("sh", path=path) or "/bin/sh", "-c")
        self._processes: dict[int, HostCommand] = {}
        self._tasks: dict[int, str] = {}  # the task that each process belongs to
        self._reported: set[int] = set()  # processes whose end the model or the user knows
        self._read_offsets: dict[int, int] = {}  # how far the output of each process was read
        self._foreground: set[HostCommand] = set()
        self._last_number = 0
        self._closed = False
        self.tools: tuple[Tool, ...] = (TerminalTool(self, timeout_s), ProcessTool(self))

    def list_running(self, task_id: str | None = None) -> tuple[str, ...]:
        """Return a line for each running background process, of one task or of all; the line begins with its number."""
        running = self._running_processes(task_id).items()
        return tuple(f"{number} running {each.age_s:.0f} s: {each.title}" for number, each in running)

    def pop_finish_messages(self) -> tuple[str, ...]:
        """Return a sentence for each process that ended by itself and whose end was not reported yet."""
        ended = [
            number for number, each in self._processes.items() if each.is_finished and number not in self._reported
        ]
        self._reported.update(ended)
        return tuple(f"Process {number} {describe_end(self._processes[number])}." for number in ended)

    async def stop(self, number: int | None, by: str = _USER) -> str:
        """End one process, or all of them, with everything they started; return a sentence. Raises UsageError."""
        if number is not None:
            running = self.get_process(number)
            self._reported.add(number)
            if running.is_finished:
                return f"Process {number} had ended before: {running.title}"
            await running.terminate(by)
            return f"Process {number} was ended: {running.title}"
        found = self._running_processes()
        self._reported.update(found)
        everything = [*found.values(), *self._foreground]
        await asyncio.gather(*(each.terminate(by) for each in everything))
        if not everything:
            return "Nothing runs in the background."
        return f"{len(everything)} {'process was' if len(everything) == 1 else 'processes were'} ended."

    async def stop_task(self, task_id: str, by: str = _USER) -> int:
        """End the background processes of a task, with everything they started; return how many there were."""
        found = self._running_processes(task_id)
        self._reported.update(found)
        await asyncio.gather(*(each.terminate(by) for each in found.values()))
        return len(found)

    async def close(self) -> None:
        """End everything. Nothing can be started afterwards."""
        self._closed = True
        await self.stop(None)

    def start(self, command: str, kept: int) -> HostCommand:
        """Start a command. Raises CallDenied, CommandFailed."""
        if reason := refusal_reason(command):
            raise CallDenied(f"Refused, whatever is approved: {reason} Do something smaller, or let the user do it.")
        if self._closed:
            raise CommandFailed("The terminal is closed: this conversation is over.")
        if len(command.encode("utf-8", "replace")) > COMMAND_BYTES or "\0" in command:
            raise CommandFailed(f"A command is text of at most {COMMAND_BYTES} bytes. Put a longer one into a file.")
        return HostCommand(command, self._shell, self._folder, self._environment, kept)

    def register_background(self, running: HostCommand, task_id: str = "") -> int:
        """Return a number for a background process. Raises CommandFailed, and ends it, when there are too many."""
        if len(self._running_processes()) >= BACKGROUND_RUNNING:
            running.request_end()
            raise CommandFailed(f"{BACKGROUND_RUNNING} processes run in the background. End one of them first.")
        self._last_number += 1
        self._processes[self._last_number] = running
        self._tasks[self._last_number] = task_id
        finished = [number for number, each in self._processes.items() if each.is_finished]
        for number in finished[:-BACKGROUND_FINISHED]:
            del self._processes[number], self._tasks[number]
            self._reported.discard(number)
            self._read_offsets.pop(number, None)
        return self._last_number

    def set_foreground(self, running: HostCommand, *, over: bool) -> None:
        (self._foreground.discard if over else self._foreground.add)(running)

    def get_process(self, number: int) -> HostCommand:
        """Return the background process of this number. Raises UsageError."""
        if number not in self._processes:
            known = ", ".join(map(str, self._processes)) or "none"
            raise UsageError(f"There is no process {number}. There are: {known}.")
        return self._processes[number]

    def format_processes(self) -> str:
        self._reported.update(number for number, each in self._processes.items() if each.is_finished)
        lines = [f"{number} {describe_state(each)}: {each.title}" for number, each in self._processes.items()]
        return "\n".join(lines) or "There are no background processes."

    def read_output(self, number: int, offset: int | None) -> tuple[str, bytes]:
        running = self.get_process(number)
        over = running.is_finished  # ask before reading: then the output is known to be complete
        begin = self._read_offsets.get(number, 0) if offset is None else offset
        part = running.output.read_slice(begin, PROCESS_READ_BYTES)
        self._read_offsets[number] = part.end
        if over:
            self._reported.add(number)
        total = running.output.total
        said = f"Process {number} {describe_state(running)}. Bytes {part.start} to {part.end} of {total}"
        if part.lost_bytes:
            said += f"; {part.lost_bytes} before them were not kept"
        return f"{said}." + (f" Go on with offset {part.end}." if part.end < total else ""), part.content

    def _running_processes(self, task_id: str | None = None) -> dict[int, HostCommand]:
        whose = self._tasks
        found = {number: each for number, each in self._processes.items() if not each.is_finished}
        return {number: each for number, each in found.items() if task_id is None or whose[number] == task_id}


def describe_state(running: HostCommand) -> str:
    if running.is_finished:
        return describe_end(running, named=False)
    if running.exit_code is not None:
        return f"left something running for {running.age_s:.0f} s (exit code {running.exit_code})"
    return f"running {running.age_s:.0f} s"


def describe_end(running: HostCommand, *, named: bool = True) -> str:
    how = f"was ended by {running.ended_by}" if running.ended_by else "ended"
    code = f" with exit code {running.exit_code}" if running.exit_code is not None and not running.ended_by else ""
    return f"{how}{code} after {running.seconds:.0f} s" + (f": {running.title}" if named else "")


class TerminalTool:
    """The tool `terminal`: run a command and wait for it, or start it in the background."""

    def __init__(self, terminal: HostTerminal, timeout_s: float) -> None:
        self._terminal = terminal
        self._timeout_s = timeout_s

    @property
    def spec(self) -> ToolSpec:
        return TERMINAL_SPEC

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        if arguments.get("background"):
            return await self._run_in_background(arguments["command"], _task_id(context))
        limit = min(float(arguments.get("timeout_s", self._timeout_s)), COMMAND_TIMEOUT_CAP_S)
        running = self._terminal.start(arguments["command"], COMMAND_KEPT_BYTES)
        self._terminal.set_foreground(running, over=False)
        kept = False
        try:
            await self._wait_with_progress(running, limit, context)
            note = await self._describe_outcome(running, limit, _task_id(context))
            kept = True
        finally:
            self._terminal.set_foreground(running, over=True)
            if not kept:  # interrupted: end everything; `terminate` begins with that before it awaits anything
                context.keep_partial(running.output.full_content())
                await running.terminate()
        return _byte_stream(running.output.full_content(), note)

    async def _wait_with_progress(self, running: HostCommand, limit: float, context: ToolContext) -> None:
        """Wait until the command itself has ended or its time is over, and report its last lines as progress."""
        shown = ""
        while running.exit_code is None and not running.is_finished and running.age_s < limit:
            pause = min(PROGRESS_S, max(0.0, limit - running.age_s))
            if await running.wait_for(lambda: running.is_finished or running.exit_code is not None, pause):
                return
            lines = "\n".join(filter(None, map(_clean_line, running.output.last_lines(PROGRESS_LINES))))
            if lines and lines != shown:
                shown = lines
                context.progress(lines)

    async def _describe_outcome(self, running: HostCommand, limit: float, task_id: str) -> str:
        """Return how the command ended. Processes that it left running become a background process with a number."""
        if running.exit_code is None and not running.is_finished:
            await running.terminate()
            return (
                f"Ended after {limit:g} s with everything it had started. Give a larger timeout_s, at most "
                f"{COMMAND_TIMEOUT_CAP_S:g}, or run it in the background."
            )
        if await running.wait_for(lambda: running.is_finished, LEFT_RUNNING_S):
            if running.ended_by:
                return f"It was ended by {running.ended_by}."
            if running.exit_code is None:
                return "The exit code is unknown: the process that watched the command was killed."
            return f"Exit code {running.exit_code} after {running.seconds:.1f} s."
        try:
            number = self._terminal.register_background(running, task_id)
        except CommandFailed:
            await running.terminate()
            return f"Exit code {running.exit_code}. What it left running was ended: too much runs in the background."
        return f"Exit code {running.exit_code}. Something it started still runs; that is process {number} now."

    async def _run_in_background(self, command: str, task_id: str) -> ToolOutput:
        running = self._terminal.start(command, BACKGROUND_KEPT_BYTES)
        number = self._terminal.register_background(running, task_id)
        try:
            await running.wait_for(lambda: running.is_finished, BACKGROUND_GLANCE_S)
        except asyncio.CancelledError:  # nobody would learn its number
            await running.terminate(_USER)
            raise
        said, content = self._terminal.read_output(number, None)
        return _byte_stream(content, f"In the background. {said}")


class ProcessTool:
    """The tool `process`: list, read and end background processes."""

    def __init__(self, terminal: HostTerminal) -> None:
        self._terminal = terminal

    @property
    def spec(self) -> ToolSpec:
        return PROCESS_SPEC

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        if arguments["action"] == "list":
            return self._terminal.format_processes()
        number = arguments.get("number")
        if number is None:
            raise ArgumentsInvalid(f"To {arguments['action']}, give the number of the process.")
        try:
            if arguments["action"] == "kill":
                return await self._terminal.stop(number, by="you")
            said, content = self._terminal.read_output(number, arguments.get("offset"))
        except UsageError as error:
            raise CommandFailed(str(error)) from error
        return _byte_stream(content, said)


def _task_id(context: ToolContext) -> str:
    return str(context.extras.get("task_id", ""))


def _byte_stream(content: bytes, note: str) -> ByteStream:
    return ByteStream(_chunks(content.replace(b"\0", b"\xef\xbf\xbd")), terminal=True, note=note)


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), OUTPUT_CHUNK_BYTES):
        yield content[at : at + OUTPUT_CHUNK_BYTES]


def _clean_line(line: str) -> str:
    text = TerminalTextCleaner()
    plain = (text.feed(line.encode("utf-8", "replace")) + text.end()).decode("utf-8", "replace")
    return shorten_line("".join(c for c in plain if c.isprintable() or c == " "), PROGRESS_CHARS)

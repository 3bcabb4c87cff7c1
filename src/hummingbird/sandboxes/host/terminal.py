"""Runs commands on the host: in the foreground, or in the background beside the conversation. None outlives it."""

import asyncio
import ctypes
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from hummingbird.core.errors import ArgumentsInvalid, CallDenied, CommandFailed, UsageError
from hummingbird.core.limits import PROGRESS_LINES
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
    LEFT_RUNNING_S,
    OUTPUT_CHUNK_BYTES,
    PROCESS_READ_BYTES,
    PROGRESS_CHARS,
    PROGRESS_S,
)
from hummingbird.core.text import TerminalTextCleaner, shorten_line
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.sandboxes.host.host_command import HostCommand
from hummingbird.sandboxes.host.tool_specs import PROCESS_SPEC, TERMINAL_SPEC

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

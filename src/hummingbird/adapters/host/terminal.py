"""Commands of the host (C5): one that is waited for, many beside the conversation, and none that outlives it."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from hummingbird.adapters.host.running import Running
from hummingbird.adapters.host.terminal_specs import PROCESS, TERMINAL
from hummingbird.domain.catastrophes import catastrophe
from hummingbird.domain.errors import ArgumentsInvalid, CallDenied, CommandFailed, UsageFault
from hummingbird.domain.host_limits import (
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
from hummingbird.domain.plain_text import PlainText
from hummingbird.domain.text import shortened
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import ByteStream, Output, Tool, ToolContext

# Nobody sits there to turn a page or to type a password
_NOBODY_THERE = {
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


class Terminal:
    """`environment` is all that commands get, besides what keeps programs from waiting for somebody: give one without
    credentials.

    What goes on in the background belongs to the task of the run that began it (C2: `task_id`, also of a sub-agent's
    calls): whoever gave a run its task lists it with `standing(task_id)` and ends it with `stop_task(task_id)`. That of
    a task which was made up, so that nobody knows its name, ends with `close`."""

    def __init__(self, folder: Path, environment: Mapping[str, str], timeout_s: float = COMMAND_TIMEOUT_S) -> None:
        self._folder = folder
        self._environment = {"PATH": os.defpath, **environment, **_NOBODY_THERE}
        path = self._environment["PATH"]
        self._shell = (shutil.which("bash", path=path) or shutil.which("sh", path=path) or "/bin/sh", "-c")
        self._numbered: dict[int, Running] = {}
        self._tasks: dict[int, str] = {}  # whose each of them is
        self._told: set[int] = set()  # whose end is known to whoever reads
        self._seen: dict[int, int] = {}  # up to where the output was read
        self._waited_for: set[Running] = set()
        self._last = 0
        self._closed = False
        self.tools: tuple[Tool, ...] = (Commands(self, timeout_s), Processes(self))

    def standing(self, task_id: str | None = None) -> tuple[str, ...]:
        """A line for each that runs in the background, or for those of a task; its number first."""
        running = self._running(task_id).items()
        return tuple(f"{number} running {each.age_s:.0f} s: {each.title}" for number, each in running)

    def news(self) -> tuple[str, ...]:
        """A sentence for each that has ended by itself since this was last asked, and of whose end nobody was told."""
        ended = [number for number, each in self._numbered.items() if each.over and number not in self._told]
        self._told.update(ended)
        return tuple(f"Process {number} {ending(self._numbered[number])}." for number in ended)

    async def stop(self, number: int | None, by: str = _USER) -> str:
        """Ends one, or all of them, with everything they started. A sentence. Raises UsageFault."""
        if number is not None:
            running = self.numbered(number)
            self._told.add(number)
            if running.over:
                return f"Process {number} had ended before: {running.title}"
            await running.end(by)
            return f"Process {number} was ended: {running.title}"
        found = self._running()
        self._told.update(found)
        everything = [*found.values(), *self._waited_for]
        await asyncio.gather(*(each.end(by) for each in everything))
        if not everything:
            return "Nothing runs in the background."
        return f"{len(everything)} {'process was' if len(everything) == 1 else 'processes were'} ended."

    async def stop_task(self, task_id: str, by: str = _USER) -> int:
        """Ends what the runs of this task left in the background, with everything it started. How many there were."""
        found = self._running(task_id)
        self._told.update(found)
        await asyncio.gather(*(each.end(by) for each in found.values()))
        return len(found)

    async def close(self) -> None:
        """Ends everything; nothing can be started afterwards."""
        self._closed = True
        await self.stop(None)

    def start(self, command: str, kept: int) -> Running:
        """Raises CallDenied, CommandFailed."""
        if reason := catastrophe(command):
            raise CallDenied(f"Refused, whatever is approved: {reason} Do something smaller, or let the user do it.")
        if self._closed:
            raise CommandFailed("The terminal is closed: this conversation is over.")
        if len(command.encode("utf-8", "replace")) > COMMAND_BYTES or "\0" in command:
            raise CommandFailed(f"A command is text of at most {COMMAND_BYTES} bytes. Put a longer one into a file.")
        return Running(command, self._shell, self._folder, self._environment, kept)

    def keep(self, running: Running, task_id: str = "") -> int:
        """Its number. Raises CommandFailed if there are too many; then it is being ended."""
        if len(self._running()) >= BACKGROUND_RUNNING:
            running.hang_up()
            raise CommandFailed(f"{BACKGROUND_RUNNING} processes run in the background. End one of them first.")
        self._last += 1
        self._numbered[self._last] = running
        self._tasks[self._last] = task_id
        finished = [number for number, each in self._numbered.items() if each.over]
        for number in finished[:-BACKGROUND_FINISHED]:
            del self._numbered[number], self._tasks[number]
            self._told.discard(number)
            self._seen.pop(number, None)
        return self._last

    def waiting_for(self, running: Running, *, over: bool) -> None:
        (self._waited_for.discard if over else self._waited_for.add)(running)

    def numbered(self, number: int) -> Running:
        """Raises UsageFault."""
        if number not in self._numbered:
            known = ", ".join(map(str, self._numbered)) or "none"
            raise UsageFault(f"There is no process {number}. There are: {known}.")
        return self._numbered[number]

    def listed(self) -> str:
        self._told.update(number for number, each in self._numbered.items() if each.over)
        lines = [f"{number} {state(each)}: {each.title}" for number, each in self._numbered.items()]
        return "\n".join(lines) or "There are no background processes."

    def part(self, number: int, offset: int | None) -> tuple[str, bytes]:
        running = self.numbered(number)
        over = running.over  # before its output: what comes after that is all of it
        begin = self._seen.get(number, 0) if offset is None else offset
        part = running.output.part(begin, PROCESS_READ_BYTES)
        self._seen[number] = part.ends
        if over:
            self._told.add(number)
        total = running.output.total
        said = f"Process {number} {state(running)}. Bytes {part.begins} to {part.ends} of {total}"
        if part.lost:
            said += f"; {part.lost} before them were not kept"
        return f"{said}." + (f" Go on with offset {part.ends}." if part.ends < total else ""), part.content

    def _running(self, task_id: str | None = None) -> dict[int, Running]:
        """All of them, or those of one task."""
        whose = self._tasks
        found = {number: each for number, each in self._numbered.items() if not each.over}
        return {number: each for number, each in found.items() if task_id is None or whose[number] == task_id}


def state(running: Running) -> str:
    if running.over:
        return ending(running, named=False)
    if running.code is not None:
        return f"left something running for {running.age_s:.0f} s (exit code {running.code})"
    return f"running {running.age_s:.0f} s"


def ending(running: Running, *, named: bool = True) -> str:
    how = f"was ended by {running.ended_by}" if running.ended_by else "ended"
    code = f" with exit code {running.code}" if running.code is not None and not running.ended_by else ""
    return f"{how}{code} after {running.seconds:.0f} s" + (f": {running.title}" if named else "")


class Commands:
    """`terminal`."""

    def __init__(self, terminal: Terminal, timeout_s: float) -> None:
        self._terminal = terminal
        self._timeout_s = timeout_s

    @property
    def spec(self) -> ToolSpec:
        return TERMINAL

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        if arguments.get("background"):
            return await self._in_background(arguments["command"], _task_of(context))
        limit = min(float(arguments.get("timeout_s", self._timeout_s)), COMMAND_TIMEOUT_CAP_S)
        running = self._terminal.start(arguments["command"], COMMAND_KEPT_BYTES)
        self._terminal.waiting_for(running, over=False)
        kept = False
        try:
            await self._attended(running, limit, context)
            note = await self._note(running, limit, _task_of(context))
            kept = True
        finally:
            self._terminal.waiting_for(running, over=True)
            if not kept:  # interrupted: all of it goes, and that is under way before anything is awaited
                await running.end()
        return _stream(running.output.whole(), note)

    async def _attended(self, running: Running, limit: float, context: ToolContext) -> None:
        """Until the command itself is over, or its time is."""
        shown = ""
        while running.code is None and not running.over and running.age_s < limit:
            pause = min(PROGRESS_S, max(0.0, limit - running.age_s))
            if await running.until(lambda: running.over or running.code is not None, pause):
                return
            if (line := _clean(running.output.last_line())) and line != shown:
                shown = line
                context.progress(line)

    async def _note(self, running: Running, limit: float, task_id: str) -> str:
        """How it ended; what it left running goes on under a number."""
        if running.code is None and not running.over:
            await running.end()
            return (
                f"Ended after {limit:g} s with everything it had started. Give a larger timeout_s, at most "
                f"{COMMAND_TIMEOUT_CAP_S:g}, or run it in the background."
            )
        if await running.until(lambda: running.over, LEFT_RUNNING_S):
            if running.ended_by:
                return f"It was ended by {running.ended_by}."
            if running.code is None:
                return "Nobody knows how it ended: what watched over it was killed."
            return f"Exit code {running.code} after {running.seconds:.1f} s."
        try:
            number = self._terminal.keep(running, task_id)
        except CommandFailed:
            await running.end()
            return f"Exit code {running.code}. What it left running was ended: too much runs in the background."
        return f"Exit code {running.code}. Something it started still runs; that is process {number} now."

    async def _in_background(self, command: str, task_id: str) -> Output:
        running = self._terminal.start(command, BACKGROUND_KEPT_BYTES)
        number = self._terminal.keep(running, task_id)
        try:
            await running.until(lambda: running.over, BACKGROUND_GLANCE_S)
        except asyncio.CancelledError:  # nobody would ever hear its number
            await running.end(_USER)
            raise
        said, content = self._terminal.part(number, None)
        return _stream(content, f"In the background. {said}")


class Processes:
    """`process`."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    @property
    def spec(self) -> ToolSpec:
        return PROCESS

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        if arguments["action"] == "list":
            return self._terminal.listed()
        number = arguments.get("number")
        if number is None:
            raise ArgumentsInvalid(f"To {arguments['action']}, give the number of the process.")
        try:
            if arguments["action"] == "kill":
                return await self._terminal.stop(number, by="you")
            said, content = self._terminal.part(number, arguments.get("offset"))
        except UsageFault as error:
            raise CommandFailed(str(error)) from error
        return _stream(content, said)


def _task_of(context: ToolContext) -> str:
    return str(context.extras.get("task_id", ""))


def _stream(content: bytes, note: str) -> ByteStream:
    return ByteStream(_pieces(content.replace(b"\0", b"\xef\xbf\xbd")), terminal=True, note=note)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), OUTPUT_CHUNK_BYTES):
        yield content[at : at + OUTPUT_CHUNK_BYTES]


def _clean(line: str) -> str:
    text = PlainText()
    plain = (text.feed(line.encode("utf-8", "replace")) + text.end()).decode("utf-8", "replace")
    return shortened("".join(c for c in plain if c.isprintable() or c == " "), PROGRESS_CHARS)

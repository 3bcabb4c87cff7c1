"""A server that is a program of this machine: started, spoken with over its standard streams, and never left behind.

It gets the variables that it is given, besides PATH, HOME and LANG, and nothing else of our environment. What it
writes on its standard error is kept to its end and reaches no terminal.
"""

import asyncio
import math
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from hummingbird.adapters.mcp.limits import UNREADABLE_LINES, Bounds
from hummingbird.adapters.mcp.lines import Lines, Oversized, lenient
from hummingbird.adapters.mcp.link import Streams, undisturbed
from hummingbird.adapters.mcp.settings import ServerSettings
from hummingbird.adapters.mcp.words import LastWords, Trouble
from hummingbird.domain.errors import MissingSetting

INHERITED = ("PATH", "HOME", "LANG")
_KEEPER = Path(__file__).with_name("keeper.py")
_PIECE_BYTES = 256 * 1024
_LOST = (BrokenPipeError, ConnectionResetError)


class Program:
    """One run of it."""

    def __init__(
        self, settings: ServerSettings, environment: Mapping[str, str], bounds: Bounds, trouble: Trouble
    ) -> None:
        self._settings = settings
        self._bounds = bounds
        self._trouble = trouble
        self._environment = {name: environment[name] for name in INHERITED if name in environment} | dict(settings.env)
        self._last_words = LastWords()
        self._code: int | None = None
        self._unreadable, self._first_unreadable, self._overlong = 0, b"", False

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        """Raises MissingSetting for a command that is not there."""
        from anyio import create_memory_object_stream  # noqa: PLC0415 - comes with the library, which is slow

        process, lifeline = await self._started()
        arriving, incoming = create_memory_object_stream[Any](0)
        outgoing, leaving = create_memory_object_stream[Any](math.inf)  # to write never waits: an interrupt must not
        work = [self._reading(process, arriving), self._writing(process, leaving, arriving), self._listening(process)]
        tasks = [asyncio.ensure_future(each) for each in work]
        try:
            yield incoming, outgoing
        finally:
            incoming.close()  # what is still read is thrown away from here on, so that nothing blocks the program
            outgoing.close()
            try:
                await undisturbed(self._end(process, lifeline, tasks))
            finally:
                arriving.close()
                leaving.close()

    def explained(self, error: BaseException | None) -> str:
        if isinstance(error, MissingSetting):
            return str(error)
        last = self._trouble.quoted(self._last_words.last_line())
        said = f" Its last words: {last}" if last else ""
        advice = "run its command by hand to see why, then mend `command`, `args` or `env`"
        return f"{self._fate(error)}: {advice}.{said}"

    def remarks(self) -> list[str]:
        if not self._unreadable:
            return []
        first = self._trouble.quoted(self._first_unreadable.decode("utf-8", "replace"), 80)
        return [f"writes lines on its standard output that are no messages, which were skipped; the first: {first}"]

    def _fate(self, error: BaseException | None) -> str:
        if self._gone_wild():
            return "does not speak MCP on its standard output"
        if self._overlong:
            return f"sent a message of more than {self._bounds.message_bytes:,} bytes and was ended"
        if error is not None:
            return f"answers, but not as MCP wants it ({self._trouble.quoted(str(error)) or type(error).__name__})"
        return f"ended with status {self._code}" if self._code else "ended"

    def _gone_wild(self) -> bool:
        return self._unreadable >= UNREADABLE_LINES

    async def _started(self) -> tuple[Process, int]:
        command = self._settings.command
        if shutil.which(command, path=self._environment.get("PATH", os.defpath)) is None:
            raise MissingSetting(
                f"cannot be started: there is no program {self._trouble.quoted(command)!r} here that may be run. "
                "Install it, or give `command` with its path."
            )
        ours, theirs = os.pipe()[::-1]
        spawning = asyncio.ensure_future(self._spawned(theirs))
        try:
            return await asyncio.shield(spawning), ours
        except BaseException:  # not swallowed: asyncio does not come back from a start that is cancelled
            os.close(ours)
            with suppress(OSError):
                await (await spawning).wait()
            raise

    async def _spawned(self, lifeline: int) -> Process:
        argv = [sys.executable, "-I", "-S", str(_KEEPER), str(lifeline), self._settings.command, *self._settings.args]
        try:
            return await asyncio.create_subprocess_exec(
                *argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=self._environment,
                pass_fds=(lifeline,),
                start_new_session=True,  # Ctrl-C in a terminal is ours to handle
            )
        except ValueError as error:  # a zero byte
            raise MissingSetting(f"cannot be started: mend `command`, `args` or `env` ({error}).") from error
        finally:
            os.close(lifeline)

    async def _reading(self, process: Process, arriving: Any) -> None:
        """To the end of it, also when nobody listens any more."""
        from anyio import BrokenResourceError, ClosedResourceError  # noqa: PLC0415 - as above

        assert process.stdout is not None
        lines, heard = Lines(self._bounds.message_bytes), True
        while chunk := await process.stdout.read(_PIECE_BYTES):
            for line in lines.feed(chunk) if heard else ():
                try:
                    await self._passed_on(line, arriving)
                except (BrokenResourceError, ClosedResourceError):
                    heard = False
                    break
        arriving.close()

    async def _passed_on(self, line: bytes | Oversized, arriving: Any) -> None:
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 - the library is slow to import

        message = self._message(line)
        if message is not None:
            await arriving.send(SessionMessage(message))
        if self._gone_wild() or self._overlong:
            arriving.close()

    def _message(self, line: bytes | Oversized) -> Any:
        from mcp import types  # noqa: PLC0415 - as above

        if isinstance(line, Oversized):
            return self._too_long(line)
        try:
            return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            try:
                return types.jsonrpc_message_adapter.validate_python(lenient(line), by_name=False)
            except ValueError:
                self._first_unreadable = self._first_unreadable or line[:_PIECE_BYTES]
                self._unreadable += 1
                return None

    def _too_long(self, line: Oversized) -> Any:
        """An error for whoever waits for it; where that is not known, the end of the connection."""
        from mcp import types  # noqa: PLC0415 - as above

        if line.answers is None:
            self._overlong = True
            return None
        words = f"The answer was thrown away: it has more than {self._bounds.message_bytes:,} bytes. Ask for less."
        error = types.ErrorData(code=types.INTERNAL_ERROR, message=words)
        return types.JSONRPCError(jsonrpc="2.0", id=line.answers, error=error)

    async def _writing(self, process: Process, leaving: Any, arriving: Any) -> None:
        assert process.stdin is not None
        try:
            async for each in leaving:
                process.stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
        except _LOST:
            arriving.close()  # it may live on, but nothing that we say is heard any more

    async def _listening(self, process: Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(_PIECE_BYTES):
            self._last_words.feed(chunk)

    async def _end(self, process: Process, lifeline: int, tasks: list[asyncio.Task[None]]) -> None:
        """Asked by the end of its input, then told by the keeper, which does not need longer than we wait."""
        assert process.stdin is not None
        _, writing, _ = tasks
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(writing), self._bounds.leaving_s / 3)  # the word of an interrupt
        process.stdin.close()
        await _over(process, self._bounds.leaving_s)
        os.close(lifeline)
        if not await _over(process, self._bounds.close_s - self._bounds.leaving_s):
            with suppress(ProcessLookupError):
                process.kill()
            await _over(process, self._bounds.close_s)
        self._code = process.returncode
        await asyncio.wait(tasks, timeout=self._bounds.leaving_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        transport: asyncio.BaseTransport = process._transport  # type: ignore[attr-defined]  # the only way to close it
        transport.close()  # where somebody who was not ours to end holds its streams
        with suppress(TimeoutError, *_LOST):
            await asyncio.wait_for(process.stdin.wait_closed(), self._bounds.leaving_s)


async def _over(process: Process, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), seconds)
    return process.returncode is not None

"""Transports to MCP servers: a program on this machine over its standard streams, or an address over HTTP.

A program gets PATH, HOME and LANG, the variables that its settings give it, and nothing else of our environment. The
end of its standard error is kept, and nothing of it reaches the terminal.
"""

import asyncio
import math
import os
import re
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import httpx2

from hummingbird.clients.http_clients import explain_client_errors, load_ssl_context
from hummingbird.core.errors import MissingSetting
from hummingbird.core.json_codec import decode_lenient_json
from hummingbird.mcp import MAX_UNREADABLE_LINES, McpLimits, McpServerSettings
from hummingbird.mcp.server_text import StderrTail, TroubleLog

MessageStreams: TypeAlias = tuple[Any, Any]  # incoming and outgoing messages, as the MCP library expects them


class McpTransport(Protocol):
    """One connection to a server; each connection needs a new transport."""

    def open_streams(self) -> AbstractAsyncContextManager[MessageStreams]:
        """Connect. On exit everything that was started has ended, also when the caller is cancelled."""
        ...

    def explain_failure(self, error: BaseException | None) -> str:
        """Return why there is no connection (any more), and what to do about it.

        The text continues a sentence that begins with the server's name. `error` is what the connection failed with,
        None where it ended by itself.
        """
        ...

    def remarks(self) -> list[str]:
        """Return what else an operator should know, phrased as in `explain_failure`."""
        ...


async def run_uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Run the work to its end, however often we are cancelled meanwhile; then raise CancelledError."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError
    task.result()


_END_BYTES = 512
# Match the id only where it cannot be part of a result: first or last in the object.
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """A line that was too long and was dropped. `request_id` is the request that it answered, if that is known."""

    request_id: int | None


class LineSplitter:
    """Splits a stream of chunks into lines, one message each, and holds no line longer than the limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._chunks: list[bytes] = []
        self._size = 0
        self._head = self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes | OversizedLine]:
        *whole, rest = chunk.split(b"\n")
        found: list[bytes | OversizedLine] = []
        for piece in whole:
            self._add(piece)
            if (line := self._take_line()) != b"":
                found.append(line)
        self._add(rest)
        return found

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._chunks.append(piece)
            return
        self._head = (self._head + b"".join(self._chunks) + piece)[:_END_BYTES]
        self._tail = (self._tail + b"".join(self._chunks)[-_END_BYTES:] + piece)[-_END_BYTES:]
        self._chunks = []

    def _take_line(self) -> bytes | OversizedLine:
        line, ends, size = b"".join(self._chunks).strip(), (self._head, self._tail), self._size
        self._chunks, self._size, self._head, self._tail = [], 0, b"", b""
        if size <= self._limit:
            return line
        answered = _ID_FIRST.match(ends[0]) or _ID_LAST.search(ends[1])
        return OversizedLine(int(answered[1]) if answered else None)


def parse_lenient_json(line: bytes) -> Any:
    """Parse JSON that strict parsers refuse for its encoding (invalid UTF-8, lone surrogates). Raises ValueError."""
    return decode_lenient_json(line.decode("utf-8", "replace"))


INHERITED_VARIABLES = ("PATH", "HOME", "LANG")
_REAPER = Path(__file__).with_name("server_reaper.py")
_PIECE_BYTES = 256 * 1024
_DISCONNECT_ERRORS = (BrokenPipeError, ConnectionResetError)


class McpStdioTransport:
    """A connection to a server that is a program on this machine."""

    def __init__(
        self, settings: McpServerSettings, environment: Mapping[str, str], bounds: McpLimits, trouble: TroubleLog
    ) -> None:
        self._settings = settings
        self._bounds = bounds
        self._trouble = trouble
        self._environment = {name: environment[name] for name in INHERITED_VARIABLES if name in environment} | dict(
            settings.env
        )
        self._stderr_tail = StderrTail()
        self._code: int | None = None
        self._unreadable, self._first_unreadable, self._overlong = 0, b"", False

    @asynccontextmanager
    async def open_streams(self) -> AsyncIterator[MessageStreams]:
        """Start the program. Raises MissingSetting when it does not exist."""
        from anyio import create_memory_object_stream

        process, lifeline = await self._start()
        arriving, incoming = create_memory_object_stream[Any](0)
        outgoing, leaving = create_memory_object_stream[Any](math.inf)  # unbounded: an interrupt must not block on it
        work = [
            self._read_messages(process, arriving),
            self._write_messages(process, leaving, arriving),
            self._collect_stderr(process),
        ]
        tasks = [asyncio.ensure_future(each) for each in work]
        try:
            yield incoming, outgoing
        finally:
            incoming.close()  # from here on, output is read and dropped, so that the program does not block
            outgoing.close()
            try:
                await run_uncancelled(self._stop(process, lifeline, tasks))
            finally:
                arriving.close()
                leaving.close()

    def explain_failure(self, error: BaseException | None) -> str:
        if isinstance(error, MissingSetting):
            return str(error)
        last = self._trouble.quote(self._stderr_tail.last_line())
        said = f" Its last output: {last}" if last else ""
        advice = "run its command by hand to see why, then fix `command`, `args` or `env`"
        return f"{self._describe_failure(error)}: {advice}.{said}"

    def remarks(self) -> list[str]:
        if not self._unreadable:
            return []
        first = self._trouble.quote(self._first_unreadable.decode("utf-8", "replace"), 80)
        return [f"writes lines on its standard output that are not messages, which were skipped; the first: {first}"]

    def _describe_failure(self, error: BaseException | None) -> str:
        if self._has_too_many_unreadable_lines():
            return "does not speak MCP on its standard output"
        if self._overlong:
            return f"sent a message of more than {self._bounds.message_bytes:,} bytes and was ended"
        if error is not None:
            return f"cannot be used as an MCP server ({self._trouble.quote(str(error)) or type(error).__name__})"
        return f"ended with status {self._code}" if self._code else "ended"

    def _has_too_many_unreadable_lines(self) -> bool:
        return self._unreadable >= MAX_UNREADABLE_LINES

    async def _start(self) -> tuple[Process, int]:
        command = self._settings.command
        if shutil.which(command, path=self._environment.get("PATH", os.defpath)) is None:
            raise MissingSetting(
                f"cannot be started: there is no program {self._trouble.quote(command)!r} here that may be run. "
                "Install it, or give `command` with its path."
            )
        ours, theirs = os.pipe()[::-1]
        spawning = asyncio.ensure_future(self._spawn(theirs))
        try:
            return await asyncio.shield(spawning), ours
        except BaseException:  # raised again below; a cancelled asyncio start would lose the process
            os.close(ours)
            with suppress(OSError):
                await (await spawning).wait()
            raise

    async def _spawn(self, lifeline: int) -> Process:
        argv = [sys.executable, "-I", "-S", str(_REAPER), str(lifeline), self._settings.command, *self._settings.args]
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
        except ValueError as error:  # a NUL byte in an argument or a variable
            raise MissingSetting(f"cannot be started: fix `command`, `args` or `env` ({error}).") from error
        finally:
            os.close(lifeline)

    async def _read_messages(self, process: Process, arriving: Any) -> None:
        """Read and forward messages to the end of the output, even when nobody listens any more."""
        from anyio import BrokenResourceError, ClosedResourceError

        assert process.stdout is not None
        lines, heard = LineSplitter(self._bounds.message_bytes), True
        while chunk := await process.stdout.read(_PIECE_BYTES):
            for line in lines.feed(chunk) if heard else ():
                try:
                    await self._forward(line, arriving)
                except (BrokenResourceError, ClosedResourceError):
                    heard = False
                    break
        arriving.close()

    async def _forward(self, line: bytes | OversizedLine, arriving: Any) -> None:
        from mcp.shared.message import SessionMessage

        message = self._parse_message(line)
        if message is not None:
            await arriving.send(SessionMessage(message))
        if self._has_too_many_unreadable_lines() or self._overlong:
            arriving.close()

    def _parse_message(self, line: bytes | OversizedLine) -> Any:
        from mcp import types

        if isinstance(line, OversizedLine):
            return self._reply_to_oversized(line)
        try:
            return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            try:
                return types.jsonrpc_message_adapter.validate_python(parse_lenient_json(line), by_name=False)
            except ValueError:
                self._first_unreadable = self._first_unreadable or line[:_PIECE_BYTES]
                self._unreadable += 1
                return None

    def _reply_to_oversized(self, line: OversizedLine) -> Any:
        """Return an error for the request that the line answered, or end the connection if that is unknown."""
        from mcp import types

        if line.request_id is None:
            self._overlong = True
            return None
        words = f"The answer was thrown away: it has more than {self._bounds.message_bytes:,} bytes. Ask for less."
        error = types.ErrorData(code=types.INTERNAL_ERROR, message=words)
        return types.JSONRPCError(jsonrpc="2.0", id=line.request_id, error=error)

    async def _write_messages(self, process: Process, leaving: Any, arriving: Any) -> None:
        assert process.stdin is not None
        try:
            async for each in leaving:
                process.stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
        except _DISCONNECT_ERRORS:
            arriving.close()  # the server may still run, but it no longer reads what we send

    async def _collect_stderr(self, process: Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(_PIECE_BYTES):
            self._stderr_tail.feed(chunk)

    async def _stop(self, process: Process, lifeline: int, tasks: list[asyncio.Task[None]]) -> None:
        """Close the server's input, then close the lifeline so that the reaper ends it; kill the reaper at last."""
        assert process.stdin is not None
        _, writing, _ = tasks
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(writing), self._bounds.leaving_s / 3)  # let a cancel notice out
        process.stdin.close()
        await _wait_for_exit(process, self._bounds.leaving_s)
        os.close(lifeline)
        if not await _wait_for_exit(process, self._bounds.close_s - self._bounds.leaving_s):
            with suppress(ProcessLookupError):
                process.kill()
            await _wait_for_exit(process, self._bounds.close_s)
        self._code = process.returncode
        await asyncio.wait(tasks, timeout=self._bounds.leaving_s)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        transport: asyncio.BaseTransport = process._transport  # type: ignore[attr-defined]  # the only way to close it
        transport.close()  # a process that we could not end may still hold the streams
        with suppress(TimeoutError, *_DISCONNECT_ERRORS):
            await asyncio.wait_for(process.stdin.wait_closed(), self._bounds.leaving_s)


async def _wait_for_exit(process: Process, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), seconds)
    return process.returncode is not None


_SLACK_S = 30.0  # so that a call times out before its connection does
_EVENT_STREAM_TYPE = "text/event-stream"


class McpHttpTransport:
    """A session with a server at an address.

    The headers go to that address only: the library follows redirects within its origin only. Messages name neither
    headers nor more of the address than its host, because both may hold credentials.
    """

    def __init__(self, settings: McpServerSettings, ca_bundle: str, bounds: McpLimits) -> None:
        self._settings = settings
        self._ca_bundle = ca_bundle
        self._bounds = bounds
        self._client: _BoundedHttpClient | None = None

    @asynccontextmanager
    async def open_streams(self) -> AsyncIterator[MessageStreams]:
        """Connect. Raises MissingSetting for an address, headers, proxies or certificates that cannot be used."""
        from mcp.client.streamable_http import streamable_http_client

        self._client = self._create_client()
        most = self._bounds.message_bytes
        async with (
            self._client as client,
            streamable_http_client(self._settings.url, http_client=client, max_sse_event_size=most) as streams,
        ):
            yield streams

    def explain_failure(self, error: BaseException | None) -> str:
        if isinstance(error, MissingSetting):
            return str(error)
        status = self._client.status if self._client else 0
        if status in (401, 403):
            return f"does not accept us ({status}): check the credential in its `headers`."
        if 300 <= status < 400:
            return f"redirects us elsewhere ({status}), which is not followed: put the right address into its `url`."
        if status >= 500:
            return f"at {self._host_name()} has trouble ({status}): look at its log, or try again later."
        if status >= 400:
            return f"has no MCP endpoint at its `url` ({status}): check the address, its path above all."
        why = f" ({type(error).__name__})" if isinstance(error, httpx2.HTTPError) else ""
        return (
            f"at {self._host_name()} cannot be reached or does not speak MCP{why}: check its `url`, and that it runs."
        )

    def remarks(self) -> list[str]:
        return []

    def _host_name(self) -> str:
        with suppress(httpx2.InvalidURL):
            return httpx2.URL(self._settings.url).host or "its address"
        return "its address"

    def _create_client(self) -> "_BoundedHttpClient":
        try:
            address = httpx2.URL(self._settings.url)
            if address.scheme not in ("http", "https") or not address.host:
                raise httpx2.InvalidURL("no address")
        except httpx2.InvalidURL:
            raise MissingSetting("has no usable `url`: write it like https://mcp.example/mcp.") from None
        try:
            headers = httpx2.Headers({**self._settings.headers, "Accept-Encoding": "identity"}, encoding="ascii")
        except (UnicodeError, TypeError):
            headers = None
        if headers is None or any(set("\r\n\0") & set(value) for value in headers.values()):
            raise MissingSetting("has `headers` with characters that HTTP does not allow: check their values.")
        waiting = httpx2.Timeout(self._bounds.open_s, read=self._settings.timeout_s + _SLACK_S)
        certificates = load_ssl_context(self._ca_bundle)
        with explain_client_errors():
            return _BoundedHttpClient(self._bounds.message_bytes, headers=headers, timeout=waiting, verify=certificates)


class _BoundedHttpClient(httpx2.AsyncClient):
    """Remembers the last status of the server, and stops reading a response that is too long."""

    def __init__(self, limit_bytes: int, **options: Any) -> None:
        super().__init__(**options)
        self._limit = limit_bytes
        self.status = 0

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        self.status = 0
        response = await super().send(request, **options)
        self.status = response.status_code
        if (
            response.headers.get("content-encoding", "identity").lower() != "identity"
        ):  # we asked for none; maybe a bomb
            await response.aclose()
            raise httpx2.DecodingError("the answer is packed", request=request)
        events = response.headers.get("content-type", "").lower().startswith(_EVENT_STREAM_TYPE)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if not (events and request.method == "GET"):  # this stream lasts as long as the session; its events are bounded
            response.stream = _BoundedByteStream(response.stream, self._limit, events=events)
        return response


class _BoundedByteStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, limit_bytes: int, *, events: bool) -> None:
        self._stream = stream
        self._left = limit_bytes
        self._words = f"it has more than {limit_bytes:,} bytes; ask for less"
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:  # the two errors that the library turns into an answer to this one request
                raise httpx2.SSEError(self._words) if self._events else httpx2.StreamError(self._words)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()

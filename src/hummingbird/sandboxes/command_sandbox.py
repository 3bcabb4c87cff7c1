"""The sandbox that all backends share, and the protocols that a backend implements.

Each operation is one call to the runner (`hummingbird.sandboxes.runner`), which the backend starts anew for it.
Backends know neither the messages nor what they mean.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar

import msgspec

from hummingbird.core.errors import CommandFailed, SandboxBroken
from hummingbird.core.json_codec import InvalidJson, decode_json_as
from hummingbird.core.limits import (
    CLIENT_SLACK_S,
    ERROR_TEXT_CHARS,
    EXEC_KEPT_BYTES,
    EXEC_TIMEOUT_S,
    FRAME_BYTES,
    KILL_GRACE_S,
    OVERFLOW_BYTES,
    PROBE_TIMEOUT_S,
    SANDBOX_CPU_S,
    SANDBOX_FILE_BYTES,
    SANDBOX_MEMORY_BYTES,
    SANDBOX_OPEN_FILES,
    TRANSFER_STALL_S,
)
from hummingbird.core.protocols.sandbox import SPILL_FOLDER, Chunks, ExecResult
from hummingbird.core.text import shorten_line
from hummingbird.sandboxes.runner.frames import ENDED, ERR, HEAD, INPUT, INPUT_END, OUT, REQUEST, frame


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """How a call to the runner ended on our side.

    Attributes:
        killed: The runner was killed, and nothing else went wrong.
        error_output: What the program that carried the call (podman, kubectl) wrote to stderr, for error messages.
        memory_ran_out: The kernel killed a process of the sandbox meanwhile, because the sandbox's memory ran out.
        is_lost: If there was no reply, the connection broke and the sandbox itself may be well.
    """

    killed: bool = False
    error_output: str = ""
    memory_ran_out: bool = False
    is_lost: bool = False


class RunnerLink(Protocol):
    """One connection to the runner. The runner ends its work when the stream to it breaks off."""

    @property
    def reader(self) -> asyncio.StreamReader: ...

    @property
    def writer(self) -> asyncio.StreamWriter: ...

    async def close(self) -> LinkEnd:
        """Close the connection and leave no process of it on this machine. Never raises.

        Wait shortly for the runner to end its work.
        """
        ...


class SandboxBackend(Protocol):
    """Where the runner runs: a bubblewrap process, a container or a pod."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None:
        """Start the place.

        Raises SandboxUnavailable when this machine or cluster cannot provide it, SandboxBroken when it should have
        worked.
        """
        ...

    async def connect(self) -> RunnerLink:
        """Start the runner and return the connection to it. Raises SandboxBroken."""
        ...

    async def remove(self) -> None:
        """Remove the place and everything in it. May be called at any time and more than once.

        Raises SandboxBroken when something may be left behind.
        """
        ...

    async def linger(self, session_id: str) -> None:
        """Keep the place for a reply to this session, or remove it where the backend cannot keep it."""
        ...


T = TypeVar("T")
ByteCount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class RunnerReply(msgspec.Struct, frozen=True):
    """How a piece of work ended, as the runner says."""

    exit_code: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0
    timed_out: bool = False
    stdout_bytes: ByteCount = 0
    stderr_bytes: ByteCount = 0
    stdout_file: str = ""
    stderr_file: str = ""
    complaint: str = ""
    bytes: ByteCount = 0
    error: str = ""


class RunnerCall:
    """One call to the runner: send a request and input, receive frames, then the reply.

    Iterate `frames` for what a command writes. `reply` is set once the work ended; it stays None when the connection
    broke off. Untrusted commands run beside the runner, so the length and content of everything it sends is checked.

    Args:
        link: The connection to the runner.
        patience_s: How long we wait for the runner altogether, not counting the time in which our caller looks at what
            came. None for transfers, which may take any time, but not `TRANSFER_STALL_S` without progress.
        wanted: The kinds of frames that may come, and how many bytes of each; None for any number.
    """

    def __init__(self, link: RunnerLink, patience_s: float | None, wanted: Mapping[bytes, int | None]) -> None:
        self._link = link
        self._feeding: asyncio.Task[None] | None = None
        self._patience_s = patience_s
        self._waited_s = 0.0
        self._wanted = dict(wanted)
        self.reply: RunnerReply | None = None
        self.link_end = LinkEnd()

    def send_request(self, request: dict[str, Any], chunks: Chunks) -> None:
        asked = json.dumps(request).encode()  # not msgspec: paths may hold bytes that are not UTF-8
        self._link.writer.write(frame(REQUEST, asked))
        self._feeding = asyncio.create_task(self._feed(chunks))

    async def _feed(self, chunks: Chunks) -> None:
        writer = self._link.writer
        try:
            async for chunk in chunks:
                view = memoryview(chunk)
                for start in range(0, len(view), FRAME_BYTES):
                    piece = view[start : start + FRAME_BYTES]
                    writer.write(HEAD.pack(INPUT, len(piece)))
                    writer.write(piece)
                    await self._drain_writer()
            writer.write(frame(INPUT_END, b""))
            await self._drain_writer()
        except ConnectionError:
            pass  # the runner has ended; its reply says how
        finally:
            if isinstance(chunks, AsyncGenerator):
                await chunks.aclose()  # the input may be a command of another sandbox, which must not wait for us

    async def _drain_writer(self) -> None:
        if self._patience_s is not None:  # a command may leave its input unread for as long as it runs
            await self._link.writer.drain()
            return
        try:
            async with asyncio.timeout(TRANSFER_STALL_S):
                await self._link.writer.drain()
        except TimeoutError as error:
            raise SandboxBroken(f"The sandbox read nothing for {TRANSFER_STALL_S:g} s. {RESTART_HINT}") from error

    async def frames(self) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield what the command writes to stdout and stderr, until it ends. Raises what the input's source raised."""
        while self.reply is None:
            found = await self._next_frame()
            if found is None:
                return
            kind, content = found
            if kind == ENDED:
                self.reply = _decode_reply(content)
            else:
                self._check_frame(kind, len(content))
                yield kind, content

    def _check_frame(self, kind: bytes, size: int) -> None:
        if kind not in self._wanted or not size:
            raise SandboxBroken(f"The sandbox sent something unknown ({kind!r}). {RESTART_HINT}")
        if (left := self._wanted[kind]) is not None:
            if size > left:
                raise SandboxBroken(f"The sandbox sent more than it was asked for. {RESTART_HINT}")
            self._wanted[kind] = left - size

    async def _next_frame(self) -> tuple[bytes, bytes] | None:
        """Return the next frame, or None when the stream breaks off. Raises what the input's source raised."""
        if self._feeding is None:
            return await self._wait_within_timeout(self._read_frame())
        reading = asyncio.ensure_future(self._read_frame())
        both: set[asyncio.Future[Any]] = {reading, self._feeding}
        try:
            await self._wait_within_timeout(asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED))
            if self._feeding.done():
                fed, self._feeding = self._feeding, None
                fed.result()
            return await self._wait_within_timeout(reading)
        finally:
            reading.cancel()
            await asyncio.wait({reading})  # a stream allows only one reader, and closing the link reads too

    async def _wait_within_timeout(self, awaited: Awaitable[T]) -> T:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._remaining_s()):
                return await awaited
        except TimeoutError as error:
            raise SandboxBroken(f"The sandbox did not answer in time. {RESTART_HINT}") from error
        finally:
            self._waited_s += clock() - began

    def _remaining_s(self) -> float | None:
        if self._patience_s is None:
            return TRANSFER_STALL_S if self._feeding is None else None
        return max(0.0, self._patience_s - self._waited_s)

    async def _read_frame(self) -> tuple[bytes, bytes] | None:
        reader = self._link.reader
        try:
            kind, size = HEAD.unpack(await reader.readexactly(HEAD.size))
            if size > FRAME_BYTES:
                raise SandboxBroken(f"The sandbox announced {size} bytes at once. {RESTART_HINT}")
            return kind, await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def close(self) -> None:
        """Close the connection, which ends work that is still running."""
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.wait({self._feeding})
            if not self._feeding.cancelled():
                self._feeding.exception()  # mark as retrieved: an error of the input no longer matters after the end
        self.link_end = await self._link.close()


RESTART_HINT = "Start a new sandbox; if it happens again, run `hummingbird sandbox check`."


def _decode_reply(content: bytes) -> RunnerReply:
    try:
        return decode_json_as(content, RunnerReply)
    except InvalidJson as error:
        raise SandboxBroken(f"The sandbox's reply cannot be read. {RESTART_HINT}") from error


_MEMORY_RAN_OUT = "the kernel ended a process because the sandbox's memory ran out"
_KILLED = "the command or the memory limit killed the process that ran it"
_CONNECTION_LOST = (
    "the connection to the sandbox was lost, which ended what ran there; the sandbox and its files are still there, so "
    "run it again"
)
SIGKILL_EXIT_CODE = 137  # what a shell returns for a process that got SIGKILL
PROCESS_LIMITS = {
    "CORE": 0,
    "CPU": SANDBOX_CPU_S,
    "DATA": SANDBOX_MEMORY_BYTES,  # not AS: node, java and go reserve address space that they never use
    "FSIZE": SANDBOX_FILE_BYTES,
    "NOFILE": SANDBOX_OPEN_FILES,
}


class CommandSandbox:
    """A sandbox that runs commands and moves files through the runner in a backend's place.

    `memory_bytes` is the memory limit of each process of a command; the default is that of PROCESS_LIMITS.
    """

    def __init__(self, place: SandboxBackend, memory_bytes: int | None = None) -> None:
        self._backend = place
        self._memory = {} if memory_bytes is None else {"DATA": memory_bytes}
        self._output_file_count = 0

    @property
    def name(self) -> str:
        return self._backend.name

    async def start(self) -> None:
        await self._backend.start()

    async def exec(
        self,
        command: str,
        stdin: bytes | Chunks = b"",
        *,
        timeout_s: float = EXEC_TIMEOUT_S,
        stdout_file: str = "",
        stderr_file: str = "",
    ) -> ExecResult:
        self._output_file_count += 1
        files = {
            "stdout_file": stdout_file or f"{SPILL_FOLDER}/.stdout-{self._output_file_count}",
            "stderr_file": stderr_file or f"{SPILL_FOLDER}/.stderr-{self._output_file_count}",
        }
        kept = {OUT: bytearray(), ERR: bytearray()}
        chunks = _single_chunk(stdin) if isinstance(stdin, bytes) else stdin
        request = {**self._exec_request(command, timeout_s), **files, "keep": EXEC_KEPT_BYTES}
        wanted = dict.fromkeys(kept, EXEC_KEPT_BYTES)
        async with self._call_runner(request, chunks, wanted, timeout_s) as talk:
            async for kind, content in talk.frames():
                kept[kind] += content
        facts = await self._final_reply(talk)
        return ExecResult(
            exit_code=facts.exit_code,
            stdout=bytes(kept[OUT]),
            stderr=bytes(kept[ERR]),
            timed_out=facts.timed_out,
            stdout_bytes=facts.stdout_bytes or len(kept[OUT]),
            stderr_bytes=facts.stderr_bytes or len(kept[ERR]),
            stdout_file=facts.stdout_file,
            stderr_file=facts.stderr_file,
            complaint=facts.complaint,
        )

    async def write_file(self, path: str, content: bytes) -> None:
        await self.stream_to_file(path, _single_chunk(content))

    async def stream_to_file(self, path: str, chunks: Chunks) -> int:
        async with self._call_runner({"do": "write", "path": path}, chunks, {}) as talk:
            async for _ in talk.frames():
                pass
        facts = await self._final_reply(talk)
        _raise_for_file_error(path, "written", facts)
        return facts.bytes

    async def stream_exec(
        self, command: str, stdin: Chunks | None = None, *, timeout_s: float = EXEC_TIMEOUT_S
    ) -> AsyncGenerator[bytes, None]:
        words = bytearray()
        chunks = _single_chunk(b"") if stdin is None else stdin
        wanted = {OUT: None, ERR: EXEC_KEPT_BYTES}
        async with self._call_runner(self._exec_request(command, timeout_s), chunks, wanted, timeout_s) as talk:
            async for kind, content in talk.frames():
                if kind == OUT:
                    yield content
                else:
                    words += content
        _raise_for_exit_code(await self._final_reply(talk), bytes(words), timeout_s)

    async def read_file_iter(self, path: str) -> AsyncGenerator[bytes, None]:
        async with self._call_runner({"do": "read", "path": path}, _single_chunk(b""), {OUT: None}) as talk:
            async for _, content in talk.frames():
                yield content
        _raise_for_file_error(path, "read", await self._final_reply(talk))

    async def cleanup(self) -> None:
        await self._backend.remove()

    async def linger(self, session_id: str) -> None:
        await self._backend.linger(session_id)

    def _exec_request(self, command: str, timeout_s: float) -> dict[str, Any]:
        return {
            "do": "exec",
            "command": command,
            "timeout_s": timeout_s,
            "grace_s": KILL_GRACE_S,
            "keep": None,
            "most": OVERFLOW_BYTES,
            "stdout_file": "",
            "stderr_file": "",
            "limits": {**PROCESS_LIMITS, **self._memory},
        }

    @asynccontextmanager
    async def _call_runner(
        self,
        request: dict[str, Any],
        chunks: Chunks,
        wanted: Mapping[bytes, int | None],
        timeout_s: float | None = None,
    ) -> AsyncIterator[RunnerCall]:
        answer_timeout_s = None if timeout_s is None else timeout_s + KILL_GRACE_S + CLIENT_SLACK_S
        talk = RunnerCall(await self._backend.connect(), answer_timeout_s, wanted)
        talk.send_request(request, chunks)
        try:
            yield talk
        finally:
            await talk.close()

    async def _final_reply(self, talk: RunnerCall) -> RunnerReply:
        reply = talk.reply or await self._reply_for_lost_runner(talk)
        if reply.exit_code and talk.link_end.memory_ran_out:
            return msgspec.structs.replace(reply, complaint=_MEMORY_RAN_OUT)
        return reply

    async def _reply_for_lost_runner(self, broken: RunnerCall) -> RunnerReply:
        """Return the reply for a call that broke off, or raise SandboxBroken.

        When the sandbox still answers, the command killed its runner, and itself with it, or only the connection was
        lost, which ends the command too. Otherwise the sandbox is broken, which must never look like the outcome of a
        command.
        """
        end = broken.link_end
        if (end.killed or end.is_lost) and await self._is_responding():
            return RunnerReply(exit_code=SIGKILL_EXIT_CODE, complaint=_KILLED if end.killed else _CONNECTION_LOST)
        words = _MEMORY_RAN_OUT if broken.link_end.memory_ran_out else broken.link_end.error_output
        words = shorten_line(words, ERROR_TEXT_CHARS)
        words = words or "the connection to it was lost, and nothing says why."
        raise SandboxBroken(f"The {self.name} sandbox broke off: {words} {RESTART_HINT}")

    async def _is_responding(self) -> bool:
        try:
            async with self._call_runner({"do": "read", "path": "/"}, _single_chunk(b""), {}, PROBE_TIMEOUT_S) as talk:
                async for _ in talk.frames():
                    pass
        except SandboxBroken:
            return False
        return talk.reply is not None


async def _single_chunk(content: bytes) -> AsyncIterator[bytes]:
    if content:
        yield content


def _raise_for_file_error(path: str, done: str, facts: RunnerReply) -> None:
    if facts.error or facts.exit_code:
        why = facts.error or facts.complaint
        raise CommandFailed(f"{shorten_line(path, 200)} could not be {done} in the sandbox: {shorten_line(why, 200)}.")


def _raise_for_exit_code(facts: RunnerReply, words: bytes, timeout_s: float) -> None:
    if facts.timed_out:
        raise CommandFailed(f"The command was ended after {timeout_s:g} s.", facts.exit_code)
    if facts.exit_code:
        said = shorten_line(words.decode("utf-8", "replace"), ERROR_TEXT_CHARS) or facts.complaint
        raise CommandFailed(f"The command ended with exit code {facts.exit_code}. {said}".rstrip(), facts.exit_code)

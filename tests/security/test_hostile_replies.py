"""Whoever took over the program inside can say what he likes: it makes a broken sandbox, never a large memory, a wait
without end, or the outcome of a command."""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from hummingbird.core.errors import SandboxBroken
from hummingbird.core.limits import EXEC_KEPT_BYTES, FRAME_BYTES
from hummingbird.sandboxes import bubblewrap, command_sandbox
from hummingbird.sandboxes.bubblewrap import SocketLink
from hummingbird.sandboxes.command_sandbox import CommandSandbox

Speech = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MUCH = 64 * 1024 * 1024


class Impostor:
    """A place whose program inside says what a test wants."""

    name = "impostor"

    def __init__(self, speech: Speech) -> None:
        self._speech = speech
        self._speaking: list[asyncio.Task[None]] = []

    async def start(self) -> None: ...

    async def connect(self) -> SocketLink:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=theirs)
        self._speaking.append(asyncio.create_task(self._speak(reader, writer)))
        return SocketLink(*await asyncio.open_connection(sock=ours, limit=FRAME_BYTES))

    async def _speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                await self._speech(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def remove(self) -> None:
        for task in self._speaking:
            task.cancel()
        await asyncio.gather(*self._speaking, return_exceptions=True)

    async def linger(self, session_id: str) -> None: ...


def frame(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">cI", kind, len(content)) + content


def saying(*words: bytes) -> Speech:
    async def speech(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.writelines(words)
        await reader.read()

    return speech


def repeating(word: bytes, pause_s: float = 0.0) -> Speech:
    """Without end; but a test that takes it all in must end too."""

    async def speech(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(MUCH // len(word)):
            writer.write(word)
            await writer.drain()
            await asyncio.sleep(pause_s)
        raise AssertionError("somebody listened to all of it")

    return speech


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(frame(b"O", b"half of it")[:-3])


async def run(sandbox: CommandSandbox) -> object:
    return await sandbox.exec("true", timeout_s=0.1)


async def stream(sandbox: CommandSandbox) -> object:
    return [chunk async for chunk in sandbox.stream_exec("true", timeout_s=0.1)]


async def read(sandbox: CommandSandbox) -> object:
    return [chunk async for chunk in sandbox.read_file_iter("/tmp/data/x")]


async def write(sandbox: CommandSandbox) -> object:
    return await sandbox.stream_to_file("/tmp/data/x", _chunks())


async def _chunks() -> AsyncIterator[bytes]:
    yield b"some"
    yield b"thing"


VERBS = {"exec": run, "stream_exec": stream, "read_file_iter": read, "stream_to_file": write}
HONEST = frame(b"X", json.dumps({"exit_code": 0, "bytes": 9}).encode())
LIES: dict[str, Speech] = {
    "a frame of four gigabytes": saying(struct.pack(">cI", b"O", 2**32 - 1)),
    "an end of four gigabytes": saying(struct.pack(">cI", b"X", 2**32 - 1)),
    "a frame a little too long": saying(struct.pack(">cI", b"O", FRAME_BYTES + 1), b"x" * (FRAME_BYTES + 1)),
    "a frame of an unknown kind": saying(frame(b"Q", b"hello")),
    "a request of its own": saying(frame(b"R", b'{"do": "exec"}')),
    "an end that is not JSON": saying(frame(b"X", b"{exit_code: 0")),
    "an end that is a list": saying(frame(b"X", b"[0]")),
    "an end of the wrong types": saying(frame(b"X", b'{"exit_code": "0", "timed_out": 7}')),
    "an end that is a deep nest": saying(frame(b"X", b'{"more":' + b"[" * 100_000)),
    "an exit code that no command has": saying(frame(b"X", b'{"exit_code": 99999999999999999999}')),
    "less than nothing": saying(frame(b"X", b'{"stdout_bytes": -1}')),
    "an end that is not text": saying(frame(b"X", b"\xff\xfe\x00")),
    "nothing": silence,
    "half a frame": hang_up,
    "frames of nothing without end": repeating(frame(b"O", b"")),
    "errors without end": repeating(frame(b"F", b"x" * 1000)),
    "a letter now and then": repeating(frame(b"F", b"x"), 0.02),
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_sandbox, "CLIENT_SLACK_S", 0.2)
    monkeypatch.setattr(command_sandbox, "KILL_GRACE_S", 0.0)
    monkeypatch.setattr(command_sandbox, "PROBE_TIMEOUT_S", 0.2)
    monkeypatch.setattr(command_sandbox, "TRANSFER_STALL_S", 0.3)
    monkeypatch.setattr(bubblewrap, "CLIENT_LEAVING_S", 0.2)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tells the truth is believed although the machine is busy."""
    for module, name in (
        (command_sandbox, "CLIENT_SLACK_S"),
        (command_sandbox, "PROBE_TIMEOUT_S"),
        (command_sandbox, "TRANSFER_STALL_S"),
    ):
        monkeypatch.setattr(module, name, 60.0)


async def told(speech: Speech, verb: str) -> object:
    place = Impostor(speech)
    try:
        return await asyncio.wait_for(VERBS[verb](CommandSandbox(place)), 60)
    finally:
        await place.remove()


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_of_the_program_inside_is_a_broken_sandbox(lie: str, verb: str) -> None:
    with pytest.raises(SandboxBroken):
        await told(LIES[lie], verb)


@pytest.mark.parametrize("verb", ["exec", "stream_to_file"])
async def test_more_output_than_was_asked_for_is_a_broken_sandbox(verb: str) -> None:
    with pytest.raises(SandboxBroken):
        await told(repeating(frame(b"O", b"x" * 10_000)), verb)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("verb", VERBS)
async def test_the_truth_told_in_the_same_way_is_believed(verb: str) -> None:
    """Else nothing would follow from the lies."""
    content = b"" if verb == "stream_to_file" else frame(b"O", b"word")
    wanted = {"exec": b"word", "stream_exec": [b"word"], "read_file_iter": [b"word"], "stream_to_file": 9}
    answer = await told(saying(content, HONEST), verb)
    assert getattr(answer, "stdout", answer) == wanted[verb]


@pytest.mark.usefixtures("patient")
async def test_a_claim_of_ten_gigabytes_takes_no_memory() -> None:
    claim = json.dumps({"exit_code": 0, "stdout_bytes": 10**10, "stderr_bytes": 10**10}).encode()
    answer = await told(saying(frame(b"O", b"x" * 100), frame(b"X", claim)), "exec")
    assert len(getattr(answer, "stdout")) == 100  # noqa: B009 - of an object that VERBS does not name
    assert EXEC_KEPT_BYTES < 1024**2


@pytest.mark.usefixtures("patient")
async def test_words_after_the_end_are_not_waited_for() -> None:
    async def talkative(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HONEST)
        await repeating(frame(b"O", b"x" * 10_000), 0.001)(reader, writer)

    assert getattr(await told(talkative, "exec"), "exit_code") == 0  # noqa: B009 - as above

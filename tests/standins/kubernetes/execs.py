"""Commands in pods: a WebSocket on one side, `podman exec` on the other, and the real one's habits between them.

A client that goes leaves its command running; the command's stdin ends then. A command that cannot be started is an
error of the API (kubectl: 1), not an exit code. Nothing is buffered beyond what pipes hold: whoever does not read
makes the other side wait.
"""

import asyncio
import re
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.standins.kubernetes import channels
from tests.standins.kubernetes.podman import Podman

_CHUNK = 32 * 1024
# what podman itself says when it could not start the command; the command has said nothing then
_PODMAN_FAILED = ("Error: runc:", "Error: crun:", "Error: can only create exec", "Error: no container", "Error: OCI ")
_PODMAN_CODES = {125, 126, 127, 255}
_LONGEST_COMPLAINT = 4096
# Byte for byte what containerd 1.6 does now and then: stdin that the command left unread keeps the exec from ending.
_UNREAD_HANGS = 'n=0; "$@" || n=$?; [ "$(head -c 1 | wc -c)" = 0 ] || sleep 86400; exit $n'


@dataclass(frozen=True, slots=True)
class Target:
    """Where a command runs: the container as podman names it, and as the pod does."""

    container: str | None
    name: str


@dataclass(frozen=True, slots=True)
class Wish:
    command: Sequence[str]
    stdin: bool
    stdout: bool
    stderr: bool


class Execs:
    def __init__(self, podman: Podman) -> None:
        self._podman = podman
        self._processes: set[Process] = set()
        self.unread_stdin_hangs = False

    async def serve(self, socket: WebSocket, target: Target, wish: Wish) -> None:
        offered = socket.scope.get("subprotocols") or []
        chosen = next((each for each in (channels.V5, channels.V4) if each in offered), None)
        await socket.accept(subprotocol=chosen)
        with suppress(WebSocketDisconnect, RuntimeError):  # the client may be gone before the answer
            # the real one sends an empty message first; clients that cannot take one have failed before
            await socket.send_bytes(channels.message(channels.STDOUT, b""))
        verdict = await self._run(socket, target, wish)
        with suppress(WebSocketDisconnect, RuntimeError):
            await socket.send_bytes(verdict)
            await socket.close()

    async def _run(self, socket: WebSocket, target: Target, wish: Wish) -> bytes:
        if target.container is None:
            return _no_container(target)
        command = ["sh", "-c", _UNREAD_HANGS, "sh", *wish.command] if self._hangs(wish) else wish.command
        flags = ["--interactive"] if wish.stdin else []
        process = await self._podman.spawn("exec", *flags, target.container, *command, stdin=wish.stdin)
        self._processes.add(process)
        feeding = asyncio.create_task(_feed(socket, process))
        try:
            return await self._finish(socket, process, target, wish)
        finally:
            self._processes.discard(process)
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)

    def _hangs(self, wish: Wish) -> bool:
        return self.unread_stdin_hangs and wish.stdin

    async def _finish(self, socket: WebSocket, process: Process, target: Target, wish: Wish) -> bytes:
        out = _Outlet(socket, channels.STDOUT, wanted=wish.stdout)
        err = _Outlet(socket, channels.STDERR, wanted=wish.stderr)
        assert process.stdout is not None
        assert process.stderr is not None
        _, complaint = await asyncio.gather(_pump(process.stdout, out), _pump_errors(process.stderr, err))
        code = await process.wait()
        if complaint and code in _PODMAN_CODES:
            return _not_started(complaint.decode(errors="replace").strip(), target)
        await err.send(complaint)
        return channels.exit_status(code) if code else channels.success()

    def close(self) -> None:
        """Let go of the clients of commands whose containers are removed."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()


class _Outlet:
    """One channel towards the client. Once the client is gone, what comes is thrown away and the command goes on."""

    def __init__(self, socket: WebSocket, channel: int, *, wanted: bool) -> None:
        self._socket = socket
        self._channel = channel
        self._open = wanted

    async def send(self, content: bytes) -> None:
        if not content or not self._open:
            return
        try:
            await self._socket.send_bytes(channels.message(self._channel, content))
        except (WebSocketDisconnect, RuntimeError):
            self._open = False


async def _pump(source: asyncio.StreamReader, outlet: _Outlet) -> None:
    while content := await source.read(_CHUNK):
        await outlet.send(content)


async def _pump_errors(source: asyncio.StreamReader, outlet: _Outlet) -> bytes:
    """Like _pump, but what may be podman's own complaint is kept back and returned."""
    held = b""
    while len(held) < _LONGEST_COMPLAINT and _may_be_podman(held):
        content = await source.read(_CHUNK)
        if not content:
            return held
        held += content
    await outlet.send(held)
    await _pump(source, outlet)
    return b""


def _may_be_podman(held: bytes) -> bool:
    words = held.decode(errors="replace")
    return any(known.startswith(words) or words.startswith(known) for known in _PODMAN_FAILED)


async def _feed(socket: WebSocket, process: Process) -> None:
    """The client's stdin into the command, until it says that it has no more, or goes."""
    try:
        while (content := await _next_stdin(socket)) is not None:
            if process.stdin is not None:
                process.stdin.write(content)
                await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the command reads no more
    finally:
        if process.stdin is not None:
            process.stdin.close()
    await _listen(socket)


async def _next_stdin(socket: WebSocket) -> bytes | None:
    while True:
        event = await socket.receive()
        if event["type"] == "websocket.disconnect":
            return None
        received: bytes = event.get("bytes") or (event.get("text") or "").encode()
        if received[:2] == bytes((channels.CLOSE, channels.STDIN)):
            return None
        if received[:1] == bytes((channels.STDIN,)):
            return received[1:]


async def _listen(socket: WebSocket) -> None:
    """Keep on reading, so that pings are answered and a leaving client is noticed."""
    with suppress(RuntimeError):
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass


def _no_container(target: Target) -> bytes:
    return channels.internal_error(f'unable to upgrade connection: container not found ("{target.name}")')


def _not_started(complaint: str, target: Target) -> bytes:
    if not re.match(r"Error: (runc|crun|OCI )", complaint):
        return _no_container(target)
    words = re.sub(r"^Error: (runc: |crun: )?", "", complaint).rpartition(": OCI ")[0] or complaint
    return channels.internal_error(
        "error executing command in container: failed to exec in container: failed to start exec: "
        f"OCI runtime exec failed: {words}: unknown"
    )

"""The embedded sandbox on Linux (X3): one bubblewrap process that lives as long as the sandbox.

Inside it, process 1 is the program of `inside`. It is given a socket for each conversation and nothing else: no host
path can be written from inside, /tmp is memory that dies with it, and there is neither a network nor a variable of
ours.
"""

import asyncio
import os
import socket
import sys
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from hummingbird.adapters.sandboxes.bubblewrap_options import OWN_PYTHON, WRITTEN, Room, options
from hummingbird.adapters.sandboxes.bubblewrap_program import (
    explained,
    found_bubblewrap,
    launch,
    own_python,
    system_python,
)
from hummingbird.adapters.sandboxes.finishing import finished, let_go
from hummingbird.adapters.sandboxes.link import Farewell
from hummingbird.adapters.sandboxes.source import loader, program
from hummingbird.adapters.sandboxes.syscalls import filter_program
from hummingbird.adapters.sandboxes.talk import AGAIN
from hummingbird.domain.errors import SandboxBroken, SandboxUnavailable
from hummingbird.domain.limits import CLIENT_LEAVING_S, CLIENT_WORDS_BYTES, FRAME_BYTES, SANDBOX_START_S

READY = b"ready"


class SocketLink:
    """One conversation over a socket whose other end is inside."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def end(self) -> Farewell:
        with suppress(OSError):
            self.writer.write_eof()
        try:
            async with asyncio.timeout(CLIENT_LEAVING_S):
                while await self.reader.read(FRAME_BYTES):
                    pass  # the program inside closes its end once nothing that it started is left
        except (TimeoutError, ConnectionError):
            pass
        finally:
            self.writer.close()
        return Farewell(killed=True)


class BubblewrapPlace:
    """`program`: the bwrap to use instead of the one that is found."""

    name = "bubblewrap"

    def __init__(self, room: Room | None = None, program: Path | None = None) -> None:
        self._room = room or Room()
        self._program = program
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._words = b""
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if sys.platform != "linux":
            raise SandboxUnavailable("bubblewrap works on Linux only; use the podman sandbox.")
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._control = ours
        try:
            with closing(theirs):
                await finished(self._launch(theirs.fileno()))  # asyncio never comes back from a cancelled launch
            if not await self._is_ready(ours):
                raise SandboxUnavailable(explained(await self._last_words()))
        except BaseException:
            await self.remove()
            raise

    async def connect(self) -> SocketLink:
        control = self._control
        if control is None or (self._process is not None and self._process.returncode is not None):
            raise SandboxBroken(f"The bubblewrap sandbox is not running. {AGAIN}")
        ours, theirs = socket.socketpair()
        with closing(theirs):
            try:
                socket.send_fds(control, [b"c"], [theirs.fileno()])
            except OSError as error:
                ours.close()
                raise SandboxBroken(f"The bubblewrap sandbox has ended ({error.strerror}). {AGAIN}") from error
        ours.setblocking(False)
        return SocketLink(*await asyncio.open_connection(sock=ours, limit=FRAME_BYTES))

    async def remove(self) -> None:
        if self._control is not None:
            self._control.close()  # process 1 ends when it sees that, and everything inside with it
            self._control = None
        if (process := self._process) is not None:
            try:
                async with asyncio.timeout(CLIENT_LEAVING_S):
                    await process.wait()
            except TimeoutError:
                with suppress(ProcessLookupError):
                    process.kill()
            await let_go(process, *([self._listening] if self._listening is not None else []))
            self._process = self._listening = None

    async def linger(self, session_id: str) -> None:
        await self.remove()

    async def _launch(self, control: int) -> None:
        """Bubblewrap reads its options from a descriptor, so that no path of the host stands in a list of processes."""
        with ExitStack() as held:
            seccomp = _readable(filter_program(), held)
            written = {name: _readable(text.encode(), held) for name, text in WRITTEN.items()}
            python, brought = system_python(), None
            if not python:
                brought, name = own_python(held)
                python = f"{OWN_PYTHON}/bin/{name}"
            wanted = self._options(seccomp, written, brought)
            args = _readable(b"".join(os.fsencode(option) + b"\0" for option in wanted), held)
            way = launch(self._program or found_bubblewrap(), held)
            room = self._room
            limits = map(str, (control, room.processes, room.memory_bytes, room.inodes, room.locks))
            text = _readable(program("serve", *limits), held)
            self._process = await asyncio.create_subprocess_exec(
                way.path,
                "--args",
                str(args),
                "--",
                *loader(text, python),
                env=way.environment,  # nothing of ours: bubblewrap's own could be read from inside
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(control, seccomp, *written.values(), *([brought] if brought else []), text, args, *way.fds),
                start_new_session=True,  # Ctrl-C in a terminal is ours to handle
                cwd="/",
                **way.identity,
            )
        assert self._process.stderr is not None
        self._listening = asyncio.create_task(self._listen(self._process.stderr))

    def _options(self, seccomp: int, written: dict[str, int], brought: int | None) -> list[str]:
        return options(self._room, seccomp, written, brought)

    async def _is_ready(self, control: socket.socket) -> bool:
        try:
            async with asyncio.timeout(SANDBOX_START_S):
                return await asyncio.get_running_loop().sock_recv(control, len(READY)) == READY
        except (TimeoutError, ConnectionError):
            return False

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(CLIENT_WORDS_BYTES):
            self._words = (self._words + chunk)[-CLIENT_WORDS_BYTES:]

    async def _last_words(self) -> str:
        if self._listening is not None:
            await asyncio.wait({self._listening}, timeout=1)
        return self._words.decode("utf-8", "replace")


def _readable(content: bytes, held: ExitStack) -> int:
    """A descriptor from which this can be read. No pipe: one may hold as little as 8 KiB where the user has many of
    them, also in sandboxes, and writing more would wait for a reader that is not there yet."""
    descriptor = os.memfd_create("hummingbird")
    held.callback(os.close, descriptor)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor

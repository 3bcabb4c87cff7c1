"""A conversation carried by a program of this machine, podman or kubectl: its stdin and stdout are the two streams.

Knows neither of them: it gets their arguments. Killing such a program leaves the command inside running; what ends it
is that the stream to it breaks off.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from hummingbird.adapters.sandboxes.finishing import finished, let_go
from hummingbird.adapters.sandboxes.link import Farewell
from hummingbird.adapters.sandboxes.source import loader, program
from hummingbird.adapters.sandboxes.syscalls import filters
from hummingbird.domain.errors import SandboxBroken
from hummingbird.domain.limits import CLIENT_LEAVING_S, CLIENT_WORDS_BYTES, FRAME_BYTES

KILLED = 137


class ClientLink:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self.reader = process.stdout
        self.writer = process.stdin
        self._words = b""
        self._listening = asyncio.create_task(self._listen(process.stderr))

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(CLIENT_WORDS_BYTES):
            self._words = (self._words + chunk)[-CLIENT_WORDS_BYTES:]

    def cut(self) -> None:
        """Ends the carrying program at once, whatever it still holds; whoever talks over it hears the line break."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> Farewell:
        leaving = asyncio.create_task(self._leave())
        try:
            await asyncio.shield(leaving)
        except asyncio.CancelledError:
            await leaving
            raise
        words = self._words.decode("utf-8", "replace").strip()
        return Farewell(killed=self._process.returncode == KILLED, words=words)

    async def _leave(self) -> None:
        self.writer.close()
        try:
            async with asyncio.timeout(CLIENT_LEAVING_S):
                while await self.reader.read(FRAME_BYTES):
                    pass  # it cannot end while it has something to say
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
        await let_go(self._process, self._listening)
        with suppress(ConnectionError):
            await self.writer.wait_closed()


async def open_client(argv: Sequence[str], environment: Mapping[str, str]) -> ClientLink:
    """`argv` runs a program in the place, with stdin; what it shall run is added. Raises SandboxBroken."""
    return await finished(_opened(argv, environment), ClientLink.end)  # asyncio never comes back from a cancelled start


async def _opened(argv: Sequence[str], environment: Mapping[str, str]) -> ClientLink:
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            *loader(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            limit=FRAME_BYTES,
            start_new_session=True,  # Ctrl-C in a terminal is ours to handle
        )
    except OSError as error:
        raise SandboxBroken(f"{argv[0]} could not be started: {error.strerror}. Is it still installed?") from error
    link = ClientLink(process)
    link.writer.write(program("converse", filters()))
    return link

"""The sandboxes and what they are compared with, behind the few things that are measured."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

from hummingbird.core.protocols.sandbox import Sandbox

PIECE = 256 * 1024


class Contender(Protocol):
    name: str

    async def open(self) -> None: ...

    async def run(self) -> None:
        """The shortest command."""
        ...

    async def swallow(self, chunks: AsyncIterator[bytes]) -> None:
        """Everything into `cat >/dev/null`."""
        ...

    async def write(self, chunks: AsyncIterator[bytes]) -> None: ...

    async def read(self) -> int:
        """The size of what `write` wrote, by reading all of it."""
        ...

    async def close(self) -> None: ...


class Ours:
    def __init__(self, name: str, sandbox: Sandbox) -> None:
        self.name = name
        self._sandbox = sandbox

    async def open(self) -> None:
        await self._sandbox.start()

    async def run(self) -> None:
        assert (await self._sandbox.exec("true")).exit_code == 0

    async def swallow(self, chunks: AsyncIterator[bytes]) -> None:
        assert (await self._sandbox.exec("cat >/dev/null", chunks, timeout_s=600)).exit_code == 0

    async def write(self, chunks: AsyncIterator[bytes]) -> None:
        await self._sandbox.stream_to_file("/tmp/data/large", chunks)

    async def read(self) -> int:
        size = 0
        async for chunk in self._sandbox.read_file_iter("/tmp/data/large"):
            size += len(chunk)
        return size

    async def close(self) -> None:
        await self._sandbox.cleanup()


class Plain:
    """`sh -c` behind a prefix, with the pipes that asyncio gives; the file lives in memory, as the sandboxes' do.
    Where every command has a container of its own, `keeps` is False and the file is made again to be read."""

    def __init__(self, name: str, prefix: Sequence[str] = (), *, keeps: bool = True) -> None:
        self.name = name
        self._prefix, self._keeps = prefix, keeps
        self._path = Path()
        self._size = 0

    async def open(self) -> None:
        self._path = Path("/dev/shm") / f"hummingbird-bench-{os.getpid()}"

    async def run(self) -> None:
        process = await self._start("true", stdin=asyncio.subprocess.DEVNULL)
        out, err = await process.communicate()
        assert process.returncode == 0, (out, err)

    async def swallow(self, chunks: AsyncIterator[bytes]) -> None:
        await self._feed("cat >/dev/null", chunks)

    async def write(self, chunks: AsyncIterator[bytes]) -> None:
        self._size = await self._feed(f"cat >{self._path}", chunks)

    async def read(self) -> int:
        again = "" if self._keeps else f"head -c {self._size} /dev/zero >{self._path}; "
        process = await self._start(f"{again}cat {self._path}", stdin=asyncio.subprocess.DEVNULL)
        assert process.stdout is not None
        size = 0
        while chunk := await process.stdout.read(PIECE):
            size += len(chunk)
        assert await process.wait() == 0
        return size

    async def close(self) -> None:
        self._path.unlink(missing_ok=True)

    async def _feed(self, command: str, chunks: AsyncIterator[bytes]) -> int:
        size = 0
        process = await self._start(command, stdin=asyncio.subprocess.PIPE)
        assert process.stdin is not None
        async for chunk in chunks:
            process.stdin.write(chunk)
            size += len(chunk)
            await process.stdin.drain()
        process.stdin.close()
        assert await process.wait() == 0
        return size

    async def _start(self, command: str, stdin: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._prefix,
            "sh",
            "-c",
            command,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=PIECE,
        )

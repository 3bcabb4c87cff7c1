"""Workbenches for tests: real bubblewrap sandboxes that can be killed, archives in a folder, sandboxes that fail."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from hummingbird.agent.session_sandbox import SessionSandbox
from hummingbird.core.errors import SandboxBroken, SandboxUnavailable
from hummingbird.core.protocols.sandbox import ExecResult, Sandbox, SandboxArchive
from hummingbird.sandboxes.bubblewrap import BubblewrapBackend
from hummingbird.sandboxes.command_sandbox import CommandSandbox
from hummingbird.storage.folder_sessions import FolderArchiveStore
from tests.contracts.sandboxes.backends.host import youngest_child
from tests.real_parts import missing

SESSION = "session-1"


def bubblewrap() -> Sandbox:
    return CommandSandbox(BubblewrapBackend())


async def start(bench: SessionSandbox) -> Sandbox:
    try:
        return await bench.get()
    except SandboxUnavailable as error:
        missing(str(error))


async def kill(sandbox: Sandbox) -> None:
    """As an out-of-memory killer would; it must be the one that was started last. Returns when it is dead."""
    os.kill(youngest_child(), signal.SIGKILL)
    with suppress(SandboxBroken):
        while True:
            await sandbox.exec("true")


@asynccontextmanager
async def workbench(folder: Path | None = None, **given: Any) -> AsyncIterator[SessionSandbox]:
    """A real one, with archives in `folder`."""
    archives = None if folder is None else FolderArchiveStore(folder)
    bench = SessionSandbox(SESSION, given.pop("make", bubblewrap), given.pop("archives", archives), **given)
    try:
        yield bench
    finally:
        await bench.finish(success=False)


async def shell(bench: SessionSandbox, command: str) -> str:
    """What a command that works says."""
    await start(bench)
    async with bench.use() as sandbox:
        done = await sandbox.exec(command)
    assert done.exit_code == 0, done
    return done.stdout.decode("utf-8", "replace")


async def content(bench: SessionSandbox, path: str) -> bytes:
    async with bench.use() as sandbox:
        return b"".join([chunk async for chunk in sandbox.read_file_iter(path)])


class Told:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def __call__(self, sentence: str) -> None:
        self.sentences.append(sentence)


class MemoryArchives:
    """In memory. `puts` counts what was stored; `most` is how many were under way at once."""

    def __init__(self, content: bytes | None = None) -> None:
        self.content = content
        self.puts = self.most = self._now = 0
        self._stored = asyncio.Event()

    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            content = b"".join([chunk async for chunk in chunks])
        finally:
            self._now -= 1
        self.content, self.puts = content, self.puts + 1
        self._stored.set()
        return len(content)

    async def saved(self, bench: SessionSandbox) -> None:
        """Takes a checkpoint and waits for it."""
        self._stored.clear()
        bench.checkpoint()
        await self._stored.wait()

    async def get(self, session_id: str) -> SandboxArchive | None:
        return None if self.content is None else SandboxArchive(in_pieces([self.content]), 1_700_000_000.0)


async def in_pieces(chunks: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
    for chunk in chunks:
        yield chunk


class Delegating:
    """A sandbox that does what another one does; tests override what shall go wrong."""

    def __init__(self, inner: Sandbox | None = None) -> None:
        self.inner = inner or bubblewrap()
        self.left: list[str] = []

    @property
    def name(self) -> str:
        return self.inner.name

    async def start(self) -> None:
        await self.inner.start()

    async def exec(self, command: str, stdin: Any = b"", **given: Any) -> ExecResult:
        return await self.inner.exec(command, stdin, **given)

    async def write_file(self, path: str, content: bytes) -> None:
        await self.inner.write_file(path, content)

    async def stream_to_file(self, path: str, chunks: AsyncIterator[bytes]) -> int:
        return await self.inner.stream_to_file(path, chunks)

    def stream_exec(self, command: str, stdin: Any = None, **given: Any) -> AsyncGenerator[bytes, None]:
        return self.inner.stream_exec(command, stdin, **given)

    def read_file_iter(self, path: str) -> AsyncGenerator[bytes, None]:
        return self.inner.read_file_iter(path)

    async def cleanup(self) -> None:
        self.left.append("cleanup")
        await self.inner.cleanup()

    async def linger(self, session_id: str) -> None:
        self.left.append(f"linger {session_id}")
        await self.inner.linger(session_id)

"""What a session's sandbox held when it was last saved, for somebody who looks. The archive was written where untrusted
commands run: it is unpacked in a sandbox of its own, and never by this machine (I4)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing, suppress
from tempfile import SpooledTemporaryFile
from typing import Protocol

from hummingbird.agent.checkpoints import restore
from hummingbird.domain.errors import CommandFailed, HummingbirdError, UsageFault
from hummingbird.domain.limits import REMOVAL_S
from hummingbird.domain.web_limits import FILE_BYTES, FILES_S, FILES_SHOWN, LOOKS_AT_ONCE
from hummingbird.ports.sandbox import ROOT, Sandbox
from hummingbird.ports.sessions import Sessions
from hummingbird.web.asked import SandboxFile, SandboxList
from hummingbird.web.shown import size as shown_size

_IN_MEMORY_BYTES = 1024 * 1024
_PIECE_BYTES = 256 * 1024


class Makes(Protocol):
    """Sandboxes of one kind, each of which has not been started. Whoever owns them closes them."""

    async def open(self) -> None: ...

    def make(self) -> Sandbox: ...


class SandboxFiles:
    def __init__(self, sessions: Sessions, sandboxes: Makes) -> None:
        self._sessions, self._sandboxes = sessions, sandboxes
        self._looks = asyncio.Semaphore(LOOKS_AT_ONCE)

    async def listed(self, session_id: str) -> SandboxList:
        """Nothing if nothing was saved. Raises HummingbirdError."""
        async with self._opened(session_id) as sandbox:
            if sandbox is None:
                return SandboxList(())
            content = bytearray()
            find = f"find . -type f -printf '%s %P\\0' | head -z -n {FILES_SHOWN + 1}"
            async with aclosing(sandbox.stream_exec(find, timeout_s=FILES_S)) as chunks:
                async for chunk in chunks:
                    content += chunk
        found = [line.partition(b" ") for line in bytes(content).split(b"\0") if line]
        files = [SandboxFile(path.decode("utf-8", "replace"), int(size)) for size, _, path in found if size.isdigit()]
        listed = sorted(files[:FILES_SHOWN], key=lambda one: one.path)
        return SandboxList(tuple(listed), more=len(files) > FILES_SHOWN)

    async def file(self, session_id: str, path: str) -> AsyncGenerator[bytes, None]:
        """Its content, out of the sandbox by then: whoever reads slowly keeps none busy. Raises UsageFault where there
        is none of that name, or it is larger than anything that is given away."""
        kept = await asyncio.to_thread(SpooledTemporaryFile, _IN_MEMORY_BYTES)
        try:
            async with self._opened(session_id) as sandbox:
                if sandbox is None or not path or "\0" in path:
                    raise UsageFault("There is no such file; load the list of files again.")
                try:
                    async with asyncio.timeout(FILES_S), aclosing(sandbox.read_file_iter(f"{ROOT}/{path}")) as chunks:
                        await _copied(chunks, kept)
                except CommandFailed as error:
                    raise UsageFault(f"The file cannot be read: {error}") from error
        except BaseException:
            kept.close()
            raise
        return _read(kept)

    @asynccontextmanager
    async def _opened(self, session_id: str) -> AsyncIterator[Sandbox | None]:
        async with self._looks:
            archive = await self._sessions.archive(session_id)
            if archive is None:
                yield None
                return
            await self._sandboxes.open()
            sandbox = self._sandboxes.make()
            try:
                async with asyncio.timeout(FILES_S):
                    await sandbox.start()
                    await restore(sandbox, archive)
                yield sandbox
            except TimeoutError as error:
                raise UsageFault("Looking into the sandbox took too long; try again later.") from error
            finally:
                with suppress(HummingbirdError, TimeoutError):
                    async with asyncio.timeout(REMOVAL_S):
                        await sandbox.cleanup()


async def _copied(chunks: AsyncGenerator[bytes, None], kept: "SpooledTemporaryFile[bytes]") -> None:
    left = FILE_BYTES
    async for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise UsageFault(
                f"The file is larger than {shown_size(FILE_BYTES)}: pack or split it in the sandbox first."
            )
        await asyncio.to_thread(kept.write, chunk)


async def _read(kept: "SpooledTemporaryFile[bytes]") -> AsyncGenerator[bytes, None]:
    with closing(kept):
        await asyncio.to_thread(kept.seek, 0)
        while chunk := await asyncio.to_thread(kept.read, _PIECE_BYTES):
            yield chunk

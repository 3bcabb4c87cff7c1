"""Checkpoints of a session's sandbox, taken in the background (X7): one at a time, coalesced. No run waits for one.

The archive is packed inside the sandbox and streamed out; a new sandbox unpacks it. This side only passes bytes on.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from hummingbird.agent.described import described
from hummingbird.domain.errors import CommandFailed, SandboxBroken
from hummingbird.domain.limits import ARCHIVE_REST, ARCHIVING_S
from hummingbird.ports.archives import Archive, Archives
from hummingbird.ports.sandbox import ROOT, Sandbox

FILES_CHANGED = 1  # GNU tar's exit code when a file changed while it was read: what it has of it is as good as any
_PARENT, _, _NAME = ROOT.rpartition("/")
# A quick compression: checkpoints share the machine with the work. Files that nobody may read are left out.
PACK = f"tar -C {_PARENT} --ignore-failed-read -I 'gzip -1' -cf - {_NAME}"
# No owners, which differ between backends, and no new mode for the directory itself, which may belong to someone else.
UNPACK = f"tar -C {_PARENT} --no-overwrite-dir -xzpof - {_NAME}"
EMPTY_OUT = f"find {ROOT} -mindepth 1 -delete"
LOOK = f"find {ROOT} -printf '%P\\0%y%m%s\\0%C@\\n' | LC_ALL=C sort | sha256sum"
ANYTHING = f"find {ROOT} -mindepth 1 -print -quit"


class Checkpoints:
    """`changed` notes that there is something to save, `soon` starts saving it, `last` waits for the end of that.

    Trouble is counted and told to `on_trouble` once until a checkpoint succeeds again; a sandbox that turns out to be
    broken is told to `on_broken`.
    """

    def __init__(
        self,
        session_id: str,
        archives: Archives,
        on_trouble: Callable[[str], None],
        on_broken: Callable[[Sandbox], None],
    ) -> None:
        self._session_id = session_id
        self._archives = archives
        self._on_trouble = on_trouble
        self._on_broken = on_broken
        self._changed = False
        self._wanted: Sandbox | None = None
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._due = 0.0
        self._saved: tuple[Sandbox, str] | None = None
        self.failures = 0

    def changed(self) -> None:
        self._changed = True

    def soon(self, sandbox: Sandbox) -> None:
        """Returns at once. What changes while one is under way is in the next one."""
        if not self._changed:
            return
        self._changed = False
        self._wanted = sandbox
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def last(self, sandbox: Sandbox) -> None:
        """Saves what is not saved yet and returns when that is over. Cancelling it stops the saving."""
        self._hurry.set()
        try:
            self.soon(sandbox)
            if self._task is not None:
                await self._task
        finally:
            self._hurry.clear()

    async def stop(self) -> None:
        self._wanted = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._wanted is not None:
            await self._rested(self._due - clock())
            sandbox, self._wanted = self._wanted, None
            began = clock()
            await self._attempt(sandbox)
            self._due = clock() + ARCHIVE_REST * (clock() - began)

    async def _rested(self, seconds: float) -> None:
        """So that large checkpoints leave the machine to the work; not when the session is about to close."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._hurry.wait()

    async def _attempt(self, sandbox: Sandbox) -> None:
        try:
            async with asyncio.timeout(ARCHIVING_S):
                await self._take(sandbox)
            self.failures = 0
        except Exception as error:  # noqa: BLE001 - border: nobody awaits this work, so nobody else would hear of it
            self._changed = True
            self.failures += 1
            if isinstance(error, SandboxBroken):
                self._on_broken(sandbox)
            if self.failures == 1:
                self._on_trouble(f"A checkpoint of the sandbox was not saved. {described(error)}")

    async def _take(self, sandbox: Sandbox) -> None:
        seen = await _looked(sandbox)
        if seen and self._saved == (sandbox, seen):
            return  # commands that only read
        async with aclosing(_packed(sandbox)) as chunks:
            await self._archives.put(self._session_id, chunks)
        self._saved = (sandbox, seen)


async def restore(sandbox: Sandbox, archive: Archive) -> None:
    """Raises CommandFailed when it could not be unpacked, and then nothing of it is left; SandboxBroken;
    ArchiveUnusable."""
    async with aclosing(archive.chunks) as chunks:
        done = await sandbox.exec(UNPACK, chunks, timeout_s=ARCHIVING_S)
    if done.exit_code:
        await sandbox.exec(EMPTY_OUT)
        raise CommandFailed("The last checkpoint of the sandbox could not be unpacked.", done.exit_code)


async def holds_files(sandbox: Sandbox) -> bool:
    """Whether it is one that lingered, with what the session left in it (X6)."""
    return bool((await sandbox.exec(ANYTHING)).stdout)


async def _packed(sandbox: Sandbox) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(sandbox.stream_exec(PACK, timeout_s=ARCHIVING_S)) as chunks:
            async for chunk in chunks:
                yield chunk
    except CommandFailed as error:
        if error.exit_code != FILES_CHANGED:
            raise


async def _looked(sandbox: Sandbox) -> str:
    """Another text whenever something has changed; empty when that cannot be told."""
    done = await sandbox.exec(LOOK, timeout_s=ARCHIVING_S)
    return "" if done.exit_code else done.stdout.decode("ascii", "replace").strip()

"""Manage the sandbox of a session: start it when needed, save it after changes, restore it after it died.

The model is told when files were lost.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from hummingbird.agent import prompts
from hummingbird.agent.interrupts import run_within
from hummingbird.core.errors import ArchiveUnusable, CommandFailed, SandboxBroken, SandboxUnavailable, describe_error
from hummingbird.core.journal import JournalEntry, ToolFinished
from hummingbird.core.limits import ARCHIVE_REST, ARCHIVING_S, LAST_ARCHIVE_S, REMOVAL_S
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT, ArchiveStore, Sandbox, SandboxArchive

FILES_CHANGED = 1  # GNU tar's exit code when a file changed while it was read: any version of it is good enough
_PARENT, _, _NAME = SANDBOX_ROOT.rpartition("/")
# Fast compression, because checkpoints share the machine with the work. Unreadable files are left out.
PACK = f"tar -C {_PARENT} --ignore-failed-read -I 'gzip -1' -cf - {_NAME}"
# No owners, which differ between backends, and no new mode for the directory itself, which may belong to someone else.
UNPACK = f"tar -C {_PARENT} --no-overwrite-dir -xzpof - {_NAME}"
DELETE_FILES = f"find {SANDBOX_ROOT} -mindepth 1 -delete"
FINGERPRINT_FILES = f"find {SANDBOX_ROOT} -printf '%P\\0%y%m%s\\0%C@\\n' | LC_ALL=C sort | sha256sum"
FIND_ANY_FILE = f"find {SANDBOX_ROOT} -mindepth 1 -print -quit"


class SandboxCheckpoints:
    """Save a session's sandbox in the background: one checkpoint at a time, and no run waits for one.

    `mark_changed` notes that there is something to save, `save_in_background` starts saving it, `save_now` waits for
    the end of that. The archive is packed inside the sandbox and streamed out; a new sandbox unpacks it.

    Failures are counted, and reported to `on_trouble` once until a checkpoint succeeds again. A sandbox that turns out
    to be broken is reported to `on_broken`.
    """

    def __init__(
        self,
        session_id: str,
        archives: ArchiveStore,
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

    def mark_changed(self) -> None:
        self._changed = True

    def save_in_background(self, sandbox: Sandbox) -> None:
        """Start saving and return at once; changes during a checkpoint are in the next one."""
        if not self._changed:
            return
        self._changed = False
        self._wanted = sandbox
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._save_while_wanted())

    async def save_now(self, sandbox: Sandbox) -> None:
        """Save what is not saved yet and return when that is done; cancelling it stops the saving."""
        self._hurry.set()
        try:
            self.save_in_background(sandbox)
            if self._task is not None:
                await self._task
        finally:
            self._hurry.clear()

    async def stop(self) -> None:
        self._wanted = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _save_while_wanted(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._wanted is not None:
            await self._wait_until_due(self._due - clock())
            sandbox, self._wanted = self._wanted, None
            began = clock()
            await self._try_save(sandbox)
            self._due = clock() + ARCHIVE_REST * (clock() - began)

    async def _wait_until_due(self, seconds: float) -> None:
        """Wait, so that large checkpoints leave the machine to the work; not when the session is about to close."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._hurry.wait()

    async def _try_save(self, sandbox: Sandbox) -> None:
        try:
            async with asyncio.timeout(ARCHIVING_S):
                await self._save_if_changed(sandbox)
            self.failures = 0
        except Exception as error:  # noqa: BLE001 - border: nobody awaits this work, so nobody else would hear of it
            self._changed = True
            self.failures += 1
            if isinstance(error, SandboxBroken):
                self._on_broken(sandbox)
            if self.failures == 1:
                self._on_trouble(f"A checkpoint of the sandbox was not saved. {describe_error(error)}")

    async def _save_if_changed(self, sandbox: Sandbox) -> None:
        seen = await _fingerprint_files(sandbox)
        if seen and self._saved == (sandbox, seen):
            return  # commands only read files
        async with aclosing(_stream_archive(sandbox)) as chunks:
            await self._archives.put(self._session_id, chunks)
        self._saved = (sandbox, seen)


async def restore_archive(sandbox: Sandbox, archive: SandboxArchive) -> None:
    """Unpack a checkpoint into a new sandbox.

    Raises CommandFailed if it cannot be unpacked, and then nothing of it is left; also SandboxBroken and
    ArchiveUnusable.
    """
    async with aclosing(archive.chunks) as chunks:
        done = await sandbox.exec(UNPACK, chunks, timeout_s=ARCHIVING_S)
    if done.exit_code:
        await sandbox.exec(DELETE_FILES)
        raise CommandFailed("The last checkpoint of the sandbox could not be unpacked.", done.exit_code)


async def has_files(sandbox: Sandbox) -> bool:
    """Return whether the sandbox lingered, with the files that the session left in it."""
    return bool((await sandbox.exec(FIND_ANY_FILE)).stdout)


async def _stream_archive(sandbox: Sandbox) -> AsyncGenerator[bytes, None]:
    try:
        async with aclosing(sandbox.stream_exec(PACK, timeout_s=ARCHIVING_S)) as chunks:
            async for chunk in chunks:
                yield chunk
    except CommandFailed as error:
        if error.exit_code != FILES_CHANGED:
            raise


async def _fingerprint_files(sandbox: Sandbox) -> str:
    """Return a text that changes whenever a file changes; empty if the command failed."""
    done = await sandbox.exec(FINGERPRINT_FILES, timeout_s=ARCHIVING_S)
    return "" if done.exit_code else done.stdout.decode("ascii", "replace").strip()


def _ignore_trouble(sentence: str) -> None:
    """Do nothing: the default where nobody listens."""


class SessionSandbox:
    """The sandbox of one session.

    `make` returns a sandbox that is not started. `earlier` means that the session had one before, in this process or
    another. `on_trouble` gets sentences about what the model need not act on: a checkpoint that failed, a sandbox that
    could not be removed.
    """

    def __init__(
        self,
        session_id: str,
        make: Callable[[], Sandbox],
        archives: ArchiveStore | None = None,
        *,
        earlier: bool = False,
        on_trouble: Callable[[str], None] = _ignore_trouble,
    ) -> None:
        self._session_id = session_id
        self._make = make
        self._archives = archives
        self._earlier = earlier
        self._on_trouble = on_trouble
        self._checkpoints = (
            None
            if archives is None
            else SandboxCheckpoints(session_id, archives, self._report_trouble, self._drop_broken)
        )
        self._sandbox: Sandbox | None = None
        self._starting: asyncio.Task[Sandbox] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._news: list[str] = []

    @property
    def failures_in_a_row(self) -> int:
        """Return how many checkpoints in a row were not saved."""
        return 0 if self._checkpoints is None else self._checkpoints.failures

    async def get(self) -> Sandbox:
        """Return the session's sandbox, started.

        Concurrent callers share one start. A failed start is raised to each of them, and the next caller tries again.
        Raises SandboxUnavailable and SandboxBroken.
        """
        if self._sandbox is not None:
            return self._sandbox
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._on_start_done)
        return await asyncio.shield(self._starting)  # an interrupted caller must not stop the others' start

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Sandbox]:
        """Yield the sandbox for work that may change files.

        A sandbox that breaks is dropped, and the next use starts another.
        """
        sandbox = await self.get()
        self._mark_changed()
        try:
            yield sandbox
        except SandboxBroken:
            self._drop_broken(sandbox)
            raise
        finally:
            self._mark_changed()  # again: a checkpoint taken meanwhile may lack later changes

    def checkpoint(self) -> None:
        """Save changes in the background, if there are any, and return at once."""
        if self._checkpoints is not None and self._sandbox is not None:
            self._checkpoints.save_in_background(self._sandbox)

    def take_news(self) -> str:
        """Return the news about its files that the model must read; each is returned once."""
        news, self._news = "\n".join(self._news), []
        return news

    async def finish(self, success: bool) -> None:
        """Save what is not saved, then let the sandbox linger after a success, else remove it.

        Takes at most LAST_ARCHIVE_S plus REMOVAL_S and never raises. The next use starts a new sandbox.
        """
        try:
            await self._run_bounded("The last checkpoint of the sandbox", LAST_ARCHIVE_S, self._save_last_checkpoint())
        finally:
            sandbox, self._sandbox = self._sandbox, None
            if sandbox is not None:
                leaving = sandbox.linger(self._session_id) if success else sandbox.cleanup()
                await self._run_bounded("Removing the sandbox", REMOVAL_S, leaving)
            if self._leaving:
                await asyncio.wait(set(self._leaving), timeout=REMOVAL_S)

    async def _start(self) -> Sandbox:
        sandbox = self._make()
        try:
            await sandbox.start()
            await self._restore_files(sandbox)
        except BaseException as error:
            self._remove_in_background(sandbox)
            if isinstance(error, SandboxUnavailable):  # the operator can do something about it, the model cannot
                self._on_trouble(f"There was no sandbox for this run. {error}")
            raise
        self._sandbox, self._earlier = sandbox, True
        return sandbox

    def _on_start_done(self, starting: asyncio.Task[Sandbox]) -> None:
        self._starting = None
        if not starting.cancelled():
            starting.exception()  # mark it as retrieved, also if every caller was interrupted

    async def _restore_files(self, sandbox: Sandbox) -> None:
        """Unpack the last checkpoint into a new sandbox, and tell the model what became of its files."""
        if not self._earlier and self._archives is None:
            return
        try:
            archive = None if self._archives is None else await self._archives.get(self._session_id)
            if (archive is None and not self._earlier) or await has_files(sandbox):
                return
            if archive is None:
                self._news = [prompts.SANDBOX_LOST]
                return
            await restore_archive(sandbox, archive)
            when = datetime.fromtimestamp(archive.saved_at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            self._news = [prompts.SANDBOX_RESTORED.format(when=when)]
        except (ArchiveUnusable, CommandFailed) as error:
            self._news = [prompts.SANDBOX_NOT_RESTORED]
            self._report_trouble(f"The files of session {self._session_id} were not restored. {describe_error(error)}")

    def _drop_broken(self, broken: Sandbox) -> None:
        if self._sandbox is broken:
            self._sandbox = None
            self._remove_in_background(broken)

    def _remove_in_background(self, sandbox: Sandbox) -> None:
        """Remove what may be left of the sandbox while the work goes on."""
        removal = asyncio.create_task(self._run_bounded("Removing a broken sandbox", REMOVAL_S, sandbox.cleanup()))
        self._leaving.add(removal)
        removal.add_done_callback(self._leaving.discard)

    async def _save_last_checkpoint(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        if self._checkpoints is not None and self._sandbox is not None:
            try:
                await self._checkpoints.save_now(self._sandbox)
            finally:
                await self._checkpoints.stop()

    async def _run_bounded(self, what: str, seconds: float, work: Coroutine[Any, Any, None]) -> None:
        try:
            await run_within(seconds, work)
        except Exception as error:  # noqa: BLE001 - border: the session is over, whatever a backend or a store raises
            self._report_trouble(f"{what} did not work out. {describe_error(error)}")

    def _mark_changed(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.mark_changed()

    def _report_trouble(self, sentence: str) -> None:
        with suppress(Exception):  # border: the listener may be gone, but the work goes on
            self._on_trouble(sentence)


def has_used_sandbox(entries: Iterable[JournalEntry], names: Iterable[str]) -> bool:
    """Return whether the journal shows that a session used its sandbox.

    `names` are the tools that use it; results of other tools may name files in it.
    """
    tools = set(names)
    return any(
        isinstance(entry, ToolFinished) and (entry.name in tools or SANDBOX_ROOT in entry.text) for entry in entries
    )

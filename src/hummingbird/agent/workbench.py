"""The session's sandbox: started when it is first needed, saved after work that changed it, brought back after it
died, and told about when something was lost (X7, X8). Knows no backend and nothing of what its commands do.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from hummingbird.agent import prompts
from hummingbird.agent.checkpoints import Checkpoints, holds_files, restore
from hummingbird.agent.described import described
from hummingbird.agent.interruptible import within
from hummingbird.domain.errors import ArchiveUnusable, CommandFailed, SandboxBroken, SandboxUnavailable
from hummingbird.domain.journal import Entry, ToolFinished
from hummingbird.domain.limits import LAST_ARCHIVE_S, REMOVAL_S
from hummingbird.ports.archives import Archives
from hummingbird.ports.sandbox import ROOT, Sandbox


def _told_to_nobody(sentence: str) -> None:
    """Where nobody watches."""


class Workbench:
    """`make` gives a sandbox that has not been started. `earlier`: the session has had one before, in this process or
    another. `on_trouble` hears, in sentences, what the model need not act on: a checkpoint that failed, a sandbox
    that would not go away."""

    def __init__(
        self,
        session_id: str,
        make: Callable[[], Sandbox],
        archives: Archives | None = None,
        *,
        earlier: bool = False,
        on_trouble: Callable[[str], None] = _told_to_nobody,
    ) -> None:
        self._session_id = session_id
        self._make = make
        self._archives = archives
        self._earlier = earlier
        self._on_trouble = on_trouble
        self._checkpoints = None if archives is None else Checkpoints(session_id, archives, self._tell, self._drop)
        self._sandbox: Sandbox | None = None
        self._starting: asyncio.Task[Sandbox] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._news: list[str] = []

    @property
    def failures(self) -> int:
        """How many checkpoints in a row were not saved."""
        return 0 if self._checkpoints is None else self._checkpoints.failures

    async def sandbox(self) -> Sandbox:
        """The session's sandbox. Callers at the same time share one start; a start that failed is reported to each of
        them, and the next caller tries again. Raises SandboxUnavailable, SandboxBroken."""
        if self._sandbox is not None:
            return self._sandbox
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(self._started)
        return await asyncio.shield(self._starting)  # an interrupted call does not take it from the others

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Sandbox]:
        """The sandbox for work that may change files. One that broke is dropped: the next use starts another one."""
        sandbox = await self.sandbox()
        self._changed()
        try:
            yield sandbox
        except SandboxBroken:
            self._drop(sandbox)
            raise
        finally:
            self._changed()  # again: one that was taken meanwhile may lack what came after

    def checkpoint(self) -> None:
        """Saves in the background what has changed, if something has. Returns at once."""
        if self._checkpoints is not None and self._sandbox is not None:
            self._checkpoints.soon(self._sandbox)

    def news(self) -> str:
        """What the model must be told about its files, once."""
        told, self._news = "\n".join(self._news), []
        return told

    async def finish(self, success: bool) -> None:
        """Saves what is not saved, then lets the sandbox linger after a success (X6), else removes it. Takes no longer
        than LAST_ARCHIVE_S and REMOVAL_S together and never raises; the next use starts a new one."""
        try:
            await self._bounded("The last checkpoint of the sandbox", LAST_ARCHIVE_S, self._save())
        finally:
            sandbox, self._sandbox = self._sandbox, None
            if sandbox is not None:
                leaving = sandbox.linger(self._session_id) if success else sandbox.cleanup()
                await self._bounded("Removing the sandbox", REMOVAL_S, leaving)
            if self._leaving:
                await asyncio.wait(set(self._leaving), timeout=REMOVAL_S)

    async def _start(self) -> Sandbox:
        sandbox = self._make()
        try:
            await sandbox.start()
            await self._fill(sandbox)
        except BaseException as error:
            self._remove(sandbox)
            if isinstance(error, SandboxUnavailable):  # the model can only do without; somebody else can do more
                self._on_trouble(f"There was no sandbox for this run. {error}")
            raise
        self._sandbox, self._earlier = sandbox, True
        return sandbox

    def _started(self, starting: asyncio.Task[Sandbox]) -> None:
        self._starting = None
        if not starting.cancelled():
            starting.exception()  # seen, also when every caller has been interrupted meanwhile

    async def _fill(self, sandbox: Sandbox) -> None:
        """A new sandbox gets what the last one had, as far as it was saved; the model hears what became of it."""
        if not self._earlier and self._archives is None:
            return
        try:
            archive = None if self._archives is None else await self._archives.get(self._session_id)
            if (archive is None and not self._earlier) or await holds_files(sandbox):
                return
            if archive is None:
                self._news = [prompts.SANDBOX_LOST]
                return
            await restore(sandbox, archive)
            when = datetime.fromtimestamp(archive.saved_at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            self._news = [prompts.SANDBOX_RESTORED.format(when=when)]
        except (ArchiveUnusable, CommandFailed) as error:
            self._news = [prompts.SANDBOX_NOT_RESTORED]
            self._tell(f"The files of session {self._session_id} were not restored. {described(error)}")

    def _drop(self, broken: Sandbox) -> None:
        if self._sandbox is broken:
            self._sandbox = None
            self._remove(broken)

    def _remove(self, sandbox: Sandbox) -> None:
        """What may be left of it, beside the work that goes on."""
        removal = asyncio.create_task(self._bounded("Removing a broken sandbox", REMOVAL_S, sandbox.cleanup()))
        self._leaving.add(removal)
        removal.add_done_callback(self._leaving.discard)

    async def _save(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        if self._checkpoints is not None and self._sandbox is not None:
            try:
                await self._checkpoints.last(self._sandbox)
            finally:
                await self._checkpoints.stop()

    async def _bounded(self, what: str, seconds: float, work: Coroutine[Any, Any, None]) -> None:
        try:
            await within(seconds, work)
        except Exception as error:  # noqa: BLE001 - border: the session is over, whatever a backend or a store raises
            self._tell(f"{what} did not work out. {described(error)}")

    def _changed(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.changed()

    def _tell(self, sentence: str) -> None:
        with suppress(Exception):  # border: who watches may be gone; the work is not
            self._on_trouble(sentence)


def had_a_sandbox(entries: Iterable[Entry], names: Iterable[str]) -> bool:
    """Whether a session has used one, by its journal: `names` are the tools that do, results name files in it."""
    tools = set(names)
    return any(isinstance(entry, ToolFinished) and (entry.name in tools or ROOT in entry.text) for entry in entries)

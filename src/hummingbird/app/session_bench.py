"""Holds what an agent needs beside its loop: the sandbox of the current session, and the order of its runs."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from hummingbird.agent.session_sandbox import SessionSandbox, has_used_sandbox
from hummingbird.agent.tools.sandbox_tools import SANDBOX_TOOLS, SandboxToolset, create_sandbox_tools
from hummingbird.agent.tools.spill import LineDigests
from hummingbird.core.journal import JournalEntry
from hummingbird.core.limits import EXEC_TIMEOUT_S, MAX_INLINE_BYTES
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.sandbox import ArchiveStore
from hummingbird.core.protocols.tools import Tool
from hummingbird.sandboxes.registry import SandboxOptions, SandboxRegistry

LOG = logging.getLogger("hummingbird")


class FairLock:
    """Let one caller in after the other, in the order in which they asked.

    Unlike asyncio.Lock it is not bound to one event loop: an agent may outlive several, and threads with loops of their
    own may wait for each other.
    """

    def __init__(self) -> None:
        self._taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._guard = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    async def __aenter__(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            with self._guard:
                is_ours = turn not in self._waiting
                if not is_ours:
                    self._waiting.remove(turn)
            if is_ours:
                self._wake_next()  # pass it on
            raise

    async def __aexit__(self, *_: object) -> None:
        self._wake_next()

    def _wake_next(self) -> None:
        """Pass the lock on without releasing it, so that nobody else can take it in between."""
        with self._guard:
            while self._waiting:
                turn = self._waiting.popleft()
                with suppress(RuntimeError):  # the event loop of that one is closed
                    turn.get_loop().call_soon_threadsafe(_grant, turn)
                    return
            self._taken = False


def _grant(turn: "asyncio.Future[None]") -> None:
    if not turn.done():
        turn.set_result(None)


def create_sandboxes(sandbox: str | SandboxOptions, environment: Mapping[str, str], clock: Clock) -> SandboxRegistry:
    """Return the registry that starts the chosen kind of sandbox.

    Raises UsageError for an unknown kind.
    """
    wanted = SandboxOptions(sandbox) if isinstance(sandbox, str) else sandbox
    return SandboxRegistry(wanted, environment, clock, LOG.warning)


class SessionBenchHolder:
    """Holds the sandbox and its tools for the current session, and closes them when another session begins.

    `tools` are the other tools of the session. `on_trouble` hears, in sentences, what failed beside the run.
    """

    def __init__(
        self,
        sandboxes: SandboxRegistry,
        tools: Sequence[Tool],
        secrets: Secrets,
        archives: ArchiveStore | None,
        *,
        on_trouble: Callable[[str], None],
        max_inline_bytes: int = MAX_INLINE_BYTES,
        exec_timeout_s: float = EXEC_TIMEOUT_S,
        digested: LineDigests | None = None,
    ) -> None:
        self._sandboxes, self._tools, self._secrets = sandboxes, tools, secrets
        self._archives, self._on_trouble = archives, on_trouble
        self._max_inline_bytes, self._exec_timeout_s = max_inline_bytes, exec_timeout_s
        self._digested = digested
        self._session_id = ""
        self._bench: SandboxToolset | None = None

    async def bench_for(self, session_id: str, entries: Sequence[JournalEntry]) -> SandboxToolset:
        """Return the session's bench, the same one until the session changes.

        Raises SandboxUnavailable.
        """
        if self._bench is None or self._session_id != session_id:
            await self.close_bench(success=True)
            await self._sandboxes.open()
            self._bench, self._session_id = self._create_bench(session_id, entries), session_id
        return self._bench

    def _create_bench(self, session_id: str, entries: Sequence[JournalEntry]) -> SandboxToolset:
        workbench = SessionSandbox(
            session_id,
            lambda: self._sandboxes.make(session_id),
            self._archives,
            earlier=has_used_sandbox(entries, SANDBOX_TOOLS),
            on_trouble=self._on_trouble,
        )
        return create_sandbox_tools(
            workbench,
            self._tools,
            self._secrets,
            entries=entries,
            max_inline_bytes=self._max_inline_bytes,
            exec_timeout_s=self._exec_timeout_s,
            digested=self._digested,
        )

    async def close_bench(self, *, success: bool) -> None:
        bench, self._bench = self._bench, None
        if bench is not None:
            await bench.sandbox.finish(success)

    async def close(self, *, success: bool) -> None:
        """Save the sandbox's files and remove it; after a success it may be left for reuse where that is configured."""
        await self.close_bench(success=success)
        await self._sandboxes.close()

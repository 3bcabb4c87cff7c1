"""The sandbox side of an agent: one workbench for the session at hand, put away when another session begins."""

import logging
from collections.abc import Callable, Mapping, Sequence

from hummingbird.adapters.sandboxes.registry import Sandboxes, Wanted
from hummingbird.agent.tools.bench import SANDBOX_TOOLS, Bench, equipped
from hummingbird.agent.tools.digested import DigestedLines
from hummingbird.agent.workbench import Workbench, had_a_sandbox
from hummingbird.domain.journal import Entry
from hummingbird.domain.limits import EXEC_TIMEOUT_S, MAX_INLINE_BYTES
from hummingbird.domain.secrets import Secrets
from hummingbird.ports.archives import Archives
from hummingbird.ports.clock import Clock
from hummingbird.ports.tool import Tool

_log = logging.getLogger("hummingbird")


def sandboxes_of(sandbox: str | Wanted, environment: Mapping[str, str], clock: Clock) -> Sandboxes:
    wanted = Wanted(sandbox) if isinstance(sandbox, str) else sandbox
    return Sandboxes(wanted, environment, clock, _log.warning)


class Benches:
    """`tools` are the session's other ones. `on_trouble` hears in sentences what did not work out beside the run."""

    def __init__(
        self,
        sandboxes: Sandboxes,
        tools: Sequence[Tool],
        secrets: Secrets,
        archives: Archives | None,
        *,
        on_trouble: Callable[[str], None],
        max_inline_bytes: int = MAX_INLINE_BYTES,
        exec_timeout_s: float = EXEC_TIMEOUT_S,
        digested: DigestedLines | None = None,
    ) -> None:
        self._sandboxes, self._tools, self._secrets = sandboxes, tools, secrets
        self._archives, self._on_trouble = archives, on_trouble
        self._max_inline_bytes, self._exec_timeout_s = max_inline_bytes, exec_timeout_s
        self._digested = digested
        self._session_id = ""
        self._bench: Bench | None = None

    async def at(self, session_id: str, entries: Sequence[Entry]) -> Bench:
        """The session's bench: the same one for as long as the session is. Raises SandboxUnavailable."""
        if self._bench is None or self._session_id != session_id:
            await self.put_away(success=True)
            await self._sandboxes.open()
            self._bench, self._session_id = self._made(session_id, entries), session_id
        return self._bench

    def _made(self, session_id: str, entries: Sequence[Entry]) -> Bench:
        workbench = Workbench(
            session_id,
            lambda: self._sandboxes.make(session_id),
            self._archives,
            earlier=had_a_sandbox(entries, SANDBOX_TOOLS),
            on_trouble=self._on_trouble,
        )
        return equipped(
            workbench,
            self._tools,
            self._secrets,
            entries=entries,
            max_inline_bytes=self._max_inline_bytes,
            exec_timeout_s=self._exec_timeout_s,
            digested=self._digested,
        )

    async def put_away(self, *, success: bool) -> None:
        bench, self._bench = self._bench, None
        if bench is not None:
            await bench.bench.finish(success)

    async def close(self, *, success: bool) -> None:
        """Saves what is not saved and removes the sandbox, or lets it linger after a success where it can."""
        await self.put_away(success=success)
        await self._sandboxes.close()

"""Creates sub-agents: loops of their own with the parent's configuration and most of its tools.

Their conversation is in memory only. Decisions about their calls, and the outcomes, are in the parent's journal.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from shlex import quote

from hummingbird.agent.budget import sub_agent_limits
from hummingbird.agent.interrupts import PROMPT_GRACE_S
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.prompts import build_system_prompt
from hummingbird.agent.tools.chat_tools import TodoTool
from hummingbird.agent.tools.delegate import RULES, WITHHELD, RecordEntry
from hummingbird.agent.tools.recall import RecallTool
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.agent.tools.sandbox_tools import SandboxToolset
from hummingbird.core.errors import HummingbirdError
from hummingbird.core.journal import JournalEntry, ModelAnswered, ToolFinished, ToolStarted
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.protocols.tools import Tool
from hummingbird.storage.journals import MemoryJournal


class SubAgentJournal(MemoryJournal):
    """A journal in memory that gives each entry to `record` first.

    What the parent's journal does not accept has not happened here, so a call starts only once the parent's journal is
    durable.
    """

    def __init__(self, record: RecordEntry, commit: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._record, self._commit = record, commit

    def append(self, entry: JournalEntry) -> None:
        self._record(entry, self._arguments_of_unstarted_call(entry))
        super().append(entry)

    async def commit(self) -> None:
        await self._commit()

    def _arguments_of_unstarted_call(self, entry: JournalEntry) -> str:
        """Return the arguments of a call that ended without starting: denied, invalid or skipped."""
        if not isinstance(entry, ToolFinished):
            return ""
        for earlier in reversed(self.entries()):
            match earlier:
                case ToolStarted(call_id=call_id) if call_id == entry.call_id:
                    return ""
                case ModelAnswered(message=message) if entry.call_id in {call.id for call in message.calls}:
                    return next(call.arguments for call in message.calls if call.id == entry.call_id)
        return ""


def create_sub_agent(
    parent: AgentLoop,
    tools: Sequence[Tool],
    observer: RunObserver,
    usd: Decimal | None,
    iterations: int,
    *,
    record: RecordEntry,
) -> AgentLoop:
    """Create the loop of a sub-agent of `parent`, which is running with `tools`.

    `usd` is the sub-agent's share of the remaining budget. `record` puts its entries into the parent's journal. It
    shares the parent's permission gate, so a permission for the session holds for the parent and all its sub-agents.
    """
    setup, journal = parent.config, SubAgentJournal(record, parent.commit)
    own = [tool.for_session(journal.entries) if isinstance(tool, TodoTool | RecallTool) else tool for tool in tools]
    toolbox = Toolbox([tool for tool in own if tool.spec.name not in WITHHELD])
    limits = replace(sub_agent_limits(setup.limits, Decimal(0)), usd=usd, iterations=iterations)
    made = replace(
        setup,
        toolbox=toolbox,
        gate=parent.gate,
        system=build_system_prompt(toolbox.notes, RULES),
        limits=limits,
        observers=[observer],
        streaming=False,
        grace_s=PROMPT_GRACE_S,
    )
    return AgentLoop(journal, made)


async def existing_files(
    bench: SandboxToolset | None, paths: Sequence[str], on_host: Callable[[str], bool] | None = None
) -> Sequence[str]:
    """Return those of the files that exist in the sandbox, or on the host if sub-agents work there.

    Without a running sandbox nothing is known of its files.
    """
    there = set(await _existing_in_sandbox(bench, paths)) if bench and paths else set()
    if on_host is not None:
        there |= set(await asyncio.to_thread(lambda: list(filter(on_host, paths))))
    return [path for path in paths if path in there]


async def _existing_in_sandbox(bench: SandboxToolset, paths: Sequence[str]) -> Sequence[str]:
    shown = " ".join(map(quote, paths))
    try:
        async with bench.sandbox.use() as sandbox:
            done = await sandbox.exec(f'for f in {shown}; do [ -e "$f" ] && echo "$f"; done; true')
    except HummingbirdError:
        return ()
    return done.stdout.decode("utf-8", "replace").splitlines()

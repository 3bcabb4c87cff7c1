"""Sub-agents of an agent (C8): loops of their own, in memory, with what the parent has but what is not for them. What
is decided about their calls, and what came of them, stands in the parent's journal (T9)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from shlex import quote

from hummingbird.adapters.stores.journal import MemoryJournal
from hummingbird.agent.budget import for_subagent
from hummingbird.agent.loop import Loop
from hummingbird.agent.prompts import system_prompt
from hummingbird.agent.tools.bench import Bench
from hummingbird.agent.tools.delegate import RULES, WITHHELD, Record
from hummingbird.agent.tools.recall import Recall
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.agent.tools.todo import TodoTool
from hummingbird.domain.chat_limits import PROMPT_GRACE_S
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.journal import Entry, ModelAnswered, ToolFinished, ToolStarted
from hummingbird.ports.observer import Observer
from hummingbird.ports.tool import Tool


class ReportedJournal(MemoryJournal):
    """In memory, and told to `record` before it is: what the parent's journal does not take has not happened here. So
    a call begins only when the parent's journal is durable (L2)."""

    def __init__(self, record: Record, commit: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self._record, self._commit = record, commit

    def append(self, entry: Entry) -> None:
        self._record(entry, self._wanted(entry))
        super().append(entry)

    async def commit(self) -> None:
        await self._commit()

    def _wanted(self, entry: Entry) -> str:
        """The arguments of a call that is settled and never began: denied, a mistake, or skipped."""
        if not isinstance(entry, ToolFinished):
            return ""
        for earlier in reversed(self.entries()):
            match earlier:
                case ToolStarted(call_id=call_id) if call_id == entry.call_id:
                    return ""
                case ModelAnswered(message=message) if entry.call_id in {call.id for call in message.calls}:
                    return next(call.arguments for call in message.calls if call.id == entry.call_id)
        return ""


def sub_agent(
    parent: Loop, tools: Sequence[Tool], observer: Observer, usd: Decimal | None, iterations: int, *, record: Record
) -> Loop:
    """`parent` is under way, with `tools`. `usd`: its share of what is left. `record` takes what happens below into the
    parent's journal. The gate is the parent's, so a yes for the session holds above, below and beside."""
    setup, journal = parent.setup, ReportedJournal(record, parent.commit)
    own = [tool.of(journal.entries) if isinstance(tool, TodoTool | Recall) else tool for tool in tools]
    toolbox = Toolbox([tool for tool in own if tool.spec.name not in WITHHELD])
    limits = replace(for_subagent(setup.limits, Decimal(0)), usd=usd, iterations=iterations)
    made = replace(
        setup,
        toolbox=toolbox,
        gate=parent.gate,
        system=system_prompt(toolbox.notes, RULES),
        limits=limits,
        observers=[observer],
        streaming=False,
        grace_s=PROMPT_GRACE_S,
    )
    return Loop(journal, made)


async def present(
    bench: Bench | None, paths: Sequence[str], on_host: Callable[[str], bool] | None = None
) -> Sequence[str]:
    """Which of these files the sandbox has, or the host where sub-agents work on it (C8, users' pain 13). Nothing is
    known of those of a sandbox that is not there."""
    there = set(await _in_sandbox(bench, paths)) if bench and paths else set()
    if on_host is not None:
        there |= set(await asyncio.to_thread(lambda: list(filter(on_host, paths))))
    return [path for path in paths if path in there]


async def _in_sandbox(bench: Bench, paths: Sequence[str]) -> Sequence[str]:
    shown = " ".join(map(quote, paths))
    try:
        async with bench.bench.using() as sandbox:
            done = await sandbox.exec(f'for f in {shown}; do [ -e "$f" ] && echo "$f"; done; true')
    except HummingbirdError:
        return ()
    return done.stdout.decode("utf-8", "replace").splitlines()

"""The tool `delegate`: sub-agents with a context and a budget of their own.

Their journals say what they did: how they ended, what they found, which files are really there. What they spend is
charged to the parent at once. Whoever creates this tool provides the loops.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Protocol

import msgspec

from hummingbird.agent.compaction import find_names
from hummingbird.agent.prompts import NO_ANSWER
from hummingbird.agent.tools.permission_gate import asked_on_behalf
from hummingbird.core.errors import UsageError
from hummingbird.core.events import EntryRecorded, RunEvent, RunOutcome
from hummingbird.core.journal import EndReason, JournalEntry, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.limits import PROGRESS_CHARS, SUBAGENTS, TOOL_TIMEOUT_S
from hummingbird.core.projections import RunStatus, UsageLedger, compute_status
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.protocols.tools import ToolContext, ToolOutput
from hummingbird.core.text import shorten_line
from hummingbird.core.tool_spec import ToolSpec

TASKS = 8  # of one call; the configuration says how many run at once
DELEGATED_S = 600.0
DELEGATED_S_CAP = 3_600.0
FINDINGS_CHARS = 8_000
ARTEFACTS = 50  # files that a sub-agent named and whose existence is checked
NAME = "delegate"
ASKER_TASK_CHARS = 60  # of the task that is named when a sub-agent's call is asked about
WITHHELD = frozenset(
    {NAME, "memory", "clarify", "skill"}
)  # from sub-agents: no person talks to them, and they are short-lived
RULES = """\
You work for another agent, which gave you one task and reads only your last message. Do the task with your tools, \
then answer with: what you found or did, the evidence word for word, the full path of every file you made or changed, \
and what you did not check. No introduction, no story.\
"""
SPEC = ToolSpec(
    name=NAME,
    description=(
        "Gives tasks to sub-agents that work at the same time, each with an empty context: say all they need. They "
        "have your other tools and the same files. Returns for each task how it ended, what was found, and the files."
    ),
    schema={
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array",
                "minItems": 1,
                "maxItems": TASKS,
                "items": {"type": "string", "minLength": 1, "description": "Goal, what is known, what to return."},
            },
            "timeout_s": {"type": "number", "exclusiveMinimum": 0, "maximum": DELEGATED_S_CAP},
        },
        "required": ["tasks"],
        "additionalProperties": False,
    },
    toolset=NAME,
    exclusive=False,
    timeout_s=DELEGATED_S_CAP + TOOL_TIMEOUT_S,
)


class SubAgent(Protocol):
    """The loop of a sub-agent."""

    async def run(self, text: str) -> RunOutcome: ...

    def interrupt(self) -> None: ...


RecordEntry = Callable[[JournalEntry, str], None]  # the entry, and the arguments of a call that never started
# Arguments: the observer of its events, what it may spend in USD, and what records its entries.
StartSubAgent = Callable[[RunObserver, Decimal | None, RecordEntry], SubAgent]
FindFiles = Callable[[Sequence[str]], Awaitable[Sequence[str]]]  # returns those files that exist


async def _find_no_files(_: Sequence[str]) -> Sequence[str]:
    return ()


@dataclass
class _SubAgentTask:
    number: int
    task: str
    began: float
    sub_agent: SubAgent | None = None
    status: RunStatus = field(default_factory=RunStatus)
    ended_by: str = ""
    usd: Decimal | None = None
    calls: int = 0
    failed: int = 0
    changed: list[str] = field(default_factory=list)
    mentioned: list[str] = field(default_factory=list)
    ledger: UsageLedger = field(default_factory=UsageLedger)
    _edits: dict[str, str] = field(default_factory=dict)

    @property
    def unspent(self) -> Decimal:
        """Return the part of its budget that the sub-agent has not spent yet."""
        return Decimal(0) if self.usd is None else max(Decimal(0), self.usd - self.ledger.known_usd)

    def apply_entry(self, entry: JournalEntry) -> None:
        self.status = compute_status([entry], self.status)
        match entry:
            case ToolStarted(call_id=call_id, name="file_edit", arguments=arguments):
                self._edits[call_id] = arguments
            case ToolStarted(arguments=arguments):
                self.mentioned += _paths_in(arguments)
            case ToolFinished(call_id=call_id, outcome=outcome):
                self.calls += 1
                self.failed += outcome is not ToolOutcome.OK
                if outcome is ToolOutcome.OK and call_id in self._edits:
                    self.changed.append(_path_argument(self._edits[call_id]))
            case _:
                pass

    def stop(self, by: str) -> None:
        self.ended_by = self.ended_by or by
        if self.sub_agent is not None:
            self.sub_agent.interrupt()

    def __str__(self) -> str:
        seconds = time.monotonic() - self.began
        turns = f"{self.status.iterations} turns, {self.status.doing}"
        return f"{self.number} sub-agent, {seconds:.0f} s, {turns}: {shorten_line(self.task, 60)}"


class DelegateTool:
    """Runs sub-agents, at most `at_once` at the same time.

    `first` is the number of the first sub-agent, chosen to differ from those of processes.
    """

    def __init__(
        self, begin: StartSubAgent, *, at_once: int = SUBAGENTS, exist: FindFiles = _find_no_files, first: int = 1_001
    ) -> None:
        self._begin, self._exist = begin, exist
        self._slots = asyncio.Semaphore(at_once)
        self._jobs: dict[int, _SubAgentTask] = {}
        self._next = first

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def is_available(self) -> bool:
        return True

    def status_lines(self) -> tuple[str, ...]:
        return tuple(map(str, self._jobs.values()))

    def cancel(self, number: int | None = None) -> str:
        """Cancel that sub-agent, or all.

        Raises UsageError for one that is not there.
        """
        if number is not None and number not in self._jobs:
            raise UsageError(f"There is no sub-agent {number}.")
        found = list(self._jobs.values()) if number is None else [self._jobs[number]]
        for job in found:
            job.stop("cancelled")
        return f"{len(found)} sub-agents cancelled." if len(found) != 1 else f"Sub-agent {found[0].number} cancelled."

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        tasks = [str(task) for task in arguments["tasks"]]
        limit = min(float(arguments.get("timeout_s", DELEGATED_S)), DELEGATED_S_CAP)
        jobs = [self._add_task(task) for task in tasks]
        try:
            async with asyncio.TaskGroup() as group:
                done = [group.create_task(self._run_task(job, limit, context)) for job in jobs]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        finally:
            for job in jobs:
                job.stop("cancelled")
                self._jobs.pop(job.number, None)
        return [one.result() for one in done]

    def _add_task(self, task: str) -> _SubAgentTask:
        job = _SubAgentTask(self._next, task, time.monotonic())
        self._next += 1
        self._jobs[job.number] = job
        return job

    async def _run_task(self, job: _SubAgentTask, limit: float, context: ToolContext) -> dict[str, Any]:
        async with self._slots:
            if job.ended_by:  # cancelled while it waited
                return _not_started_report(job)
            job.began, job.usd = time.monotonic(), self._budget_share(context.remaining_usd())
            if job.usd == 0:  # even a final answer would cost something
                job.stop(EndReason.COST_LIMIT.value)
                return _not_started_report(job)
            job.sub_agent = self._begin(
                self._create_observer(job, context), job.usd, partial(context.record, job.number)
            )
            asked_on_behalf.set(f"sub-agent {job.number} ({shorten_line(job.task, ASKER_TASK_CHARS)})")
            alarm = asyncio.get_running_loop().call_later(limit, job.stop, "timed_out")
            try:
                outcome = await job.sub_agent.run(job.task)
            finally:
                alarm.cancel()
                for lost in job.ledger.charges[len(job.ledger.settled) :]:  # lost calls may have been billed
                    context.charge(replace(lost, purpose=NAME))
        self._jobs.pop(job.number, None)
        context.progress(f"sub-agent {job.number} ended: {_end_label(job, outcome)}")
        return await self._build_report(job, outcome)

    def _budget_share(self, left: Decimal | None) -> Decimal | None:
        """Return an equal share, for each task that waits, of the money that is not promised yet.

        Several calls of the tool may be under way.
        """
        if left is None:
            return None
        promised = sum((job.unspent for job in self._jobs.values()), Decimal(0))
        waiting = sum(job.sub_agent is None and not job.ended_by for job in self._jobs.values())
        return max(Decimal(0), left - promised) / waiting

    def _create_observer(self, job: _SubAgentTask, context: ToolContext) -> RunObserver:
        def watch(event: RunEvent) -> None:
            if not isinstance(event, EntryRecorded):
                return
            job.apply_entry(event.entry)
            before = len(job.ledger.settled)
            job.ledger.apply(event.entry)
            for charge in job.ledger.settled[before:]:
                context.charge(replace(charge, purpose=NAME))
            context.progress(shorten_line(" · ".join(self.status_lines()), PROGRESS_CHARS))

        return watch

    async def _build_report(self, job: _SubAgentTask, outcome: RunOutcome) -> dict[str, Any]:
        """Return the status as code, the findings in the sub-agent's words, and the files that exist.

        A sub-agent that did not finish has named no files, so those that its calls mentioned are looked for.
        """
        said = "" if outcome.text == NO_ANSWER and not outcome.answered else outcome.text
        named = [*_paths_in(said), *([] if _is_completed(outcome) else job.mentioned)]
        there = await self._exist(list(dict.fromkeys(named))[:ARTEFACTS])
        return {
            "task": job.number,
            "status": _task_status(job, outcome),
            "findings": said[:FINDINGS_CHARS] + ("…" if len(said) > FINDINGS_CHARS else ""),
            "files": list(dict.fromkeys([*job.changed, *there])),
            "tool_calls": job.calls,
            "failed_calls": job.failed,
            **({"trouble": outcome.sentence} if outcome.sentence else {}),
        }


def _is_completed(outcome: RunOutcome) -> bool:
    return outcome.answered and outcome.reason is EndReason.COMPLETED


def _task_status(job: _SubAgentTask, outcome: RunOutcome) -> str:
    """Return the status; an answer at the last moment counts as one, and work without an answer is partial."""
    if _is_completed(outcome):
        return "completed"
    ended = _end_label(job, outcome)
    return f"{ended}, partial" if job.calls or outcome.answered else ended


def _end_label(job: _SubAgentTask, outcome: RunOutcome) -> str:
    return job.ended_by or outcome.reason.value


def _not_started_report(job: _SubAgentTask) -> dict[str, Any]:
    return {"task": job.number, "status": f"{job.ended_by}, not begun", "findings": "", "files": []}


def _path_argument(arguments: str) -> str:
    with suppress(msgspec.DecodeError):
        found = msgspec.json.decode(arguments)
        return str(found.get("path", "")) if isinstance(found, dict) else ""
    return ""


def _paths_in(text: str) -> list[str]:
    """Return the likely paths, absolute ones first: most others are not files, and only some are looked for."""
    likely = [name for name in find_names(text) if "://" not in name and ("/" in name or "." in name)]
    return sorted(likely, key=lambda name: not name.startswith("/"))

"""`delegate` (C8): sub-agents with a context and a budget of their own. What they did is told by their journals: how
they ended, what they found, which files are really there. What they spend is on the parent's bill as they do (L15).

Knows neither models nor stores: whoever makes this tool makes the loops.
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

from hummingbird.agent.prompts import NO_ANSWER
from hummingbird.domain.chat_limits import (
    ARTEFACTS,
    DELEGATED_S,
    DELEGATED_S_CAP,
    FINDINGS_CHARS,
    PROGRESS_CHARS,
    TASKS,
)
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.events import Event, Recorded
from hummingbird.domain.journal import EndReason, Entry, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.domain.ledger import Ledger
from hummingbird.domain.limits import SUBAGENTS, TOOL_TIMEOUT_S
from hummingbird.domain.names import names
from hummingbird.domain.runs import Outcome
from hummingbird.domain.status import Status, status
from hummingbird.domain.text import shortened
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.observer import Observer
from hummingbird.ports.tool import Output, ToolContext

NAME = "delegate"
WITHHELD = frozenset({NAME, "memory", "clarify", "skill"})  # from sub-agents: nobody talks to them, and they end
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


class Worker(Protocol):
    """A loop."""

    async def run(self, text: str) -> Outcome: ...

    def interrupt(self) -> None: ...


Record = Callable[[Entry, str], None]  # with the arguments of a call that never began
Begin = Callable[[Observer, Decimal | None, Record], Worker]  # who sees its events, what it may spend, who keeps them
Exist = Callable[[Sequence[str]], Awaitable[Sequence[str]]]  # which of these files are there


async def _unknown(_: Sequence[str]) -> Sequence[str]:
    return ()


@dataclass
class _Job:
    number: int
    task: str
    began: float
    worker: Worker | None = None
    status: Status = field(default_factory=Status)
    ended_by: str = ""
    usd: Decimal | None = None
    calls: int = 0
    failed: int = 0
    changed: list[str] = field(default_factory=list)
    mentioned: list[str] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    _edits: dict[str, str] = field(default_factory=dict)

    @property
    def unspent(self) -> Decimal:
        """What it was promised and has not used yet."""
        return Decimal(0) if self.usd is None else max(Decimal(0), self.usd - self.ledger.known_usd)

    def see(self, entry: Entry) -> None:
        self.status = status([entry], self.status)
        match entry:
            case ToolStarted(call_id=call_id, name="file_edit", arguments=arguments):
                self._edits[call_id] = arguments
            case ToolStarted(arguments=arguments):
                self.mentioned += _paths(arguments)
            case ToolFinished(call_id=call_id, outcome=outcome):
                self.calls += 1
                self.failed += outcome is not ToolOutcome.OK
                if outcome is ToolOutcome.OK and call_id in self._edits:
                    self.changed.append(_path(self._edits[call_id]))
            case _:
                pass

    def stop(self, by: str) -> None:
        self.ended_by = self.ended_by or by
        if self.worker is not None:
            self.worker.interrupt()

    def __str__(self) -> str:
        seconds = time.monotonic() - self.began
        turns = f"{self.status.iterations} turns, {self.status.doing}"
        return f"{self.number} sub-agent, {seconds:.0f} s, {turns}: {shortened(self.task, 60)}"


class Delegate:
    """`first`: number that the first sub-agent is named by, so that it differs from those of processes."""

    def __init__(self, begin: Begin, *, at_once: int = SUBAGENTS, exist: Exist = _unknown, first: int = 1_001) -> None:
        self._begin, self._exist = begin, exist
        self._slots = asyncio.Semaphore(at_once)
        self._jobs: dict[int, _Job] = {}
        self._next = first

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def available(self) -> bool:
        return True

    def standing(self) -> tuple[str, ...]:
        return tuple(map(str, self._jobs.values()))

    def cancel(self, number: int | None = None) -> str:
        """That one, or all. Raises UsageFault for one that is not there."""
        if number is not None and number not in self._jobs:
            raise UsageFault(f"There is no sub-agent {number}.")
        found = list(self._jobs.values()) if number is None else [self._jobs[number]]
        for job in found:
            job.stop("cancelled")
        return f"{len(found)} sub-agents cancelled." if len(found) != 1 else f"Sub-agent {found[0].number} cancelled."

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        tasks = [str(task) for task in arguments["tasks"]]
        limit = min(float(arguments.get("timeout_s", DELEGATED_S)), DELEGATED_S_CAP)
        jobs = [self._job(task) for task in tasks]
        try:
            async with asyncio.TaskGroup() as group:
                done = [group.create_task(self._done(job, limit, context)) for job in jobs]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        finally:
            for job in jobs:
                job.stop("cancelled")
                self._jobs.pop(job.number, None)
        return [one.result() for one in done]

    def _job(self, task: str) -> _Job:
        job = _Job(self._next, task, time.monotonic())
        self._next += 1
        self._jobs[job.number] = job
        return job

    async def _done(self, job: _Job, limit: float, context: ToolContext) -> dict[str, Any]:
        async with self._slots:
            if job.ended_by:  # cancelled while it waited
                return _never(job)
            job.began, job.usd = time.monotonic(), self._share(context.remaining_usd())
            if job.usd == 0:  # even a last word would cost something (L6)
                job.stop(EndReason.COST_LIMIT.value)
                return _never(job)
            job.worker = self._begin(self._watching(job, context), job.usd, partial(context.record, job.number))
            alarm = asyncio.get_running_loop().call_later(limit, job.stop, "timed_out")
            try:
                outcome = await job.worker.run(job.task)
            finally:
                alarm.cancel()
                for lost in job.ledger.charges[len(job.ledger.settled) :]:  # it may have been billed (L15)
                    context.charge(replace(lost, purpose=NAME))
        self._jobs.pop(job.number, None)
        context.progress(f"sub-agent {job.number} ended: {_ended(job, outcome)}")
        return await self._told(job, outcome)

    def _share(self, left: Decimal | None) -> Decimal | None:
        """Of what nobody was promised yet, as much as each of those that wait gets. Several calls may be under way."""
        if left is None:
            return None
        promised = sum((job.unspent for job in self._jobs.values()), Decimal(0))
        waiting = sum(job.worker is None and not job.ended_by for job in self._jobs.values())
        return max(Decimal(0), left - promised) / waiting

    def _watching(self, job: _Job, context: ToolContext) -> Observer:
        def watch(event: Event) -> None:
            if not isinstance(event, Recorded):
                return
            job.see(event.entry)
            before = len(job.ledger.settled)
            job.ledger.apply(event.entry)
            for charge in job.ledger.settled[before:]:
                context.charge(replace(charge, purpose=NAME))
            context.progress(shortened(" · ".join(self.standing()), PROGRESS_CHARS))

        return watch

    async def _told(self, job: _Job, outcome: Outcome) -> dict[str, Any]:
        """Status by code, findings in its words, files that are there. No story. One that did not come to its end has
        told nobody of its files: those that its calls named are looked for (users' pain 13)."""
        said = "" if outcome.text == NO_ANSWER and not outcome.answered else outcome.text
        named = [*_paths(said), *([] if _completed(outcome) else job.mentioned)]
        there = await self._exist(list(dict.fromkeys(named))[:ARTEFACTS])
        return {
            "task": job.number,
            "status": _status(job, outcome),
            "findings": said[:FINDINGS_CHARS] + ("…" if len(said) > FINDINGS_CHARS else ""),
            "files": list(dict.fromkeys([*job.changed, *there])),
            "tool_calls": job.calls,
            "failed_calls": job.failed,
            **({"trouble": outcome.sentence} if outcome.sentence else {}),
        }


def _completed(outcome: Outcome) -> bool:
    return outcome.answered and outcome.reason is EndReason.COMPLETED


def _status(job: _Job, outcome: Outcome) -> str:
    """An answer that came in the very last moment is one; what there is without one is partial."""
    if _completed(outcome):
        return "completed"
    ended = _ended(job, outcome)
    return f"{ended}, partial" if job.calls or outcome.answered else ended


def _ended(job: _Job, outcome: Outcome) -> str:
    return job.ended_by or outcome.reason.value


def _never(job: _Job) -> dict[str, Any]:
    return {"task": job.number, "status": f"{job.ended_by}, not begun", "findings": "", "files": []}


def _path(arguments: str) -> str:
    with suppress(msgspec.DecodeError):
        found = msgspec.json.decode(arguments)
        return str(found.get("path", "")) if isinstance(found, dict) else ""
    return ""


def _paths(text: str) -> list[str]:
    """Whole ones first: of the others most are no files, and only so many are looked for."""
    likely = [name for name in names(text) if "://" not in name and ("/" in name or "." in name)]
    return sorted(likely, key=lambda name: not name.startswith("/"))

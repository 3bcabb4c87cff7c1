"""Running the calls of one response (L17, L18). A failure is a result for the model, never an exception.

Announces each call in the journal before it runs and settles it after (L2).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import msgspec

from hummingbird.agent.described import described
from hummingbird.agent.interruptible import being_cancelled, within
from hummingbird.agent.tools.registry import Prepared, Toolbox
from hummingbird.agent.tools.results import Shape, bounded, inline
from hummingbird.domain.errors import ModelMistake
from hummingbird.domain.history import UNKNOWN_OUTCOME
from hummingbird.domain.journal import Entry, ToolDecided, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.domain.limits import CONCURRENT_TOOLS, HOOK_TIMEOUT_S
from hummingbird.domain.messages import ToolCall
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.usage import Charge
from hummingbird.ports.tool import Deny, Hook, Rewrite, ToolContext


@dataclass(frozen=True, slots=True)
class Result:
    text: str
    outcome: ToolOutcome
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Batch:
    """How calls are run in one session. `record` writes an entry, `commit` makes what was written durable."""

    toolbox: Toolbox
    record: Callable[[Entry], None]
    commit: Callable[[], Awaitable[None]]
    context: Callable[[str], ToolContext]
    hooks: Sequence[Hook] = ()
    shape: Shape = inline
    mask: Callable[[str], str] = str
    paid: dict[str, list[Charge]] = field(default_factory=dict)  # by calls that are not settled yet

    @property
    def usd_under_way(self) -> Decimal:
        """What running calls have paid that no entry says yet."""
        return sum((c.cost_usd for charges in self.paid.values() for c in charges if c.cost_usd), Decimal(0))

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Settles every call. Identical calls run once; a tool that wants to be alone makes the batch sequential."""
        prepared: dict[str, Prepared | None] = {}
        for call in calls:
            prepared[call.id] = await self._prepare(call)
        ready = [(call, p) for call in calls if (p := prepared[call.id]) is not None]
        twins = _twins(ready)
        alone = any(plan.tool.spec.alone for _, plan in ready)
        slots = asyncio.Semaphore(1 if alone else CONCURRENT_TOOLS)
        await _together([self._settle(call, plan, others, slots) for call, plan, others in twins])

    async def _prepare(self, call: ToolCall) -> Prepared | None:
        """The call as it may run; None when it was settled as a mistake or denied."""
        try:
            plan = self.toolbox.prepare(call.name, call.arguments)
        except ModelMistake as mistake:
            self._finish(call, Result(str(mistake), ToolOutcome.MISTAKE))
            return None
        for hook in self.hooks:
            verdict = await self._ask(hook, plan)
            if being_cancelled():  # a hook may have swallowed it; nothing starts after an interrupt (L19)
                raise asyncio.CancelledError
            if isinstance(verdict, Deny):
                self._finish(call, self._denied(call, hook, verdict.reason))
                return None
            if isinstance(verdict, Rewrite):
                plan = Prepared(plan.tool, dict(verdict.arguments))
                self._decided(call, hook, "rewritten", f"arguments {msgspec.json.encode(plan.arguments).decode()}")
        return plan

    async def _ask(self, hook: Hook, plan: Prepared) -> Deny | Rewrite | None:
        try:
            return await within(HOOK_TIMEOUT_S, self._verdict(hook, plan))
        except TimeoutError:
            return Deny(f"the hook {hook.name} gave no verdict within {HOOK_TIMEOUT_S:g} s")

    async def _verdict(self, hook: Hook, plan: Prepared) -> Deny | Rewrite | None:
        try:
            given = deepcopy(plan.arguments)  # a hook says what it changes, it does not change it in place
            verdict: object = await hook.before_tool(plan.tool.spec, given)
            if isinstance(verdict, Rewrite):
                msgspec.json.encode(self.toolbox.validated(plan.tool.spec, dict(verdict.arguments)))
            if verdict is None or isinstance(verdict, Deny | Rewrite):
                return verdict
            return Deny(f"the hook {hook.name} gave no verdict but {type(verdict).__name__}")
        except BaseException as error:  # border: a hook is somebody's code; one that crashes denies (L18)
            if _not_its_own(error):
                raise
            return Deny(f"the hook {hook.name} failed ({shortened(described(error), 200)})")

    def _denied(self, call: ToolCall, hook: Hook, reason: str) -> Result:
        reason = plain(reason)
        self._decided(call, hook, "denied", reason)
        return Result(f"Denied: {reason}", ToolOutcome.DENIED)

    def _decided(self, call: ToolCall, hook: Hook, decision: str, reason: str) -> None:
        why = self.mask(reason)
        self.record(ToolDecided(call_id=call.id, name=call.name, by=hook.name, decision=decision, reason=why))

    async def _settle(
        self, call: ToolCall, plan: Prepared, twins: Sequence[ToolCall], slots: asyncio.Semaphore
    ) -> None:
        async with slots:
            for each in (call, *twins):
                self.record(ToolStarted(call_id=each.id, name=each.name, arguments=each.arguments))
            await self.commit()
            try:
                result = await self._after(call, plan, await self._execute(call, plan))
            except asyncio.CancelledError:
                if self.paid.get(call.id):  # what was paid is on the bill, interrupted or not (L15)
                    self._finish(call, Result(UNKNOWN_OUTCOME, ToolOutcome.UNKNOWN))
                raise
        self._finish(call, result)
        for each in twins:
            self._finish(each, result)

    async def _execute(self, call: ToolCall, plan: Prepared) -> Result:
        spec, began = plan.tool.spec, time.monotonic()
        try:
            result = await within(spec.timeout_s, self._produce(call, plan))
        except TimeoutError:
            result = Result("", ToolOutcome.ERROR)
        seconds = time.monotonic() - began
        if result.outcome is ToolOutcome.ERROR and seconds >= spec.timeout_s:
            late = f"{spec.name} was stopped after {spec.timeout_s:g} s. Ask for less, or split the work."
            return replace(result, text=late, seconds=seconds)
        return replace(result, seconds=seconds)

    async def _produce(self, call: ToolCall, plan: Prepared) -> Result:
        spec = plan.tool.spec
        try:
            text = await self.shape(spec, await plan.tool(plan.arguments, self.context(call.id)))
            return Result(bounded(text), ToolOutcome.OK)
        except BaseException as error:  # border: a tool may raise anything, sys.exit() too; the model gets a result
            if _not_its_own(error):
                raise
            return Result(bounded(f"{spec.name} failed: {described(error)}"), ToolOutcome.ERROR)

    async def _after(self, call: ToolCall, plan: Prepared, result: Result) -> Result:
        for hook in self.hooks:
            try:
                said = await within(HOOK_TIMEOUT_S, self._said_of(hook, plan, result.text))
            except TimeoutError:
                said = Deny(f"the hook {hook.name} said nothing of the result within {HOOK_TIMEOUT_S:g} s")
            if isinstance(said, Deny):
                return replace(self._denied(call, hook, said.reason), seconds=result.seconds)
            if said is not None:
                self._decided(call, hook, "rewritten", "its result")
                result = replace(result, text=bounded(said))
        return result

    async def _said_of(self, hook: Hook, plan: Prepared, result: str) -> str | Deny | None:
        try:
            text: object = await hook.after_tool(plan.tool.spec, deepcopy(plan.arguments), result)
            if text is None or isinstance(text, str):
                return text
            raise TypeError("a result is text")
        except BaseException as error:  # border: as above; a crashing hook denies (L18)
            if _not_its_own(error):
                raise
            return Deny(f"the hook {hook.name} failed on the result ({type(error).__name__})")

    def _finish(self, call: ToolCall, result: Result) -> None:
        self.record(
            ToolFinished(
                call_id=call.id,
                name=call.name,
                text=self.mask(result.text),
                outcome=result.outcome,
                seconds=round(result.seconds, 3),
                charges=tuple(self.paid.pop(call.id, ())),
            )
        )


def _not_its_own(error: BaseException) -> bool:
    """What reaches somebody's code from outside and is not for us to swallow: an interrupt, or Ctrl-C."""
    return isinstance(error, KeyboardInterrupt) or (isinstance(error, asyncio.CancelledError) and being_cancelled())


async def _together(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """All at once. What one of them raises stops the others and comes out as it is, not as a group."""
    if len(works) == 1:
        return await works[0]
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from failed


def _twins(ready: Sequence[tuple[ToolCall, Prepared]]) -> list[tuple[ToolCall, Prepared, list[ToolCall]]]:
    """Calls with the same tool and the same arguments, together: the first one runs for all of them."""
    found: dict[tuple[str, bytes], tuple[ToolCall, Prepared, list[ToolCall]]] = {}
    for call, plan in ready:
        key = (plan.tool.spec.name, msgspec.json.encode(plan.arguments, order="sorted"))
        if key in found:
            found[key][2].append(call)
        else:
            found[key] = (call, plan, [])
    return list(found.values())

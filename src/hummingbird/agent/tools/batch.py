"""Running the calls of one response (L17, L18). A failure is a result for the model, never an exception.

Announces each call in the journal before it runs and settles it after (L2).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec

from hummingbird.agent.described import described
from hummingbird.agent.interruptible import being_cancelled, within
from hummingbird.agent.tools.foreign import not_its_own
from hummingbird.agent.tools.patience import Patience
from hummingbird.agent.tools.permissions import Gate, Ruling
from hummingbird.agent.tools.registry import Prepared, Toolbox
from hummingbird.agent.tools.results import Shape, bounded, failed, inline
from hummingbird.domain.errors import ArgumentsInvalid, CallDenied, CallTimedOut, ModelMistake
from hummingbird.domain.history import UNKNOWN_OUTCOME
from hummingbird.domain.journal import Entry, ToolDecided, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.domain.limits import CONCURRENT_TOOLS, HOOK_TIMEOUT_S
from hummingbird.domain.messages import ToolCall
from hummingbird.domain.permissions import ALLOWED, DENIED
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.tools import ToolSpec
from hummingbird.domain.usage import Charge
from hummingbird.ports.tool import CallAnother, Deny, Hook, Output, Rewrite, ToolContext

_not_its_own = not_its_own


@dataclass(frozen=True, slots=True)
class Result:
    text: str
    outcome: ToolOutcome
    seconds: float = 0.0


@dataclass(slots=True)
class _Stay:
    """A call while it runs; with `patience` where there is a gate that may ask a person on its behalf."""

    call: ToolCall
    spec: ToolSpec
    patience: Patience | None = None
    over: bool = False

    def check(self, name: str) -> None:
        """Nothing is called for one that has ended or is being stopped (L19)."""
        if being_cancelled():
            raise asyncio.CancelledError
        if self.over:
            raise CallDenied(f"{name} was not called: the call of {self.spec.name} that wanted it has ended.")


@dataclass(frozen=True, slots=True)
class Batch:
    """How calls are run in one session. `record` writes an entry, `commit` makes what was written durable."""

    toolbox: Toolbox
    record: Callable[[Entry], None]
    commit: Callable[[], Awaitable[None]]
    context: Callable[[str, CallAnother], ToolContext]
    hooks: Sequence[Hook] = ()
    shape: Shape = inline
    mask: Callable[[str], str] = str
    gate: Gate | None = None
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
        groups = _twins([(call, p) for call in calls if (p := prepared[call.id]) is not None])
        if self.gate is not None:
            groups = [group for group in groups if await self._permitted(*group)]
        alone = any(plan.tool.spec.alone for _, plan, _ in groups)
        slots = asyncio.Semaphore(1 if alone else CONCURRENT_TOOLS)
        await _together([self._settle(call, plan, twins, slots) for call, plan, twins in groups])

    async def _prepare(self, call: ToolCall) -> Prepared | None:
        """The call as it may run; None when it was settled as a mistake or denied."""
        try:
            return await self._looked_over(call.id, call.name, self.toolbox.prepare(call.name, call.arguments))
        except CallDenied as denied:
            self._finish(call, Result(str(denied), ToolOutcome.DENIED))
        except ModelMistake as mistake:
            self._finish(call, Result(str(mistake), ToolOutcome.MISTAKE))
        return None

    async def _looked_over(self, call_id: str, name: str, plan: Prepared) -> Prepared:
        """What the hooks make of it. Raises CallDenied."""
        for hook in self.hooks:
            verdict = await self._ask(hook, plan)
            if being_cancelled():  # a hook may have swallowed it; nothing starts after an interrupt (L19)
                raise asyncio.CancelledError
            if isinstance(verdict, Deny):
                raise CallDenied(self._denied(call_id, name, hook, verdict.reason))
            if isinstance(verdict, Rewrite):
                plan = Prepared(plan.tool, dict(verdict.arguments))
                arguments = msgspec.json.encode(plan.arguments).decode()
                self._decided(call_id, name, hook.name, "rewritten", f"arguments {arguments}")
        return plan

    async def _permitted(self, call: ToolCall, plan: Prepared, twins: Sequence[ToolCall]) -> bool:
        """Settles the call and its twins where it is not. They are asked about once, and each is on record (T9)."""
        ruling = await self._rule(plan, [each.id for each in (call, *twins)])
        if not ruling.allowed:
            for each in (call, *twins):
                self._finish(each, Result(bounded(ruling.told), ToolOutcome.DENIED))
        return ruling.allowed

    async def _rule(self, plan: Prepared, call_ids: Sequence[str]) -> Ruling:
        """Of exactly the arguments that will run."""
        assert self.gate is not None

        def write(ruling: Ruling) -> None:
            name, decision = plan.tool.spec.name, ALLOWED if ruling.allowed else DENIED
            for each in call_ids:
                self._decided(each, name, ruling.by, decision, ruling.reason, ruling=ruling)

        return await self.gate.rule(plan.tool.spec, plan.arguments, write)

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
                arguments = deepcopy(dict(verdict.arguments))  # what is judged is what runs: nobody holds it any more
                msgspec.json.encode(self.toolbox.validated(plan.tool.spec, arguments))
                return Rewrite(arguments)
            if verdict is None or isinstance(verdict, Deny):
                return verdict
            return Deny(f"the hook {hook.name} gave no verdict but {type(verdict).__name__}")
        except BaseException as error:  # border: a hook is somebody's code; one that crashes denies (L18)
            if _not_its_own(error):
                raise
            return Deny(f"the hook {hook.name} failed ({shortened(described(error), 200)})")

    def _denied(self, call_id: str, name: str, hook: Hook, reason: str) -> str:
        """What the model reads of it, written down."""
        self._decided(call_id, name, hook.name, DENIED, reason)
        return f"Denied: {plain(reason)}"

    def _decided(
        self, call_id: str, name: str, by: str, decision: str, reason: str, *, ruling: Ruling | None = None
    ) -> None:
        decided = ToolDecided(
            call_id=call_id, name=name, by=plain(by), decision=decision, reason=self.mask(plain(reason))
        )
        if ruling is not None:
            kept = {"key": ruling.key, "scope": ruling.scope, "where": plain(ruling.where)}
            decided = msgspec.structs.replace(decided, **kept)
        self.record(decided)

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
        spec, began, late = plan.tool.spec, time.monotonic(), False
        stay = _Stay(call, spec, None if self.gate is None else Patience(spec.timeout_s))
        work = self._produce(stay, plan)
        try:
            result = await (stay.patience.run(work) if stay.patience else within(spec.timeout_s, work))
        except TimeoutError:
            result, late = Result("", ToolOutcome.ERROR), True
        finally:
            stay.over = True
        seconds = stay.patience.used_s if stay.patience else time.monotonic() - began
        if late or (result.outcome is ToolOutcome.ERROR and seconds >= spec.timeout_s):
            return replace(result, text=_too_slow(spec), seconds=seconds)
        return replace(result, seconds=seconds)

    async def _produce(self, stay: _Stay, plan: Prepared) -> Result:
        spec = plan.tool.spec
        try:
            context = self.context(stay.call.id, partial(self._on_behalf, stay))
            text = await self.shape(spec, await plan.tool(plan.arguments, context))
            return Result(bounded(text), ToolOutcome.OK)
        except BaseException as error:  # border: a tool may raise anything, sys.exit() too; the model gets a result
            if _not_its_own(error):
                raise
            return Result(bounded(failed(spec, error)), ToolOutcome.ERROR)

    async def _on_behalf(self, stay: _Stay, name: str, arguments: Mapping[str, Any]) -> Output:
        """Another tool's output for the call that is running: the way of every call, but as it came. What is decided
        stands in the journal under the call that wanted it. Raises what `ToolContext.call` says."""
        stay.check(name)
        plan = self.toolbox.prepare(name, _as_json(name, arguments))
        spec = plan.tool.spec
        if spec.alone and not stay.spec.alone:  # others may be running beside it (L17)
            raise CallDenied(f"{spec.name} must run alone, and {stay.spec.name} does not: call {spec.name} itself.")
        plan = await self._looked_over(stay.call.id, spec.name, plan)
        if stay.patience is not None:
            with stay.patience.paused():
                ruling = await self._rule(plan, [stay.call.id])
            if not ruling.allowed:
                raise CallDenied(ruling.told)
        await self.commit()
        stay.check(name)
        context = self.context(stay.call.id, _one_level_deep)
        return await _in_its_time(spec, plan.tool(plan.arguments, context))

    async def _after(self, call: ToolCall, plan: Prepared, result: Result) -> Result:
        for hook in self.hooks:
            try:
                said = await within(HOOK_TIMEOUT_S, self._said_of(hook, plan, result.text))
            except TimeoutError:
                said = Deny(f"the hook {hook.name} said nothing of the result within {HOOK_TIMEOUT_S:g} s")
            if isinstance(said, Deny):
                text = self._denied(call.id, call.name, hook, said.reason)
                return replace(result, text=text, outcome=ToolOutcome.DENIED)
            if said is not None:
                self._decided(call.id, call.name, hook.name, "rewritten", "its result")
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


async def _one_level_deep(name: str, _: Mapping[str, Any]) -> Output:
    raise CallDenied(f"{name} was not called: a tool that another one called may not call a third.")


async def _in_its_time(spec: ToolSpec, work: Coroutine[Any, Any, Output]) -> Output:
    began = time.monotonic()
    try:
        return await within(spec.timeout_s, work)
    except TimeoutError as error:
        if time.monotonic() - began < spec.timeout_s:
            raise  # the tool's own
        raise CallTimedOut(_too_slow(spec)) from error


def _too_slow(spec: ToolSpec) -> str:
    return f"{spec.name} was stopped after {spec.timeout_s:g} s. Ask for less, or split the work."


def _as_json(name: str, arguments: Mapping[str, Any]) -> str:
    try:
        return msgspec.json.encode(dict(arguments)).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentsInvalid(f"Arguments of {shortened(name, 80)} are no JSON object: {error}.") from error


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

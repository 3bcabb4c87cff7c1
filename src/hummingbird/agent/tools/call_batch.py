"""Run the tool calls of one response.

A failure is a result for the model, never an exception. Each call is recorded in the journal before it runs and after
it.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar

import msgspec

from hummingbird.agent.interrupts import is_being_cancelled, is_outside_interrupt, run_within
from hummingbird.agent.tools.permission_gate import PermissionGate, PermissionRuling
from hummingbird.agent.tools.registry import PreparedCall, Toolbox
from hummingbird.agent.tools.results import InlineShape, ResultShape, fence_untrusted, limit_text, tool_failure_text
from hummingbird.core.errors import ArgumentsInvalid, CallDenied, CallTimedOut, ModelMistake, describe_error
from hummingbird.core.journal import JournalEntry, ToolDecided, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.json_codec import InvalidJson, encode_json
from hummingbird.core.limits import CONCURRENT_TOOLS, HOOK_TIMEOUT_S, PARTIAL_OUTPUT_BYTES
from hummingbird.core.messages import PRINTED_UNTIL_THEN, UNKNOWN_OUTCOME, ToolCall
from hummingbird.core.permissions import ALLOWED, DENIED
from hummingbird.core.protocols.tools import CallTool, DenyCall, RewriteCall, ToolContext, ToolHook, ToolOutput
from hummingbird.core.text import TerminalTextCleaner, replace_surrogates, shorten_line
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.core.usage import Charge

T = TypeVar("T")


class PausableTimeout:
    """The time that a call has, which stands still while a person is asked on its behalf.

    It starts when it is made. `expired` is resolved when the time is used up.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.expired: asyncio.Future[None] = self._loop.create_future()
        self._seconds = self._left = seconds
        self._pauses = 0
        self._start()

    @property
    def used_s(self) -> float:
        running = 0.0 if self._pauses else self._loop.time() - self._since
        return self._seconds - self._left + running

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the time; overlapping pauses count as one, from the first start to the last end."""
        if not self._pauses:
            self._stop()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._start()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the work's result, or raise TimeoutError like `run_within`; may be called once."""
        task = asyncio.ensure_future(work)
        either: set[asyncio.Future[Any]] = {task, self.expired}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as cancelled:
            try:
                return await run_within(0, _await_task(task))
            except TimeoutError:
                raise cancelled from None
        finally:
            self._stop()
            self.expired.cancel()
        return await run_within(0, _await_task(task))

    def _start(self) -> None:
        self._since = self._loop.time()
        self._timer = self._loop.call_later(self._left, self._end)

    def _stop(self) -> None:
        self._timer.cancel()
        if not self._pauses:
            self._left -= self._loop.time() - self._since
            self._since = self._loop.time()

    def _end(self) -> None:
        if not self.expired.done():
            self.expired.set_result(None)


async def _await_task(task: "asyncio.Task[T]") -> T:
    return await task


@dataclass(frozen=True, slots=True)
class CallResult:
    """The text that the model reads about a call, and how the call went."""

    text: str
    outcome: ToolOutcome
    seconds: float = 0.0


@dataclass(slots=True)
class _RunningCall:
    """A call while it runs; it has a `timeout` if there is a gate that may ask a person on its behalf."""

    call: ToolCall
    spec: ToolSpec
    timeout: PausableTimeout | None = None
    over: bool = False

    def check(self, name: str) -> None:
        """Raise if this call has ended or is being cancelled: it may then call no other tool."""
        if is_being_cancelled():
            raise asyncio.CancelledError
        if self.over:
            raise CallDenied(f"{name} was not called: the call of {self.spec.name} that wanted it has ended.")


@dataclass(frozen=True, slots=True)
class ToolCallBatch:
    """How calls are run in one session: `record` writes an entry, `commit` makes what was written durable."""

    toolbox: Toolbox
    record: Callable[[JournalEntry], None]
    commit: Callable[[], Awaitable[None]]
    context: Callable[[str, CallTool], ToolContext]
    hooks: Sequence[ToolHook] = ()
    shape: ResultShape = field(default_factory=InlineShape)
    mask: Callable[[str], str] = str
    gate: PermissionGate | None = None
    paid: dict[str, list[Charge]] = field(default_factory=dict)  # charges by call id, of calls that are not settled yet
    _partial_outputs: dict[str, str] = field(default_factory=dict)  # by call id, of calls that are being interrupted

    @property
    def usd_under_way(self) -> Decimal:
        """Return what running calls have spent that is not in the journal yet."""
        return sum((c.cost_usd for charges in self.paid.values() for c in charges if c.cost_usd), Decimal(0))

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Run and settle every call.

        Identical calls run once. A tool that must run alone makes the batch sequential.
        """
        prepared: dict[str, PreparedCall | None] = {}
        for call in calls:
            prepared[call.id] = await self._prepare(call)
        groups = _group_identical_calls([(call, p) for call in calls if (p := prepared[call.id]) is not None])
        if self.gate is not None:
            groups = [group for group in groups if await self._ask_permission(*group)]
        alone = any(plan.tool.spec.runs_alone for _, plan, _ in groups)
        slots = asyncio.Semaphore(1 if alone else CONCURRENT_TOOLS)
        await _run_all([self._run_group(call, plan, twins, slots) for call, plan, twins in groups])

    async def _prepare(self, call: ToolCall) -> PreparedCall | None:
        """Return the call as it may run; None when it was denied or settled as a mistake."""
        try:
            return await self._apply_hooks(call.id, call.name, self.toolbox.prepare(call.name, call.arguments))
        except CallDenied as denied:
            self._record_result(call, CallResult(str(denied), ToolOutcome.DENIED))
        except ModelMistake as mistake:
            self._record_result(call, CallResult(str(mistake), ToolOutcome.MISTAKE))
        return None

    async def _apply_hooks(self, call_id: str, name: str, plan: PreparedCall) -> PreparedCall:
        """Return the call as the hooks rewrite it.

        Raises CallDenied.
        """
        for hook in self.hooks:
            verdict = await self._ask_hook(hook, plan)
            if is_being_cancelled():  # a hook may have swallowed the cancellation; nothing starts after an interrupt
                raise asyncio.CancelledError
            if isinstance(verdict, DenyCall):
                raise CallDenied(self._record_denial(call_id, name, hook, verdict.reason))
            if isinstance(verdict, RewriteCall):
                plan = PreparedCall(plan.tool, dict(verdict.arguments))
                arguments = msgspec.json.encode(plan.arguments).decode()
                self._record_decision(call_id, name, hook.name, "rewritten", f"arguments {arguments}")
        return plan

    async def _ask_permission(self, call: ToolCall, plan: PreparedCall, twins: Sequence[ToolCall]) -> bool:
        """Return whether the call may run; settle it and its twins as denied if not.

        They are asked about once, and the decision is recorded for each.
        """
        ruling = await self._decide_permission(plan, [each.id for each in (call, *twins)])
        if not ruling.allowed:
            for each in (call, *twins):
                self._record_result(each, CallResult(limit_text(ruling.denial_text), ToolOutcome.DENIED))
        return ruling.allowed

    async def _decide_permission(self, plan: PreparedCall, call_ids: Sequence[str]) -> PermissionRuling:
        """Decide on exactly the arguments that will run."""
        assert self.gate is not None

        def write(ruling: PermissionRuling) -> None:
            name, decision = plan.tool.spec.name, ALLOWED if ruling.allowed else DENIED
            for each in call_ids:
                self._record_decision(each, name, ruling.by, decision, ruling.reason, ruling=ruling)

        return await self.gate.decide(plan.tool.spec, plan.arguments, write)

    async def _ask_hook(self, hook: ToolHook, plan: PreparedCall) -> DenyCall | RewriteCall | None:
        try:
            return await run_within(HOOK_TIMEOUT_S, self._hook_verdict(hook, plan))
        except TimeoutError:
            return DenyCall(f"the hook {hook.name} gave no verdict within {HOOK_TIMEOUT_S:g} s")

    async def _hook_verdict(self, hook: ToolHook, plan: PreparedCall) -> DenyCall | RewriteCall | None:
        try:
            given = deepcopy(plan.arguments)  # a hook returns its changes and must not make them in place
            verdict: object = hook.before_tool(plan.tool.spec, given)
            if inspect.isawaitable(verdict):
                verdict = await verdict
            if isinstance(verdict, RewriteCall):
                arguments = deepcopy(dict(verdict.arguments))  # a private copy, so that what is checked is what runs
                msgspec.json.encode(self.toolbox.validate(plan.tool.spec, arguments))
                return RewriteCall(arguments)
            if verdict is None or isinstance(verdict, DenyCall):
                return verdict
            return DenyCall(f"the hook {hook.name} gave no verdict but {type(verdict).__name__}")
        except BaseException as error:  # border: a hook is somebody's code; one that crashes denies
            if is_outside_interrupt(error):
                raise
            return DenyCall(f"the hook {hook.name} failed ({shorten_line(describe_error(error), 200)})")

    def _record_denial(self, call_id: str, name: str, hook: ToolHook, reason: str) -> str:
        """Record the denial and return the text that tells the model about it."""
        self._record_decision(call_id, name, hook.name, DENIED, reason)
        return f"Denied: {replace_surrogates(reason)}"

    def _record_decision(
        self, call_id: str, name: str, by: str, decision: str, reason: str, *, ruling: PermissionRuling | None = None
    ) -> None:
        decided = ToolDecided(
            call_id=call_id,
            name=name,
            by=replace_surrogates(by),
            decision=decision,
            reason=self.mask(replace_surrogates(reason)),
        )
        if ruling is not None:
            kept = {"key": ruling.key, "scope": ruling.scope, "where": replace_surrogates(ruling.where)}
            decided = msgspec.structs.replace(decided, **kept)
        self.record(decided)

    async def _run_group(
        self, call: ToolCall, plan: PreparedCall, twins: Sequence[ToolCall], slots: asyncio.Semaphore
    ) -> None:
        async with slots:
            for each in (call, *twins):
                arguments = self.toolbox.own_arguments(plan.tool.spec, each.arguments)
                self.record(ToolStarted(call_id=each.id, name=each.name, arguments=arguments))
            await self.commit()
            try:
                result = await self._apply_result_hooks(call, plan, await self._run_with_timeout(call, plan))
            except asyncio.CancelledError:
                partial_output = self._partial_outputs.pop(call.id, "")
                if partial_output or self.paid.get(call.id):  # record output and charges although it was interrupted
                    text = "\n".join(filter(None, (UNKNOWN_OUTCOME, partial_output)))
                    self._record_result(call, CallResult(text, ToolOutcome.UNKNOWN))
                raise
        self._record_result(call, result)
        for each in twins:
            self._record_result(each, result)

    def _keep_partial(self, call_id: str, spec: ToolSpec, content: bytes) -> None:
        """Keep the partial output of an interrupted call, in the form that the model may read."""
        cleaner = TerminalTextCleaner()
        text = self.mask((cleaner.feed(content) + cleaner.end()).decode("utf-8", "replace"))
        if text.strip():
            shown = fence_untrusted(limit_text(replace_surrogates(text), PARTIAL_OUTPUT_BYTES), spec.name)
            self._partial_outputs[call_id] = f"{PRINTED_UNTIL_THEN}{shown}"

    async def _run_with_timeout(self, call: ToolCall, plan: PreparedCall) -> CallResult:
        spec, began, late = plan.tool.spec, time.monotonic(), False
        stay = _RunningCall(call, spec, None if self.gate is None else PausableTimeout(spec.timeout_s))
        work = self._call_tool(stay, plan)
        try:
            result = await (stay.timeout.run(work) if stay.timeout else run_within(spec.timeout_s, work))
        except TimeoutError:
            result, late = CallResult("", ToolOutcome.ERROR), True
        finally:
            stay.over = True
        seconds = stay.timeout.used_s if stay.timeout else time.monotonic() - began
        if late or (result.outcome is ToolOutcome.ERROR and seconds >= spec.timeout_s):
            return replace(result, text=_timeout_message(spec), seconds=seconds)
        return replace(result, seconds=seconds)

    async def _call_tool(self, stay: _RunningCall, plan: PreparedCall) -> CallResult:
        spec = plan.tool.spec
        try:
            context = self.context(stay.call.id, partial(self._call_other_tool, stay))
            context = replace(context, keep_partial=partial(self._keep_partial, stay.call.id, spec))
            text = await self.shape(spec, await plan.tool(plan.arguments, context))
            return CallResult(limit_text(text, self.shape.most_bytes), ToolOutcome.OK)
        except BaseException as error:  # border: a tool may raise anything, sys.exit() too; the model gets a result
            if is_outside_interrupt(error):
                raise
            return CallResult(limit_text(tool_failure_text(spec, error)), ToolOutcome.ERROR)

    async def _call_other_tool(self, stay: _RunningCall, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Return another tool's output, unshaped, on behalf of the running call.

        It passes the same checks as every call, and decisions are recorded under the running call. Raises what
        `ToolContext.call` says.
        """
        stay.check(name)
        plan = self.toolbox.prepare(name, _encode_arguments(name, arguments))
        spec = plan.tool.spec
        if spec.runs_alone and not stay.spec.runs_alone:  # other calls may be running at the same time
            raise CallDenied(
                f"{spec.name} must run alone, so {stay.spec.name} cannot call it: call {spec.name} directly."
            )
        plan = await self._apply_hooks(stay.call.id, spec.name, plan)
        if stay.timeout is not None:
            with stay.timeout.pause():
                ruling = await self._decide_permission(plan, [stay.call.id])
            if not ruling.allowed:
                raise CallDenied(ruling.denial_text)
        await self.commit()
        stay.check(name)
        context = self.context(stay.call.id, _refuse_nested_call)
        return await _call_within_timeout(spec, plan.tool(plan.arguments, context))

    async def _apply_result_hooks(self, call: ToolCall, plan: PreparedCall, result: CallResult) -> CallResult:
        for hook in self.hooks:
            try:
                said = await run_within(HOOK_TIMEOUT_S, self._ask_result_hook(hook, plan, result.text))
            except TimeoutError:
                said = DenyCall(f"the hook {hook.name} said nothing of the result within {HOOK_TIMEOUT_S:g} s")
            if isinstance(said, DenyCall):
                text = self._record_denial(call.id, call.name, hook, said.reason)
                return replace(result, text=text, outcome=ToolOutcome.DENIED)
            if said is not None:
                self._record_decision(call.id, call.name, hook.name, "rewritten", "its result")
                result = replace(result, text=limit_text(said, self.shape.most_bytes))
        return result

    async def _ask_result_hook(self, hook: ToolHook, plan: PreparedCall, result: str) -> str | DenyCall | None:
        try:
            text: object = hook.after_tool(plan.tool.spec, deepcopy(plan.arguments), result)
            if inspect.isawaitable(text):
                text = await text
            if text is None or isinstance(text, str):
                return text
            raise TypeError("a result is text")
        except BaseException as error:  # border: a hook is somebody's code; one that crashes denies
            if is_outside_interrupt(error):
                raise
            return DenyCall(f"the hook {hook.name} failed on the result ({type(error).__name__})")

    def _record_result(self, call: ToolCall, result: CallResult) -> None:
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


async def _refuse_nested_call(name: str, _: Mapping[str, Any]) -> ToolOutput:
    raise CallDenied(f"{name} was not called: a tool that another one called may not call a third.")


async def _call_within_timeout(spec: ToolSpec, work: Coroutine[Any, Any, ToolOutput]) -> ToolOutput:
    began = time.monotonic()
    try:
        return await run_within(spec.timeout_s, work)
    except TimeoutError as error:
        if time.monotonic() - began < spec.timeout_s:
            raise  # the tool raised it itself
        raise CallTimedOut(_timeout_message(spec)) from error


def _timeout_message(spec: ToolSpec) -> str:
    return f"{spec.name} was stopped after {spec.timeout_s:g} s. Ask for less, or split the work."


def _encode_arguments(name: str, arguments: Mapping[str, Any]) -> str:
    try:
        return encode_json(dict(arguments)).decode()
    except InvalidJson as error:
        raise ArgumentsInvalid(f"Arguments of {shorten_line(name, 80)} are not a JSON object: {error}.") from error


async def _run_all(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all at once; the first exception stops the others and is raised itself, not as a group."""
    if len(works) == 1:
        return await works[0]
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from failed


def _group_identical_calls(
    ready: Sequence[tuple[ToolCall, PreparedCall]],
) -> list[tuple[ToolCall, PreparedCall, list[ToolCall]]]:
    """Group calls with the same tool and arguments: the first one runs for all of them."""
    found: dict[tuple[str, bytes], tuple[ToolCall, PreparedCall, list[ToolCall]]] = {}
    for call, plan in ready:
        key = (plan.tool.spec.name, msgspec.json.encode(plan.arguments, order="sorted"))
        if key in found:
            found[key][2].append(call)
        else:
            found[key] = (call, plan, [])
    return list(found.values())

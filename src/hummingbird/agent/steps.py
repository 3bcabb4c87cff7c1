"""Decide the next step of the loop, from the journal and the conditions alone.

`decide_step` is pure: the same journal and the same clock give the same step. So every transition can be tested without
a model, and any process that has a run's journal can continue it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from hummingbird.agent import prompts
from hummingbird.agent.budget import (
    BudgetPressure,
    BudgetUsage,
    RunLimits,
    budget_pressures,
    day_budget_exhausted_reason,
)
from hummingbird.agent.recovery import RECOVERY_TABLE, RecoveryAction, RecoveryRule, ResponseKind, retry_delay_s
from hummingbird.agent.run_state import RunState
from hummingbird.core.journal import EndReason, ModelFailed
from hummingbird.core.limits import FINAL_ATTEMPTS, REPEATS_FATAL, REPEATS_NOTICED, RETRIES_BEFORE_FALLBACK, STRIKES
from hummingbird.core.messages import AssistantMessage, NoticeKind, ToolCall


@dataclass(frozen=True, slots=True)
class CallModel:
    """Call the model; `refresh` gets new credentials first, and does `otherwise` if there are none.

    `retry` is the number of this retry, of at most `retries`.
    """

    final: bool = False
    insist: bool = False  # disable tools in the request itself, at the second final attempt
    wait_s: float = 0.0
    retry: int = 0
    retries: int = 0
    refresh: bool = False
    otherwise: "SwitchModel | EndRun | None" = None


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run the open tool calls."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class SkipTools:
    """Answer the open tool calls without running them."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ShowNotice:
    """Show the model a notice."""

    notice: NoticeKind
    text: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class SwitchModel:
    """Continue with another model."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class DropEchoes:
    """Stop replaying the provider's signed blocks."""

    reason: str


@dataclass(frozen=True, slots=True)
class CompactContext:
    """Ask the context engine to make room."""


@dataclass(frozen=True, slots=True)
class WithholdResults:
    """Take back results that the model has not seen."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndRun:
    """End the run; `answered` means that its text is the model's answer."""

    reason: EndReason
    answered: bool = False
    sentence: str = ""


Step: TypeAlias = (
    CallModel | RunTools | SkipTools | ShowNotice | SwitchModel | DropEchoes | CompactContext | WithholdResults | EndRun
)


@dataclass(frozen=True, slots=True)
class LoopConditions:
    """What a decision depends on besides the journal.

    `crowded` means that the context engine wants to make room; `compacts` means that it does so when a provider reports
    an overflow.
    """

    limits: RunLimits
    chain: Sequence[str]  # names of the models, the primary first
    spent: BudgetUsage
    random: Random
    continuation: str = ""
    crowded: bool = False
    compacts: bool = False


def decide_step(state: RunState, now: LoopConditions) -> Step:
    """Return the next step of an active run."""
    if open_calls := tuple(state.conversation.pending_calls):
        return SkipTools(open_calls) if state.final else RunTools(open_calls)
    if state.failure is not None:
        return _step_after_failure(state, state.failure, now)
    if state.answer is not None:
        return _step_after_answer(state, state.answer, now)
    if state.final_calls >= FINAL_ATTEMPTS and not state.parts:
        return _end_unanswered(state.final or EndReason.MAX_ITERATIONS)
    if not state.final and (sentence := day_budget_exhausted_reason(now.limits, now.spent)):
        return _end_unanswered(EndReason.COST_LIMIT, sentence)
    if now.crowded and not state.made_room and not state.final:
        return CompactContext()
    return _next_notice(state, now) or _call_model(state)


def _call_model(state: RunState) -> CallModel:
    return CallModel(final=state.final is not None, insist=state.asked_in_final)


def _step_after_answer(state: RunState, answer: ResponseKind, now: LoopConditions) -> Step:
    if answer is ResponseKind.TEXT:
        return EndRun(state.final or EndReason.COMPLETED, answered=True)
    rule = RECOVERY_TABLE[answer]
    if rule.action is RecoveryAction.END:
        return _end_unanswered(rule.reason, _end_sentence(answer, state))
    spent_finals = state.final_calls >= FINAL_ATTEMPTS and answer is not ResponseKind.CUT_OFF
    if state.counts[answer] > rule.limit or spent_finals:
        return _end_unanswered(state.final or rule.reason, _end_sentence(answer, state))
    if rule.notice is not None:
        text = prompts.nudge_text(rule.notice, final=state.final is not None)
        return ShowNotice(rule.notice, text, about=str(state.iterations))
    # The answer is sent again as it is, and no notice may come between: so an exhausted budget ends the run here.
    spent = None if state.final else _final_turn_reason(state, budget_pressures(now.limits, now.spent))
    return _call_model(state) if spent is None else _end_unanswered(spent, _end_sentence(answer, state))


def _end_unanswered(reason: EndReason, sentence: str = "") -> EndRun:
    """End the run with whatever text there is, but not as an answer."""
    return EndRun(reason, sentence=sentence)


_WHY = {
    ResponseKind.NOTHING: "The model answered with nothing {n} times.",
    ResponseKind.MALFORMED: "The model made malformed tool calls {n} times.",
    ResponseKind.CUT_OFF: "The answer was cut off by the output limit {n} times; what there is may be incomplete.",
    ResponseKind.CUT_OFF_CALL: "The model's tool calls were cut off by the output limit {n} times.",
    ResponseKind.PAUSED: "The provider paused the answer {n} times without finishing it.",
    ResponseKind.WINDOW_FULL: "The model's context window is full.",
    ResponseKind.REFUSED: "The model refused to answer.",
}


def _end_sentence(answer: ResponseKind, state: RunState) -> str:
    return _WHY[answer].format(n=state.counts[answer])


def _step_after_failure(state: RunState, failure: ModelFailed, now: LoopConditions) -> Step:
    rule = RECOVERY_TABLE[failure.happening]
    count = state.failures[failure.happening]
    action = rule.action if count <= rule.limit else rule.then
    again = _call_model(state)
    match action:
        case RecoveryAction.RETRY:
            limit = RETRIES_BEFORE_FALLBACK if _next_models(state, now) else rule.limit
            wait_s = retry_delay_s(count, failure.retry_after_s, now.random)
            if now.limits.seconds is not None and now.spent.seconds + wait_s >= now.limits.seconds:
                return _switch_model_or_end(state, failure, rule, now)
            if count > limit:
                return _switch_model_or_end(state, failure, rule, now)
            notice = None if state.final else _next_notice(state, now)
            if notice is not None and notice.notice is NoticeKind.FINAL:
                return notice  # other runs have spent the day's money while this call failed
            return CallModel(again.final, again.insist, wait_s, retry=count, retries=limit)
        case RecoveryAction.REFRESH:
            return CallModel(
                again.final, again.insist, refresh=True, otherwise=_switch_model_or_end(state, failure, rule, now)
            )
        case RecoveryAction.REBIND:
            return DropEchoes(failure.sentence)
        case RecoveryAction.WITHHOLD if now.compacts and not state.made_room:
            return CompactContext()
        case RecoveryAction.WITHHOLD if state.conversation.unseen_results:
            return WithholdResults(state.conversation.unseen_results)
        case RecoveryAction.END:
            return _end_unanswered(rule.reason, failure.sentence)
    return _switch_model_or_end(state, failure, rule, now)


def _switch_model_or_end(
    state: RunState, failure: ModelFailed, rule: RecoveryRule, now: LoopConditions
) -> SwitchModel | EndRun:
    if after := _next_models(state, now):
        return SwitchModel(after[0], failure.sentence)
    return _end_unanswered(rule.reason, state.describe_failed_models())


def _next_models(state: RunState, now: LoopConditions) -> Sequence[str]:
    """Return the models behind the current one in the chain."""
    return list(now.chain)[now.chain.index(state.model) + 1 :] if state.model in now.chain else []


def _next_notice(state: RunState, now: LoopConditions) -> ShowNotice | None:
    """Return the next notice that must precede the coming call, if any; lasting ones come first."""
    last = state.conversation.view()[-1]
    if isinstance(last, AssistantMessage) and not last.paused:  # a new epoch dropped the request to continue it
        return ShowNotice(NoticeKind.CONTINUE, prompts.NUDGES[NoticeKind.CONTINUE], about=str(state.iterations))
    if state.run.resumed and now.continuation and (NoticeKind.CONTINUATION, "") not in state.shown:
        return ShowNotice(NoticeKind.CONTINUATION, now.continuation)
    if state.was_final and not state.final and (NoticeKind.RENEWED, "") not in state.shown:
        return ShowNotice(NoticeKind.RENEWED, prompts.NEW_TURN_NOTICE)
    pressing = budget_pressures(now.limits, now.spent)
    if (reason := state.final or _final_turn_reason(state, pressing)) is not None:
        if (NoticeKind.FINAL, reason.value) in state.shown:
            return None
        return ShowNotice(NoticeKind.FINAL, prompts.final_notice(reason), about=reason.value)
    if state.recent_repeats >= REPEATS_NOTICED and not state.warned_repeats:
        return ShowNotice(NoticeKind.REPEATING, prompts.NUDGES[NoticeKind.REPEATING], about=str(state.iterations))
    soft = (p for p in pressing if p.is_soft and (NoticeKind.SOFT_BUDGET, p.budget) not in state.shown)
    if now.limits.warns and (pressure := next(soft, None)) is not None:
        return ShowNotice(NoticeKind.SOFT_BUDGET, prompts.soft_notice(pressure), about=pressure.budget)
    return None


def _final_turn_reason(state: RunState, pressing: Sequence[BudgetPressure]) -> EndReason | None:
    if state.overflowed:
        return EndReason.CONTEXT_LIMIT
    if state.strikes >= STRIKES:
        return EndReason.MODEL_ERROR
    if state.repeats >= REPEATS_FATAL:
        return EndReason.NO_PROGRESS
    return next((pressure.reason for pressure in pressing if pressure.is_final), None)

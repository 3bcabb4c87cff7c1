"""What the loop can do next, one small value each, and `decide`, the function that chooses (L4–L14).

Pure: the same journal and the same clock give the same step, so every transition can be tested without a
model, and a run can be continued by whoever holds its journal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from hummingbird.agent import prompts
from hummingbird.agent.budget import Limits, Pressure, Spent, pressures, spent_before
from hummingbird.agent.meaning import Meaning
from hummingbird.agent.recovery import TABLE, Action, Rule, retry_delay_s
from hummingbird.agent.state import RunState
from hummingbird.domain.journal import EndReason, ModelFailed
from hummingbird.domain.limits import FINAL_ATTEMPTS, REPEATS_FATAL, REPEATS_NOTICED, STRIKES
from hummingbird.domain.messages import AssistantMessage, NoticeKind, ToolCall


@dataclass(frozen=True, slots=True)
class CallModel:
    """`refresh`: get new credentials first, or do `otherwise` when there are none to be had."""

    final: bool = False
    insist: bool = False  # disable tools mechanically (L7: the second final attempt)
    wait_s: float = 0.0
    refresh: bool = False
    otherwise: "SwitchModel | End | None" = None


@dataclass(frozen=True, slots=True)
class RunTools:
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class SkipTools:
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Show:
    notice: NoticeKind
    text: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class SwitchModel:
    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rebind:
    reason: str


@dataclass(frozen=True, slots=True)
class MakeRoom:
    """Ask the context engine (L20)."""


@dataclass(frozen=True, slots=True)
class Withhold:
    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class End:
    """`answered`: the text the run ends with is the model's answer."""

    reason: EndReason
    answered: bool = False
    sentence: str = ""


Step: TypeAlias = CallModel | RunTools | SkipTools | Show | SwitchModel | Rebind | MakeRoom | Withhold | End


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a decision depends on besides the journal. `crowded`: the context engine wants room; `compacts`: it makes
    some when a provider says that there is none."""

    limits: Limits
    chain: Sequence[str]  # names of the models, the primary first
    spent: Spent
    random: Random
    continuation: str = ""
    crowded: bool = False
    compacts: bool = False


def decide(state: RunState, now: Circumstances) -> Step:
    """The next step of an active run."""
    if open_calls := tuple(state.conversation.unsettled):
        return SkipTools(open_calls) if state.final else RunTools(open_calls)
    if state.failure is not None:
        return _after_failure(state, state.failure, now)
    if state.answer is not None:
        return _after_answer(state, state.answer, now)
    if state.final_calls >= FINAL_ATTEMPTS and not state.parts:
        return _ending(state.final or EndReason.MAX_ITERATIONS)
    if not state.final and (sentence := spent_before(now.limits, now.spent)):
        return _ending(EndReason.COST_LIMIT, sentence)
    if now.crowded and not state.made_room and not state.final:
        return MakeRoom()
    return _notice_due(state, now) or _call(state)


def _call(state: RunState) -> CallModel:
    return CallModel(final=state.final is not None, insist=state.asked_in_final)


def _after_answer(state: RunState, answer: Meaning, now: Circumstances) -> Step:
    if answer is Meaning.TEXT:
        return End(state.final or EndReason.COMPLETED, answered=True)
    rule = TABLE[answer]
    if rule.action is Action.END:
        return _ending(rule.reason, _why_ended(answer, state))
    spent_finals = state.final_calls >= FINAL_ATTEMPTS and answer is not Meaning.CUT_OFF
    if state.counts[answer] > rule.limit or spent_finals:
        return _ending(state.final or rule.reason, _why_ended(answer, state))
    if rule.notice is not None:
        text = prompts.nudge(rule.notice, final=state.final is not None)
        return Show(rule.notice, text, about=str(state.iterations))
    # sent again as it is: no notice may come between, so a budget that is used up ends the run here
    spent = None if state.final else _must_finish(state, pressures(now.limits, now.spent))
    return _call(state) if spent is None else _ending(spent, _why_ended(answer, state))


def _ending(reason: EndReason, sentence: str = "") -> End:
    """Not as it should: whatever text there is comes back, but it is not taken for the answer."""
    return End(reason, sentence=sentence)


_WHY = {
    Meaning.NOTHING: "The model answered with nothing {n} times.",
    Meaning.MALFORMED: "The model made malformed tool calls {n} times.",
    Meaning.CUT_OFF: "The answer was cut off by the output limit {n} times; what there is may be incomplete.",
    Meaning.CUT_OFF_CALL: "The model's tool calls were cut off by the output limit {n} times.",
    Meaning.PAUSED: "The provider paused the answer {n} times without finishing it.",
    Meaning.WINDOW_FULL: "The model's context window is full.",
    Meaning.REFUSED: "The model refused to answer.",
}


def _why_ended(answer: Meaning, state: RunState) -> str:
    return _WHY[answer].format(n=state.counts[answer])


def _after_failure(state: RunState, failure: ModelFailed, now: Circumstances) -> Step:
    rule = TABLE[failure.happening]
    count = state.failures[failure.happening]
    action = rule.action if count <= rule.limit else rule.then
    again = _call(state)
    match action:
        case Action.RETRY:
            wait_s = retry_delay_s(count, failure.retry_after_s, now.random)
            if now.limits.seconds is not None and now.spent.seconds + wait_s >= now.limits.seconds:
                return _next_model(state, failure, rule, now)
            return CallModel(again.final, again.insist, wait_s=wait_s)
        case Action.REFRESH:
            return CallModel(again.final, again.insist, refresh=True, otherwise=_next_model(state, failure, rule, now))
        case Action.REBIND:
            return Rebind(failure.sentence)
        case Action.WITHHOLD if now.compacts and not state.made_room:
            return MakeRoom()
        case Action.WITHHOLD if state.conversation.unseen_results:
            return Withhold(state.conversation.unseen_results)
        case Action.END:
            return _ending(rule.reason, failure.sentence)
    return _next_model(state, failure, rule, now)


def _next_model(state: RunState, failure: ModelFailed, rule: Rule, now: Circumstances) -> SwitchModel | End:
    after = list(now.chain)[now.chain.index(state.model) + 1 :] if state.model in now.chain else []
    if after:
        return SwitchModel(after[0], failure.sentence)
    return _ending(rule.reason, failure.sentence)


def _notice_due(state: RunState, now: Circumstances) -> Show | None:
    """The next notice that has to stand before the coming call, if any: lasting ones first."""
    last = state.conversation.view()[-1]
    if isinstance(last, AssistantMessage) and not last.paused:  # a new epoch took the wish to continue it away
        return Show(NoticeKind.CONTINUE, prompts.NUDGES[NoticeKind.CONTINUE], about=str(state.iterations))
    if state.run.resumed and now.continuation and (NoticeKind.CONTINUATION, "") not in state.shown:
        return Show(NoticeKind.CONTINUATION, now.continuation)
    if state.was_final and not state.final and (NoticeKind.RENEWED, "") not in state.shown:
        return Show(NoticeKind.RENEWED, prompts.RENEWED)
    pressing = pressures(now.limits, now.spent)
    if (reason := state.final or _must_finish(state, pressing)) is not None:
        if (NoticeKind.FINAL, reason.value) in state.shown:
            return None
        return Show(NoticeKind.FINAL, prompts.final_notice(reason), about=reason.value)
    if state.suspicious >= REPEATS_NOTICED and not state.warned_repeats:
        return Show(NoticeKind.REPEATING, prompts.NUDGES[NoticeKind.REPEATING], about=str(state.iterations))
    soft = (p for p in pressing if p.soft and (NoticeKind.SOFT_BUDGET, p.budget) not in state.shown)
    if now.limits.warns and (pressure := next(soft, None)) is not None:
        return Show(NoticeKind.SOFT_BUDGET, prompts.soft_notice(pressure), about=pressure.budget)
    return None


def _must_finish(state: RunState, pressing: Sequence[Pressure]) -> EndReason | None:
    if state.overflowed:
        return EndReason.CONTEXT_LIMIT
    if state.strikes >= STRIKES:
        return EndReason.MODEL_ERROR
    if state.repeats >= REPEATS_FATAL:
        return EndReason.NO_PROGRESS
    return next((pressure.reason for pressure in pressing if pressure.final), None)

"""`decide` as a pure function: which state leads to which step, without a model or a clock."""

from collections.abc import Sequence
from decimal import Decimal
from random import Random

import pytest

from hummingbird.agent.budget import BudgetUsage, RunLimits
from hummingbird.agent.run_state import RunState
from hummingbird.agent.steps import (
    CallModel,
    DropEchoes,
    EndRun,
    LoopConditions,
    RunTools,
    ShowNotice,
    SkipTools,
    Step,
    SwitchModel,
    WithholdResults,
    decide_step,
)
from hummingbird.core.journal import (
    EndReason,
    FinishReason,
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    ModelSwitched,
    NoticeShown,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.messages import AssistantMessage, NoticeKind, ToolCall
from hummingbird.core.usage import TokenUsage

CALL = ToolCall("1", "look", "{}")
BEGUN: list[JournalEntry] = [
    SessionOpened(session_id="s", system="p", format=1),
    RunStarted(run_id="r", model="a"),
    UserSaid(text="go"),
]
RESUMED: list[JournalEntry] = [*BEGUN, RunStarted(run_id="r2", model="a", resumed=True), UserSaid(text="more")]
CALLED = ModelCalled(call_id="c", model="a", messages=1)
FINAL = NoticeShown(notice=NoticeKind.FINAL, text="last", about="cost_limit")


def answered(
    text: str = "", *calls: ToolCall, finish: FinishReason = FinishReason.STOP, kept: bool = True
) -> list[JournalEntry]:
    message = AssistantMessage(text, calls=calls, paused=finish is FinishReason.PAUSE)
    return [
        CALLED,
        ModelAnswered(call_id="c", model="a", message=message, finish=finish, usage=TokenUsage(fresh=1), kept=kept),
    ]


def failed(happening: ModelFailureKind, times: int = 1, after_s: float | None = None) -> list[JournalEntry]:
    failure = ModelFailed(call_id="c", model="a", happening=happening, sentence="why", retry_after_s=after_s)
    return [CALLED, failure] * times


def done(call_id: str = "1", text: str = "seen") -> JournalEntry:
    return ToolFinished(call_id=call_id, name="look", text=text)


def step_after(
    entries: Sequence[JournalEntry],
    *,
    limits: RunLimits | None = None,
    chain: Sequence[str] = ("a",),
    seconds: float = 0.0,
) -> Step:
    state = RunState.from_entries(entries)
    spent = BudgetUsage(state.iterations, state.context_tokens, state.usd, state.unpriced, seconds, Decimal(0), 200_000)
    return decide_step(state, LoopConditions(limits or RunLimits(), chain, spent, Random(0), "Answer that."))


CALL_MODEL = CallModel()
STEPS: dict[str, tuple[list[JournalEntry], Step]] = {
    "a message": (BEGUN, CALL_MODEL),
    "a call that nobody saw the end of": ([*BEGUN, CALLED], CALL_MODEL),
    "text": ([*BEGUN, *answered("done")], EndRun(EndReason.COMPLETED, answered=True)),
    "calls": ([*BEGUN, *answered("", CALL)], RunTools((CALL,))),
    "a call that started": (
        [*BEGUN, *answered("", CALL), ToolStarted(call_id="1", name="look", arguments="{}")],
        RunTools((CALL,)),
    ),
    "results": ([*BEGUN, *answered("", CALL), done()], CALL_MODEL),
    "calls on the final turn": ([*BEGUN, FINAL, *answered("", CALL)], SkipTools((CALL,))),
    "results on the final turn": ([*BEGUN, FINAL, *answered("", CALL), done()], CallModel(final=True, insist=True)),
    "text on the final turn": ([*BEGUN, FINAL, *answered("done")], EndRun(EndReason.COST_LIMIT, answered=True)),
    "two final turns without text": (
        [*BEGUN, FINAL, *answered("", CALL), done(), *answered("", ToolCall("2", "look", "{}")), done("2")],
        EndRun(EndReason.COST_LIMIT),
    ),
    "a pause": ([*BEGUN, *answered("part", finish=FinishReason.PAUSE)], CALL_MODEL),
    "a refusal": (
        [*BEGUN, *answered("no", finish=FinishReason.REFUSAL, kept=False)],
        EndRun(EndReason.REFUSED, sentence="The model refused to answer."),
    ),
    "a full window": (
        [*BEGUN, *answered("x", finish=FinishReason.WINDOW_FULL, kept=False)],
        EndRun(EndReason.CONTEXT_LIMIT, sentence="The model's context window is full."),
    ),
    "no credit": ([*BEGUN, *failed(ModelFailureKind.CREDIT)], EndRun(EndReason.MODEL_ERROR, sentence="why")),
    "a refused request": ([*BEGUN, *failed(ModelFailureKind.REFUSED)], EndRun(EndReason.MODEL_ERROR, sentence="why")),
    "an invalid request": (
        [*BEGUN, *failed(ModelFailureKind.INVALID)],
        EndRun(EndReason.UNEXPECTED_ERROR, sentence="why"),
    ),
    "a departed script": ([*BEGUN, *failed(ModelFailureKind.DEPARTED)], EndRun(EndReason.MODEL_ERROR, sentence="why")),
    "refused thinking": ([*BEGUN, *failed(ModelFailureKind.THINKING)], DropEchoes("why")),
    "an overflow": ([*BEGUN, *answered("", CALL), done(), *failed(ModelFailureKind.OVERFLOW)], WithholdResults(("1",))),
    "an overflow of the order": (
        [*BEGUN, *failed(ModelFailureKind.OVERFLOW)],
        EndRun(EndReason.CONTEXT_LIMIT, sentence="why"),
    ),
    "a refused credential": (
        [*BEGUN, *failed(ModelFailureKind.CREDENTIAL)],
        CallModel(refresh=True, otherwise=EndRun(EndReason.MODEL_ERROR, sentence="why")),
    ),
    "one that was refused again": (
        [*BEGUN, *failed(ModelFailureKind.CREDENTIAL, 2)],
        EndRun(EndReason.MODEL_ERROR, sentence="why"),
    ),
    "a Retry-After": (
        [*BEGUN, *failed(ModelFailureKind.UNAVAILABLE, after_s=7.0)],
        CallModel(wait_s=7.0, retry=1, retries=4),
    ),
    "retries used up": (
        [*BEGUN, *failed(ModelFailureKind.UNAVAILABLE, 5)],
        EndRun(EndReason.MODEL_ERROR, sentence="why"),
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_after_this_comes_that(name: str) -> None:
    entries, wanted = STEPS[name]
    assert step_after(entries) == wanted


@pytest.mark.parametrize("name", STEPS)
def test_deciding_changes_nothing(name: str) -> None:
    """Pure: asked twice, the same step, and the state is as before."""
    entries, wanted = STEPS[name]
    state = RunState.from_entries(entries)
    spent = BudgetUsage(state.iterations, state.context_tokens, state.usd, state.unpriced, 0.0, Decimal(0), 200_000)
    now = LoopConditions(RunLimits(), ["a"], spent, Random(0))
    before = list(state.conversation.view())
    assert decide_step(state, now) == decide_step(state, now) == wanted
    assert (state.conversation.view(), state.iterations) == (before, RunState.from_entries(entries).iterations)


@pytest.mark.parametrize(
    ("entries", "notice"),
    [
        (answered("", kept=False), NoticeKind.EMPTY),
        (answered("", finish=FinishReason.MALFORMED, kept=False), NoticeKind.MALFORMED),
        (answered("half", finish=FinishReason.LENGTH), NoticeKind.CONTINUE),
        (answered("", CALL, finish=FinishReason.LENGTH, kept=False), NoticeKind.SMALLER),
    ],
)
def test_an_answer_that_is_none_gets_its_notice(entries: list[JournalEntry], notice: NoticeKind) -> None:
    step = step_after([*BEGUN, *entries])
    assert isinstance(step, ShowNotice)
    assert step.notice is notice


def test_a_resumed_run_gets_its_continuation_first() -> None:
    assert step_after(RESUMED) == ShowNotice(NoticeKind.CONTINUATION, "Answer that.")
    shown = NoticeShown(notice=NoticeKind.CONTINUATION, text="Answer that.")
    assert step_after([*RESUMED, shown]) == CALL_MODEL


@pytest.mark.parametrize(
    ("happening", "times"),
    [
        *((ModelFailureKind.CREDIT, 1), (ModelFailureKind.REFUSED, 1), (ModelFailureKind.UNAVAILABLE, 5)),
        *((ModelFailureKind.CREDENTIAL, 2), (ModelFailureKind.THINKING, 2), (ModelFailureKind.OVERFLOW, 1)),
    ],
)
def test_what_cannot_be_mended_goes_to_the_next_model(happening: ModelFailureKind, times: int) -> None:
    assert step_after([*BEGUN, *failed(happening, times)], chain=["a", "b", "c"]) == SwitchModel("b", "why")


@pytest.mark.parametrize("happening", [ModelFailureKind.INVALID, ModelFailureKind.DEPARTED])
def test_what_is_our_own_fault_does_not(happening: ModelFailureKind) -> None:
    assert isinstance(step_after([*BEGUN, *failed(happening)], chain=["a", "b"]), EndRun)


def test_the_last_of_the_chain_has_no_next() -> None:
    switched = ModelSwitched(model="b", reason="why")
    entries = [*BEGUN, *failed(ModelFailureKind.CREDIT), switched, *failed(ModelFailureKind.CREDIT)]
    assert step_after(entries, chain=["a", "b"]) == EndRun(EndReason.MODEL_ERROR, sentence="why")


def test_a_wait_that_outlasts_the_time_goes_to_the_next_model_instead() -> None:
    entries = [*BEGUN, *failed(ModelFailureKind.UNAVAILABLE, after_s=50.0)]
    step = step_after(entries, limits=RunLimits(seconds=60.0), chain=["a", "b"], seconds=20.0)
    assert step == SwitchModel("b", "why")


@pytest.mark.parametrize(
    ("limits", "seconds", "reason"),
    [
        (RunLimits(iterations=1), 0.0, EndReason.MAX_ITERATIONS),
        (RunLimits(context_tokens=1), 0.0, EndReason.CONTEXT_LIMIT),
        (RunLimits(usd=Decimal(0)), 0.0, EndReason.COST_LIMIT),
        (RunLimits(usd_per_day=Decimal(0)), 0.0, EndReason.COST_LIMIT),
        (RunLimits(seconds=10.0), 10.0, EndReason.TIME_LIMIT),
        (RunLimits(seconds=0.0), 0.0, EndReason.TIME_LIMIT),
    ],
)
def test_a_budget_that_is_used_up_shows_the_final_notice(limits: RunLimits, seconds: float, reason: EndReason) -> None:
    entries = [*BEGUN, UserSaid(text="a few more words")]
    step = step_after(entries, limits=limits, seconds=seconds)
    assert isinstance(step, ShowNotice)
    assert (step.notice, step.about) == (NoticeKind.FINAL, reason.value)


def test_a_call_that_failed_is_not_repeated_with_money_that_others_have_spent() -> None:
    entries = [*BEGUN, *failed(ModelFailureKind.UNAVAILABLE)]
    assert isinstance(step_after(entries), CallModel)
    step = step_after(entries, limits=RunLimits(usd_per_day=Decimal(0)))
    assert isinstance(step, ShowNotice)
    assert (step.notice, step.about) == (NoticeKind.FINAL, EndReason.COST_LIMIT.value)


def test_the_budget_that_is_overdrawn_most_gives_the_reason() -> None:
    step = step_after(BEGUN, limits=RunLimits(iterations=1, seconds=10.0), seconds=50.0)
    assert isinstance(step, ShowNotice)
    assert step.about == EndReason.TIME_LIMIT.value

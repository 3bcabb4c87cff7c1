"""`decide` as a pure function: which state leads to which step (L6–L14), without a model or a clock."""

from collections.abc import Sequence
from decimal import Decimal
from random import Random

import pytest

from hummingbird.agent.budget import Limits, Spent
from hummingbird.agent.state import RunState
from hummingbird.agent.steps import (
    CallModel,
    Circumstances,
    End,
    Rebind,
    RunTools,
    Show,
    SkipTools,
    Step,
    SwitchModel,
    Withhold,
    decide,
)
from hummingbird.domain.journal import (
    EndReason,
    Entry,
    Finish,
    Happening,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelSwitched,
    NoticeShown,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.messages import AssistantMessage, NoticeKind, ToolCall
from hummingbird.domain.usage import Usage

CALL = ToolCall("1", "look", "{}")
BEGUN: list[Entry] = [
    SessionOpened(session_id="s", system="p", format=1),
    RunStarted(run_id="r", model="a"),
    UserSaid(text="go"),
]
RESUMED: list[Entry] = [*BEGUN, RunStarted(run_id="r2", model="a", resumed=True), UserSaid(text="more")]
CALLED = ModelCalled(call_id="c", model="a", messages=1)
FINAL = NoticeShown(notice=NoticeKind.FINAL, text="last", about="cost_limit")


def answered(text: str = "", *calls: ToolCall, finish: Finish = Finish.STOP, kept: bool = True) -> list[Entry]:
    message = AssistantMessage(text, calls=calls, paused=finish is Finish.PAUSE)
    return [
        CALLED,
        ModelAnswered(call_id="c", model="a", message=message, finish=finish, usage=Usage(fresh=1), kept=kept),
    ]


def failed(happening: Happening, times: int = 1, after_s: float | None = None) -> list[Entry]:
    failure = ModelFailed(call_id="c", model="a", happening=happening, sentence="why", retry_after_s=after_s)
    return [CALLED, failure] * times


def done(call_id: str = "1", text: str = "seen") -> Entry:
    return ToolFinished(call_id=call_id, name="look", text=text)


def step_after(
    entries: Sequence[Entry], *, limits: Limits | None = None, chain: Sequence[str] = ("a",), seconds: float = 0.0
) -> Step:
    state = RunState.of(entries)
    spent = Spent(state.iterations, state.context_tokens, state.usd, state.unpriced, seconds, Decimal(0), 200_000)
    return decide(state, Circumstances(limits or Limits(), chain, spent, Random(0), "Answer that."))


CALL_MODEL = CallModel()
STEPS: dict[str, tuple[list[Entry], Step]] = {
    "a message": (BEGUN, CALL_MODEL),
    "a call that nobody saw the end of": ([*BEGUN, CALLED], CALL_MODEL),
    "text": ([*BEGUN, *answered("done")], End(EndReason.COMPLETED, answered=True)),
    "calls": ([*BEGUN, *answered("", CALL)], RunTools((CALL,))),
    "a call that started": (
        [*BEGUN, *answered("", CALL), ToolStarted(call_id="1", name="look", arguments="{}")],
        RunTools((CALL,)),
    ),
    "results": ([*BEGUN, *answered("", CALL), done()], CALL_MODEL),
    "calls on the final turn": ([*BEGUN, FINAL, *answered("", CALL)], SkipTools((CALL,))),
    "results on the final turn": ([*BEGUN, FINAL, *answered("", CALL), done()], CallModel(final=True, insist=True)),
    "text on the final turn": ([*BEGUN, FINAL, *answered("done")], End(EndReason.COST_LIMIT, answered=True)),
    "two final turns without text": (
        [*BEGUN, FINAL, *answered("", CALL), done(), *answered("", ToolCall("2", "look", "{}")), done("2")],
        End(EndReason.COST_LIMIT),
    ),
    "a pause": ([*BEGUN, *answered("part", finish=Finish.PAUSE)], CALL_MODEL),
    "a refusal": (
        [*BEGUN, *answered("no", finish=Finish.REFUSAL, kept=False)],
        End(EndReason.REFUSED, sentence="The model refused to answer."),
    ),
    "a full window": (
        [*BEGUN, *answered("x", finish=Finish.WINDOW_FULL, kept=False)],
        End(EndReason.CONTEXT_LIMIT, sentence="The model's context window is full."),
    ),
    "no credit": ([*BEGUN, *failed(Happening.CREDIT)], End(EndReason.MODEL_ERROR, sentence="why")),
    "a refused request": ([*BEGUN, *failed(Happening.REFUSED)], End(EndReason.MODEL_ERROR, sentence="why")),
    "an invalid request": ([*BEGUN, *failed(Happening.INVALID)], End(EndReason.UNEXPECTED_ERROR, sentence="why")),
    "a departed script": ([*BEGUN, *failed(Happening.DEPARTED)], End(EndReason.MODEL_ERROR, sentence="why")),
    "refused thinking": ([*BEGUN, *failed(Happening.THINKING)], Rebind("why")),
    "an overflow": ([*BEGUN, *answered("", CALL), done(), *failed(Happening.OVERFLOW)], Withhold(("1",))),
    "an overflow of the order": ([*BEGUN, *failed(Happening.OVERFLOW)], End(EndReason.CONTEXT_LIMIT, sentence="why")),
    "a refused credential": (
        [*BEGUN, *failed(Happening.CREDENTIAL)],
        CallModel(refresh=True, otherwise=End(EndReason.MODEL_ERROR, sentence="why")),
    ),
    "one that was refused again": (
        [*BEGUN, *failed(Happening.CREDENTIAL, 2)],
        End(EndReason.MODEL_ERROR, sentence="why"),
    ),
    "a Retry-After": ([*BEGUN, *failed(Happening.UNAVAILABLE, after_s=7.0)], CallModel(wait_s=7.0)),
    "retries used up": ([*BEGUN, *failed(Happening.UNAVAILABLE, 5)], End(EndReason.MODEL_ERROR, sentence="why")),
}


@pytest.mark.parametrize("name", STEPS)
def test_after_this_comes_that(name: str) -> None:
    """L7, L9, L13, L14"""
    entries, wanted = STEPS[name]
    assert step_after(entries) == wanted


@pytest.mark.parametrize("name", STEPS)
def test_deciding_changes_nothing(name: str) -> None:
    """Pure: asked twice, the same step, and the state is as before."""
    entries, wanted = STEPS[name]
    state = RunState.of(entries)
    spent = Spent(state.iterations, state.context_tokens, state.usd, state.unpriced, 0.0, Decimal(0), 200_000)
    now = Circumstances(Limits(), ["a"], spent, Random(0))
    before = list(state.conversation.view())
    assert decide(state, now) == decide(state, now) == wanted
    assert (state.conversation.view(), state.iterations) == (before, RunState.of(entries).iterations)


@pytest.mark.parametrize(
    ("entries", "notice"),
    [
        (answered("", kept=False), NoticeKind.EMPTY),
        (answered("", finish=Finish.MALFORMED, kept=False), NoticeKind.MALFORMED),
        (answered("half", finish=Finish.LENGTH), NoticeKind.CONTINUE),
        (answered("", CALL, finish=Finish.LENGTH, kept=False), NoticeKind.SMALLER),
    ],
)
def test_an_answer_that_is_none_gets_its_notice(entries: list[Entry], notice: NoticeKind) -> None:
    """L9"""
    step = step_after([*BEGUN, *entries])
    assert isinstance(step, Show)
    assert step.notice is notice


def test_a_resumed_run_gets_its_continuation_first() -> None:
    """L5"""
    assert step_after(RESUMED) == Show(NoticeKind.CONTINUATION, "Answer that.")
    shown = NoticeShown(notice=NoticeKind.CONTINUATION, text="Answer that.")
    assert step_after([*RESUMED, shown]) == CALL_MODEL


@pytest.mark.parametrize(
    ("happening", "times"),
    [
        *((Happening.CREDIT, 1), (Happening.REFUSED, 1), (Happening.UNAVAILABLE, 5)),
        *((Happening.CREDENTIAL, 2), (Happening.THINKING, 2), (Happening.OVERFLOW, 1)),
    ],
)
def test_what_cannot_be_mended_goes_to_the_next_model(happening: Happening, times: int) -> None:
    """L14"""
    assert step_after([*BEGUN, *failed(happening, times)], chain=["a", "b", "c"]) == SwitchModel("b", "why")


@pytest.mark.parametrize("happening", [Happening.INVALID, Happening.DEPARTED])
def test_what_is_our_own_fault_does_not(happening: Happening) -> None:
    """L12"""
    assert isinstance(step_after([*BEGUN, *failed(happening)], chain=["a", "b"]), End)


def test_the_last_of_the_chain_has_no_next() -> None:
    """L14"""
    switched = ModelSwitched(model="b", reason="why")
    entries = [*BEGUN, *failed(Happening.CREDIT), switched, *failed(Happening.CREDIT)]
    assert step_after(entries, chain=["a", "b"]) == End(EndReason.MODEL_ERROR, sentence="why")


def test_a_wait_that_outlasts_the_time_goes_to_the_next_model_instead() -> None:
    """L6, L13"""
    entries = [*BEGUN, *failed(Happening.UNAVAILABLE, after_s=50.0)]
    step = step_after(entries, limits=Limits(seconds=60.0), chain=["a", "b"], seconds=20.0)
    assert step == SwitchModel("b", "why")


@pytest.mark.parametrize(
    ("limits", "seconds", "reason"),
    [
        (Limits(iterations=1), 0.0, EndReason.MAX_ITERATIONS),
        (Limits(context_tokens=1), 0.0, EndReason.CONTEXT_LIMIT),
        (Limits(usd=Decimal(0)), 0.0, EndReason.COST_LIMIT),
        (Limits(usd_per_day=Decimal(0)), 0.0, EndReason.COST_LIMIT),
        (Limits(seconds=10.0), 10.0, EndReason.TIME_LIMIT),
        (Limits(seconds=0.0), 0.0, EndReason.TIME_LIMIT),
    ],
)
def test_a_budget_that_is_used_up_shows_the_final_notice(limits: Limits, seconds: float, reason: EndReason) -> None:
    """L7"""
    entries = [*BEGUN, UserSaid(text="a few more words")]
    step = step_after(entries, limits=limits, seconds=seconds)
    assert isinstance(step, Show)
    assert (step.notice, step.about) == (NoticeKind.FINAL, reason.value)


def test_the_budget_that_is_overdrawn_most_gives_the_reason() -> None:
    """L7, L12"""
    step = step_after(BEGUN, limits=Limits(iterations=1, seconds=10.0), seconds=50.0)
    assert isinstance(step, Show)
    assert step.about == EndReason.TIME_LIMIT.value

"""L13: retries, waiting, and a request that is too long."""

from random import Random

import pytest

from hummingbird.agent.recovery import happening, retry_delay_s
from hummingbird.domain.conversation import WITHHELD
from hummingbird.domain.errors import (
    ConnectionLost,
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    InvalidRequest,
    MissingSetting,
    ProviderError,
    ReplyUnreadable,
    RequestRefused,
    ScriptDeparted,
    ThinkingRefused,
    TimedOut,
    Unavailable,
    UnknownModel,
)
from hummingbird.domain.journal import (
    EchoesDropped,
    EndReason,
    Finish,
    Happening,
    ModelCalled,
    ModelFailed,
    ResultsWithheld,
)
from hummingbird.domain.messages import AssistantMessage, Echo, NoticeKind, ToolCall
from hummingbird.domain.usage import Usage
from hummingbird.lab.scripted import Line, ScriptedModel, calls, says
from hummingbird.ports.model import ModelReply
from tests.agent.stage import CountingTool, notices_in, results_in, stage

DELAYS = (5.0, 10.0, 20.0, 40.0)
BUSY = Unavailable("busy")


async def test_an_answer_after_four_retries_is_an_answer() -> None:
    """L13: after about 5, 10, 20 and 40 seconds."""
    model = ScriptedModel([BUSY, TimedOut("slow"), ConnectionLost("reset"), ReplyUnreadable("half"), says("done")])
    on = stage(model)
    outcome = await on.run()
    assert (outcome.reason, outcome.iterations) == (EndReason.COMPLETED, 1)
    for nap, delay in zip(on.clock.naps, DELAYS, strict=True):
        assert 0.8 * delay <= nap <= 1.2 * delay
    assert [entry.attempt for entry in on.written(ModelCalled)] == [1, 2, 3, 4, 5]


async def test_after_four_retries_the_run_ends_with_the_last_sentence() -> None:
    """L13, L14"""
    model = ScriptedModel([*[BUSY] * 4, TimedOut("no byte for 120 s")])
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.sentence) == (EndReason.MODEL_ERROR, "no byte for 120 s")
    assert len(on.clock.naps) == 4


async def test_every_iteration_has_its_own_retries() -> None:
    """L13: attempts of one iteration."""
    model = ScriptedModel([*[BUSY] * 4, calls(("count", "{}")), *[BUSY] * 4, says("done")])
    on = stage(model, tools=[CountingTool()])
    assert (await on.run()).reason is EndReason.COMPLETED
    assert len(on.clock.naps) == 8


@pytest.mark.parametrize("attempt", [1, 2, 3, 4, 9])
def test_the_jitter_stays_within_a_fifth_and_below_the_cap(attempt: int) -> None:
    """L13"""
    waits = {retry_delay_s(attempt, None, Random(seed)) for seed in range(200)}
    delay = DELAYS[min(attempt, 4) - 1]
    assert len(waits) > 100
    assert 0.8 * delay <= min(waits) < max(waits) <= min(1.2 * delay, 60.0)


@pytest.mark.parametrize(("said", "waited"), [(0.0, 0.0), (3.0, 3.0), (77.5, 77.5), (600.0, 600.0), (86_400.0, 600.0)])
async def test_what_the_provider_says_wins_and_is_capped(said: float, waited: float) -> None:
    """L13: Retry-After, at most 600 s."""
    on = stage(ScriptedModel([Unavailable("busy", said), says("done")]))
    assert (await on.run()).reason is EndReason.COMPLETED
    assert sum(on.clock.naps) == waited


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (Unavailable("429"), Happening.UNAVAILABLE),
        (TimedOut("stalled"), Happening.UNAVAILABLE),
        (ConnectionLost("reset"), Happening.UNAVAILABLE),
        (ReplyUnreadable("half"), Happening.UNAVAILABLE),
        (ContextOverflow("long"), Happening.OVERFLOW),
        (ThinkingRefused("signature"), Happening.THINKING),
        (RequestRefused("400"), Happening.REFUSED),
        (ProviderError("other"), Happening.REFUSED),
        (CredentialRefused("401"), Happening.CREDENTIAL),
        (MissingSetting("no key"), Happening.CREDENTIAL),
        (CreditExhausted("402"), Happening.CREDIT),
        (InvalidRequest("ours"), Happening.INVALID),
        (ScriptDeparted("replay"), Happening.DEPARTED),
        (UnknownModel("404"), Happening.REFUSED),
    ],
)
def test_every_error_of_a_call_has_its_row_in_the_table(error: HummingbirdError, what: Happening) -> None:
    """L13: a stalled stream counts as a timeout."""
    assert happening(error) is what


@pytest.mark.parametrize(
    "error",
    [
        RequestRefused("400"),
        CredentialRefused("401"),
        CreditExhausted("402"),
        RequestRefused("404"),
        InvalidRequest("x"),
    ],
)
async def test_what_will_fail_again_is_not_retried(error: HummingbirdError) -> None:
    """L13"""
    model = ScriptedModel([error])
    on = stage(model)
    outcome = await on.run()
    assert outcome.reason in {EndReason.MODEL_ERROR, EndReason.UNEXPECTED_ERROR}
    assert outcome.sentence == str(error)
    assert (len(model.requests), on.clock.naps) == (1, [])


async def test_every_failure_is_written_down_with_its_sentence() -> None:
    """L13, L15"""
    on = stage(ScriptedModel([Unavailable("come back", 7.0), TimedOut("x" * 5_000), says("done")]))
    await on.run()
    first, second = on.written(ModelFailed)
    assert (first.happening, first.sentence, first.retry_after_s) == (Happening.UNAVAILABLE, "come back", 7.0)
    assert len(second.sentence) <= 600


async def test_an_overflow_withholds_what_the_model_has_not_seen_and_goes_final() -> None:
    """L13, L20: once."""
    lines: list[Line] = [
        calls(("count", '{"n":1}')),
        calls(("count", '{"n":2}'), ("count", '{"n":3}')),
        ContextOverflow("too long"),
        says("with what I saw"),
    ]
    model = ScriptedModel(lines)
    on = stage(model, tools=[CountingTool()])
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.CONTEXT_LIMIT, "with what I saw", True)
    texts = [m.text for m in results_in(model.requests[-1])]
    assert texts == ["count number 1", WITHHELD, WITHHELD]
    assert len(notices_in(model.requests[-1], NoticeKind.FINAL)) == 1
    assert len(on.written(ResultsWithheld)) == 1
    assert on.clock.naps == []


async def test_a_second_overflow_ends_the_run() -> None:
    """L13"""
    overflow = ContextOverflow("still too long")
    on = stage(ScriptedModel([calls(("count", "{}")), overflow, overflow]), tools=[CountingTool()])
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.sentence) == (EndReason.CONTEXT_LIMIT, "still too long")


async def test_an_overflow_with_nothing_to_withhold_ends_the_run_honestly() -> None:
    """L13: the order itself is too long."""
    on = stage(ScriptedModel([ContextOverflow("too long")]))
    outcome = await on.run()
    assert (outcome.reason, outcome.answered) == (EndReason.CONTEXT_LIMIT, False)


async def test_an_overflow_of_one_model_is_no_overflow_of_the_next() -> None:
    """L13, L14: a larger window may take what the small one could not."""
    small = ScriptedModel([ContextOverflow("too long")], name="a:small")
    large = ScriptedModel([calls(("count", "{}")), says("done")], name="b:large")
    outcome = await stage(small, large, tools=[CountingTool()]).run()
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "done")


async def test_refused_thinking_is_replayed_once_without_signed_blocks() -> None:
    """L8, L13: a new wire epoch with the same model."""
    signed = AssistantMessage(calls=(ToolCall("1", "count", "{}"),), echo=Echo("wire", "m", "signature"))
    named = ModelReply(signed, Finish.STOP, Usage(fresh=1))
    model = ScriptedModel([named, ThinkingRefused("signature"), says("done")])
    on = stage(model, tools=[CountingTool()])
    assert (await on.run()).reason is EndReason.COMPLETED
    echoes = [[m.echo for m in r.messages if isinstance(m, AssistantMessage)] for r in model.requests]
    assert echoes[1] != [None]
    assert echoes[2] == [None]
    assert len(on.written(EchoesDropped)) == 1
    assert model.requests[2].cached == 0


async def test_thinking_that_is_refused_again_ends_the_run() -> None:
    """L13"""
    refused = ThinkingRefused("signature")
    on = stage(ScriptedModel([refused, refused]))
    outcome = await on.run()
    on.consumed()
    assert outcome.reason is EndReason.MODEL_ERROR


async def test_notices_stay_when_only_the_echoes_go() -> None:
    """L8: the model is the same, so is what it was told."""
    model = ScriptedModel([says(""), ThinkingRefused("signature"), says("done")])
    await stage(model).run()
    assert len(notices_in(model.requests[-1], NoticeKind.EMPTY)) == 1

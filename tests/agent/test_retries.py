"""Retries, waiting, and a request that is too long."""

from random import Random

import pytest

from hummingbird.agent.recovery import classify_error, retry_delay_s
from hummingbird.core.conversation import WITHHELD
from hummingbird.core.errors import (
    ContextOverflow,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    InvalidRequest,
    MissingSetting,
    ProviderConnectionLost,
    ProviderError,
    ProviderReplyUnreadable,
    ProviderRequestRefused,
    ProviderTimeout,
    ProviderUnavailable,
    ReplayMismatch,
    ThinkingRefused,
    UnknownModel,
)
from hummingbird.core.journal import (
    EchoesDropped,
    EndReason,
    FinishReason,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    ResultsWithheld,
)
from hummingbird.core.messages import AssistantMessage, NoticeKind, ProviderEcho, ToolCall
from hummingbird.core.protocols.model import ModelReply
from hummingbird.core.usage import TokenUsage
from tests.agent.stage import CountingTool, notices_in, results_in, stage
from tests.standins.scripted_model import ScriptedModel, ScriptLine, text_reply, tool_call_reply

DELAYS = (5.0, 10.0, 20.0, 40.0)
BUSY = ProviderUnavailable("busy")


async def test_an_answer_after_four_retries_is_an_answer() -> None:
    """After about 5, 10, 20 and 40 seconds."""
    model = ScriptedModel(
        [
            BUSY,
            ProviderTimeout("slow"),
            ProviderConnectionLost("reset"),
            ProviderReplyUnreadable("half"),
            text_reply("done"),
        ]
    )
    on = stage(model)
    outcome = await on.run()
    assert (outcome.reason, outcome.iterations) == (EndReason.COMPLETED, 1)
    for nap, delay in zip(on.clock.naps, DELAYS, strict=True):
        assert 0.8 * delay <= nap <= 1.2 * delay
    assert [entry.attempt for entry in on.written(ModelCalled)] == [1, 2, 3, 4, 5]


async def test_after_four_retries_the_run_ends_with_the_last_sentence() -> None:
    model = ScriptedModel([*[BUSY] * 4, ProviderTimeout("no byte for 120 s")])
    on = stage(model)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.sentence) == (EndReason.MODEL_ERROR, "no byte for 120 s")
    assert len(on.clock.naps) == 4


async def test_every_iteration_has_its_own_retries() -> None:
    """Attempts of one iteration."""
    model = ScriptedModel([*[BUSY] * 4, tool_call_reply(("count", "{}")), *[BUSY] * 4, text_reply("done")])
    on = stage(model, tools=[CountingTool()])
    assert (await on.run()).reason is EndReason.COMPLETED
    assert len(on.clock.naps) == 8


@pytest.mark.parametrize("attempt", [1, 2, 3, 4, 9])
def test_the_jitter_stays_within_a_fifth_and_below_the_cap(attempt: int) -> None:
    waits = {retry_delay_s(attempt, None, Random(seed)) for seed in range(200)}
    delay = DELAYS[min(attempt, 4) - 1]
    assert len(waits) > 100
    assert 0.8 * delay <= min(waits) < max(waits) <= min(1.2 * delay, 60.0)


@pytest.mark.parametrize(("said", "waited"), [(0.0, 0.0), (3.0, 3.0), (77.5, 77.5), (600.0, 600.0), (86_400.0, 600.0)])
async def test_what_the_provider_says_wins_and_is_capped(said: float, waited: float) -> None:
    """Retry-After, at most 600 s."""
    on = stage(ScriptedModel([ProviderUnavailable("busy", said), text_reply("done")]))
    assert (await on.run()).reason is EndReason.COMPLETED
    assert sum(on.clock.naps) == waited


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (ProviderUnavailable("429"), ModelFailureKind.UNAVAILABLE),
        (ProviderTimeout("stalled"), ModelFailureKind.UNAVAILABLE),
        (ProviderConnectionLost("reset"), ModelFailureKind.UNAVAILABLE),
        (ProviderReplyUnreadable("half"), ModelFailureKind.UNAVAILABLE),
        (ContextOverflow("long"), ModelFailureKind.OVERFLOW),
        (ThinkingRefused("signature"), ModelFailureKind.THINKING),
        (ProviderRequestRefused("400"), ModelFailureKind.REFUSED),
        (ProviderError("other"), ModelFailureKind.REFUSED),
        (CredentialRefused("401"), ModelFailureKind.CREDENTIAL),
        (MissingSetting("no key"), ModelFailureKind.CREDENTIAL),
        (CreditExhausted("402"), ModelFailureKind.CREDIT),
        (InvalidRequest("ours"), ModelFailureKind.INVALID),
        (ReplayMismatch("replay"), ModelFailureKind.DEPARTED),
        (UnknownModel("404"), ModelFailureKind.REFUSED),
    ],
)
def test_every_error_of_a_call_has_its_row_in_the_table(error: HummingbirdError, what: ModelFailureKind) -> None:
    """A stalled stream counts as a timeout."""
    assert classify_error(error) is what


@pytest.mark.parametrize(
    "error",
    [
        ProviderRequestRefused("400"),
        CredentialRefused("401"),
        CreditExhausted("402"),
        ProviderRequestRefused("404"),
        InvalidRequest("x"),
    ],
)
async def test_what_will_fail_again_is_not_retried(error: HummingbirdError) -> None:
    model = ScriptedModel([error])
    on = stage(model)
    outcome = await on.run()
    assert outcome.reason in {EndReason.MODEL_ERROR, EndReason.UNEXPECTED_ERROR}
    assert outcome.sentence == str(error)
    assert (len(model.requests), on.clock.naps) == (1, [])


async def test_every_failure_is_written_down_with_its_sentence() -> None:
    on = stage(ScriptedModel([ProviderUnavailable("come back", 7.0), ProviderTimeout("x" * 5_000), text_reply("done")]))
    await on.run()
    first, second = on.written(ModelFailed)
    assert (first.happening, first.sentence, first.retry_after_s) == (ModelFailureKind.UNAVAILABLE, "come back", 7.0)
    assert len(second.sentence) <= 600


async def test_an_overflow_withholds_what_the_model_has_not_seen_and_goes_final() -> None:
    """once."""
    lines: list[ScriptLine] = [
        tool_call_reply(("count", '{"n":1}')),
        tool_call_reply(("count", '{"n":2}'), ("count", '{"n":3}')),
        ContextOverflow("too long"),
        text_reply("with what I saw"),
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
    overflow = ContextOverflow("still too long")
    on = stage(ScriptedModel([tool_call_reply(("count", "{}")), overflow, overflow]), tools=[CountingTool()])
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.sentence) == (EndReason.CONTEXT_LIMIT, "still too long")


async def test_an_overflow_with_nothing_to_withhold_ends_the_run_honestly() -> None:
    """The order itself is too long."""
    on = stage(ScriptedModel([ContextOverflow("too long")]))
    outcome = await on.run()
    assert (outcome.reason, outcome.answered) == (EndReason.CONTEXT_LIMIT, False)


async def test_an_overflow_of_one_model_is_no_overflow_of_the_next() -> None:
    """A larger window may take what the small one could not."""
    small = ScriptedModel([ContextOverflow("too long")], name="a:small")
    large = ScriptedModel([tool_call_reply(("count", "{}")), text_reply("done")], name="b:large")
    outcome = await stage(small, large, tools=[CountingTool()]).run()
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "done")


async def test_refused_thinking_is_replayed_once_without_signed_blocks() -> None:
    """A new wire epoch with the same model."""
    signed = AssistantMessage(calls=(ToolCall("1", "count", "{}"),), echo=ProviderEcho("wire", "m", "signature"))
    named = ModelReply(signed, FinishReason.STOP, TokenUsage(fresh=1))
    model = ScriptedModel([named, ThinkingRefused("signature"), text_reply("done")])
    on = stage(model, tools=[CountingTool()])
    assert (await on.run()).reason is EndReason.COMPLETED
    echoes = [[m.echo for m in r.messages if isinstance(m, AssistantMessage)] for r in model.requests]
    assert echoes[1] != [None]
    assert echoes[2] == [None]
    assert len(on.written(EchoesDropped)) == 1
    assert model.requests[2].cached_messages == 0


async def test_thinking_that_is_refused_again_ends_the_run() -> None:
    refused = ThinkingRefused("signature")
    on = stage(ScriptedModel([refused, refused]))
    outcome = await on.run()
    on.consumed()
    assert outcome.reason is EndReason.MODEL_ERROR


async def test_notices_stay_when_only_the_echoes_go() -> None:
    """The model is the same, so is what it was told."""
    model = ScriptedModel([text_reply(""), ThinkingRefused("signature"), text_reply("done")])
    await stage(model).run()
    assert len(notices_in(model.requests[-1], NoticeKind.EMPTY)) == 1

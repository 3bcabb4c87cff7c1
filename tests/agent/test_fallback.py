"""The fallback chain."""

import pytest

from hummingbird.core.errors import (
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    ProviderConnectionLost,
    ProviderRequestRefused,
    ProviderUnavailable,
)
from hummingbird.core.journal import EndReason, FinishReason, ModelCalled, ModelSwitched
from hummingbird.core.messages import AssistantMessage, ProviderEcho, ToolCall, ToolMessage, UserMessage
from hummingbird.core.protocols.model import ModelReply
from hummingbird.core.usage import TokenUsage
from tests.agent.stage import CountingTool, stage
from tests.standins.scripted_model import ScriptedClock, ScriptedModel, ScriptLine, text_reply, tool_call_reply

NO_CREDIT = CreditExhausted("no credit")
REFUSED = CredentialRefused("bad key")


def chain(*scripts: list[ScriptLine], refreshable: bool = False) -> list[ScriptedModel]:
    return [ScriptedModel(lines, name=f"m:{n}", refreshable=refreshable) for n, lines in enumerate(scripts, 1)]


async def test_the_next_model_takes_over_after_one_failed_retry() -> None:
    models = chain([ProviderUnavailable("busy")] * 2, [text_reply("done")])
    on = stage(*models)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "done")
    assert [(entry.model, entry.reason) for entry in on.written(ModelSwitched)] == [("m:2", "busy")]
    assert len(on.clock.naps) == 1


@pytest.mark.parametrize("error", [NO_CREDIT, REFUSED, ProviderRequestRefused("404")])
async def test_it_takes_over_at_once_on_errors_that_will_not_pass(error: HummingbirdError) -> None:
    """Billing and permanent auth errors, and requests that are refused."""
    models = chain([error], [text_reply("done")])
    on = stage(*models)
    assert (await on.run()).text == "done"
    assert on.clock.naps == []


async def test_a_credential_is_refreshed_once_before_it_counts_as_refused() -> None:
    models = chain([REFUSED, text_reply("done")], refreshable=True)
    on = stage(*models)
    assert (await on.run()).text == "done"
    assert models[0].refreshes == 1

    models = chain([REFUSED, REFUSED], [text_reply("fallback")], refreshable=True)
    on = stage(*models)
    assert (await on.run()).text == "fallback"
    on.consumed()
    assert models[0].refreshes == 1


async def test_what_cannot_be_refreshed_falls_back_without_another_call() -> None:
    models = chain([REFUSED], [text_reply("done")], refreshable=False)
    on = stage(*models)
    await on.run()
    assert (models[0].refreshes, len(models[0].requests)) == (1, 1)


async def test_a_refresh_that_fails_falls_back() -> None:
    """The token service may be down as well."""

    class Unrefreshable(ScriptedModel):
        async def refresh_credentials(self) -> bool:
            raise ProviderConnectionLost("token service")

    outcome = await stage(Unrefreshable([REFUSED], name="m:1"), ScriptedModel([text_reply("done")], name="m:2")).run()
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "done")


async def test_the_full_history_goes_along_without_what_only_the_first_model_understands() -> None:
    """In the middle of a run."""
    call = ToolCall("1", "count", "{}")
    signed = AssistantMessage("looking", "because", (call,), ProviderEcho("wire", "m:1", "signature"))
    models = chain([ModelReply(signed, FinishReason.STOP, TokenUsage(fresh=1)), NO_CREDIT], [text_reply("done")])
    await stage(*models, tools=[CountingTool()]).run("order")
    assert list(models[1].requests[0].messages) == [
        UserMessage("order"),
        AssistantMessage("looking", "because", (call,)),
        ToolMessage("1", "count", "count number 1"),
    ]
    assert models[1].requests[0].cached_messages == 0
    assert models[1].requests[0].system == models[0].requests[0].system
    assert models[1].requests[0].tools == models[0].requests[0].tools


async def test_no_model_is_asked_again_in_the_same_run() -> None:
    """The chain goes one way."""
    models = chain([NO_CREDIT], [tool_call_reply(("count", "{}")), NO_CREDIT], [text_reply("done")])
    on = stage(*models, tools=[CountingTool()])
    assert (await on.run()).text == "done"
    assert [entry.model for entry in on.written(ModelCalled)] == ["m:1", "m:2", "m:2", "m:3"]


async def test_an_exhausted_chain_says_which_models_failed_and_why() -> None:
    models = chain([NO_CREDIT], [ProviderRequestRefused("no such model")], [REFUSED])
    on = stage(*models)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.sentence) == (
        EndReason.MODEL_ERROR,
        "m:1: no credit m:2: no such model m:3: bad key",
    )
    assert (outcome.bill.attempts, outcome.bill.answered) == (3, 0)


async def test_a_chain_that_names_a_model_twice_ends_too() -> None:
    model = ScriptedModel([NO_CREDIT, NO_CREDIT])
    outcome = await stage(model, model).run()
    assert outcome.reason is EndReason.MODEL_ERROR
    assert len(model.requests) == 1


@pytest.mark.parametrize(("waited", "who"), [(0.0, "m:2"), (59.0, "m:2"), (60.0, "m:1"), (3_600.0, "m:1")])
async def test_the_primary_is_tried_again_at_the_next_user_message_after_sixty_seconds(waited: float, who: str) -> None:
    clock = ScriptedClock()
    models = chain([NO_CREDIT, text_reply("from 1")], [text_reply("first"), text_reply("from 2")])
    on = stage(*models, clock=clock)
    await on.run("a")
    clock.advance(waited)
    outcome = await on.run("b")
    assert outcome.text == f"from {who[-1]}"
    assert on.written(ModelCalled)[-1].model == who


async def test_from_the_rules_a_reply_returns_to_the_configured_model_at_once() -> None:
    """`digest` only stands in, so there is nothing to wait for."""
    primary = ScriptedModel([NO_CREDIT, text_reply("from the model")], name="m:1")
    on = stage(primary, ScriptedModel([text_reply("by rules")], name="digest"))
    assert (await on.run("a")).text == "by rules"
    assert (await on.run("b")).text == "from the model"


async def test_the_cool_down_holds_across_processes() -> None:
    """It is a projection of the journal."""
    clock = ScriptedClock()
    first = stage(*chain([NO_CREDIT], [text_reply("first")]), clock=clock)
    await first.run("a")
    clock.advance(30)
    second = stage(*chain([], [text_reply("second")]), clock=clock, journal=first.journal)
    assert (await second.run("b")).text == "second"
    clock.advance(30)
    third = stage(*chain([text_reply("third")], []), clock=clock, journal=first.journal)
    assert (await third.run("c")).text == "third"


async def test_a_primary_that_fails_again_falls_back_again() -> None:
    clock = ScriptedClock()
    models = chain([NO_CREDIT, NO_CREDIT], [text_reply("1"), text_reply("2")])
    on = stage(*models, clock=clock)
    await on.run("a")
    clock.advance(61)
    assert (await on.run("b")).text == "2"
    on.consumed()


async def test_a_session_goes_on_with_another_configured_model() -> None:
    """The model it was begun with is gone from the settings."""
    first = stage(ScriptedModel([text_reply("1")], name="old:model"))
    await first.run("a")
    second = stage(ScriptedModel([text_reply("2")], name="new:model"), journal=first.journal)
    assert (await second.run("b")).text == "2"
    assert [entry.model for entry in second.written(ModelSwitched)] == ["new:model"]


async def test_trouble_of_the_first_model_does_not_count_against_the_second() -> None:
    """Each has its own retries and its own refresh."""
    models = chain(
        [*[ProviderUnavailable("busy")] * 2],
        [*[ProviderUnavailable("busy")] * 4, REFUSED, text_reply("done")],
        refreshable=True,
    )
    on = stage(*models)
    assert (await on.run()).text == "done"
    assert len(on.clock.naps) == 5  # the last model of the chain is asked as often as if it were alone

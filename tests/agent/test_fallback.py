"""L14: the fallback chain."""

import pytest

from hummingbird.domain.errors import (
    ConnectionLost,
    CredentialRefused,
    CreditExhausted,
    HummingbirdError,
    RequestRefused,
    Unavailable,
)
from hummingbird.domain.journal import EndReason, Finish, ModelCalled, ModelSwitched
from hummingbird.domain.messages import AssistantMessage, Echo, ToolCall, ToolMessage, UserMessage
from hummingbird.domain.usage import Usage
from hummingbird.lab.scripted import Line, ScriptedClock, ScriptedModel, calls, says
from hummingbird.ports.model import ModelReply
from tests.agent.stage import CountingTool, stage

NO_CREDIT = CreditExhausted("no credit")
REFUSED = CredentialRefused("bad key")


def chain(*scripts: list[Line], refreshable: bool = False) -> list[ScriptedModel]:
    return [ScriptedModel(lines, name=f"m:{n}", refreshable=refreshable) for n, lines in enumerate(scripts, 1)]


async def test_the_next_model_takes_over_when_the_retries_are_used_up() -> None:
    """L14"""
    models = chain([Unavailable("busy")] * 5, [says("done")])
    on = stage(*models)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "done")
    assert [(entry.model, entry.reason) for entry in on.written(ModelSwitched)] == [("m:2", "busy")]
    assert len(on.clock.naps) == 4


@pytest.mark.parametrize("error", [NO_CREDIT, REFUSED, RequestRefused("404")])
async def test_it_takes_over_at_once_on_errors_that_will_not_pass(error: HummingbirdError) -> None:
    """L14: billing and permanent auth errors, and requests that are refused."""
    models = chain([error], [says("done")])
    on = stage(*models)
    assert (await on.run()).text == "done"
    assert on.clock.naps == []


async def test_a_credential_is_refreshed_once_before_it_counts_as_refused() -> None:
    """L14"""
    models = chain([REFUSED, says("done")], refreshable=True)
    on = stage(*models)
    assert (await on.run()).text == "done"
    assert models[0].refreshes == 1

    models = chain([REFUSED, REFUSED], [says("fallback")], refreshable=True)
    on = stage(*models)
    assert (await on.run()).text == "fallback"
    on.consumed()
    assert models[0].refreshes == 1


async def test_what_cannot_be_refreshed_falls_back_without_another_call() -> None:
    """L14"""
    models = chain([REFUSED], [says("done")], refreshable=False)
    on = stage(*models)
    await on.run()
    assert (models[0].refreshes, len(models[0].requests)) == (1, 1)


async def test_a_refresh_that_fails_falls_back() -> None:
    """L14: the token service may be down as well."""

    class Unrefreshable(ScriptedModel):
        async def refresh_credentials(self) -> bool:
            raise ConnectionLost("token service")

    outcome = await stage(Unrefreshable([REFUSED], name="m:1"), ScriptedModel([says("done")], name="m:2")).run()
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "done")


async def test_the_full_history_goes_along_without_what_only_the_first_model_understands() -> None:
    """L14, L3: in the middle of a run."""
    call = ToolCall("1", "count", "{}")
    signed = AssistantMessage("looking", "because", (call,), Echo("wire", "m:1", "signature"))
    models = chain([ModelReply(signed, Finish.STOP, Usage(fresh=1)), NO_CREDIT], [says("done")])
    await stage(*models, tools=[CountingTool()]).run("order")
    assert list(models[1].requests[0].messages) == [
        UserMessage("order"),
        AssistantMessage("looking", "because", (call,)),
        ToolMessage("1", "count", "count number 1"),
    ]
    assert models[1].requests[0].cached == 0
    assert models[1].requests[0].system == models[0].requests[0].system
    assert models[1].requests[0].tools == models[0].requests[0].tools


async def test_no_model_is_asked_again_in_the_same_run() -> None:
    """L14: the chain goes one way."""
    models = chain([NO_CREDIT], [calls(("count", "{}")), NO_CREDIT], [says("done")])
    on = stage(*models, tools=[CountingTool()])
    assert (await on.run()).text == "done"
    assert [entry.model for entry in on.written(ModelCalled)] == ["m:1", "m:2", "m:2", "m:3"]


async def test_an_exhausted_chain_ends_with_the_last_sentence() -> None:
    """L14"""
    models = chain([NO_CREDIT], [RequestRefused("no such model")], [REFUSED])
    on = stage(*models)
    outcome = await on.run()
    on.consumed()
    assert (outcome.reason, outcome.sentence) == (EndReason.MODEL_ERROR, "bad key")
    assert (outcome.bill.attempts, outcome.bill.answered) == (3, 0)


async def test_a_chain_that_names_a_model_twice_ends_too() -> None:
    """L14, L12"""
    model = ScriptedModel([NO_CREDIT, NO_CREDIT])
    outcome = await stage(model, model).run()
    assert outcome.reason is EndReason.MODEL_ERROR
    assert len(model.requests) == 1


@pytest.mark.parametrize(("waited", "who"), [(0.0, "m:2"), (59.0, "m:2"), (60.0, "m:1"), (3_600.0, "m:1")])
async def test_the_primary_is_tried_again_at_the_next_user_message_after_sixty_seconds(waited: float, who: str) -> None:
    """L14"""
    clock = ScriptedClock()
    models = chain([NO_CREDIT, says("from 1")], [says("first"), says("from 2")])
    on = stage(*models, clock=clock)
    await on.run("a")
    clock.pass_by(waited)
    outcome = await on.run("b")
    assert outcome.text == f"from {who[-1]}"
    assert on.written(ModelCalled)[-1].model == who


async def test_the_cool_down_holds_across_processes() -> None:
    """L14, L2: it is a projection of the journal."""
    clock = ScriptedClock()
    first = stage(*chain([NO_CREDIT], [says("first")]), clock=clock)
    await first.run("a")
    clock.pass_by(30)
    second = stage(*chain([], [says("second")]), clock=clock, journal=first.journal)
    assert (await second.run("b")).text == "second"
    clock.pass_by(30)
    third = stage(*chain([says("third")], []), clock=clock, journal=first.journal)
    assert (await third.run("c")).text == "third"


async def test_a_primary_that_fails_again_falls_back_again() -> None:
    """L14"""
    clock = ScriptedClock()
    models = chain([NO_CREDIT, NO_CREDIT], [says("1"), says("2")])
    on = stage(*models, clock=clock)
    await on.run("a")
    clock.pass_by(61)
    assert (await on.run("b")).text == "2"
    on.consumed()


async def test_a_session_goes_on_with_another_configured_model() -> None:
    """L3, L14: the model it was begun with is gone from the settings."""
    first = stage(ScriptedModel([says("1")], name="old:model"))
    await first.run("a")
    second = stage(ScriptedModel([says("2")], name="new:model"), journal=first.journal)
    assert (await second.run("b")).text == "2"
    assert [entry.model for entry in second.written(ModelSwitched)] == ["new:model"]


async def test_trouble_of_the_first_model_does_not_count_against_the_second() -> None:
    """L13, L14: each has its own retries and its own refresh."""
    models = chain([*[Unavailable("busy")] * 5], [*[Unavailable("busy")] * 4, REFUSED, says("done")], refreshable=True)
    on = stage(*models)
    assert (await on.run()).text == "done"
    assert len(on.clock.naps) == 8

"""How a run ends, and that it always gives back what it has."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from hummingbird.agent.budget import RunLimits
from hummingbird.agent.prompts import NO_ANSWER
from hummingbird.core.errors import (
    CreditExhausted,
    InvalidRequest,
    JournalUnwritable,
    ProviderRequestRefused,
    ProviderUnavailable,
    ReplayMismatch,
    UsageError,
)
from hummingbird.core.events import RunEvent
from hummingbird.core.journal import EndReason, FinishReason
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.usage import TokenUsage
from tests.agent.stage import DaySpending, Stage, stage, tool
from tests.standins.scripted_model import ScriptedModel, ScriptLine, text_reply, tool_call_reply

SAME = tool_call_reply(("look", "{}"), text="so far")


class InterruptingModel(ScriptedModel):
    """Interrupts the loop that calls it, and then answers nothing any more."""

    on: Stage

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        self.requests.append(request)
        self.on.loop.interrupt()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this event")


def scripted(*lines: ScriptLine, limits: RunLimits | None = None) -> Callable[[], Stage]:
    return lambda: stage(ScriptedModel(lines), tools=[tool()], limits=limits)


def interrupted() -> Stage:
    model = InterruptingModel([])
    model.on = stage(model)
    return model.on


WAYS: dict[EndReason, Callable[[], Stage]] = {
    EndReason.COMPLETED: scripted(text_reply("done")),
    EndReason.MAX_ITERATIONS: scripted(SAME, text_reply("done"), limits=RunLimits(iterations=2)),
    EndReason.CONTEXT_LIMIT: scripted(replace(SAME, usage=TokenUsage(fresh=60_000)), text_reply("done")),
    EndReason.COST_LIMIT: scripted(SAME, text_reply("done"), limits=RunLimits(usd=Decimal("0.01"))),
    EndReason.TIME_LIMIT: scripted(text_reply("done"), limits=RunLimits(seconds=0.0)),
    EndReason.MODEL_ERROR: scripted(SAME, CreditExhausted("There is no credit left.")),
    EndReason.EMPTY_RESPONSES: scripted(text_reply(""), text_reply(""), text_reply("")),
    EndReason.NO_PROGRESS: scripted(*[SAME] * 5, text_reply("done")),
    EndReason.REFUSED: scripted(text_reply("no", finish=FinishReason.REFUSAL)),
    EndReason.INTERRUPTED: interrupted,
    EndReason.UNEXPECTED_ERROR: scripted(SAME, ZeroDivisionError("oops")),
}


@pytest.mark.parametrize("reason", EndReason)
async def test_every_reason_can_be_reached_and_gives_back_what_there_is(reason: EndReason) -> None:
    """Text, conversation, usage; the stage checks them against the journal."""
    on = WAYS[reason]()
    outcome = await on.run()
    on.consumed()
    assert outcome.reason is reason
    assert outcome.text
    assert outcome.messages[0] == UserMessage("go")
    assert outcome.bill.attempts == len(on.requests)
    assert (outcome.session_id, len(outcome.run_id)) == ("session-1", 32)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (EndReason.COMPLETED, 0),
        (EndReason.MAX_ITERATIONS, 0),
        (EndReason.NO_PROGRESS, 0),
        (EndReason.MODEL_ERROR, 1),
        (EndReason.EMPTY_RESPONSES, 1),
        (EndReason.REFUSED, 1),
        (EndReason.UNEXPECTED_ERROR, 1),
        (EndReason.INTERRUPTED, 130),
    ],
)
async def test_exit_codes_tell_an_answer_none_and_an_interrupt_apart(reason: EndReason, code: int) -> None:
    """An answer is a success, also one given on the final turn."""
    assert (await WAYS[reason]().run()).exit_code == code


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError("oops"), KeyError("missing"), AssertionError(), RecursionError("deep"), MemoryError("no")],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_model_raises_ends_the_run_and_loses_nothing(error: Exception) -> None:
    """Text, conversation and usage of the turns before are there."""
    on = stage(ScriptedModel([SAME, error]), tools=[tool()])
    outcome = await on.run()
    assert (outcome.reason, outcome.text, outcome.answered) == (EndReason.UNEXPECTED_ERROR, "so far", False)
    assert type(error).__name__ in outcome.sentence
    assert (outcome.bill.attempts, outcome.bill.answered) == (2, 1)
    assert len(outcome.messages) == 3


async def test_an_error_that_quotes_half_a_character_still_ends_the_run() -> None:
    """File names that are not UTF-8 look like this."""
    on = stage(ScriptedModel([OSError("no such file: caf\udce9" + "x" * 10_000)]))
    outcome = await on.run()
    assert outcome.reason is EndReason.UNEXPECTED_ERROR
    assert outcome.sentence.encode()
    assert len(outcome.sentence) < 1_000


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("I have nothing to say")


async def test_an_error_that_cannot_be_printed_still_ends_the_run() -> None:
    outcome = await stage(ScriptedModel([Mute()])).run()
    assert outcome.reason is EndReason.UNEXPECTED_ERROR
    assert "Mute" in outcome.sentence


async def test_a_model_that_cancels_itself_ends_the_run_and_loses_nothing() -> None:
    """Nobody interrupted, and nobody cancelled the run."""

    class Cancelling(ScriptedModel):
        async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
            self.requests.append(request)
            raise asyncio.CancelledError

    outcome = await stage(Cancelling([])).run()
    assert outcome.reason is EndReason.UNEXPECTED_ERROR


async def test_a_price_list_that_fails_ends_the_run_and_loses_nothing() -> None:
    class Priceless(ScriptedModel):
        def price(self, usage: TokenUsage) -> Decimal | None:
            raise KeyError("price")

    outcome = await stage(Priceless([text_reply("done")])).run()
    assert (outcome.reason, outcome.text) == (EndReason.UNEXPECTED_ERROR, NO_ANSWER)


async def test_a_day_budget_that_cannot_be_read_ends_the_run_and_loses_nothing() -> None:
    class Unreadable(DaySpending):
        async def usd_today(self, project: str) -> Decimal:
            raise OSError("no such table")

    on = stage(ScriptedModel([]), limits=RunLimits(usd_per_day=Decimal(1)), spending=Unreadable(), project="p")
    assert (await on.run()).reason is EndReason.UNEXPECTED_ERROR


async def test_a_request_the_builder_refuses_is_an_unexpected_error() -> None:
    """Nothing was sent."""
    outcome = await stage(ScriptedModel([InvalidRequest("two in a row")])).run()
    assert (outcome.reason, outcome.sentence) == (EndReason.UNEXPECTED_ERROR, "two in a row")


async def test_a_replay_that_departs_from_its_script_is_a_model_error() -> None:
    outcome = await stage(ScriptedModel([ReplayMismatch("other words")])).run()
    assert (outcome.reason, outcome.sentence) == (EndReason.MODEL_ERROR, "other words")


async def test_with_nothing_said_the_text_is_a_fixed_sentence() -> None:
    outcome = await stage(ScriptedModel([CreditExhausted("none left")])).run()
    assert (outcome.text, outcome.sentence) == (NO_ANSWER, "none left")


async def test_a_run_after_one_that_failed_starts_with_a_valid_history() -> None:
    model = ScriptedModel([SAME, ZeroDivisionError("oops"), text_reply("done")])
    on = stage(model, tools=[tool()])
    await on.run()
    outcome = await on.run("again")
    assert (outcome.reason, outcome.text) == (EndReason.COMPLETED, "done")
    assert outcome.bill.attempts == 3


def test_a_loop_without_a_model_says_so() -> None:
    with pytest.raises(UsageError, match="at least one model"):
        stage()


async def test_going_on_without_an_unfinished_run_says_so() -> None:
    on = stage(ScriptedModel([text_reply("done")]))
    with pytest.raises(UsageError, match="no unfinished run"):
        await on.go_on()
    await on.run()
    with pytest.raises(UsageError, match="no unfinished run"):
        await on.go_on()


async def test_two_runs_at_once_are_one_too_many() -> None:
    """One session, one run at a time; the one under way is not disturbed."""
    on = stage(ScriptedModel([text_reply("first"), text_reply("third")]))
    running = asyncio.create_task(on.loop.run("1"))
    await asyncio.sleep(0)
    with pytest.raises(UsageError, match="under way"):
        await on.loop.run("2")
    on.check(await running)
    assert (await on.run("3")).text == "third"


async def test_a_second_run_does_not_take_back_an_interrupt() -> None:
    on = interrupted()
    running = asyncio.create_task(on.loop.run("go"))
    await asyncio.sleep(0)
    with pytest.raises(UsageError, match="under way"):
        await on.loop.run("more")
    assert (await running).reason is EndReason.INTERRUPTED


async def test_a_history_cannot_be_given_to_a_session_that_has_one() -> None:
    on = stage(ScriptedModel([text_reply("done")]))
    await on.run()
    with pytest.raises(UsageError, match="history of its own"):
        await on.loop.run("again", history=[{"role": "user", "content": "x"}])


async def test_a_damaged_history_is_repaired_before_it_is_sent() -> None:
    """Orphans dropped, missing results stubbed, neighbours merged; the stage checks every request."""
    model = ScriptedModel([text_reply("done")])
    damaged: list[object] = [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "9", "content": "orphan"},
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
        "garbage",
        {"role": "user", "content": "x"},
        {"role": "user", "content": "y"},
    ]
    outcome = await stage(model).run("go", history=damaged)
    assert outcome.reason is EndReason.COMPLETED
    assert [m.text for m in model.requests[0].messages if isinstance(m, UserMessage)][-2:] == ["x\n\ny", "go"]


async def test_a_wait_that_would_outlast_the_time_budget_is_not_begun() -> None:
    on = stage(ScriptedModel([ProviderUnavailable("busy", 500.0)]), limits=RunLimits(seconds=100.0))
    outcome = await on.run()
    assert (outcome.reason, outcome.sentence) == (EndReason.MODEL_ERROR, "busy")
    assert on.clock.naps == []


async def test_a_piece_of_an_answer_comes_back_when_the_rest_never_does() -> None:
    """Returns what it has; it is not taken for the answer."""
    for rest in (ProviderRequestRefused("no"), ZeroDivisionError("oops"), text_reply("", finish=FinishReason.REFUSAL)):
        outcome = await stage(ScriptedModel([text_reply("The cause is", finish=FinishReason.LENGTH), rest])).run()
        assert outcome.text == "The cause is"
        assert (outcome.answered, outcome.exit_code) == (False, 1)


async def test_a_console_that_was_closed_does_not_end_the_run() -> None:
    """It is not asked again, the others are."""
    broken: list[RunEvent] = []
    whole: list[RunEvent] = []

    def breaks(event: RunEvent) -> None:
        broken.append(event)
        raise BrokenPipeError

    on = stage(ScriptedModel([text_reply("done")]), observers=[breaks, whole.append])
    assert (await on.run()).text == "done"
    assert len(broken) == 1
    assert len(whole) > 3


async def test_a_record_of_spending_that_fails_does_not_take_the_answer_away() -> None:
    """The answer is there; before more is spent, the record is asked and must answer."""

    class Broken:
        async def usd_today(self, project: str) -> Decimal:
            return Decimal(0)

        async def add(self, project: str, usd: Decimal) -> None:
            raise JournalUnwritable("no space")

    outcome = await stage(
        ScriptedModel([text_reply("done")]), spending=Broken(), limits=RunLimits(usd_per_day=Decimal(1))
    ).run()
    assert (outcome.reason, outcome.text, outcome.exit_code) == (EndReason.COMPLETED, "done", 0)


async def test_a_ceiling_per_day_needs_a_record() -> None:
    """Never silently not enforced."""
    with pytest.raises(UsageError, match="per day needs a record"):
        stage(ScriptedModel([]), limits=RunLimits(usd_per_day=Decimal(1)))

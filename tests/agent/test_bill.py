"""Every attempt is in the ledger and there is one sum."""

import asyncio
from decimal import Decimal

import pytest

from hummingbird.core.errors import CreditExhausted, ProviderTimeout, ProviderUnavailable
from hummingbird.core.journal import ModelAnswered
from hummingbird.core.projections import UsageLedger, render_transcript
from hummingbird.core.protocols.tools import ToolContext
from hummingbird.core.usage import Charge, TokenUsage, sum_charges
from tests.agent.stage import CountingTool, stage, tool
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

USAGE = TokenUsage(fresh=7, cache_read=5, cache_write=3, output=11, reasoning=2)


async def test_every_attempt_is_a_line_also_failed_and_retried_ones() -> None:
    first = ScriptedModel(
        [ProviderTimeout("slow"), tool_call_reply(("count", "{}")), CreditExhausted("none")], name="a:one"
    )
    second = ScriptedModel([ProviderUnavailable("busy"), text_reply(""), text_reply("done", usage=USAGE)], name="b:two")
    on = stage(first, second, tools=[CountingTool()])
    outcome = await on.run()
    charges = UsageLedger.from_entries(on.journal.entries()).charges
    assert [(c.model, c.outcome) for c in charges] == [
        ("a:one", "outcome unknown"),  # it timed out on the way: perhaps billed
        ("a:one", "answered"),
        ("a:one", "credit"),
        ("b:two", "unavailable"),
        ("b:two", "answered"),
        ("b:two", "answered"),
    ]
    assert (outcome.bill.attempts, outcome.bill.answered) == (6, 3)


async def test_the_sums_are_the_sums_of_the_lines() -> None:
    """Tokens in, out, cache read, cache write, reasoning; price."""
    on = stage(ScriptedModel([text_reply("", usage=USAGE), text_reply("done", usage=USAGE)], usd=Decimal("0.25")))
    outcome = await on.run()
    assert outcome.bill.usage == USAGE + USAGE
    assert outcome.bill.cost_usd == Decimal("0.50")
    assert outcome.bill == sum_charges(UsageLedger.from_entries(on.journal.entries()).charges)


async def test_outcome_transcript_and_ledger_show_the_same_number() -> None:
    on = stage(ScriptedModel([text_reply("1"), text_reply("2")]))
    await on.run("a")
    outcome = await on.run("b")
    assert str(outcome.bill) in render_transcript(on.journal.entries())
    assert outcome.bill.known_usd == sum((entry.cost_usd or 0 for entry in on.written(ModelAnswered)), Decimal(0))


async def test_an_unknown_price_is_unknown_and_not_nothing() -> None:
    known = ScriptedModel([text_reply(""), CreditExhausted("none")], name="a:one")
    unknown = ScriptedModel([text_reply("done")], name="b:two", usd=None)
    bill = (await stage(known, unknown).run()).bill
    assert (bill.cost_usd, bill.known_usd, bill.unknown) == (None, Decimal("0.01"), 1)
    assert "unknown" in str(bill)


async def test_a_price_of_nothing_is_known() -> None:
    """A local model costs nothing, and that is a fact."""
    bill = (await stage(ScriptedModel([text_reply("done")], usd=Decimal(0))).run()).bill
    assert (bill.cost_usd, bill.unknown) == (Decimal(0), 0)


async def test_what_a_tool_paid_for_models_is_in_the_ledger_once() -> None:
    """A sub-agent's calls, also where two identical calls ran once."""
    charges = (
        Charge("s:sub", "sub-agent", "answered", USAGE, Decimal("0.5")),
        Charge("s:sub", "sub-agent", "unavailable"),
        Charge("s:sub", "summary", "answered", USAGE, None),
    )

    async def delegate(context: ToolContext) -> dict[str, str]:
        for charge in charges:
            context.charge(charge)
        return {"report": "fine"}

    model = ScriptedModel([tool_call_reply(("delegate", "{}"), ("delegate", "{}")), text_reply("done")])
    on = stage(model, tools=[tool("delegate", delegate)])
    outcome = await on.run()
    assert tuple(c for c in UsageLedger.from_entries(on.journal.entries()).charges if c.model == "s:sub") == charges
    assert (outcome.bill.attempts, outcome.bill.answered, outcome.bill.unknown) == (5, 4, 1)
    assert outcome.bill.known_usd == Decimal("0.52")


async def test_a_call_whose_end_nobody_saw_may_have_been_billed() -> None:
    on = stage(ScriptedModel([ZeroDivisionError("oops")]))
    outcome = await on.run()
    assert [c.outcome for c in UsageLedger.from_entries(on.journal.entries()).charges] == ["outcome unknown"]
    assert (outcome.bill.attempts, outcome.bill.answered) == (1, 0)


async def test_charges_survive_output_that_cannot_be_shown() -> None:
    """The money is spent, whatever becomes of the text."""
    paid = Charge("s:sub", "sub-agent", "answered", USAGE, Decimal("0.5"))

    async def delegate(context: ToolContext) -> list[object]:
        context.charge(paid)
        return [object()]

    model = ScriptedModel([tool_call_reply(("delegate", "{}")), text_reply("done")])
    outcome = await stage(model, tools=[tool("delegate", delegate)]).run()
    assert outcome.bill.known_usd == Decimal("0.52")


@pytest.mark.parametrize("ends", ["timeout", "error", "interrupt"])
async def test_what_a_tool_paid_is_on_the_bill_however_its_call_ends(ends: str) -> None:
    """On time-out, on an error and on an interrupt."""
    began = asyncio.Event()

    async def delegate(context: ToolContext) -> str:
        context.charge(Charge("s:sub", "sub-agent", "answered", USAGE, Decimal("4.20")))
        began.set()
        if ends == "error":
            raise ValueError("no")
        await asyncio.Event().wait()
        return "never"

    model = ScriptedModel([tool_call_reply(("delegate", "{}")), *([] if ends == "interrupt" else [text_reply("done")])])
    limit = 0.05 if ends == "timeout" else 60.0
    on = stage(model, tools=[tool("delegate", delegate, timeout_s=limit)])
    running = asyncio.create_task(on.loop.run("go"))
    await began.wait()
    if ends == "interrupt":
        on.loop.interrupt()
    outcome = await running
    assert outcome.bill.known_usd == Decimal("4.20") + Decimal("0.01") * len(on.requests)

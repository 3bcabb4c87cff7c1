"""The bill: one number, however it is reached."""

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummingbird.core.journal import (
    JournalEntry,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ModelFailureKind,
    ToolFinished,
)
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.projections import UsageLedger, render_transcript
from hummingbird.core.usage import Bill, Charge, TokenUsage, sum_charges
from tests.core.entries import charges
from tests.core.journals import journals
from tests.thoroughly import tries

USED = TokenUsage(fresh=10, cache_read=90, output=5, reasoning=2)


def called(call_id: str, purpose: str = "turn") -> ModelCalled:
    return ModelCalled(call_id=call_id, model="m", messages=1, purpose=purpose)


def answered(call_id: str, cost_usd: Decimal | None, *, kept: bool = True) -> ModelAnswered:
    message = AssistantMessage("x")
    return ModelAnswered(call_id=call_id, model="m", message=message, usage=USED, cost_usd=cost_usd, kept=kept)


def failed(call_id: str, happening: ModelFailureKind = ModelFailureKind.UNAVAILABLE) -> ModelFailed:
    return ModelFailed(call_id=call_id, model="m", happening=happening, sentence="It failed.")


def spent(*paid: Charge) -> ToolFinished:
    return ToolFinished(call_id="t", name="delegate", text="", charges=paid)


@settings(max_examples=tries(100))
@given(journals)
def test_the_bill_is_what_the_journal_says_counted_by_hand(journal: list[JournalEntry]) -> None:
    bill = UsageLedger.from_entries(journal).bill()
    paid = _charges_by_hand(journal)
    assert bill.known_usd == sum((c.cost_usd for c in paid if c.cost_usd is not None), Decimal(0))
    assert bill.unknown == sum(c.cost_usd is None and c.usage is not None for c in paid)
    assert bill.usage == sum((c.usage for c in paid if c.usage is not None), TokenUsage())
    assert bill.attempts == len(paid) + _lost(journal)
    assert bill.answered == sum(c.usage is not None for c in paid)


def _charges_by_hand(journal: Sequence[JournalEntry]) -> list[Charge]:
    paid: list[Charge] = []
    for entry in journal:
        if isinstance(entry, ModelAnswered):
            paid.append(Charge(entry.model, "", "", entry.usage, entry.cost_usd))
        elif isinstance(entry, ModelFailed):
            paid.append(Charge(entry.model, "", ""))
        elif isinstance(entry, ToolFinished):
            paid.extend(entry.charges)
    return paid


def _lost(journal: Sequence[JournalEntry]) -> int:
    lost: set[str] = set()
    for entry in journal:
        if isinstance(entry, ModelCalled):
            lost.add(entry.call_id)
        elif isinstance(entry, ModelAnswered | ModelFailed):
            lost.discard(entry.call_id)
    return len(lost)


@pytest.mark.thorough
@settings(max_examples=tries(60))
@given(journals)
def test_the_running_sums_are_the_bill_at_every_step(journal: list[JournalEntry]) -> None:
    """Budgets look at the running sums, people at the bill."""
    ledger = UsageLedger()
    for entry in journal:
        ledger.apply(entry)
        bill = ledger.bill()
        assert (ledger.known_usd, ledger.unknown) == (bill.known_usd, bill.unknown)


@pytest.mark.thorough
@settings(max_examples=tries(60))
@given(journals)
def test_the_transcript_ends_with_the_same_bill(journal: list[JournalEntry]) -> None:
    assert render_transcript(journal).endswith(f"---\n\n{UsageLedger.from_entries(journal).bill()}\n")


@pytest.mark.thorough
@given(st.lists(charges, max_size=5), st.lists(charges, max_size=5))
def test_a_bill_of_two_parts_is_the_sum_of_their_bills(one: list[Charge], other: list[Charge]) -> None:
    """A sub-agent's charges count as if they were the parent's own."""
    whole, first, second = sum_charges([*one, *other]), sum_charges(one), sum_charges(other)
    assert whole == Bill(
        first.attempts + second.attempts,
        first.answered + second.answered,
        first.usage + second.usage,
        first.known_usd + second.known_usd,
        first.unknown + second.unknown,
    )


@pytest.mark.thorough
@given(st.lists(charges, max_size=5))
def test_what_a_tool_paid_is_on_the_bill_as_it_is(paid: list[Charge]) -> None:
    ledger = UsageLedger.from_entries([spent(*paid)])
    assert ledger.charges == paid
    assert ledger.bill() == sum_charges(paid)


def test_every_attempt_is_a_line() -> None:
    """Answered, failed, retried, thrown away, auxiliary, lost with its process."""
    journal: list[JournalEntry] = [
        called("1"),
        failed("1"),
        called("2"),
        answered("2", Decimal("0.1"), kept=False),
        called("3", "title"),
        answered("3", Decimal("0.2")),
        called("4"),
        failed("4", ModelFailureKind.CREDIT),
        called("5"),
    ]
    ledger = UsageLedger.from_entries(journal)
    assert ledger.charges == [
        Charge("m", "turn", "unavailable"),
        Charge("m", "turn", "answered", USED, Decimal("0.1")),
        Charge("m", "title", "answered", USED, Decimal("0.2")),
        Charge("m", "turn", "credit"),
        Charge("m", "turn", "outcome unknown"),
    ]
    assert ledger.bill() == Bill(5, 2, USED + USED, Decimal("0.3"), 0, lost=1)
    assert "1 more of unknown outcome" in str(ledger.bill())


def test_a_sum_with_a_hole_is_no_sum() -> None:
    """Unknown is shown as unknown, never as 0."""
    bill = UsageLedger.from_entries([answered("1", None), answered("2", Decimal("0.5"))]).bill()
    assert bill.cost_usd is None
    assert "cost unknown for 1 of 2 calls ($0.5000 known)" in str(bill)


def test_a_bill_of_which_nothing_is_known_names_no_amount() -> None:
    bill = UsageLedger.from_entries([answered("1", None)]).bill()
    assert "$" not in str(bill)
    assert "cost unknown for 1 of 1 calls" in str(bill)


def test_a_free_call_is_known_to_cost_nothing() -> None:
    bill = UsageLedger.from_entries([answered("1", Decimal(0))]).bill()
    assert bill.cost_usd == 0
    assert "$0.0000" in str(bill)


def test_a_price_without_a_token_count_is_paid_all_the_same() -> None:
    ledger = UsageLedger.from_entries([spent(Charge("m", "search", "answered", None, Decimal("0.03")))])
    assert ledger.known_usd == ledger.bill().known_usd == Decimal("0.03")


def test_a_bill_as_people_read_it() -> None:
    bill = UsageLedger.from_entries([answered("1", Decimal("0.25")), answered("2", Decimal(1))]).bill()
    assert str(bill) == "2 model calls, 200 tokens in (90% cached), 10 out, $1.2500"


@pytest.mark.parametrize(("usage", "share"), [(TokenUsage(), 0.0), (TokenUsage(output=5), 0.0), (USED, 0.9)])
def test_the_cached_share_is_one_of_the_input(usage: TokenUsage, share: float) -> None:
    assert sum_charges([Charge("m", "turn", "answered", usage, Decimal(0))]).cache_share == share

"""A bucket that says nothing is waited for once, whatever of it a run asks for (S2, O3)."""

import time
from collections.abc import Awaitable, Callable
from decimal import Decimal

import pytest

from hummingbird.adapters.stores import bucket_spending, exchanging
from hummingbird.adapters.stores.bucket_known_failures import BucketKnownFailures
from hummingbird.adapters.stores.bucket_reactions import BucketReactions
from hummingbird.adapters.stores.bucket_spending import BucketSpending
from hummingbird.adapters.stores.exchanging import Patience
from hummingbird.adapters.stores.objects import BucketObjects
from hummingbird.domain.errors import JournalBehind
from hummingbird.domain.session_limits import SHARED_REST_S
from hummingbird.ports.known_failures import Analysed
from hummingbird.ports.reactions import NotePosted
from tests.contracts.sessions.unreliable import Mood
from tests.contracts.shared.sites import NOON, ONE, Counted, noon

CENT = Decimal("0.01")
NOTE = NotePosted(
    project="group/project",
    iid=7,
    note_id=1001,
    workflow="review",
    model="a:b",
    session_id="session",
    posted_at=NOON,
)
ANALYSIS = Analysed(at=NOON, merge_request="!7", link="https://gitlab.example/1")


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Counted:
    monkeypatch.setattr(exchanging, "SHARED_S", 0.05)
    return Counted(BucketObjects.in_memory())


def verbs(objects: Counted) -> dict[str, Callable[[], Awaitable[object]]]:
    """All that a run writes there."""
    patience = Patience()
    spending = BucketSpending(objects, "s3://b", noon, patience)
    ledger, votes = BucketKnownFailures(objects, "s3://b", patience), BucketReactions(objects, "s3://b", patience)
    return {
        "spending": lambda: spending.add("one", CENT),
        "seen": lambda: ledger.seen(ONE),
        "analysed": lambda: ledger.analysed(ONE.project, ONE.fingerprint, ANALYSIS, 0.0),
        "votes": lambda: votes.posted(NOTE),
    }


@pytest.mark.parametrize("first", ["spending", "seen", "votes"])
async def test_s2_where_it_said_nothing_to_one_nobody_else_waits_and_all_ask_again_after_a_rest(
    first: str, objects: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    does = verbs(objects)
    objects.moods.append(Mood.HANGING)
    with pytest.raises(JournalBehind, match="did not do it within"):
        await does[first]()
    objects.asked.clear()
    for other in does.keys() - {first}:
        with pytest.raises(JournalBehind, match="said nothing a moment ago"):
            await does[other]()
    assert objects.asked == []
    later = time.monotonic() + SHARED_REST_S
    for module in (exchanging, bucket_spending):
        monkeypatch.setattr(module, "monotonic", lambda: later)
    for each in does.values():
        await each()


async def test_s2_a_failure_that_is_told_keeps_nobody_from_asking(objects: Counted) -> None:
    does = verbs(objects)
    objects.away = True
    with pytest.raises(JournalBehind):
        await does["spending"]()
    objects.away = False
    await does["seen"]()
    await does["votes"]()


async def test_l6_a_ceiling_is_asked_for_even_of_a_bucket_that_said_nothing_to_somebody_else(objects: Counted) -> None:
    patience = Patience()
    votes, spending = BucketReactions(objects, "s3://b", patience), BucketSpending(objects, "s3://b", noon, patience)
    objects.moods.append(Mood.HANGING)
    with pytest.raises(JournalBehind):
        await votes.posted(NOTE)
    assert await spending.spent_today("one") == 0
    with pytest.raises(JournalBehind):
        await spending.add("one", CENT)
    assert await spending.spent_today("one") == CENT, "what was spent here counts at once"

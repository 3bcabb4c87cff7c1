"""A bucket that says nothing is waited for once, whatever of it a run asks for."""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal

import pytest

from hummingbird.core.errors import JournalWriteDelayed
from hummingbird.core.protocols.storage import AnalysisLink, VotableNote
from hummingbird.core.sessions import SHARED_REST_S
from hummingbird.storage import compare_and_swap, spending_store
from hummingbird.storage.bucket_failure_store import BucketKnownFailureStore
from hummingbird.storage.compare_and_swap import BucketCircuitBreaker
from hummingbird.storage.object_store import BucketObjectStore
from hummingbird.storage.spending_store import BucketSpendingStore
from hummingbird.storage.vote_store import BucketVoteStore
from tests.contracts.sessions.unreliable import Mood
from tests.contracts.shared.sites import NOON, ONE, Counted, noon

Impatience = Callable[[], AbstractContextManager[None]]
CENT = Decimal("0.01")
NOTE = VotableNote(
    project="group/project",
    iid=7,
    note_id=1001,
    workflow="review",
    model="a:b",
    session_id="session",
    posted_at=NOON,
)
ANALYSIS = AnalysisLink(at=NOON, merge_request="!7", link="https://gitlab.example/1")


@pytest.fixture
def objects() -> Counted:
    return Counted(BucketObjectStore.in_memory())


@pytest.fixture
def impatience(monkeypatch: pytest.MonkeyPatch) -> Impatience:
    """While it is entered, what hangs is given up soon, but not before a busy machine has asked the bucket."""

    @contextmanager
    def enter() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(compare_and_swap, "SHARED_S", 2)
            yield

    return enter


def verbs(objects: Counted) -> dict[str, Callable[[], Awaitable[object]]]:
    """All that a run writes there."""
    patience = BucketCircuitBreaker()
    spending = BucketSpendingStore(objects, "s3://b", noon, patience)
    ledger, votes = BucketKnownFailureStore(objects, "s3://b", patience), BucketVoteStore(objects, "s3://b", patience)
    return {
        "spending": lambda: spending.add("one", CENT),
        "seen": lambda: ledger.record_sighting(ONE),
        "analysed": lambda: ledger.record_analysis(ONE.project, ONE.fingerprint, ANALYSIS, 0.0),
        "votes": lambda: votes.record_note(NOTE),
    }


@pytest.mark.parametrize("first", ["spending", "seen", "votes"])
async def test_where_it_said_nothing_to_one_nobody_else_waits_and_all_ask_again_after_a_rest(
    first: str, objects: Counted, impatience: Impatience, monkeypatch: pytest.MonkeyPatch
) -> None:
    does = verbs(objects)
    objects.moods.append(Mood.HANGING)
    with impatience(), pytest.raises(JournalWriteDelayed, match="did not finish within"):
        await does[first]()
    objects.asked.clear()
    for other in does.keys() - {first}:
        with pytest.raises(JournalWriteDelayed, match="did not answer a moment ago"):
            await does[other]()
    assert objects.asked == []
    later = time.monotonic() + SHARED_REST_S
    for module in (compare_and_swap, spending_store):
        monkeypatch.setattr(module, "monotonic", lambda: later)
    for each in does.values():
        await each()


async def test_a_failure_that_is_told_keeps_nobody_from_asking(objects: Counted) -> None:
    does = verbs(objects)
    objects.away = True
    with pytest.raises(JournalWriteDelayed):
        await does["spending"]()
    objects.away = False
    await does["seen"]()
    await does["votes"]()


async def test_a_ceiling_is_asked_for_even_of_a_bucket_that_said_nothing_to_somebody_else(
    objects: Counted, impatience: Impatience
) -> None:
    patience = BucketCircuitBreaker()
    votes, spending = (
        BucketVoteStore(objects, "s3://b", patience),
        BucketSpendingStore(objects, "s3://b", noon, patience),
    )
    objects.moods.append(Mood.HANGING)
    with impatience(), pytest.raises(JournalWriteDelayed):
        await votes.record_note(NOTE)
    assert await spending.usd_today("one") == 0
    with pytest.raises(JournalWriteDelayed):
        await spending.add("one", CENT)
    assert await spending.usd_today("one") == CENT, "what was spent here counts at once"

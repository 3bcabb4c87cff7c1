"""When an explanation of another merge request stands for one of one's own, and when it does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from hummingbird.core.journal import EndReason
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.storage import AnalysisLink, FailureSighting
from hummingbird.core.verdicts import FailureOrigin, FailureVerdict, JobJudgement, ObservedFailure
from hummingbird.evidence.bounds import KNOWN_ANALYSIS_S
from hummingbird.evidence.regions import Blame, EvidenceAnalysis, EvidenceLine, FailureClass, Region, RegionKind
from hummingbird.evidence.verdict_rules import SEEN_ELSEWHERE, FailureFacts, JobFacts, TargetHistory
from hummingbird.service.failure_history import KnownFailureTracker, author_digest
from hummingbird.service.protocols import KNOWN_FAILURE, NO_RULE_INPUT, RuleInput, RuleOpinion
from hummingbird.service.verdicts import failures_explained_by, form_opinion
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from tests.service.publication.stage import IID, PROJECT, conducted, configured, ordered
from tests.standins.scripted_model import ScriptedClock

BLAME = Blame(FailureClass.TEST, "a-rule", 0.9, "A sentence.")
TEXT = "src/engine.c:3: wrong"
REGION = Region((EvidenceLine(1, TEXT),), RegionKind.TEST, BLAME, "f1", 1.0, "x")
JOB = JobFacts(name="build", id=5, analysis=EvidenceAnalysis((REGION,), BLAME, 1, 1), fingerprints=("f1",))
GREEN = TargetHistory(branch="main", passed=(True,))
LINK = "https://gitlab.example/group/project/-/merge_requests/5#note_77"


@pytest.fixture
def known(tmp_path: Path) -> KnownFailureTracker:
    return KnownFailureTracker(SqliteKnownFailureStore(tmp_path / "known.sqlite"), ScriptedClock())


OWN, OTHER = 3, 4  # authors


async def explained(
    known: KnownFailureTracker, fingerprint: str = "f1", iid: int = 5, ago_s: float = 60.0, author: int = OTHER
) -> None:
    assert known.ledger is not None
    at = known.clock.now() - ago_s
    told = {"kind": "test", "class_": "test", "title": "It fails"}
    await known.ledger.record_sighting(
        FailureSighting(
            project=PROJECT,
            fingerprint=fingerprint,
            occurrence=f"{iid}",
            at=at,
            merge_request=f"!{iid}",
            author=author_digest(author),
            **told,
        )
    )
    await known.ledger.record_analysis(
        PROJECT, fingerprint, AnalysisLink(at=at, merge_request=f"!{iid}", link=LINK), at
    )


async def said(
    known: KnownFailureTracker, *jobs: JobFacts, order: WorkOrder | None = None, changed: tuple[str, ...] = ()
) -> RuleOpinion:
    looked = RuleInput(facts=FailureFacts(jobs=jobs or (JOB,), changed=changed))
    return await form_opinion(
        order or ordered(OrderCause.PIPELINE), looked, known, configured().settings, author_id=OWN
    )


async def test_what_another_merge_request_has_explained_is_linked(known: KnownFailureTracker) -> None:
    await explained(known)
    opinion = await said(known)
    assert f"]({LINK})" in opinion.instead
    assert "`!5`" in opinion.instead
    assert opinion.verdict is not None
    assert [one.fingerprint for one in opinion.failures] == ["f1"], "it is counted here too"


@pytest.mark.parametrize(
    "order", [ordered(OrderCause.COMMAND), ordered(OrderCause.PIPELINE, forced=True)], ids=["command", "replayed"]
)
async def test_who_asks_gets_an_analysis(known: KnownFailureTracker, order: WorkOrder) -> None:
    await explained(known)
    assert not (await said(known, order=order)).instead


async def test_an_explanation_of_the_same_merge_request_is_none_for_its_next_commit(
    known: KnownFailureTracker,
) -> None:
    await explained(known, iid=IID)
    assert not (await said(known)).instead


async def test_an_explanation_grows_too_old(known: KnownFailureTracker) -> None:
    await explained(known, ago_s=KNOWN_ANALYSIS_S + 60)
    assert not (await said(known)).instead


async def test_every_job_that_failed_has_to_be_explained(known: KnownFailureTracker) -> None:
    await explained(known)
    other = replace(JOB, name="lint", fingerprints=("f2",))
    assert not (await said(known, JOB, other)).instead
    assert not (await said(known, JOB, replace(JOB, name="lint", fingerprints=()))).instead
    await explained(known, "f2")
    assert (await said(known, JOB, other)).instead.count(LINK) == 1, "both were explained in one note"


async def test_every_failure_of_a_job_has_to_be_explained(known: KnownFailureTracker) -> None:
    """Beside the one that comes and goes, the change may have broken something of its own."""
    await explained(known)
    both = replace(JOB, fingerprints=("f1", "f2"))
    assert not (await said(known, both)).instead
    await explained(known, "f2")
    assert (await said(known, both)).instead


def test_an_analysis_explains_what_rules_judged_and_a_part_of_one_explains_nothing() -> None:
    judged = FailureVerdict(
        origin=FailureOrigin.FLAKY, jobs=(JobJudgement(job="build", origin=FailureOrigin.FLAKY, fingerprints=("f1",)),)
    )
    seen = [
        ObservedFailure(fingerprint=name, kind="test", class_="test", title=name) for name in ("f1", "seen on main")
    ]
    whole = replace(conducted("The clock is wrong."), verdict=judged, failures=seen)
    assert [one.fingerprint for one in failures_explained_by(whole)] == ["f1"]
    assert not failures_explained_by(replace(whole, verdict=None))
    assert not failures_explained_by(replace(whole, no_model_because="No credit."))
    assert not failures_explained_by(replace(whole, model=KNOWN_FAILURE))
    assert not failures_explained_by(replace(whole, outcome=replace(whole.outcome, text="Nothing to report.")))
    assert not failures_explained_by(replace(whole, outcome=replace(whole.outcome, reason=EndReason.COST_LIMIT)))


async def test_what_hints_at_this_merge_request_is_looked_at(known: KnownFailureTracker) -> None:
    """Two people can break two things in the same words."""
    await explained(known)
    ours = replace(JOB, text=TEXT, target=GREEN)
    opinion = await said(known, ours, changed=("src/engine.c",))
    assert not opinion.instead
    assert opinion.verdict is not None
    assert opinion.verdict.origin is FailureOrigin.CHANGE, "another merge request takes no suspicion back"
    assert (await said(known, ours, changed=("src/wing.c",))).instead


async def test_other_merge_requests_count_by_their_authors(known: KnownFailureTracker) -> None:
    ours = replace(JOB, text=TEXT, target=replace(GREEN, passed=(True, True)))
    before = (await said(known, ours, changed=("src/engine.c",))).verdict
    assert before is not None
    for iid in (5, 6):
        await explained(known, iid=iid, author=OWN)
    assert (await said(known, ours, changed=("src/engine.c",))).verdict == before, "of the same author"
    for iid, author in ((9, OTHER), (10, OTHER), (12, 0)):
        await explained(known, iid=iid, author=author)
    after = (await said(known, ours, changed=("src/engine.c",))).verdict
    assert after is not None
    assert (after.origin, after.sure < before.sure) == (FailureOrigin.CHANGE, True)
    (reason,) = [one for one in after.jobs[0].reasons if one.sign == SEEN_ELSEWHERE]
    assert reason.render(str).startswith("The same failure was seen in 3 other merge requests")
    assert reason.render(str).endswith("of 2 other authors.")


async def test_a_failure_that_was_seen_and_not_explained_is_analysed(known: KnownFailureTracker) -> None:
    assert known.ledger is not None
    told = {"kind": "test", "class_": "test", "title": "It fails"}
    await known.ledger.record_sighting(
        FailureSighting(project=PROJECT, fingerprint="f1", occurrence="1", at=1.0, **told)
    )
    assert not (await said(known)).instead


async def test_a_ledger_in_trouble_costs_a_link_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "known.sqlite").write_bytes(b"no ledger at all, but long enough to be one" * 100)
    broken = KnownFailureTracker(SqliteKnownFailureStore(tmp_path / "known.sqlite"), ScriptedClock())
    opinion = await said(broken)
    assert opinion.verdict is not None
    assert not opinion.instead


async def test_what_the_journal_says_is_not_judged_again(known: KnownFailureTracker) -> None:
    before = FailureVerdict(origin=FailureOrigin.FLAKY, sure=0.9)
    opinion = await form_opinion(ordered(), RuleInput(verdict=before), known, configured().settings)
    assert opinion.verdict is before


async def test_where_nothing_was_looked_at_there_is_no_opinion(known: KnownFailureTracker) -> None:
    assert await form_opinion(ordered(), NO_RULE_INPUT, known, configured().settings) == RuleOpinion()

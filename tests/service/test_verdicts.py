"""When an explanation of another merge request stands for one of one's own, and when it does not (V6, N8)."""

from dataclasses import replace
from pathlib import Path

import pytest

from hummingbird.adapters.stores.known_failures import SqliteKnownFailures
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.journal import EndReason
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.domain.verdict_limits import KNOWN_ANALYSIS_S
from hummingbird.domain.verdicts import Judgement, Origin, Verdict
from hummingbird.evidence.regions import Analysis, Blame, Class, Kind, Line, Region
from hummingbird.evidence.verdicts.facts import Facts, JobFacts, OnTarget
from hummingbird.evidence.verdicts.judging import SEEN_ELSEWHERE
from hummingbird.lab.scripted import ScriptedClock
from hummingbird.ports.known_failures import Analysed, Sighting
from hummingbird.service.investigating import KNOWN_FAILURE, NOT_LOOKED, Looked, Opinion
from hummingbird.service.known import Known, author_mark
from hummingbird.service.verdicts import explains, opinion_of
from tests.service.publication.stage import IID, PROJECT, conducted, configured, ordered

BLAME = Blame(Class.TEST, "a-rule", 0.9, "A sentence.")
TEXT = "src/engine.c:3: wrong"
REGION = Region((Line(1, TEXT),), Kind.TEST, BLAME, "f1", 1.0, "x")
JOB = JobFacts(name="build", id=5, analysis=Analysis((REGION,), BLAME, 1, 1), fingerprints=("f1",))
GREEN = OnTarget(branch="main", passed=(True,))
LINK = "https://gitlab.example/group/project/-/merge_requests/5#note_77"


@pytest.fixture
def known(tmp_path: Path) -> Known:
    return Known(SqliteKnownFailures(tmp_path / "known.sqlite"), ScriptedClock())


OWN, OTHER = 3, 4  # authors


async def explained(
    known: Known, fingerprint: str = "f1", iid: int = 5, ago_s: float = 60.0, author: int = OTHER
) -> None:
    assert known.ledger is not None
    at = known.clock.now() - ago_s
    told = {"kind": "test", "class_": "test", "title": "It fails"}
    await known.ledger.seen(
        Sighting(
            project=PROJECT,
            fingerprint=fingerprint,
            occurrence=f"{iid}",
            at=at,
            merge_request=f"!{iid}",
            author=author_mark(author),
            **told,
        )
    )
    await known.ledger.analysed(PROJECT, fingerprint, Analysed(at=at, merge_request=f"!{iid}", link=LINK), at)


async def said(known: Known, *jobs: JobFacts, order: WorkOrder | None = None, changed: tuple[str, ...] = ()) -> Opinion:
    looked = Looked(facts=Facts(jobs=jobs or (JOB,), changed=changed))
    return await opinion_of(order or ordered(Cause.PIPELINE), looked, known, configured().settings, author_id=OWN)


async def test_what_another_merge_request_has_explained_is_linked_v6(known: Known) -> None:
    await explained(known)
    opinion = await said(known)
    assert f"]({LINK})" in opinion.instead
    assert "`!5`" in opinion.instead
    assert opinion.verdict is not None
    assert [one.fingerprint for one in opinion.failures] == ["f1"], "it is counted here too"


@pytest.mark.parametrize(
    "order", [ordered(Cause.COMMAND), ordered(Cause.PIPELINE, forced=True)], ids=["command", "replayed"]
)
async def test_who_asks_gets_an_analysis_v6(known: Known, order: WorkOrder) -> None:
    await explained(known)
    assert not (await said(known, order=order)).instead


async def test_an_explanation_of_the_same_merge_request_is_none_for_its_next_commit_v6(known: Known) -> None:
    await explained(known, iid=IID)
    assert not (await said(known)).instead


async def test_an_explanation_grows_too_old_v6(known: Known) -> None:
    await explained(known, ago_s=KNOWN_ANALYSIS_S + 60)
    assert not (await said(known)).instead


async def test_every_job_that_failed_has_to_be_explained_v6(known: Known) -> None:
    await explained(known)
    other = replace(JOB, name="lint", fingerprints=("f2",))
    assert not (await said(known, JOB, other)).instead
    assert not (await said(known, JOB, replace(JOB, name="lint", fingerprints=()))).instead
    await explained(known, "f2")
    assert (await said(known, JOB, other)).instead.count(LINK) == 1, "both were explained in one note"


async def test_every_failure_of_a_job_has_to_be_explained_v6(known: Known) -> None:
    """Beside the one that comes and goes, the change may have broken something of its own."""
    await explained(known)
    both = replace(JOB, fingerprints=("f1", "f2"))
    assert not (await said(known, both)).instead
    await explained(known, "f2")
    assert (await said(known, both)).instead


def test_an_analysis_explains_what_rules_judged_and_a_part_of_one_explains_nothing_v6() -> None:
    judged = Verdict(origin=Origin.FLAKY, jobs=(Judgement(job="build", origin=Origin.FLAKY, fingerprints=("f1",)),))
    seen = [FailureSeen(fingerprint=name, kind="test", class_="test", title=name) for name in ("f1", "seen on main")]
    whole = replace(conducted("The clock is wrong."), verdict=judged, failures=seen)
    assert [one.fingerprint for one in explains(whole)] == ["f1"]
    assert not explains(replace(whole, verdict=None))
    assert not explains(replace(whole, stopgap=True))
    assert not explains(replace(whole, model=KNOWN_FAILURE))
    assert not explains(replace(whole, outcome=replace(whole.outcome, text="Nothing to report.")))
    assert not explains(replace(whole, outcome=replace(whole.outcome, reason=EndReason.COST_LIMIT)))


async def test_what_hints_at_this_merge_request_is_looked_at_v6(known: Known) -> None:
    """Two people can break two things in the same words."""
    await explained(known)
    ours = replace(JOB, text=TEXT, target=GREEN)
    opinion = await said(known, ours, changed=("src/engine.c",))
    assert not opinion.instead
    assert opinion.verdict is not None
    assert opinion.verdict.origin is Origin.CHANGE, "another merge request takes no suspicion back"
    assert (await said(known, ours, changed=("src/wing.c",))).instead


async def test_other_merge_requests_count_by_their_authors(known: Known) -> None:
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
    assert (after.origin, after.sure < before.sure) == (Origin.CHANGE, True)
    (reason,) = [one for one in after.jobs[0].reasons if one.sign == SEEN_ELSEWHERE]
    assert reason.told(str).startswith("The same failure was seen in 3 other merge requests")
    assert reason.told(str).endswith("of 2 other authors.")


async def test_a_failure_that_was_seen_and_not_explained_is_analysed_v6(known: Known) -> None:
    assert known.ledger is not None
    told = {"kind": "test", "class_": "test", "title": "It fails"}
    await known.ledger.seen(Sighting(project=PROJECT, fingerprint="f1", occurrence="1", at=1.0, **told))
    assert not (await said(known)).instead


async def test_a_ledger_in_trouble_costs_a_link_and_nothing_else_v6(tmp_path: Path) -> None:
    (tmp_path / "known.sqlite").write_bytes(b"no ledger at all, but long enough to be one" * 100)
    broken = Known(SqliteKnownFailures(tmp_path / "known.sqlite"), ScriptedClock())
    opinion = await said(broken)
    assert opinion.verdict is not None
    assert not opinion.instead


async def test_what_the_journal_says_is_not_judged_again_n8(known: Known) -> None:
    before = Verdict(origin=Origin.FLAKY, sure=0.9)
    opinion = await opinion_of(ordered(), Looked(verdict=before), known, configured().settings)
    assert opinion.verdict is before


async def test_where_nothing_was_looked_at_there_is_no_opinion_n8(known: Known) -> None:
    assert await opinion_of(ordered(), NOT_LOOKED, known, configured().settings) == Opinion()

"""Whose a failure is, rule by rule: where each fires, and where it must not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.verdicts import CERTAIN, LIKELY, FailureOrigin, JobJudgement, VerdictReason, render_verdict
from hummingbird.evidence.regions import Blame, EvidenceAnalysis, EvidenceLine, FailureClass, Region, RegionKind
from hummingbird.evidence.verdict_rules import (
    CommitTries,
    FailureFacts,
    JobFacts,
    TargetHistory,
    judge_failures,
    judge_job,
    note_later_reading,
)

CHANGED = ("src/engine.c", "tests/test_engine.py", "pyproject.toml")
GREEN = TargetHistory(branch="main", passed=(True,), pipeline_id=7)
STEADY = TargetHistory(branch="main", passed=(True, True, True), pipeline_id=7)


def test_a_log_that_the_run_read_later_is_not_called_unread() -> None:
    judged = judge_failures(FailureFacts(jobs=(JobFacts(name="lint", id=5), JobFacts(name="Konflux / build"))))
    assert render_verdict(judged).count("Its log was not read.") == 2
    later = render_verdict(note_later_reading(judged, ("lint",), 1))
    assert "Its log was not read." not in later
    assert later.count("Its log was read only in the run itself") == 2
    assert render_verdict(note_later_reading(judged, (), 0)) == render_verdict(judged)


def red(*prints: str) -> TargetHistory:
    return TargetHistory(branch="main", passed=(False, True), pipeline_id=7, fingerprints=prints)


def analysed(class_: FailureClass, sure: float = 0.95, kind: RegionKind = RegionKind.TEST) -> EvidenceAnalysis:
    blame = Blame(class_, "a-rule", sure, "A sentence.")
    region = Region((EvidenceLine(1, "src/engine.c:3: wrong"),), kind, blame, "f1", 1.0, "x")
    return EvidenceAnalysis((region,), blame, 10, 100)


def job(**facts: object) -> JobFacts:
    plain = JobFacts(name="build", id=5, analysis=analysed(FailureClass.TEST), fingerprints=("f1", "f2"))
    return replace(plain, **facts)  # type: ignore[arg-type]


NAMES = {"text": "src/engine.c:3: wrong"}
PRINTED = {"analysis": analysed(FailureClass.INFRASTRUCTURE)}
MACHINE = {**PRINTED, "only_runner_wrote": True}
BROKE = {"platform_blame": Blame(FailureClass.INFRASTRUCTURE, "gitlab-runner-system-failure", 0.95, "It broke.")}
SILENT = {"target": replace(STEADY, has_report=True), "lacks_report": True}
OTHERS = {"also_seen_in": ("!5", "!6"), "other_authors": 2}
COMPILED = {"analysis": analysed(FailureClass.CODE, kind=RegionKind.COMPILER)}

TABLE: dict[str, tuple[JobFacts, FailureOrigin]] = {
    "passed when it was tried again": (job(tries=CommitTries(passed=1)), FailureOrigin.FLAKY),
    "passed in another pipeline of the commit": (job(tries=CommitTries(passed_in_others=1)), FailureOrigin.FLAKY),
    "failed each time": (job(tries=CommitTries(failed=3)), FailureOrigin.UNKNOWN),
    "red there in the same way": (job(target=red("f2", "f1")), FailureOrigin.TARGET),
    "red there in part of the same way": (job(target=red("f1")), FailureOrigin.UNKNOWN),
    "red there in the same way, but for a failure behind many": (
        job(target=red("f1", "f2"), further_fingerprints=("f9",)),
        FailureOrigin.UNKNOWN,
    ),
    "red there in the same way as a lesser failure": (job(target=red("f2")), FailureOrigin.UNKNOWN),
    "red there in another way": (job(target=red("f9")), FailureOrigin.UNKNOWN),
    "red there, and its log was not read": (job(target=replace(red(), fingerprints=None)), FailureOrigin.UNKNOWN),
    "red there once and green since": (
        job(target=TargetHistory(branch="main", passed=(True, False), fingerprints=("f1",))),
        FailureOrigin.UNKNOWN,
    ),
    "the runner says that it broke": (job(**BROKE), FailureOrigin.INFRASTRUCTURE),
    "the runner says that it broke, and the test report is missing": (
        job(**BROKE, **SILENT),
        FailureOrigin.INFRASTRUCTURE,
    ),
    "a command of the job failed": (
        job(platform_blame=Blame(FailureClass.UNKNOWN, "gitlab-script-failure", 0.2, "")),
        FailureOrigin.UNKNOWN,
    ),
    "a machine in the runner's log": (job(**MACHINE), FailureOrigin.INFRASTRUCTURE),
    "a machine, not sure": (
        job(analysis=analysed(FailureClass.INFRASTRUCTURE, 0.6), only_runner_wrote=True),
        FailureOrigin.UNKNOWN,
    ),
    "a machine that the script may have printed": (job(**PRINTED), FailureOrigin.UNKNOWN),
    "a machine that the script may have printed, red there": (job(**PRINTED, target=red("f9")), FailureOrigin.UNKNOWN),
    "a machine that was printed, and the test report is missing": (job(**PRINTED, **SILENT), FailureOrigin.UNKNOWN),
    "the test report is missing": (job(**SILENT), FailureOrigin.UNKNOWN),
    "ours by its file, and the test report is missing": (job(**NAMES, **SILENT), FailureOrigin.CHANGE),
    "passed, and the test report is missing": (job(**SILENT, tries=CommitTries(passed=1)), FailureOrigin.FLAKY),
    "a machine that a green log speaks of too": (job(**MACHINE, in_green_log=True), FailureOrigin.UNKNOWN),
    "names a changed file, green there": (job(**NAMES, target=GREEN), FailureOrigin.CHANGE),
    "names a changed file, the branch not seen": (job(**NAMES), FailureOrigin.UNKNOWN),
    "names a changed file, red there in another way": (job(**NAMES, target=red("f9")), FailureOrigin.UNKNOWN),
    "names a changed file in lines of a green log": (
        job(**NAMES, target=GREEN, in_green_log=True),
        FailureOrigin.UNKNOWN,
    ),
    "names another file": (job(text="src/wing.c:3: wrong", target=GREEN), FailureOrigin.UNKNOWN),
    "a compiler names a changed file, the branch not seen": (job(**NAMES, **COMPILED), FailureOrigin.CHANGE),
    "a compiler refuses code that uses a changed file, green there": (
        job(**COMPILED, text="src/wing.c:3: error: engine is not declared", target=GREEN),
        FailureOrigin.CHANGE,
    ),
    "a compiler refuses code that has nothing to do with the change": (
        job(**COMPILED, text="src/wing.c:3: error: rudder is not declared", target=GREEN),
        FailureOrigin.UNKNOWN,
    ),
    "a row of a table of files names a changed one": (
        job(text="src/engine.c    120    30    75%", target=GREEN),
        FailureOrigin.UNKNOWN,
    ),
    "a warning names a changed file": (
        job(text="src/engine.c:3: warning: unused", target=GREEN),
        FailureOrigin.UNKNOWN,
    ),
    "a test of a changed file fails, green there": (
        job(text="FAIL: EngineTest.starts", target=GREEN),
        FailureOrigin.CHANGE,
    ),
    "a compiler refuses code, the branch not seen": (job(**COMPILED), FailureOrigin.UNKNOWN),
    "a test fails, green there": (job(target=STEADY), FailureOrigin.UNKNOWN),
    "configuration, and the merge request changes it": (
        job(analysis=analysed(FailureClass.CONFIGURATION), target=GREEN),
        FailureOrigin.CHANGE,
    ),
    "configuration, the branch not seen": (job(analysis=analysed(FailureClass.CONFIGURATION)), FailureOrigin.UNKNOWN),
    "ours by its file, and in merge requests of others": (job(**NAMES, target=GREEN, **OTHERS), FailureOrigin.CHANGE),
    "a machine, and in merge requests of others": (job(**MACHINE, **OTHERS), FailureOrigin.INFRASTRUCTURE),
    "a machine that was printed, and in merge requests of others": (job(**PRINTED, **OTHERS), FailureOrigin.UNKNOWN),
    "in merge requests of others": (job(**OTHERS), FailureOrigin.UNKNOWN),
    "ours by its file, and passed": (job(**NAMES, target=GREEN, tries=CommitTries(passed=1)), FailureOrigin.UNKNOWN),
    "ours by its file, and a machine": (job(**NAMES, **MACHINE, target=GREEN), FailureOrigin.UNKNOWN),
    "ours by its file, and a machine that was printed": (job(**NAMES, **PRINTED, target=GREEN), FailureOrigin.CHANGE),
    "a machine that is red there too": (job(**MACHINE, target=red("f1")), FailureOrigin.INFRASTRUCTURE),
    "a machine, and passed": (job(**MACHINE, tries=CommitTries(passed=1)), FailureOrigin.INFRASTRUCTURE),
    "comes and goes by the look of it": (job(analysis=analysed(FailureClass.FLAKY)), FailureOrigin.UNKNOWN),
    "nothing was seen": (JobFacts(name="build"), FailureOrigin.UNKNOWN),
}


def test_each_rule_fires_where_it_must_and_nowhere_else() -> None:
    for name, (facts, origin) in TABLE.items():
        found = judge_job(facts, CHANGED)
        assert found.origin is origin, (
            name,
            render_verdict(judge_failures(FailureFacts(jobs=(facts,), changed=CHANGED))),
        )
        assert found.reasons, "every judgement says why"
        assert (found.sure >= LIKELY) is (origin is not FailureOrigin.UNKNOWN), name
        assert found.sure == 0 or origin is not FailureOrigin.UNKNOWN, name


def test_compiler_decides_alone_where_the_diff_is_not_known() -> None:
    facts = job(**COMPILED, text="src/wing.c:3: error: rudder is not declared", target=GREEN)
    assert judge_job(facts, None).origin is FailureOrigin.CHANGE


def test_of_several_failed_tests_only_the_first_accuses() -> None:
    blame = Blame(FailureClass.TEST, "a-rule", 0.9, "A sentence.")
    first = Region((EvidenceLine(1, "FAIL wing (tests/test_wing.py:3)"),), RegionKind.TEST, blame, "f1", 2.0, "x")
    second = Region((EvidenceLine(9, "FAIL start (tests/test_engine.py:3)"),), RegionKind.TEST, blame, "f2", 1.9, "x")
    text = f"{first.excerpt}\n{second.excerpt}"

    def judged(*regions: Region) -> JobJudgement:
        return judge_job(job(analysis=EvidenceAnalysis(regions, blame, 10, 100), text=text, target=GREEN), CHANGED)

    assert judged(first, second).origin is FailureOrigin.UNKNOWN
    assert "mentions-a-changed-file" in {reason.sign for reason in judged(first, second).reasons}
    assert judged(second, first).origin is FailureOrigin.CHANGE
    assert judged(first, replace(second, kind=RegionKind.COMPILER)).origin is FailureOrigin.CHANGE
    assert judged(first, replace(second, kind=RegionKind.COMPILER, score=-1.0)).origin is FailureOrigin.UNKNOWN


def test_summary_of_a_build_tool_does_not_hide_the_test_that_failed() -> None:
    blame = Blame(FailureClass.TEST, "a-rule", 0.9, "A sentence.")
    summary = (
        "[ERROR] Failed to execute goal org.example:surefire:test (default) on project a: There are test failures."
    )
    first = Region((EvidenceLine(90, summary),), RegionKind.TRACE, blame, "f1", 2.0, "x")
    second = Region(
        (EvidenceLine(9, "\tat org.example.Engine.start(engine.c:3)"),), RegionKind.TEST, blame, "f2", -1.0, "x"
    )
    facts = job(
        analysis=EvidenceAnalysis((first, second), blame, 99, 1000), text=f"{summary}\n{second.excerpt}", target=GREEN
    )

    assert judge_job(facts, CHANGED).origin is FailureOrigin.CHANGE


def test_failed_test_that_the_change_touches_accuses_it_wherever_it_stands() -> None:
    blame = Blame(FailureClass.TEST, "a-rule", 0.9, "A sentence.")
    first = Region((EvidenceLine(1, "ERROR Fuel - tank is empty"),), RegionKind.OTHER, blame, "f1", 2.0, "x")
    second = Region(
        (EvidenceLine(9, "FAIL: test_start (tests.test_engine.Start)"),), RegionKind.TEST, blame, "f2", 0.0, "x"
    )
    text = f"{first.excerpt}\n{second.excerpt}"
    facts = job(analysis=EvidenceAnalysis((first, second), blame, 99, 1000), text=text, target=GREEN)

    assert judge_job(facts, CHANGED).origin is FailureOrigin.CHANGE
    assert judge_job(facts, ("src/engine.c",)).origin is FailureOrigin.UNKNOWN


def test_all_that_the_only_failed_test_says_accuses() -> None:
    """With a second failed test it is not known whose the file is."""
    blame = Blame(FailureClass.TEST, "a-rule", 0.9, "A sentence.")
    first = Region((EvidenceLine(1, "E   assert 6 == 9"),), RegionKind.SUMMARY, blame, "f1", 2.0, "x")
    second = Region((EvidenceLine(9, "  src/engine.c:3: thrust was lost"),), RegionKind.TRACE, blame, "f2", 1.0, "x")
    named = "FAILED tests/test_wing.py::test_lift"

    def judged(*more: str) -> JobJudgement:
        text = "\n".join((first.excerpt, second.excerpt, named, *more))
        return judge_job(
            job(analysis=EvidenceAnalysis((first, second), blame, 99, 1000), text=text, target=GREEN), ("src/engine.c",)
        )

    assert judged().origin is FailureOrigin.CHANGE
    assert judged("FAILED tests/test_tail.py::test_lift").origin is FailureOrigin.UNKNOWN


def test_configuration_that_the_merge_request_does_not_touch_is_not_its_own() -> None:
    facts = job(analysis=analysed(FailureClass.CONFIGURATION), target=GREEN)
    assert judge_job(facts, ("src/engine.c",)).origin is FailureOrigin.UNKNOWN


@pytest.mark.parametrize(
    ("facts", "changed"),
    [
        (job(**MACHINE, target=GREEN), ("src/engine.c", ".gitlab-ci.yml")),
        (job(**MACHINE, target=GREEN), ("templates/build.yml",)),
        (job(**MACHINE, target=GREEN), (".gitmodules",)),
        (job(**BROKE, target=GREEN), (".gitlab-ci.yml",)),
        (
            job(**{**MACHINE, "analysis": analysed(FailureClass.INFRASTRUCTURE, kind=RegionKind.MEMORY)}, target=GREEN),
            ("a.c",),
        ),
    ],
    ids=["host", "included", "submodule", "tags", "memory"],
)
def test_no_machine_is_blamed_for_what_the_change_may_have_asked_of_it(
    facts: JobFacts, changed: tuple[str, ...]
) -> None:
    assert judge_failures(FailureFacts(jobs=(facts,), changed=changed)).origin is FailureOrigin.UNKNOWN
    assert (
        judge_failures(FailureFacts(jobs=(replace(facts, target=None),), changed=changed)).origin
        is FailureOrigin.UNKNOWN
    )
    assert (
        judge_failures(FailureFacts(jobs=(replace(facts, target=red("f9")),), changed=changed)).origin
        is FailureOrigin.INFRASTRUCTURE
    )


def test_a_branch_that_stays_green_makes_it_surer() -> None:
    once, steady = (judge_job(job(**NAMES, target=there), CHANGED).sure for there in (GREEN, STEADY))
    assert LIKELY <= once < CERTAIN <= steady


def test_signs_that_contradict_each_other_are_both_told() -> None:
    found = judge_job(job(**NAMES, **MACHINE, target=GREEN), CHANGED)
    assert {reason.speaks_for for reason in found.reasons} >= {FailureOrigin.CHANGE, FailureOrigin.INFRASTRUCTURE}
    assert "contradiction" in {reason.sign for reason in found.reasons}


def test_what_is_missing_is_said() -> None:
    signs = {reason.sign for reason in judge_job(JobFacts(name="build"), None).reasons}
    assert signs == {"log-not-read", "target-not-seen", "diff-not-read", "not-tried-again"}


def test_missing_report_takes_certainty_from_excuses() -> None:
    for excused in (BROKE, {"tries": CommitTries(passed=1)}):
        whole, silent = (judge_job(job(**excused, **facts), CHANGED) for facts in ({"target": STEADY}, SILENT))
        assert whole.origin is silent.origin
        assert silent.sure < CERTAIN <= whole.sure
        assert "test-report-missing" in {reason.sign for reason in silent.reasons}


def test_missing_report_is_natural_where_no_script_ran() -> None:
    found = judge_job(job(**MACHINE, **SILENT), CHANGED)
    assert found.sure >= CERTAIN
    assert "test-report-missing" not in {reason.sign for reason in found.reasons}


def test_other_authors_and_printed_excuses_make_an_accusation_less_sure_and_no_more() -> None:
    alone = judge_job(job(**NAMES, target=STEADY), CHANGED)
    for facts in (OTHERS, PRINTED):
        found = judge_job(job(**NAMES, target=STEADY, **facts), CHANGED)
        assert found.origin is FailureOrigin.CHANGE
        assert LIKELY <= found.sure < alone.sure


def test_merge_requests_of_the_same_author_are_no_sign() -> None:
    found = judge_job(job(**NAMES, target=STEADY, also_seen_in=(), other_authors=0), CHANGED)
    assert found == judge_job(job(**NAMES, target=STEADY), CHANGED)


def test_script_output_makes_the_target_branch_no_certain_excuse() -> None:
    assert LIKELY <= judge_job(job(target=red("f1", "f2")), CHANGED).sure < CERTAIN


OURS, FLAKY, THERE = job(**NAMES, target=STEADY), job(tries=CommitTries(passed=1)), job(target=red("f1"))


@pytest.mark.parametrize(
    ("jobs", "origin"),
    [
        ((), FailureOrigin.UNKNOWN),
        ((FLAKY, FLAKY), FailureOrigin.FLAKY),
        ((FLAKY, OURS), FailureOrigin.CHANGE),
        ((FLAKY, THERE), FailureOrigin.UNKNOWN),
        ((FLAKY, job()), FailureOrigin.UNKNOWN),
        ((OURS, job()), FailureOrigin.CHANGE),
    ],
)
def test_all_that_failed_together_is_one_verdict(jobs: tuple[JobFacts, ...], origin: FailureOrigin) -> None:
    verdict = judge_failures(FailureFacts(jobs=jobs, changed=CHANGED))
    assert verdict.origin is origin
    assert (verdict.sure > 0) is (origin is not FailureOrigin.UNKNOWN)


classes = st.sampled_from([analysed(class_, sure) for class_ in FailureClass for sure in (0.5, 0.8, 0.95)])
targets = st.sampled_from([GREEN, STEADY, red("f1"), red("f9"), replace(red(), fingerprints=None)])
any_job = st.builds(
    JobFacts,
    name=st.just("build"),
    analysis=st.none() | classes,
    fingerprints=st.sampled_from([(), ("f1",)]),
    text=st.sampled_from(["", "src/engine.c:3: wrong"]),
    tries=st.builds(CommitTries, passed=st.integers(0, 1)),
    target=st.none() | targets,
    in_green_log=st.sampled_from([None, True, False]),
    only_runner_wrote=st.booleans(),
    lacks_report=st.booleans(),
    also_seen_in=st.just(("!5",)),
    other_authors=st.integers(0, 2),
)


@given(any_job, st.lists(st.text(), max_size=2))
def test_what_could_not_be_seen_never_makes_it_surer(facts: JobFacts, unseen: list[str]) -> None:
    whole = FailureFacts(jobs=(facts,), changed=CHANGED)
    before, after = judge_failures(whole), judge_failures(replace(whole, missing_facts=tuple(unseen)))
    assert (after.origin, after.sure) == (before.origin, before.sure)
    assert after.unseen == tuple(unseen)


@given(any_job)
def test_without_the_fact_that_decided_it_is_never_surer_of_the_same(facts: JobFacts) -> None:
    """Each kind of fact in turn is taken away. Facts that only make another one less sure are left out."""
    facts = replace(facts, lacks_report=False, other_authors=0)
    blame = facts.analysis.blame if facts.analysis is not None else None
    if blame is not None and blame.class_ is FailureClass.INFRASTRUCTURE:
        facts = replace(facts, only_runner_wrote=True)
    found = judge_job(facts, CHANGED)
    less = [
        judge_job(replace(facts, analysis=None), CHANGED),
        judge_job(replace(facts, target=None), CHANGED),
        judge_job(replace(facts, tries=CommitTries()), CHANGED),
        judge_job(replace(facts, text=""), CHANGED),
        judge_job(facts, None),
    ]
    for one in less:
        assert one.sure <= found.sure or one.origin is not found.origin or found.origin is FailureOrigin.UNKNOWN


@given(any_job, st.integers(1, 50), classes, st.sampled_from([("f1",), ("f9",), ()]))
def test_what_others_had_and_what_a_script_prints_buys_nothing(
    facts: JobFacts, authors: int, printed: EvidenceAnalysis, prints: tuple[str, ...]
) -> None:
    """Sightings of others never change an origin. Another analysis of a script's log never excuses."""
    plain = replace(facts, also_seen_in=(), other_authors=0)
    before, after = (
        judge_job(plain, CHANGED),
        judge_job(replace(plain, also_seen_in=("!5",), other_authors=authors), CHANGED),
    )
    assert (after.origin, after.sure <= before.sure) == (before.origin, True)
    script = replace(plain, only_runner_wrote=False, target=None)
    after = judge_job(replace(script, analysis=printed, fingerprints=prints), CHANGED)
    assert after.origin in (judge_job(script, CHANGED).origin, FailureOrigin.CHANGE, FailureOrigin.UNKNOWN)


@pytest.mark.thorough
@given(any_job)
def test_a_judgement_always_has_a_reason_of_its_own_origin(facts: JobFacts) -> None:
    found = judge_job(facts, CHANGED)
    assert any(reason.speaks_for is found.origin for reason in found.reasons)


@pytest.mark.thorough
@given(st.lists(st.text(), max_size=3), st.text())
def test_names_cannot_stand_where_other_names_belong(names: list[str], text: str) -> None:
    """A file may be called {0}."""
    reason = VerdictReason(sign="s", speaks_for=FailureOrigin.CHANGE, text="{0} and {1}.", names=("{1}", "b"))
    assert reason.render(lambda name: f"<{name}>") == "<{1}> and <b>."
    odd = VerdictReason(sign="s", speaks_for=FailureOrigin.CHANGE, text=text, names=tuple(names))
    assert isinstance(odd.render(str), str)

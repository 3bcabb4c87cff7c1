"""Whose a failure is, rule by rule (N8): where each fires, and where it must not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.domain.verdicts import CERTAIN, LIKELY, Origin, Reason, plainly
from hummingbird.evidence.regions import Analysis, Blame, Class, Kind, Line, Region
from hummingbird.evidence.verdicts.facts import Facts, JobFacts, OnTarget, Tries
from hummingbird.evidence.verdicts.judging import judge, judged
from hummingbird.evidence.verdicts.naming import is_place_of_work, is_setting, named_file

CHANGED = ("src/engine.c", "tests/test_engine.py", "pyproject.toml")
GREEN = OnTarget(branch="main", passed=(True,), pipeline_id=7)
STEADY = OnTarget(branch="main", passed=(True, True, True), pipeline_id=7)


def red(*prints: str) -> OnTarget:
    return OnTarget(branch="main", passed=(False, True), pipeline_id=7, fingerprints=prints)


def analysed(class_: Class, sure: float = 0.95, kind: Kind = Kind.TEST) -> Analysis:
    blame = Blame(class_, "a-rule", sure, "A sentence.")
    region = Region((Line(1, "src/engine.c:3: wrong"),), kind, blame, "f1", 1.0, "x")
    return Analysis((region,), blame, 10, 100)


def job(**facts: object) -> JobFacts:
    plain = JobFacts(name="build", id=5, analysis=analysed(Class.TEST), fingerprints=("f1", "f2"))
    return replace(plain, **facts)  # type: ignore[arg-type]


NAMES = {"text": "src/engine.c:3: wrong"}
PRINTED = {"analysis": analysed(Class.INFRASTRUCTURE)}
MACHINE = {**PRINTED, "only_runner_wrote": True}
BROKE = {"said": Blame(Class.INFRASTRUCTURE, "gitlab-runner-system-failure", 0.95, "It broke.")}
SILENT = {"target": replace(STEADY, has_report=True), "lacks_report": True}
OTHERS = {"elsewhere": ("!5", "!6"), "other_authors": 2}
COMPILED = {"analysis": analysed(Class.CODE, kind=Kind.COMPILER)}

TABLE: dict[str, tuple[JobFacts, Origin]] = {
    "passed when it was tried again": (job(tries=Tries(passed=1)), Origin.FLAKY),
    "passed in another pipeline of the commit": (job(tries=Tries(passed_in_others=1)), Origin.FLAKY),
    "failed each time": (job(tries=Tries(failed=3)), Origin.UNKNOWN),
    "red there in the same way": (job(target=red("f2", "f1")), Origin.TARGET),
    "red there in part of the same way": (job(target=red("f1")), Origin.UNKNOWN),
    "red there in the same way as a lesser failure": (job(target=red("f2")), Origin.UNKNOWN),
    "red there in another way": (job(target=red("f9")), Origin.UNKNOWN),
    "red there, and its log was not read": (job(target=replace(red(), fingerprints=None)), Origin.UNKNOWN),
    "red there once and green since": (
        job(target=OnTarget(branch="main", passed=(True, False), fingerprints=("f1",))),
        Origin.UNKNOWN,
    ),
    "the runner says that it broke": (job(**BROKE), Origin.INFRASTRUCTURE),
    "the runner says that it broke, and the test report is missing": (job(**BROKE, **SILENT), Origin.INFRASTRUCTURE),
    "a command of the job failed": (job(said=Blame(Class.UNKNOWN, "gitlab-script-failure", 0.2, "")), Origin.UNKNOWN),
    "a machine in the runner's log": (job(**MACHINE), Origin.INFRASTRUCTURE),
    "a machine, not sure": (
        job(analysis=analysed(Class.INFRASTRUCTURE, 0.6), only_runner_wrote=True),
        Origin.UNKNOWN,
    ),
    "a machine that the script may have printed": (job(**PRINTED), Origin.UNKNOWN),
    "a machine that the script may have printed, red there": (job(**PRINTED, target=red("f9")), Origin.UNKNOWN),
    "a machine that was printed, and the test report is missing": (job(**PRINTED, **SILENT), Origin.UNKNOWN),
    "the test report is missing": (job(**SILENT), Origin.UNKNOWN),
    "ours by its file, and the test report is missing": (job(**NAMES, **SILENT), Origin.CHANGE),
    "passed, and the test report is missing": (job(**SILENT, tries=Tries(passed=1)), Origin.FLAKY),
    "a machine that a green log speaks of too": (job(**MACHINE, in_green_log=True), Origin.UNKNOWN),
    "names a changed file, green there": (job(**NAMES, target=GREEN), Origin.CHANGE),
    "names a changed file, the branch not seen": (job(**NAMES), Origin.UNKNOWN),
    "names a changed file, red there in another way": (job(**NAMES, target=red("f9")), Origin.UNKNOWN),
    "names a changed file in lines of a green log": (job(**NAMES, target=GREEN, in_green_log=True), Origin.UNKNOWN),
    "names another file": (job(text="src/wing.c:3: wrong", target=GREEN), Origin.UNKNOWN),
    "a compiler names a changed file, the branch not seen": (job(**NAMES, **COMPILED), Origin.CHANGE),
    "a compiler refuses code, green there": (job(**COMPILED, target=GREEN), Origin.CHANGE),
    "a compiler refuses code, the branch not seen": (job(**COMPILED), Origin.UNKNOWN),
    "a test fails, green there": (job(target=STEADY), Origin.UNKNOWN),
    "configuration, and the merge request changes it": (
        job(analysis=analysed(Class.CONFIGURATION), target=GREEN),
        Origin.CHANGE,
    ),
    "configuration, the branch not seen": (job(analysis=analysed(Class.CONFIGURATION)), Origin.UNKNOWN),
    "ours by its file, and in merge requests of others": (job(**NAMES, target=GREEN, **OTHERS), Origin.CHANGE),
    "a machine, and in merge requests of others": (job(**MACHINE, **OTHERS), Origin.INFRASTRUCTURE),
    "a machine that was printed, and in merge requests of others": (job(**PRINTED, **OTHERS), Origin.UNKNOWN),
    "in merge requests of others": (job(**OTHERS), Origin.UNKNOWN),
    "ours by its file, and passed": (job(**NAMES, target=GREEN, tries=Tries(passed=1)), Origin.UNKNOWN),
    "ours by its file, and a machine": (job(**NAMES, **MACHINE, target=GREEN), Origin.UNKNOWN),
    "ours by its file, and a machine that was printed": (job(**NAMES, **PRINTED, target=GREEN), Origin.CHANGE),
    "a machine that is red there too": (job(**MACHINE, target=red("f1")), Origin.INFRASTRUCTURE),
    "a machine, and passed": (job(**MACHINE, tries=Tries(passed=1)), Origin.INFRASTRUCTURE),
    "comes and goes by the look of it": (job(analysis=analysed(Class.FLAKY)), Origin.UNKNOWN),
    "nothing was seen": (JobFacts(name="build"), Origin.UNKNOWN),
}


def test_each_rule_fires_where_it_must_and_nowhere_else_n8() -> None:
    for name, (facts, origin) in TABLE.items():
        found = judged(facts, CHANGED)
        assert found.origin is origin, (name, plainly(judge(Facts(jobs=(facts,), changed=CHANGED))))
        assert found.reasons, "every judgement says why"
        assert (found.sure >= LIKELY) is (origin is not Origin.UNKNOWN), name
        assert found.sure == 0 or origin is not Origin.UNKNOWN, name


def test_configuration_that_the_merge_request_does_not_touch_is_not_its_own_n8() -> None:
    facts = job(analysis=analysed(Class.CONFIGURATION), target=GREEN)
    assert judged(facts, ("src/engine.c",)).origin is Origin.UNKNOWN


@pytest.mark.parametrize(
    ("facts", "changed"),
    [
        (job(**MACHINE, target=GREEN), ("src/engine.c", ".gitlab-ci.yml")),
        (job(**MACHINE, target=GREEN), ("templates/build.yml",)),
        (job(**MACHINE, target=GREEN), (".gitmodules",)),
        (job(**BROKE, target=GREEN), (".gitlab-ci.yml",)),
        (job(**{**MACHINE, "analysis": analysed(Class.INFRASTRUCTURE, kind=Kind.MEMORY)}, target=GREEN), ("a.c",)),
    ],
    ids=["host", "included", "submodule", "tags", "memory"],
)
def test_no_machine_is_blamed_for_what_the_change_may_have_asked_of_it_n8(
    facts: JobFacts, changed: tuple[str, ...]
) -> None:
    assert judge(Facts(jobs=(facts,), changed=changed)).origin is Origin.UNKNOWN
    assert judge(Facts(jobs=(replace(facts, target=None),), changed=changed)).origin is Origin.UNKNOWN
    assert judge(Facts(jobs=(replace(facts, target=red("f9")),), changed=changed)).origin is Origin.INFRASTRUCTURE


def test_a_branch_that_stays_green_makes_it_surer_n8() -> None:
    once, steady = (judged(job(**NAMES, target=there), CHANGED).sure for there in (GREEN, STEADY))
    assert LIKELY <= once < CERTAIN <= steady


def test_signs_that_contradict_each_other_are_both_told_n8() -> None:
    found = judged(job(**NAMES, **MACHINE, target=GREEN), CHANGED)
    assert {reason.speaks_for for reason in found.reasons} >= {Origin.CHANGE, Origin.INFRASTRUCTURE}
    assert "contradiction" in {reason.sign for reason in found.reasons}


def test_what_is_missing_is_said_n8() -> None:
    signs = {reason.sign for reason in judged(JobFacts(name="build"), None).reasons}
    assert signs == {"log-not-read", "target-not-seen", "diff-not-read", "not-tried-again"}


def test_missing_report_takes_certainty_from_excuses() -> None:
    for excused in (BROKE, {"tries": Tries(passed=1)}):
        whole, silent = (judged(job(**excused, **facts), CHANGED) for facts in ({"target": STEADY}, SILENT))
        assert whole.origin is silent.origin
        assert silent.sure < CERTAIN <= whole.sure
        assert "test-report-missing" in {reason.sign for reason in silent.reasons}


def test_missing_report_is_natural_where_no_script_ran() -> None:
    found = judged(job(**MACHINE, **SILENT), CHANGED)
    assert found.sure >= CERTAIN
    assert "test-report-missing" not in {reason.sign for reason in found.reasons}


def test_other_authors_and_printed_excuses_make_an_accusation_less_sure_and_no_more() -> None:
    alone = judged(job(**NAMES, target=STEADY), CHANGED)
    for facts in (OTHERS, PRINTED):
        found = judged(job(**NAMES, target=STEADY, **facts), CHANGED)
        assert found.origin is Origin.CHANGE
        assert LIKELY <= found.sure < alone.sure


def test_merge_requests_of_the_same_author_are_no_sign() -> None:
    found = judged(job(**NAMES, target=STEADY, elsewhere=(), other_authors=0), CHANGED)
    assert found == judged(job(**NAMES, target=STEADY), CHANGED)


def test_script_output_makes_the_target_branch_no_certain_excuse() -> None:
    assert LIKELY <= judged(job(target=red("f1", "f2")), CHANGED).sure < CERTAIN


OURS, FLAKY, THERE = job(**NAMES, target=STEADY), job(tries=Tries(passed=1)), job(target=red("f1"))


@pytest.mark.parametrize(
    ("jobs", "origin"),
    [
        ((), Origin.UNKNOWN),
        ((FLAKY, FLAKY), Origin.FLAKY),
        ((FLAKY, OURS), Origin.CHANGE),
        ((FLAKY, THERE), Origin.UNKNOWN),
        ((FLAKY, job()), Origin.UNKNOWN),
        ((OURS, job()), Origin.CHANGE),
    ],
)
def test_all_that_failed_together_is_one_verdict_n8(jobs: tuple[JobFacts, ...], origin: Origin) -> None:
    verdict = judge(Facts(jobs=jobs, changed=CHANGED))
    assert verdict.origin is origin
    assert (verdict.sure > 0) is (origin is not Origin.UNKNOWN)


classes = st.sampled_from([analysed(class_, sure) for class_ in Class for sure in (0.5, 0.8, 0.95)])
targets = st.sampled_from([GREEN, STEADY, red("f1"), red("f9"), replace(red(), fingerprints=None)])
any_job = st.builds(
    JobFacts,
    name=st.just("build"),
    analysis=st.none() | classes,
    fingerprints=st.sampled_from([(), ("f1",)]),
    text=st.sampled_from(["", "src/engine.c:3: wrong"]),
    tries=st.builds(Tries, passed=st.integers(0, 1)),
    target=st.none() | targets,
    in_green_log=st.sampled_from([None, True, False]),
    only_runner_wrote=st.booleans(),
    lacks_report=st.booleans(),
    elsewhere=st.just(("!5",)),
    other_authors=st.integers(0, 2),
)


@given(any_job, st.lists(st.text(), max_size=2))
def test_what_could_not_be_seen_never_makes_it_surer_n8(facts: JobFacts, unseen: list[str]) -> None:
    whole = Facts(jobs=(facts,), changed=CHANGED)
    before, after = judge(whole), judge(replace(whole, unseen=tuple(unseen)))
    assert (after.origin, after.sure) == (before.origin, before.sure)
    assert after.unseen == tuple(unseen)


@given(any_job)
def test_without_the_fact_that_decided_it_is_never_surer_of_the_same_n8(facts: JobFacts) -> None:
    """Each kind of fact in turn is taken away. Facts that only make another one less sure are left out."""
    facts = replace(facts, lacks_report=False, other_authors=0)
    blame = facts.analysis.blame if facts.analysis is not None else None
    if blame is not None and blame.class_ is Class.INFRASTRUCTURE:
        facts = replace(facts, only_runner_wrote=True)
    found = judged(facts, CHANGED)
    less = [
        judged(replace(facts, analysis=None), CHANGED),
        judged(replace(facts, target=None), CHANGED),
        judged(replace(facts, tries=Tries()), CHANGED),
        judged(replace(facts, text=""), CHANGED),
        judged(facts, None),
    ]
    for one in less:
        assert one.sure <= found.sure or one.origin is not found.origin or found.origin is Origin.UNKNOWN


@given(any_job, st.integers(1, 50), classes, st.sampled_from([("f1",), ("f9",), ()]))
def test_what_others_had_and_what_a_script_prints_buys_nothing(
    facts: JobFacts, authors: int, printed: Analysis, prints: tuple[str, ...]
) -> None:
    """Sightings of others never change an origin. Another analysis of a script's log never excuses."""
    plain = replace(facts, elsewhere=(), other_authors=0)
    before, after = judged(plain, CHANGED), judged(replace(plain, elsewhere=("!5",), other_authors=authors), CHANGED)
    assert (after.origin, after.sure <= before.sure) == (before.origin, True)
    script = replace(plain, only_runner_wrote=False, target=None)
    after = judged(replace(script, analysis=printed, fingerprints=prints), CHANGED)
    assert after.origin in (judged(script, CHANGED).origin, Origin.CHANGE, Origin.UNKNOWN)


@pytest.mark.thorough
@given(any_job)
def test_a_judgement_always_has_a_reason_of_its_own_origin_n8(facts: JobFacts) -> None:
    found = judged(facts, CHANGED)
    assert any(reason.speaks_for is found.origin for reason in found.reasons)


@pytest.mark.parametrize(
    ("text", "changed", "named"),
    [
        ("src/engine.c:3:1: error", ["src/engine.c"], "src/engine.c"),
        ("/builds/group/rocket/src/engine.c(3)", ["src/engine.c"], "src/engine.c"),
        (r"C:\builds\rocket\src\engine.c", ["src/engine.c"], "src/engine.c"),
        ('  File "./src/engine.py", line 3', ["src/engine.py"], "src/engine.py"),
        ("at LogDifferTest.java:61", ["a/b/LogDifferTest.java"], "a/b/LogDifferTest.java"),
        ("at LogDifferTest.java:61", ["a/LogDifferTest.java", "b/LogDifferTest.java"], ""),
        ("b/LogDifferTest.java:61", ["a/LogDifferTest.java", "b/LogDifferTest.java"], "b/LogDifferTest.java"),
        ("other/engine.c:3: error", ["src/engine.c"], ""),
        ("src/engine.cpp:3: error", ["src/engine.c"], ""),
        ("my_engine.c:3: error", ["src/engine.c"], ""),
        ("utils.py:3: error", ["src/utils.py"], ""),
        ("src/utils.py:3: error", ["src/utils.py"], "src/utils.py"),
        ("/usr/lib/python3/site-packages/src/engine.py:3", ["src/engine.py"], ""),
        ("node_modules/a/src/engine.js:3", ["src/engine.js"], ""),
        ("README.md is missing", ["README.md"], ""),
        ("", ["src/engine.c"], ""),
        ("src/engine.c", [], ""),
    ],
)
def test_a_file_is_named_by_its_path_or_by_an_end_that_can_mean_nothing_else_n8(
    text: str, changed: list[str], named: str
) -> None:
    assert named_file(text, changed) == named


@pytest.mark.thorough
@given(st.text(max_size=200), st.lists(st.text(min_size=1, max_size=30), max_size=5))
def test_whatever_the_text_only_a_changed_file_is_named_n8(text: str, changed: list[str]) -> None:
    assert named_file(text, changed) in {"", *changed}


@pytest.mark.parametrize("path", [".gitlab-ci.yml", "ci/build.yml", "web/package-lock.json", "Dockerfile", "uv.lock"])
def test_files_that_say_how_things_are_built_are_settings(path: str) -> None:
    assert is_setting(path)


@pytest.mark.parametrize("path", ["src/engine.c", "docs/ci.md", "lib/locks.py", "circus/a.py"])
def test_files_that_say_what_things_do_are_none(path: str) -> None:
    assert not is_setting(path)


@pytest.mark.parametrize(
    "path", [".gitlab-ci.yml", "a/build.gitlab-ci.yml", "templates/a.yaml", "ci/a.sh", ".gitmodules"]
)
def test_files_that_say_where_jobs_run(path: str) -> None:
    assert is_place_of_work(path)


@pytest.mark.parametrize("path", ["src/ci.c", "docker-compose.yml", "api/circuits.yml", "docs/templates.md"])
def test_files_that_do_not_say_where_jobs_run(path: str) -> None:
    assert not is_place_of_work(path)


@pytest.mark.thorough
@given(st.lists(st.text(), max_size=3), st.text())
def test_names_cannot_stand_where_other_names_belong(names: list[str], text: str) -> None:
    """A file may be called {0}."""
    reason = Reason(sign="s", speaks_for=Origin.CHANGE, text="{0} and {1}.", names=("{1}", "b"))
    assert reason.told(lambda name: f"<{name}>") == "<{1}> and <b>."
    odd = Reason(sign="s", speaks_for=Origin.CHANGE, text=text, names=tuple(names))
    assert isinstance(odd.told(str), str)

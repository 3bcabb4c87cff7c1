"""First causes and what they drag along, for GitLab's jobs and Tekton's tasks."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.evidence.cause_graph import GraphJob, GraphJobStatus, PipelineCauses, find_causes
from hummingbird.evidence.gitlab_jobs import FAILURE_REASONS, blame_from_failure_reason, graph_jobs_from_gitlab
from hummingbird.evidence.regions import CONFIDENT, FailureClass
from tests.thoroughly import ALL

PASSED, FAILED, CANCELLED, SKIPPED = (
    GraphJobStatus.PASSED,
    GraphJobStatus.FAILED,
    GraphJobStatus.CANCELLED,
    GraphJobStatus.SKIPPED,
)


def job(name: str, status: GraphJobStatus, order: int = 0, **more: object) -> GraphJob:
    return replace(GraphJob(id=name, name=name, status=status, order=order), **more)  # type: ignore[arg-type]  # fields of Job


def firsts(causes: PipelineCauses) -> list[list[str]]:
    return [[found.name for found in cause.jobs] for cause in causes.root_causes]


def dragged(causes: PipelineCauses) -> list[list[str]]:
    return [[found.name for found in cause.affected] for cause in causes.root_causes]


def test_stages_behind_a_failure_are_dragged_along() -> None:
    causes = find_causes(
        [job("build", FAILED), job("lint", PASSED), job("test", SKIPPED, 1), job("deploy", SKIPPED, 2)]
    )
    assert firsts(causes) == [["build"]]
    assert dragged(causes) == [["test", "deploy"]]
    assert causes.unexplained_jobs == ()


def test_a_stage_that_runs_all_the_same_does_not_hide_the_failure_before_it() -> None:
    causes = find_causes([job("build", FAILED), job("clean up", PASSED, 1), job("deploy", SKIPPED, 2)])
    assert dragged(causes) == [["deploy"]]


def test_needs_count_and_not_stages_when_a_job_has_them() -> None:
    causes = find_causes(
        [
            job("build a", FAILED, finished=10.0),
            job("build b", PASSED),
            job("test a", SKIPPED, 1, needs=("build a",)),
            job("test b", FAILED, 1, needs=("build b",), finished=30.0),
            job("report b", SKIPPED, 2, needs=("test b",)),
            job("docs", FAILED, 2, needs=(), finished=5.0),
        ]
    )
    assert firsts(causes) == [["docs"], ["build a"], ["test b"]]
    assert dragged(causes) == [[], ["test a"], ["report b"]]


def test_a_job_that_fails_behind_a_failure_is_dragged_along() -> None:
    causes = find_causes(
        [
            job("build", FAILED, started=0.0, finished=10.0),
            job("collect", FAILED, 1, needs=("build",), started=11.0, finished=12.0),
        ]
    )
    assert firsts(causes) == [["build"]]
    assert dragged(causes) == [["collect"]]


def test_a_job_that_began_before_the_failure_above_it_ended_has_a_cause_of_its_own() -> None:
    causes = find_causes(
        [job("build", FAILED, started=0.0, finished=10.0), job("test", FAILED, 1, started=4.0, finished=6.0)]
    )
    assert firsts(causes) == [["build"], ["test"]]


def test_a_job_that_passed_ends_the_chain() -> None:
    causes = find_causes(
        [
            job("a", FAILED),
            job("b", PASSED, needs=("a",)),
            job("c", FAILED, needs=("b",)),
            job("d", SKIPPED, needs=("c",)),
        ]
    )
    assert firsts(causes) == [["a"], ["c"]]
    assert dragged(causes) == [[], ["d"]]


def test_first_causes_come_by_dependency_and_then_by_time() -> None:
    causes = find_causes(
        [
            job("late", FAILED, finished=20.0),
            job("deep", FAILED, needs=("fine",), finished=1.0),
            job("early", FAILED, finished=10.0),
            job("fine", PASSED),
        ]
    )
    assert firsts(causes) == [["early"], ["late"], ["deep"]]


def test_the_same_fingerprint_in_many_jobs_is_one_failure() -> None:
    causes = find_causes(
        [
            job("test 1/3", FAILED, fingerprint="f"),
            job("test 2/3", FAILED, fingerprint="f"),
            job("test 3/3", FAILED, fingerprint="g"),
            job("report", SKIPPED, 1, needs=("test",)),
        ]
    )
    assert firsts(causes) == [["test 1/3", "test 2/3"], ["test 3/3"]]
    assert dragged(causes)[0] == ["report"]


def test_a_need_of_a_matrix_is_met_by_all_of_its_jobs() -> None:
    causes = find_causes(
        [job("test: [a, 1]", PASSED), job("test: [b, 2]", FAILED), job("end", SKIPPED, needs=("test",))]
    )
    assert dragged(causes) == [["end"]]


def test_failures_that_are_allowed_stand_apart_and_drag_nothing() -> None:
    causes = find_causes([job("lint", FAILED, allow_failure=True), job("test", FAILED, 1), job("deploy", SKIPPED, 2)])
    assert [[found.name for found in cause.jobs] for cause in causes.allowed_failures] == [["lint"]]
    assert firsts(causes) == [["test"]]
    assert dragged(causes) == [["deploy"]]


def test_a_job_that_passed_on_a_later_try_is_a_hint_at_flakiness_and_no_cause() -> None:
    causes = find_causes([replace(job("t", FAILED, retried=True), id="1"), replace(job("t", PASSED), id="2")])
    assert causes.root_causes == ()
    assert [found.id for found in causes.flaky_jobs] == ["2"]


def test_a_job_that_failed_on_every_try_is_one_cause_and_not_flaky() -> None:
    causes = find_causes([replace(job("t", FAILED, retried=True), id="1"), replace(job("t", FAILED), id="2")])
    assert [found.id for found in causes.root_causes[0].jobs] == ["2"]
    assert causes.flaky_jobs == ()


def test_what_was_cancelled_beside_the_first_failure_belongs_to_it() -> None:
    causes = find_causes(
        [
            job("slow", CANCELLED, needs=()),
            job("a", FAILED, needs=(), finished=9.0),
            job("b", FAILED, needs=(), finished=3.0),
        ]
    )
    assert firsts(causes) == [["b"], ["a"]]
    assert dragged(causes) == [["slow"], []]


def test_what_was_cancelled_without_any_failure_is_unexplained() -> None:
    causes = find_causes(
        [job("slow", CANCELLED), job("never", SKIPPED, 1), job("unwanted", SKIPPED, skipped_by_design=True)]
    )
    assert causes.root_causes == ()
    assert [found.name for found in causes.unexplained_jobs] == ["slow", "never"]


def test_a_bridge_fails_because_of_the_pipeline_that_it_started() -> None:
    causes = find_causes(
        [
            job("trigger", FAILED, pipeline="1", downstream_pipeline="2"),
            job("deploy", SKIPPED, 1, pipeline="1"),
            job("compile", FAILED, pipeline="2"),
            job("link", SKIPPED, 1, pipeline="2"),
        ]
    )
    assert firsts(causes) == [["compile"]]
    assert sorted(dragged(causes)[0]) == ["deploy", "link", "trigger"]


def test_circles_unknown_needs_and_doubles_cost_an_edge_and_never_an_error() -> None:
    causes = find_causes(
        [
            job("a", FAILED, needs=("b",)),
            job("b", FAILED, needs=("a", "b", "gone")),
            job("c", SKIPPED, needs=("b",)),
            job("c", SKIPPED, needs=("b", "b")),
        ]
    )
    assert firsts(causes) == [["a"]]
    assert dragged(causes) == [["b", "c"]]


def test_a_job_that_needs_itself_waits_for_nothing() -> None:
    causes = find_causes([job("b", FAILED, needs=("a",)), job("a", FAILED, needs=("a",))])
    assert (firsts(causes), dragged(causes)) == ([["a"]], [["b"]])


@pytest.mark.parametrize("shape", ["stages", "chain", "one name", "all need all of ten"])
def test_many_jobs_of_any_shape_are_one_walk(shape: str) -> None:
    """Quadratic work would be a hundred million edges, which the timeout of the suite would not forgive."""
    number = 10_000 if ALL else 500
    jobs = [job("0", FAILED, finished=1.0)]
    for place in range(1, number):
        if shape == "stages":
            jobs.append(job(str(place), SKIPPED if place > number // 2 else PASSED, 0 if place <= number // 2 else 1))
        elif shape == "chain":
            jobs.append(job(str(place), SKIPPED, needs=(str(place - 1),)))
        elif shape == "one name":
            jobs.append(replace(job("test", SKIPPED, needs=("0", "test")), id=str(place)))
        else:
            jobs.append(job(str(place), SKIPPED, needs=tuple(map(str, range(min(place, 10))))))
    random.Random(7).shuffle(jobs)
    causes = find_causes(jobs)
    assert firsts(causes) == [["0"]]
    assert len(causes.root_causes[0].affected) == sum(found.status is SKIPPED for found in jobs)


NAMES = st.sampled_from(["a", "b", "c", "d 1/2", "d 2/2", "d", ""])
JOBS = st.builds(
    GraphJob,
    id=NAMES,
    name=NAMES,
    status=st.sampled_from(GraphJobStatus),
    order=st.integers(-2, 3),
    needs=st.none() | st.lists(NAMES, max_size=3).map(tuple),
    allow_failure=st.booleans(),
    started=st.none() | st.floats(allow_nan=True),
    finished=st.none() | st.floats(0, 9),
    retried=st.booleans(),
    failed_tries=st.integers(0, 2),
    pipeline=st.sampled_from(["1", "2"]),
    downstream_pipeline=st.sampled_from(["", "", "1", "2"]),
    skipped_by_design=st.booleans(),
    stopped=st.booleans(),
    fingerprint=st.sampled_from(["", "f"]),
)


@given(st.lists(JOBS, max_size=12))
def test_any_jobs_have_causes_and_every_failure_that_counts_is_told_once(jobs: list[GraphJob]) -> None:
    causes = find_causes(jobs)
    told = [found for cause in causes.root_causes for found in (*cause.jobs, *cause.affected)]
    assert len(told) == len({id(found) for found in told})
    now = {found.id or f"#{place}": found for place, found in enumerate(jobs)}.values()
    bad = [found for found in now if found.status is FAILED and not found.retried and not found.allow_failure]
    assert {id(found) for found in bad} <= {id(found) for found in told}


def test_gitlab_s_jobs_get_their_stage_order_from_their_ids() -> None:
    raw = [
        {"id": 9, "name": "deploy", "stage": "deploy", "status": "skipped", "pipeline": {"id": 5}},
        {
            "id": 3,
            "name": "test",
            "stage": "test",
            "status": "failed",
            "failure_reason": "script_failure",
            "pipeline": {"id": 5},
        },
        {"id": 1, "name": "build", "stage": "build", "status": "success", "pipeline": {"id": 5}},
        {"id": 2, "name": "lint", "stage": "build", "status": "failed", "allow_failure": True, "pipeline": {"id": 5}},
    ]
    jobs = graph_jobs_from_gitlab(raw)
    assert [found.order for found in jobs] == [2, 1, 0, 0]
    causes = find_causes(jobs)
    assert (firsts(causes), dragged(causes)) == ([["test"]], [["deploy"]])
    assert graph_jobs_from_gitlab(raw, stages=["deploy", "test", "build"])[0].order == 0


def test_gitlab_s_bridges_and_times_and_given_needs_are_taken_over() -> None:
    raw = [
        {"id": 1, "name": "go", "stage": "s", "status": "failed", "downstream_pipeline": {"id": 77}},
        {
            "id": 2,
            "name": "t",
            "stage": "s",
            "status": "canceled",
            "started_at": "2026-03-03T11:33:07.5Z",
            "finished_at": None,
        },
    ]
    bridge, other = graph_jobs_from_gitlab(raw, needs={"t": ["go"]}, pipeline="5")
    assert (bridge.downstream_pipeline, bridge.pipeline, bridge.needs) == ("77", "5", None)
    assert (other.needs, other.status, other.started, other.finished) == (("go",), CANCELLED, 1772537587.5, None)


@pytest.mark.parametrize(
    ("reason", "class_"),
    [
        ("runner_system_failure", FailureClass.INFRASTRUCTURE),
        ("stuck_or_timeout_failure", FailureClass.INFRASTRUCTURE),
        ("upstream_bridge_project_not_found", FailureClass.CONFIGURATION),
        ("ci_quota_exceeded", FailureClass.INFRASTRUCTURE),
    ],
)
def test_gitlab_s_own_word_decides_when_it_says_enough(reason: str, class_: FailureClass) -> None:
    blame = blame_from_failure_reason(reason)
    assert blame.class_ is class_
    assert blame.confidence >= CONFIDENT
    assert blame.rule == f"gitlab-{reason.replace('_', '-')}"


def test_gitlab_s_word_for_any_failing_script_decides_nothing() -> None:
    assert all(
        blame_from_failure_reason(reason).confidence < CONFIDENT for reason in ("script_failure", "", "never_heard_of")
    )
    assert all(blame.why.endswith(".") for blame in FAILURE_REASONS.values())


@pytest.mark.thorough
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(
            st.dictionaries(
                st.sampled_from(["id", "name", "stage", "status", "pipeline", "started_at", "retried"]),
                inner,
                max_size=5,
            ),
            max_size=4,
        ),
    )
)
def test_any_json_makes_jobs_and_never_raises(raw: object) -> None:
    assert find_causes(graph_jobs_from_gitlab(raw)) is not None

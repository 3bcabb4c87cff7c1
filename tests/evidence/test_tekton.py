"""Reading PipelineRuns, TaskRuns, Pods and lists of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.evidence.regions import CONFIDENT, FailureClass, RegionKind
from hummingbird.evidence.tekton.object_reader import read_objects
from hummingbird.evidence.tekton.run_regions import failing_test_output, regions_from_runs, summarize_runs
from hummingbird.evidence.tekton.runs import TektonResult, TektonRun, TektonState, TektonTask

FIXTURES = Path(__file__).parents[1] / "fixtures" / "evidence" / "tekton"


def fixture(name: str) -> Any:
    return json.loads((FIXTURES / f"{name}.json").read_text())


def one(raw: object) -> TektonRun:
    (run,) = read_objects(raw).runs
    return run


def task(run: TektonRun, name: str) -> TektonTask:
    return next(found for found in run.tasks if found.name == name)


def task_run(reason: str, message: str = "", **status: Any) -> dict[str, Any]:
    said = {"type": "Succeeded", "status": "False", "reason": reason, "message": message}
    return {"kind": "TaskRun", "metadata": {"name": "run-1"}, "status": {"conditions": [said], **status}}


def step(name: str, exit_code: int, reason: str = "Error", **more: Any) -> dict[str, Any]:
    return {"name": name, "container": f"step-{name}", "terminated": {"exitCode": exit_code, "reason": reason}, **more}


def test_the_step_that_failed_is_found_and_those_skipped_after_it_are_not() -> None:
    run = one(fixture("derived_taskrun_build_container_failed"))
    (only,) = run.tasks
    assert only.state is TektonState.FAILED
    assert only.culprit is not None
    assert (only.culprit.name, only.culprit.exit_code, only.culprit.container) == ("build", 1, "step-build")
    assert only.pod == "human-resources-on-push-z79cl-build-container-pod"
    assert only.started is not None
    assert only.finished is not None
    assert only.finished - only.started == 90


def test_a_failed_pipeline_run_of_v1_names_the_only_task_that_can_have_failed() -> None:
    """In v1 the PipelineRun holds no states of its tasks; of four that started only one is needed by none of them."""
    run = one(fixture("pipelinerun_build_failed"))
    failed = [found for found in run.tasks if found.state is TektonState.FAILED]
    assert [(found.name, found.deduced) for found in failed] == [("build-container", True)]
    assert sum(found.state is TektonState.SKIPPED and found.forced_skip for found in run.tasks) == 14
    (region,) = regions_from_runs(read_objects(fixture("pipelinerun_build_failed")))
    assert "follows from the order" in region.excerpt
    assert "log: of TaskRun testrepo-d69b0-on-pull-request-8pblb-build-container" in region.excerpt
    assert "affected: build-image-index" in region.excerpt


def test_without_the_pipeline_s_order_nothing_is_guessed() -> None:
    run = one(fixture("list_k8s_page1"))
    assert {found.state for found in run.tasks} == {TektonState.UNKNOWN, TektonState.SKIPPED}
    (region,) = regions_from_runs(read_objects(fixture("list_k8s_page1")))
    assert "one or more of these TaskRuns failed" in region.excerpt


def test_a_timeout_of_v1beta1_blames_the_task_that_hung_and_not_what_ran_finally() -> None:
    found = read_objects(fixture("pipelinerun_build_timeout_v1beta1"))
    assert task(found.runs[0], "show-summary").final
    first, second = regions_from_runs(found)
    assert "task clone-repository" in first.lines[0].text
    assert "task show-summary" in second.lines[0].text
    assert first.score > second.score
    assert (first.kind, first.blame.rule) == (RegionKind.TIMEOUT, "tekton-pipeline-timeout")
    assert "affected: appstudio-configure-build, build-container, show-summary" in first.excerpt


def test_a_failure_without_a_reason_is_told_as_one() -> None:
    found = read_objects(fixture("pipelinerun_test_failed"))
    assert found.runs[0].state is TektonState.FAILED
    (region,) = regions_from_runs(found)
    assert region.blame.rule == "tekton-no-reason"
    assert region.blame.confidence < CONFIDENT


def test_a_task_that_never_had_a_pod_is_the_configuration_s_fault() -> None:
    (region,) = regions_from_runs(read_objects(fixture("taskrun_validation_failed")))
    assert (region.blame.class_, region.blame.rule) == (FailureClass.CONFIGURATION, "tekton-definition")
    assert "missing values for these params" in region.excerpt
    assert "never had a pod" in region.excerpt


def test_a_pod_that_still_runs_but_whose_step_failed_has_failed() -> None:
    run = one(fixture("pod_step_failed_exit1"))
    assert (run.kind, run.state, run.owner) == ("Pod", TektonState.FAILED, "nodejs-ex-git-d0sjao-deploy-jb79p")
    (region,) = regions_from_runs(read_objects(fixture("pod_step_failed_exit1")))
    assert "step oc: exit code 1" in region.excerpt
    assert "container step-oc, namespace default" in region.excerpt
    assert "StartedAt" not in region.excerpt, "Tekton's results are not an error text"


def test_what_runs_and_what_succeeded_has_no_regions() -> None:
    assert one(fixture("taskrun_clamav_running")).state is TektonState.RUNNING
    assert regions_from_runs(read_objects(fixture("taskrun_clamav_running"))) == ()
    assert regions_from_runs(read_objects(fixture("pipelinerun_test_succeeded"))) == ()


def test_lists_of_kubernetes_and_of_kubearchive_are_read_whatever_comes_first_in_them() -> None:
    assert one(fixture("list_kubearchive_page1")).state is TektonState.PASSED
    assert read_objects(fixture("list_kubearchive_empty_old")).runs == ()
    pod = fixture("pod_step_failed_exit1")
    del pod["kind"], pod["apiVersion"]
    assert one({"kind": "PodList", "items": [pod, None, 3]}).kind == "Pod"
    assert one([fixture("taskrun_validation_failed")]).kind == "TaskRun"
    assert one({"items": [fixture("taskrun_validation_failed")]}).kind == "TaskRun"


def test_a_succeeded_run_with_a_failing_test_output_is_told() -> None:
    raw = fixture("pipelinerun_test_succeeded")
    said = {"result": "FAILURE", "failures": 3, "successes": 17, "warnings": 0, "note": "see the report"}
    raw["status"]["results"] = [{"name": "TEST_OUTPUT", "value": json.dumps(said)}]
    (region,) = regions_from_runs(read_objects(raw))
    assert (region.kind, region.blame.class_, region.rule) == (RegionKind.TEST, FailureClass.TEST, "tekton-test-output")
    assert "TEST_OUTPUT says FAILURE: 3 failures, 0 warnings, 17 successes (see the report)" in region.excerpt


@pytest.mark.parametrize("value", ["", "no JSON", "[]", "3", "null", '{"result": "SUCCESS"}', '{"result": "WARNING"}'])
def test_a_test_output_that_is_good_or_unreadable_is_no_failure(value: str) -> None:
    assert failing_test_output([TektonResult("TEST_OUTPUT", value)]) == ""


def test_task_runs_and_pods_of_a_list_fill_in_their_pipeline_run() -> None:
    pipeline = fixture("pipelinerun_build_failed")
    name = pipeline["metadata"]["name"]
    child = task_run("Failed", '"step-build" exited with code 137')
    child["metadata"] = {
        "name": f"{name}-build-container",
        "namespace": pipeline["metadata"]["namespace"],
        "labels": {"tekton.dev/pipelineRun": name, "tekton.dev/pipelineTask": "build-container"},
    }
    pod = {
        "kind": "Pod",
        "metadata": {
            "name": "the-pod",
            "namespace": pipeline["metadata"]["namespace"],
            "labels": {"tekton.dev/taskRun": f"{name}-build-container"},
        },
        "status": {
            "phase": "Failed",
            "containerStatuses": [
                {"name": "step-build", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
            ],
        },
    }
    found = read_objects([pod, child, pipeline])
    (run,) = found.runs
    whole = task(run, "build-container")
    assert (whole.state, whole.deduced, whole.pod, whole.needs[0]) == (
        TektonState.FAILED,
        False,
        "the-pod",
        "prefetch-dependencies",
    )
    (region,) = regions_from_runs(found)
    assert (region.kind, region.rule) == (RegionKind.MEMORY, "tekton-out-of-memory")
    assert "container step-build" in region.excerpt


def test_the_copy_that_comes_first_is_the_one_that_counts() -> None:
    live, archived = fixture("taskrun_validation_failed"), fixture("taskrun_validation_failed")
    archived["status"]["conditions"][0]["status"] = "Unknown"
    assert one([live, archived]).state is TektonState.FAILED


@pytest.mark.parametrize(
    ("raw", "class_", "rule"),
    [
        (
            task_run("TaskRunImagePullFailed", "Back-off pulling image"),
            FailureClass.INFRASTRUCTURE,
            "tekton-image-pull",
        ),
        (task_run("TaskRunImagePullFailed", "x: manifest unknown"), FailureClass.CONFIGURATION, "tekton-image-missing"),
        (task_run("TaskRunTimeout"), FailureClass.UNKNOWN, "tekton-task-timeout"),
        (task_run("PodEvicted"), FailureClass.INFRASTRUCTURE, "tekton-pod-evicted"),
        (task_run("StepOOM"), FailureClass.INFRASTRUCTURE, "tekton-out-of-memory"),
        (task_run("Failed", steps=[step("a", 0, "OOMKilled")]), FailureClass.INFRASTRUCTURE, "tekton-out-of-memory"),
        (task_run("Failed", steps=[step("a", 137)]), FailureClass.INFRASTRUCTURE, "tekton-killed"),
        (task_run("Failed", steps=[step("a", 2)]), FailureClass.UNKNOWN, "tekton-step-failed"),
        (task_run("CouldntGetTask"), FailureClass.CONFIGURATION, "tekton-definition-missing"),
        (
            task_run("PodCreationFailed", "pods is forbidden: exceeded quota: x"),
            FailureClass.INFRASTRUCTURE,
            "tekton-quota",
        ),
        (task_run("InvalidParamValue"), FailureClass.CONFIGURATION, "tekton-definition"),
        (task_run("NeverHeardOf"), FailureClass.UNKNOWN, "tekton-no-reason"),
        (
            task_run("Failed", steps=[{"name": "a", "waiting": {"reason": "ImagePullBackOff"}}]),
            FailureClass.INFRASTRUCTURE,
            "tekton-image-pull",
        ),
    ],
)
def test_reasons_become_classes_by_a_named_rule_with_a_sentence(raw: object, class_: FailureClass, rule: str) -> None:
    (region,) = regions_from_runs(read_objects(raw))
    assert (region.blame.class_, region.rule, region.blame.rule) == (class_, rule, rule)
    assert region.blame.why.endswith((".", "why."))


@pytest.mark.parametrize(
    ("status", "rule"),
    [
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "tekton-pod-evicted"),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "InvalidImageName"}}}]},
            "tekton-image-name",
        ),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}
            | {"phase": "Failed"},
            "tekton-pod-evicted",
        ),
    ],
)  # fmt: skip
def test_a_pod_says_what_the_cluster_did_to_it(status: dict[str, Any], rule: str) -> None:
    (region,) = regions_from_runs(read_objects({"kind": "Pod", "metadata": {"name": "p"}, "status": status}))
    assert region.rule == rule


def test_a_step_s_own_words_are_told_and_a_step_that_may_fail_is_passed_over() -> None:
    steps = [
        step("lint", 1, terminationReason="Continued"),
        {"name": "push", "container": "step-push", "terminated": {"exitCode": 3, "message": "no right to push"}},
    ]
    (region,) = regions_from_runs(read_objects(task_run("Failed", steps=steps)))
    assert "step push: exit code 3" in region.excerpt
    assert "no right to push" in region.excerpt


def test_a_cancelled_task_is_no_failure_of_its_own() -> None:
    assert one(task_run("TaskRunCancelled")).state is TektonState.CANCELLED


def test_a_task_that_passed_on_another_try_is_flaky() -> None:
    raw = task_run("Succeeded", retriesStatus=[{"conditions": []}])
    raw["status"]["conditions"][0]["status"] = "True"
    (region,) = regions_from_runs(read_objects(raw))
    assert region.blame.class_ is FailureClass.FLAKY


def test_the_same_failure_of_another_run_has_the_same_fingerprint() -> None:
    def of(suffix: str) -> str:
        raw = json.loads(json.dumps(fixture("pipelinerun_build_timeout_v1beta1")).replace("grjtn", suffix))
        return regions_from_runs(read_objects(raw))[0].fingerprint

    assert of("grjtn") == of("x8fk2")
    assert of("grjtn") != regions_from_runs(read_objects(fixture("taskrun_validation_failed")))[0].fingerprint


def test_the_summary_counts_runs_and_names_the_failed_ones() -> None:
    lines = summarize_runs(read_objects([fixture("pipelinerun_build_failed"), fixture("pipelinerun_test_succeeded")]))
    assert lines[0] == "Tekton, 2 runs: 1 failed, 1 passed"
    assert lines[1].startswith("PipelineRun testrepo-d69b0-on-pull-request-8pblb: Failed. Tasks Completed: 4")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
)
FIELDS = st.sampled_from(
    [
        "kind",
        "metadata",
        "status",
        "conditions",
        "items",
        "spec",
        "steps",
        "terminated",
        "state",
        "reason",
        "type",
        "message",
        "name",
        "exitCode",
        "results",
        "tasks",
        "taskRuns",
        "childReferences",
        "skippedTasks",
        "pipelineSpec",
        "runAfter",
        "containerStatuses",
        "waiting",
        "retriesStatus",
        "podName",
        "labels",
        "value",
        "startTime",
    ]
)
KINDS = st.sampled_from(["PipelineRun", "TaskRun", "Pod", "List", "PodList", "PipelineRunList"])
OBJECTS = st.recursive(
    JSON | KINDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=25,
)


@given(raw=OBJECTS, kind=KINDS)
def test_any_json_is_read_and_never_raises(raw: object, kind: str) -> None:
    for given_ in (raw, {"kind": kind, "status": raw}, {"kind": kind, "items": [raw]}, {"kind": kind, "metadata": raw}):
        found = read_objects(given_)
        assert all(region.lines for region in regions_from_runs(found))
        assert summarize_runs(found)


@pytest.mark.thorough
@given(path=st.lists(st.integers(0, 30), min_size=1, max_size=6), value=OBJECTS)
def test_a_real_object_with_anything_anywhere_is_read_and_never_raises(path: list[int], value: object) -> None:
    raw = fixture("pipelinerun_build_timeout_v1beta1")
    node: Any = raw
    for turn in path[:-1]:
        inner = [
            item
            for item in (node.values() if isinstance(node, dict) else node)
            if isinstance(item, dict | list) and item
        ]
        if not inner:
            break
        node = inner[turn % len(inner)]
    if isinstance(node, dict):
        node[list(node)[path[-1] % len(node)]] = value
    else:
        node[path[-1] % len(node)] = value
    assert regions_from_runs(read_objects(raw)) is not None

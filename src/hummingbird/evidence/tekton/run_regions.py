"""Turn failed Tekton tasks into regions, root causes first, with where to find their logs.

An object has no lines, so the lines of these regions have no numbers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.evidence.cause_graph import GraphJob, GraphJobStatus, find_causes
from hummingbird.evidence.fingerprints import compute_fingerprint
from hummingbird.evidence.loose_json import object_at, text_at
from hummingbird.evidence.regions import EvidenceLine, Region
from hummingbird.evidence.tekton.object_reader import is_chosen_skip
from hummingbird.evidence.tekton.runs import (
    IMAGE,
    IMAGE_MISSING,
    KILLED,
    MEMORY,
    POD,
    QUOTA,
    RETRIED,
    RUN_TIMEOUT,
    STEP,
    TASK_TIMEOUT,
    TEST_OUTPUT,
    FailureMeaning,
    TektonObjects,
    TektonResult,
    TektonRun,
    TektonState,
    TektonTask,
    explain_reasons,
)

GRAPH_STATUSES = {
    TektonState.PASSED: GraphJobStatus.PASSED,
    TektonState.FAILED: GraphJobStatus.FAILED,
    TektonState.CANCELLED: GraphJobStatus.CANCELLED,
    TektonState.SKIPPED: GraphJobStatus.SKIPPED,
}
NO_SUCH_IMAGE = ("manifest unknown", "not found", "unauthorized", "denied", "does not exist")
KILLED_EXIT_CODE = 137


def graph_jobs_from_run(run: TektonRun) -> tuple[GraphJob, ...]:
    """Return one job per task; `finally` tasks wait for all others."""
    return tuple(_graph_job(run, task, place) for place, task in enumerate(run.tasks))


def _graph_job(run: TektonRun, task: TektonTask, place: int) -> GraphJob:
    ignored = task.reason == "FailureIgnored"
    return GraphJob(
        id=task.run or f"{task.name}#{place}",
        name=task.name,
        status=GRAPH_STATUSES.get(task.state, GraphJobStatus.OPEN),
        order=1 if task.final else 0,
        needs=None if task.final else task.needs,
        failure_reason=task.reason,
        allow_failure=ignored,
        started=task.started,
        finished=task.finished,
        failed_tries=task.failed_tries,
        pipeline=run.name,
        skipped_by_design=is_chosen_skip(task),
        stopped=task.forced_skip,
        blame=explain_task_failure(run, task).blame if task.state is TektonState.FAILED else None,
    )


def explain_task_failure(run: TektonRun, task: TektonTask) -> FailureMeaning:
    """Explain a failure from the most telling of all reasons that the task, its run and its steps give."""
    culprit = task.culprit
    found = explain_reasons(task.reason, culprit.reason if culprit else "", *_waiting_reasons(task))
    said = f"{task.message} {culprit.message if culprit else ''}"
    if found is TASK_TIMEOUT and run.reason == "PipelineRunTimeout":
        return RUN_TIMEOUT
    if found is IMAGE and any(words in said for words in NO_SUCH_IMAGE):
        return IMAGE_MISSING
    if found is POD and "exceeded quota" in said:
        return QUOTA
    if "OOMKilled" in said:
        return MEMORY
    if found is STEP and culprit and culprit.exit_code == KILLED_EXIT_CODE:
        return KILLED
    return _with_exit_code(found, task)


def _waiting_reasons(task: TektonTask) -> list[str]:
    return [step.reason for step in task.steps if step.exit_code is None and not step.harmless]


def _with_exit_code(found: FailureMeaning, task: TektonTask) -> FailureMeaning:
    """Put the step's exit code into the sentence for people."""
    culprit = task.culprit
    if found is not STEP or not culprit or culprit.exit_code is None:
        return found
    why = f"Step {culprit.name} ended with exit code {culprit.exit_code}; its log says why."
    return replace(found, blame=replace(found.blame, why=why))


NO_LINE = 0
TEST_RESULTS = frozenset({"TEST_OUTPUT", "HACBS_TEST_OUTPUT"})
FAILED_RESULTS = frozenset({"FAILURE", "ERROR"})
FIRST_SCORE, RUN_ONLY_SCORE, TEST_OUTPUT_SCORE, AFFECTED_SCORE, RETRIED_SCORE = 1.0, 0.9, 0.8, 0.5, 0.3
MAX_NAMES = 12


def regions_from_runs(found: TektonObjects) -> tuple[Region, ...]:
    """Make the regions of all runs, best score first."""
    regions = [region for run in found.runs for region in _regions_of_run(run)]
    return tuple(sorted(regions, key=lambda region: -region.score))


def summarize_runs(found: TektonObjects) -> list[str]:
    """Return lines that say how the runs ended: failed PipelineRuns by name, the others by number."""
    states = Counter(run.state for run in found.runs)
    counts = ", ".join(f"{count} {state}" for state, count in states.most_common()) or "none"
    lines = [f"Tekton, {len(found.runs)} {'run' if len(found.runs) == 1 else 'runs'}: {counts}"]
    failed = [run for run in found.runs if run.state is TektonState.FAILED and run.kind == "PipelineRun"]
    lines += [f"{run.kind} {run.name}: {run.reason or 'failed'}. {run.message}".rstrip() for run in failed[:MAX_NAMES]]
    return lines


def failing_test_output(results: Sequence[TektonResult]) -> str:
    """Return what a test result says if it reports a failure, else ""; the task may have succeeded all the same."""
    for result in results:
        if result.name in TEST_RESULTS:
            try:
                said = object_at(decode_lenient_json(result.value))
            except InvalidJson:
                continue
            if text_at(said, "result") in FAILED_RESULTS:
                return f"{result.name} says {text_at(said, 'result')}: {_describe_counts(said)}".rstrip(": ")
    return ""


def _describe_counts(said: object) -> str:
    counts = [f"{text_at(said, name)} {name}" for name in ("failures", "warnings", "successes") if text_at(said, name)]
    note = text_at(said, "note")
    return ", ".join(counts) + (f" ({note})" if note else "")


def _identify(said: Sequence[str]) -> str:
    """Return the fingerprint of what a run says; its first line names what failed, if nothing says more."""
    return compute_fingerprint(said) or compute_fingerprint(said, title=said[0])


def _regions_of_run(run: TektonRun) -> list[Region]:
    causes = find_causes(graph_jobs_from_run(run))
    dragged = {job.id: cause for cause in causes.root_causes for job in cause.affected}
    behind = {cause.first_job.id: [job.name for job in cause.affected] for cause in causes.root_causes}
    found = []
    for task in run.tasks:
        if task.state is TektonState.FAILED:
            lines = [*_describe_task(run, task), *_describe_affected(behind.get(task.run, []))]
            score = AFFECTED_SCORE if task.run in dragged else FIRST_SCORE
            found.append(
                _make_region(lines, explain_task_failure(run, task), score, _identify(_stable_lines(run, task)))
            )
        elif said := failing_test_output(task.results):
            lines = [f"{_task_title(run, task)}: {said}", *_log_location(task)]
            found.append(
                _make_region(
                    lines, TEST_OUTPUT, TEST_OUTPUT_SCORE, _identify([f"test output of task {task.name}", said])
                )
            )
        elif task.state is TektonState.PASSED and task.failed_tries:
            lines = [f"{_task_title(run, task)}: passed after {task.failed_tries} failed tries", *_log_location(task)]
            found.append(_make_region(lines, RETRIED, RETRIED_SCORE, _identify([f"retried task {task.name}"])))
    return found or _regions_of_run_alone(run)


def _regions_of_run_alone(run: TektonRun) -> list[Region]:
    """Make a region of the run itself when no task is to blame: it never got that far, or does not say which task."""
    said = failing_test_output(run.results)
    if run.state is TektonState.FAILED:
        lines = [
            f"FAILED {run.kind} {run.name}: {run.reason or 'no reason given'}",
            run.message,
            said,
            *_describe_started_tasks(run),
        ]
        same = _identify([run.reason, run.message.replace(run.name or " ", " "), said])
        return [_make_region(lines, explain_reasons(run.reason), RUN_ONLY_SCORE, same)]
    return (
        [_make_region([f"{run.kind} {run.name}: {said}"], TEST_OUTPUT, TEST_OUTPUT_SCORE, _identify([said]))]
        if said
        else []
    )


def _describe_started_tasks(run: TektonRun) -> list[str]:
    names = [task.run for task in run.tasks if task.state is TektonState.UNKNOWN and task.run]
    return [f"one or more of these TaskRuns failed: {_join_names(names)}"] if names else []


def _stable_lines(run: TektonRun, task: TektonTask) -> list[str]:
    """Return lines that are the same in another run of this failure: without names that are generated for each run."""
    culprit = task.culprit
    step = f"step {culprit.name} exit code {culprit.exit_code} {culprit.reason}" if culprit else ""
    message = task.message
    for made in (task.pod, task.run, run.name):
        message = message.replace(made, "") if made else message
    return [f"task {task.name} {task.reason}", message, step, culprit.message if culprit else ""]


def _make_region(lines: Sequence[str], found: FailureMeaning, score: float, same: str) -> Region:
    whole = tuple(EvidenceLine(NO_LINE, line) for text_ in lines for line in text_.splitlines() if line.strip())
    return Region(
        lines=whole,
        kind=found.kind,
        blame=found.blame,
        fingerprint=same,
        score=score,
        rule=found.blame.rule,
    )


def _task_title(run: TektonRun, task: TektonTask) -> str:
    return f"task {task.name} of {run.kind} {run.name}" if run.kind == "PipelineRun" else f"{run.kind} {run.name}"


def _describe_task(run: TektonRun, task: TektonTask) -> list[str]:
    sure = ", as follows from the order of the tasks" if task.deduced else ""
    lines = [f"FAILED {_task_title(run, task)}: {task.reason or 'no reason given'}{sure}", task.message]
    if culprit := task.culprit:
        code = f"exit code {culprit.exit_code}" if culprit.exit_code is not None else "no exit code"
        lasted = _describe_duration(culprit.started, culprit.finished)
        lines += [f"step {culprit.name}: {code} ({culprit.reason or 'no reason'}){lasted}", culprit.message]
    if said := failing_test_output(task.results):
        lines.append(said)
    return [*lines, *_log_location(task)]


def _describe_duration(started: float | None, finished: float | None) -> str:
    return "" if started is None or finished is None else f" after {max(0.0, finished - started):.0f} s"


def _log_location(task: TektonTask) -> list[str]:
    if task.deduced:
        return [f"log: of TaskRun {task.run}"] if task.run else []
    if not task.pod:
        return ["log: none, for the task never had a pod"] if task.state is TektonState.FAILED else []
    container = f", container {task.culprit.container}" if task.culprit else ""
    return [f"log: pod {task.pod}{container}" + (f", namespace {task.namespace}" if task.namespace else "")]


def _describe_affected(names: Sequence[str]) -> list[str]:
    return [f"affected: {_join_names(names)}"] if names else []


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"{', '.join(names[:MAX_NAMES])}{more}"

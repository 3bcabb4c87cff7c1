"""Failed Tekton tasks as regions, first causes first, with where to find their logs (V3, V5, V7).

An object has no lines of its own, so the lines of these regions have no numbers. Knows nothing of JSON or of budgets.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence

from hummingbird.evidence.causes.graph import causes_of
from hummingbird.evidence.fingerprint import fingerprint
from hummingbird.evidence.regions import Line, Region
from hummingbird.evidence.tekton.jobs import explained, jobs_of
from hummingbird.evidence.tekton.loose import fields, text
from hummingbird.evidence.tekton.reasons import RETRIED, TEST_OUTPUT, Meaning, meaning
from hummingbird.evidence.tekton.runs import Found, Result, Run, State, Task

Fingerprint = Callable[[Sequence[str]], str]
NO_LINE = 0
TEST_RESULTS = frozenset({"TEST_OUTPUT", "HACBS_TEST_OUTPUT"})
NOT_GOOD = frozenset({"FAILURE", "ERROR"})
FIRST, RUN_ONLY, TESTED, DRAGGED, RETRIED_SCORE = 1.0, 0.9, 0.8, 0.5, 0.3
NAMED = 12


def regions_of(found: Found, name: Fingerprint = fingerprint) -> tuple[Region, ...]:
    regions = [region for run in found.runs for region in _of_run(run, name)]
    return tuple(sorted(regions, key=lambda region: -region.score))


def summary(found: Found) -> list[str]:
    """How the runs ended, the failed ones by name and the others by number."""
    states = Counter(run.state for run in found.runs)
    counts = ", ".join(f"{count} {state}" for state, count in states.most_common()) or "none"
    lines = [f"Tekton, {len(found.runs)} {'run' if len(found.runs) == 1 else 'runs'}: {counts}"]
    failed = [run for run in found.runs if run.state is State.FAILED and run.kind == "PipelineRun"]
    lines += [f"{run.kind} {run.name}: {run.reason or 'failed'}. {run.message}".rstrip() for run in failed[:NAMED]]
    return lines


def failing_output(results: Sequence[Result]) -> str:
    """What a test says of itself, when it says that it failed; its task may have succeeded all the same."""
    for result in results:
        if result.name in TEST_RESULTS:
            try:
                said = fields(json.loads(result.value))
            except (ValueError, RecursionError):
                continue
            if text(said, "result") in NOT_GOOD:
                return f"{result.name} says {text(said, 'result')}: {_counted(said)}".rstrip(": ")
    return ""


def _counted(said: object) -> str:
    counts = [f"{text(said, name)} {name}" for name in ("failures", "warnings", "successes") if text(said, name)]
    note = text(said, "note")
    return ", ".join(counts) + (f" ({note})" if note else "")


def _of_run(run: Run, name: Fingerprint) -> list[Region]:
    causes = causes_of(jobs_of(run))
    dragged = {job.id: cause for cause in causes.first for job in cause.dragged}
    behind = {cause.first.id: [job.name for job in cause.dragged] for cause in causes.first}
    found = []
    for task in run.tasks:
        if task.state is State.FAILED:
            lines = [*_told(run, task), *_trail(behind.get(task.run, []))]
            score = DRAGGED if task.run in dragged else FIRST
            found.append(_region(lines, explained(run, task), score, name(_lasting(run, task))))
        elif said := failing_output(task.results):
            lines = [f"{_title(run, task)}: {said}", *_log(task)]
            found.append(_region(lines, TEST_OUTPUT, TESTED, name([f"test output of task {task.name}", said])))
        elif task.state is State.PASSED and task.failed_tries:
            lines = [f"{_title(run, task)}: passed after {task.failed_tries} failed tries", *_log(task)]
            found.append(_region(lines, RETRIED, RETRIED_SCORE, name([f"retried task {task.name}"])))
    return found or _of_run_alone(run, name)


def _of_run_alone(run: Run, name: Fingerprint) -> list[Region]:
    """When no task is to blame: the run never got that far, or the object does not say which one it was."""
    said = failing_output(run.results)
    if run.state is State.FAILED:
        lines = [f"FAILED {run.kind} {run.name}: {run.reason or 'no reason given'}", run.message, said, *_started(run)]
        same = name([run.reason, run.message.replace(run.name or " ", " "), said])
        return [_region(lines, meaning(run.reason), RUN_ONLY, same)]
    return [_region([f"{run.kind} {run.name}: {said}"], TEST_OUTPUT, TESTED, name([said]))] if said else []


def _started(run: Run) -> list[str]:
    names = [task.run for task in run.tasks if task.state is State.UNKNOWN and task.run]
    return [f"one or more of these TaskRuns failed: {_listed(names)}"] if names else []


def _lasting(run: Run, task: Task) -> list[str]:
    """What another run of the same failure says too: without the names that are made for one run."""
    culprit = task.culprit
    step = f"step {culprit.name} exit code {culprit.exit_code} {culprit.reason}" if culprit else ""
    message = task.message
    for made in (task.pod, task.run, run.name):
        message = message.replace(made, "") if made else message
    return [f"task {task.name} {task.reason}", message, step, culprit.message if culprit else ""]


def _region(lines: Sequence[str], found: Meaning, score: float, same: str) -> Region:
    whole = tuple(Line(NO_LINE, line) for text_ in lines for line in text_.splitlines() if line.strip())
    return Region(
        lines=whole,
        kind=found.kind,
        blame=found.blame,
        fingerprint=same,
        score=score,
        rule=found.blame.rule,
    )


def _title(run: Run, task: Task) -> str:
    return f"task {task.name} of {run.kind} {run.name}" if run.kind == "PipelineRun" else f"{run.kind} {run.name}"


def _told(run: Run, task: Task) -> list[str]:
    sure = ", as follows from the order of the tasks" if task.deduced else ""
    lines = [f"FAILED {_title(run, task)}: {task.reason or 'no reason given'}{sure}", task.message]
    if culprit := task.culprit:
        code = f"exit code {culprit.exit_code}" if culprit.exit_code is not None else "no exit code"
        lasted = _lasted(culprit.started, culprit.finished)
        lines += [f"step {culprit.name}: {code} ({culprit.reason or 'no reason'}){lasted}", culprit.message]
    if said := failing_output(task.results):
        lines.append(said)
    return [*lines, *_log(task)]


def _lasted(started: float | None, finished: float | None) -> str:
    return "" if started is None or finished is None else f" after {max(0.0, finished - started):.0f} s"


def _log(task: Task) -> list[str]:
    if task.deduced:
        return [f"log: of TaskRun {task.run}"] if task.run else []
    if not task.pod:
        return ["log: none, for the task never had a pod"] if task.state is State.FAILED else []
    container = f", container {task.culprit.container}" if task.culprit else ""
    return [f"log: pod {task.pod}{container}" + (f", namespace {task.namespace}" if task.namespace else "")]


def _trail(names: Sequence[str]) -> list[str]:
    return [f"dragged along: {_listed(names)}"] if names else []


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"

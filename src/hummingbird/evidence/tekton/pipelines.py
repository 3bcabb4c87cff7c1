"""Reads one PipelineRun: its tasks with their order, what was skipped and why, and which must have failed (V7).

In v1 a PipelineRun names its TaskRuns and says nothing of how they ended, only how many failed; often the order of the
tasks leaves one answer. Knows nothing of lists or of the TaskRuns themselves.
"""

import json
import re
from dataclasses import replace

from hummingbird.evidence.tekton.loose import Fields, fields, items, moment, text, words
from hummingbird.evidence.tekton.reasons import CHOSEN, DRAGGED_ALONG
from hummingbird.evidence.tekton.runs import Run, State, Task
from hummingbird.evidence.tekton.tasks import condition, read_task_status, results_of, state_of

REFERENCE = re.compile(r"\$\(tasks\.([\w.-]+?)\.(?:results|outputs|status|reason|matrix)\b")
COUNTED = re.compile(r"Tasks Completed: (\d{1,6}) \(Failed: (\d{1,6}), Cancell?ed:? (\d{1,6})\)")


def read_pipeline_run(raw: Fields) -> Run:
    status = fields(raw, "status")
    said = condition(status)
    namespace = text(raw, "metadata", "namespace")
    tasks = _ordered(_children(status, namespace) + _skipped(status), _plan(raw))
    run = Run(
        kind="PipelineRun",
        name=text(raw, "metadata", "name"),
        namespace=namespace,
        uid=text(raw, "metadata", "uid"),
        state=state_of(status),
        reason=text(said, "reason"),
        message=text(said, "message"),
        started=moment(status, "startTime"),
        finished=moment(status, "completionTime"),
        tasks=tasks,
        results=results_of(status),
    )
    return replace(run, tasks=deduced(run))


def _children(status: Fields, namespace: str) -> list[Task]:
    named = [
        Task(name=text(child, "pipelineTaskName") or text(child, "name"), run=text(child, "name"), namespace=namespace)
        for child in items(status, "childReferences")
    ]
    embedded = [
        read_task_status(fields(child, "status"), text(child, "pipelineTaskName") or run, run, namespace)
        for field in ("taskRuns", "runs")
        for run, child in fields(status, field).items()
        if isinstance(child, dict)
    ]
    known = {task.run for task in embedded}
    return [*embedded, *(task for task in named if task.run not in known)]


def _skipped(status: Fields) -> list[Task]:
    found = []
    for raw in items(status, "skippedTasks"):
        reason = text(raw, "reason")
        stopped = reason in DRAGGED_ALONG
        found.append(Task(name=text(raw, "name"), state=State.SKIPPED, reason=reason, dragged=stopped))
    return found


def _plan(raw: Fields) -> dict[str, Task]:
    """Each task of the pipeline with what it needs, as far as the object holds the pipeline."""
    spec = fields(raw, "status", "pipelineSpec") or fields(raw, "spec", "pipelineSpec")
    plan = {}
    for final, field in ((False, "tasks"), (True, "finally")):
        for task in items(spec, field):
            name = text(task, "name")
            referred = REFERENCE.findall(json.dumps(task, default=str))
            needs = dict.fromkeys([*words(task, "runAfter"), *referred])
            plan[name] = Task(name, needs=tuple(need for need in needs if need != name), final=final)
    return plan


def _ordered(tasks: list[Task], plan: dict[str, Task]) -> tuple[Task, ...]:
    """In the order of the pipeline, with the needs that it gives them."""
    place = {name: number for number, name in enumerate(plan)}
    planned = [
        replace(task, needs=plan[task.name].needs, final=plan[task.name].final) if task.name in plan else task
        for task in tasks
    ]
    return tuple(sorted(planned, key=lambda task: place.get(task.name, len(place))))


def deduced(run: Run) -> tuple[Task, ...]:
    """Whoever needs a task can only start when it has passed. If as many are left as failed, those are the ones."""
    counted = COUNTED.search(run.message)
    failures = int(counted.group(2)) if counted else None
    started = {need for task in run.tasks if task.state is not State.SKIPPED and not task.final for need in task.needs}
    open_ = {task.run for task in run.tasks if task.state is State.UNKNOWN and task.name not in started}
    failed = {task.run for task in run.tasks if task.state is State.FAILED}
    if failures is None or run.state not in {State.PASSED, State.FAILED} or failures not in {0, len(open_ | failed)}:
        return run.tasks
    return tuple(_settled(task, failures > 0 and task.run in open_) for task in run.tasks)


def _settled(task: Task, failed: bool) -> Task:
    if task.state is not State.UNKNOWN:
        return task
    return replace(task, state=State.FAILED if failed else State.PASSED, deduced=True)


def chosen_skip(task: Task) -> bool:
    """Skipped because the pipeline wanted it so; older versions give no reason at all."""
    return task.state is State.SKIPPED and task.reason in CHOSEN

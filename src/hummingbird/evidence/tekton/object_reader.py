"""Read PipelineRuns, TaskRuns and Pods from JSON, alone or in any kind of list, and join what belongs together.

Any field may be missing or have another type; nothing here raises on bad input.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.evidence.loose_json import JsonObject, int_at, object_at, objects_at, strings_at, text_at, timestamp_at
from hummingbird.evidence.tekton.runs import (
    CANCELLED,
    CHOSEN_SKIP_REASONS,
    FORCED_SKIP_REASONS,
    TASK_TIMEOUT,
    TEKTON_REASONS,
    TektonObjects,
    TektonResult,
    TektonRun,
    TektonState,
    TektonStep,
    TektonTask,
)

HARMLESS_REASONS = frozenset({"Skipped", "Continued"})
CONDITION_STATES = {"True": TektonState.PASSED, "False": TektonState.FAILED, "Unknown": TektonState.RUNNING}
POD_PHASES = {
    "Succeeded": TektonState.PASSED,
    "Failed": TektonState.FAILED,
    "Running": TektonState.RUNNING,
    "Pending": TektonState.RUNNING,
}
RESULT_FIELDS = ("results", "taskResults", "pipelineResults")  # the names in v1 and v1beta1
LABEL_PREFIX = "tekton.dev/"


def find_condition(status: JsonObject, kind: str = "Succeeded") -> JsonObject:
    """Return the condition of this type, or an empty object."""
    return next((found for found in objects_at(status, "conditions") if text_at(found, "type") == kind), {})


def read_state(status: JsonObject) -> TektonState:
    """Read the state from the condition; reasons may be missing, and they change from version to version."""
    said = find_condition(status)
    state = CONDITION_STATES.get(text_at(said, "status"), TektonState.UNKNOWN)
    if state is TektonState.FAILED and TEKTON_REASONS.get(text_at(said, "reason")) is CANCELLED:
        return TektonState.CANCELLED
    return state


def read_results(status: JsonObject) -> tuple[TektonResult, ...]:
    """Read the results of a task or a run, in either version of the API."""
    raw = [found for name in RESULT_FIELDS for found in objects_at(status, name)]
    return tuple(TektonResult(text_at(found, "name"), text_at(found, "value")) for found in raw)


def tekton_label(raw: object, name: str) -> str:
    """Return the value of a `tekton.dev/` label, or ""."""
    return text_at(raw, "metadata", "labels", LABEL_PREFIX + name)


def read_task_status(status: JsonObject, name: str, run: str, namespace: str) -> TektonTask:
    """Read the status of a TaskRun, its own or the one embedded in a PipelineRun of v1beta1."""
    said = find_condition(status)
    return TektonTask(
        name=name,
        run=run,
        state=read_state(status),
        reason=text_at(said, "reason"),
        message=text_at(said, "message"),
        namespace=namespace,
        pod=text_at(status, "podName"),
        steps=tuple(_read_steps(objects_at(status, "steps"))) + tuple(_read_steps(objects_at(status, "sidecars"))),
        results=read_results(status),
        started=timestamp_at(status, "startTime"),
        finished=timestamp_at(status, "completionTime"),
        failed_tries=len(objects_at(status, "retriesStatus")),
    )


def read_task_run(raw: JsonObject) -> TektonRun:
    """Read a TaskRun as a run with one task."""
    name, namespace = text_at(raw, "metadata", "name"), text_at(raw, "metadata", "namespace")
    task = read_task_status(object_at(raw, "status"), tekton_label(raw, "pipelineTask") or name, name, namespace)
    return _single_task_run(raw, "TaskRun", task, tekton_label(raw, "pipelineRun"))


def read_pod(raw: JsonObject) -> TektonRun:
    """Read a Pod as a run with one task."""
    status = object_at(raw, "status")
    name, namespace = text_at(raw, "metadata", "name"), text_at(raw, "metadata", "namespace")
    steps = [
        *_read_steps(objects_at(status, "initContainerStatuses")),
        *_read_steps(objects_at(status, "containerStatuses")),
    ]
    reason, message = _pod_reason(status, steps)
    task = TektonTask(
        name=tekton_label(raw, "pipelineTask") or tekton_label(raw, "taskRun") or name,
        run=tekton_label(raw, "taskRun"),
        state=_pod_state(status, steps, reason),
        reason=reason,
        message=message,
        namespace=namespace,
        pod=name,
        steps=tuple(steps),
        started=timestamp_at(status, "startTime"),
        finished=max((step.finished for step in steps if step.finished), default=None),
    )
    return _single_task_run(raw, "Pod", task, task.run)


def _single_task_run(raw: JsonObject, kind: str, task: TektonTask, owner: str) -> TektonRun:
    return TektonRun(
        kind=kind,
        name=text_at(raw, "metadata", "name"),
        namespace=task.namespace,
        uid=text_at(raw, "metadata", "uid"),
        owner=owner,
        state=task.state,
        reason=task.reason,
        message=task.message,
        started=task.started,
        finished=task.finished,
        tasks=(task,),
    )


def _read_steps(raw: Iterable[JsonObject]) -> list[TektonStep]:
    return [_read_step(found) for found in raw]


def _read_step(raw: JsonObject) -> TektonStep:
    """Read a step. A step of a TaskRun holds its state itself, a container of a Pod holds it below `state`."""
    state = object_at(raw, "state") or raw
    ended, waiting = object_at(state, "terminated"), object_at(state, "waiting")
    container = text_at(raw, "container") or text_at(raw, "name")
    message, inner = _parse_termination(text_at(ended, "message"))
    said = text_at(raw, "terminationReason") or inner
    reason = text_at(ended, "reason") or text_at(waiting, "reason")
    return TektonStep(
        name=text_at(raw, "name").removeprefix("step-"),
        container=container,
        exit_code=int_at(ended, "exitCode"),
        reason=said if said and reason in {"", "Error"} else reason,
        message=message or text_at(waiting, "message"),
        started=timestamp_at(ended, "startedAt"),
        finished=timestamp_at(ended, "finishedAt"),
        harmless=said in HARMLESS_REASONS,
    )


def _parse_termination(message: str) -> tuple[str, str]:
    """Return the step's own message and Tekton's reason; Tekton writes results into the same field, as JSON."""
    if not message.startswith("[{"):
        return message, ""
    try:
        entries = objects_at(decode_lenient_json(message))
    except InvalidJson:
        return "", ""  # a truncated list of results
    return "", next((text_at(entry, "value") for entry in entries if text_at(entry, "key") == "Reason"), "")


def _pod_reason(status: JsonObject, steps: list[TektonStep]) -> tuple[str, str]:
    disrupted, scheduled = find_condition(status, "DisruptionTarget"), find_condition(status, "PodScheduled")
    stuck = next((step for step in steps if step.exit_code is None and step.reason in TEKTON_REASONS), None)
    if reason := text_at(status, "reason"):
        return reason, text_at(status, "message")
    if text_at(disrupted, "status") == "True":
        return text_at(disrupted, "reason"), text_at(disrupted, "message")
    if stuck:
        return stuck.reason, stuck.message
    if text_at(scheduled, "status") == "False":
        return text_at(scheduled, "reason"), text_at(scheduled, "message")
    return "", text_at(status, "message")


def _pod_state(status: JsonObject, steps: list[TektonStep], reason: str) -> TektonState:
    state = POD_PHASES.get(text_at(status, "phase"), TektonState.UNKNOWN)
    stuck = any(step.exit_code is None and step.reason in TEKTON_REASONS for step in steps)
    if state is TektonState.RUNNING and (stuck or any(step.failed and step.is_own_step for step in steps)):
        return TektonState.FAILED
    if state is TektonState.PASSED and TEKTON_REASONS.get(reason) is TASK_TIMEOUT:
        return TektonState.FAILED
    return state


def merge_pod_details(task: TektonTask, pod: TektonTask) -> TektonTask:
    """Add to a task what only its pod knows."""
    steps = task.steps if task.culprit or not pod.steps else pod.steps
    plain = task.reason in {"", "Failed"} and pod.reason in TEKTON_REASONS
    return replace(
        task,
        pod=task.pod or pod.pod,
        steps=steps,
        reason=pod.reason if plain else task.reason,
        message=task.message or pod.message,
        state=pod.state if task.state is TektonState.UNKNOWN or task.deduced else task.state,
    )


RESULT_REFERENCE = re.compile(r"\$\(tasks\.([\w.-]+?)\.(?:results|outputs|status|reason|matrix)\b")
TASK_COUNTS = re.compile(r"Tasks Completed: (\d{1,6}) \(Failed: (\d{1,6}), Cancell?ed:? (\d{1,6})\)")


def read_pipeline_run(raw: JsonObject) -> TektonRun:
    """Read a PipelineRun with its tasks in order, what was skipped and why.

    In v1 a PipelineRun names its TaskRuns but does not say how they ended, only how many failed. Often the order of the
    tasks leaves one answer, which `deduce_states` finds.
    """
    status = object_at(raw, "status")
    said = find_condition(status)
    namespace = text_at(raw, "metadata", "namespace")
    tasks = _order_tasks(_child_tasks(status, namespace) + _read_skipped_tasks(status), _pipeline_plan(raw))
    run = TektonRun(
        kind="PipelineRun",
        name=text_at(raw, "metadata", "name"),
        namespace=namespace,
        uid=text_at(raw, "metadata", "uid"),
        state=read_state(status),
        reason=text_at(said, "reason"),
        message=text_at(said, "message"),
        started=timestamp_at(status, "startTime"),
        finished=timestamp_at(status, "completionTime"),
        tasks=tasks,
        results=read_results(status),
    )
    return replace(run, tasks=deduce_states(run))


def _child_tasks(status: JsonObject, namespace: str) -> list[TektonTask]:
    named = [
        TektonTask(
            name=text_at(child, "pipelineTaskName") or text_at(child, "name"),
            run=text_at(child, "name"),
            namespace=namespace,
        )
        for child in objects_at(status, "childReferences")
    ]
    embedded = [
        read_task_status(object_at(child, "status"), text_at(child, "pipelineTaskName") or run, run, namespace)
        for field in ("taskRuns", "runs")
        for run, child in object_at(status, field).items()
        if isinstance(child, dict)
    ]
    known = {task.run for task in embedded}
    return [*embedded, *(task for task in named if task.run not in known)]


def _read_skipped_tasks(status: JsonObject) -> list[TektonTask]:
    found = []
    for raw in objects_at(status, "skippedTasks"):
        reason = text_at(raw, "reason")
        stopped = reason in FORCED_SKIP_REASONS
        found.append(
            TektonTask(name=text_at(raw, "name"), state=TektonState.SKIPPED, reason=reason, forced_skip=stopped)
        )
    return found


def _pipeline_plan(raw: JsonObject) -> dict[str, TektonTask]:
    """Return each task of the pipeline with its needs, as far as the object contains the pipeline."""
    spec = object_at(raw, "status", "pipelineSpec") or object_at(raw, "spec", "pipelineSpec")
    plan = {}
    for final, field in ((False, "tasks"), (True, "finally")):
        for task in objects_at(spec, field):
            name = text_at(task, "name")
            referred = RESULT_REFERENCE.findall(json.dumps(task, default=str))
            needs = dict.fromkeys([*strings_at(task, "runAfter"), *referred])
            plan[name] = TektonTask(name, needs=tuple(need for need in needs if need != name), final=final)
    return plan


def _order_tasks(tasks: list[TektonTask], plan: dict[str, TektonTask]) -> tuple[TektonTask, ...]:
    """Sort the tasks in the order of the pipeline and add the needs that it gives them."""
    place = {name: number for number, name in enumerate(plan)}
    planned = [
        replace(task, needs=plan[task.name].needs, final=plan[task.name].final) if task.name in plan else task
        for task in tasks
    ]
    return tuple(sorted(planned, key=lambda task: place.get(task.name, len(place))))


def deduce_states(run: TektonRun) -> tuple[TektonTask, ...]:
    """Deduce states that the object does not give.

    A task passed if a task that needs it started. If the number of remaining tasks equals the number of failures in the
    run's message, those tasks failed.
    """
    counted = TASK_COUNTS.search(run.message)
    failures = int(counted.group(2)) if counted else None
    started = {
        need for task in run.tasks if task.state is not TektonState.SKIPPED and not task.final for need in task.needs
    }
    open_ = {task.run for task in run.tasks if task.state is TektonState.UNKNOWN and task.name not in started}
    failed = {task.run for task in run.tasks if task.state is TektonState.FAILED}
    if (
        failures is None
        or run.state not in {TektonState.PASSED, TektonState.FAILED}
        or failures not in {0, len(open_ | failed)}
    ):
        return run.tasks
    return tuple(_deduce_state(task, failures > 0 and task.run in open_) for task in run.tasks)


def _deduce_state(task: TektonTask, failed: bool) -> TektonTask:
    if task.state is not TektonState.UNKNOWN:
        return task
    return replace(task, state=TektonState.FAILED if failed else TektonState.PASSED, deduced=True)


def is_chosen_skip(task: TektonTask) -> bool:
    """Tell whether the pipeline's definition skipped the task; older versions of Tekton give no reason at all."""
    return task.state is TektonState.SKIPPED and task.reason in CHOSEN_SKIP_REASONS


READERS_BY_KIND = {
    "PipelineRun": read_pipeline_run,
    "TaskRun": read_task_run,
    "CustomRun": read_task_run,
    "Pod": read_pod,
}


def read_objects(raw: object) -> TektonObjects:
    """Read one object, an envelope with a list, or a bare list."""
    envelope = object_at(raw)
    kind = text_at(envelope, "kind")
    typed = kind.removesuffix("List") if kind.endswith("List") else ""
    listed = kind.endswith("List") or ("items" in envelope and not kind)
    objects = objects_at(raw) if isinstance(raw, list) else objects_at(envelope, "items") if listed else [envelope]
    runs = [run for found in objects if (run := _read_object(found, typed))]
    return TektonObjects(recognised=bool(runs) or typed in READERS_BY_KIND, runs=combine_runs(runs))


def _read_object(raw: JsonObject, typed: str) -> TektonRun | None:
    # Kubernetes leaves out the kind of items in a typed list of its own kinds, such as Pods.
    reader = READERS_BY_KIND.get(text_at(raw, "kind") or typed)
    return reader(raw) if reader else None


def combine_runs(runs: Iterable[TektonRun]) -> tuple[TektonRun, ...]:
    """Return each run once, with its tasks and pods joined."""
    return join_runs(_unique_runs(runs))


def _unique_runs(runs: Iterable[TektonRun]) -> list[TektonRun]:
    """Keep the first run of each uid; the caller puts the copy that it trusts first."""
    found: dict[object, TektonRun] = {}
    for place, run in enumerate(runs):
        found.setdefault(run.uid or place, run)
    return list(found.values())


def join_runs(runs: Iterable[TektonRun]) -> tuple[TektonRun, ...]:
    """Make TaskRuns tasks of their PipelineRun and add Pods to their TaskRun; what has no parent stays alone."""
    whole = list(runs)
    pods = {(run.namespace, run.owner): run.tasks[0] for run in whole if run.kind == "Pod" and run.owner}
    rest = [_add_pod_details(run, pods) for run in whole if run.kind != "Pod"]
    known = {(run.namespace, task.run) for run in rest for task in run.tasks}
    rest += [run for run in whole if run.kind == "Pod" and (run.namespace, run.owner) not in known]
    parts: dict[tuple[str, str], list[TektonTask]] = {}
    parents = {(run.namespace, run.name) for run in rest if run.kind == "PipelineRun"}
    for run in rest:
        if run.kind != "PipelineRun" and (run.namespace, run.owner) in parents:
            parts.setdefault((run.namespace, run.owner), []).append(run.tasks[0])
    return tuple(
        _add_task_runs(run, parts.get((run.namespace, run.name), [])) if run.kind == "PipelineRun" else run
        for run in rest
        if run.kind == "PipelineRun" or (run.namespace, run.owner) not in parents
    )


def _add_pod_details(run: TektonRun, pods: dict[tuple[str, str], TektonTask]) -> TektonRun:
    tasks = tuple(
        merge_pod_details(task, pod) if (pod := pods.get((run.namespace, task.run))) else task for task in run.tasks
    )
    return replace(run, tasks=tasks)


def _add_task_runs(run: TektonRun, tasks: list[TektonTask]) -> TektonRun:
    if not tasks:
        return run
    told = {task.run: task for task in tasks}
    before = {task.run: task for task in run.tasks if task.run}
    kept = [
        replace(told[task.run], needs=task.needs, final=task.final)
        if task.run in told
        else replace(task, state=TektonState.UNKNOWN, deduced=False)
        if task.deduced
        else task
        for task in run.tasks
    ]
    added = [task for task in tasks if task.run not in before]
    whole = replace(run, tasks=(*kept, *added))
    return replace(whole, tasks=deduce_states(whole))

"""Reads one TaskRun or Pod: how it ended, by which step, and where its log is (V7).

Every field may be missing or of another type. Knows nothing of pipelines or lists.
"""

import json
from collections.abc import Iterable
from dataclasses import replace

from hummingbird.evidence.tekton.loose import Fields, fields, items, moment, number, text
from hummingbird.evidence.tekton.reasons import CANCELLED, REASONS, TASK_TIMEOUT
from hummingbird.evidence.tekton.runs import Result, Run, State, Step, Task

HARMLESS = frozenset({"Skipped", "Continued"})
STATES = {"True": State.PASSED, "False": State.FAILED, "Unknown": State.RUNNING}
PHASES = {"Succeeded": State.PASSED, "Failed": State.FAILED, "Running": State.RUNNING, "Pending": State.RUNNING}
RESULT_FIELDS = ("results", "taskResults", "pipelineResults")  # the names in v1 and v1beta1
LABEL = "tekton.dev/"


def condition(status: Fields, kind: str = "Succeeded") -> Fields:
    return next((found for found in items(status, "conditions") if text(found, "type") == kind), {})


def state_of(status: Fields) -> State:
    """By the condition alone; reasons may be missing, and they change from version to version."""
    said = condition(status)
    state = STATES.get(text(said, "status"), State.UNKNOWN)
    if state is State.FAILED and REASONS.get(text(said, "reason")) is CANCELLED:
        return State.CANCELLED
    return state


def results_of(status: Fields) -> tuple[Result, ...]:
    raw = [found for name in RESULT_FIELDS for found in items(status, name)]
    return tuple(Result(text(found, "name"), text(found, "value")) for found in raw)


def label(raw: object, name: str) -> str:
    return text(raw, "metadata", "labels", LABEL + name)


def read_task_status(status: Fields, name: str, run: str, namespace: str) -> Task:
    """The status of a TaskRun, its own or embedded in a PipelineRun of v1beta1."""
    said = condition(status)
    return Task(
        name=name,
        run=run,
        state=state_of(status),
        reason=text(said, "reason"),
        message=text(said, "message"),
        namespace=namespace,
        pod=text(status, "podName"),
        steps=tuple(_steps(items(status, "steps"))) + tuple(_steps(items(status, "sidecars"))),
        results=results_of(status),
        started=moment(status, "startTime"),
        finished=moment(status, "completionTime"),
        failed_tries=len(items(status, "retriesStatus")),
    )


def read_task_run(raw: Fields) -> Run:
    name, namespace = text(raw, "metadata", "name"), text(raw, "metadata", "namespace")
    task = read_task_status(fields(raw, "status"), label(raw, "pipelineTask") or name, name, namespace)
    return _alone(raw, "TaskRun", task, label(raw, "pipelineRun"))


def read_pod(raw: Fields) -> Run:
    status = fields(raw, "status")
    name, namespace = text(raw, "metadata", "name"), text(raw, "metadata", "namespace")
    steps = [
        *_steps(items(status, "initContainerStatuses")),
        *_steps(items(status, "containerStatuses")),
    ]
    reason, message = _pod_reason(status, steps)
    task = Task(
        name=label(raw, "pipelineTask") or label(raw, "taskRun") or name,
        run=label(raw, "taskRun"),
        state=_pod_state(status, steps, reason),
        reason=reason,
        message=message,
        namespace=namespace,
        pod=name,
        steps=tuple(steps),
        started=moment(status, "startTime"),
        finished=max((step.finished for step in steps if step.finished), default=None),
    )
    return _alone(raw, "Pod", task, task.run)


def _alone(raw: Fields, kind: str, task: Task, owner: str) -> Run:
    return Run(
        kind=kind,
        name=text(raw, "metadata", "name"),
        namespace=task.namespace,
        uid=text(raw, "metadata", "uid"),
        owner=owner,
        state=task.state,
        reason=task.reason,
        message=task.message,
        started=task.started,
        finished=task.finished,
        tasks=(task,),
    )


def _steps(raw: Iterable[Fields]) -> list[Step]:
    return [_step(found) for found in raw]


def _step(raw: Fields) -> Step:
    """A step of a TaskRun has its state in itself, a container of a Pod below `state`."""
    state = fields(raw, "state") or raw
    ended, waiting = fields(state, "terminated"), fields(state, "waiting")
    container = text(raw, "container") or text(raw, "name")
    message, inner = _termination(text(ended, "message"))
    said = text(raw, "terminationReason") or inner
    reason = text(ended, "reason") or text(waiting, "reason")
    return Step(
        name=text(raw, "name").removeprefix("step-"),
        container=container,
        exit_code=number(ended, "exitCode"),
        reason=said if said and reason in {"", "Error"} else reason,
        message=message or text(waiting, "message"),
        started=moment(ended, "startedAt"),
        finished=moment(ended, "finishedAt"),
        harmless=said in HARMLESS,
    )


def _termination(message: str) -> tuple[str, str]:
    """What a step wrote, and Tekton's reason for its end; Tekton keeps its results in the same place, as JSON."""
    if not message.startswith("[{"):
        return message, ""
    try:
        entries = items(json.loads(message))
    except (ValueError, RecursionError):
        return "", ""  # a list of results that was cut off
    return "", next((text(entry, "value") for entry in entries if text(entry, "key") == "Reason"), "")


def _pod_reason(status: Fields, steps: list[Step]) -> tuple[str, str]:
    disrupted, scheduled = condition(status, "DisruptionTarget"), condition(status, "PodScheduled")
    stuck = next((step for step in steps if step.exit_code is None and step.reason in REASONS), None)
    if reason := text(status, "reason"):
        return reason, text(status, "message")
    if text(disrupted, "status") == "True":
        return text(disrupted, "reason"), text(disrupted, "message")
    if stuck:
        return stuck.reason, stuck.message
    if text(scheduled, "status") == "False":
        return text(scheduled, "reason"), text(scheduled, "message")
    return "", text(status, "message")


def _pod_state(status: Fields, steps: list[Step], reason: str) -> State:
    state = PHASES.get(text(status, "phase"), State.UNKNOWN)
    stuck = any(step.exit_code is None and step.reason in REASONS for step in steps)
    if state is State.RUNNING and (stuck or any(step.failed and step.is_step for step in steps)):
        return State.FAILED
    if state is State.PASSED and REASONS.get(reason) is TASK_TIMEOUT:
        return State.FAILED
    return state


def completed(task: Task, pod: Task) -> Task:
    """A task with what only its pod knows."""
    steps = task.steps if task.culprit or not pod.steps else pod.steps
    plain = task.reason in {"", "Failed"} and pod.reason in REASONS
    return replace(
        task,
        pod=task.pod or pod.pod,
        steps=steps,
        reason=pod.reason if plain else task.reason,
        message=task.message or pod.message,
        state=pod.state if task.state is State.UNKNOWN or task.deduced else task.state,
    )

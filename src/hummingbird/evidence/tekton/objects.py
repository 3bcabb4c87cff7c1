"""Reads PipelineRuns, TaskRuns and Pods, alone or in any kind of list, and puts together what belongs together (V7).

Total: whatever it is given, it answers. Knows nothing of where the objects come from, nor of how they are shown.
"""

from collections.abc import Iterable
from dataclasses import replace

from hummingbird.evidence.tekton.loose import Fields, fields, items, text
from hummingbird.evidence.tekton.pipelines import deduced, read_pipeline_run
from hummingbird.evidence.tekton.runs import Found, Run, State, Task
from hummingbird.evidence.tekton.tasks import completed, read_pod, read_task_run

READERS = {
    "PipelineRun": read_pipeline_run,
    "TaskRun": read_task_run,
    "CustomRun": read_task_run,
    "Pod": read_pod,
}


def read(raw: object) -> Found:
    """What an object, a list of them in an envelope or a bare list says."""
    envelope = fields(raw)
    kind = text(envelope, "kind")
    typed = kind.removesuffix("List") if kind.endswith("List") else ""
    listed = kind.endswith("List") or ("items" in envelope and not kind)
    objects = items(raw) if isinstance(raw, list) else items(envelope, "items") if listed else [envelope]
    runs = [run for found in objects if (run := _read(found, typed))]
    return Found(recognised=bool(runs) or typed in READERS, runs=together(runs))


def _read(raw: Fields, typed: str) -> Run | None:
    # Items of a typed list leave their kind out when it is one of Kubernetes' own, as Pods are.
    reader = READERS.get(text(raw, "kind") or typed)
    return reader(raw) if reader else None


def together(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Each of them once, with what belongs to it."""
    return joined(_once(runs))


def _once(runs: Iterable[Run]) -> list[Run]:
    """The first of each uid; the caller puts the copy that it trusts first."""
    found: dict[object, Run] = {}
    for place, run in enumerate(runs):
        found.setdefault(run.uid or place, run)
    return list(found.values())


def joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """TaskRuns become tasks of their PipelineRun, Pods fill in the tasks of their TaskRun; the rest stays alone."""
    whole = list(runs)
    pods = {(run.namespace, run.owner): run.tasks[0] for run in whole if run.kind == "Pod" and run.owner}
    rest = [_with_pods(run, pods) for run in whole if run.kind != "Pod"]
    known = {(run.namespace, task.run) for run in rest for task in run.tasks}
    rest += [run for run in whole if run.kind == "Pod" and (run.namespace, run.owner) not in known]
    parts: dict[tuple[str, str], list[Task]] = {}
    parents = {(run.namespace, run.name) for run in rest if run.kind == "PipelineRun"}
    for run in rest:
        if run.kind != "PipelineRun" and (run.namespace, run.owner) in parents:
            parts.setdefault((run.namespace, run.owner), []).append(run.tasks[0])
    return tuple(
        _with_tasks(run, parts.get((run.namespace, run.name), [])) if run.kind == "PipelineRun" else run
        for run in rest
        if run.kind == "PipelineRun" or (run.namespace, run.owner) not in parents
    )


def _with_pods(run: Run, pods: dict[tuple[str, str], Task]) -> Run:
    tasks = tuple(completed(task, pod) if (pod := pods.get((run.namespace, task.run))) else task for task in run.tasks)
    return replace(run, tasks=tasks)


def _with_tasks(run: Run, tasks: list[Task]) -> Run:
    if not tasks:
        return run
    told = {task.run: task for task in tasks}
    before = {task.run: task for task in run.tasks if task.run}
    kept = [
        replace(told[task.run], needs=task.needs, final=task.final)
        if task.run in told
        else replace(task, state=State.UNKNOWN, deduced=False)
        if task.deduced
        else task
        for task in run.tasks
    ]
    added = [task for task in tasks if task.run not in before]
    whole = replace(run, tasks=(*kept, *added))
    return replace(whole, tasks=deduced(whole))

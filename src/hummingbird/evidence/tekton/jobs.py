"""The tasks of a Tekton run as jobs of the cause graph.

Knows what Tekton's states mean for the graph; knows nothing of JSON or of how causes are found.
"""

from dataclasses import replace

from hummingbird.evidence.causes.jobs import Job, Status
from hummingbird.evidence.tekton.pipelines import chosen_skip
from hummingbird.evidence.tekton.reasons import (
    IMAGE,
    IMAGE_MISSING,
    KILLED,
    MEMORY,
    POD,
    QUOTA,
    RUN_TIMEOUT,
    STEP,
    TASK_TIMEOUT,
    Meaning,
    meaning,
)
from hummingbird.evidence.tekton.runs import Run, State, Task

STATUSES = {
    State.PASSED: Status.PASSED,
    State.FAILED: Status.FAILED,
    State.CANCELLED: Status.CANCELLED,
    State.SKIPPED: Status.SKIPPED,
}
NO_SUCH_IMAGE = ("manifest unknown", "not found", "unauthorized", "denied", "does not exist")
KILL_SIGNAL = 137


def jobs_of(run: Run) -> tuple[Job, ...]:
    """One job a task; what runs `finally` waits for all others."""
    return tuple(_job(run, task, place) for place, task in enumerate(run.tasks))


def _job(run: Run, task: Task, place: int) -> Job:
    ignored = task.reason == "FailureIgnored"
    return Job(
        id=task.run or f"{task.name}#{place}",
        name=task.name,
        status=STATUSES.get(task.state, Status.OPEN),
        order=1 if task.final else 0,
        needs=None if task.final else task.needs,
        failure_reason=task.reason,
        allow_failure=ignored,
        started=task.started,
        finished=task.finished,
        failed_tries=task.failed_tries,
        pipeline=run.name,
        chosen=chosen_skip(task),
        stopped=task.dragged,
        blame=explained(run, task).blame if task.state is State.FAILED else None,
    )


def explained(run: Run, task: Task) -> Meaning:
    """What a task's failure means, from the most telling of all the reasons that are given for it."""
    culprit = task.culprit
    found = meaning(task.reason, culprit.reason if culprit else "", *_waiting(task))
    said = f"{task.message} {culprit.message if culprit else ''}"
    if found is TASK_TIMEOUT and run.reason == "PipelineRunTimeout":
        return RUN_TIMEOUT
    if found is IMAGE and any(words in said for words in NO_SUCH_IMAGE):
        return IMAGE_MISSING
    if found is POD and "exceeded quota" in said:
        return QUOTA
    if "OOMKilled" in said:
        return MEMORY
    if found is STEP and culprit and culprit.exit_code == KILL_SIGNAL:
        return KILLED
    return _named(found, task)


def _waiting(task: Task) -> list[str]:
    return [step.reason for step in task.steps if step.exit_code is None and not step.harmless]


def _named(found: Meaning, task: Task) -> Meaning:
    """A step's exit code in the sentence, for people."""
    culprit = task.culprit
    if found is not STEP or not culprit or culprit.exit_code is None:
        return found
    why = f"Step {culprit.name} ended with exit code {culprit.exit_code}; its log says why."
    return replace(found, blame=replace(found.blame, why=why))

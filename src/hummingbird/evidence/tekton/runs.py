"""What Tekton objects say once they are read: runs, their tasks and the steps of those.

The nouns alone. Knows nothing of JSON, of versions of the API or of how runs are shown.
"""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    RUNNING = "running"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Step:
    """A container of a task. `harmless` when it was skipped, or when the task goes on after it whatever happens."""

    name: str
    container: str
    exit_code: int | None = None
    reason: str = ""
    message: str = ""  # what the step itself wrote to explain its end
    started: float | None = None
    finished: float | None = None
    harmless: bool = False

    @property
    def failed(self) -> bool:
        # A step that was killed for its memory has been seen with exit code 0.
        return not self.harmless and (bool(self.exit_code) or self.reason == "OOMKilled")

    @property
    def is_step(self) -> bool:
        return not self.container.startswith("sidecar-")


@dataclass(frozen=True, slots=True)
class Task:
    name: str  # in its pipeline
    run: str = ""  # the name of the TaskRun
    state: State = State.UNKNOWN
    reason: str = ""
    message: str = ""
    namespace: str = ""
    pod: str = ""
    steps: tuple[Step, ...] = ()
    results: tuple[Result, ...] = ()
    started: float | None = None
    finished: float | None = None
    needs: tuple[str, ...] = ()
    final: bool = False  # runs after all others, whatever happened to them
    dragged: bool = False  # skipped or cancelled because of another task
    deduced: bool = False  # the state was not said but follows from the others
    failed_tries: int = 0

    @property
    def culprit(self) -> Step | None:
        """The step that ended the task: the first to fail."""
        failed = [step for step in self.steps if step.failed]
        found = [step for step in failed if step.is_step] or failed
        return min(found, key=lambda step: step.finished or float("inf"), default=None)


@dataclass(frozen=True, slots=True)
class Run:
    """A PipelineRun, or a TaskRun or Pod that stands alone with the one task that it is."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    owner: str = ""  # the run that this one is part of
    state: State = State.UNKNOWN
    reason: str = ""
    message: str = ""
    started: float | None = None
    finished: float | None = None
    tasks: tuple[Task, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    recognised: bool
    runs: tuple[Run, ...] = ()

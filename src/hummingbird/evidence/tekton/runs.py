"""Data types of Tekton runs, tasks and steps, and the table of what Tekton's failure reasons mean."""

from dataclasses import dataclass
from enum import StrEnum

from hummingbird.evidence.regions import Blame, FailureClass, RegionKind


class TektonState(StrEnum):
    """How a run or a task ended."""

    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    RUNNING = "running"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TektonResult:
    """A result that a task or a run reports."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TektonStep:
    """A container of a task. `harmless` if it was skipped, or if the task continues whatever the step does."""

    name: str
    container: str
    exit_code: int | None = None
    reason: str = ""
    message: str = ""  # the step's own termination message
    started: float | None = None
    finished: float | None = None
    harmless: bool = False

    @property
    def failed(self) -> bool:
        # A step that was killed for its memory has been seen with exit code 0.
        return not self.harmless and (bool(self.exit_code) or self.reason == "OOMKilled")

    @property
    def is_own_step(self) -> bool:
        return not self.container.startswith("sidecar-")


@dataclass(frozen=True, slots=True)
class TektonTask:
    """A task of a run, with its steps."""

    name: str  # in its pipeline
    run: str = ""  # the name of the TaskRun
    state: TektonState = TektonState.UNKNOWN
    reason: str = ""
    message: str = ""
    namespace: str = ""
    pod: str = ""
    steps: tuple[TektonStep, ...] = ()
    results: tuple[TektonResult, ...] = ()
    started: float | None = None
    finished: float | None = None
    needs: tuple[str, ...] = ()
    final: bool = False  # runs after all others, whatever happened to them
    forced_skip: bool = False  # skipped or cancelled because of another task
    deduced: bool = False  # the object does not give the state; it follows from the other tasks
    failed_tries: int = 0

    @property
    def culprit(self) -> TektonStep | None:
        """The step that ended the task: the first one that failed, steps before sidecars."""
        failed = [step for step in self.steps if step.failed]
        found = [step for step in failed if step.is_own_step] or failed
        return min(found, key=lambda step: step.finished or float("inf"), default=None)


@dataclass(frozen=True, slots=True)
class TektonRun:
    """A PipelineRun, or a TaskRun or Pod that stands alone, with itself as its only task."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    owner: str = ""  # the run that this one is part of
    state: TektonState = TektonState.UNKNOWN
    reason: str = ""
    message: str = ""
    started: float | None = None
    finished: float | None = None
    tasks: tuple[TektonTask, ...] = ()
    results: tuple[TektonResult, ...] = ()


@dataclass(frozen=True, slots=True)
class TektonObjects:
    """The runs found in some JSON; `recognised` is false if it is not a Tekton object at all."""

    recognised: bool
    runs: tuple[TektonRun, ...] = ()


@dataclass(frozen=True, slots=True)
class FailureMeaning:
    """The kind and the blame that a failure reason stands for."""

    kind: RegionKind
    blame: Blame


def _failure_meaning(kind: RegionKind, class_: FailureClass, rule: str, sure: float, why: str) -> FailureMeaning:
    return FailureMeaning(kind, Blame(class_, f"tekton-{rule}", sure, why))


IMAGE = _failure_meaning(
    RegionKind.DEPENDENCY, FailureClass.INFRASTRUCTURE, "image-pull", 0.75,
    "The image of a step could not be pulled: the registry failed, or the image or the right to it is missing.",
)  # fmt: skip
IMAGE_MISSING = _failure_meaning(
    RegionKind.DEPENDENCY, FailureClass.CONFIGURATION, "image-missing", 0.8,
    "The registry has no such image, or does not give it to this account.",
)  # fmt: skip
IMAGE_NAME = _failure_meaning(
    RegionKind.DEPENDENCY, FailureClass.CONFIGURATION, "image-name", 0.95, "The name of a step's image is not valid."
)
MEMORY = _failure_meaning(
    RegionKind.MEMORY, FailureClass.INFRASTRUCTURE, "out-of-memory", 0.8,
    "A step was killed because it used more memory than its limit; raise the limit or let it use less.",
)  # fmt: skip
KILLED = _failure_meaning(
    RegionKind.MEMORY, FailureClass.INFRASTRUCTURE, "killed", 0.6,
    "A step was killed from outside (exit code 137), most often because memory ran out.",
)  # fmt: skip
TASK_TIMEOUT = _failure_meaning(
    RegionKind.TIMEOUT, FailureClass.UNKNOWN, "task-timeout", 0.5,
    "A task took longer than its timeout, which a slow machine can cause as well as the code.",
)  # fmt: skip
RUN_TIMEOUT = _failure_meaning(
    RegionKind.TIMEOUT, FailureClass.INFRASTRUCTURE, "pipeline-timeout", 0.6,
    "The whole pipeline took longer than its timeout; look at which task was still running.",
)  # fmt: skip
EVICTED = _failure_meaning(
    RegionKind.RUNNER, FailureClass.INFRASTRUCTURE, "pod-evicted", 0.95,
    "The cluster took the pod away while it ran: its node was under pressure, drained or lost.",
)  # fmt: skip
UNSCHEDULABLE = _failure_meaning(
    RegionKind.RUNNER,
    FailureClass.INFRASTRUCTURE,
    "unschedulable",
    0.85,
    "No node of the cluster had room for the pod.",
)
QUOTA = _failure_meaning(
    RegionKind.QUOTA,
    FailureClass.INFRASTRUCTURE,
    "quota",
    0.9,
    "The namespace's quota had no room for the pod of this task.",
)
POD = _failure_meaning(
    RegionKind.RUNNER,
    FailureClass.INFRASTRUCTURE,
    "pod-creation",
    0.7,
    "The cluster could not create the pod of this task.",
)
CONTAINER = _failure_meaning(
    RegionKind.RUNNER, FailureClass.CONFIGURATION, "container-settings", 0.8,
    "A container could not be created as it is described: a secret, a config map or a command is missing.",
)  # fmt: skip
PREPARATION = _failure_meaning(
    RegionKind.RUNNER,
    FailureClass.INFRASTRUCTURE,
    "preparation",
    0.7,
    "One of Tekton's own preparing containers failed.",
)
SIDECAR = _failure_meaning(
    RegionKind.RUNNER, FailureClass.UNKNOWN, "sidecar", 0.4, "A sidecar, not a step, failed; its log says why."
)
DEFINITION = _failure_meaning(
    RegionKind.OTHER, FailureClass.CONFIGURATION, "definition", 0.95,
    "The pipeline or task is not valid as it is written, or its parameters do not fit; no step ran.",
)  # fmt: skip
MISSING = _failure_meaning(
    RegionKind.DEPENDENCY, FailureClass.CONFIGURATION, "definition-missing", 0.8,
    "A task or pipeline that is referred to could not be fetched: it does not exist there, or its source failed.",
)  # fmt: skip
UNTRUSTED = _failure_meaning(
    RegionKind.OTHER,
    FailureClass.CONFIGURATION,
    "verification",
    0.9,
    "A task or pipeline did not pass the check of its signature.",
)
RESULTS = _failure_meaning(
    RegionKind.OTHER,
    FailureClass.CODE,
    "results",
    0.6,
    "A task did not give the results that it promises, or gave too long ones.",
)
CANCELLED = _failure_meaning(
    RegionKind.OTHER,
    FailureClass.UNKNOWN,
    "cancelled",
    0.3,
    "Somebody or something cancelled it; by itself this explains nothing.",
)
CONTROLLER = _failure_meaning(
    RegionKind.RUNNER,
    FailureClass.INFRASTRUCTURE,
    "controller",
    0.8,
    "Tekton itself could not do its work in the cluster.",
)
STEP = _failure_meaning(
    RegionKind.EXIT, FailureClass.UNKNOWN, "step-failed", 0.3, "A step ended with an error; its log says which one."
)
CRASHING = _failure_meaning(
    RegionKind.EXIT, FailureClass.UNKNOWN, "crash-loop", 0.4, "A container ends again and again soon after its start."
)
TEST_OUTPUT = _failure_meaning(
    RegionKind.TEST, FailureClass.TEST, "test-output", 0.8,
    "The task succeeded, but the test output that it reports says that the test did not.",
)  # fmt: skip
RETRIED = _failure_meaning(
    RegionKind.OTHER, FailureClass.FLAKY, "retried", 0.8, "The task failed and then passed when Tekton tried it again."
)
NO_REASON = _failure_meaning(
    RegionKind.OTHER, FailureClass.UNKNOWN, "no-reason", 0.1, "It failed, and the status does not say why."
)

# The reasons of Tekton's TaskRuns and PipelineRuns and of a Pod's container states.
TEKTON_REASONS = {
    **dict.fromkeys(("ImagePullBackOff", "ErrImagePull", "TaskRunImagePullFailed", "ImageInspectError"), IMAGE),
    **dict.fromkeys(("RegistryUnavailable", "ErrImageNeverPull"), IMAGE),
    "InvalidImageName": IMAGE_NAME,
    **dict.fromkeys(("OOMKilled", "StepOOM", "InitContainerOOM", "SidecarOOM"), MEMORY),
    "TaskRunTimeout": TASK_TIMEOUT,
    "TimeoutExceeded": TASK_TIMEOUT,
    "PipelineRunTimeout": RUN_TIMEOUT,
    "DeadlineExceeded": TASK_TIMEOUT,
    **dict.fromkeys(("PodEvicted", "Evicted", "NodeLost", "NodeShutdown", "Terminated", "Preempting"), EVICTED),
    **dict.fromkeys(("NodeAffinity", "UnexpectedAdmissionError", "OutOfcpu", "OutOfmemory", "OutOfpods"), EVICTED),
    **dict.fromkeys(("PreemptionByScheduler", "DeletionByTaintManager", "TerminationByKubelet"), EVICTED),
    **dict.fromkeys(("EvictionByEvictionAPI", "DeletionByPodGC", "ContainerStatusUnknown"), EVICTED),
    **dict.fromkeys(("Unschedulable", "ExceededNodeResources"), UNSCHEDULABLE),
    "ExceededResourceQuota": QUOTA,
    **dict.fromkeys(("PodCreationFailed", "CreateRunFailed", "PodAdmissionFailed"), POD),
    **dict.fromkeys(("CreateContainerConfigError", "CreateContainerError", "RunContainerError"), CONTAINER),
    **dict.fromkeys(("ContainerCannotRun", "StartError"), CONTAINER),
    "InitContainerFailed": PREPARATION,
    "SidecarFailed": SIDECAR,
    "CrashLoopBackOff": CRASHING,
    **dict.fromkeys(("TaskRunValidationFailed", "TaskValidationFailed", "PipelineValidationFailed"), DEFINITION),
    **dict.fromkeys(("PipelineInvalidGraph", "ParameterMissing", "ParameterTypeMismatch"), DEFINITION),
    **dict.fromkeys(("InvalidParamValue", "ObjectParameterMissKeys", "ParamArrayIndexingInvalid"), DEFINITION),
    **dict.fromkeys(("InvalidWorkspaceBindings", "InvalidPipelineResourceBindings"), DEFINITION),
    **dict.fromkeys(("InvalidTaskRunSpecs", "InvalidMatrixParameterTypes", "CELEvaluationFailed"), DEFINITION),
    **dict.fromkeys(("InvalidTaskResultReference", "RequiredWorkspaceMarkedOptional"), DEFINITION),
    **dict.fromkeys(("CouldntGetTask", "CouldntGetPipeline", "TaskRunResolutionFailed"), MISSING),
    "PipelineRunResolutionFailed": MISSING,
    **dict.fromkeys(("ResourceVerificationFailed", "TaskRunResultsVerificationFailed"), UNTRUSTED),
    **dict.fromkeys(("TaskRunResultLargerThanAllowedLimit", "CouldntGetPipelineResult"), RESULTS),
    **dict.fromkeys(("Cancelled", "TaskRunCancelled", "PipelineRunCancelled", "CancelledRunningFinally"), CANCELLED),
    "StoppedRunningFinally": CANCELLED,
    **dict.fromkeys(("PipelineRunCouldntCancel", "PipelineRunCouldntTimeOut", "TaskRunStopSidecarFailed"), CONTROLLER),
    **dict.fromkeys(("Failed", "StepFailed", "Error", "FailureIgnored"), STEP),
}

# Why Tekton skips a task because of another one.
FORCED_SKIP_REASONS = frozenset(
    {
        "PipelineRun was stopping",
        "Parent Tasks were skipped",
        "Results were missing",
        "PipelineRun was gracefully cancelled",
        "PipelineRun was gracefully stopped",
        "PipelineRun timeout has been reached",
        "PipelineRun Tasks timeout has been reached",
        "PipelineRun Finally timeout has been reached",
    }
)
# Why Tekton skips a task because the pipeline's definition says so.
CHOSEN_SKIP_REASONS = frozenset(
    {"When Expressions evaluated to false", "Matrix Parameters have an empty array", "None"}
)


def explain_reasons(*reasons: str) -> FailureMeaning:
    """Return the meaning of the most telling reason, given outermost first: `Failed` only if no other is known."""
    known = [TEKTON_REASONS[reason] for reason in reasons if reason in TEKTON_REASONS]
    return next((found for found in known if found not in {STEP, CANCELLED}), known[0] if known else NO_REASON)

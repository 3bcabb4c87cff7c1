"""Tekton's and Kubernetes' own words for a failure, and what each means for blame (V5, V7).

The words are those of Tekton's TaskRun and PipelineRun reasons and of a Pod's container states. A table, and how to
look something up in it; knows nothing of where a reason stood.
"""

from dataclasses import dataclass

from hummingbird.evidence.regions import Blame, Class, Kind


@dataclass(frozen=True, slots=True)
class Meaning:
    kind: Kind
    blame: Blame


def _meaning(kind: Kind, class_: Class, rule: str, sure: float, why: str) -> Meaning:
    return Meaning(kind, Blame(class_, f"tekton-{rule}", sure, why))


IMAGE = _meaning(
    Kind.DEPENDENCY, Class.INFRASTRUCTURE, "image-pull", 0.75,
    "The image of a step could not be pulled: the registry failed, or the image or the right to it is missing.",
)  # fmt: skip
IMAGE_MISSING = _meaning(
    Kind.DEPENDENCY, Class.CONFIGURATION, "image-missing", 0.8,
    "The registry has no such image, or does not give it to this account.",
)  # fmt: skip
IMAGE_NAME = _meaning(
    Kind.DEPENDENCY, Class.CONFIGURATION, "image-name", 0.95, "The name of a step's image is not valid."
)
MEMORY = _meaning(
    Kind.MEMORY, Class.INFRASTRUCTURE, "out-of-memory", 0.8,
    "A step was killed because it used more memory than its limit; raise the limit or let it use less.",
)  # fmt: skip
KILLED = _meaning(
    Kind.MEMORY, Class.INFRASTRUCTURE, "killed", 0.6,
    "A step was killed from outside (exit code 137), most often because memory ran out.",
)  # fmt: skip
TASK_TIMEOUT = _meaning(
    Kind.TIMEOUT, Class.UNKNOWN, "task-timeout", 0.5,
    "A task took longer than its timeout, which a slow machine can cause as well as the code.",
)  # fmt: skip
RUN_TIMEOUT = _meaning(
    Kind.TIMEOUT, Class.INFRASTRUCTURE, "pipeline-timeout", 0.6,
    "The whole pipeline took longer than its timeout; look at which task was still running.",
)  # fmt: skip
EVICTED = _meaning(
    Kind.RUNNER, Class.INFRASTRUCTURE, "pod-evicted", 0.95,
    "The cluster took the pod away while it ran: its node was under pressure, drained or lost.",
)  # fmt: skip
UNSCHEDULABLE = _meaning(
    Kind.RUNNER, Class.INFRASTRUCTURE, "unschedulable", 0.85, "No node of the cluster had room for the pod."
)
QUOTA = _meaning(
    Kind.QUOTA, Class.INFRASTRUCTURE, "quota", 0.9, "The namespace's quota had no room for the pod of this task."
)
POD = _meaning(
    Kind.RUNNER, Class.INFRASTRUCTURE, "pod-creation", 0.7, "The cluster could not create the pod of this task."
)
CONTAINER = _meaning(
    Kind.RUNNER, Class.CONFIGURATION, "container-settings", 0.8,
    "A container could not be created as it is described: a secret, a config map or a command is missing.",
)  # fmt: skip
PREPARATION = _meaning(
    Kind.RUNNER, Class.INFRASTRUCTURE, "preparation", 0.7, "One of Tekton's own preparing containers failed."
)
SIDECAR = _meaning(Kind.RUNNER, Class.UNKNOWN, "sidecar", 0.4, "A sidecar, not a step, failed; its log says why.")
DEFINITION = _meaning(
    Kind.OTHER, Class.CONFIGURATION, "definition", 0.95,
    "The pipeline or task is not valid as it is written, or its parameters do not fit; no step ran.",
)  # fmt: skip
MISSING = _meaning(
    Kind.DEPENDENCY, Class.CONFIGURATION, "definition-missing", 0.8,
    "A task or pipeline that is referred to could not be fetched: it does not exist there, or its source failed.",
)  # fmt: skip
UNTRUSTED = _meaning(
    Kind.OTHER, Class.CONFIGURATION, "verification", 0.9, "A task or pipeline did not pass the check of its signature."
)
RESULTS = _meaning(
    Kind.OTHER, Class.CODE, "results", 0.6, "A task did not give the results that it promises, or gave too long ones."
)
CANCELLED = _meaning(
    Kind.OTHER, Class.UNKNOWN, "cancelled", 0.3, "Somebody or something cancelled it; by itself this explains nothing."
)
CONTROLLER = _meaning(
    Kind.RUNNER, Class.INFRASTRUCTURE, "controller", 0.8, "Tekton itself could not do its work in the cluster."
)
STEP = _meaning(Kind.EXIT, Class.UNKNOWN, "step-failed", 0.3, "A step ended with an error; its log says which one.")
CRASHING = _meaning(
    Kind.EXIT, Class.UNKNOWN, "crash-loop", 0.4, "A container ends again and again soon after its start."
)
TEST_OUTPUT = _meaning(
    Kind.TEST, Class.TEST, "test-output", 0.8,
    "The task succeeded, but the test output that it reports says that the test did not.",
)  # fmt: skip
RETRIED = _meaning(
    Kind.OTHER, Class.FLAKY, "retried", 0.8, "The task failed and then passed when Tekton tried it again."
)
UNSAID = _meaning(Kind.OTHER, Class.UNKNOWN, "no-reason", 0.1, "It failed, and the status does not say why.")

REASONS = {
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

DRAGGED_ALONG = frozenset(
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
"""Why Tekton skipped a task, when it was because of another one."""
CHOSEN = frozenset({"When Expressions evaluated to false", "Matrix Parameters have an empty array", "None"})
"""Why Tekton skipped a task, when the pipeline wanted it so."""


def meaning(*reasons: str) -> Meaning:
    """Of several reasons, outermost first, the one that explains most: `Failed` only if nothing else does."""
    known = [REASONS[reason] for reason in reasons if reason in REASONS]
    return next((found for found in known if found not in {STEP, CANCELLED}), known[0] if known else UNSAID)

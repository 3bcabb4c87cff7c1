"""The Konflux tools as a model sees them: what each returns, when to use it, and what it costs.

Descriptions name no other tool: what is worth saying about one stands in `mentions` and is shown only while that tool
is enabled (T2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hummingbird.adapters.sources.konflux.objects import NOTE
from hummingbird.adapters.sources.offered import takes
from hummingbird.domain.limits import KONFLUX_LIST_S, KONFLUX_LOGS_S, TOOL_TIMEOUT_S
from hummingbird.domain.tools import ToolSpec

NAME = "konflux"
RUNS, TASKS, PODS = "konflux_list_pipelineruns", "konflux_list_taskruns", "konflux_list_pods"
POD, LOG = "konflux_get_pod", "konflux_get_pod_log"

SHA = {
    "type": "string",
    "pattern": "^[0-9a-f]{7,64}$",
    "description": "The commit, with all its characters: a shortened one finds nothing.",
}
_LABEL_NAME = "^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$"  # names are label values here, which have 63 characters at most
PIPELINERUN = {"type": "string", "pattern": _LABEL_NAME, "description": "metadata.name of a PipelineRun."}
TASKRUN = {"type": "string", "pattern": _LABEL_NAME, "description": "metadata.name of a TaskRun."}
POD_NAME = {
    "type": "string",
    "pattern": "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
    "description": "The pod's name: status.podName of a TaskRun, or metadata.name of a Pod.",
}
CONTAINER = {
    "type": "string",
    "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    "description": "One container, such as step-build; all of them when left out.",
}

NOTES = (
    "About Konflux: it builds and tests commits in Tekton PipelineRuns; each has TaskRuns, each TaskRun one Pod, and "
    "each step of it is the container step-NAME. BUILD runs have the label pipelines.appstudio.openshift.io/type=build "
    "and the commit in pipelinesascode.tekton.dev/sha; TEST runs have type=test, the commit in "
    "pac.test.appstudio.openshift.io/sha and their scenario in test.appstudio.openshift.io/scenario. GitLab shows them "
    'as "Konflux / NAME" and "Konflux / SCENARIO / COMPONENT"; there an optional scenario that failed appears as '
    "skipped, and tests whose build failed as canceled. A re-run is another PipelineRun of the same commit: judge by "
    "the newest metadata.creationTimestamp. The label …/state may be stale: trust status.conditions, type Succeeded, "
    "which may lack reason and message. A PipelineRun does not say which step failed: that stands in its TaskRuns, "
    "status.steps, where the first step with an exitCode other than 0 counts and the later ones were skipped. "
    "status.podName is empty when a TaskRun failed before it had a pod; then its condition is all there is. A test "
    "that succeeded for Tekton may report a failure in its result TEST_OUTPUT, and Konflux goes by that; "
    f"`{NOTE}` points it out. A line with `incomplete` ends a list of which something is missing: what stands above it "
    "is true but not all."
)
_LINKS = (
    " Link a PipelineRun as {ui}/pipelinerun/NAME, or as its annotation pipelinesascode.tekton.dev/log-url says, if it "
    "has one."
)


@dataclass(frozen=True, slots=True)
class Told:
    """A tool before it belongs to a tenant."""

    description: str
    required: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)
    mentions: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TOOL_TIMEOUT_S


TOLD: Mapping[str, Told] = {
    RUNS: Told(
        "The PipelineRuns of a commit, builds and tests, one JSON object a line, from the cluster and the archive. Use "
        "it first when a status of Konflux failed: it says which runs there were, how each ended and which tasks were "
        "not run. Each is 10 to 200 KB, so read the file with jq. One or more requests to each server.",
        required={"sha": SHA},
        mentions={TASKS: f"Which step failed is not in here: {TASKS} has it."},
        timeout_s=KONFLUX_LIST_S,
    ),
    TASKS: Told(
        "The TaskRuns of a PipelineRun, or of all runs of a commit, one JSON object a line: how each task ended, its "
        "steps with their exit codes, its results, its pod. Give exactly one of `pipelinerun` and `sha`; a run is much "
        "less to read than a commit, each TaskRun is 5 to 50 KB. One or more requests to each server.",
        optional={"pipelinerun": PIPELINERUN, "sha": SHA},
        mentions={LOG: f"With status.podName of the one that failed, {LOG} gives its log."},
        timeout_s=KONFLUX_LIST_S,
    ),
    PODS: Told(
        "The Pods of a TaskRun, of a PipelineRun or of all runs of a commit, one JSON object a line: phase, containers "
        "and how each ended (exit code, OOMKilled, Evicted), the node. Give exactly one of `taskrun`, `pipelinerun` "
        "and `sha`. Use it for trouble of the platform: evictions, images that cannot be pulled, memory. Each is about "
        "10 KB. One or more requests to each server.",
        optional={"taskrun": TASKRUN, "pipelinerun": PIPELINERUN, "sha": SHA},
        timeout_s=KONFLUX_LIST_S,
    ),
    POD: Told(
        "One Pod as JSON, from the cluster or else from the archive: its containers, how each ended and why, its "
        "conditions. About 10 KB. One or two requests.",
        required={"pod": POD_NAME},
    ),
    LOG: Told(
        "The log of a pod. Without `container` the logs of all its containers one after another, init containers "
        "first, each below a line `=== NAME ===`; a log that is missing is said there. Name the container of the step "
        "that failed (step-NAME) if you know it: the log of all may be long. One or two requests a container.",
        required={"pod": POD_NAME},
        optional={"container": CONTAINER},
        mentions={TASKS: f"{TASKS} says which pod and which step it was."},
        timeout_s=KONFLUX_LOGS_S,
    ),
}


def specs(ui: str) -> list[ToolSpec]:
    """`ui` is where people see the tenant; empty if nobody knows."""
    notes = NOTES + (_LINKS.format(ui=ui) if ui else "")
    return [_spec(name, told, notes, {"konflux_ui": ui} if ui else {}) for name, told in TOLD.items()]


def _spec(name: str, told: Told, notes: str, metadata: Mapping[str, str]) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=told.description,
        schema=takes(told.required, told.optional),
        toolset=NAME,
        timeout_s=told.timeout_s,
        notes=notes,
        mentions=told.mentions,
        source=NAME,
        metadata=metadata,
    )

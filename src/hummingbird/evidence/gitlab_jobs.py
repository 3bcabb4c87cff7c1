"""Convert GitLab's jobs and bridges, as its API lists them, into jobs of the cause graph.

GitLab's `failure_reason` cannot be forged by a job. But a job can cause some of the reasons: by taking too long, by
stopping its runner, by starting too many pipelines. Those do not prove that the infrastructure failed.
A missing field becomes an empty value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from hummingbird.evidence.cause_graph import GraphJob, GraphJobStatus
from hummingbird.evidence.loose_json import JsonObject, object_at, objects_at, text_at, timestamp_at
from hummingbird.evidence.regions import Blame, FailureClass

GITLAB_STATUSES = {
    "success": GraphJobStatus.PASSED,
    "failed": GraphJobStatus.FAILED,
    "canceled": GraphJobStatus.CANCELLED,
    "canceling": GraphJobStatus.CANCELLED,
    "skipped": GraphJobStatus.SKIPPED,
}


def _reasons(class_: FailureClass, sure: float, why: str, *names: str) -> dict[str, Blame]:
    return {name: Blame(class_, f"gitlab-{name.replace('_', '-')}", sure, why) for name in names}


FAILURE_REASONS = {
    **_reasons(FailureClass.UNKNOWN, 0.2, "A command of the job failed; its log says which one.", "script_failure"),
    **_reasons(
        FailureClass.INFRASTRUCTURE, 0.95, "The runner itself failed, not the job's commands.",
        "runner_system_failure", "runner_provisioning_timeout", "runner_interrupted",
    ),
    **_reasons(
        FailureClass.INFRASTRUCTURE, 0.9, "GitLab could not schedule or keep the job.",
        "api_failure", "scheduler_failure", "data_integrity_failure",
    ),
    **_reasons(
        FailureClass.INFRASTRUCTURE, 0.9,
        "The runner could not reach something that it needs, such as a registry of images.",
        "runner_external_dependency_failure",
    ),
    **_reasons(
        FailureClass.INFRASTRUCTURE, 0.8, "No runner took the job, or the one that did went silent.",
        "stuck_or_timeout_failure", "no_matching_runner", "stuck_pending_no_matching_runners",
        "stuck_pending_with_matching_runners", "runner_unreachable",
    ),
    **_reasons(
        FailureClass.UNKNOWN, 0.5,
        "The job took longer than its timeout, which a slow machine can cause as well as the code.",
        "job_execution_timeout", "job_execution_server_timeout", "server_timeout_running", "server_timeout_canceling",
    ),
    **_reasons(
        FailureClass.UNKNOWN, 0.5,
        "GitLab heard nothing of the job while it ran, which its commands can cause as well.",
        "no_updates_running", "no_updates_canceling",
    ),
    **_reasons(
        FailureClass.INFRASTRUCTURE, 0.9, "Something that is allotted to the project or the instance is used up.",
        "ci_quota_exceeded",
    ),
    **_reasons(
        FailureClass.INFRASTRUCTURE, 0.8, "Too many pipelines were started within a minute.",
        "reached_downstream_pipeline_trigger_rate_limit",
    ),
    **_reasons(
        FailureClass.CONFIGURATION, 0.7, "The job printed more than GitLab keeps of a log.", "trace_size_exceeded"
    ),
    **_reasons(
        FailureClass.CONFIGURATION, 0.8, "The artifacts that the job needs are gone or were never made.",
        "missing_dependency_failure",
    ),
    **_reasons(
        FailureClass.CONFIGURATION, 0.9,
        "The pipeline's definition asks for something that is not there or not allowed.",
        "runner_configuration_error",
        "runner_unsupported", "unmet_prerequisites", "invalid_bridge_trigger", "downstream_bridge_project_not_found",
        "upstream_bridge_project_not_found", "insufficient_bridge_permissions", "insufficient_upstream_permissions",
        "bridge_pipeline_is_child_pipeline", "downstream_pipeline_creation_failed", "secrets_provider_not_found",
        "reached_max_descendant_pipelines_depth", "reached_max_pipeline_hierarchy_size", "pipeline_loop_detected",
        "environment_creation_failure", "protected_environment_failure", "ip_restriction_failure", "builds_disabled",
        "duo_workflow_not_allowed",
    ),
    **_reasons(
        FailureClass.CONFIGURATION, 0.8, "Somebody or some rule of the project stopped the job; nothing of it ran.",
        "stale_schedule", "archived_failure", "forward_deployment_failure", "failed_outdated_deployment_job",
        "deployment_rejected", "user_blocked", "project_deleted", "job_token_expired",
    ),
}  # fmt: skip
UNKNOWN_REASON = Blame(FailureClass.UNKNOWN, "gitlab-unknown-failure", 0.0, "GitLab does not say why the job failed.")


def blame_from_failure_reason(failure_reason: str) -> Blame:
    """Return what GitLab's `failure_reason` says about whose fault it is."""
    return FAILURE_REASONS.get(failure_reason, UNKNOWN_REASON)


def graph_jobs_from_gitlab(
    raw: object, stages: Sequence[str] = (), needs: Mapping[str, Iterable[str]] | None = None, pipeline: str = ""
) -> tuple[GraphJob, ...]:
    """Convert the jobs and bridges of one pipeline, given in any order.

    The API lists neither the order of the stages nor the needs of a job. Without `stages` the stage whose jobs have the
    lowest ids comes first, because GitLab creates jobs in the order of stages.
    """
    listed = objects_at(raw)
    order = {name: place for place, name in enumerate(stages)} or _stage_order(listed)
    return tuple(_graph_job(found, order, needs or {}, pipeline) for found in listed)


_AFTER_ALL_STAGES = 1 << 62  # the place of a status that another system reported, and of a job without a number


def _stage_order(listed: Iterable[JsonObject]) -> dict[str, int]:
    lowest: dict[str, int] = {}
    for found in listed:
        stage, number = text_at(found, "stage"), _job_number(found)
        lowest[stage] = min(lowest.get(stage, number), number) if stage else _AFTER_ALL_STAGES
    return {stage: place for place, stage in enumerate(sorted(lowest, key=lambda stage: lowest[stage]))}


def _job_number(found: JsonObject) -> int:
    number = text_at(found, "id")
    return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else _AFTER_ALL_STAGES


def _graph_job(
    found: JsonObject, order: Mapping[str, int], needs: Mapping[str, Iterable[str]], pipeline: str
) -> GraphJob:
    name, reason = text_at(found, "name"), text_at(found, "failure_reason")
    status = GITLAB_STATUSES.get(text_at(found, "status"), GraphJobStatus.OPEN)
    return GraphJob(
        id=text_at(found, "id"),
        name=name,
        status=status,
        order=order.get(text_at(found, "stage"), len(order)),
        needs=tuple(needs[name]) if name in needs else None,
        failure_reason=reason,
        allow_failure=found.get("allow_failure") is True,
        started=timestamp_at(found, "started_at"),
        finished=timestamp_at(found, "finished_at"),
        retried=found.get("retried") is True,
        pipeline=pipeline or text_at(found, "pipeline", "id"),
        downstream_pipeline=text_at(object_at(found, "downstream_pipeline"), "id"),
        blame=blame_from_failure_reason(reason) if status is GraphJobStatus.FAILED else None,
    )


_MARKER = b"section_start:"
_STAGE = re.compile(rb"[0-9]{1,20}:([a-z_]{1,64})(?=[\r\n\x1b\[])")
_STAGE_BYTES = 128  # enough bytes after a marker to read the stage
_FIRST_STAGE_WITHIN_BYTES = 64 * 1024  # a runner marks its first stage within its first lines
# All stages in which a runner runs commands of its own. The steps of a job have other names (`step_script`).
RUNNER_STAGES = frozenset((
    b"resolve_secrets", b"prepare_executor", b"prepare_script", b"get_sources", b"clear_worktree", b"restore_cache",
    b"download_artifacts", b"archive_cache", b"archive_cache_on_failure", b"upload_artifacts_on_success",
    b"upload_artifacts_on_failure", b"cleanup_file_variables",
))  # fmt: skip


class RunnerTrace:
    """Tell whether a GitLab job log was written by the runner alone. Feed it the whole log, then ask.

    The runner marks the beginning of each stage with `section_start:TIME:STAGE`. A script can print the same markers,
    and the lines with which a runner ends a log, so nothing after the first stage of the script proves anything. But a
    script cannot write before it begins: a log without a script stage was written by the runner alone.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._read = 0
        self._stages = 0
        self._script_began = False

    def feed(self, chunk: bytes) -> None:
        """Scan the chunk, unless the script has begun or the log does not look like a runner's."""
        if self._script_began:
            return
        self._read += len(chunk)
        self._scan_markers(self._rest + chunk, ended=False)
        if not self._stages and self._read > _FIRST_STAGE_WITHIN_BYTES:
            self._script_began = True

    @property
    def only_runner_wrote(self) -> bool:
        """Whether the log proves that the script never began. False for every log that no runner wrote."""
        if not self._script_began:
            self._scan_markers(self._rest, ended=True)
        return not self._script_began and self._stages > 0

    def _scan_markers(self, text: bytes, *, ended: bool) -> None:
        at = text.find(_MARKER)
        while at >= 0 and not self._script_began:
            behind = text[at + len(_MARKER) : at + len(_MARKER) + _STAGE_BYTES]
            if len(behind) < _STAGE_BYTES and not ended:
                break
            stage = _STAGE.match(behind + b"\n" if ended else behind)
            # A stage that cannot be read may be the script's: GitLab may have masked a secret in its name.
            self._script_began = stage is None or stage[1] not in RUNNER_STAGES
            self._stages += 1
            at = text.find(_MARKER, at + len(_MARKER))
        self._rest = b"" if ended else text[at if at >= 0 else max(0, len(text) - len(_MARKER) + 1) :]

"""GitLab's jobs and bridges, as its API lists them, made into jobs of the cause graph, with what its words mean (V5).

GitLab says why a job failed in a word of its own, which no job can forge. But a job can bring some of these ends about:
by taking too long, by stopping its runner, by starting too many pipelines. Those are no sure sign of a machine's fault.
Knows nothing of HTTP; a field that is missing stays empty.
"""

from collections.abc import Iterable, Mapping, Sequence

from hummingbird.evidence.causes.jobs import Job, Status
from hummingbird.evidence.regions import Blame, Class
from hummingbird.evidence.tekton.loose import Fields, fields, items, moment, text

STATUSES = {
    "success": Status.PASSED,
    "failed": Status.FAILED,
    "canceled": Status.CANCELLED,
    "canceling": Status.CANCELLED,
    "skipped": Status.SKIPPED,
}


def _rule(class_: Class, sure: float, why: str, *names: str) -> dict[str, Blame]:
    return {name: Blame(class_, f"gitlab-{name.replace('_', '-')}", sure, why) for name in names}


REASONS = {
    **_rule(Class.UNKNOWN, 0.2, "A command of the job failed; its log says which one.", "script_failure"),
    **_rule(
        Class.INFRASTRUCTURE, 0.95, "The runner itself failed, not the job's commands.",
        "runner_system_failure", "runner_provisioning_timeout", "runner_interrupted",
    ),
    **_rule(
        Class.INFRASTRUCTURE, 0.9, "GitLab could not schedule or keep the job.",
        "api_failure", "scheduler_failure", "data_integrity_failure",
    ),
    **_rule(
        Class.INFRASTRUCTURE, 0.9, "The runner could not reach something that it needs, such as a registry of images.",
        "runner_external_dependency_failure",
    ),
    **_rule(
        Class.INFRASTRUCTURE, 0.8, "No runner took the job, or the one that did went silent.",
        "stuck_or_timeout_failure", "no_matching_runner", "stuck_pending_no_matching_runners",
        "stuck_pending_with_matching_runners", "runner_unreachable",
    ),
    **_rule(
        Class.UNKNOWN, 0.5, "The job took longer than its timeout, which a slow machine can cause as well as the code.",
        "job_execution_timeout", "job_execution_server_timeout", "server_timeout_running", "server_timeout_canceling",
    ),
    **_rule(
        Class.UNKNOWN, 0.5, "GitLab heard nothing of the job while it ran, which its commands can cause as well.",
        "no_updates_running", "no_updates_canceling",
    ),
    **_rule(
        Class.INFRASTRUCTURE, 0.9, "Something that is allotted to the project or the instance is used up.",
        "ci_quota_exceeded",
    ),
    **_rule(
        Class.INFRASTRUCTURE, 0.8, "Too many pipelines were started within a minute.",
        "reached_downstream_pipeline_trigger_rate_limit",
    ),
    **_rule(Class.CONFIGURATION, 0.7, "The job printed more than GitLab keeps of a log.", "trace_size_exceeded"),
    **_rule(
        Class.CONFIGURATION, 0.8, "The artifacts that the job needs are gone or were never made.",
        "missing_dependency_failure",
    ),
    **_rule(
        Class.CONFIGURATION, 0.9, "The pipeline's definition asks for something that is not there or not allowed.",
        "runner_configuration_error",
        "runner_unsupported", "unmet_prerequisites", "invalid_bridge_trigger", "downstream_bridge_project_not_found",
        "upstream_bridge_project_not_found", "insufficient_bridge_permissions", "insufficient_upstream_permissions",
        "bridge_pipeline_is_child_pipeline", "downstream_pipeline_creation_failed", "secrets_provider_not_found",
        "reached_max_descendant_pipelines_depth", "reached_max_pipeline_hierarchy_size", "pipeline_loop_detected",
        "environment_creation_failure", "protected_environment_failure", "ip_restriction_failure", "builds_disabled",
        "duo_workflow_not_allowed",
    ),
    **_rule(
        Class.CONFIGURATION, 0.8, "Somebody or some rule of the project stopped the job; nothing of it ran.",
        "stale_schedule", "archived_failure", "forward_deployment_failure", "failed_outdated_deployment_job",
        "deployment_rejected", "user_blocked", "project_deleted", "job_token_expired",
    ),
}  # fmt: skip
UNKNOWN = Blame(Class.UNKNOWN, "gitlab-unknown-failure", 0.0, "GitLab does not say why the job failed.")


def blamed(failure_reason: str) -> Blame:
    return REASONS.get(failure_reason, UNKNOWN)


def jobs_of(
    raw: object, stages: Sequence[str] = (), needs: Mapping[str, Iterable[str]] | None = None, pipeline: str = ""
) -> tuple[Job, ...]:
    """Jobs and bridges of one pipeline, in any order. The list has neither the order of stages nor the needs of a job:
    without `stages` the stage whose jobs have the lowest ids comes first, for GitLab creates them in that order."""
    listed = items(raw)
    order = {name: place for place, name in enumerate(stages)} or _order(listed)
    return tuple(_job(found, order, needs or {}, pipeline) for found in listed)


def _order(listed: Iterable[Fields]) -> dict[str, int]:
    lowest: dict[str, int] = {}
    for found in listed:
        stage, number = text(found, "stage"), _number(found)
        lowest[stage] = min(lowest.get(stage, number), number)
    return {stage: place for place, stage in enumerate(sorted(lowest, key=lambda stage: lowest[stage]))}


def _number(found: Fields) -> int:
    number = text(found, "id")
    return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 1 << 62


def _job(found: Fields, order: Mapping[str, int], needs: Mapping[str, Iterable[str]], pipeline: str) -> Job:
    name, reason = text(found, "name"), text(found, "failure_reason")
    status = STATUSES.get(text(found, "status"), Status.OPEN)
    return Job(
        id=text(found, "id"),
        name=name,
        status=status,
        order=order.get(text(found, "stage"), len(order)),
        needs=tuple(needs[name]) if name in needs else None,
        failure_reason=reason,
        allow_failure=found.get("allow_failure") is True,
        started=moment(found, "started_at"),
        finished=moment(found, "finished_at"),
        retried=found.get("retried") is True,
        pipeline=pipeline or text(found, "pipeline", "id"),
        runs=text(fields(found, "downstream_pipeline"), "id"),
        blame=blamed(reason) if status is Status.FAILED else None,
    )

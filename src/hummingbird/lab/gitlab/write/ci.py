"""Change pipelines, jobs and external statuses, and the routes that do so.

Each change is announced. The routes have checked the caller's rights.
"""

from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, entities, error_responses
from hummingbird.lab.gitlab.records import CiJob, CommitStatus, LabProject, Pipeline, Raw, User, WorldChange
from hummingbird.lab.gitlab.routing import json_response, write_route
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.parameters import (
    float_parameter,
    optional_text,
    parse_int,
    read_parameters,
    text_parameter,
)

STATUS_EVENTS = {
    "pending": "enqueue",
    "running": "run",
    "success": "success",
    "failed": "drop",
    "canceled": "cancel",
    "skipped": "skip",
}
UNFINISHED = ("created", "pending", "running", "preparing", "waiting_for_resource", "scheduled")


@dataclass(slots=True, kw_only=True)
class StatusReport:
    """An external status as it was posted."""

    sha: str
    state: str
    name: str = "default"
    ref: str | None = None
    target_url: str | None = None
    description: str | None = None
    coverage: float | None = None
    pipeline_id: int | None = None


def finish_pipeline(world: GitLabWorld, run: Pipeline, status: str) -> None:
    """Finish a pipeline; jobs that still run end with the same status."""
    for job in world.jobs:
        if job.pipeline_id == run.id and job.status in UNFINISHED:
            job.started_at = job.started_at or world.next_timestamp()
            job.status, job.finished_at = status, world.next_timestamp()
            job.failure_reason = "script_failure" if status == "failed" else None
            announce_job(world, run, job)
    set_pipeline_status(world, run, status)


def retry_job(world: GitLabWorld, job: CiJob, actor: User) -> CiJob:
    """Add a new job in place of this one; the pipeline runs again and keeps its user."""
    run = world.find_pipeline(job.pipeline_id)
    assert run is not None
    job.retried = True
    again = replace(
        job,
        id=world.next_id(),
        status="pending",
        user_id=actor.id,
        created_at=world.next_timestamp(),
        started_at=None,
        finished_at=None,
        failure_reason=None,
        retried=False,
        log=None,
        runner=None,
    )
    world.jobs.append(again)
    announce_job(world, run, again)
    set_pipeline_status(world, run, "running")
    return again


def retry_pipeline(world: GitLabWorld, run: Pipeline, actor: User) -> list[CiJob]:
    """Retry all jobs that failed or were cancelled."""
    ended = ("failed", "canceled")
    return [
        retry_job(world, job, actor)
        for job in list(world.jobs)
        if job.pipeline_id == run.id and job.status in ended and not job.retried and not job.bridge
    ]


def store_status(world: GitLabWorld, project: LabProject, author: User, given: StatusReport) -> CommitStatus:
    """Store an external status. Raises GitLabErrorResponse if it cannot follow the previous one."""
    run = pipeline_for(world, project, author, given)
    latest = next((each for each in reversed(world.statuses) if is_same_status(each, run, given)), None)
    if latest is None or latest.status not in UNFINISHED:
        if latest is not None:
            latest.retried = True
        latest = CommitStatus(
            world.next_id(), given.sha, given.name, "created", run.id, author.id, world.next_timestamp()
        )
        world.statuses.append(latest)
    move_status(world, latest, given)
    set_pipeline_status(world, run, pipeline_status(world, run))
    return latest


def is_same_status(found: CommitStatus, run: Pipeline, given: StatusReport) -> bool:
    return found.pipeline_id == run.id and found.name == given.name and not found.retried


def move_status(world: GitLabWorld, found: CommitStatus, given: StatusReport) -> None:
    event = STATUS_EVENTS[given.state]
    if found.status == given.state or (given.state == "pending" and found.status == "running"):
        why = f'(Reason(s): Status cannot transition via "{event}")'
        raise error_responses.message_error(400, f"Cannot transition status via :{event} from :{found.status} {why}")
    found.status = given.state
    found.target_url, found.description = given.target_url, given.description
    found.coverage = given.coverage
    if given.state != "pending":
        found.started_at = found.started_at or world.next_timestamp()
    found.finished_at = None if given.state in UNFINISHED else world.next_timestamp()


def pipeline_for(world: GitLabWorld, project: LabProject, author: User, given: StatusReport) -> Pipeline:
    """Return the named pipeline, or the newest of the commit; create one with source `external` if there is none.

    Raises GitLabErrorResponse: 404 for a named pipeline that does not exist.
    """
    fitting = [each for each in world.pipelines_of(project) if each.sha == given.sha]
    if given.pipeline_id is not None:
        named = next((each for each in fitting if each.id == given.pipeline_id), None)
        if named is None:
            raise error_responses.not_found("Pipeline for pipeline_id, sha and ref")
        return named
    found = next((each for each in fitting if given.ref in (None, each.ref, source_branch_of(world, each))), None)
    return found or create_external_pipeline(world, project, author, given)


def source_branch_of(world: GitLabWorld, run: Pipeline) -> str | None:
    return next((each.source_branch for each in world.merge_requests if each.id == run.merge_request_id), None)


def create_external_pipeline(world: GitLabWorld, project: LabProject, author: User, given: StatusReport) -> Pipeline:
    now = world.next_timestamp()
    made = Pipeline(
        id=world.next_id(),
        iid=max((each.iid for each in world.pipelines_of(project)), default=0) + 1,
        project_id=project.id,
        sha=given.sha,
        ref=given.ref or next((m.source_branch for m in world.merge_requests if m.sha == given.sha), "main"),
        source="external",
        status="created",
        user_id=author.id,
        created_at=now,
        updated_at=now,
    )
    world.pipelines.append(made)
    return made


def pipeline_status(world: GitLabWorld, run: Pipeline) -> str:
    """Compute the status from the pipeline's jobs and statuses."""
    rows: list[CiJob | CommitStatus] = [j for j in world.jobs if j.pipeline_id == run.id and not j.retried]
    rows += [s for s in world.statuses if s.pipeline_id == run.id and not s.retried]
    states = {row.status for row in rows if not (row.allow_failure and row.status in ("failed", "canceled"))}
    if states & set(UNFINISHED):
        return "pending" if states <= {"created", "pending"} else "running"
    return next((state for state in ("failed", "canceled", "success", "skipped") if state in states), "success")


def set_pipeline_status(world: GitLabWorld, run: Pipeline, status: str) -> None:
    """Set the status and announce the transition, also one back from a final status."""
    if run.status == status:
        return
    run.status, run.updated_at = status, world.next_timestamp()
    if status == "running":
        run.started_at = run.started_at or run.updated_at
    run.finished_at = None if status in UNFINISHED else run.updated_at
    actor = world.user(run.user_id)
    world.announce(WorldChange("pipeline", status, run, actor, world.project_by_id(run.project_id)))


def announce_job(world: GitLabWorld, run: Pipeline, job: CiJob) -> None:
    world.announce(WorldChange("job", job.status, job, world.user(job.user_id), world.project_by_id(run.project_id)))


STATUS_TEXT_CHARS = 255


def ci_routes(world: GitLabWorld) -> list[Route]:
    return [
        write_route(world, "POST", "/projects/{id}/statuses/{sha}", post_status),
        write_route(world, "POST", "/projects/{id}/jobs/{jid}/retry", post_job_retry),
        write_route(world, "POST", "/projects/{id}/pipelines/{pid}/retry", post_pipeline_retry),
    ]


def require_developer(world: GitLabWorld, request: Request) -> tuple[User, LabProject]:
    """Raise GitLabErrorResponse (403) unless the caller is a developer or above."""
    user, caller = access.require_user(world, request)
    project = access.find_project(world, request, caller)
    if not access.has_access_level(world, caller, project, access.DEVELOPER):
        raise error_responses.forbidden()
    return user, project


async def post_status(world: GitLabWorld, request: Request) -> Response:
    given = await read_parameters(request)
    user, project = require_developer(world, request)
    found = store_status(world, project, user, parse_status_report(world, request, given))
    run = world.find_pipeline(found.pipeline_id)
    assert run is not None
    return json_response(entities.status(world, found, run), status=201)


def parse_status_report(world: GitLabWorld, request: Request, given: Raw) -> StatusReport:
    """Read the parameters. Raises GitLabErrorResponse: 400 for invalid ones, 404 for an unknown commit."""
    state, sha = text_parameter(given, "state"), access.path_segment(request, "sha")
    if state not in STATUS_EVENTS:
        raise error_responses.parameter_invalid("state", "does not have a valid value")
    heads = {each.sha for each in world.merge_requests}
    if sha not in world.commits and sha not in heads and all(each.sha != sha for each in world.pipelines):
        raise error_responses.not_found("Commit")
    limited = {name: optional_text(given, name) for name in ("target_url", "description")}
    too_long = [name for name, value in limited.items() if value and len(value) > STATUS_TEXT_CHARS]
    if too_long:
        words = f"is too long (maximum is {STATUS_TEXT_CHARS} characters)"
        raise error_responses.invalid_record({name: [words] for name in too_long})
    return StatusReport(
        sha=sha,
        state=state,
        name=optional_text(given, "name") or optional_text(given, "context") or "default",
        ref=optional_text(given, "ref"),
        pipeline_id=parse_int(given.get("pipeline_id"), "pipeline_id"),
        coverage=float_parameter(given, "coverage"),
        **limited,
    )


async def post_job_retry(world: GitLabWorld, request: Request) -> Response:
    user, project = require_developer(world, request)
    job, run = access.find_job(world, request, project)
    if job.retried or job.status not in ("failed", "canceled", "success"):
        raise error_responses.forbidden("Job is not retryable")
    return json_response(entities.job(world, retry_job(world, job, user), run), status=201)


async def post_pipeline_retry(world: GitLabWorld, request: Request) -> Response:
    user, project = require_developer(world, request)
    run = access.find_pipeline(world, request, project)
    retry_pipeline(world, run, user)
    return json_response(entities.pipeline(world, run), status=201)

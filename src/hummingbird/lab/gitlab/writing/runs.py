"""The endpoints that write statuses and retry jobs and pipelines (facts 2.5)."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes_ci
from hummingbird.lab.gitlab.records import Project, Raw, User
from hummingbird.lab.gitlab.routing import shown, written
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.gitlab.writing import run_changes as changes
from hummingbird.lab.gitlab.writing.parameters import decimal, parameters, text, text_or_none, whole
from hummingbird.lab.gitlab.writing.run_changes import EVENTS, Report

STATUS_TEXT_CHARS = 255


def routes(world: World) -> list[Route]:
    return [
        written(world, "POST", "/projects/{id}/statuses/{sha}", post_status),
        written(world, "POST", "/projects/{id}/jobs/{jid}/retry", retry_job),
        written(world, "POST", "/projects/{id}/pipelines/{pid}/retry", retry_pipeline),
    ]


def developer(world: World, request: Request) -> tuple[User, Project]:
    """Raises Refused: 403 for anybody below."""
    user, caller = access.signed_in(world, request)
    project = access.project(world, request, caller)
    if not access.at_least(world, caller, project, access.DEVELOPER):
        raise refusals.forbidden()
    return user, project


async def post_status(world: World, request: Request) -> Response:
    given = await parameters(request)
    user, project = developer(world, request)
    found = changes.report(world, project, user, reported(world, request, given))
    run = world.pipeline(found.pipeline_id)
    assert run is not None
    return shown(shapes_ci.status(world, found, run), status=201)


def reported(world: World, request: Request, given: Raw) -> Report:
    """Raises Refused: 400 for parameters, 404 for a commit that is not there."""
    state, sha = text(given, "state"), access.segment(request, "sha")
    if state not in EVENTS:
        raise refusals.invalid("state", "does not have a valid value")
    heads = {each.sha for each in world.merge_requests}
    if sha not in world.commits and sha not in heads and all(each.sha != sha for each in world.pipelines):
        raise refusals.not_found("Commit")
    limited = {name: text_or_none(given, name) for name in ("target_url", "description")}
    too_long = [name for name, value in limited.items() if value and len(value) > STATUS_TEXT_CHARS]
    if too_long:
        words = f"is too long (maximum is {STATUS_TEXT_CHARS} characters)"
        raise refusals.invalid_record({name: [words] for name in too_long})
    return Report(
        sha=sha,
        state=state,
        name=text_or_none(given, "name") or text_or_none(given, "context") or "default",
        ref=text_or_none(given, "ref"),
        pipeline_id=whole(given.get("pipeline_id"), "pipeline_id"),
        coverage=decimal(given, "coverage"),
        **limited,
    )


async def retry_job(world: World, request: Request) -> Response:
    user, project = developer(world, request)
    job, run = access.job(world, request, project)
    if job.retried or job.status not in ("failed", "canceled", "success"):
        raise refusals.forbidden("Job is not retryable")
    return shown(shapes_ci.job(world, changes.retry_job(world, job, user), run), status=201)


async def retry_pipeline(world: World, request: Request) -> Response:
    user, project = developer(world, request)
    run = access.pipeline(world, request, project)
    changes.retry_pipeline(world, run, user)
    return shown(shapes_ci.pipeline(world, run), status=201)

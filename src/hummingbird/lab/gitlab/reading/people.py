"""GET: the caller, the server's version, users, projects and their members."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes, shapes_ci
from hummingbird.lab.gitlab.paging import paged
from hummingbird.lab.gitlab.routing import get, many, shown
from hummingbird.lab.gitlab.store import World

VERSION = {"version": "18.0.0", "revision": "8abe394ab5c"}


def routes(world: World) -> list[Route]:
    return [
        get(world, "/user", me),
        get(world, "/version", version),
        get(world, "/metadata", version),
        get(world, "/job", my_job),
        get(world, "/users/{uid}", user),
        get(world, "/projects/{id}", project),
        get(world, "/projects/{id}/members", members),
        get(world, "/projects/{id}/members/all", all_members),
        get(world, "/projects/{id}/members/{uid}", member),
        get(world, "/projects/{id}/members/all/{uid}", any_member),
    ]


def me(world: World, request: Request) -> Response:
    user, _caller = access.signed_in(world, request, "read_user")
    return shown(shapes.current_user(world, user))


def version(world: World, request: Request) -> Response:
    access.signed_in(world, request, "read_user")
    return shown(VERSION)


def my_job(world: World, request: Request) -> Response:
    """The one call here that takes a job token."""
    caller = access.job_caller(world, request)
    job = next((each for each in world.jobs if caller.user and each.user_id == caller.user.id), None)
    of = world.pipeline(job.pipeline_id) if job else None
    if job is None or of is None:
        raise refusals.not_found()
    return shown(shapes_ci.job(world, job, of))


def user(world: World, request: Request) -> Response:
    access.signed_in(world, request, "read_user")
    wanted = access.number(request, "uid")
    if all(each.id != wanted for each in world.users):
        raise refusals.not_found("User")
    return shown(shapes.profile(world, wanted))


def project(world: World, request: Request) -> Response:
    caller = access.asking(world, request)
    return shown(shapes.project(world, access.project(world, request, caller), caller.user))


def members(world: World, request: Request) -> Response:
    return _listed(world, request, inherited=False)


def all_members(world: World, request: Request) -> Response:
    return _listed(world, request, inherited=True)


def _listed(world: World, request: Request, *, inherited: bool) -> Response:
    caller = access.asking(world, request)
    found = access.project(world, request, caller)
    wanted = {int(each) for each in many(request, "user_ids") if each.isdecimal()}
    query = request.query_params.get("query", "").lower()
    rows = [
        each
        for each in found.members.values()
        if (inherited or not each.inherited)
        and (not wanted or each.user_id in wanted)
        and (query in world.user(each.user_id).username.lower() or query in world.user(each.user_id).name.lower())
    ]
    page, headers = paged(world, request, sorted(rows, key=lambda each: each.user_id))
    return shown([shapes.member(world, each) for each in page], headers)


def member(world: World, request: Request) -> Response:
    return _one(world, request, inherited=False)


def any_member(world: World, request: Request) -> Response:
    return _one(world, request, inherited=True)


def _one(world: World, request: Request, *, inherited: bool) -> Response:
    """Blocked people are members still (facts 2.6)."""
    caller = access.asking(world, request)
    found = access.project(world, request, caller).members.get(access.number(request, "uid"))
    if found is None or (found.inherited and not inherited):
        raise refusals.not_found()
    return shown(shapes.member(world, found))

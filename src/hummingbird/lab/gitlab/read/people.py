"""GET routes: the caller, the server's version, users, projects and their members, and the caller's token."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, entities, error_responses
from hummingbird.lab.gitlab.routing import get_route, json_response, page_with_headers, query_list
from hummingbird.lab.gitlab.world import GitLabWorld

VERSION = {"version": "18.0.0", "revision": "8abe394ab5c"}


def people_routes(world: GitLabWorld) -> list[Route]:
    return [
        get_route(world, "/user", current_user),
        get_route(world, "/version", version),
        get_route(world, "/metadata", version),
        get_route(world, "/job", current_job),
        get_route(world, "/users/{uid}", user),
        get_route(world, "/projects/{id}", project),
        get_route(world, "/projects/{id}/members", members),
        get_route(world, "/projects/{id}/members/all", all_members),
        get_route(world, "/projects/{id}/members/{uid}", member),
        get_route(world, "/projects/{id}/members/all/{uid}", any_member),
    ]


def current_user(world: GitLabWorld, request: Request) -> Response:
    user, _caller = access.require_user(world, request, "read_user")
    return json_response(entities.current_user(world, user))


def version(world: GitLabWorld, request: Request) -> Response:
    access.require_user(world, request, "read_user")
    return json_response(VERSION)


def current_job(world: GitLabWorld, request: Request) -> Response:
    """Answer GET /job, the only call here that accepts a job token."""
    caller = access.identify_job_caller(world, request)
    job = next((each for each in world.jobs if caller.user and each.user_id == caller.user.id), None)
    of = world.find_pipeline(job.pipeline_id) if job else None
    if job is None or of is None:
        raise error_responses.not_found()
    return json_response(entities.job(world, job, of))


def user(world: GitLabWorld, request: Request) -> Response:
    access.require_user(world, request, "read_user")
    wanted = access.path_number(request, "uid")
    if all(each.id != wanted for each in world.users):
        raise error_responses.not_found("User")
    return json_response(entities.profile(world, wanted))


def project(world: GitLabWorld, request: Request) -> Response:
    caller = access.authenticate(world, request)
    return json_response(entities.project(world, access.find_project(world, request, caller), caller.user))


def members(world: GitLabWorld, request: Request) -> Response:
    return _list_members(world, request, inherited=False)


def all_members(world: GitLabWorld, request: Request) -> Response:
    return _list_members(world, request, inherited=True)


def _list_members(world: GitLabWorld, request: Request, *, inherited: bool) -> Response:
    caller = access.authenticate(world, request)
    found = access.find_project(world, request, caller)
    wanted = {int(each) for each in query_list(request, "user_ids") if each.isdecimal()}
    query = request.query_params.get("query", "").lower()
    rows = [
        each
        for each in found.members.values()
        if (inherited or not each.inherited)
        and (not wanted or each.user_id in wanted)
        and (query in world.user(each.user_id).username.lower() or query in world.user(each.user_id).name.lower())
    ]
    page, headers = page_with_headers(world, request, sorted(rows, key=lambda each: each.user_id))
    return json_response([entities.member(world, each) for each in page], headers)


def member(world: GitLabWorld, request: Request) -> Response:
    return _show_member(world, request, inherited=False)


def any_member(world: GitLabWorld, request: Request) -> Response:
    return _show_member(world, request, inherited=True)


def _show_member(world: GitLabWorld, request: Request, *, inherited: bool) -> Response:
    """Show a member; blocked people are still members."""
    caller = access.authenticate(world, request)
    found = access.find_project(world, request, caller).members.get(access.path_number(request, "uid"))
    if found is None or (found.inherited and not inherited):
        raise error_responses.not_found()
    return json_response(entities.member(world, found))


def token_routes(world: GitLabWorld) -> list[Route]:
    return [get_route(world, "/personal_access_tokens/self", current_token)]


def current_token(world: GitLabWorld, request: Request) -> Response:
    """Describe the token of the request. Any scope suffices, and the value is never shown."""
    caller = access.identify_caller(world, request)
    if caller.token is None or caller.user is None:
        raise error_responses.not_authorized()
    number = world.tokens.index(caller.token) + 1
    return json_response(
        {
            "id": number,
            "name": f"token {number}",
            "revoked": False,
            "created_at": "2026-01-01T00:00:00.000Z",
            "description": None,
            "scopes": list(caller.token.scopes),
            "user_id": caller.user.id,
            "last_used_at": "2026-03-01T00:00:00.000Z",
            "active": True,
            "expires_at": caller.token.expires_on,
        }
    )

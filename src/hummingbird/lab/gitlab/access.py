"""Authenticate callers and decide what they may see: tokens, scopes, roles, visibility, internal notes.

    caller = access.authenticate(world, request)                  # 401, 403
    project = access.find_project(world, request, caller)         # 404, 301, 405; reads `:id` of the path
    mr = access.find_merge_request(world, request, caller, project)    # 404, 403; reads `:iid`
    access.require_scope(caller, "api")                           # 403 insufficient_scope
    access.can_read_internal(world, caller, project)

All raise GitLabErrorResponse (or ProjectMoved, which `server` turns into a redirect). Paths are matched as sent:
`path_params` still contain %2F, and `path_segment` decodes one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from starlette.requests import Request

from hummingbird.lab.gitlab import error_responses
from hummingbird.lab.gitlab.error_responses import GitLabErrorResponse
from hummingbird.lab.gitlab.records import (
    AccessToken,
    CiJob,
    Discussion,
    LabMergeRequest,
    LabProject,
    Note,
    Pipeline,
    User,
)
from hummingbird.lab.gitlab.world import GitLabWorld

GUEST, PLANNER, REPORTER, DEVELOPER, MAINTAINER, OWNER = 10, 15, 20, 30, 40, 50
_READ_SCOPES = ("api", "read_api")
_READ_METHODS = ("GET", "HEAD")
_MAX_DIGITS = 40  # no id is longer, and Python parses no number of more than 4,300 digits
_PARAMETER_NAMES = {
    "iid": "merge_request_iid",
    "pid": "pipeline_id",
    "jid": "job_id",
    "nid": "note_id",
    "uid": "user_id",
}


class ProjectMoved(Exception):
    """The request names a project by a former path; `location` is its current address."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


@dataclass(frozen=True, slots=True)
class ApiCaller:
    """Who sent a request; `user` is None for an anonymous caller, who sees what is public."""

    user: User | None = None
    token: AccessToken | None = None


def authenticate(world: GitLabWorld, request: Request, *also: str) -> ApiCaller:
    """Return the caller, who has the scope that the method needs; `also` names scopes that suffice as well.

    Raises GitLabErrorResponse: 401 for a bad or expired token and for anonymous writes, 403 for a missing scope.
    """
    caller = identify_caller(world, request)
    if caller.user is None:
        if request.method not in _READ_METHODS:
            raise error_responses.not_authorized()
        return caller
    require_scope(caller, *((*_READ_SCOPES, *also) if request.method in _READ_METHODS else ("api", *also)))
    return caller


def require_user(world: GitLabWorld, request: Request, *also: str) -> tuple[User, ApiCaller]:
    """Do as `authenticate`, but reject every anonymous request with 401."""
    caller = authenticate(world, request, *also)
    if caller.user is None:
        raise error_responses.not_authorized()
    return caller.user, caller


def identify_caller(world: GitLabWorld, request: Request) -> ApiCaller:
    """Return the owner of the token, whatever its scopes. Raises GitLabErrorResponse: 401, or 403 if blocked."""
    value = token_from_request(request)
    if value is None:
        return ApiCaller()
    token = next((each for each in world.tokens if each.value == value and each.kind == "personal"), None)
    if token is None:
        raise error_responses.not_authorized()
    return _caller_for_token(world, token)


def identify_job_caller(world: GitLabWorld, request: Request) -> ApiCaller:
    """Return the owner of a job token, which few calls accept; others treat it as anonymous. Raises 401."""
    value = request.headers.get("job-token")
    token = next((each for each in world.tokens if each.value == value and each.kind == "job"), None)
    if token is None:
        raise error_responses.not_authorized()
    return _caller_for_token(world, token)


def _caller_for_token(world: GitLabWorld, token: AccessToken) -> ApiCaller:
    if token.state != "active":
        raise error_responses.invalid_token()
    user = world.user(token.user_id)
    if user.state == "blocked":
        raise error_responses.forbidden("Your account has been blocked.")
    return ApiCaller(user, token)


def token_from_request(request: Request) -> str | None:
    """Return the token as sent: header, bearer or parameter."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    bearer = value.strip() if scheme.lower() == "bearer" else None
    return request.headers.get("private-token") or bearer or request.query_params.get("private_token")


def require_scope(caller: ApiCaller, *scopes: str) -> None:
    """Raise GitLabErrorResponse unless the token has one of the scopes."""
    if caller.token is None or not set(scopes) & set(caller.token.scopes):
        raise error_responses.insufficient_scope(*scopes)


def path_segment(request: Request, name: str) -> str:
    """Return a decoded part of the path."""
    return unquote(request.path_params[name])


def path_number(request: Request, name: str) -> int:
    """Return a numeric part of the path. Raises GitLabErrorResponse as GitLab's parameter check does."""
    text = path_segment(request, name)
    if not text.isascii() or not text.isdigit():
        raise error_responses.parameter_invalid(_PARAMETER_NAMES.get(name, name))
    return int(text[:_MAX_DIGITS])


def find_project(world: GitLabWorld, request: Request, caller: ApiCaller) -> LabProject:
    """Find the project by `id`. Raises GitLabErrorResponse: unknown and invisible projects give the same 404."""
    asked = path_segment(request, "id")
    found = world.find_project(asked)
    if found is None and asked.lower() in world.renames:
        return _redirect_to_project(world, request, caller, world.project_by_id(world.renames[asked.lower()]))
    if found is None or not can_see_project(world, caller, found):
        raise error_responses.not_found("Project")
    return found


def _redirect_to_project(world: GitLabWorld, request: Request, caller: ApiCaller, now: LabProject) -> LabProject:
    if not can_see_project(world, caller, now):
        raise error_responses.not_found("Project")
    if request.method != "GET":
        raise error_responses.project_moved()
    path = request.scope["path"].replace(f"/projects/{request.path_params['id']}", f"/projects/{now.id}", 1)
    query = f"?{request.url.query}" if request.url.query else ""
    raise ProjectMoved(f"{world.url}{path}{query}")


def can_see_project(world: GitLabWorld, caller: ApiCaller, wanted: LabProject) -> bool:
    if wanted.visibility == "public":
        return True
    if wanted.visibility == "internal" and caller.user is not None:
        return True
    return world.access_level(caller.user, wanted) > 0


def find_merge_request(
    world: GitLabWorld,
    request: Request,
    caller: ApiCaller,
    of: LabProject,
    hidden: Callable[[], GitLabErrorResponse] = error_responses.forbidden,
) -> LabMergeRequest:
    """Find the merge request by `iid`. Raises GitLabErrorResponse: 404, or `hidden` if the caller may not read it."""
    found = world.find_merge_request(of, path_number(request, "iid"))
    if found is None:
        raise error_responses.not_found()
    if not can_read_merge_requests(world, caller, of, found):
        raise hidden()
    return found


def can_read_merge_requests(
    world: GitLabWorld, caller: ApiCaller, of: LabProject, one: LabMergeRequest | None = None
) -> bool:
    """Guests of a private project may read only what they wrote or what is assigned to them."""
    if of.visibility != "private" or has_access_level(world, caller, of, PLANNER):
        return True
    return one is not None and caller.user is not None and caller.user.id in (one.author_id, *one.assignee_ids)


def find_pipeline(world: GitLabWorld, request: Request, of: LabProject) -> Pipeline:
    """Find the pipeline by `pid`. Raises GitLabErrorResponse: 404, also for another project's pipeline."""
    found = world.find_pipeline(path_number(request, "pid"))
    if found is None or found.project_id != of.id:
        raise error_responses.not_found()
    return found


def find_job(world: GitLabWorld, request: Request, of: LabProject) -> tuple[CiJob, Pipeline]:
    """Find the job by `jid`, with its pipeline. Raises GitLabErrorResponse: 404."""
    wanted = path_number(request, "jid")
    found = next((each for each in world.jobs if each.id == wanted), None)
    run = world.find_pipeline(found.pipeline_id) if found else None
    if found is None or run is None or run.project_id != of.id:
        raise error_responses.not_found()
    return found, run


def has_access_level(world: GitLabWorld, caller: ApiCaller, wanted: LabProject, level: int) -> bool:
    return world.access_level(caller.user, wanted) >= level


def can_read_internal(world: GitLabWorld, caller: ApiCaller, wanted: LabProject) -> bool:
    """Planners and above may read internal notes."""
    return has_access_level(world, caller, wanted, PLANNER)


def can_read_ci(world: GitLabWorld, caller: ApiCaller, wanted: LabProject) -> bool:
    """Everybody who sees a project with public pipelines may read its CI, otherwise Reporters and above."""
    return wanted.public_jobs or has_access_level(world, caller, wanted, REPORTER)


def can_read_note(world: GitLabWorld, caller: ApiCaller, wanted: LabProject, note: Note) -> bool:
    return not note.internal or can_read_internal(world, caller, wanted)


def find_discussion(
    world: GitLabWorld, request: Request, caller: ApiCaller, of: LabProject, mr: LabMergeRequest
) -> Discussion:
    """Find the thread by `did`. Raises GitLabErrorResponse: the same 404 for unknown and unreadable threads."""
    wanted = path_segment(request, "did")
    found = next((each for each in mr.discussions if each.id == wanted), None)
    if found is None or not can_read_note(world, caller, of, found.notes[0]):
        raise error_responses.not_found("Discussion")
    return found


def find_note(world: GitLabWorld, request: Request, caller: ApiCaller, of: LabProject, mr: LabMergeRequest) -> Note:
    """Find the note by `nid`. Raises GitLabErrorResponse: 404, worded differently for a note that is unreadable."""
    wanted = path_number(request, "nid")
    found = next((each for each in mr.notes if each.id == wanted), None)
    if found is None:
        raise error_responses.not_found()
    if not can_read_note(world, caller, of, found):
        raise error_responses.not_found("Note")
    return found

"""Who asks, and what they may see: tokens, scopes, roles, visibility, internal notes.

    caller = access.asking(world, request)                  # 401, 403
    project = access.project(world, request, caller)        # 404, 301, 405; reads `:id` of the path
    mr = access.merge_request(world, request, caller, project)    # 404, 403; reads `:iid`
    access.needs(caller, "api")                             # 403 insufficient_scope
    access.reads_internal(world, caller, project)

All raise Refused (or Moved, which app.py turns into a redirect). Paths are matched as sent: `path_params` still hold
%2F, and `segment` decodes one. Knows nothing of how things are shown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from starlette.requests import Request

from hummingbird.lab.gitlab import refusals
from hummingbird.lab.gitlab.records import Discussion, Job, MergeRequest, Note, Pipeline, Project, Token, User
from hummingbird.lab.gitlab.refusals import Refused
from hummingbird.lab.gitlab.store import World

GUEST, PLANNER, REPORTER, DEVELOPER, MAINTAINER, OWNER = 10, 15, 20, 30, 40, 50
_READING = ("api", "read_api")
_GET = ("GET", "HEAD")
_DIGITS = 40  # longer numbers are nobody's either, and Python reads none of more than 4,300 digits
_PARAMETERS = {"iid": "merge_request_iid", "pid": "pipeline_id", "jid": "job_id", "nid": "note_id", "uid": "user_id"}


class Moved(Exception):
    """The project was asked for by a path that it no longer has; `location` is where it is."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


@dataclass(frozen=True, slots=True)
class Caller:
    """`user` None: a stranger, who sees what is public."""

    user: User | None = None
    token: Token | None = None


def asking(world: World, request: Request, *also: str) -> Caller:
    """Who sent it, having the scope that its method needs; `also` names scopes that will do as well.

    Raises Refused: 401 for a bad or expired token and for strangers who write, 403 for a narrow one."""
    caller = known(world, request)
    if caller.user is None:
        if request.method not in _GET:
            raise refusals.unauthorized()
        return caller
    needs(caller, *((*_READING, *also) if request.method in _GET else ("api", *also)))
    return caller


def signed_in(world: World, request: Request, *also: str) -> tuple[User, Caller]:
    """As `asking`, but strangers are refused with 401 whatever they want."""
    caller = asking(world, request, *also)
    if caller.user is None:
        raise refusals.unauthorized()
    return caller.user, caller


def known(world: World, request: Request) -> Caller:
    """Whose token it is, whatever it may do. Raises Refused: 401, or 403 for somebody who is blocked."""
    value = presented(request)
    if value is None:
        return Caller()
    token = next((each for each in world.tokens if each.value == value and each.kind == "personal"), None)
    if token is None:
        raise refusals.unauthorized()
    return _caller(world, token)


def job_caller(world: World, request: Request) -> Caller:
    """Whose job token it is: few calls look at it, to the others its sender is a stranger. Raises Refused: 401."""
    value = request.headers.get("job-token")
    token = next((each for each in world.tokens if each.value == value and each.kind == "job"), None)
    if token is None:
        raise refusals.unauthorized()
    return _caller(world, token)


def _caller(world: World, token: Token) -> Caller:
    if token.standing != "active":
        raise refusals.invalid_token()
    user = world.user(token.user_id)
    if user.state == "blocked":
        raise refusals.forbidden("Your account has been blocked.")
    return Caller(user, token)


def presented(request: Request) -> str | None:
    """The token as sent: header, bearer or parameter."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    bearer = value.strip() if scheme.lower() == "bearer" else None
    return request.headers.get("private-token") or bearer or request.query_params.get("private_token")


def needs(caller: Caller, *scopes: str) -> None:
    """Raises Refused unless the token has one of the scopes (facts 2.6)."""
    if caller.token is None or not set(scopes) & set(caller.token.scopes):
        raise refusals.insufficient_scope(*scopes)


def segment(request: Request, name: str) -> str:
    return unquote(request.path_params[name])


def number(request: Request, name: str) -> int:
    """A numeric part of the path. Raises Refused as the parameter check does."""
    text = segment(request, name)
    if not text.isascii() or not text.isdigit():
        raise refusals.invalid(_PARAMETERS.get(name, name))
    return int(text[:_DIGITS])


def project(world: World, request: Request, caller: Caller) -> Project:
    """Raises Refused: unknown and invisible are the same 404 (facts 2.8)."""
    asked = segment(request, "id")
    found = world.project_by(asked)
    if found is None and asked.lower() in world.renames:
        return _moved(world, request, caller, world.project_with(world.renames[asked.lower()]))
    if found is None or not visible(world, caller, found):
        raise refusals.not_found("Project")
    return found


def _moved(world: World, request: Request, caller: Caller, now: Project) -> Project:
    if not visible(world, caller, now):
        raise refusals.not_found("Project")
    if request.method != "GET":
        raise refusals.moved_project()
    path = request.scope["path"].replace(f"/projects/{request.path_params['id']}", f"/projects/{now.id}", 1)
    query = f"?{request.url.query}" if request.url.query else ""
    raise Moved(f"{world.url}{path}{query}")


def visible(world: World, caller: Caller, wanted: Project) -> bool:
    if wanted.visibility == "public":
        return True
    if wanted.visibility == "internal" and caller.user is not None:
        return True
    return world.level(caller.user, wanted) > 0


def merge_request(
    world: World, request: Request, caller: Caller, of: Project, hidden: Callable[[], Refused] = refusals.forbidden
) -> MergeRequest:
    """By the `iid` of the path. Raises Refused: 404 for unknown ones, `hidden` for those that are not the caller's to
    read."""
    found = world.merge_request_of(of, number(request, "iid"))
    if found is None:
        raise refusals.not_found()
    if not reads_merge_requests(world, caller, of, found):
        raise hidden()
    return found


def reads_merge_requests(world: World, caller: Caller, of: Project, one: MergeRequest | None = None) -> bool:
    """Guests of a private project read none but those that they wrote or that are assigned to them."""
    if of.visibility != "private" or at_least(world, caller, of, PLANNER):
        return True
    return one is not None and caller.user is not None and caller.user.id in (one.author_id, *one.assignee_ids)


def pipeline(world: World, request: Request, of: Project) -> Pipeline:
    """By the `pid` of the path. Raises Refused: 404 for another project's too."""
    found = world.pipeline(number(request, "pid"))
    if found is None or found.project_id != of.id:
        raise refusals.not_found()
    return found


def job(world: World, request: Request, of: Project) -> tuple[Job, Pipeline]:
    """By the `jid` of the path, with its pipeline. Raises Refused: 404."""
    wanted = number(request, "jid")
    found = next((each for each in world.jobs if each.id == wanted), None)
    run = world.pipeline(found.pipeline_id) if found else None
    if found is None or run is None or run.project_id != of.id:
        raise refusals.not_found()
    return found, run


def at_least(world: World, caller: Caller, wanted: Project, level: int) -> bool:
    return world.level(caller.user, wanted) >= level


def reads_internal(world: World, caller: Caller, wanted: Project) -> bool:
    """Planner or above (facts 2.3)."""
    return at_least(world, caller, wanted, PLANNER)


def reads_ci(world: World, caller: Caller, wanted: Project) -> bool:
    """Everybody who sees a project with public pipelines, else Reporter and above (facts 2.5)."""
    return wanted.public_jobs or at_least(world, caller, wanted, REPORTER)


def readable(world: World, caller: Caller, wanted: Project, note: Note) -> bool:
    return not note.internal or reads_internal(world, caller, wanted)


def discussion(world: World, request: Request, caller: Caller, of: Project, mr: MergeRequest) -> Discussion:
    """By the `did` of the path. Raises Refused: 404 for unknown and unreadable alike."""
    wanted = segment(request, "did")
    found = next((each for each in mr.discussions if each.id == wanted), None)
    if found is None or not readable(world, caller, of, found.notes[0]):
        raise refusals.not_found("Discussion")
    return found


def note(world: World, request: Request, caller: Caller, of: Project, mr: MergeRequest) -> Note:
    """By the `nid` of the path. Raises Refused: 404, in other words for one that is there but not for them."""
    wanted = number(request, "nid")
    found = next((each for each in mr.notes if each.id == wanted), None)
    if found is None:
        raise refusals.not_found()
    if not readable(world, caller, of, found):
        raise refusals.not_found("Note")
    return found

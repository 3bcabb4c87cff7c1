"""GET: merge requests, their diffs in four forms, commits, versions and pipelines.

facts 2.1 and 2.2.
"""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes_ci
from hummingbird.lab.gitlab import shapes_merge_request as shapes
from hummingbird.lab.gitlab.paging import headless, paged, whole
from hummingbird.lab.gitlab.records import FileDiff, MergeRequest, Project, Raw
from hummingbird.lab.gitlab.routing import MR, ORDERS, flag, get, many, picked, shown
from hummingbird.lab.gitlab.store import World

STATES = ("opened", "closed", "locked", "merged", "all")


def routes(world: World) -> list[Route]:
    return [
        get(world, "/projects/{id}/merge_requests", listed),
        get(world, MR, one),
        get(world, f"{MR}/raw_diffs", raw_diffs),
        get(world, f"{MR}/diffs", diffs),
        get(world, f"{MR}/changes", changes),
        get(world, f"{MR}/versions", versions),
        get(world, f"{MR}/versions/{{vid}}", version),
        get(world, f"{MR}/commits", commits),
        get(world, f"{MR}/pipelines", pipelines),
    ]


def found(
    world: World, request: Request, hidden: Callable[[], refusals.Refused] = refusals.forbidden
) -> tuple[access.Caller, Project, MergeRequest]:
    """What the path of a merge request names. Raises Refused, `hidden` for one that the caller may not read."""
    caller = access.asking(world, request)
    project = access.project(world, request, caller)
    return caller, project, access.merge_request(world, request, caller, project, hidden)


def listed(world: World, request: Request) -> Response:
    caller = access.asking(world, request)
    project = access.project(world, request, caller)
    if not access.reads_merge_requests(world, caller, project):
        raise refusals.forbidden()
    rows = [each for each in world.merge_requests if each.project_id == project.id]
    for condition in _conditions(world, request):
        rows = [each for each in rows if condition(each)]
    oldest_first = picked(request, "sort", ORDERS, "desc") == "asc"
    rows.sort(key=lambda each: each.created_at, reverse=not oldest_first)
    page, headers = paged(world, request, rows)
    return shown([shapes.merge_request_short(world, each) for each in page], headers)


def _conditions(world: World, request: Request) -> list[Callable[[MergeRequest], bool]]:
    """There is none for a sha: GitLab ignores that parameter, as all that it does not know. Raises Refused."""
    asked = request.query_params
    state = picked(request, "state", STATES, "all")
    tests: list[Callable[[MergeRequest], bool]] = [lambda mr: state in ("all", mr.state)]
    if "source_branch" in asked:
        tests.append(lambda mr: mr.source_branch == asked["source_branch"])
    if "target_branch" in asked:
        tests.append(lambda mr: mr.target_branch == asked["target_branch"])
    if iids := many(request, "iids"):
        tests.append(lambda mr: str(mr.iid) in iids)
    if "author_id" in asked:
        author = whole(request, "author_id", 0)
        tests.append(lambda mr: mr.author_id == author)
    if "author_username" in asked:
        tests.append(lambda mr: world.user(mr.author_id).username == asked["author_username"])
    if "wip" in asked:
        tests.append(lambda mr: mr.draft == (asked["wip"] == "yes"))
    if labels := [each for each in asked.get("labels", "").split(",") if each]:
        tests.append(lambda mr: set(labels) <= set(mr.labels))
    if "search" in asked:
        tests.append(lambda mr: asked["search"].lower() in f"{mr.title}\n{mr.description}".lower())
    return tests


def one(world: World, request: Request) -> Response:
    return shown(_whole(world, *found(world, request)))


def _whole(world: World, caller: access.Caller, project: Project, mr: MergeRequest) -> Raw:
    raw = shapes.merge_request(world, mr, caller.user)
    if not access.reads_ci(world, caller, project):
        raw |= {"pipeline": None, "head_pipeline": None}
    mr.merge_checked = True  # facts 2.1: reading starts the check, the next reader sees its outcome
    return raw


def raw_diffs(world: World, request: Request) -> Response:
    """As git prints it; a file that is too large keeps its header alone (facts 2.2)."""
    _caller, _project, mr = found(world, request)
    text = "".join(_raw(world, each) for each in mr.files[: world.limits.files])
    return Response(text, 200, {"Cache-Control": "no-cache"}, "text/plain")


def _raw(world: World, file: FileDiff) -> str:
    return file.header + ("" if len(file.diff.encode()) > world.limits.too_large_bytes else file.diff)


def diffs(world: World, request: Request) -> Response:
    """Pages without any header that says so (facts 2.2)."""
    _caller, _project, mr = found(world, request)
    page = headless(request, mr.files[: world.limits.files])
    return shown([shapes.file_diff(world, each, with_names=flag(request, "unidiff")) for each in page])


def changes(world: World, request: Request) -> Response:
    """The merge request with all its files; `overflow` when some are left out or have no text."""
    caller, project, mr = found(world, request)
    raw_wanted, named = flag(request, "access_raw_diffs"), flag(request, "unidiff")
    kept = mr.files if raw_wanted else mr.files[: world.limits.files]
    shown_files = [shapes.file_diff(world, each, whole=raw_wanted, with_names=named) for each in kept]
    overflow = len(kept) < len(mr.files) or any(each["too_large"] or each["collapsed"] for each in shown_files)
    return shown({**_whole(world, caller, project, mr), "changes": shown_files, "overflow": overflow})


def versions(world: World, request: Request) -> Response:
    _caller, _project, mr = found(world, request)
    page, headers = paged(world, request, shapes.versions(world, mr))
    return shown(page, headers)


def version(world: World, request: Request) -> Response:
    _caller, _project, mr = found(world, request)
    wanted = access.number(request, "vid")
    raw = next((each for each in shapes.versions(world, mr) if each["id"] == wanted), None)
    if raw is None:
        raise refusals.not_found()
    return shown(shapes.version(world, mr, raw))


def commits(world: World, request: Request) -> Response:
    _caller, project, mr = found(world, request)
    page, headers = paged(world, request, mr.commits)
    return shown([shapes_ci.commit(world, project, each) for each in page], headers)


def pipelines(world: World, request: Request) -> Response:
    """Those that ran in a fork are listed too, for whoever sees the fork."""
    caller, project, mr = found(world, request)
    if not access.reads_ci(world, caller, project):
        raise refusals.forbidden()
    rows = [
        each
        for each in shapes.pipelines_of(world, mr)
        if access.visible(world, caller, world.project_with(each.project_id))
    ]
    page, headers = paged(world, request, rows)
    return shown([shapes_ci.pipeline_short(world, each) for each in page], headers)

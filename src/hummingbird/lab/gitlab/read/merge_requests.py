"""GET routes: merge requests, their diffs in four forms, commits, versions, pipelines, threads, notes and emoji."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, entities, error_responses
from hummingbird.lab.gitlab import merge_request_entities as shapes
from hummingbird.lab.gitlab.records import Award, DiffFile, LabMergeRequest, LabProject, Raw
from hummingbird.lab.gitlab.routing import (
    MERGE_REQUEST_PATH,
    SORT_ORDERS,
    cut_page,
    get_route,
    json_response,
    page_with_headers,
    query_choice,
    query_flag,
    query_int,
    query_list,
)
from hummingbird.lab.gitlab.world import GitLabWorld

STATES = ("opened", "closed", "locked", "merged", "all")


def merge_request_routes(world: GitLabWorld) -> list[Route]:
    return [
        get_route(world, "/projects/{id}/merge_requests", list_merge_requests),
        get_route(world, MERGE_REQUEST_PATH, show_merge_request),
        get_route(world, f"{MERGE_REQUEST_PATH}/raw_diffs", raw_diffs),
        get_route(world, f"{MERGE_REQUEST_PATH}/diffs", diffs),
        get_route(world, f"{MERGE_REQUEST_PATH}/changes", changes),
        get_route(world, f"{MERGE_REQUEST_PATH}/versions", versions),
        get_route(world, f"{MERGE_REQUEST_PATH}/versions/{{vid}}", version),
        get_route(world, f"{MERGE_REQUEST_PATH}/commits", commits),
        get_route(world, f"{MERGE_REQUEST_PATH}/pipelines", pipelines),
    ]


def locate_merge_request(
    world: GitLabWorld,
    request: Request,
    hidden: Callable[[], error_responses.GitLabErrorResponse] = error_responses.forbidden,
) -> tuple[access.ApiCaller, LabProject, LabMergeRequest]:
    """Return what the path of a merge request names. Raises GitLabErrorResponse: `hidden` if it is unreadable."""
    caller = access.authenticate(world, request)
    project = access.find_project(world, request, caller)
    return caller, project, access.find_merge_request(world, request, caller, project, hidden)


def list_merge_requests(world: GitLabWorld, request: Request) -> Response:
    caller = access.authenticate(world, request)
    project = access.find_project(world, request, caller)
    if not access.can_read_merge_requests(world, caller, project):
        raise error_responses.forbidden()
    rows = [each for each in world.merge_requests if each.project_id == project.id]
    for condition in _conditions(world, request):
        rows = [each for each in rows if condition(each)]
    oldest_first = query_choice(request, "sort", SORT_ORDERS, "desc") == "asc"
    rows.sort(key=lambda each: each.created_at, reverse=not oldest_first)
    page, headers = page_with_headers(world, request, rows)
    return json_response([shapes.merge_request_short(world, each) for each in page], headers)


def _conditions(world: GitLabWorld, request: Request) -> list[Callable[[LabMergeRequest], bool]]:
    """Return the filters. GitLab ignores a `sha` parameter, like all unknown ones. Raises GitLabErrorResponse."""
    asked = request.query_params
    state = query_choice(request, "state", STATES, "all")
    tests: list[Callable[[LabMergeRequest], bool]] = [lambda mr: state in ("all", mr.state)]
    if "source_branch" in asked:
        tests.append(lambda mr: mr.source_branch == asked["source_branch"])
    if "target_branch" in asked:
        tests.append(lambda mr: mr.target_branch == asked["target_branch"])
    if iids := query_list(request, "iids"):
        tests.append(lambda mr: str(mr.iid) in iids)
    if "author_id" in asked:
        author = query_int(request, "author_id", 0)
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


def show_merge_request(world: GitLabWorld, request: Request) -> Response:
    return json_response(_full_entity(world, *locate_merge_request(world, request)))


def _full_entity(world: GitLabWorld, caller: access.ApiCaller, project: LabProject, mr: LabMergeRequest) -> Raw:
    raw = shapes.merge_request(world, mr, caller.user)
    if not access.can_read_ci(world, caller, project):
        raw |= {"pipeline": None, "head_pipeline": None}
    mr.merge_checked = True  # reading starts the check, and the next reader sees its result
    return raw


def raw_diffs(world: GitLabWorld, request: Request) -> Response:
    """Return the diff as git prints it; of a file that is too large only its header."""
    _caller, _project, mr = locate_merge_request(world, request)
    text = "".join(_raw_diff(world, each) for each in mr.files[: world.limits.files])
    return Response(text, 200, {"Cache-Control": "no-cache"}, "text/plain")


def _raw_diff(world: GitLabWorld, file: DiffFile) -> str:
    return file.header + ("" if len(file.diff.encode()) > world.limits.too_large_bytes else file.diff)


def diffs(world: GitLabWorld, request: Request) -> Response:
    """Return a page of diffs; GitLab sends no paging headers here."""
    _caller, _project, mr = locate_merge_request(world, request)
    page = cut_page(request, mr.files[: world.limits.files])
    return json_response([shapes.file_diff(world, each, with_names=query_flag(request, "unidiff")) for each in page])


def changes(world: GitLabWorld, request: Request) -> Response:
    """Return the merge request with all its files; `overflow` if some are left out or have no text."""
    caller, project, mr = locate_merge_request(world, request)
    raw_wanted, named = query_flag(request, "access_raw_diffs"), query_flag(request, "unidiff")
    kept = mr.files if raw_wanted else mr.files[: world.limits.files]
    shown_files = [shapes.file_diff(world, each, whole=raw_wanted, with_names=named) for each in kept]
    overflow = len(kept) < len(mr.files) or any(each["too_large"] or each["collapsed"] for each in shown_files)
    return json_response({**_full_entity(world, caller, project, mr), "changes": shown_files, "overflow": overflow})


def versions(world: GitLabWorld, request: Request) -> Response:
    _caller, _project, mr = locate_merge_request(world, request)
    page, headers = page_with_headers(world, request, shapes.versions(world, mr))
    return json_response(page, headers)


def version(world: GitLabWorld, request: Request) -> Response:
    _caller, _project, mr = locate_merge_request(world, request)
    wanted = access.path_number(request, "vid")
    raw = next((each for each in shapes.versions(world, mr) if each["id"] == wanted), None)
    if raw is None:
        raise error_responses.not_found()
    return json_response(shapes.version(world, mr, raw))


def commits(world: GitLabWorld, request: Request) -> Response:
    _caller, project, mr = locate_merge_request(world, request)
    page, headers = page_with_headers(world, request, mr.commits)
    return json_response([entities.commit(world, project, each) for each in page], headers)


def pipelines(world: GitLabWorld, request: Request) -> Response:
    """List the pipelines, also those that ran in a fork if the caller may see the fork."""
    caller, project, mr = locate_merge_request(world, request)
    if not access.can_read_ci(world, caller, project):
        raise error_responses.forbidden()
    rows = [
        each
        for each in shapes.merge_request_pipelines(world, mr)
        if access.can_see_project(world, caller, world.project_by_id(each.project_id))
    ]
    page, headers = page_with_headers(world, request, rows)
    return json_response([entities.pipeline_short(world, each) for each in page], headers)


# Notes. GitLab cuts pages before it removes what the reader may not see, so a page can be short and totals too high.
_NOTE_SORT_KEYS = ("created_at", "updated_at")
_ACTIVITY_FILTERS = ("all_notes", "only_comments", "only_activity")


def note_routes(world: GitLabWorld) -> list[Route]:
    return [
        get_route(world, f"{MERGE_REQUEST_PATH}/discussions", discussions),
        get_route(world, f"{MERGE_REQUEST_PATH}/discussions/{{did}}", discussion),
        get_route(world, f"{MERGE_REQUEST_PATH}/discussions/{{did}}/notes", discussion_notes),
        get_route(world, f"{MERGE_REQUEST_PATH}/discussions/{{did}}/notes/{{nid}}", note),
        get_route(world, f"{MERGE_REQUEST_PATH}/notes", notes),
        get_route(world, f"{MERGE_REQUEST_PATH}/notes/{{nid}}", note),
        get_route(world, f"{MERGE_REQUEST_PATH}/notes/{{nid}}/award_emoji", note_awards),
        get_route(world, f"{MERGE_REQUEST_PATH}/notes/{{nid}}/award_emoji/{{aid}}", note_award),
        get_route(world, f"{MERGE_REQUEST_PATH}/award_emoji", merge_request_awards),
    ]


def locate_noteable(world: GitLabWorld, request: Request) -> tuple[access.ApiCaller, LabProject, LabMergeRequest]:
    """Return where the notes are. Raises GitLabErrorResponse: 404 for a merge request that the caller may not read."""
    return locate_merge_request(world, request, error_responses.not_found)


def discussions(world: GitLabWorld, request: Request) -> Response:
    caller, project, mr = locate_noteable(world, request)
    rows = sorted(mr.discussions, key=lambda each: (each.notes[0].created_at, each.notes[0].id))
    page, headers = page_with_headers(world, request, rows)
    shown_ones = []
    for each in page:
        kept = [note for note in each.notes if access.can_read_note(world, caller, project, note)]
        if kept:
            shown_ones.append(entities.discussion(world, mr, each, kept))
    return json_response(shown_ones, headers)


def discussion(world: GitLabWorld, request: Request) -> Response:
    caller, project, mr = locate_noteable(world, request)
    one = access.find_discussion(world, request, caller, project, mr)
    kept = [note for note in one.notes if access.can_read_note(world, caller, project, note)]
    return json_response(entities.discussion(world, mr, one, kept))


def discussion_notes(world: GitLabWorld, request: Request) -> Response:
    """Return all notes of a thread at once; this list has no pages."""
    caller, project, mr = locate_noteable(world, request)
    one = access.find_discussion(world, request, caller, project, mr)
    return json_response([entities.note(world, mr, each) for each in one.notes])


def notes(world: GitLabWorld, request: Request) -> Response:
    caller, project, mr = locate_noteable(world, request)
    chosen = query_choice(request, "activity_filter", _ACTIVITY_FILTERS, "all_notes")
    key, order = (
        query_choice(request, "order_by", _NOTE_SORT_KEYS, "created_at"),
        query_choice(request, "sort", SORT_ORDERS, "desc"),
    )
    rows = [each for each in mr.notes if chosen == "all_notes" or each.system == (chosen == "only_activity")]
    rows.sort(key=lambda each: (getattr(each, key), each.id), reverse=order == "desc")
    page, headers = page_with_headers(world, request, rows)
    return json_response(
        [entities.note(world, mr, each) for each in page if access.can_read_note(world, caller, project, each)], headers
    )


def note(world: GitLabWorld, request: Request) -> Response:
    caller, project, mr = locate_noteable(world, request)
    return json_response(entities.note(world, mr, access.find_note(world, request, caller, project, mr)))


def note_awards(world: GitLabWorld, request: Request) -> Response:
    caller, project, mr = locate_noteable(world, request)
    one = access.find_note(world, request, caller, project, mr)
    page, headers = page_with_headers(world, request, one.awards)
    return json_response([entities.award(world, each, one.id) for each in page], headers)


def note_award(world: GitLabWorld, request: Request) -> Response:
    caller, project, mr = locate_noteable(world, request)
    one = access.find_note(world, request, caller, project, mr)
    return json_response(entities.award(world, _find_award(request, one.awards), one.id))


def _find_award(request: Request, awards: list[Award]) -> Award:
    wanted = access.path_number(request, "aid")
    for each in awards:
        if each.id == wanted:
            return each
    raise error_responses.not_found("Award Emoji")


def merge_request_awards(world: GitLabWorld, request: Request) -> Response:
    _caller, _project, mr = locate_noteable(world, request)
    page, headers = page_with_headers(world, request, mr.awards)
    return json_response([entities.award(world, each, mr.id, "MergeRequest") for each in page], headers)

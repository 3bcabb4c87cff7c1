"""GET routes: pipelines, jobs, logs, test reports and commit statuses."""

import mimetypes
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hummingbird.lab.gitlab import access, entities, error_responses
from hummingbird.lab.gitlab.case_loader import parse_time
from hummingbird.lab.gitlab.read.repository import resolve_ref
from hummingbird.lab.gitlab.records import CiJob, CommitStatus, LabProject, Pipeline, Raw
from hummingbird.lab.gitlab.routing import (
    SORT_ORDERS,
    get_route,
    json_response,
    page_by_cursor,
    page_with_headers,
    query_choice,
    query_flag,
    query_int,
    query_list,
)
from hummingbird.lab.gitlab.world import GitLabWorld

STATES = (
    "created",
    "waiting_for_resource",
    "preparing",
    "pending",
    "running",
    "success",
    "failed",
    "canceling",
    "canceled",
    "skipped",
    "manual",
    "scheduled",
)
SOURCES = (
    "unknown",
    "push",
    "web",
    "trigger",
    "schedule",
    "api",
    "external",
    "pipeline",
    "chat",
    "webide",
    "merge_request_event",
    "external_pull_request_event",
    "parent_pipeline",
    "ondemand_dast_scan",
    "ondemand_dast_validation",
    "security_orchestration_policy",
    "container_registry_push",
    "duo_workflow",
    "pipeline_execution_policy_schedule",
)
_PIPELINE_SORT_KEYS = ("id", "status", "ref", "updated_at", "user_id")
_PIPELINE_PATH = "/projects/{id}/pipelines/{pid}"
# Logs are sent in pieces of these sizes, so that characters and colour sequences are split between pieces.
_ODD_SIZES = (1, 2, 3, 5, 7, 11, 13, 17, 61, 127, 509)
_BLOCK_BYTES = 65_521
_LOOK_BACK_BYTES = 1_024


def ci_routes(world: GitLabWorld) -> list[Route]:
    return [
        get_route(world, "/projects/{id}/pipelines", pipelines),
        get_route(world, _PIPELINE_PATH, pipeline),
        get_route(world, f"{_PIPELINE_PATH}/jobs", pipeline_jobs),
        get_route(world, f"{_PIPELINE_PATH}/bridges", bridges),
        get_route(world, f"{_PIPELINE_PATH}/test_report", test_report),
        get_route(world, f"{_PIPELINE_PATH}/test_report_summary", test_report_summary),
        get_route(world, "/projects/{id}/jobs", jobs),
        get_route(world, "/projects/{id}/jobs/{jid}", job),
        get_route(world, "/projects/{id}/jobs/{jid}/trace", trace),
        get_route(world, "/projects/{id}/jobs/{jid}/artifacts", artifacts),
        get_route(world, "/projects/{id}/jobs/{jid}/artifacts/{path:path}", artifact),
    ]


def find_ci_project(world: GitLabWorld, request: Request) -> LabProject:
    """Return a project whose CI the caller may read. Raises GitLabErrorResponse."""
    caller = access.authenticate(world, request)
    project = access.find_project(world, request, caller)
    if not access.can_read_ci(world, caller, project):
        raise error_responses.forbidden()
    return project


def query_choices(request: Request, name: str, allowed: tuple[str, ...]) -> list[str]:
    """Return the values of a parameter from a fixed set. Raises GitLabErrorResponse as GitLab's check does."""
    values = query_list(request, name)
    if any(each not in allowed for each in values):
        raise error_responses.parameter_invalid(name, "does not have a valid value")
    return values


def pipelines(world: GitLabWorld, request: Request) -> Response:
    rows = world.pipelines_of(find_ci_project(world, request))
    for condition in _conditions(world, request):
        rows = [each for each in rows if condition(each)]
    key, order = (
        query_choice(request, "order_by", _PIPELINE_SORT_KEYS, "id"),
        query_choice(request, "sort", SORT_ORDERS, "desc"),
    )
    rows.sort(key=lambda each: (getattr(each, key), each.id), reverse=order == "desc")
    page, headers = page_with_headers(world, request, rows)
    return json_response([entities.pipeline_short(world, each) for each in page], headers)


def _conditions(world: GitLabWorld, request: Request) -> list[Callable[[Pipeline], bool]]:
    """Return the filters of the request. Raises GitLabErrorResponse."""
    asked = request.query_params
    tests: list[Callable[[Pipeline], bool]] = [
        partial(_has_value, name, asked[name]) for name in ("ref", "sha", "name") if name in asked
    ]
    if states := query_choices(request, "status", STATES):
        tests.append(lambda each: each.status in states)
    if sources := query_choices(request, "source", SOURCES):
        tests.append(lambda each: each.source in sources)
    if "username" in asked:
        tests.append(lambda each: world.user(each.user_id).username == asked["username"])
    return [*tests, _time_condition(request, "updated"), _time_condition(request, "created")]


def _has_value(name: str, value: str, each: Pipeline) -> bool:
    return bool(getattr(each, name) == value)


def _time_condition(request: Request, name: str) -> Callable[[Pipeline], bool]:
    return partial(
        _is_between, f"{name}_at", _query_time(request, f"{name}_after"), _query_time(request, f"{name}_before")
    )


def _is_between(name: str, after: datetime | None, before: datetime | None, each: Pipeline) -> bool:
    at = parse_time(getattr(each, name))
    return (after is None or at > after) and (before is None or at < before)


def _query_time(request: Request, name: str) -> datetime | None:
    text = request.query_params.get(name)
    try:
        return parse_time(text) if text else None
    except ValueError:
        raise error_responses.parameter_invalid(name) from None


def _find_pipeline(world: GitLabWorld, request: Request) -> Pipeline:
    return access.find_pipeline(world, request, find_ci_project(world, request))


def pipeline(world: GitLabWorld, request: Request) -> Response:
    return json_response(entities.pipeline(world, _find_pipeline(world, request)))


def pipeline_jobs(world: GitLabWorld, request: Request) -> Response:
    return _jobs_of_pipeline(world, request, bridge=False)


def bridges(world: GitLabWorld, request: Request) -> Response:
    return _jobs_of_pipeline(world, request, bridge=True)


def _jobs_of_pipeline(world: GitLabWorld, request: Request, *, bridge: bool) -> Response:
    """List jobs or bridges of a pipeline; external statuses are never among them."""
    of = _find_pipeline(world, request)
    states, retried = query_choices(request, "scope", STATES), query_flag(request, "include_retried")
    rows = [
        each
        for each in world.jobs
        if each.pipeline_id == of.id
        and each.bridge == bridge
        and (retried or not each.retried)
        and (not states or each.status in states)
    ]
    page, headers = page_with_headers(world, request, sorted(rows, key=lambda each: -each.id))
    return json_response([entities.job(world, each, of) for each in page], headers)


def jobs(world: GitLabWorld, request: Request) -> Response:
    """List the jobs of a project, retried ones too, newest first; with keyset pages on request."""
    project, states = find_ci_project(world, request), query_choices(request, "scope", STATES)
    own = {each.id: each for each in world.pipelines_of(project)}
    rows = [
        each
        for each in world.jobs
        if each.pipeline_id in own and not each.bridge and (not states or each.status in states)
    ]
    rows.sort(key=lambda each: -each.id)
    cut = page_by_cursor if request.query_params.get("pagination") == "keyset" else page_with_headers
    page, headers = cut(world, request, rows)
    return json_response([entities.job(world, each, own[each.pipeline_id]) for each in page], headers)


def job(world: GitLabWorld, request: Request) -> Response:
    return json_response(entities.job(world, *access.find_job(world, request, find_ci_project(world, request))))


def trace(world: GitLabWorld, request: Request) -> Response:
    """Stream a log, which may be larger than memory. A job without a log has an empty trace, not a missing one."""
    caller, project = access.authenticate(world, request), find_ci_project(world, request)
    one, _of = access.find_job(world, request, project)
    if one.debug_trace and not access.has_access_level(world, caller, project, access.DEVELOPER):
        raise error_responses.forbidden()
    if one.log is None or not one.log.is_file():
        return Response(b"", 200, media_type="text/plain")
    return StreamingResponse(_stream_log(one.log), media_type="text/plain")


def artifacts(world: GitLabWorld, request: Request) -> Response:
    """Send the archive of a job's artifacts, as GitLab does where it does not redirect to its object storage."""
    access.authenticate(world, request)
    one, _of = access.find_job(world, request, find_ci_project(world, request))
    if one.artifacts is None:
        raise error_responses.not_found()
    return Response(one.artifacts.read_bytes(), 200, media_type="application/zip")


def artifact(world: GitLabWorld, request: Request) -> Response:
    """Send one file out of the archive."""
    access.authenticate(world, request)
    one, _of = access.find_job(world, request, find_ci_project(world, request))
    if one.artifacts is None:
        raise error_responses.not_found()
    with zipfile.ZipFile(one.artifacts) as archive:
        try:
            content = archive.read(request.path_params["path"])
        except KeyError:
            raise error_responses.not_found() from None
    return Response(content, 200, media_type=mimetypes.guess_type(request.path_params["path"])[0] or "text/plain")


async def _stream_log(log: Path) -> AsyncIterator[bytes]:
    for piece in log_pieces(log):
        yield piece


def log_pieces(log: Path) -> Iterator[bytes]:
    """Yield a log in odd sizes; large pieces end inside a colour sequence or a character where they contain one."""
    with log.open("rb") as file:
        for size in _ODD_SIZES:
            if piece := file.read(size):
                yield piece
        rest = b""
        while block := file.read(_BLOCK_BYTES):
            rest += block
            cut = _cut_point(rest)
            yield rest[:cut]
            rest = rest[cut:]
        if rest:
            yield rest


def _cut_point(block: bytes) -> int:
    """Cut just after the last ESC, else inside a multi-byte character near the end, else at the end."""
    escape = block.rfind(b"\x1b")
    if escape >= 0:
        return escape + 1
    for at in range(len(block) - 1, max(0, len(block) - _LOOK_BACK_BYTES), -1):
        if block[at] & 0xC0 == 0x80:
            return at
    return len(block)


def test_report(world: GitLabWorld, request: Request) -> Response:
    return json_response({**entities.NO_TESTS, **world.test_reports.get(_find_pipeline(world, request).id, {})})


def test_report_summary(world: GitLabWorld, request: Request) -> Response:
    of = _find_pipeline(world, request)
    builds = [each.id for each in world.jobs if each.pipeline_id == of.id and not each.bridge and not each.retried]
    return json_response(entities.report_summary({**entities.NO_TESTS, **world.test_reports.get(of.id, {})}, builds))


_STATUS_SORT_KEYS = ("id", "pipeline_id")
EXTERNAL_STAGE = "external"


def status_routes(world: GitLabWorld) -> list[Route]:
    return [get_route(world, "/projects/{id}/repository/commits/{sha}/statuses", statuses)]


def statuses(world: GitLabWorld, request: Request) -> Response:
    """List the statuses of a commit, external ones and jobs alike.

    GitLab selects them by the sha of their pipelines: jobs of a merged result are found under the merge commit.
    """
    project = find_ci_project(world, request)
    one = resolve_ref(world, project, access.path_segment(request, "sha"))
    if one is None:
        raise error_responses.not_found("Commit")
    pipelines = {
        each.id: each
        for each in world.pipelines_of(project)
        if each.sha == one.id and _is_pipeline_selected(request, each)
    }
    listed: list[CommitStatus | CiJob] = [*world.statuses, *world.jobs]
    rows = [each for each in listed if each.pipeline_id in pipelines and _is_row_selected(request, each)]
    rows = rows if query_flag(request, "all") else latest_statuses(rows)
    key, order = (
        query_choice(request, "order_by", _STATUS_SORT_KEYS, "id"),
        query_choice(request, "sort", SORT_ORDERS, "asc"),
    )
    rows.sort(key=lambda each: (getattr(each, key), each.id), reverse=order == "desc")
    page, headers = page_with_headers(world, request, rows)
    return json_response([_status_entity(world, each, pipelines[each.pipeline_id]) for each in page], headers)


def _is_pipeline_selected(request: Request, pipeline: Pipeline) -> bool:
    only, ref = query_int(request, "pipeline_id", 0), request.query_params.get("ref")
    return (not only or pipeline.id == only) and (not ref or pipeline.ref == ref)


def _is_row_selected(request: Request, row: CommitStatus | CiJob) -> bool:
    name, stage = request.query_params.get("name"), request.query_params.get("stage")
    own_stage = row.stage if isinstance(row, CiJob) else EXTERNAL_STAGE
    return (not name or row.name == name) and (not stage or own_stage == stage)


def latest_statuses(rows: list[CommitStatus | CiJob]) -> list[CommitStatus | CiJob]:
    """Return the newest status of each name in each pipeline, without retried ones."""
    newest = {
        (each.pipeline_id, each.name): each for each in sorted(rows, key=lambda each: each.id) if not each.retried
    }
    return list(newest.values())


def _status_entity(world: GitLabWorld, row: CommitStatus | CiJob, of: Pipeline) -> Raw:
    return entities.status(world, row, of) if isinstance(row, CommitStatus) else entities.job_as_status(world, row, of)

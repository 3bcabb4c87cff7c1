"""GET: pipelines, jobs, traces, test reports.

facts 2.7. Commit statuses are in reading/statuses.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes_ci
from hummingbird.lab.gitlab.loading import moment
from hummingbird.lab.gitlab.paging import by_cursor, paged
from hummingbird.lab.gitlab.records import Pipeline, Project
from hummingbird.lab.gitlab.routing import ORDERS, flag, get, many, picked, shown
from hummingbird.lab.gitlab.store import World

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
_KEYS = ("id", "status", "ref", "updated_at", "user_id")
_PIPELINE = "/projects/{id}/pipelines/{pid}"
# a log goes out in pieces of these sizes, so that characters and colour sequences are torn apart
_ODD = (1, 2, 3, 5, 7, 11, 13, 17, 61, 127, 509)
_PIECE = 65_521
_LOOK_BACK = 1_024


def routes(world: World) -> list[Route]:
    return [
        get(world, "/projects/{id}/pipelines", pipelines),
        get(world, _PIPELINE, pipeline),
        get(world, f"{_PIPELINE}/jobs", pipeline_jobs),
        get(world, f"{_PIPELINE}/bridges", bridges),
        get(world, f"{_PIPELINE}/test_report", test_report),
        get(world, f"{_PIPELINE}/test_report_summary", test_report_summary),
        get(world, "/projects/{id}/jobs", jobs),
        get(world, "/projects/{id}/jobs/{jid}", job),
        get(world, "/projects/{id}/jobs/{jid}/trace", trace),
    ]


def found(world: World, request: Request) -> Project:
    """A project whose CI the caller may read. Raises Refused."""
    caller = access.asking(world, request)
    project = access.project(world, request, caller)
    if not access.reads_ci(world, caller, project):
        raise refusals.forbidden()
    return project


def chosen(request: Request, name: str, allowed: tuple[str, ...]) -> list[str]:
    """What a parameter picks of a fixed set. Raises Refused as the parameter check does."""
    values = many(request, name)
    if any(each not in allowed for each in values):
        raise refusals.invalid(name, "does not have a valid value")
    return values


def pipelines(world: World, request: Request) -> Response:
    rows = world.pipelines_of(found(world, request))
    for condition in _conditions(world, request):
        rows = [each for each in rows if condition(each)]
    key, order = picked(request, "order_by", _KEYS, "id"), picked(request, "sort", ORDERS, "desc")
    rows.sort(key=lambda each: (getattr(each, key), each.id), reverse=order == "desc")
    page, headers = paged(world, request, rows)
    return shown([shapes_ci.pipeline_short(world, each) for each in page], headers)


def _conditions(world: World, request: Request) -> list[Callable[[Pipeline], bool]]:
    """Raises Refused."""
    asked = request.query_params
    tests: list[Callable[[Pipeline], bool]] = [
        partial(_same, name, asked[name]) for name in ("ref", "sha", "name") if name in asked
    ]
    if states := chosen(request, "status", STATES):
        tests.append(lambda each: each.status in states)
    if sources := chosen(request, "source", SOURCES):
        tests.append(lambda each: each.source in sources)
    if "username" in asked:
        tests.append(lambda each: world.user(each.user_id).username == asked["username"])
    return [*tests, _within(request, "updated"), _within(request, "created")]


def _same(name: str, value: str, each: Pipeline) -> bool:
    return bool(getattr(each, name) == value)


def _within(request: Request, name: str) -> Callable[[Pipeline], bool]:
    return partial(_between, f"{name}_at", _time(request, f"{name}_after"), _time(request, f"{name}_before"))


def _between(name: str, after: datetime | None, before: datetime | None, each: Pipeline) -> bool:
    at = moment(getattr(each, name))
    return (after is None or at > after) and (before is None or at < before)


def _time(request: Request, name: str) -> datetime | None:
    text = request.query_params.get(name)
    try:
        return moment(text) if text else None
    except ValueError:
        raise refusals.invalid(name) from None


def _pipeline(world: World, request: Request) -> Pipeline:
    return access.pipeline(world, request, found(world, request))


def pipeline(world: World, request: Request) -> Response:
    return shown(shapes_ci.pipeline(world, _pipeline(world, request)))


def pipeline_jobs(world: World, request: Request) -> Response:
    return _jobs_of_pipeline(world, request, bridge=False)


def bridges(world: World, request: Request) -> Response:
    return _jobs_of_pipeline(world, request, bridge=True)


def _jobs_of_pipeline(world: World, request: Request, *, bridge: bool) -> Response:
    """External statuses are never among them (facts 1.1)."""
    of = _pipeline(world, request)
    states, retried = chosen(request, "scope", STATES), flag(request, "include_retried")
    rows = [
        each
        for each in world.jobs
        if each.pipeline_id == of.id
        and each.bridge == bridge
        and (retried or not each.retried)
        and (not states or each.status in states)
    ]
    page, headers = paged(world, request, sorted(rows, key=lambda each: -each.id))
    return shown([shapes_ci.job(world, each, of) for each in page], headers)


def jobs(world: World, request: Request) -> Response:
    """Retried ones too, newest first; by cursor for whoever asks so."""
    project, states = found(world, request), chosen(request, "scope", STATES)
    own = {each.id: each for each in world.pipelines_of(project)}
    rows = [
        each
        for each in world.jobs
        if each.pipeline_id in own and not each.bridge and (not states or each.status in states)
    ]
    rows.sort(key=lambda each: -each.id)
    cut = by_cursor if request.query_params.get("pagination") == "keyset" else paged
    page, headers = cut(world, request, rows)
    return shown([shapes_ci.job(world, each, own[each.pipeline_id]) for each in page], headers)


def job(world: World, request: Request) -> Response:
    return shown(shapes_ci.job(world, *access.job(world, request, found(world, request))))


def trace(world: World, request: Request) -> Response:
    """Never held: a log may be larger than memory. A job without one has an empty trace, not a missing one."""
    caller, project = access.asking(world, request), found(world, request)
    one, _of = access.job(world, request, project)
    if one.debug_trace and not access.at_least(world, caller, project, access.DEVELOPER):
        raise refusals.forbidden()
    if one.log is None or not one.log.is_file():
        return Response(b"", 200, media_type="text/plain")
    return StreamingResponse(_streamed(one.log), media_type="text/plain")


async def _streamed(log: Path) -> AsyncIterator[bytes]:
    for piece in pieces(log):
        yield piece


def pieces(log: Path) -> Iterator[bytes]:
    """Of odd sizes; the large ones end inside a colour sequence or a character wherever they hold one."""
    with log.open("rb") as file:
        for size in _ODD:
            if piece := file.read(size):
                yield piece
        rest = b""
        while block := file.read(_PIECE):
            rest += block
            cut = _inside(rest)
            yield rest[:cut]
            rest = rest[cut:]
        if rest:
            yield rest


def _inside(block: bytes) -> int:
    """Just after the last ESC, else inside a character of several bytes near the end, else the end."""
    escape = block.rfind(b"\x1b")
    if escape >= 0:
        return escape + 1
    for at in range(len(block) - 1, max(0, len(block) - _LOOK_BACK), -1):
        if block[at] & 0xC0 == 0x80:
            return at
    return len(block)


def test_report(world: World, request: Request) -> Response:
    return shown({**shapes_ci.NO_TESTS, **world.test_reports.get(_pipeline(world, request).id, {})})


def test_report_summary(world: World, request: Request) -> Response:
    of = _pipeline(world, request)
    builds = [each.id for each in world.jobs if each.pipeline_id == of.id and not each.bridge and not each.retried]
    return shown(shapes_ci.report_summary({**shapes_ci.NO_TESTS, **world.test_reports.get(of.id, {})}, builds))

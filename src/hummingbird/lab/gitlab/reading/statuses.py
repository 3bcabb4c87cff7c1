"""GET: the statuses of a commit, external ones and native jobs alike.

facts 2.5. They are picked by the pipelines whose sha it is: jobs of a merged result are found under the merge commit.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals, shapes_ci
from hummingbird.lab.gitlab.paging import paged, whole
from hummingbird.lab.gitlab.reading.ci import found
from hummingbird.lab.gitlab.reading.repository import resolved
from hummingbird.lab.gitlab.records import Job, Pipeline, Raw, Status
from hummingbird.lab.gitlab.routing import ORDERS, flag, get, picked, shown
from hummingbird.lab.gitlab.store import World

_KEYS = ("id", "pipeline_id")
EXTERNAL_STAGE = "external"


def routes(world: World) -> list[Route]:
    return [get(world, "/projects/{id}/repository/commits/{sha}/statuses", statuses)]


def statuses(world: World, request: Request) -> Response:
    project = found(world, request)
    one = resolved(world, project, access.segment(request, "sha"))
    if one is None:
        raise refusals.not_found("Commit")
    pipelines = {
        each.id: each for each in world.pipelines_of(project) if each.sha == one.id and _of_interest(request, each)
    }
    listed: list[Status | Job] = [*world.statuses, *world.jobs]
    rows = [each for each in listed if each.pipeline_id in pipelines and _wanted(request, each)]
    rows = rows if flag(request, "all") else latest(rows)
    key, order = picked(request, "order_by", _KEYS, "id"), picked(request, "sort", ORDERS, "asc")
    rows.sort(key=lambda each: (getattr(each, key), each.id), reverse=order == "desc")
    page, headers = paged(world, request, rows)
    return shown([_shown(world, each, pipelines[each.pipeline_id]) for each in page], headers)


def _of_interest(request: Request, pipeline: Pipeline) -> bool:
    only, ref = whole(request, "pipeline_id", 0), request.query_params.get("ref")
    return (not only or pipeline.id == only) and (not ref or pipeline.ref == ref)


def _wanted(request: Request, row: Status | Job) -> bool:
    name, stage = request.query_params.get("name"), request.query_params.get("stage")
    own_stage = row.stage if isinstance(row, Job) else EXTERNAL_STAGE
    return (not name or row.name == name) and (not stage or own_stage == stage)


def latest(rows: list[Status | Job]) -> list[Status | Job]:
    """The newest of each name in each pipeline; what was retried is not it."""
    newest = {
        (each.pipeline_id, each.name): each for each in sorted(rows, key=lambda each: each.id) if not each.retried
    }
    return list(newest.values())


def _shown(world: World, row: Status | Job, of: Pipeline) -> Raw:
    return shapes_ci.status(world, row, of) if isinstance(row, Status) else shapes_ci.job_as_status(world, row, of)

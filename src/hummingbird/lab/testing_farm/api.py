"""Testing Farm's API: a request by its id, which anybody may read. Facts: section 5."""

import uuid

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from hummingbird.lab.planned import Planned
from hummingbird.lab.testing_farm.world import TestingFarmWorld


def testing_farm_application(world: TestingFarmWorld) -> ASGIApp:
    async def request(asked: Request) -> JSONResponse:
        id_ = asked.path_params["id"]
        if not _is_uuid(id_):
            return _refusal(400, "Invalid request id, it is not a UUID.")
        found = world.request(id_)
        return _refusal(404, "No such entity.") if found is None else JSONResponse(found)

    async def nothing(_asked: Request, _problem: Exception) -> JSONResponse:
        return _refusal(404, "Not found.")

    async def not_allowed(_asked: Request, _problem: Exception) -> JSONResponse:
        return _refusal(405, "Method not allowed.")

    routes = [Route("/v0.1/requests/{id}", request, methods=["GET"])]
    application = Starlette(routes=routes, exception_handlers={404: nothing, 405: not_allowed})
    return Planned("testing_farm", application, world.api_faults, world.requests)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _refusal(code: int, message: str) -> JSONResponse:
    return JSONResponse({"code": code, "message": message}, code)

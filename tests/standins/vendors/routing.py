"""Which address belongs to which vendor. One server, a prefix per vendor, the vendors' own paths below it."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.standins.vendors.access import admit_key
from tests.standins.vendors.anthropic_api import AnthropicSurface
from tests.standins.vendors.desk import Desk, Window
from tests.standins.vendors.gemini_api import GeminiSurface
from tests.standins.vendors.models import claude
from tests.standins.vendors.openai_chat_api import ChatSurface
from tests.standins.vendors.openai_responses_api import ResponsesSurface
from tests.standins.vendors.refusals import Raw, Refusal
from tests.standins.vendors.surfaces import Conduct, Numbers, Surface, SurfaceName

Endpoint = Callable[[Request], Awaitable[Response]]
_PROJECT = "projects/{project}/locations/{location}/publishers"
ROUTES: dict[SurfaceName, tuple[str, ...]] = {
    "anthropic": ("/anthropic/v1/messages",),
    "vertex-anthropic": (f"/vertex/v1/{_PROJECT}/anthropic/models/{{call}}",),
    "gemini": ("/gemini/v1beta/models/{call}", "/gemini/v1/models/{call}"),
    "vertex-gemini": tuple(f"/vertex/{version}/{_PROJECT}/google/models/{{call}}" for version in ("v1", "v1beta1")),
    "openai-chat": ("/openai/v1/chat/completions",),
    "openai-responses": ("/openai/v1/responses",),
}
_VERBS = {
    "vertex-anthropic": {"rawPredict": False, "streamRawPredict": True},
    "gemini": {"generateContent": False, "streamGenerateContent": True},
    "vertex-gemini": {"generateContent": False, "streamGenerateContent": True},
}


def application(desk: Desk, conduct: Conduct, clock: Callable[[], float], numbers: Numbers) -> Starlette:
    surfaces: dict[SurfaceName, Surface] = {
        "anthropic": AnthropicSurface(conduct, clock, numbers),
        "vertex-anthropic": AnthropicSurface(conduct, clock, numbers),
        "gemini": GeminiSurface(conduct, clock, numbers),
        "vertex-gemini": GeminiSurface(conduct, clock, numbers),
        "openai-chat": ChatSurface(conduct, clock, numbers),
        "openai-responses": ResponsesSurface(conduct, clock, numbers),
    }
    routes = [
        Route(path, _endpoint(desk, name, surfaces[name]), methods=["POST"])
        for name, paths in ROUTES.items()
        for path in paths
    ]
    models = _models(surfaces["anthropic"], desk.keys)
    return Starlette(routes=[*routes, Route("/anthropic/v1/models/{id}", models, methods=["GET"])])


def _endpoint(desk: Desk, name: SurfaceName, surface: Surface) -> Endpoint:
    in_path = name in _VERBS

    def model(request: Request, body: Raw) -> str:
        if in_path:
            return str(request.path_params["call"]).rpartition(":")[0]
        if not isinstance(body.get("model"), str) or not body["model"]:
            # the SDK's request types: model is required
            raise Refusal(400, "invalid_request_error", "model: Field required", param="model")
        return str(body["model"])

    def streams(request: Request, body: Raw) -> bool:
        if not in_path:
            return body.get("stream") is True
        verb = str(request.path_params["call"]).rpartition(":")[2]
        if verb not in _VERBS[name]:
            # from memory, not in the facts: an unknown verb is not found
            raise Refusal(404, "NOT_FOUND", f"no method {verb} here")
        in_events = name == "vertex-anthropic" or request.query_params.get("alt") == "sse"
        return _VERBS[name][verb] and in_events

    window = Window(name, surface, model, streams)

    async def endpoint(request: Request) -> Response:
        return await desk.serve(window, request)

    return endpoint


def _models(surface: Surface, keys: frozenset[str] | None) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            admit_key("models", dict(request.headers), "", keys)
            found = claude(request.path_params["id"])
            if found is None:
                # facts/llm.md 1: NotFound is 404; that an unknown model is one is from memory
                raise Refusal(404, "not_found_error", f"model: {request.path_params['id']}")
        except Refusal as refusal:
            return JSONResponse(surface.refused(refusal), refusal.status)
        # facts/llm.md 1: models.retrieve tells max_input_tokens and max_tokens; Claude API only
        return JSONResponse(
            {
                "id": request.path_params["id"],
                "type": "model",
                "display_name": found.id,
                "created_at": datetime(2026, 9, 1, tzinfo=UTC).isoformat(),
                "lifecycle": "active",
                "line": found.family,
                "max_input_tokens": found.window,
                "max_tokens": 128_000,
            }
        )

    return endpoint

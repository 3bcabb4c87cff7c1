"""GET: what a token is, asked with the token itself. Every scope is enough for that, and the value is never shown."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hummingbird.lab.gitlab import access, refusals
from hummingbird.lab.gitlab.routing import get, shown
from hummingbird.lab.gitlab.store import World


def routes(world: World) -> list[Route]:
    return [get(world, "/personal_access_tokens/self", myself)]


def myself(world: World, request: Request) -> Response:
    caller = access.known(world, request)
    if caller.token is None or caller.user is None:
        raise refusals.unauthorized()
    number = world.tokens.index(caller.token) + 1
    return shown(
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

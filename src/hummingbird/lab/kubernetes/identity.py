"""Who sent a request: the bearer token, from its header or from its address.

Knows where a token stands; not whose it is.
"""

from starlette.requests import HTTPConnection

TOKEN_PREFIX = "/as/"  # noqa: S105  # where in an address a token stands, not a token


def identity(connection: HTTPConnection) -> tuple[str, str]:
    """The token and the address. kubectl sends no token over plain HTTP, so that it may stand in the address."""
    path = connection.scope["path"]
    token = ""
    if path.startswith(TOKEN_PREFIX):
        token, _, rest = path.removeprefix(TOKEN_PREFIX).partition("/")
        path = f"/{rest}"
    scheme, _, given = connection.headers.get("authorization", "").partition(" ")
    return (given.strip() if scheme.lower() == "bearer" else token), path

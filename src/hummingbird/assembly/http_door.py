"""An application on a port of this machine until it is told to stop. Who may reach it is checked before it opens.

Every port that we serve to others is an `HttpDoor`, so that its connections are bounded (http_connections.py).
"""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from hummingbird.assembly.http_connections import (
    ACCEPTS_AT_ONCE,
    BoundedConnection,
    ConnectionLimits,
    ConnectionTable,
)
from hummingbird.domain.errors import MissingSetting, UsageFault
from hummingbird.domain.limits import SERVE_CLOSING_S

_BACKLOG = 2048


class HttpDoor:
    """Takes the port at once, so that whoever cannot have it is told before anything else begins. Raises UsageFault."""

    def __init__(self, application: Any, host: str, port: int, limits: ConnectionLimits | None = None) -> None:
        self._socket = listener(host, port)
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            application,
            http=BoundedConnection,
            ws="none",  # a connection that becomes a WebSocket would have no bounds, and we serve none
            backlog=ACCEPTS_AT_ONCE,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=int(SERVE_CLOSING_S),
        )
        self._server = _Server(config, limits or ConnectionLimits())

    async def run(self) -> None:
        """Until there is a stop; what is being answered is answered."""
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        self._server.should_exit = True

    def close(self) -> None:
        """For a door that never ran."""
        self._socket.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, limits: ConnectionLimits) -> None:
        super().__init__(config)
        self.server_state = ConnectionTable(limits)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Let many wait for a connection, though few are accepted at once: asyncio takes one number for both."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(_BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are for the whole service, not for one of its doors."""
        yield


def check_reach(host: str, *, guarded: bool) -> None:
    """Without a secret anybody who reaches the door could make us work. Raises MissingSetting."""
    if not guarded and not is_loopback(host):
        raise MissingSetting(
            f"Webhooks on {host} could come from anybody: set HUMMINGBIRD_WEBHOOK_SECRET or "
            "HUMMINGBIRD_WEBHOOK_SIGNING_TOKEN as in GitLab, or serve on 127.0.0.1 alone."
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listener(host: str, port: int) -> socket.socket:
    """Raises UsageFault."""
    # asyncio sends without delay only on sockets that name TCP as their protocol; others cost 40 ms an answer
    door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if door.family == socket.AF_INET6:
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        door.bind((host, port))
        door.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        door.close()
        why = getattr(error, "strerror", None) or str(error)
        raise UsageFault(
            f"Port {port} of {host} cannot be served on: {why}. Name others with --port or --host."
        ) from error
    return door

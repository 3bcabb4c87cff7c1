"""Bound what strangers can do to an HTTP port by holding connections open.

Whoever is connected may keep us waiting for a short time only: for a request, for its body, for reading our answer.
There is no bound on how long we take to answer, so a live page stays open for days. When all connections are taken, a
newcomer takes the place of the one that has kept us waiting for longest. Health checks and GitLab send a whole request
at once, so they get their answer however many others hold connections open.

No address has a limit of its own: behind a proxy, everybody comes from the same address.
"""

import asyncio
import enum
import ipaddress
import logging
import math
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from hummingbird.core.errors import MissingSetting, UsageError
from hummingbird.core.limits import EVENT_BODY_S, SERVE_CLOSING_S

ACCEPTS_AT_ONCE = 8  # new connections that asyncio accepts before the oldest ones can be closed for them
_MAX_CONNECTIONS = 1000
_WARNING_PAUSE_S = 60.0
_log = logging.getLogger("hummingbird.http")


def max_connections() -> int:
    """Return how many connections to hold: half of the files that may be open, as runs and stores need the others."""
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if open_files == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    return max(1, min(_MAX_CONNECTIONS, open_files // 2))


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections a port holds, and how long each of them may keep us waiting."""

    connections: int = field(default_factory=max_connections)
    request_s: float = 10.0  # from the beginning of a connection or the last answer to the end of a request's headers
    body_s: float = EVENT_BODY_S + 10  # later than the webhook's own deadline, which is answered with a sentence
    reading_s: float = 30.0  # without reading any of an answer that fills the buffers


class AwaitedPart(enum.Enum):
    """What we wait for before a connection can go on."""

    REQUEST = enum.auto()
    BODY = enum.auto()
    READING = enum.auto()
    NOTHING = enum.auto()  # it waits for us


class ConnectionTable(ServerState):
    """All connections of one port; drops one when there are too many."""

    def __init__(self, limits: ConnectionLimits) -> None:
        super().__init__()
        self.limits = limits
        self._held: dict[BoundedConnection, None] = {}
        self._waited_for: dict[BoundedConnection, None] = {}  # in the order in which we began to wait
        self._dropped = 0
        self._next_warning = -math.inf

    def add(self, connection: "BoundedConnection") -> None:
        """Hold a new connection, in place of another one if there is no room."""
        if len(self._held) >= self.limits.connections:
            oldest = next(iter(self._waited_for or self._held))
            oldest.drop()
            self._warn_of_drop()
        self._held[connection] = None

    def remove(self, connection: "BoundedConnection") -> None:
        self._held.pop(connection, None)
        self._waited_for.pop(connection, None)

    def has(self, connection: "BoundedConnection") -> bool:
        return connection in self._held

    def mark(self, connection: "BoundedConnection", awaited: AwaitedPart) -> None:
        """Note that from now on we wait for the connection, or that we no longer do."""
        self._waited_for.pop(connection, None)
        if awaited is not AwaitedPart.NOTHING:
            self._waited_for[connection] = None

    def deadline_s(self, awaited: AwaitedPart) -> float | None:
        return {
            AwaitedPart.REQUEST: self.limits.request_s,
            AwaitedPart.BODY: self.limits.body_s,
            AwaitedPart.READING: self.limits.reading_s,
        }.get(awaited)

    def _warn_of_drop(self) -> None:
        self._dropped += 1
        if (now := time.monotonic()) >= self._next_warning:
            self._next_warning = now + _WARNING_PAUSE_S
            _log.warning(
                "All %d connections are taken: dropped %d that kept us waiting for longest, to let others in.",
                self.limits.connections,
                self._dropped,
            )
            self._dropped = 0


class BoundedConnection(H11Protocol):
    """A connection of uvicorn that is closed when its client keeps us waiting for too long.

    The server's state is the table of all connections.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        assert isinstance(server_state, ConnectionTable)
        super().__init__(config, server_state, app_state, _loop)
        self._table = server_state
        self._awaited = AwaitedPart.NOTHING
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._table.add(self)
        self._update_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave_table()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_deadline()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._update_deadline()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._update_deadline()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._update_deadline()

    def drop(self) -> None:
        """Close the connection now, without sending what is still to be sent."""
        self._leave_table()
        self.transport.abort()

    def _leave_table(self) -> None:
        self._table.remove(self)
        if self._deadline is not None:
            self._deadline.cancel()

    def _update_deadline(self) -> None:
        """Start a deadline when we begin to wait for something else; bytes that trickle in do not move it."""
        awaited = self._find_awaited()
        if awaited is self._awaited or not self._table.has(self):
            return
        self._awaited = awaited
        self._table.mark(self, awaited)
        if self._deadline is not None:
            self._deadline.cancel()
        seconds = self._table.deadline_s(awaited)
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.drop)

    def _find_awaited(self) -> AwaitedPart:
        if self.transport.is_closing() or self.flow.write_paused:
            return AwaitedPart.READING
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]  # None at first
            return AwaitedPart.REQUEST
        return AwaitedPart.BODY if self.cycle.more_body else AwaitedPart.NOTHING


# Every port that we serve to others is a BoundedHttpServer, so that its connections are bounded.


_BACKLOG = 2048


class BoundedHttpServer:
    """An HTTP server that takes its port in the constructor, so that a port in use is reported before anything starts.

    The constructor raises UsageError.
    """

    def __init__(self, application: Any, host: str, port: int, limits: ConnectionLimits | None = None) -> None:
        self._socket = open_listener(host, port)
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
        self._server = _BoundedUvicorn(config, limits or ConnectionLimits())

    async def run(self) -> None:
        """Serve until `stop`; requests that are being answered are finished."""
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        self._server.should_exit = True

    def close(self) -> None:
        """Close the port of a server that never ran."""
        self._socket.close()


class _BoundedUvicorn(uvicorn.Server):
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
        """Leave signals alone: they are for the whole service."""
        yield


def check_exposure(host: str, *, guarded: bool) -> None:
    """Check that a port that is open to others has a secret; without one, anybody could start runs.

    Raises MissingSetting.
    """
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


def open_listener(host: str, port: int) -> socket.socket:
    """Open the listening socket.

    Raises UsageError.
    """
    # asyncio sends without delay only on sockets that name TCP as their protocol; others cost 40 ms an answer
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listener.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"Port {port} of {host} cannot be served on: {why}. Name others with --port or --host."
        ) from error
    return listener

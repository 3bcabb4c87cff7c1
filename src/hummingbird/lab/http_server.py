"""Serve ASGI applications over HTTP on loopback, in one thread, each on its own port.

    with LabServer({"gitlab": app, "testing_farm": other}) as server:
        server.url("gitlab")

All stand-ins of the lab are served this way. Servers start in milliseconds and leave no thread or socket behind.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

TRANSPORT_KEY = "hummingbird.lab.transport"
Answer = TypeVar("Answer")


class LabServer:
    """Serves applications by name until it is closed.

    `ports` asks for certain ports; otherwise the system chooses. `doors` are listeners that are already open, because
    an application had to know its own address. An application finds the connection of a request under `TRANSPORT_KEY`
    in its scope, so that it can break it.
    """

    def __init__(
        self,
        applications: Mapping[str, Any],
        ports: Mapping[str, int] | None = None,
        *,
        listeners: Mapping[str, socket.socket] | None = None,
        name: str = "lab",
    ) -> None:
        self._applications = dict(applications)
        self._listeners = dict(listeners or {})
        self._ports = {
            **(ports or {}),
            **{each: listener.getsockname()[1] for each, listener in self._listeners.items()},
        }
        self._name = name
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def url(self, application: str) -> str:
        """Return the address of an application that is served, or whose port was given; no slash at its end."""
        return f"http://127.0.0.1:{self._ports[application]}"

    def __enter__(self) -> Self:
        listeners = {
            name: self._listeners.get(name) or open_listener(self._ports.get(name, 0)) for name in self._applications
        }
        self._ports = {name: sock.getsockname()[1] for name, sock in listeners.items()}
        self._thread = threading.Thread(target=self._run, args=(listeners,), name=self._name, daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving. May be called twice."""
        thread, self._thread = self._thread, None
        if thread is not None and self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            thread.join()

    def run_in_server(self, question: Callable[[], Answer]) -> Answer:
        """Call `question` in the servers' own thread, where no request changes anything meanwhile."""
        assert self._loop is not None

        async def answer() -> Answer:
            return question()

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result()

    def _run(self, listeners: Mapping[str, socket.socket]) -> None:
        try:
            asyncio.run(self._serve(listeners))
        finally:
            self._ready.set()

    async def _serve(self, listeners: Mapping[str, socket.socket]) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        state = ServerState()
        servers = [
            await self._loop.create_server(protocol_factory(uvicorn_config(self._applications[name]), state), sock=sock)
            for name, sock in listeners.items()
        ]
        self._ready.set()
        await self._stopping.wait()
        for server in servers:
            server.close()
        await close_connections(state)


def protocol_factory(config: Config, state: ServerState) -> Callable[[], H11Protocol]:
    """Return a factory of connections for `loop.create_server`."""
    return lambda: TransportProtocol(config, state, {})


def uvicorn_config(application: Any, **more: Any) -> Config:
    """Return a quiet configuration for uvicorn, overridden by `more`."""
    config = Config(
        application,
        **{
            "interface": "asgi3",
            "ws": "none",
            "lifespan": "off",
            "log_config": None,
            "access_log": False,
            "proxy_headers": False,
            "timeout_keep_alive": 600,
            **more,
        },
    )
    config.load()
    return config


def open_listener(port: int) -> socket.socket:
    """Open a listening socket on loopback. Raises OSError for a port that is taken."""
    # asyncio disables Nagle's delay only on sockets that name TCP as their protocol; others cost 40 ms per response.
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
        found.listen()  # with SO_REUSEADDR two sockets may bind a port: only listening tells that it is taken
    except OSError:
        found.close()
        raise
    return found


async def close_connections(state: ServerState) -> None:
    """Close the connections that clients left open, and wait for running responses to notice."""
    for connection in list(state.connections):
        connection.transport.abort()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    await asyncio.sleep(0)  # an aborted connection closes its socket in the next iteration of the loop


class TransportProtocol(H11Protocol):
    """uvicorn's protocol, which gives the connection to the application so that faults can close it."""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, app_state)
        inner = self.app

        async def app_with_transport(scope: Any, receive: Any, send: Any) -> None:
            scope[TRANSPORT_KEY] = self.transport
            await inner(scope, receive, send)

        self.app = app_with_transport

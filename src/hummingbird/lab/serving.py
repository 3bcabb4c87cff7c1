"""HTTP servers on loopback in a thread of their own: how every stand-in of the lab is served.

    with Serving({"gitlab": app, "testing_farm": other}) as serving:
        serving.url("gitlab")

They start in milliseconds, leave no thread or socket behind, and answer sync and async clients. Each application has a
port. Knows nothing of what they say.
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

TRANSPORT = "hummingbird.lab.transport"
Answer = TypeVar("Answer")


class Serving:
    """`ports` wants certain ones; without, the system chooses. `doors` are listeners that somebody has opened already,
    because an application had to know its own address. An application finds the connection of a request under TRANSPORT
    in its scope, so that it can break it."""

    def __init__(
        self,
        applications: Mapping[str, Any],
        ports: Mapping[str, int] | None = None,
        *,
        doors: Mapping[str, socket.socket] | None = None,
        name: str = "lab",
    ) -> None:
        self._applications = dict(applications)
        self._doors = dict(doors or {})
        self._ports = {**(ports or {}), **{each: door.getsockname()[1] for each, door in self._doors.items()}}
        self._name = name
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None

    def url(self, application: str) -> str:
        """Of one that is served, or whose port was given. No slash at its end."""
        return f"http://127.0.0.1:{self._ports[application]}"

    def __enter__(self) -> Self:
        listeners = {name: self._doors.get(name) or listener(self._ports.get(name, 0)) for name in self._applications}
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
        """May be called twice."""
        thread, self._thread = self._thread, None
        if thread is not None and self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            thread.join()

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer, found in the servers' own thread: what they change there is not changed meanwhile."""
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
            await self._loop.create_server(made_by(configured(self._applications[name]), state), sock=sock)
            for name, sock in listeners.items()
        ]
        self._ready.set()
        await self._stopping.wait()
        for server in servers:
            server.close()
        await settled(state)


def made_by(config: Config, state: ServerState) -> Callable[[], H11Protocol]:
    return lambda: _Tapped(config, state, {})


def configured(application: Any, **more: Any) -> Config:
    """uvicorn's, quiet, with what `more` says."""
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


def listener(port: int) -> socket.socket:
    """Raises OSError for a port that is taken."""
    # asyncio sends without delay only on sockets that name TCP as their protocol; others cost 40 ms an answer
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(("127.0.0.1", port))
        found.listen()  # two that reuse addresses may both bind a port: only listening finds out that it is taken
    except OSError:
        found.close()
        raise
    return found


async def settled(state: ServerState) -> None:
    """Close what clients left open and wait for the answers under way to notice."""
    for connection in list(state.connections):
        connection.transport.abort()
    await asyncio.gather(*state.tasks, return_exceptions=True)
    await asyncio.sleep(0)  # an aborted connection closes its socket in the loop's next round


class _Tapped(H11Protocol):
    """uvicorn's protocol, with the connection within reach of the application so that faults can close it."""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any]) -> None:
        super().__init__(config, server_state, app_state)
        inner = self.app

        async def tapped(scope: Any, receive: Any, send: Any) -> None:
            scope[TRANSPORT] = self.transport
            await inner(scope, receive, send)

        self.app = tapped

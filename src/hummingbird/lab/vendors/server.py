"""One HTTP server that answers as the model vendors do, on a port of its own, in a thread of its own.

    with VendorLab(Script([Turn(text="done")])) as lab:
        client = Anthropic(base_url=lab.anthropic_url, api_key="any")

It starts in milliseconds, leaves no thread or socket behind, and works for sync and async clients. By hand:
`python -m hummingbird.lab.vendors.server --port 8080 --script answers.json`.
"""

import argparse
import asyncio
import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from hummingbird.lab.vendors.desk import Desk
from hummingbird.lab.vendors.faults import TRANSPORT
from hummingbird.lab.vendors.recording import Recorded
from hummingbird.lab.vendors.routing import application
from hummingbird.lab.vendors.script import Script, read_script
from hummingbird.lab.vendors.surfaces import Conduct, Numbers


class VendorLab:
    """A context manager; `script` decides the answers, `conduct` what depends on account or server.

    keys   the keys that are accepted; None takes any but "bad-key" (401) and "no-credit" (out of money)
    clock  the time that the simulated caches live by
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        conduct: Conduct | None = None,
        keys: Collection[str] | None = None,
        port: int = 0,
    ) -> None:
        self.script = script if script is not None else Script()
        self.keys = None if keys is None else frozenset(keys)
        self._port = port
        numbers = Numbers()
        self._desk = Desk(self.script, numbers, self.keys)
        self._app = application(self._desk, conduct or Conduct(), clock, numbers)
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def anthropic_url(self) -> str:
        return f"{self.url}/anthropic"

    @property
    def gemini_url(self) -> str:
        return f"{self.url}/gemini"

    @property
    def openai_url(self) -> str:
        """With /v1, as OpenAI's own address has it."""
        return f"{self.url}/openai/v1"

    @property
    def vertex_url(self) -> str:
        """Without a version: Gemini's client appends v1beta1, Anthropic's wants /v1 appended by its caller."""
        return f"{self.url}/vertex"

    @property
    def requests(self) -> list[Recorded]:
        return self._desk.records

    def __enter__(self) -> Self:
        listener = _listener(self._port)
        self._port = listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, args=(listener,), name="vendor-lab", daemon=True)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        if self._thread is not None:
            self._thread.join()

    def _run(self, listener: socket.socket) -> None:
        asyncio.run(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        config = Config(
            self._app,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=600,
        )
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        self._stop = lambda: _wake(loop, stopping)
        server = await loop.create_server(lambda: _Tapped(config, state, {}), sock=listener)
        self._ready.set()
        await stopping.wait()
        server.close()
        await _settle(state)


def _listener(port: int) -> socket.socket:
    # asyncio sends without delay only on sockets that name TCP as their protocol; others cost 40 ms an answer
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        raise
    return listener


def _wake(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    loop.call_soon_threadsafe(event.set)


async def _settle(state: ServerState) -> None:
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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Stand-ins for the model vendors' APIs.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, required=True, help="a JSON list of turns and faults")
    chosen = parser.parse_args(arguments)
    with VendorLab(read_script(chosen.script), port=chosen.port) as lab:
        sys.stdout.write(f"{lab.anthropic_url}\n{lab.gemini_url}\n{lab.openai_url}\n{lab.vertex_url}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

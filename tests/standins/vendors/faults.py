"""Playing faults on the wire: answers that stop, stall, lie or never come.

It deals in bytes and connections; what the bytes would have meant is the surface's business.
"""

import asyncio
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hummingbird.lab.fault_injection import reset_connection, wait_for_disconnect, wait_while_connected
from hummingbird.lab.http_server import TRANSPORT_KEY

GARBAGE = b"<html><body>upstream connect error or disconnect/reset before headers</body></html>"


class Whole(Response):
    """A JSON or text answer."""

    def __init__(self, body: Any, status: int, headers: Mapping[str, str]) -> None:
        text = isinstance(body, str)
        content = body if text else json.dumps(body, ensure_ascii=False)
        kind = "text/plain; charset=utf-8" if text else "application/json"
        super().__init__(content, status, dict(headers), kind)


class Streamed(Response):
    """Server-sent events in as many pieces as there are events, then possibly silence or a cut."""

    def __init__(
        self,
        frames: Sequence[bytes],
        headers: Mapping[str, str],
        *,
        ending: str = "whole",
        kind: str = "text/event-stream; charset=utf-8",
    ) -> None:
        super().__init__(None, 200, dict(headers), kind)
        self._frames = frames
        self._ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kept = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": self.status_code, "headers": kept})
        for frame in self._frames:
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        if self._ending == "stall":
            await wait_for_disconnect(receive)
        elif self._ending == "cut":
            scope[TRANSPORT_KEY].close()
            await wait_for_disconnect(receive)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class Dropped(Response):
    """No answer: the connection closes."""

    async def __call__(self, scope: Scope, receive: Receive, _send: Send) -> None:
        await reset_connection(scope, receive)


class Slow(Response):
    """Another response, after a delay and once an event is set; given up when the client leaves."""

    def __init__(self, inner: Response, delay_s: float, until: threading.Event | None = None) -> None:
        super().__init__()
        self._inner = inner
        self._delay_s = delay_s
        self._until = until

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if heard := await wait_while_connected(self._wait(), receive):
            await self._inner(scope, heard, send)

    async def _wait(self) -> None:
        await asyncio.sleep(self._delay_s)
        while self._until is not None and not self._until.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)


def cut_frames(frames: Sequence[bytes], after: int | None) -> list[bytes]:
    """The first `after` events and half of the next one; all but the last event if nothing is said."""
    whole = len(frames) - 1 if after is None else min(after, len(frames) - 1)
    broken = frames[whole]
    return [*frames[:whole], broken[: len(broken) // 2]]

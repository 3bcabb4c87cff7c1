"""Plan faults of a stand-in: what it does wrong on purpose, on which request and how often; and record its requests.

    faults.plan("*/pipelineruns", Truncate(5_000))
    faults.plan("*/log", FaultResponse(503, "try again"), times=2, after=1)
    faults.plan("*/notes", DropConnection(), method="POST", after_write=True)

Faults work on bytes, paths and connections in front of an application; the error messages of a certain server are in
that server's package. A test should find `faults.unused_faults` empty at its end: a fault that never happened proved
nothing.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote_plus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hummingbird.lab.http_server import TRANSPORT_KEY

_BREAK_OFF = "hummingbird.lab.break_off"


class FaultGate:
    """Opened by a test while a server in another thread waits. `reached` is set once a request waits at the gate."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._lock = threading.Lock()
        self._opened = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        with self._lock:
            self._opened = True
            for loop, event in self._waiting:
                loop.call_soon_threadsafe(event.set)

    async def wait_until_open(self) -> None:
        event = asyncio.Event()
        with self._lock:
            if self._opened:
                event.set()
            self._waiting.append((asyncio.get_running_loop(), event))
        self.reached.set()
        try:
            await event.wait()
        finally:
            with self._lock:
                self._waiting = [each for each in self._waiting if each[1] is not event]


@dataclass(frozen=True, slots=True)
class FaultResponse:
    """Send this instead of the application's response. A `body` that is neither text nor bytes is sent as JSON."""

    status: int = 503
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RawResponse:
    """Write these bytes to the connection and close it, for what ASGI cannot express."""

    content: bytes


@dataclass(frozen=True, slots=True)
class DropConnection:
    """Reset the connection without a response."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the application's response after so many bytes on the wire and close the connection."""

    after: int


@dataclass(frozen=True, slots=True)
class BreakOff:
    """End the application's response early, but valid for HTTP and gzip, so that only the content is incomplete.

    Works only for applications within `allow_break_off`.
    """

    after: int


@dataclass(frozen=True, slots=True)
class Redirect:
    """Redirect to anywhere: another host, an IP address, `file:`, or back to where the request came from."""

    url: str
    status: int = 302


@dataclass(frozen=True, slots=True)
class Slow:
    """Delay the application's response; send none if the client leaves first."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Wait until the gate opens or the client leaves; then play `then`, or the application's own response."""

    until: FaultGate
    then: "Fault | None" = None


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """Send bytes that are made while they are sent, of any length. `pieces` is called once per request."""

    pieces: Callable[[], Iterable[bytes]]
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


Fault = FaultResponse | RawResponse | DropConnection | Truncate | BreakOff | Redirect | Slow | Hold | StreamedBody


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request as it arrived. `headers` have lower-case names; `query` is not decoded."""

    server: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]


@dataclass(slots=True)
class PlannedFault:
    """A fault with the requests it is meant for; `Faults.plan` explains the fields."""

    pattern: str
    fault: Fault
    times: int
    after: int
    query: str
    method: str
    after_write: bool

    def matches(self, seen: ReceivedRequest) -> bool:
        """Tell whether method, path and query fit the plan."""
        if self.method not in ("*", seen.method):
            return False
        return fnmatchcase(seen.path, self.pattern) and fnmatchcase(unquote_plus(seen.query), self.query)


class Faults:
    """The planned faults of a server. May be used from any thread; the first plan that fits a request is played."""

    def __init__(self) -> None:
        self._plans: list[PlannedFault] = []
        self._lock = threading.Lock()

    def plan(
        self,
        path_pattern: str,
        fault: Fault,
        times: int = 1,
        *,
        after: int = 0,
        query: str = "*",
        method: str = "*",
        after_write: bool = False,
    ) -> None:
        """Plan a fault for the next `times` matching requests, after `after` of them have passed.

        A request matches if its method, path and decoded query fit; in patterns, * stands for anything, also slashes.
        With `after_write` the application handles the request first, and the fault hits its response.
        """
        with self._lock:
            self._plans.append(PlannedFault(path_pattern, fault, times, after, query, method, after_write))

    @property
    def unused_faults(self) -> list[Fault]:
        """The faults that have not happened yet."""
        with self._lock:
            return [plan.fault for plan in self._plans for _ in range(plan.times)]

    def take_fault(self, seen: ReceivedRequest) -> PlannedFault | None:
        """Return the fault for this request, if one is due, and count it."""
        with self._lock:
            plan = next((each for each in self._plans if each.matches(seen)), None)
            if plan is None:
                return None
            if plan.after:
                plan.after -= 1
                return None
            plan.times -= 1
            if not plan.times:
                self._plans.remove(plan)
            return plan


class FaultMiddleware:
    """An application that plays planned faults. Appends every request to `requests`, if given."""

    def __init__(
        self, server: str, application: ASGIApp, faults: Faults, requests: list[ReceivedRequest] | None = None
    ) -> None:
        self._server = server
        self._application = application
        self._faults = faults
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = _request_from_scope(self._server, scope)
        if self._requests is not None:
            self._requests.append(seen)
        application, plan = self._application, self._faults.take_fault(seen)
        # The application itself carries out BreakOff while it handles the request.
        if plan and plan.after_write and not isinstance(plan.fault, BreakOff):
            application = await _record_response(application, scope, receive)
        await _play_fault(plan.fault if plan else None, application, scope, receive, send)


async def _play_fault(fault: Fault | None, application: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    match fault:
        case None:
            await application(scope, receive, send)
        case FaultResponse(status, body, headers):
            await _send_response(
                send, status, _encode_body(body), {"content-type": _content_type(body), **_lower_names(headers)}
            )
        case Redirect(url, status):
            await _send_response(send, status, b"", {"location": url})
        case RawResponse(content):
            scope[TRANSPORT_KEY].write(content)
            scope[TRANSPORT_KEY].close()
            await wait_for_disconnect(receive)
        case DropConnection():
            await reset_connection(scope, receive)
        case Truncate(after):
            cutting = TruncatingSender(scope, send, after)
            await application(scope, receive, cutting)
            if cutting.done:
                await wait_for_disconnect(receive)
        case BreakOff(after):
            await application({**scope, _BREAK_OFF: after}, receive, send)
        case StreamedBody(pieces, headers, status):
            await _send_pieces(send, status, _lower_names(headers), pieces())
        case Slow(delay_s):
            if replayed := await wait_while_connected(asyncio.sleep(delay_s), receive):
                await application(scope, replayed, send)
        case Hold(until, then):
            if replayed := await wait_while_connected(until.wait_until_open(), receive):
                await _play_fault(then, application, scope, replayed, send)


async def _record_response(application: ASGIApp, scope: Scope, receive: Receive) -> ASGIApp:
    """Run the application and return another one that sends the recorded response."""
    kept: list[Message] = []

    async def keep(message: Message) -> None:
        kept.append(message)

    async def give(_scope: Scope, _receive: Receive, send: Send) -> None:
        for message in kept:
            await send(message)

    await application(scope, receive, keep)
    return give


def allow_break_off(application: ASGIApp) -> ASGIApp:
    """Make the application obey `BreakOff`. Goes inside any compression, so that the compressed response is valid."""

    async def obeying(scope: Scope, receive: Receive, send: Send) -> None:
        after = scope.get(_BREAK_OFF)
        await application(scope, receive, send if after is None else _end_after(send, after))

    return obeying


class TruncatingSender:
    """Passes on a number of bytes of a body, then closes the connection."""

    def __init__(self, scope: Scope, send: Send, after: int) -> None:
        self._scope = scope
        self._send = send
        self._left = after
        self.done = False

    async def __call__(self, message: Message) -> None:
        body = message.get("body", b"")
        if self.done:
            return
        if message["type"] != "http.response.body" or len(body) < self._left:
            self._left -= len(body)
            await self._send(message)
            return
        self.done = True
        await self._send({"type": "http.response.body", "body": body[: self._left], "more_body": True})
        self._scope[TRANSPORT_KEY].close()  # bytes already sent still reach the client


def _end_after(send: Send, after: int) -> Send:
    left = after

    async def end(message: Message) -> None:
        nonlocal left
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message["headers"] if name.lower() != b"content-length"]
            await send({**message, "headers": kept})
        elif left >= 0:
            body = message.get("body", b"")
            whole = len(body) < left
            await send({"type": "http.response.body", "body": body[:left], "more_body": whole})
            left = left - len(body) if whole else -1

    return end


async def wait_while_connected(meanwhile: Coroutine[Any, Any, None], receive: Receive) -> Receive | None:
    """Wait for `meanwhile`, then return a receive that replays what the client sent; None if it left first."""
    received: list[Message] = []
    waiting, leaving = asyncio.ensure_future(meanwhile), asyncio.ensure_future(wait_for_disconnect(receive, received))
    await asyncio.wait([waiting, leaving], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    leaving.cancel()
    await asyncio.gather(waiting, leaving, return_exceptions=True)
    return None if waiting.cancelled() else _replay_messages(received, receive)


def _replay_messages(received: list[Message], receive: Receive) -> Receive:
    async def again() -> Message:
        return received.pop(0) if received else await receive()

    return again


def _request_from_scope(server: str, scope: Scope) -> ReceivedRequest:
    headers = dict(Headers(scope=scope).items())
    return ReceivedRequest(server, scope["method"], scope["path"], scope["query_string"].decode("latin-1"), headers)


def _encode_body(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def _content_type(body: Any) -> str:
    return "text/plain; charset=utf-8" if isinstance(body, str | bytes) else "application/json"


async def _send_response(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    await _send_start(send, status, {"content-length": str(len(body)), **headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _send_pieces(send: Send, status: int, headers: Mapping[str, str], pieces: Iterable[bytes]) -> None:
    await _send_start(send, status, headers)
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


async def reset_connection(scope: Scope, receive: Receive) -> None:
    """Reset the connection and wait until the client has noticed."""
    scope[TRANSPORT_KEY].abort()
    await wait_for_disconnect(receive)


async def wait_for_disconnect(receive: Receive, received: list[Message] | None = None) -> None:
    """Wait until the client has left; keep what it sends before that in `received`."""
    while (message := await receive())["type"] != "http.disconnect":
        if received is not None:
            received.append(message)

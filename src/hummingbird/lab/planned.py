"""Planned faults: what a stand-in does wrong on purpose, on which request and how often; and what it was asked.

    faults.plan("*/pipelineruns", Truncate(5_000))
    faults.plan("*/log", Answer(503, "try again"), times=2, after=1)
    faults.plan("*/notes", Drop(), method="POST", after_write=True)

The one place where faults are matched, counted and played; what a certain server says when it fails, its own room
knows. They stand before an application and know bytes, paths and connections, not what an answer means. A test should
find `faults.unused` empty at its end: a fault that never happened proved nothing.
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

from hummingbird.lab.serving import TRANSPORT

_BREAK_OFF = "hummingbird.lab.break_off"


class Gate:
    """Opened by a test, waited for by a server in another thread. `reached` is set once a request stands before it."""

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

    async def passed(self) -> None:
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
class Answer:
    """This instead of the application's answer. A `body` that is no text and no bytes is sent as JSON."""

    status: int = 503
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """These bytes on the connection, for what ASGI cannot say; then it closes."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Drop:
    """No answer: the connection is reset."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """The application's answer, cut after so many bytes on the wire: the connection closes amidst it."""

    after: int


@dataclass(frozen=True, slots=True)
class BreakOff:
    """The application ends its answer early, in good form to HTTP and to gzip: what it meant to say is incomplete.
    For applications within `breakable`."""

    after: int


@dataclass(frozen=True, slots=True)
class Redirect:
    """To anywhere: another host, an address literal, `file:`, or back to where the request came from."""

    url: str
    status: int = 302


@dataclass(frozen=True, slots=True)
class Slow:
    """The application's answer so much later, or none if the client leaves first."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Says nothing until the gate opens or the client leaves; then `then`, or the application's own answer."""

    until: Gate
    then: "Fault | None" = None


@dataclass(frozen=True, slots=True)
class Body:
    """Bytes made while they are sent, of any length. `pieces` is called once for each request."""

    pieces: Callable[[], Iterable[bytes]]
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


Fault = Answer | Raw | Drop | Truncate | BreakOff | Redirect | Slow | Hold | Body


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came. `headers` by their names in lower case; `query` as it stood in the address."""

    server: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]


@dataclass(slots=True)
class _Plan:
    pattern: str
    fault: Fault
    times: int
    after: int
    query: str
    method: str
    after_write: bool

    def fits(self, seen: Seen) -> bool:
        if self.method not in ("*", seen.method):
            return False
        return fnmatchcase(seen.path, self.pattern) and fnmatchcase(unquote_plus(seen.query), self.query)


class Faults:
    """May be planned from any thread; the first plan that fits a request has its turn."""

    def __init__(self) -> None:
        self._plans: list[_Plan] = []
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
        """For `times` requests of that method whose path, and decoded query, fit the patterns (* is anything, slashes
        too), once `after` such have passed. `after_write`: the application carries the request out first, and the
        fault befalls its answer."""
        with self._lock:
            self._plans.append(_Plan(path_pattern, fault, times, after, query, method, after_write))

    @property
    def unused(self) -> list[Fault]:
        with self._lock:
            return [plan.fault for plan in self._plans for _ in range(plan.times)]

    def take(self, seen: Seen) -> _Plan | None:
        with self._lock:
            plan = next((each for each in self._plans if each.fits(seen)), None)
            if plan is None:
                return None
            if plan.after:
                plan.after -= 1
                return None
            plan.times -= 1
            if not plan.times:
                self._plans.remove(plan)
            return plan


class Planned:
    """An application that keeps to plans. Every request is written to `requests`, unless somebody else keeps a record
    of them."""

    def __init__(self, server: str, application: ASGIApp, faults: Faults, requests: list[Seen] | None = None) -> None:
        self._server = server
        self._application = application
        self._faults = faults
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = _seen(self._server, scope)
        if self._requests is not None:
            self._requests.append(seen)
        application, plan = self._application, self._faults.take(seen)
        # BreakOff is the application's own doing, while it carries the request out
        if plan and plan.after_write and not isinstance(plan.fault, BreakOff):
            application = await _carried_out(application, scope, receive)
        await _play(plan.fault if plan else None, application, scope, receive, send)


async def _play(fault: Fault | None, application: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    match fault:
        case None:
            await application(scope, receive, send)
        case Answer(status, body, headers):
            await _whole(send, status, _content(body), {"content-type": _kind(body), **_lower(headers)})
        case Redirect(url, status):
            await _whole(send, status, b"", {"location": url})
        case Raw(content):
            scope[TRANSPORT].write(content)
            scope[TRANSPORT].close()
            await gone(receive)
        case Drop():
            await dropped(scope, receive)
        case Truncate(after):
            cutting = _Cutting(scope, send, after)
            await application(scope, receive, cutting)
            if cutting.done:
                await gone(receive)
        case BreakOff(after):
            await application({**scope, _BREAK_OFF: after}, receive, send)
        case Body(pieces, headers, status):
            await _pieces(send, status, _lower(headers), pieces())
        case Slow(delay_s):
            if heard := await stayed(asyncio.sleep(delay_s), receive):
                await application(scope, heard, send)
        case Hold(until, then):
            if heard := await stayed(until.passed(), receive):
                await _play(then, application, scope, heard, send)


async def _carried_out(application: ASGIApp, scope: Scope, receive: Receive) -> ASGIApp:
    """Its answer, kept, as an application that does nothing but give it."""
    kept: list[Message] = []

    async def keep(message: Message) -> None:
        kept.append(message)

    async def give(_scope: Scope, _receive: Receive, send: Send) -> None:
        for message in kept:
            await send(message)

    await application(scope, receive, keep)
    return give


def breakable(application: ASGIApp) -> ASGIApp:
    """Obeys BreakOff: stands behind what compresses, so that the compressed answer is sound."""

    async def obeying(scope: Scope, receive: Receive, send: Send) -> None:
        after = scope.get(_BREAK_OFF)
        await application(scope, receive, send if after is None else _ending(send, after))

    return obeying


class _Cutting:
    """Passes on so many bytes of a body, then closes the connection."""

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
        self._scope[TRANSPORT].close()  # what was sent already still reaches the client


def _ending(send: Send, after: int) -> Send:
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


async def stayed(meanwhile: Coroutine[Any, Any, None], receive: Receive) -> Receive | None:
    """All that the client says, once `meanwhile` is over; None if it left first."""
    heard: list[Message] = []
    waiting, leaving = asyncio.ensure_future(meanwhile), asyncio.ensure_future(gone(receive, heard))
    await asyncio.wait([waiting, leaving], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    leaving.cancel()
    await asyncio.gather(waiting, leaving, return_exceptions=True)
    return None if waiting.cancelled() else _replayed(heard, receive)


def _replayed(heard: list[Message], receive: Receive) -> Receive:
    async def again() -> Message:
        return heard.pop(0) if heard else await receive()

    return again


def _seen(server: str, scope: Scope) -> Seen:
    headers = dict(Headers(scope=scope).items())
    return Seen(server, scope["method"], scope["path"], scope["query_string"].decode("latin-1"), headers)


def _content(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def _kind(body: Any) -> str:
    return "text/plain; charset=utf-8" if isinstance(body, str | bytes) else "application/json"


async def _whole(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    await _start(send, status, {"content-length": str(len(body)), **headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _pieces(send: Send, status: int, headers: Mapping[str, str], pieces: Iterable[bytes]) -> None:
    await _start(send, status, headers)
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


async def dropped(scope: Scope, receive: Receive) -> None:
    """Reset the connection."""
    scope[TRANSPORT].abort()
    await gone(receive)


async def gone(receive: Receive, heard: list[Message] | None = None) -> None:
    """Until the client has left; what it says before that is kept in `heard`."""
    while (message := await receive())["type"] != "http.disconnect":
        if heard is not None:
            heard.append(message)

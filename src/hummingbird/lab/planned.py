"""Planned faults: what a stand-in does wrong on purpose, on which request and how often; and what it was asked.

    faults.plan("*/pipelineruns", Truncate(5_000))
    faults.plan("*/log", Answer(503, "try again"), times=2, after=1)

They stand before an application and know bytes, paths and connections, not what an answer means. A test should find
`faults.unused` empty at its end: a fault that never happened proved nothing.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Mapping
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
class Drop:
    """No answer: the connection closes."""


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


Fault = Answer | Drop | Truncate | BreakOff | Redirect | Hold | Body


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
    query: str
    fault: Fault
    times: int
    after: int

    def fits(self, seen: Seen) -> bool:
        return fnmatchcase(seen.path, self.pattern) and fnmatchcase(unquote_plus(seen.query), self.query)


class Faults:
    """May be planned from any thread; the first plan that fits a request has its turn."""

    def __init__(self) -> None:
        self._plans: list[_Plan] = []
        self._lock = threading.Lock()

    def plan(self, path_pattern: str, fault: Fault, times: int = 1, *, after: int = 0, query: str = "*") -> None:
        """For `times` requests whose path, and decoded query, fit the patterns, once `after` such have passed."""
        with self._lock:
            self._plans.append(_Plan(path_pattern, query, fault, times, after))

    @property
    def unused(self) -> list[Fault]:
        with self._lock:
            return [plan.fault for plan in self._plans for _ in range(plan.times)]

    def take(self, seen: Seen) -> Fault | None:
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
            return plan.fault


class Planned:
    """An application that keeps to plans. Every request is written to `requests`."""

    def __init__(self, server: str, application: ASGIApp, faults: Faults, requests: list[Seen]) -> None:
        self._server = server
        self._application = application
        self._faults = faults
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = _seen(self._server, scope)
        self._requests.append(seen)
        await self._play(self._faults.take(seen), scope, receive, send)

    async def _play(self, fault: Fault | None, scope: Scope, receive: Receive, send: Send) -> None:
        match fault:
            case None:
                await self._application(scope, receive, send)
            case Answer(status, body, headers):
                await _whole(send, status, _content(body), {"content-type": _kind(body), **headers})
            case Redirect(url, status):
                await _whole(send, status, b"", {"location": url})
            case Drop():
                scope[TRANSPORT].abort()
                await gone(receive)
            case Truncate(after):
                cutting = Cutting(scope, send, after)
                await self._application(scope, receive, cutting)
                if cutting.done:
                    await gone(receive)
            case BreakOff(after):
                await self._application({**scope, _BREAK_OFF: after}, receive, send)
            case Body(pieces, headers, status):
                await _pieces(send, status, headers, pieces())
            case Hold(until, then):
                if await _released(until, receive):
                    await self._play(then, scope, receive, send)


def breakable(application: ASGIApp) -> ASGIApp:
    """Obeys BreakOff: stands behind what compresses, so that the compressed answer is sound."""

    async def obeying(scope: Scope, receive: Receive, send: Send) -> None:
        after = scope.get(_BREAK_OFF)
        await application(scope, receive, send if after is None else _ending(send, after))

    return obeying


class Cutting:
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


async def _released(gate: Gate, receive: Receive) -> bool:
    """False if the client left first."""
    passing, leaving = asyncio.ensure_future(gate.passed()), asyncio.ensure_future(gone(receive))
    await asyncio.wait([passing, leaving], return_when=asyncio.FIRST_COMPLETED)
    passing.cancel()
    leaving.cancel()
    await asyncio.gather(passing, leaving, return_exceptions=True)
    return not passing.cancelled()


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
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})


async def gone(receive: Receive) -> None:
    """Until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass

"""Planned faults: what a test wants to go wrong with the next requests of a kind.

    world.faults.next(server_error(502), method="POST", path="*/notes", after_write=True)
    world.faults.next(rack_attack(retry_after_s=1), path="*/discussions", times=3)

They are taken in the order in which they were planned, one a request. `after_write`: the request is carried out and
stored, and the client gets the fault in place of its answer. Knows connections and bytes, nothing of GitLab's records.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hummingbird.lab.gitlab import refusals
from hummingbird.lab.planned import Cutting, gone
from hummingbird.lab.serving import TRANSPORT

_GATEWAY = {
    502: "GitLab is not responding",
    503: "GitLab is under maintenance",
    504: "GitLab took too long to answer",
}


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer of its own in place of the real one."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "text/html; charset=utf-8"

    async def play(self, _inner: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        response = (
            Response(self.body, self.status, dict(self.headers), self.media_type)
            if isinstance(self.body, str)
            else refusals.Refused(self.status, self.body, self.headers).response()
        )
        await response(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Dropped:
    """No answer: the connection is reset."""

    async def play(self, _inner: ASGIApp, scope: Scope, receive: Receive, _send: Send) -> None:
        scope[TRANSPORT].abort()
        await gone(receive)


@dataclass(frozen=True, slots=True)
class Truncated:
    """The real answer's head and first bytes, then the end of the connection; an answer that is no longer is whole."""

    keep_bytes: int = 20

    async def play(self, inner: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        cutting = Cutting(scope, send, self.keep_bytes)
        await inner(scope, receive, cutting)
        if cutting.done:
            await gone(receive)


@dataclass(frozen=True, slots=True)
class Slow:
    """The request waits before anybody looks at it; given up when the client leaves."""

    delay_s: float

    async def play(self, inner: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        heard: list[Message] = []
        if not await _left_within(self.delay_s, receive, heard):
            await inner(scope, _replayed(heard, receive), send)


@dataclass(frozen=True, slots=True)
class Late:
    """The request is carried out at once, and its answer waits: a client that gave up does not know that it was."""

    delay_s: float

    async def play(self, inner: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await inner(scope, receive, hold)
        if not await _left_within(self.delay_s, receive, []):
            for message in held:
                await send(message)


Fault = Answered | Dropped | Truncated | Slow | Late


def server_error(status: int = 502) -> Answered:
    """500 comes from the application as JSON; the others come from what stands before it, as a page."""
    if status == 500:
        return Answered(500, refusals.server_error().body)
    title = _GATEWAY.get(status, "Something went wrong")
    return Answered(status, f"<!DOCTYPE html>\n<html><head><title>{title} ({status})</title></head></html>\n")


def rack_attack(retry_after_s: int = 30, reset_at: int = 1_609_844_400) -> Answered:
    """The outer limiter: plain text, and headers that say when to come back (facts 2.8)."""
    headers = {
        "Retry-After": str(retry_after_s),
        "RateLimit-Name": "throttle_authenticated_api",
        "RateLimit-Limit": "2000",
        "RateLimit-Observed": "2001",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": str(reset_at),
        "RateLimit-ResetTime": "Tue, 05 Jan 2021 11:00:00 GMT",
    }
    return Answered(429, "Retry later\n", headers, "text/plain")


def limiter() -> Answered:
    """The application's limiter: JSON, and not a word about when to come back (facts 2.8)."""
    return Answered(429, refusals.limited().body)


@dataclass(slots=True)
class _Plan:
    fault: Fault
    method: str
    path: str
    after_write: bool
    left: int

    def meets(self, method: str, path: str) -> bool:
        return self.left > 0 and self.method in ("*", method) and fnmatchcase(path, self.path)


class Faults:
    """What is still to go wrong."""

    def __init__(self) -> None:
        self._plans: list[_Plan] = []

    def next(
        self, fault: Fault, *, method: str = "*", path: str = "*", times: int = 1, after_write: bool = False
    ) -> None:
        """Plan it for the next `times` requests of that method whose path, as it was sent, is like `path` (* is
        anything, slashes too)."""
        self._plans.append(_Plan(fault, method, path, after_write, times))

    @property
    def left(self) -> int:
        """How many were planned and have not happened."""
        return sum(plan.left for plan in self._plans)

    def taken(self, method: str, path: str) -> _Plan | None:
        """The one for this request, which it uses up."""
        for plan in self._plans:
            if plan.meets(method, path):
                plan.left -= 1
                return plan
        return None


async def _left_within(delay_s: float, receive: Receive, heard: list[Message]) -> bool:
    """Whether the client leaves meanwhile; what it says is kept in `heard`."""

    async def listen() -> None:
        while (message := await receive())["type"] != "http.disconnect":
            heard.append(message)

    try:
        await asyncio.wait_for(listen(), delay_s)
    except TimeoutError:
        return False
    return True


def _replayed(heard: list[Message], receive: Receive) -> Receive:
    async def again() -> Message:
        return heard.pop(0) if heard else await receive()

    return again


async def discarded(inner: ASGIApp, scope: Scope, receive: Receive) -> None:
    """Carry a request out and throw its answer away."""

    async def nowhere(_message: Message) -> None:
        return None

    await inner(scope, receive, nowhere)

"""The HTTP door (E1): GitLab's webhooks, in milliseconds and within bounds. Who may knock, the gate says; what an event
is, ingress.

GitLab gives up after 10 seconds, never tries again by itself and switches off a hook that fails four times. So whatever
is no fault of the sender is answered with success.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from hummingbird.domain.errors import EventUnreadable, HummingbirdError, ObjectsUnusable, QueueUnusable
from hummingbird.domain.limits import EVENT_BODY_S, EVENT_BYTES, EVENTS_HELD_BYTES, QUEUE_ANSWER_S, READY_S
from hummingbird.ports.queue import Queue
from hummingbird.service.admission import Gate
from hummingbird.service.envelopes import from_webhook
from hummingbird.service.ingress import Ingress

PATH = "/webhooks/gitlab"
_log = logging.getLogger("hummingbird.service")


def _untold(outcome: str) -> None:
    """Where nobody counts."""


def application(
    gate: Gate,
    ingress: Ingress,
    *,
    beside: Sequence[BaseRoute] = (),
    told: Callable[[str], None] = _untold,
    body_s: float = EVENT_BODY_S,
    held_bytes: int = EVENTS_HELD_BYTES,
) -> Starlette:
    """With a gate that `is_open`, to be served on loopback alone: whoever starts it sees to that. `beside`: what else
    is answered at the same address. `told` hears what became of each delivery: queued, ignored, refused, failed."""
    door, health = _Door(gate, ingress, told, body_s, held_bytes), _Health(ingress.queue)
    made = Starlette(
        routes=[
            Route(PATH, door.receive, methods=["POST"]),
            Route("/healthz", health.alive, methods=["GET"]),
            Route("/readyz", health.ready, methods=["GET"]),
            *beside,
        ],
        exception_handlers={HTTPException: _refused},
    )
    made.router.redirect_slashes = False
    return made


class _Door:
    def __init__(
        self, gate: Gate, ingress: Ingress, told: Callable[[str], None], body_s: float, most_bytes: int
    ) -> None:
        self._gate = gate
        self._ingress = ingress
        self._told = told
        self._body_s = body_s
        self._most_bytes = most_bytes
        self._held_bytes = 0

    async def receive(self, request: Request) -> Response:
        try:
            answer = await self._received(request)
        except HTTPException as error:
            self._told("failed" if error.status_code >= 500 else "refused")
            raise
        self._told("queued" if answer.status_code == 202 else "ignored")
        return answer

    async def _received(self, request: Request) -> Response:
        if refusal := self._gate.refusal(request.headers):
            raise _unwelcome(request, refusal)
        async with self._body(request) as body:
            if refusal := self._gate.forgery(request.headers, body):
                raise _unwelcome(request, refusal)
            return await self._taken(request, body)

    async def _taken(self, request: Request, body: bytes) -> Response:
        signed_id = request.headers.get("webhook-id", "") if self._gate.signed else ""
        try:
            taken = await self._ingress.take(from_webhook(body, request.headers, signed_id))
        except EventUnreadable as error:
            _log.warning("A webhook from %s was not understood: %s", _remote(request), error)
            raise HTTPException(400, str(error)) from error
        except (QueueUnusable, ObjectsUnusable) as error:
            _log.error("A webhook from %s could not be kept: %s", _remote(request), error)
            raise HTTPException(503, "The event cannot be kept at the moment; send it again later.") from error
        if taken.ignored:
            _log.debug("Event %s from %s is not queued, for %s.", taken.identity, _remote(request), taken.ignored)
            return JSONResponse({"status": "ignored", "reason": taken.ignored})
        _log.debug("Event %s from %s is queued.", taken.identity, _remote(request))
        return JSONResponse({"status": "queued"}, 202)

    @asynccontextmanager
    async def _body(self, request: Request) -> AsyncIterator[bytes]:
        """All of it, for as long as somebody needs it."""
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > EVENT_BYTES):
            raise _too_large()
        body = bytearray()
        try:
            await self._read(request, body)
            yield bytes(body)
        finally:
            self._held_bytes -= len(body)

    async def _read(self, request: Request, body: bytearray) -> None:
        """What the sender says about the length is not believed."""
        try:
            async with asyncio.timeout(self._body_s), aclosing(request.stream()) as pieces:
                async for piece in pieces:
                    body += piece
                    self._held_bytes += len(piece)
                    if len(body) > EVENT_BYTES:
                        raise _too_large()
                    if self._held_bytes > self._most_bytes:
                        raise HTTPException(503, "Too many events are being sent at once; send it again later.")
        except TimeoutError as error:
            raise HTTPException(408, f"The body took more than {self._body_s:g} seconds; send it faster.") from error
        except ClientDisconnect as error:
            raise HTTPException(400, "The body was cut off; send it whole.") from error


class _Health:
    """Whoever asks needs no secret, so asking often must not cost the queue anything."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._asking = asyncio.Lock()
        self._answer = False
        self._until = 0.0

    async def alive(self, request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def ready(self, request: Request) -> Response:
        async with self._asking:
            if time.monotonic() >= self._until:
                self._answer = await self._reached()
                self._until = time.monotonic() + READY_S
        if self._answer:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "refused", "reason": "The queue cannot be reached; see the log."}, 503)

    async def _reached(self) -> bool:
        try:
            async with asyncio.timeout(QUEUE_ANSWER_S):
                await self._queue.check()
        except (TimeoutError, HummingbirdError) as error:
            _log.warning("Not ready: %s", str(error) or "the queue does not answer.")
            return False
        return True


def _unwelcome(request: Request, why: str) -> HTTPException:
    _log.warning("A webhook from %s was refused: %s.", _remote(request), why)
    return HTTPException(401, "The delivery is not from a hook that is known here; check its secret and its signature.")


def _too_large() -> HTTPException:
    return HTTPException(413, f"The body is larger than {EVENT_BYTES} bytes; GitLab sends no such thing.")


def _remote(request: Request) -> str:
    return request.client.host if request.client else "somebody"


async def _refused(_: Request, refusal: Exception) -> Response:
    """The connection is closed with it: otherwise a server goes on taking in what is left of the body."""
    assert isinstance(refusal, HTTPException)
    headers = {**(refusal.headers or {}), "connection": "close"}
    return JSONResponse({"status": "refused", "reason": refusal.detail}, refusal.status_code, headers=headers)

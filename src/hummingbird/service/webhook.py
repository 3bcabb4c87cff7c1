"""Receive GitLab's webhooks over HTTP, within milliseconds and within bounds, and check their token and signature.

GitLab gives up after 10 seconds, never retries by itself and disables a hook that fails four times. So everything that
is not the sender's fault is answered with success.

Everything that is configured is required: with a secret and a signing token every delivery needs both, so adding a
check never admits more. To switch hooks over one by one, set their signing tokens in GitLab first and here last.
Refusals name what is wrong and never a value.
"""

import asyncio
import base64
import binascii
import hmac
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from hummingbird.core.errors import (
    EventUnreadable,
    HummingbirdError,
    MissingSetting,
    ObjectStoreUnusable,
    QueueUnusable,
)
from hummingbird.core.limits import (
    EVENT_BODY_S,
    EVENT_BYTES,
    EVENTS_HELD_BYTES,
    QUEUE_ANSWER_S,
    READY_S,
    SIGNATURE_AGE_S,
    SIGNATURES,
)
from hummingbird.core.protocols.queues import Queue
from hummingbird.service.envelopes import delivery_from_webhook
from hummingbird.service.event_ingress import EventIngress

_PREFIX = "whsec_"
_KEY_BYTES = 16  # anything shorter is not a key


@dataclass(frozen=True, slots=True)
class WebhookAuth:
    """Decide whether a delivery is accepted; `create_webhook_auth` makes it.

    The methods return the reason of a refusal for the log; an empty one means accepted.
    """

    now: Callable[[], float]
    secret: bytes = field(default=b"", repr=False)
    keys: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def is_open(self) -> bool:
        """Return whether everybody is accepted: only for an address that nobody else can reach."""
        return not self.secret and not self.keys

    @property
    def requires_signature(self) -> bool:
        return bool(self.keys)

    def header_refusal(self, headers: Mapping[str, str]) -> str:
        """Check the headers alone, before the body is read."""
        if self.secret and not hmac.compare_digest(_header_bytes(headers.get("x-gitlab-token", "")), self.secret):
            return "its X-Gitlab-Token is missing or is not the secret that is configured"
        return self._timestamp_refusal(headers) if self.keys else ""

    def _timestamp_refusal(self, headers: Mapping[str, str]) -> str:
        stamp = headers.get("webhook-timestamp", "")
        if not headers.get("webhook-id") or not headers.get("webhook-signature"):
            return "it is not signed"
        if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
            return "its signature has no time"
        if abs(self.now() - int(stamp)) > SIGNATURE_AGE_S:
            return f"its signature is more than {SIGNATURE_AGE_S} seconds away from our clock"
        return ""

    def signature_refusal(self, headers: Mapping[str, str], body: bytes) -> str:
        """Check the signature over the body, if signing tokens are configured."""
        if not self.keys:
            return ""
        before = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}."
        expected = [hmac.digest(key, _header_bytes(before) + body, "sha256") for key in self.keys]
        given = [_decode_signature(text) for text in headers.get("webhook-signature", "").split(" ")[:SIGNATURES]]
        # Every pair is compared, so that the time does not reveal which one matches.
        matches = sum(hmac.compare_digest(one, other) for one in expected for other in given)
        return "" if matches else "its signature is not made with a signing token that is configured"


def create_webhook_auth(now: Callable[[], float], secret: str = "", signing_tokens: str = "") -> WebhookAuth:
    """Create the check from the secret and the signing tokens.

    `signing_tokens` are separated by white space, because every hook may have its own. Raises MissingSetting.
    """
    return WebhookAuth(now, secret.encode(), tuple(_decode_signing_token(token) for token in signing_tokens.split()))


def _decode_signing_token(token: str) -> bytes:
    try:
        key = base64.b64decode(token.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not token.startswith(_PREFIX) or len(key) < _KEY_BYTES:
        raise MissingSetting(
            f"A signing token of webhooks is {_PREFIX} with base64 behind it; copy it from the hook's page in GitLab."
        )
    return key


def _decode_signature(text: str) -> bytes:
    """Decode a signature of version 1; other versions use other keys than ours."""
    version, _, value = text.partition(",")
    try:
        return base64.b64decode(value, validate=True) if version == "v1" else b""
    except (binascii.Error, ValueError):
        return b""


def _header_bytes(header: str) -> bytes:
    """Return the header's original bytes: servers decode headers as Latin-1, and a secret may hold anything."""
    return header.encode("latin-1", "replace")


WEBHOOK_PATH = "/webhooks/gitlab"
_log = logging.getLogger("hummingbird.service")


def _ignore_outcome(outcome: str) -> None:
    """Do nothing: the default where nobody counts deliveries."""


def _report_nothing() -> str:
    """Return no warning: the default where nobody checks the models."""
    return ""


def create_webhook_app(
    gate: WebhookAuth,
    ingress: EventIngress,
    *,
    beside: Sequence[BaseRoute] = (),
    report: Callable[[str], None] = _ignore_outcome,
    warning: Callable[[], str] = _report_nothing,
    body_s: float = EVENT_BODY_S,
    held_bytes: int = EVENTS_HELD_BYTES,
) -> Starlette:
    """Create the HTTP application.

    If `gate.is_open`, the caller must serve it on loopback only. `beside` are further routes at the same address.
    `report` is called with what became of each delivery: queued, ignored, refused or failed. `warning` returns what
    `/readyz` says besides that the service is ready, for everybody to read.
    """
    receiver, health = (
        _WebhookReceiver(gate, ingress, report, body_s, held_bytes),
        _HealthChecks(ingress.queue, warning),
    )
    made = Starlette(
        routes=[
            Route(WEBHOOK_PATH, receiver.receive, methods=["POST"]),
            Route("/healthz", health.report_alive, methods=["GET"]),
            Route("/readyz", health.report_ready, methods=["GET"]),
            *beside,
        ],
        exception_handlers={HTTPException: _render_refusal},
    )
    made.router.redirect_slashes = False
    return made


class _WebhookReceiver:
    def __init__(
        self, gate: WebhookAuth, ingress: EventIngress, report: Callable[[str], None], body_s: float, most_bytes: int
    ) -> None:
        self._auth = gate
        self._ingress = ingress
        self._report = report
        self._body_s = body_s
        self._most_bytes = most_bytes
        self._held_bytes = 0

    async def receive(self, request: Request) -> Response:
        try:
            answer = await self._check_and_accept(request)
        except HTTPException as error:
            self._report("failed" if error.status_code >= 500 else "refused")
            raise
        self._report("queued" if answer.status_code == 202 else "ignored")
        return answer

    async def _check_and_accept(self, request: Request) -> Response:
        if refusal := self._auth.header_refusal(request.headers):
            raise _auth_error(request, refusal)
        async with self._hold_body(request) as body:
            if refusal := self._auth.signature_refusal(request.headers, body):
                raise _auth_error(request, refusal)
            return await self._accept(request, body)

    async def _accept(self, request: Request, body: bytes) -> Response:
        signed_id = request.headers.get("webhook-id", "") if self._auth.requires_signature else ""
        try:
            taken = await self._ingress.accept(delivery_from_webhook(body, request.headers, signed_id))
        except EventUnreadable as error:
            _log.warning("A webhook from %s cannot be read: %s", _remote_host(request), error)
            raise HTTPException(400, str(error)) from error
        except (QueueUnusable, ObjectStoreUnusable) as error:
            _log.error("A webhook from %s could not be stored: %s", _remote_host(request), error)
            raise HTTPException(503, "The event cannot be stored at the moment; send it again later.") from error
        if taken.ignored:
            _log.debug("Event %s from %s is ignored: %s.", taken.identity, _remote_host(request), taken.ignored)
            return JSONResponse({"status": "ignored", "reason": taken.ignored})
        _log.debug("Event %s from %s is queued.", taken.identity, _remote_host(request))
        return JSONResponse({"status": "queued"}, 202)

    @asynccontextmanager
    async def _hold_body(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the whole body and count its bytes as held until the caller is done with it."""
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and (len(declared) > 18 or int(declared) > EVENT_BYTES):
            raise _too_large_error()
        body = bytearray()
        try:
            await self._read_body(request, body)
            yield bytes(body)
        finally:
            self._held_bytes -= len(body)

    async def _read_body(self, request: Request, body: bytearray) -> None:
        """Read the body within the limits, without trusting the declared length."""
        try:
            async with asyncio.timeout(self._body_s), aclosing(request.stream()) as pieces:
                async for piece in pieces:
                    body += piece
                    self._held_bytes += len(piece)
                    if len(body) > EVENT_BYTES:
                        raise _too_large_error()
                    if self._held_bytes > self._most_bytes:
                        raise HTTPException(503, "Too many events are being sent at once; send it again later.")
        except TimeoutError as error:
            raise HTTPException(408, f"The body took more than {self._body_s:g} seconds; send it faster.") from error
        except ClientDisconnect as error:
            raise HTTPException(400, "The body was cut off; send it whole.") from error


class _HealthChecks:
    """Answer health checks; they need no secret, so many of them must not cost the queue anything."""

    def __init__(self, queue: Queue, warning: Callable[[], str]) -> None:
        self._queue, self._warning = queue, warning
        self._said = ""
        self._asking = asyncio.Lock()
        self._answer = False
        self._until = 0.0

    async def report_alive(self, request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def report_ready(self, request: Request) -> Response:
        async with self._asking:
            if time.monotonic() >= self._until:
                self._answer = await self._is_queue_reachable()
                self._said = self._warning()
                self._until = time.monotonic() + READY_S
        if self._answer:
            return JSONResponse({"status": "ready", **({"warning": self._said} if self._said else {})})
        return JSONResponse({"status": "refused", "reason": "The queue cannot be reached; see the log."}, 503)

    async def _is_queue_reachable(self) -> bool:
        try:
            async with asyncio.timeout(QUEUE_ANSWER_S):
                await self._queue.check()
        except (TimeoutError, HummingbirdError) as error:
            _log.warning("Not ready: %s", str(error) or "the queue does not answer.")
            return False
        return True


def _auth_error(request: Request, why: str) -> HTTPException:
    _log.warning("A webhook from %s was refused: %s.", _remote_host(request), why)
    return HTTPException(401, "The delivery is not from a hook that is known here; check its secret and its signature.")


def _too_large_error() -> HTTPException:
    return HTTPException(413, f"The body is larger than {EVENT_BYTES} bytes; GitLab sends no such thing.")


def _remote_host(request: Request) -> str:
    return request.client.host if request.client else "somebody"


async def _render_refusal(_: Request, refusal: Exception) -> Response:
    """Render an error and close the connection: otherwise the server would go on reading the rest of the body."""
    assert isinstance(refusal, HTTPException)
    headers = {**(refusal.headers or {}), "connection": "close"}
    return JSONResponse({"status": "refused", "reason": refusal.detail}, refusal.status_code, headers=headers)

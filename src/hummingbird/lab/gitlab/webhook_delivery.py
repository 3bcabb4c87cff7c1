"""Keep subscriptions to webhooks and send the events.

    hooks = webhook_sender(world)
    hooks.subscribe("http://127.0.0.1:9/", "pipeline_events", "note_events", signing_token="whsec_…")
    …
    hooks.wait_until_sent()
    hooks.deliveries[-1].status

One thread sends the events in order, so that the API can answer meanwhile. Nothing is retried automatically.
"""

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import queue
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import SplitResult, urlsplit

from hummingbird.lab.gitlab.records import LabProject, Raw, WorldChange
from hummingbird.lab.gitlab.webhook_events import (
    NEWER_RELEASE,
    GitLabRelease,
    HookEvent,
    delivery_headers,
    events_for_change,
)
from hummingbird.lab.gitlab.world import CAUSING_EVENT, GitLabWorld

SIGNING_TOKEN_PREFIX = "whsec_"  # noqa: S105 - no password


def sign_webhook(signing_token: str, webhook_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header `webhook-signature`. Raises ValueError for an invalid token.

    It is an HMAC-SHA256 over the id, the time and the body, as defined by Standard Webhooks.
    """
    if not signing_token.startswith(SIGNING_TOKEN_PREFIX):
        raise ValueError(
            f"The signing token is unusable: let it begin with {SIGNING_TOKEN_PREFIX}, then base64 of 32 bytes."
        )
    key = base64.b64decode(signing_token.removeprefix(SIGNING_TOKEN_PREFIX), validate=True)
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


PLACEHOLDER = re.compile(r"\{\{ *([^{}\s]+) *\}\}")


def render_template(template: str, payload: Raw) -> bytes:
    """Render the custom template of a webhook: `{{project.id}}` becomes the value in the event, or nothing.

    Raises ValueError if the result is not JSON.
    """
    text = PLACEHOLDER.sub(lambda place: _json_fragment(_look_up(payload, place[1].split("."))), template)
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")).encode()


def _look_up(value: Any, names: list[str]) -> Any:
    for name in names:
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _json_fragment(value: Any) -> str:
    """Return the value as it stands inside quotation marks; one that is not text needs none."""
    if value is None:
        return ""
    encoded = json.dumps(value, ensure_ascii=False)
    return encoded[1:-1] if isinstance(value, str) else encoded


PAYLOAD_BYTES = 25 * 1024 * 1024  # GitLab's limit
ANSWER_BYTES = 8 * 1024
CONNECT_S = 2.0  # this machine accepts a connection at once or not at all
LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOO_LARGE = "The event is too large: GitLab sends none above 25 MB."
NOT_LOOPBACK = "The lab sends hooks to this machine alone: give a http address of 127.0.0.1."
TOO_LATE = "The receiver did not answer in time."


class HookRequest:
    """Posts one webhook, once; the connection can be cut at any moment, by its deadline or by `abort`."""

    def __init__(self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float) -> None:
        self._url = url
        self._headers = dict(headers)
        self._body = body
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._abort_reason = ""

    def run(self) -> tuple[int | None, str]:
        """Return the status of the response, or why there is none. Redirects are not followed."""
        if len(self._body) > PAYLOAD_BYTES:
            return None, TOO_LARGE
        deadline = threading.Timer(self._timeout_s, self.abort)
        deadline.daemon = True
        deadline.start()
        try:
            status = self._send()
        except (OSError, http.client.HTTPException, ValueError) as problem:
            return None, self._abort_reason or f"The receiver did not answer: {type(problem).__name__}."
        finally:
            deadline.cancel()
            deadline.join()
        return (None, self._abort_reason) if self._abort_reason else (status, "" if status else NOT_LOOPBACK)

    def abort(self, why: str = TOO_LATE) -> None:
        """Stop waiting for the receiver; may be called from any thread."""
        with self._lock:
            self._abort_reason = self._abort_reason or why
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def _send(self) -> int | None:
        """Return None for an address outside of this machine. Raises OSError, HTTPException or ValueError."""
        parts = urlsplit(self._url)
        if parts.scheme != "http" or parts.hostname not in LOOPBACK:
            return None
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=CONNECT_S)
        try:
            connection.connect()
            self._watch_socket(connection.sock)
            connection.request("POST", _request_target(parts), self._body, self._headers)
            answer = connection.getresponse()
            answer.read(ANSWER_BYTES)
            return answer.status
        finally:
            with self._lock:
                self._socket = None
            connection.close()

    def _watch_socket(self, connected: socket.socket) -> None:
        """Allow `abort` to cut the socket. Raises TimeoutError if it is too late already."""
        connected.settimeout(None)  # the deadline timer cuts it
        with self._lock:
            if self._abort_reason:
                raise TimeoutError
            self._socket = connected


def _request_target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


CLOSING_S = 3.0
# GitLab's own values:
TIMEOUT_S = 10.0
FAILURES_UNTIL_PAUSE, FAILURES_UNTIL_OFF = 4, 40
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 24 * 3600.0
MAX_CHAIN = 100
CLOSED = "The lab was closed before it was sent."


@dataclass(slots=True)
class ProjectHook:
    """A webhook of a project.

    `flags` are its subscriptions, such as confidential_note_events. `disabled_until` is a time in seconds, 0 while it
    works. `sent_event_ids` are the ids of the events that it was sent, by which GitLab detects recursion.
    """

    id: int
    project_id: int
    url: str
    created_at: str
    flags: set[str]
    token: str | None = None
    signing_token: str | None = None
    custom_headers: dict[str, str] = field(default_factory=dict)
    template: str | None = None
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    failures: int = 0
    disabled_until: float = 0.0
    sent_event_ids: set[str] = field(default_factory=set)

    @property
    def is_disabled(self) -> bool:
        return self.failures >= FAILURES_UNTIL_OFF

    def alert_status(self, now: float) -> str:
        if self.is_disabled:
            return "disabled"
        return "temporarily_disabled" if self.disabled_until > now else "executable"

    def count_answer(self, good: bool, now: float) -> None:
        """Count failures in a row; from the fourth on the webhook is disabled, longer each time."""
        self.failures = 0 if good else self.failures + 1
        over = self.failures - FAILURES_UNTIL_PAUSE
        self.disabled_until = 0.0 if over < 0 else now + min(FIRST_PAUSE_S * 2**over, LONGEST_PAUSE_S)


@dataclass(slots=True)
class HookDelivery:
    """One delivery; `status` None means not sent yet or no response, and `problem` says which."""

    id: int
    hook_id: int
    event: str
    headers: dict[str, str]
    body: bytes
    status: int | None = None
    problem: str = ""
    resent: bool = False


class WebhookSender:
    """Sends webhook events to their subscribers.

    `clock` gives the time for signatures and for disabling webhooks. `disables_failing_hooks` is set as on gitlab.com;
    self-managed instances do not disable them.
    """

    def __init__(
        self, world: GitLabWorld, *, release: GitLabRelease = NEWER_RELEASE, clock: Callable[[], float] = time.time
    ) -> None:
        self.world = world
        self.release = release
        self.clock = clock
        self.disables_failing_hooks = True
        self.timeout_s = TIMEOUT_S
        self.hooks: list[ProjectHook] = []
        self.deliveries: list[HookDelivery] = []
        self._waiting: queue.Queue[tuple[ProjectHook, HookDelivery] | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._request: HookRequest | None = None
        self._closed = self._is_closing = False

    def subscribe(
        self,
        url: str,
        *flags: str,
        project: LabProject | None = None,
        token: str | None = None,
        signing_token: str | None = None,
    ) -> ProjectHook:
        """Subscribe an address to events of a project, by default the case's own."""
        of = project or self.world.project
        hook = ProjectHook(
            self.world.next_id(), of.id, url, self.world.next_timestamp(), set(flags), token, signing_token
        )
        self.hooks.append(hook)
        return hook

    def __call__(self, change: WorldChange) -> None:
        """Send the events of a change; the world calls this as a listener."""
        for event in events_for_change(self.world, change, self.release):
            self.send(event)

    def send(self, event: HookEvent) -> None:
        """Send an event to all subscribers.

        What somebody does because of an event carries its id. GitLab does not report that to the same webhook again,
        nor to anybody once a hundred webhooks had it.
        """
        event_id = CAUSING_EVENT.get() or str(uuid.uuid4())
        for hook in self.hooks:
            wanted = event.flag in hook.flags and event.project_id == hook.project_id
            resting = self.disables_failing_hooks and hook.alert_status(self.clock()) != "executable"
            told = [each for each in self.hooks if event_id in each.sent_event_ids]
            if wanted and not resting and hook not in told and len(told) < MAX_CHAIN:
                self.deliver(hook, event, event_id)

    def deliver(self, hook: ProjectHook, event: HookEvent, event_id: str) -> HookDelivery:
        """Send an event to one webhook, whether it subscribed or not, as the test button does."""
        key = str(uuid.uuid4())
        named = delivery_headers(
            self.world, event.name, event_id, key, self.release, hook_id=hook.uuid, token=hook.token
        )
        delivery = HookDelivery(self.world.next_id(), hook.id, event.name, named | hook.custom_headers, event.body)
        hook.sent_event_ids.add(event_id)
        if hook.template is not None:
            try:
                delivery.body = render_template(hook.template, event.payload)
            except ValueError:
                delivery.problem = "The hook's own template makes no JSON of this event."
        self._enqueue(hook, delivery)
        return delivery

    def resend(self, delivery: HookDelivery) -> HookDelivery:
        """Send a delivery again, as the button does: with the same body and Idempotency-Key."""
        hook = next(each for each in self.hooks if each.id == delivery.hook_id)
        again = replace(
            delivery, id=self.world.next_id(), headers=dict(delivery.headers), status=None, problem="", resent=True
        )
        self._enqueue(hook, again)
        return again

    def wait_until_sent(self) -> None:
        """Wait until every delivery was sent or given up."""
        self._waiting.join()

    def close(self) -> None:
        """Send what is left and stop; wait a few seconds for a slow receiver. May be called twice."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is None:
            return
        self._waiting.put(None)
        thread.join(CLOSING_S)
        self._is_closing = True
        if self._request is not None:
            self._request.abort(CLOSED)
        thread.join()

    def _enqueue(self, hook: ProjectHook, delivery: HookDelivery) -> None:
        delivery.headers.update(signature_headers(hook, delivery, int(self.clock())))
        self.deliveries.append(delivery)
        with self._lock:
            if self._closed:
                delivery.problem = CLOSED
                return
            self._waiting.put((hook, delivery))
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_loop, name="lab-hooks", daemon=True)
                self._thread.start()

    def _send_loop(self) -> None:
        while (next_one := self._waiting.get()) is not None:
            hook, delivery = next_one
            try:
                self._attempt(hook, delivery)
            finally:
                self._waiting.task_done()
        self._waiting.task_done()

    def _attempt(self, hook: ProjectHook, delivery: HookDelivery) -> None:
        # In this order: `close` sets _is_closing before it aborts, so that one of the two always takes effect.
        self._request = HookRequest(hook.url, delivery.headers, delivery.body, self.timeout_s)
        if self._is_closing:
            delivery.problem = CLOSED
        elif not delivery.problem:
            delivery.status, delivery.problem = self._request.run()
        hook.count_answer(delivery.status is not None and 200 <= delivery.status < 300, self.clock())


def webhook_sender(world: GitLabWorld) -> WebhookSender:
    """Return the sender of this world; the first call creates it and makes it listen."""
    found = next((each for each in world.listeners if isinstance(each, WebhookSender)), None)
    if found is None:
        found = WebhookSender(world)
        world.listeners.append(found)
    return found


def signature_headers(hook: ProjectHook, delivery: HookDelivery, now: int) -> dict[str, str]:
    """Return the signature headers of a webhook with a signing token; none for others."""
    if hook.signing_token is None:
        return {}
    key = delivery.headers["Idempotency-Key"]
    return {
        "webhook-id": key,
        "webhook-timestamp": str(now),
        "webhook-signature": sign_webhook(hook.signing_token, key, now, delivery.body),
    }

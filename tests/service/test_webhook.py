"""The HTTP door, over real connections. The bad ones come first in an attacker's mind, and here."""

import asyncio
import base64
import hmac
import json
import select
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hummingbird.core.limits import EVENT_BYTES
from hummingbird.core.orders import EventEnvelope
from hummingbird.lab.http_server import LabServer
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.service.envelopes import parse_envelope
from hummingbird.service.event_ingress import EventIngress
from hummingbird.service.webhook import WEBHOOK_PATH, create_webhook_app, create_webhook_auth
from hummingbird.storage.folder_objects import FolderObjectStore

WEBHOOKS = Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks"
PIPELINE = (WEBHOOKS / "pipeline_failed_merge_request_event.json").read_bytes()
NOTE = (WEBHOOKS / "derived_note_mr_slash_command.json").read_bytes()
SECRET = "s3cret-canary"
KEY = b"a key of the tests, long enough."
TOKEN = "whsec_" + base64.b64encode(KEY).decode()


class Door:
    """One that is served, with its queue; what a client does to it, and what the queue has then."""

    def __init__(self, folder: Path, *, signing: str = "", **bounds: Any) -> None:
        self.folder = folder
        self.gate = create_webhook_auth(time.time, SECRET, signing)
        self.bounds = bounds
        self.serving = LabServer({"door": self._app()})

    def _app(self) -> Any:
        """Its queue belongs to the server's event loop, so it is made there."""
        made: list[Any] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if not made:
                self.queue = SqliteQueue(self.folder / "queue" / "queue.sqlite", 60)
                ingress = EventIngress(self.queue, FolderObjectStore(self.folder / "objects"), time.time)
                made.append(create_webhook_app(self.gate, ingress, **self.bounds))
            await made[0](scope, receive, send)

        return app

    def post(self, body: bytes = PIPELINE, headers: Mapping[str, str] | None = None, **more: Any) -> httpx2.Response:
        sent = {"x-gitlab-token": SECRET, **(headers or {})}
        return httpx2.post(self.serving.url("door") + WEBHOOK_PATH, content=body, headers=sent, **more)

    def raw(self, text: bytes) -> bytes:
        """What comes back for it, until the server closes the connection."""
        with self.connected() as client:
            client.sendall(text)
            return b"".join(iter(lambda: _received(client), b""))

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", int(self.serving.url("door").rpartition(":")[2])), timeout=60)

    def queued(self) -> list[EventEnvelope]:
        async def all_there() -> list[EventEnvelope]:
            queue = SqliteQueue(self.folder / "queue" / "queue.sqlite", 60)
            found = [parse_envelope(message.body) for message in await queue.receive(10, 0)]
            await queue.close()
            return [one for one in found if isinstance(one, EventEnvelope)]

        return asyncio.run(all_there())


def _received(client: socket.socket) -> bytes:
    try:
        return client.recv(65_536)
    except ConnectionResetError:
        return b""


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    door = Door(tmp_path)
    with door.serving:
        yield door


@pytest.fixture
def signing(tmp_path: Path) -> Iterator[Door]:
    door = Door(tmp_path, signing=TOKEN)
    with door.serving:
        yield door


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Door]:
    door = Door(tmp_path, held_bytes=100_000)
    with door.serving:
        yield door


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Door]:
    door = Door(tmp_path, body_s=0.2)
    with door.serving:
        yield door


def signed(body: bytes, delivery: str = "id-1", at: float | None = None) -> dict[str, str]:
    stamp = str(int(time.time() if at is None else at))
    made = hmac.digest(KEY, f"{delivery}.{stamp}.".encode() + body, "sha256")
    signature = f"v1,{base64.b64encode(made).decode()}"
    return {"webhook-id": delivery, "webhook-timestamp": stamp, "webhook-signature": signature}


def head(length: int | str, path: str = WEBHOOK_PATH) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: {SECRET}\r\nContent-Length: {length}\r\n\r\n".encode()


CHUNKED = (
    f"POST {WEBHOOK_PATH} HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: {SECRET}\r\nTransfer-Encoding: chunked\r\n\r\n"
).encode()


def test_a_webhook_is_queued_and_answered(door: Door) -> None:
    answer = door.post(headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json()) == (202, {"status": "queued"})
    (arrived,) = door.queued()
    assert arrived.body.encode() == PIPELINE


@pytest.mark.parametrize("token", ["", "wrong", SECRET + " x", SECRET[:-1], SECRET.upper()])
def test_a_wrong_secret_is_refused_and_told_without_its_value(
    door: Door, caplog: pytest.LogCaptureFixture, token: str
) -> None:
    answer = door.post(headers={"x-gitlab-token": token})
    assert answer.status_code == 401
    assert answer.json()["status"] == "refused"
    assert "A webhook from 127.0.0.1 was refused: its X-Gitlab-Token is missing or is not the secret" in caplog.text
    assert SECRET not in caplog.text + answer.text
    assert token not in caplog.text or not token
    assert not door.queued()


def test_a_wrong_secret_is_refused_before_the_body_has_come(door: Door) -> None:
    answer = door.raw(b"POST " + WEBHOOK_PATH.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
    assert b" 401 " in answer.splitlines()[0]


def test_a_replayed_delivery_counts_once_and_reordered_ones_all_count(door: Door) -> None:
    for key in ("2", "1", "2", "1"):
        assert door.post(NOTE, {"Idempotency-Key": key}).status_code == 202
    assert door.post(NOTE, {"Idempotency-Key": "3"}).status_code == 202
    assert len(door.queued()) == 3


@pytest.mark.parametrize(
    "body", [b"", b"hello", PIPELINE[:-20], b"[]", b"\xff\xff", b"{}", b'{"object_kind":"note"}', b"[" * 200_000]
)
def test_what_is_no_event_is_a_bad_request_with_a_sentence(door: Door, body: bytes) -> None:
    answer = door.post(body)
    assert answer.status_code == 400
    assert answer.json()["reason"].startswith("The webhook's body ")
    assert not door.queued()


def test_an_unknown_kind_is_a_success_with_a_reason_for_gitlab_switches_failing_hooks_off(door: Door) -> None:
    answer = door.post(b'{"object_kind": "wiki_page"}')
    assert answer.status_code == 200
    assert answer.json() == {"status": "ignored", "reason": "events of the kind 'wiki_page' are not for us"}
    assert not door.queued()


def test_a_large_body_goes_by_reference(door: Door) -> None:
    body = json.dumps({**json.loads(PIPELINE), "more": "x" * 3_000_000}).encode()
    assert door.post(body).status_code == 202
    (arrived,) = door.queued()
    assert (door.folder / "objects" / arrived.reference).read_bytes() == body


@pytest.mark.parametrize("length", [EVENT_BYTES + 1, 10**17, "9" * 19])
def test_a_body_that_says_it_is_too_large_is_refused_at_once(door: Door, length: int | str) -> None:
    first = door.raw(head(length)).splitlines()[0]
    assert b" 413 " in first


def test_a_body_that_says_nothing_and_is_too_large_is_refused_when_it_is(door: Door) -> None:
    piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    with door.connected() as client:
        client.sendall(CHUNKED)
        sent = 0
        while sent <= EVENT_BYTES + 4 * 0x100000:
            try:
                client.sendall(piece)
            except OSError:  # it has hung up
                break
            sent += 0x100000
        answer = _received(client)
    assert b" 413 " in answer or sent < EVENT_BYTES + 4 * 0x100000
    assert not door.queued()


@pytest.mark.thorough
def test_the_largest_body_that_gitlab_sends_is_taken(door: Door) -> None:
    frame = json.dumps({**json.loads(PIPELINE), "more": ""}).encode()
    body = frame[:-2] + b"x" * (EVENT_BYTES - len(frame)) + frame[-2:]
    assert len(body) == EVENT_BYTES
    assert door.post(body, timeout=60).status_code == 202
    assert door.post(body + b" ", timeout=60).status_code == 413


@pytest.mark.thorough
def test_a_body_that_is_cut_off_is_nothing_and_the_door_stays_open(door: Door) -> None:
    with door.connected() as client:
        client.sendall(head(len(PIPELINE)) + PIPELINE[:100])
    assert door.post().status_code == 202
    assert len(door.queued()) == 1


def test_more_than_was_said_is_not_read_as_a_part_of_it(door: Door) -> None:
    answer = door.raw(head(len(PIPELINE)) + PIPELINE + b"garbage that is not a request\r\n\r\n")
    assert b" 202 " in answer.splitlines()[0]
    (arrived,) = door.queued()
    assert arrived.body.encode() == PIPELINE


def test_a_body_that_never_comes_is_given_up(hasty: Door) -> None:
    assert b" 408 " in hasty.raw(head(1_000) + b"{").splitlines()[0]
    assert b" 408 " in hasty.raw(CHUNKED + b"1\r\n{\r\n").splitlines()[0]
    assert not hasty.queued()


@pytest.mark.thorough
def test_bodies_that_are_held_open_cannot_fill_the_memory(narrow: Door) -> None:
    """Each is within its bound; together they are not, and one of them has to go."""
    with narrow.connected() as one, narrow.connected() as other:
        for client in (one, other):
            client.sendall(head(70_000) + b" " * 60_000)
        answered, *_ = select.select([one, other], [], [], 5)
        assert len(answered) == 1
        assert b" 503 " in _received(answered[0]).splitlines()[0]
        assert narrow.post().status_code == 202, "what the one had is free again"
    assert len(narrow.queued()) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_another_method_is_not_allowed(door: Door, method: str) -> None:
    answer = httpx2.request(method, door.serving.url("door") + WEBHOOK_PATH, headers={"x-gitlab-token": SECRET})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["status"] == "refused"


@pytest.mark.thorough
@pytest.mark.parametrize("path", ["/", WEBHOOK_PATH + "/", "/webhooks", "/webhooks/gitlab/x", "/metrics"])
def test_another_path_is_not_there(door: Door, path: str) -> None:
    answer = httpx2.post(door.serving.url("door") + path, headers={"x-gitlab-token": SECRET}, content=PIPELINE)
    assert (answer.status_code, answer.json()["status"]) == (404, "refused")


@pytest.mark.thorough
def test_with_a_signing_token_only_signed_deliveries_are_taken_and_replays_count_once(signing: Door) -> None:
    headers = signed(PIPELINE)
    assert signing.post(PIPELINE, headers).status_code == 202
    for forged in ("a", "b"):
        assert signing.post(PIPELINE, {**headers, "Idempotency-Key": forged}).status_code == 202
    assert len(signing.queued()) == 1, "a replay under another key is still the same delivery"


@pytest.mark.thorough
def test_what_is_not_signed_or_signed_for_something_else_is_refused(
    signing: Door, caplog: pytest.LogCaptureFixture
) -> None:
    assert signing.post(PIPELINE).status_code == 401
    assert signing.post(NOTE, signed(PIPELINE)).status_code == 401
    assert signing.post(PIPELINE, signed(PIPELINE, at=time.time() - 1_000)).status_code == 401
    assert signing.post(PIPELINE, {**signed(PIPELINE), "x-gitlab-token": "wrong"}).status_code == 401
    assert not signing.queued()
    assert caplog.text.count("A webhook from 127.0.0.1 was refused") == 4


@pytest.mark.thorough
def test_a_queue_that_is_down_is_told_so_that_somebody_sends_it_again(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    (door.folder / "queue").write_text("in the way of the folder")
    answer = door.post()
    assert answer.status_code == 503
    assert answer.json()["reason"] == "The event cannot be stored at the moment; send it again later."
    assert str(door.folder) not in answer.text
    assert "A webhook from 127.0.0.1 could not be stored: The queue" in caplog.text
    (door.folder / "queue").unlink()
    assert door.post().status_code == 202


@pytest.mark.thorough
def test_it_is_alive_always_and_ready_if_the_queue_is(door: Door) -> None:
    (door.folder / "queue").write_text("in the way of the folder")
    assert httpx2.get(door.serving.url("door") + "/healthz").json() == {"status": "alive"}
    answer = httpx2.get(door.serving.url("door") + "/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "refused")


@pytest.mark.thorough
def test_it_is_ready_when_the_queue_can_be_used(door: Door) -> None:
    answer = httpx2.get(door.serving.url("door") + "/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


@pytest.mark.thorough
def test_many_at_once_are_all_taken(door: Door) -> None:
    async def all_at_once() -> list[int]:
        async with httpx2.AsyncClient() as client:
            url = door.serving.url("door") + WEBHOOK_PATH
            asked = [
                client.post(url, content=PIPELINE, headers={"x-gitlab-token": SECRET, "Idempotency-Key": str(number)})
                for number in range(10)
            ]
            return [answer.status_code for answer in await asyncio.gather(*asked)]

    assert asyncio.run(all_at_once()) == [202] * 10
    assert len({arrived.identity for arrived in door.queued()}) == 10

"""What was taken is on the queue or, if no queue carries it, in the store and on the queue by its name."""

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hummingbird.core.errors import EventUnreadable, ObjectStoreUnusable
from hummingbird.core.limits import QUEUE_BODY_BYTES
from hummingbird.core.orders import EventEnvelope
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.service.envelopes import EventDelivery, delivery_from_webhook, parse_envelope
from hummingbird.service.event_ingress import EventIngress, IngressReceipt
from hummingbird.storage.folder_objects import FolderObjectStore

WEBHOOKS = Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks"
NOTE = json.loads((WEBHOOKS / "derived_note_mr_slash_command.json").read_text())


@pytest.fixture
async def ingress(tmp_path: Path) -> AsyncIterator[EventIngress]:
    queue = SqliteQueue(tmp_path / "queue.sqlite", 60)
    yield EventIngress(queue, FolderObjectStore(tmp_path / "objects"), lambda: 17.5)
    await queue.close()


def note(text: str, key: str = "k") -> EventDelivery:
    body = {**NOTE, "object_attributes": {**NOTE["object_attributes"], "note": text}}
    return delivery_from_webhook(json.dumps(body, ensure_ascii=False).encode(), {"idempotency-key": key})


async def received(ingress: EventIngress) -> list[EventEnvelope]:
    found = [parse_envelope(message.body) for message in await ingress.queue.receive(10, 0)]
    return [one for one in found if isinstance(one, EventEnvelope)]


async def test_what_is_taken_is_on_the_queue_in_its_threads_group(ingress: EventIngress) -> None:
    delivery = note("/hummingbird ünïcode \U0001f426 \x7f")
    assert await ingress.accept(delivery) == IngressReceipt(delivery.identity)
    (message,) = await ingress.queue.receive(10, 0)
    assert message.group == NOTE["object_attributes"]["discussion_id"]
    arrived = parse_envelope(message.body)
    assert isinstance(arrived, EventEnvelope)
    assert (arrived.identity, arrived.at, arrived.reference) == (delivery.identity, 17.5, "")
    assert await ingress.load_body(arrived) == delivery.body


async def test_a_resend_is_taken_and_counts_once(ingress: EventIngress) -> None:
    for _ in range(3):
        assert not (await ingress.accept(note("same"))).ignored
    await ingress.accept(note("same", key="another"))
    assert len(await received(ingress)) == 2


@pytest.mark.parametrize("text", ["x" * QUEUE_BODY_BYTES, '"' * (QUEUE_BODY_BYTES // 3), "ü" * (QUEUE_BODY_BYTES // 4)])
async def test_what_no_queue_carries_travels_by_its_name_until_it_is_forgotten(
    ingress: EventIngress, tmp_path: Path, text: str
) -> None:
    delivery = note(text)
    await ingress.accept(delivery)
    (arrived,) = await received(ingress)
    assert (arrived.reference, arrived.body) == (f"events/{delivery.identity}", "")
    assert await ingress.load_body(arrived) == delivery.body
    kept = tmp_path / "objects" / "events" / delivery.identity
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    await ingress.delete_body(arrived)
    assert not kept.exists()
    with pytest.raises(ObjectStoreUnusable, match="is not in the store; see whether"):
        await ingress.load_body(arrived)


async def test_what_just_fits_is_carried(ingress: EventIngress) -> None:
    room = QUEUE_BODY_BYTES - 64 * 1024
    await ingress.accept(note("x" * room))
    (arrived,) = await received(ingress)
    assert not arrived.reference
    assert not await ingress.objects.list_names("")


@pytest.mark.parametrize("kind", ["push", "build", "", "💥" * 1_000])
async def test_kinds_that_are_not_for_us_are_told_at_the_door_and_not_queued(ingress: EventIngress, kind: str) -> None:
    body = json.dumps({"object_kind": kind}).encode()
    assert "are not for us" in (await ingress.accept(delivery_from_webhook(body, {}))).ignored
    assert not await received(ingress)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"object_kind": "pipeline"}', b"<xml/>"])
async def test_what_is_no_event_is_refused_and_not_queued(ingress: EventIngress, body: bytes) -> None:
    with pytest.raises(EventUnreadable):
        await ingress.accept(delivery_from_webhook(body, {}))
    assert not await received(ingress)


async def test_a_store_that_keeps_what_it_should_forget_is_told_and_nothing_else(
    ingress: EventIngress, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "objects" / "events" / "i").mkdir(parents=True)
    await ingress.delete_body(EventEnvelope(identity="i", reference="events/i"))
    assert "The body of event i stays in the store" in caplog.text

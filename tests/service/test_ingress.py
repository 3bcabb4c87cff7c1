"""E1, E2: what was taken is on the queue or, if no queue carries it, in the store and on the queue by its name."""

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hummingbird.adapters.queues.sqlite import SqliteQueue
from hummingbird.adapters.stores.folder_objects import FolderObjects
from hummingbird.domain.errors import EventUnreadable, ObjectsUnusable
from hummingbird.domain.limits import QUEUE_BODY_BYTES
from hummingbird.domain.orders import Arrived
from hummingbird.service.envelopes import Delivery, from_webhook, opened
from hummingbird.service.ingress import Ingress, Taken

WEBHOOKS = Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks"
NOTE = json.loads((WEBHOOKS / "derived_note_mr_slash_command.json").read_text())


@pytest.fixture
async def ingress(tmp_path: Path) -> AsyncIterator[Ingress]:
    queue = SqliteQueue(tmp_path / "queue.sqlite", 60)
    yield Ingress(queue, FolderObjects(tmp_path / "objects"), lambda: 17.5)
    await queue.close()


def note(text: str, key: str = "k") -> Delivery:
    body = {**NOTE, "object_attributes": {**NOTE["object_attributes"], "note": text}}
    return from_webhook(json.dumps(body, ensure_ascii=False).encode(), {"idempotency-key": key})


async def received(ingress: Ingress) -> list[Arrived]:
    found = [opened(message.body) for message in await ingress.queue.receive(10, 0)]
    return [one for one in found if isinstance(one, Arrived)]


async def test_what_is_taken_is_on_the_queue_in_its_threads_group_e2(ingress: Ingress) -> None:
    delivery = note("/hummingbird ünïcode \U0001f426 \x7f")
    assert await ingress.take(delivery) == Taken(delivery.identity)
    (message,) = await ingress.queue.receive(10, 0)
    assert message.group == NOTE["object_attributes"]["discussion_id"]
    arrived = opened(message.body)
    assert isinstance(arrived, Arrived)
    assert (arrived.identity, arrived.at, arrived.reference) == (delivery.identity, 17.5, "")
    assert await ingress.body_of(arrived) == delivery.body


async def test_a_resend_is_taken_and_counts_once_e2(ingress: Ingress) -> None:
    for _ in range(3):
        assert not (await ingress.take(note("same"))).ignored
    await ingress.take(note("same", key="another"))
    assert len(await received(ingress)) == 2


@pytest.mark.parametrize("text", ["x" * QUEUE_BODY_BYTES, '"' * (QUEUE_BODY_BYTES // 3), "ü" * (QUEUE_BODY_BYTES // 4)])
async def test_what_no_queue_carries_travels_by_its_name_until_it_is_forgotten_e1(
    ingress: Ingress, tmp_path: Path, text: str
) -> None:
    delivery = note(text)
    await ingress.take(delivery)
    (arrived,) = await received(ingress)
    assert (arrived.reference, arrived.body) == (f"events/{delivery.identity}", "")
    assert await ingress.body_of(arrived) == delivery.body
    kept = tmp_path / "objects" / "events" / delivery.identity
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    await ingress.forget(arrived)
    assert not kept.exists()
    with pytest.raises(ObjectsUnusable, match="is not in the store; see whether"):
        await ingress.body_of(arrived)


async def test_what_just_fits_is_carried_e1(ingress: Ingress) -> None:
    room = QUEUE_BODY_BYTES - 64 * 1024
    await ingress.take(note("x" * room))
    (arrived,) = await received(ingress)
    assert not arrived.reference
    assert not await ingress.objects.names("")


@pytest.mark.parametrize("kind", ["push", "build", "", "💥" * 1_000])
async def test_kinds_that_are_not_for_us_are_told_at_the_door_and_not_queued_e1(ingress: Ingress, kind: str) -> None:
    body = json.dumps({"object_kind": kind}).encode()
    assert "are not for us" in (await ingress.take(from_webhook(body, {}))).ignored
    assert not await received(ingress)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"object_kind": "pipeline"}', b"<xml/>"])
async def test_what_is_no_event_is_refused_and_not_queued_e1(ingress: Ingress, body: bytes) -> None:
    with pytest.raises(EventUnreadable):
        await ingress.take(from_webhook(body, {}))
    assert not await received(ingress)


async def test_a_store_that_keeps_what_it_should_forget_is_told_and_nothing_else_e1(
    ingress: Ingress, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "objects" / "events" / "i").mkdir(parents=True)
    await ingress.forget(Arrived(identity="i", reference="events/i"))
    assert "The body of event i stays in the store" in caplog.text

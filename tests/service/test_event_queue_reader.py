"""Events that come through SNS and a queue of SQS, as ministack serves it."""

import asyncio
import base64
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from hummingbird.core.errors import QueueUnusable
from hummingbird.core.orders import EventEnvelope
from hummingbird.core.protocols.queues import InboxMessage
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.queues.sqs import SqsInbox
from hummingbird.service.envelopes import parse_envelope
from hummingbird.service.event_ingress import EventIngress, EventQueueReader
from hummingbird.storage.folder_objects import FolderObjectStore
from tests.contracts.queues.backends.ministack import REGION, Ministack

WEBHOOKS = Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks"
NOTE = (WEBHOOKS / "derived_note_mr_internal_reply_17x.json").read_text()
PIPELINE = (WEBHOOKS / "pipeline_failed_merge_request_event.json").read_text()
PATIENCE_S = 40.0


class Inbox:
    """Gives what a test puts in, in the order of the test; knows what was deleted."""

    def __init__(self, *turns: list[InboxMessage] | Exception) -> None:
        self.turns = list(turns)
        self.deleted: list[str] = []
        self.empty = asyncio.Event()

    async def receive(self, wait_s: float) -> list[InboxMessage]:
        if not self.turns:
            self.empty.set()
            await asyncio.sleep(wait_s)
            return []
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn

    async def delete(self, letter: InboxMessage) -> None:
        self.deleted.append(letter.id)

    async def close(self) -> None: ...


def letter(name: str, body: str, receives: int = 1) -> InboxMessage:
    return InboxMessage(name, body, receives, "receipt")


@pytest.fixture
async def ingress(tmp_path: Path) -> AsyncIterator[EventIngress]:
    queue = SqliteQueue(tmp_path / "queue.sqlite", 60)
    yield EventIngress(queue, FolderObjectStore(tmp_path / "objects"), lambda: 1.0)
    await queue.close()


@asynccontextmanager
async def polling(inbox: Any, ingress: EventIngress) -> AsyncIterator[None]:
    door = EventQueueReader(inbox, ingress)
    running = asyncio.create_task(door.run())
    try:
        yield
        door.stop()
        async with asyncio.timeout(PATIENCE_S):
            await running
    finally:
        running.cancel()
        await asyncio.wait((running,))


async def all_read(inbox: Inbox, ingress: EventIngress) -> list[str]:
    async with asyncio.timeout(PATIENCE_S), polling(inbox, ingress):
        await inbox.empty.wait()
    found = [parse_envelope(message.body) for message in await ingress.queue.receive(10, 0)]
    return sorted(one.body for one in found if isinstance(one, EventEnvelope))


async def test_events_of_a_real_queue_are_taken_whatever_they_are_wrapped_in(
    ministack: Ministack, ingress: EventIngress
) -> None:
    url = ministack.create("events", VisibilityTimeout="60")
    client = boto3.session.Session(region_name=REGION).client("sqs", endpoint_url=ministack.endpoint)
    packed = base64.b64encode(gzip.compress(PIPELINE.encode())).decode()
    wrapped = {"Type": "Notification", "MessageId": "1", "TopicArn": "arn", "Message": packed}
    attributes = {"source": {"DataType": "String", "StringValue": "gitlab"}}
    for body in (json.dumps(wrapped), json.dumps(wrapped), NOTE):
        client.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes)
    client.close()
    inbox = SqsInbox(url, region=REGION, endpoint=ministack.endpoint)
    taken: list[str] = []
    async with polling(inbox, ingress), asyncio.timeout(PATIENCE_S):
        while len(taken) < 2:
            for message in await ingress.queue.receive(10, PATIENCE_S / 2):
                arrived = parse_envelope(message.body)
                assert isinstance(arrived, EventEnvelope)
                taken.append(arrived.body)
    assert sorted(taken) == sorted([PIPELINE, NOTE])
    assert not await inbox.receive(0)
    await inbox.close()


async def left(inbox: SqsInbox, after_s: float) -> None:
    """Begins to receive and goes, as a replica that stops."""
    receiving = asyncio.create_task(inbox.receive(PATIENCE_S))
    await asyncio.sleep(after_s)
    receiving.cancel()
    await asyncio.wait((receiving,))


@pytest.mark.thorough
async def test_an_event_that_came_when_its_taker_had_left_is_there_at_once_for_the_next(
    ministack: Ministack,
) -> None:
    url = ministack.create("left", VisibilityTimeout="60")
    leaving, inbox = (SqsInbox(url, region=REGION, endpoint=ministack.endpoint) for _ in range(2))
    assert not await leaving.receive(0)  # so that it is connected
    await left(leaving, 0.1)
    ministack.send(url, NOTE)
    await leaving.close()
    assert [letter.body for letter in await inbox.receive(0)] == [NOTE]
    await inbox.close()


@pytest.mark.thorough
async def test_replicas_that_stop_together_make_no_dead_letter_of_an_event(ministack: Ministack) -> None:
    """Given back at once, each of them would get it."""
    url = ministack.create("left-by-many", VisibilityTimeout="60")
    ministack.send(url, NOTE)
    for _ in range(2):
        leaving = SqsInbox(url, region=REGION, endpoint=ministack.endpoint)
        await left(leaving, 0)
        await leaving.close()
    inbox = SqsInbox(url, region=REGION, endpoint=ministack.endpoint)
    assert not await inbox.receive(0)
    await inbox.close()


@pytest.mark.thorough
async def test_a_queue_of_events_that_is_not_there_is_a_sentence(ministack: Ministack) -> None:
    inbox = SqsInbox(ministack.endpoint + "/000000000000/nowhere", region=REGION, endpoint=ministack.endpoint)
    with pytest.raises(QueueUnusable, match="There is no queue"):
        await inbox.receive(0)
    await inbox.close()


async def test_what_is_taken_or_unwanted_is_deleted_and_the_unreadable_left_to_its_dead_letters(
    ingress: EventIngress, caplog: pytest.LogCaptureFixture
) -> None:
    other = json.dumps({"Type": "SubscriptionConfirmation", "TopicArn": "arn", "Message": ""})
    inbox = Inbox(
        [
            letter("good", NOTE),
            letter("bad", "nonsense"),
            letter("other", other),
            letter("push", '{"object_kind":"push"}'),
        ],
        [letter("bad", "nonsense", 4)],
    )
    assert await all_read(inbox, ingress) == [NOTE]
    assert sorted(inbox.deleted[:3]) == ["good", "other", "push"]
    assert inbox.deleted[3:] == ["bad"], "only when it came for the fourth time"
    assert "Message bad of the event queue cannot be read" in caplog.text


async def test_an_event_that_cannot_be_kept_is_not_deleted(tmp_path: Path, ingress: EventIngress) -> None:
    closed = SqliteQueue(tmp_path / "queue.sqlite", 60)
    await closed.close()
    inbox = Inbox([letter("good", NOTE)])
    broken = EventIngress(closed, ingress.objects, ingress.now)
    async with asyncio.timeout(PATIENCE_S), polling(inbox, broken):
        await inbox.empty.wait()
    assert not inbox.deleted


async def test_a_queue_that_cannot_be_reached_is_asked_again(
    ingress: EventIngress, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Inbox(QueueUnusable("It is away; wait."), [letter("good", NOTE)])
    assert await all_read(inbox, ingress) == [NOTE]
    assert caplog.text.count("The event queue is not available") == 1
    assert "The event queue is available again." in caplog.text

"""Hosts that share nothing but AWS: events by SNS, work by SQS, sessions and large events in S3.

AWS is ministack's, in a process of its own, and found by the environment as in a pod.
"""

import base64
import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from hummingbird.app.stores import session_store_at
from hummingbird.core.journal import JournalEntry, RunEnded
from hummingbird.core.limits import QUEUE_BODY_BYTES
from hummingbird.gitlab.write.protocol import NoteKind
from tests.app.conducting import shell
from tests.contracts.queues.backends.ministack import REGION, Ministack
from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Turn

CASE = "compiler-error"
_NUMBERS = count(1)


@dataclass(frozen=True)
class Shared:
    """What hosts have in common."""

    endpoint: str
    work: str
    events: str
    bucket: str

    @property
    def store(self) -> str:
        return f"s3://{self.bucket}/hummingbird"

    @property
    def settings(self) -> dict[str, str]:
        return {"sqs_fifo_queue_url": self.work, "sqs_queue_url": self.events, "session_store": self.store}

    def publish(self, event: bytes, *, packed: bool) -> None:
        """As SNS puts it into a queue that is subscribed to a topic."""
        text = base64.b64encode(gzip.compress(event)).decode() if packed else event.decode()
        attributes = {"source": {"Type": "String", "Value": "gitlab"}}
        envelope = {"Type": "Notification", "MessageId": "m-1", "Message": text, "MessageAttributes": attributes}
        self.client("sqs").send_message(QueueUrl=self.events, MessageBody=json.dumps(envelope))

    def left(self) -> int:
        """Messages that are seen or held in either queue."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        asked = self.client("sqs").get_queue_attributes
        found = [asked(QueueUrl=url, AttributeNames=names)["Attributes"] for url in (self.work, self.events)]
        return sum(int(attributes[name]) for attributes in found for name in names)

    def kept(self) -> list[str]:
        listed = self.client("s3").list_objects_v2(Bucket=self.bucket)
        return [one["Key"].removeprefix("hummingbird/") for one in listed.get("Contents", ())]

    async def entries(self, session_id: str) -> Sequence[JournalEntry]:
        return await session_store_at(self.store, time.time).load_entries(session_id)

    def client(self, service: str) -> Any:
        return boto3.session.Session(region_name=REGION).client(service, endpoint_url=self.endpoint)


@pytest.fixture
async def shared(cloud: Ministack, monkeypatch: pytest.MonkeyPatch) -> Shared:
    monkeypatch.setattr("hummingbird.queues.sqs.QUEUE_POLL_S", 1.0)  # a stop waits for its end
    number = next(_NUMBERS)
    made = Shared(cloud.endpoint, (await cloud.site()).url, cloud.create(f"events-{number}"), f"sessions-{number}")
    made.client("s3").create_bucket(Bucket=made.bucket)
    return made


async def begin_on(stage: Stage, host: str) -> None:
    """Ends the service that there was; the next one knows nothing of its files."""
    await stage.stop()
    stage.environment["HUMMINGBIRD_HOME"] = str(stage.folder / host)
    await stage.serve()


@pytest.mark.thorough
async def test_a_reply_on_another_host_goes_on_with_what_the_first_one_did_s3(tmp_path: Path, shared: Shared) -> None:
    turns = [shell("echo seen-on-the-first"), Turn(text="The compiler said no."), Turn(text="Because of a type.")]
    async with staged(CASE, tmp_path, settings=shared.settings, turns=turns, begin=False) as stage:
        await begin_on(stage, "first")
        shared.publish(stage.scene.webhook_event()[1], packed=False)
        await stage.until(lambda: len(stage.ends()) == 1 and shared.left() == 0)
        await stage.stop()
        first = stage.marked()[0]
        before = await shared.entries(first.session)
        await begin_on(stage, "second")
        await stage.write(_developer(stage), "Why?", thread=first.thread)
        await stage.until(lambda: len(stage.ends()) == 2 and shared.left() == 0)
        await stage.stop()
        assert [note.part for note in stage.marked()] == [NoteKind.PLACEHOLDER, NoteKind.RESULT, NoteKind.RESULT]
        assert {note.session for note in stage.marked()} == {first.session}
        assert "Because of a type." in stage.ends()[1].body
        assert stage.lab is not None
        assert "seen-on-the-first" in json.dumps(stage.lab.requests[-1].body), "the model is shown all that was"
    after = await shared.entries(first.session)
    assert after[: len(before)] == before
    assert [len([one for one in some if isinstance(one, RunEnded)]) for some in (before, after)] == [1, 2]
    for host in ("first", "second"):
        assert not (tmp_path / host / "sessions" / first.session).exists(), (
            "a host keeps nothing that others would lack"
        )


@pytest.mark.thorough
async def test_an_event_that_no_queue_carries_comes_through_the_store_and_is_gone_afterwards(
    tmp_path: Path, shared: Shared
) -> None:
    async with staged(CASE, tmp_path, settings=shared.settings, begin=False) as stage:
        event = json.loads(stage.scene.webhook_event()[1])
        shared.publish(json.dumps({**event, "padding": "x" * QUEUE_BODY_BYTES}).encode(), packed=True)
        await begin_on(stage, "only")
        await stage.until(lambda: len(stage.ends()) == 1 and shared.left() == 0)
        await stage.stop()
        session = stage.ends()[0].session
    beside = {"context.json", "transcript.md", "metadata.json"}
    assert {"journal/tail.jsonl", *beside} <= {name.removeprefix(f"sessions/{session}/") for name in shared.kept()}
    assert not [name for name in shared.kept() if name.startswith("events/")]


def _developer(stage: Stage) -> str:
    def found(world: Any) -> str:
        members = (world.user(one.user_id) for one in world.project.members.values() if one.access_level >= 30)
        return next(str(user.username) for user in members if not user.bot)

    return stage.ask(found)

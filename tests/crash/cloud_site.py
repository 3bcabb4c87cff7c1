"""SQS and S3, which is all that two services have in common: each of them has a home of its own."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from hummingbird.core.journal import JournalEntry
from hummingbird.core.limits import QUEUE_RECEIVES
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.object_store import BucketObjectStore
from tests.contracts.queues.backends.ministack import REGION, SURROUNDINGS, serving, use
from tests.crash.sites import LocalSite

_NUMBERS = count(1)
_COUNTED = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")


@dataclass(frozen=True)
class Cloud:
    """Its clients may be used by several threads."""

    endpoint: str
    sqs: Any
    s3: Any

    def bucket(self, name: str) -> str:
        """The address of sessions in a new one."""
        self.s3.create_bucket(Bucket=name)
        return f"s3://{name}/hummingbird"

    def queues(self, name: str) -> tuple[str, str]:
        """Two new ones: for work, and for its dead letters."""
        dead = self._queue(f"{name}-dead.fifo")
        arn = self.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": "{QUEUE_RECEIVES}"}}'
        return self._queue(f"{name}.fifo", RedrivePolicy=redrive), dead

    def counted(self, url: str) -> int:
        """Messages that are seen or held."""
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(_COUNTED))["Attributes"]
        return sum(int(found[name]) for name in _COUNTED)

    def _queue(self, name: str, **attributes: str) -> str:
        return str(self.sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true", **attributes})["QueueUrl"])


class CloudSite:
    """Whoever died holds its messages and its session for some seconds: nobody can help that."""

    visibility_s = 3
    hurry: Mapping[str, Any] = {
        "hummingbird.storage.bucket_journal.LEASE_S": 3.0,
        "hummingbird.storage.bucket_journal.LEASE_BEAT_S": 1.0,
    }

    def __init__(self, folder: Path, cloud: Cloud) -> None:
        name = f"crash-{next(_NUMBERS)}"
        self._folder, self._cloud = folder, cloud
        self._bucket = cloud.bucket(name)
        self._orders, self._dead = cloud.queues(name)

    @property
    def settings(self) -> Mapping[str, str]:
        return {"sqs_fifo_queue_url": self._orders, "session_store": self._bucket}

    @property
    def environment(self) -> Mapping[str, str]:
        place = {"AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": self._cloud.endpoint}
        return {**LocalSite.environment, **SURROUNDINGS, **place}

    def home(self, number: int) -> Path:
        return self._folder / f"host-{number}"

    def let_go(self) -> None:
        """They come by themselves."""

    def left(self) -> int:
        return self._cloud.counted(self._orders)

    def dead(self) -> int:
        return self._cloud.counted(self._dead)

    async def entries(self, session_id: str) -> Sequence[JournalEntry]:
        objects = BucketObjectStore(self._bucket, endpoint=self._cloud.endpoint, region=REGION)
        return await BucketSessionStore(objects, self._bucket, time.time).load_entries(session_id)


@contextmanager
def stand_in(folder: Path) -> Iterator[Cloud]:
    """Of AWS."""
    with pytest.MonkeyPatch.context() as patch:
        use(patch)
        with serving(folder) as server:
            session = boto3.session.Session(region_name=REGION)
            with ExitStack() as opened:
                clients = [session.client(name, endpoint_url=server.endpoint) for name in ("sqs", "s3")]
                for client in clients:
                    opened.callback(client.close)
                yield Cloud(server.endpoint, *clients)

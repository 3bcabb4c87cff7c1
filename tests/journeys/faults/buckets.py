"""The service with its sessions in a bucket of ministack's, and a proxy on the way there."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import boto3.session
import pytest

from hummingbird.core.journal import JournalEntry, RunEnded, RunStarted, dump_entry
from hummingbird.core.sessions import TRANSCRIPT
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.object_store import BucketObjectStore
from tests.contracts.queues.backends.ministack import REGION, Ministack
from tests.journeys.faults.proxy import Proxy
from tests.journeys.service.stage import Ours, Stage, staged
from tests.standins.vendors.script import Step

TROUBLE = "Not everything went as it should"
WHOLE = ["context.json", "journal/tail.jsonl", "metadata.json", "sandbox.tar.gz", "transcript.md"]
TAIL = "*/journal/tail.jsonl"
SEGMENTS = "*/journal/0*.jsonl"
BESIDE_SESSIONS = ("*/spending/*", "*/known-failures/*", "*/votes/*")
_NUMBERS = count(1)


class Bucket:
    """`direct` goes by no proxy: what there really is."""

    def __init__(self, cloud: Ministack, proxy: Proxy) -> None:
        self.proxy, self._name = proxy, f"faults-{next(_NUMBERS)}"
        self._client = boto3.session.Session(region_name=REGION).client("s3", endpoint_url=cloud.endpoint)
        self._client.create_bucket(Bucket=self._name)
        self.address = f"s3://{self._name}/hummingbird"
        objects = BucketObjectStore(self.address, endpoint=cloud.endpoint, region=REGION)
        self.direct = BucketSessionStore(objects, self.address, lambda: 0.0)

    @property
    def settings(self) -> dict[str, object]:
        return {"session_store": self.address, "internal_notes": False}

    async def entries(self, session_id: str) -> Sequence[JournalEntry]:
        return await self.direct.load_entries(session_id)

    async def transcript(self, session_id: str) -> str:
        """As the process told it that had all entries in memory."""
        return (await self.direct.read_file(session_id, TRANSCRIPT) or b"").decode()

    def names(self) -> list[str]:
        """Of the sessions' objects: what hosts share besides is not theirs."""
        room = "hummingbird/sessions/"
        listed = self._client.list_objects_v2(Bucket=self._name, Prefix=room).get("Contents", ())
        return sorted(one["Key"].removeprefix(room).partition("/")[2] for one in listed)

    def close(self) -> None:
        self._client.close()


@asynccontextmanager
async def on_a_bucket(bucket: Bucket, folder: Path, *turns: Step) -> AsyncIterator[Stage]:
    async with staged("failing-test", folder, settings=bucket.settings, turns=turns, begin=False) as stage:
        await stage.serve()
        yield stage
        assert stage.dead() == 0


async def reply(stage: Stage, thread: str, number: int) -> Ours:
    """What a person is answered who asks further."""
    await stage.write("hsato", "Which line is it?", thread=thread)
    return (await stage.notes(number))[-1]


def asked_last(stage: Stage) -> str:
    """All that the model was shown."""
    assert stage.lab is not None
    return str(stage.lab.requests[-1].body)


def runs(entries: Sequence[JournalEntry]) -> list[str]:
    """The ids of all that began; each of them ended, and no entry is there twice."""
    began = [one.run_id for one in entries if isinstance(one, RunStarted)]
    assert [one.run_id for one in entries if isinstance(one, RunEnded)] == began
    assert len({dump_entry(one) for one in entries}) == len(entries)
    return began


def said_by_service(caplog: pytest.LogCaptureFixture, session_id: str) -> str:
    """What the operator is told of a session."""
    lines = (one.getMessage() for one in caplog.records if one.levelname in ("WARNING", "ERROR"))
    return "\n".join(line for line in lines if session_id in line)

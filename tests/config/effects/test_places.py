"""Keys that say where work is handed out, where events come from and where sessions are kept."""

import asyncio
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import boto3.session
import pytest

from hummingbird.app.investigation import AgentInvestigator
from hummingbird.app.service import HummingbirdService, watch_config
from hummingbird.app.stores import open_queue, session_store, state_paths
from hummingbird.config.loader import ConfigWatcher
from hummingbird.config.settings import Settings
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.queues.sqs import SqsQueue
from hummingbird.service.protocols import InvestigationRequest
from hummingbird.storage.folder_sessions import FolderSessionStore
from tests.app.conducting import applied, configured, order, until
from tests.config.effects.desk import CASE, told_in, written
from tests.contracts.queues.backends.ministack import REGION, Ministack

_NUMBERS = count(1)


def bucket(server: Ministack) -> str:
    name = f"effects-{next(_NUMBERS)}"
    client = boto3.session.Session(region_name=REGION).client("s3", endpoint_url=server.endpoint)
    client.create_bucket(Bucket=name)
    client.close()
    return name


async def test_sqs_fifo_queue_url_is_where_work_is_handed_out(tmp_path: Path, cloud: Ministack) -> None:
    """What one process sends, another one receives from the same queue; else from a file."""
    given, url = {"HUMMINGBIRD_HOME": str(tmp_path / "state")}, (await cloud.site()).url
    for line, kind in (("max_iterations: 9", SqliteQueue), (f"sqs_fifo_queue_url: {url}", SqsQueue)):
        settings = configured(tmp_path / "config", line).settings
        queue, other = open_queue(settings, given), open_queue(settings, given)
        assert isinstance(queue, kind)
        await queue.send("work", group="g", dedup_id="d")
        assert [message.body for message in await other.receive(1, 5)] == ["work"]
        for one in (queue, other):
            await one.close()


@pytest.mark.thorough
async def test_sqs_queue_url_is_where_events_come_from(tmp_path: Path, cloud: Ministack) -> None:
    """An event that somebody else put there leads to notes, and the queue is empty afterwards."""
    events, work = cloud.create(f"events-{next(_NUMBERS)}"), (await cloud.site()).url
    client = boto3.session.Session(region_name=REGION).client("sqs", endpoint_url=cloud.endpoint)
    with Scene(find_case(CASE)) as scene:
        lines = [f"gitlab_url: {scene.url('gitlab')}", "settle_seconds: 0", f"sqs_fifo_queue_url: {work}"]
        file = written(tmp_path, [*lines, f"sqs_queue_url: {events}"], ["trigger: pipeline"])
        given = {"HUMMINGBIRD_HOME": str(tmp_path / "state"), "ORCHESTRATOR_GITLAB_TOKEN": scene.write_token}
        client.send_message(QueueUrl=events, MessageBody=scene.webhook_event()[1].decode())
        running = HummingbirdService(ConfigWatcher(file, given), given, grace_s=5.0)
        task = asyncio.create_task(running.run(signals=False))
        await until(lambda: len(told_in(scene)) == 2)
        running.stop()
        async with asyncio.timeout(60):
            await task
    assert "Messages" not in client.receive_message(QueueUrl=events)
    client.close()


@pytest.mark.thorough
@pytest.mark.parametrize("key", ["s3_session_bucket", "session_store"])
async def test_s3_session_bucket_and_session_store_are_where_other_hosts_find_sessions(
    tmp_path: Path, cloud: Ministack, key: str
) -> None:
    """Whoever has the same store goes on; without it nobody does."""
    name = bucket(cloud)
    line = f"{key}: {name}" if key == "s3_session_bucket" else f"{key}: s3://{name}/kept"
    configuration = configured(tmp_path / "config", f"model: digest\n{line}")
    here, there = (sessions(configuration.settings, tmp_path / host) for host in ("here", "there"))
    await AgentInvestigator(here, {}).investigate(
        InvestigationRequest(order(), configuration, applied(configuration), "Why?")
    )
    assert await there.load_entries("session")
    assert await there.read_file("session", "transcript.md")
    assert not await FolderSessionStore(tmp_path / "here" / "sessions").load_entries("session")


def sessions(settings: Settings, home: Path) -> SessionStore:
    return session_store(state_paths(settings, {"HUMMINGBIRD_HOME": str(home)}).create_folders(), settings, time.time)


async def test_session_store_may_be_a_directory(tmp_path: Path) -> None:
    configuration = configured(tmp_path / "config", f"model: digest\nsession_store: {tmp_path / 'kept'}")
    there = sessions(configuration.settings, tmp_path / "state")
    await AgentInvestigator(there, {}).investigate(
        InvestigationRequest(order(), configuration, applied(configuration), "Why?")
    )
    assert (tmp_path / "kept" / "session" / "journal.jsonl").exists()
    assert not (tmp_path / "state" / "sessions").exists()


@pytest.mark.parametrize(("lines", "naps"), [((), [5, 5]), (("config_poll_seconds: 2",), [2, 2])])
async def test_config_poll_seconds_is_the_time_between_two_looks(
    tmp_path: Path, lines: Sequence[str], naps: list[float]
) -> None:
    taken: list[float] = []

    async def sleep(seconds: float) -> None:
        taken.append(seconds)
        if len(taken) == 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await watch_config(ConfigWatcher(written(tmp_path, lines), {}), sleep)
    assert taken == naps

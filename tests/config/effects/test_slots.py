"""`max_concurrent_agents`, in a whole service."""

import asyncio
import threading
from pathlib import Path

import pytest

from hummingbird.app.service import HummingbirdService
from hummingbird.config.loader import ConfigWatcher
from hummingbird.core.journal import RunEnded, RunStarted
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.orders import encode_envelope as packed
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from hummingbird.storage.journals import FileJournal
from tests.app.conducting import MODEL, until
from tests.config.effects.desk import CASE, PROJECT, WORKFLOW, told_in, written
from tests.standins.vendors.script import Fault, Script, Turn
from tests.standins.vendors.server import VendorLab

ORDERS = ("one", "two")


def order(name: str, scene: Scene) -> WorkOrder:
    request = scene.worlds.gitlab.merge_request
    return WorkOrder(
        id=f"order-{name}",
        session_id=name,
        cause=OrderCause.COMMAND,
        workflow=WORKFLOW,
        project=PROJECT,
        mr_iid=request.iid,
        sha=request.sha or "",
        actor_id=request.author_id,
        forced=True,  # nobody wrote a note
    )


@pytest.mark.parametrize(("most", "together"), [(1, False), (2, True)])
async def test_max_concurrent_agents_is_how_many_runs_there_are_at_a_time(
    tmp_path: Path, most: int, together: bool
) -> None:
    """Both wait in the queue from the beginning; with one slot, the second begins when the first has ended."""
    enough_at_work = threading.Event()
    slow = Fault("slow", turn=Turn(text="Found."), until=enough_at_work)
    with Scene(find_case(CASE)) as scene, VendorLab(Script([slow, slow])) as lab:
        lines = [f"gitlab_url: {scene.url('gitlab')}", f"model: {MODEL}", f"max_concurrent_agents: {most}"]
        given = {
            "HUMMINGBIRD_HOME": str(tmp_path / "state"),
            "ORCHESTRATOR_GITLAB_TOKEN": scene.write_token,
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": lab.anthropic_url,
        }
        serving = HummingbirdService(ConfigWatcher(written(tmp_path / "config", lines), given), given, grace_s=5.0)
        for name in ORDERS:
            await serving.queue.send(packed(order(name, scene)), group=name, dedup_id=name)
        running = asyncio.create_task(serving.run(signals=False))
        await until(lambda: len(lab.requests) == most)
        enough_at_work.set()
        await until(lambda: len(told_in(scene)) == 2 * len(ORDERS))
        serving.stop()
        async with asyncio.timeout(30):
            await running
    (began, ended), (later, _) = sorted(span(tmp_path / "state" / "sessions" / name) for name in ORDERS)
    assert began < ended
    assert (later < ended) is together


def span(session: Path) -> tuple[float, float]:
    journal = FileJournal(session / "journal.jsonl")
    journal.close()
    (began,) = (one.at for one in journal.entries() if isinstance(one, RunStarted))
    (ended,) = (one.at for one in journal.entries() if isinstance(one, RunEnded))
    return began, ended

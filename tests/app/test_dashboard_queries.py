"""What the dashboard is told: nobody waits for an index that is being made, and every store gives the same figures."""

import asyncio
import random
import time
from pathlib import Path
from typing import Any, cast

import pytest

from hummingbird.app import session_catalog
from hummingbird.app.dashboard import StoredDashboardQueries
from hummingbird.app.session_catalog import SessionCatalog
from hummingbird.config.loader import load_config
from hummingbird.core.errors import QueueUnusable
from hummingbird.core.protocols.run_figures import RunQuery
from hummingbird.core.protocols.sessions import SessionStore, StoredSession
from hummingbird.dashboard.queries import QueueState
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.object_store import BucketObjectStore
from hummingbird.storage.session_index import open_session_index
from tests.dashboard.pictures import FAILURES, sample_entries, save_session


class Endless:
    """A store whose list never comes."""

    def __init__(self) -> None:
        self.asked = 0

    async def list_sessions(self) -> list[StoredSession]:
        self.asked += 1
        await asyncio.Event().wait()
        raise AssertionError("nobody waits for it")


async def test_pages_show_what_is_known_while_the_index_is_still_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_catalog, "FRESH_S", 0.05)
    store = Endless()
    past = SessionCatalog(cast("SessionStore", store), open_session_index(tmp_path / "index.sqlite", str, print))
    nobody = cast("Any", None)  # neither failures, nor the queue, files or votes are asked for
    desk = StoredDashboardQueries(
        lambda: load_config(None, None), past, nobody, nobody, nobody, votes=nobody, spending=nobody
    )
    async with asyncio.timeout(30):
        assert await desk.find_runs(RunQuery(), 10) == []
        assert await desk.search("anything", 10) == []
        assert (await desk.run_figures(0.0)).total.sessions == 0
        await past.stop_refresh()
    assert store.asked == 1, "many who look cost no more than one does"


class BrokenQueue:
    async def count_messages(self) -> int:
        raise QueueUnusable("It is away.")


@pytest.mark.parametrize("kind", ["folder", "bucket"])
async def test_each_store_gives_lists_grids_and_figures(tmp_path: Path, kind: str) -> None:
    store: FolderSessionStore | BucketSessionStore = FolderSessionStore(tmp_path / "sessions")
    if kind == "bucket":
        store = BucketSessionStore(BucketObjectStore.in_memory(), "memory://", time.time)
    entries = sample_entries(1, time.time() - 600, "acme/shop", FAILURES[0], random.Random(1))
    saved = await save_session(store, entries)
    catalog = SessionCatalog(store, open_session_index(tmp_path / "index.sqlite", str, print))
    nobody = cast("Any", None)
    queue = cast("Any", BrokenQueue())
    desk = StoredDashboardQueries(
        lambda: load_config(None, None), catalog, nobody, queue, nobody, votes=nobody, spending=nobody
    )
    assert [one.session_id for one in await desk.find_runs(RunQuery(text="voucher"), 10)] == [saved]
    assert (await desk.run_choices()).project == ("acme/shop",)
    assert (await desk.run_figures(0.0)).total.sessions == 1
    assert [one.session_id for one in await desk.list_pipelines("acme/shop", 10, of_branches=False)] == [saved]
    assert len(await desk.failure_runs("acme/shop", [FAILURES[0].fingerprint], 10)) == 1
    assert (await desk.spending_tables(0.0)).projects[0].name == "acme/shop"
    assert await desk.queue_state() == QueueState(None), "a queue that is away takes no page away"
    await catalog.stop_refresh()

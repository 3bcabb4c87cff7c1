"""Whoever looks at the dashboard waits for no index that is being made."""

import asyncio
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from hummingbird.app import session_catalog
from hummingbird.app.dashboard import StoredDashboardQueries
from hummingbird.app.session_catalog import SessionCatalog
from hummingbird.config.loader import load_config
from hummingbird.core.protocols.sessions import SessionStore, StoredSession
from hummingbird.storage.session_index import open_session_index


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
    desk = StoredDashboardQueries(lambda: load_config(None, None), past, nobody, nobody, nobody, votes=nobody)
    async with asyncio.timeout(30):
        assert await desk.list_sessions(10) == []
        assert await desk.search("anything", 10) == []
        assert await desk.daily_costs(date(2026, 1, 1)) == []
        await past.stop_refresh()
    assert store.asked == 1, "many who look cost no more than one does"

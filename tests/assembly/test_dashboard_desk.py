"""O4: whoever looks at the dashboard waits for no index that is being made."""

import asyncio
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from hummingbird.adapters.stores.index import opened
from hummingbird.assembly import session_desk
from hummingbird.assembly.dashboard import DashboardDesk
from hummingbird.assembly.session_desk import SessionDesk
from hummingbird.config.load import load
from hummingbird.ports.sessions import Kept, Sessions


class Endless:
    """A store whose list never comes."""

    def __init__(self) -> None:
        self.asked = 0

    async def listed(self) -> list[Kept]:
        self.asked += 1
        await asyncio.Event().wait()
        raise AssertionError("nobody waits for it")


async def test_pages_show_what_is_known_while_the_index_is_still_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_desk, "FRESH_S", 0.05)
    store = Endless()
    past = SessionDesk(cast("Sessions", store), opened(tmp_path / "index.sqlite", str, print))
    nobody = cast("Any", None)  # neither failures, nor the queue, files or votes are asked for
    desk = DashboardDesk(lambda: load(None, None), past, nobody, nobody, nobody, votes=nobody)
    async with asyncio.timeout(30):
        assert await desk.listed(10) == []
        assert await desk.search("anything", 10) == []
        assert await desk.costs(date(2026, 1, 1)) == []
        await past.rest()
    assert store.asked == 1, "many who look cost no more than one does"

"""From a thumb that somebody puts on a note to the figure on the dashboard, through the whole service."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from hummingbird.core.votes import VoteCount
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.storage.vote_store import SqliteVoteStore
from tests.journeys.service.stage import LOOK_S, PATIENCE_S, Stage, staged

DEVELOPER = "hsato"


def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ten minutes."""
    monkeypatch.setattr("hummingbird.core.votes.VOTES_FIRST_S", 0.0)
    monkeypatch.setattr("hummingbird.core.votes.VOTES_YOUNG_PAUSE_S", 0.2)
    monkeypatch.setattr("hummingbird.service.votes.HARVEST_S", 0.1)
    monkeypatch.setattr("hummingbird.service.votes.HARVEST_PAUSE_S", 0.0)


async def votes(stage: Stage, note_id: int) -> VoteCount | None:
    found = await SqliteVoteStore(stage.folder / "state" / "votes.sqlite").find_note(stage.world.project.path, note_id)
    return found.votes if found and found.looked_at else None


async def counted(stage: Stage, note_id: int, wanted: VoteCount) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await votes(stage, note_id) == wanted:
                return
            await asyncio.sleep(LOOK_S)


async def shown(stage: Stage, path: str) -> str:
    async with httpx2.AsyncClient(timeout=60) as client:
        answer = await client.get(f"http://127.0.0.1:{stage.serving.port}{path}")
    assert answer.status_code == 200, answer.text
    return answer.text


def no_hooks_for_emoji(stage: Stage) -> None:
    stage.ask(lambda world: webhook_sender(world).hooks[0].flags.discard("emoji_events"))


async def test_a_thumb_down_is_found_by_looking_and_the_page_and_the_metrics_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once(monkeypatch)
    async with staged("failing-test", tmp_path) as stage:
        no_hooks_for_emoji(stage)
        await stage.begin_case()
        _, result = await stage.notes(2)
        await counted(stage, result.id, VoteCount())
        await stage.award(DEVELOPER, result.id, "thumbsdown")
        await counted(stage, result.id, VoteCount(0, 1))
        page = await shown(stage, "/quality")
        assert f"#note_{result.id}" in page
        assert f"/sessions/{result.session}" in page
        assert "1 vote: too few" in page
        wanted = 'hummingbird_votes{vote="down",workflow="analyze-failures"} 1.0'
        async with asyncio.timeout(PATIENCE_S):
            while wanted not in await shown(stage, "/metrics"):  # noqa: ASYNC110 - it is renewed after the record is
                await asyncio.sleep(LOOK_S)


@pytest.mark.thorough
async def test_a_thumb_is_counted_at_once_where_hooks_tell_of_it_and_strangers_count_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any look of ours: the first one would come after ten minutes."""
    monkeypatch.setattr("hummingbird.service.votes.VOTES_EVENT_PAUSE_S", 0.0)
    async with staged("failing-test", tmp_path, settings={"internal_notes": False}) as stage:
        stage.outsider("eve")
        await stage.begin_case()
        placeholder, result = await stage.notes(2)
        await stage.award("eve", result.id, "thumbsdown")
        await counted(stage, result.id, VoteCount())
        await stage.award(DEVELOPER, result.id, "thumbsup_tone3")
        await counted(stage, result.id, VoteCount(1, 0))
        await stage.award(DEVELOPER, placeholder.id, "thumbsdown")
        await stage.idle()
        assert await votes(stage, placeholder.id) is None, "it is no result"
        assert stage.requests(f"/notes/{placeholder.id}/award_emoji") == []


@pytest.mark.thorough
async def test_an_event_that_names_a_note_of_somebody_else_makes_us_ask_gitlab_nothing(tmp_path: Path) -> None:
    """Whoever knows the hook's secret can say anything; what is ours, we know ourselves."""
    async with staged("failing-test", tmp_path) as stage:
        number, _ = await stage.write(DEVELOPER, "Hm.")
        await stage.award(DEVELOPER, number, "thumbsdown")
        await stage.idle()
        assert stage.requests("/award_emoji") == []
        assert [one.status for one in stage.deliveries() if one.event == "Emoji Hook"] == [202]

"""The page of votes before a real browser: figures, their bounds, links that lead where they should, names that act on
nothing; and that it can be used by keys."""

import time
from pathlib import Path

import pytest

from hummingbird.core.protocols.storage import VotableNote
from hummingbird.core.votes import VoteCount
from hummingbird.storage.vote_store import SqliteVoteStore
from tests.dashboard.browser import browser
from tests.dashboard.test_dashboard import address
from tests.dashboard.test_hostile import ATTACK, NAME
from tests.journeys.service.stage import Stage, staged

SESSION = "5e55" * 8
DAY = 86_400.0


async def voted(stage: Stage, *votes: VoteCount, workflow: str = "analyze-failures", **changes: str) -> None:
    """One note each, a day apart, the first one today."""
    store = SqliteVoteStore(stage.folder / "state" / "votes.sqlite")
    for number, one in enumerate(votes):
        at = time.time() - number * DAY
        given = {"project": "acme/widgets", "model": "digest", "session_id": SESSION, **changes}
        note = VotableNote(iid=7, note_id=4711 + number, workflow=workflow, posted_at=at, **given)
        await store.record_note(note)
        await store.record_votes(note, one, time.time())


@pytest.mark.thorough
async def test_a_page_shows_what_people_think_by_workflow_and_by_model(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, browser() as seen:
        await voted(stage, VoteCount(3, 0), VoteCount(5, 1), VoteCount(0, 1), VoteCount())
        await voted(stage, VoteCount(2, 1), workflow="code-review", project="acme/other", model="other:model")
        page = seen.page
        await page.goto(address(stage))
        await page.get_by_role("link", name="Quality").click()
        assert await page.locator("nav [aria-current]").inner_text() == "Quality"
        rows = [text.split("\t") for text in await page.locator("table").nth(0).locator("tbody tr").all_inner_texts()]
        assert [cell.strip() for cell in rows[0][:7]] == ["analyze-failures", "4", "3", "8", "2", "80%", "49% – 94%"]
        assert [cell.strip() for cell in rows[1][:7]] == ["code-review", "1", "1", "2", "1", "3 votes: too few", "–"]
        models = await page.locator("table").nth(1).locator("tbody th").all_inner_texts()
        assert models == ["digest", "other:model"]
        chart = page.locator("figure svg.votes")
        assert "10 thumbs up and 3 down" in (await chart.get_attribute("aria-label") or "")
        assert (await chart.locator(".up").count(), await chart.locator(".down").count()) == (2, 3)
        assert seen.console == []
        assert seen.outside == []


@pytest.mark.thorough
async def test_what_somebody_did_not_like_leads_to_its_note_and_its_session_by_keys_too(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, browser(dark=True, wide=480) as seen:
        await stage.begin_case()
        _, result = await stage.notes(2)
        await voted(stage, VoteCount(1, 2), session_id=result.session)
        page = seen.page
        await page.goto(f"{address(stage)}/quality")
        links = page.locator("table").nth(2).locator("a")
        note = f"{stage.scene.url('gitlab')}/acme/widgets/-/merge_requests/7#note_4711"
        assert await links.nth(0).get_attribute("href") == note
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
            "or the page itself is too wide"
        )
        await page.keyboard.press("j")
        assert await page.locator("tr.row:focus th").inner_text() == "analyze-failures"
        await links.nth(1).focus()
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".timeline")
        assert page.url.endswith(f"/sessions/{result.session}")
        assert seen.console == []


@pytest.mark.thorough
async def test_without_any_result_the_page_says_so(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, browser() as seen:
        await seen.page.goto(f"{address(stage)}/quality")
        assert "No result was posted yet" in await seen.page.inner_text("main")


@pytest.mark.thorough
async def test_names_that_want_to_act_are_shown_as_what_they_are(tmp_path: Path) -> None:
    """Whoever can write to the store can write anything there."""
    async with staged("failing-test", tmp_path) as stage, browser() as seen:
        project = f"javascript:/{NAME}"
        await voted(stage, VoteCount(0, 3), workflow=ATTACK, project=project, model=NAME, session_id="../../x\"'>")
        await seen.page.goto(f"{address(stage)}/quality")
        assert await seen.page.evaluate("window.owned") is None
        assert "alert('owned')" in await seen.page.inner_text("main")
        assert await seen.page.locator("main script, main img, main svg[onload], main [onerror]").count() == 0
        hrefs = await seen.page.locator("main a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
        assert len(hrefs) == 1, "and no link to what is no session"
        assert hrefs[0].startswith(stage.scene.url("gitlab"))
        assert seen.dialogs == []
        assert seen.outside == []


@pytest.mark.thorough
async def test_a_record_that_is_damaged_is_a_sentence_on_the_page_and_all_else_works(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage:
        file = stage.folder / "state" / "votes.sqlite"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"nonsense" * 1_000)
        await stage.serve()
        async with browser() as seen:
            await stage.begin_case()
            await stage.notes(2)
            await seen.page.goto(f"{address(stage)}/quality")
            assert "is damaged and cannot be used as the record of votes" in await seen.page.inner_text("main")

"""The dashboard before a real browser: what runs is seen as it runs, what was said can be read, and somebody goes
on with it there."""

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hummingbird.core.journal import ModelCalled, RunStarted, ToolStarted, UserSaid
from hummingbird.core.projections import UsageLedger
from tests.dashboard.browser import browser
from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Call, Step, Turn

pytestmark = pytest.mark.usefixtures("in_a_hurry")


def address(stage: Stage) -> str:
    return f"http://127.0.0.1:{stage.serving.port}"


@pytest.mark.thorough
async def test_a_finished_run_can_be_read_with_its_evidence_bill_timeline_and_files(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, browser() as seen:
        await stage.begin_case()
        _, result = await stage.notes(2)
        page = seen.page
        await page.goto(address(stage))
        await page.locator("main a[href^='/sessions/']").first.click()
        await page.wait_for_selector("h2:has-text('What it found')")
        assert await page.locator(".state").first.inner_text() == "completed"
        entries = stage.entries(result.session)
        assert await page.locator(".timeline [id^=e]").count() == len(entries), "each can be linked to"
        calls = sum(isinstance(one, ModelCalled | ToolStarted) for one in entries)
        assert await page.locator(".timeline li").count() == len(entries) - calls, "a call stands with its result"
        assert await page.locator(".timeline svg.span").count() == calls
        told = await page.inner_text("main")
        check = re.search(r"Quoted lines: [^.]*\.", str(result.body))
        assert check is not None
        assert check[0] in told, "the same count as in the note"
        assert told.index("What it found") < told.index("Timeline")
        next_step = re.search(r"\*\*Next:\*\* ([^`\[\n]+)", str(result.body))
        assert next_step is not None
        assert told.index("What it found") < told.index(next_step[1].strip()) < told.index("The whole report"), (
            "as posted"
        )
        proofs = page.locator("a.proof")
        assert await proofs.count() > 0
        line = (await proofs.first.inner_text()).split(": ", 1)[-1].strip()
        await proofs.first.click()
        await page.wait_for_selector("pre.lines")
        marked = page.locator("pre.lines span:target")
        assert line in await marked.inner_text()
        await page.go_back()
        await page.get_by_role("link", name="Transcript").click()
        await page.wait_for_selector("article.transcript h1:has-text('Session')")
        await page.get_by_role("link", name="as Markdown").click()
        assert "# Session" in await page.inner_text("body")
        await page.go_back()
        await page.go_back()
        await page.get_by_role("link", name="Files of the sandbox").click()
        await page.wait_for_selector("h1:has-text('Files of the sandbox')")
        async with page.expect_download() as download:
            await page.locator("tbody a").first.click()
        assert (await (await download.value).path()).stat().st_size > 0
        assert seen.console == []
        assert seen.outside == []


@pytest.mark.thorough
async def test_a_run_is_seen_while_it_goes_on(tmp_path: Path) -> None:
    looked = threading.Event()

    def second(_: dict[str, Any]) -> Turn:
        assert looked.wait(60)
        return Turn(calls=(Call("sandbox_exec", {"command": "echo second"}),))

    turns: list[Step] = [
        Turn(calls=(Call("sandbox_exec", {"command": "echo first"}),)),
        second,
        Turn(text="The parser is too strict."),
    ]
    async with staged("failing-test", tmp_path, turns=turns) as stage, browser() as seen:
        page = seen.page
        await page.goto(address(stage))
        await page.wait_for_selector("text=Nothing runs here at the moment.")
        await stage.begin_case()
        await page.get_by_role("link", name="analyze-failures on labri-progress/cidiff!11").first.click()
        assert await page.locator(".state").first.inner_text() == "running"
        await page.wait_for_selector(".timeline li:has-text('echo first')")
        assert not await page.locator(".timeline li:has-text('echo second')").count(), "or nothing was live"
        looked.set()
        await page.wait_for_selector(".timeline li:has-text('echo second')")
        await page.wait_for_selector(".timeline li.ended")
        _, result = await stage.notes(2)
        entries, timeline = stage.entries(result.session), page.locator(".timeline")
        assert {await one.get_attribute("id") for one in await timeline.locator("[id^=e]").all()} == {
            f"e{number}" for number in range(1, len(entries) + 1)
        }
        assert await timeline.locator("li[data-call]").count() == 0, "each call was put to its result"
        paired = timeline.locator("li:has-text('echo second')")
        assert "→ ok" in await paired.locator("summary").first.inner_text()
        given, answered = [await one.text_content() for one in await paired.locator("pre").all()]
        assert "echo second" in str(given)
        assert "echo" not in str(answered)
        await page.goto(address(stage))
        await page.wait_for_selector("text=Nothing runs here at the moment.")


@pytest.mark.thorough
async def test_a_session_goes_on_from_the_page_and_nothing_is_posted(tmp_path: Path) -> None:
    turns = [Turn(text="The parser is too strict."), Turn(text="In line 61."), Turn(text="As I said: 61.")]
    async with staged("failing-test", tmp_path, turns=turns) as stage, browser() as seen:
        await stage.begin_case()
        _, result = await stage.notes(2)
        page = seen.page
        await page.goto(f"{address(stage)}/sessions/{result.session}")
        await page.fill("#message", "Which line\nis it?")
        await page.get_by_role("button", name="Send").click()
        await page.wait_for_selector(".timeline li:has-text('In line 61.')")
        await stage.idle()
        assert len(stage.marked()) == 2, "nothing new in GitLab"
        said = [one.text for one in stage.entries(result.session) if isinstance(one, UserSaid)]
        assert said[-1] == "Which line\nis it?"
        await stage.write("hsato", "And again?", thread=result.thread)
        await stage.notes(3)
        assert stage.lab is not None
        assert "In line 61." in str(stage.lab.requests[2].body), "the thread goes on with what was said on the page"
        assert len([one for one in stage.entries(result.session) if isinstance(one, RunStarted)]) == 3


@pytest.mark.thorough
async def test_known_failures_costs_and_search_have_pages(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, browser(dark=True, wide=480) as seen:
        await stage.begin_case()
        await stage.notes(2)
        page = seen.page
        await page.goto(address(stage))
        await page.get_by_role("link", name="Known failures").click()
        assert "Failures in labri-progress/cidiff" in await page.inner_text("figcaption")
        assert await page.locator("svg.bars rect").count() > 1
        assert "LogDifferTest" in await page.inner_text("main")
        await page.get_by_role("link", name="Costs").click()
        assert "$0.0000" in await page.inner_text("main")
        await page.keyboard.press("/")
        await page.keyboard.type("IllegalArgumentException")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".hit mark")
        await page.locator(".hit a").first.click()
        assert "IllegalArgumentException" in await page.inner_text("pre.lines")
        assert seen.console == []


@pytest.mark.thorough
async def test_keys_are_enough(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, browser() as seen:
        await stage.begin_case()
        await stage.notes(2)
        page = seen.page
        await page.goto(address(stage))
        await page.keyboard.press("j")
        await page.keyboard.press("o")
        await page.wait_for_selector(".timeline")
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        focused = page.locator(".timeline li:focus")
        assert await focused.get_attribute("id") == "e2"
        await page.keyboard.press("k")
        await page.keyboard.press("o")
        assert await page.locator("#e1 details[open]").count() == 1
        await page.keyboard.press("g")
        await page.wait_for_selector("h1:has-text('Runs')")


@pytest.mark.thorough
async def test_who_looks_is_let_go_when_the_service_ends(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, browser() as seen:
        await seen.page.goto(address(stage))
        await seen.page.wait_for_selector("text=Nothing runs here at the moment.")
        async with asyncio.timeout(60):  # uvicorn would wait for viewers until they leave
            await stage.stop()


async def test_what_happened_is_counted_for_prometheus(tmp_path: Path) -> None:
    turns = [Turn(calls=(Call("sandbox_exec", {"command": "true"}),)), Turn(text="The parser is too strict.")]
    async with staged("failing-test", tmp_path, turns=turns) as stage:
        await stage.begin_case()
        _, result = await stage.notes(2)
        bill = UsageLedger.from_entries(stage.entries(result.session)).bill()
        async with httpx2.AsyncClient(timeout=60) as client:
            answer = await client.get(f"{address(stage)}/metrics")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}

    def total(name: str, **labels: str) -> float:
        samples = [one for family in families.values() for one in family.samples if one.name == name]
        return sum(one.value for one in samples if labels.items() <= one.labels.items())

    assert total("hummingbird_runs_ended_total", workflow="analyze-failures", reason="completed") == 1
    assert total("hummingbird_model_calls_total", outcome="answered") == bill.answered
    assert total("hummingbird_model_cost_usd_total") == pytest.approx(float(bill.known_usd))
    assert total("hummingbird_tool_calls_total", tool="sandbox_exec") == 1
    assert total("hummingbird_events_total", outcome="queued") >= 1
    assert total("hummingbird_slots") == 4
    assert total("hummingbird_dead_letters") == 0

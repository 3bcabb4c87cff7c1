"""What pages say is right and tells no credential: bills, costs by day, and whatever others wrote."""

import re
import time
from decimal import Decimal
from pathlib import Path

import httpx2
import pytest

from hummingbird.core.journal import (
    EndReason,
    ModelAnswered,
    ModelCalled,
    RunEnded,
    RunStarted,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.masking import MASK
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.protocols.storage import FailureSighting
from hummingbird.core.usage import TokenUsage
from hummingbird.dashboard.queries import WRONG_TOKENS
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from hummingbird.storage.journals import FileJournal
from tests.dashboard.test_hostile import SESSION, saved
from tests.journeys.service.stage import Stage, staged

CANARY = "no-shape-that-gives-it-away-0123456789"


async def billed(stage: Stage, name: str, said: str, usd: str | None = "0.125", quoted: str = "") -> None:
    """One call: 4,000 tokens in, 3,000 of them cached, 500 out."""
    folder, at = stage.folder / "state" / "sessions" / name, time.time()
    folder.mkdir(parents=True)
    journal = FileJournal(folder / "journal.jsonl")
    for entry in (
        SessionOpened(session_id=name, system=said, format=JOURNAL_FORMAT, at=at),
        RunStarted(run_id="r", model=f"model-{said}", at=at),
        UserSaid(text=said, at=at),
        ModelCalled(call_id="1", model=f"model-{said}", messages=1, at=at),
        ModelAnswered(
            call_id="1",
            model=f"model-{said}",
            message=AssistantMessage(text=said),
            usage=TokenUsage(fresh=1_000, cache_read=3_000, output=500),
            cost_usd=None if usd is None else Decimal(usd),
            at=at,
        ),
        ToolStarted(call_id="t", name=f"look-{said}", arguments=said, at=at),
        ToolFinished(call_id="t", name=f"look-{said}", text=said, at=at),
        RunEnded(
            run_id="r",
            reason=EndReason.COMPLETED,
            text=f"```\n{said}\n{quoted}\n```",
            sentence=said,
            answered=True,
            at=at,
        ),
    ):
        journal.append(entry)
    await journal.commit()
    journal.close()


def cells(page: str, table: str = "<tbody>") -> list[str]:
    return re.findall(r"<td[^>]*>(.*?)</td>", page.split(table, 1)[1].split("</tbody>", 1)[0], re.DOTALL)


def bill(page: str) -> list[str]:
    return re.findall(r"<dd>(.*?)</dd>", page)


async def test_a_bill_has_its_calls_tokens_cached_share_and_cost_and_days_are_their_sums(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        for number in range(3):
            await billed(stage, f"billed{number}", f"question {number}", usd=None if number == 2 else "0.125")
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60) as client:
            page = (await client.get("/sessions/billed0")).text
            assert bill(page) == ["–", "1", "4,000", "75%", "500", "$0.1250"]
            unpriced = (await client.get("/sessions/billed2")).text
            assert bill(unpriced)[-1] == "$0.0000 +?"
            runs = (await client.get("/runs")).text
            assert set(cells(runs)) >= {"$0.1250", "$0.0000 +?"}
            costs = (await client.get("/costs")).text
            sessions, cost, share, tokens, cached, out = cells(costs, "<h2>By day</h2>")
            assert (sessions, cost, share, tokens, cached, out) == ("3", "$0.2500 +?", "100%", "12,000", "75%", "1,500")
            assert re.search(r'<th scope="row">\d{4}-\d{2}-\d{2}</th>', costs)
            assert cells(costs, "<h2>By model</h2>")[:3] == ["1", "$0.1250", "50%"]
            assert "3 sessions, 1 call without a known price" in costs


async def test_an_answer_is_shown_as_it_is_posted_above_its_timeline(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        await billed(stage, "posted", "error: the parser broke", quoted="error: nobody ever said this")
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60) as client:
            page = (await client.get("/sessions/posted")).text
    answer = page.split('<article class="answer">')[1].split("</article>")[0]
    assert "error: the parser broke" in answer
    assert "nobody ever said this" not in answer
    assert "Quoted lines: 2 checked, 1 found, 1 removed." in page
    assert page.index("<article") < page.index('id="timeline"') < page.index("<h2>Continue</h2>")
    assert re.search(r'id="e5"[^>]*><a id="e4"></a><details>', page), "the answer is not unfolded a second time"
    assert re.search(r'id="e3"[^>]*><details open>', page), "what a person said is"


async def test_filters_of_runs_combine_with_each_other_and_with_words_that_were_said(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        for name in ("apple", "pear", "plum"):
            await billed(stage, name, name, quoted="zebra" if name != "plum" else "")
        await stage.begin_case()
        _, result = await stage.notes(2)
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60) as client:

            async def listed(**asked: str) -> set[str]:
                page = (await client.get("/runs", params=asked)).text
                return set(re.findall(r'<tr class="row" tabindex="0"><td><a href="/sessions/([^"]+)"', page))

            assert await listed() == {"apple", "pear", "plum", result.session}
            assert await listed(text="zebra") == {"apple", "pear"}, "said, but in no title"
            assert await listed(text="zebra", model="model-pear") == {"pear"}
            assert await listed(text="zebra", project="a/b") == set()
            assert await listed(text="LogDifferTest", project="Labri-progress/cidiff") == {result.session}
            assert await listed(state="completed", model="model-plum", text="zebra") == set()
            assert await listed(verdict="change") == {result.session}
            assert await listed(workflow="analyze-failures", state="completed") == {result.session}
            assert await listed(workflow="analyze-failures", state="refused") == set()
            page = (await client.get("/runs", params={"verdict": "change"})).text
            assert "caused by this merge request</span>" in page
            assert re.search(r'title="[-0-9: ]+ UTC">(just now|\d+ minutes? ago)<', page)
            assert re.search(r'data-name="Took">(\d+ min )?\d+ s<', page)


@pytest.mark.thorough
async def test_no_page_tells_a_credential_however_its_variable_is_called(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.configure({}, {"analyze-failures": {"data_sources": {"gitlab": {"token_env": "OTHER"}}}})
        stage.environment["OTHER"] = CANARY
        await billed(stage, SESSION, CANARY)
        saved(stage, **{f"file-{CANARY}": b"x"})
        ledger = SqliteKnownFailureStore(stage.folder / "state" / "known_failures.sqlite")
        told = dict.fromkeys(("kind", "class_", "title", "excerpt", "branch", "merge_request"), CANARY)
        await ledger.record_sighting(
            FailureSighting(
                project=f"a/{CANARY}",
                fingerprint="f",
                occurrence="1",
                at=time.time(),
                link=f"https://x/{CANARY}",
                **told,
            )
        )
        serving = await stage.serve()
        assert serving._live is not None
        serving._live.show_message(SESSION, f"It was not answered: {CANARY}")
        session = f"/sessions/{SESSION}"
        pages = ["/", session, *(f"{session}/entries/{number}" for number in range(1, 9)), f"{session}/transcript"]
        pages += ["/runs", "/pipelines", "/pipelines?of=branches", f"{session}/transcript.md"]
        pages += [f"/failure?project=a/{CANARY}&fingerprint=f", f"/pipelines?project={CANARY}", f"/?project={CANARY}"]
        pages += [f"{session}/files", "/failures", f"/search?q={CANARY}", "/search?q=answered", f"/?text={CANARY}"]
        pages += [f"{session}/file?path={CANARY}", f"{session}/entries/{CANARY}", "/costs"]
        seen = ""
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{serving.port}", timeout=60) as client:
            for path in pages:
                page = (await client.get(path)).text
                assert CANARY not in page, path
                seen += page
            async with client.stream("GET", f"/live{session}?after=3") as live:
                piece = await anext(live.aiter_text())
                assert CANARY not in piece
                assert MASK in piece
        assert seen.count(MASK) > 20, "or nothing was shown"


@pytest.mark.thorough
async def test_wrong_tokens_of_programs_are_answered_with_429_once_they_are_many(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.environment["HUMMINGBIRD_DASHBOARD_TOKEN"] = "the-token-of-this-dashboard"
        port = (await stage.serve()).port
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            wrong = {"authorization": "Bearer wrong"}
            codes = [(await client.get("/metrics", headers=wrong)).status_code for _ in range(WRONG_TOKENS + 2)]
            assert codes == [401] * (WRONG_TOKENS - 1) + [429] * 3
            right = {"authorization": "Bearer the-token-of-this-dashboard"}
            assert (await client.get("/metrics", headers=right)).status_code == 200, "nobody is shut out"
            form = await client.post("/login", data={"token": "wrong"})
            assert form.status_code == 429

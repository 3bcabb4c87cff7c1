"""The pages about many runs count right, their filters and links lead on, and empty ones say how to begin."""

import html
import random
import re
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from urllib.parse import quote, quote_plus

import httpx2
import pytest

from hummingbird.core.protocols.storage import FailureSighting
from hummingbird.dashboard.charts import ChartSeries, DayChart, axis_top, last_days
from hummingbird.storage.failure_store import SqliteKnownFailureStore
from hummingbird.storage.folder_sessions import FolderSessionStore
from tests.dashboard.pictures import DAY_S, FAILURES, SampleFailure, sample_entries, save_session
from tests.journeys.service.stage import Stage, staged

BROKEN_TEST, BROKEN_BUILD, FLAKY_TEST = FAILURES[:3]


async def save_runs(stage: Stage, *runs: tuple[str, SampleFailure, float]) -> list[str]:
    """Save one run for each project, failure and age in days; return their ids."""
    sessions = FolderSessionStore(stage.folder / "state" / "sessions")
    return [
        await save_session(
            sessions,
            sample_entries(number, time.time() - days * DAY_S - 60, project, failure, random.Random(number)),
        )
        for number, (project, failure, days) in enumerate(runs, 1)
    ]


async def remember(stage: Stage, *failures: tuple[str, SampleFailure]) -> None:
    ledger = SqliteKnownFailureStore(stage.folder / "state" / "known_failures.sqlite")
    for number, (fingerprint, failure) in enumerate(failures):
        await ledger.record_sighting(
            FailureSighting(
                project="acme/shop",
                fingerprint=fingerprint,
                occurrence=str(number),
                at=time.time() - number * DAY_S,
                kind=failure.kind,
                class_=failure.class_,
                title=failure.title,
                excerpt=failure.log,
                merge_request=f"!{number + 1}",
                link=f"https://gitlab.example/acme/shop/-/merge_requests/{number + 1}#note_1",
            )
        )


def client_of(stage: Stage) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{stage.serving.port}", timeout=60, follow_redirects=True)


def tiles(page: str) -> dict[str, str]:
    return dict(re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd>", page))


def chart_words(page: str) -> list[str]:
    return [html.unescape(said) for said in re.findall(r'class="bars chart" role="img" aria-label="(.*?)"', page)]


def listed(page: str) -> list[str]:
    return re.findall(r'<tr class="row" tabindex="0"><td><a href="/sessions/([^"]+)"', page)


async def test_overview_counts_failures_by_cause_in_the_period_and_project(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        shop = [("acme/shop", BROKEN_TEST, 0), ("acme/shop", BROKEN_BUILD, 0), ("acme/shop", FLAKY_TEST, 2)]
        await save_runs(stage, *shop, ("acme/shop", FLAKY_TEST, 20), ("acme/mobile", FLAKY_TEST, 0))
        async with client_of(stage) as client:
            month, week = (await client.get("/")).text, (await client.get("/?days=7")).text
            one = (await client.get("/?days=7&project=Acme/Shop")).text
    assert (tiles(month)["Failed pipelines"], tiles(week)["Failed pipelines"]) == ("5", "4")
    assert tiles(one)["Failed pipelines"] == "3"
    assert re.search(r'aria-label="Causes: 67% caused by this merge request, 33% flaky"', one)
    pipelines, jobs, times = chart_words(one)
    assert pipelines.startswith("Failed pipelines in 7 days: 2 caused by this merge request, 1 flaky; most on ")
    assert jobs.startswith("Failed jobs in 7 days: 2 caused by")
    assert "Time to answer by day: " in times
    assert one.count("<title>") == 1 + 2 * 2 + 4, "each bar says its day, its number and what it counts"
    assert "Nothing waits in the queue." in month
    assert "a failed pipeline" in month
    assert re.search(r"<td>(digest \(rules, no model\)|\w+:[\w-]+)</td>", month)


async def test_an_empty_dashboard_says_how_to_begin(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, client_of(stage) as client:
        page = (await client.get("/")).text
        assert "hummingbird demo" in page
        assert "/webhooks/gitlab" in page
        assert "<svg" not in page
        for path in ("/runs", "/pipelines", "/failures"):
            assert "yet" in (await client.get(path)).text, path
        assert "No session in the last 30 days." in (await client.get("/costs")).text


async def test_runs_name_what_failed_and_older_ones_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("application", "run_pages"):
        monkeypatch.setattr(f"hummingbird.dashboard.{module}.RUNS_SHOWN", 2)
    async with staged("failing-test", tmp_path) as stage:
        saved = await save_runs(stage, *(("acme/shop", BROKEN_TEST, number) for number in range(5)))
        seen, page = list[str](), ""
        async with client_of(stage) as client:
            path = "/runs?project=acme/shop&text=voucher"
            for _ in range(3):
                page = (await client.get(path)).text
                seen += listed(page)
                path = html.unescape(next(iter(re.findall(r'<a href="([^"]+)" rel="next">', page)), "/runs"))
            assert seen == saved, "each once, the newest first"
            assert path == "/runs", "the last page leads nowhere"
            for nonsense in ("nan x", "1e999 x", "x", "5 ../..", "5"):
                assert listed((await client.get("/runs", params={"before": nonsense})).text) == saved[:2]
    assert "<code>unit-tests</code>" in page
    assert "CartTest.totalWithVoucher" in page
    assert 'rel="noreferrer noopener" target="_blank">acme/shop!105</a>' in page


async def test_a_red_cell_leads_to_the_failure_and_its_history(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        first, second = await save_runs(stage, ("acme/shop", BROKEN_TEST, 0), ("acme/shop", BROKEN_TEST, 3))
        await remember(stage, (BROKEN_TEST.fingerprint, BROKEN_TEST))
        async with client_of(stage) as client:
            grid = (await client.get("/pipelines")).text
            branches = (await client.get("/pipelines?of=branches")).text
            address, words = re.findall(
                r'<a class="cell origin-change" href="([^"]+)".*?aria-label="([^"]+)">C<', grid
            )[0]
            failure = (await client.get(html.unescape(address))).text
    assert words == "unit-tests: caused by this merge request"
    assert grid.count('<a class="cell origin-change"') == 2
    assert "#90010</a>" in grid
    assert "#90003</a>" in branches
    assert listed(failure) == [first, second]
    assert "Judged as" in failure
    assert 'href="https://gitlab.example/acme/shop/-/merge_requests/1#note_1"' in failure
    assert "expected: &lt;42.00&gt; but was" in failure


async def test_a_job_that_is_red_on_the_target_branch_leads_to_its_failure_there_too(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        await save_runs(stage, ("acme/shop", FAILURES[4], 0), ("acme/shop", BROKEN_TEST, 1))
        async with client_of(stage) as client:
            grid = (await client.get("/pipelines?of=branches")).text
    address, words = re.findall(r'<a class="cell origin-target" href="([^"]+)".*?aria-label="([^"]+)">T<', grid)[0]
    assert words == "integration-tests: red on the target branch too"
    assert FAILURES[4].fingerprint in address
    assert "cell origin-change" not in grid.split("<tbody>")[1], "what a merge request broke is not broken there"


async def test_a_flaky_job_is_marked_in_the_grid(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        await save_runs(stage, ("acme/shop", FLAKY_TEST, 0))
        async with client_of(stage) as client:
            grid = (await client.get("/pipelines?project=acme/shop")).text
    assert re.search(r'class="cell origin-flaky".*?aria-label="ui-tests: flaky">F<', grid)


async def test_failures_that_read_the_same_are_one_row(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage:
        await remember(stage, ("f1", BROKEN_TEST), ("f2", BROKEN_TEST), ("f3", BROKEN_BUILD))
        async with client_of(stage) as client:
            page = (await client.get("/failures")).text
            both = [(await client.get(f"/failure?project=acme/shop&fingerprint={one}")).text for one in ("f1", "f2")]
            missing = await client.get("/failure?project=acme/shop&fingerprint=f9")
    assert page.count('<tr class="row"') == 2
    assert page.count(">CartTest.totalWithVoucher") == 1
    for one in both:
        assert "2 merge requests" in one, "of both together"
    assert missing.status_code == 404
    assert "This failure is not known" in missing.text


async def test_budgets_say_how_full_they_are(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path, begin=False) as stage:
        limits = {"usd_per_run": 0.5, "usd_per_day": 4}
        stage.configure({"budgets": limits}, {"analyze-failures": {}})
        await save_runs(stage, ("acme/shop", BROKEN_TEST, 0))
        await stage.serve()
        async with client_of(stage) as client:
            assert 'data-name="Today">$0.00</td><td><meter' in (await client.get("/costs")).text
            file = stage.folder / "state" / "sessions" / "spending.sqlite"
            file.unlink(missing_ok=True)
            file.mkdir()
            page = await client.get("/costs")
    assert page.status_code == 200
    assert "cannot be told now" in page.text, "a record that cannot be read does not take the page away"


def drawn(values: Sequence[float], **more: bool) -> str:
    days = last_days(date(2026, 3, 2), len(values))
    series = [ChartSeries("one", "things", values), ChartSeries("two", "others", [1.0] * len(values))]
    return str(DayChart(days, series, "Things", lambda value: f"{value:g}", **more).draw())


def test_bars_stay_inside_their_chart_whatever_they_count() -> None:
    for values in ([0.0] * 7, [1.0], [1e9, 3.0], [0.001] * 90):
        for overlaid in (False, True):
            made = drawn(values, overlaid=overlaid)
            for x, y, width, height in re.findall(
                r'x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', made
            ):
                assert float(x) + float(width) <= 560
                assert 0 <= float(y) <= float(y) + float(height) <= 190


@pytest.mark.parametrize(("most", "top"), [(0, 2), (1, 2), (3, 4), (7, 8), (11, 12), (13, 16), (21, 30), (999, 1000)])
def test_axes_end_at_round_numbers_with_a_whole_half(most: float, top: float) -> None:
    assert axis_top(most, whole=True) == top
    assert axis_top(most, whole=True) % 2 == 0


async def test_an_address_that_is_none_is_answered_by_a_page(tmp_path: Path) -> None:
    async with staged("failing-test", tmp_path) as stage, client_of(stage) as client:
        page = await client.get("/nothing/here", headers={"accept": "text/html"})
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "No page has this address." in page.text
        assert '<a href="/runs"' in page.text
        assert (await client.get("/nothing/here")).json()["status"] == "refused", "programs are told in their words"
        assert (await client.get("/runs?days=x&before=%00&project=%ff")).status_code == 200


async def test_no_address_on_a_page_has_a_credential_however_it_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "se/cr+et=with&signs 0123456789"
    for module in ("application", "run_pages"):
        monkeypatch.setattr(f"hummingbird.dashboard.{module}.RUNS_SHOWN", 1)
    async with staged("failing-test", tmp_path, begin=False) as stage:
        stage.configure({}, {"analyze-failures": {"data_sources": {"gitlab": {"token_env": "OTHER"}}}})
        stage.environment["OTHER"] = secret
        project = f"acme/{secret}"
        await save_runs(stage, (project, BROKEN_TEST, 0), (project, BROKEN_TEST, 1))
        await stage.serve()
        shown = ""
        async with client_of(stage) as client:
            for path in ("/", "/runs", "/pipelines", "/failures", "/failure", "/costs"):
                page = await client.get(path, params={"project": project, "fingerprint": BROKEN_TEST.fingerprint})
                for form in (secret, quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret)):
                    assert form not in page.text, (path, form)
                shown += page.text
        assert 'rel="next"' in shown

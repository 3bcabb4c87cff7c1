"""What the index says about many runs: lists with filters, figures, costs, grids, and all of it bounded."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hummingbird.core.background import JobStatus, PipelineStatus, RunBackground
from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    MessageSource,
    RunEnded,
    RunStarted,
    SessionOpened,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.protocols.run_figures import RunQuery
from hummingbird.core.sessions import FailedJob, SessionSubject, SessionSummary, dump_summary, summarise_session
from hummingbird.core.verdicts import FailureOrigin, FailureVerdict, JobJudgement, ObservedFailure
from hummingbird.storage import run_index
from hummingbird.storage.session_index import SqliteSessionIndex, open_session_index

DAY_S = 86_400.0
NOON = 1_794_744_000.0
TODAY = datetime.fromtimestamp(NOON, UTC).date()


def failed_run(
    session_id: str,
    origin: FailureOrigin = FailureOrigin.CHANGE,
    *,
    at: float = NOON,
    project: str = "a/b",
    took_s: float = 60.0,
    pipelines: tuple[PipelineStatus, ...] = (),
    said: str = "",
) -> list[JournalEntry]:
    order = {"workflow": "analyze-failures", "project": project, "mr_iid": 7, "pipeline_id": 70, "message": said}
    seen = ObservedFailure(fingerprint="f1", kind="test", class_="TestFailure", title="assert 1 == 2")
    background = RunBackground(cause="pipeline", asked_at=at, title="Faster", pipelines=pipelines, failures=(seen,))
    judged = (JobJudgement(job="test", origin=origin, job_id=9, fingerprints=("f1",)),)
    return [
        SessionOpened(session_id=session_id, system="", format=1, at=at),
        RunStarted(run_id="r", model="m", at=at, background=background),
        UserSaid(text=msgspec.json.encode(order).decode(), source=MessageSource.ORDER, at=at),
        VerdictRecorded(run_id="r", verdict=FailureVerdict(origin=origin, jobs=judged), at=at),
        RunEnded(run_id="r", reason=EndReason.COMPLETED, text="Done.", answered=True, at=at + took_s),
    ]


async def put(index: SqliteSessionIndex, entries: list[JournalEntry]) -> None:
    made = summarise_session(entries)
    await index.put(made.session_id, "1", made, entries)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


@pytest.fixture
def index(path: Path) -> SqliteSessionIndex:
    return open_session_index(path, lambda text: text.replace("s3cret", "***"), pytest.fail)


async def test_figures_count_pipelines_and_jobs_by_day_and_cause(index: SqliteSessionIndex) -> None:
    for number, origin in enumerate((FailureOrigin.CHANGE, FailureOrigin.CHANGE, FailureOrigin.FLAKY)):
        await put(index, failed_run(f"s{number}", origin, took_s=60.0 * (number + 1)))
    await put(index, failed_run("old", at=NOON - 10 * DAY_S))
    await put(index, failed_run("other", FailureOrigin.UNKNOWN, project="c/d", took_s=1_000.0))
    figures = await index.run_figures(NOON - DAY_S)
    counted = {(one.day, one.origin): (one.pipelines, one.jobs) for one in figures.origins if one.pipelines}
    assert counted == {(TODAY, "change"): (2, 0), (TODAY, "flaky"): (1, 0), (TODAY, "unknown"): (1, 0)}
    assert sum(one.jobs for one in figures.origins) == 4
    assert (figures.overall.answers, figures.overall.p50_s, figures.overall.p90_s) == (4, 120.0, 1_000.0)
    assert [(one.cause, one.sessions, one.answered) for one in figures.causes] == [("pipeline", 4, 4)]
    assert figures.models == (("m", 4),)
    here = await index.run_figures(NOON - DAY_S, "A/B")
    assert (here.total.sessions, here.overall.p90_s) == (3, 180.0), "GitLab's paths know no case"


async def test_filters_combine_with_what_was_said(index: SqliteSessionIndex) -> None:
    await put(index, failed_run("one", said="the elephant"))
    await put(index, failed_run("two", FailureOrigin.FLAKY, said="the elephant", at=NOON + 9))
    await put(index, failed_run("three", said="the mouse", project="c/d", at=NOON - 9))

    async def found(before: tuple[float, str] | None = None, **asked: str) -> list[str]:
        return [one.session_id for one in await index.find_runs(RunQuery(**asked, before=before), 10)]

    assert await found() == ["two", "one", "three"]
    assert await found((NOON + 69, "two")) == ["one", "three"], "what stood behind that one"
    assert await found((NOON + 60, "one"), verdict="change") == ["three"]
    assert await found(text="elephant") == ["two", "one"]
    assert await found(text="elephant", verdict="flaky") == ["two"]
    assert await found(text="three") == ["three"], "ids are found too"
    assert await found(project="a/b", verdict="change") == ["one"]
    assert await found(workflow="review") == []
    assert await found(text="' OR 1 --") == []
    choices = await index.run_choices()
    assert (choices.project, choices.verdict) == (("a/b", "c/d"), ("change", "flaky"))
    assert (choices.state, choices.workflow, choices.model) == (("completed",), ("analyze-failures",), ("m",))


async def test_a_grid_shows_each_pipeline_as_it_was_seen_last(index: SqliteSessionIndex) -> None:
    def seen(own: str, main: str) -> tuple[PipelineStatus, ...]:
        job = JobStatus(name="test s3cret", status=own, id=9)
        there = JobStatus(name="test", status=main)
        return (
            PipelineStatus(pipeline_id=70, mr_iid=7, sha="ab", jobs=(job,)),
            PipelineStatus(pipeline_id=60, branch="main", jobs=(there,)),
        )

    await put(index, failed_run("one", pipelines=seen("failed", "running")))
    await put(index, failed_run("two", at=NOON + 90, pipelines=seen("success", "failed")))
    (own,) = await index.list_pipelines("a/b", 10, of_branches=False)
    assert (own.session_id, own.request, own.pipeline.pipeline_id) == ("two", "Faster", 70)
    assert own.pipeline.jobs == (JobStatus(name="test ***", status="success", id=9),)
    assert await index.list_pipelines("a/b", 10, of_branches=False, before=70) == []
    assert own.judged == (FailedJob("test", 9, "change", "f1", "assert 1 == 2", "TestFailure"),)
    (main,) = await index.list_pipelines("a/b", 10, of_branches=True)
    assert (main.session_id, main.pipeline.branch, main.pipeline.jobs[0].status) == ("", "main", "failed")
    assert main.judged == (), "what the merge request broke is not what is broken there"
    await index.forget("two")
    (own,) = await index.list_pipelines("a/b", 10, of_branches=False)
    assert own.session_id == "one"


async def test_a_failure_names_the_sessions_that_saw_it(index: SqliteSessionIndex) -> None:
    await put(index, failed_run("one"))
    await put(index, failed_run("two", at=NOON + 9))
    await put(index, failed_run("other", project="c/d"))
    found = await index.failure_runs("a/b", ["f1", "unseen"], 10)
    assert [one.summary.session_id for one in found] == ["two", "one"]
    assert found[0].job.name == "test"
    assert await index.failure_runs("a/b", [], 10) == []


async def test_an_index_of_an_earlier_version_is_filled_at_the_next_look(path: Path) -> None:
    earlier = open_session_index(path, str, pytest.fail)
    await put(earlier, failed_run("one"))
    with sqlite3.connect(path) as file:
        for table in ("runs", "failed_jobs", "pipelines"):
            file.execute(f"DROP TABLE {table}")
        file.execute("PRAGMA user_version = 1")
    index = open_session_index(path, str, pytest.fail)
    assert await index.stamps() == {"one": ""}, "so the next look reads its journal"
    await put(index, failed_run("one"))
    assert [one.session_id for one in await index.find_runs(RunQuery(), 10)] == ["one"]


def fill(path: Path, runs: int) -> None:
    with sqlite3.connect(path) as file:
        for number in range(1, runs + 1):
            jobs = (FailedJob(f"job {number % 40}", number, "flaky", f"f{number % 90}", "assert"),)
            about = SessionSubject("analyze-failures", f"group/p{number % 300}", number, pipeline_id=number)
            made = SessionSummary(
                f"s{number}",
                about,
                began_at=NOON - number,
                changed_at=NOON,
                verdict="flaky",
                jobs=jobs,
                answer_s=number,
            )
            file.execute(
                "INSERT INTO sessions VALUES (?, ?, '1', ?, ?, 1, x'', x'', ?, ?)",
                (number, made.session_id, "p", NOON, made.session_id, dump_summary(made)),
            )
            seen = (PipelineStatus(pipeline_id=number, mr_iid=number, jobs=(JobStatus(name="j", status="failed"),)),)
            run_index.record_run(file, number, "p", made, seen)


@pytest.mark.parametrize("runs", [10, 10_000])
async def test_ten_thousand_runs_take_as_few_queries_and_rows_as_ten(
    path: Path, monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    open_session_index(path, str, pytest.fail)
    fill(path, runs)
    queries: list[str] = []
    with sqlite3.connect(path) as file:
        file.row_factory = sqlite3.Row
        file.set_trace_callback(queries.append)

        def asked(question: Callable[..., Any], most: int, **values: Any) -> Any:
            queries.clear()
            found = question(file, **values)
            assert len(queries) <= most, question
            return found

        figures = asked(run_index.run_figures, 6, since=NOON - 90 * DAY_S, place="")
        assert figures.total.sessions == runs
        assert len(figures.origins) <= 2 * 5 * 90
        tables = asked(run_index.spending_tables, 4, since=NOON - 90 * DAY_S)
        assert all(len(table) <= 90 for table in (tables.days, tables.projects, tables.workflows, tables.models))
        choices = asked(run_index.run_choices, 5)
        assert len(choices.project) <= 100
        listed = asked(run_index.find_runs, 1, query=RunQuery(verdict="flaky"), place="", matches=(), limit=100)
        assert len(listed) == min(runs, 100)
        rows = asked(run_index.list_pipelines, 101, place="p", limit=1_000, of_branches=False)
        assert len(rows) == min(runs, 100)
        seen = asked(run_index.failure_runs, 1, place="p", fingerprints=["f1"], limit=50)
        assert len(seen) <= 50

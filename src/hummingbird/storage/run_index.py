"""The part of the session index that answers questions about many runs: what failed, why, how often, at what cost.

Each session has a row of figures, a row for each failed job that was judged, and one for each pipeline whose jobs it
saw. All of them come from its journal, so the tables are filled anew whenever the index is.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

import msgspec

from hummingbird.core.background import BACKGROUND_JOBS, PipelineStatus
from hummingbird.core.journal import JournalEntry, RunStarted
from hummingbird.core.protocols.run_figures import (
    FIGURE_DAYS,
    GROUPS_LISTED,
    NAMES_LISTED,
    PIPELINES_LISTED,
    RUNS_LISTED,
    AnswerTimes,
    CauseCount,
    FailureRun,
    OriginCount,
    RunChoices,
    RunFigures,
    RunQuery,
    SeenPipeline,
    SpendingGroup,
    SpendingTables,
)
from hummingbird.core.sessions import FailedJob, SessionSummary, load_summary
from hummingbird.core.verdicts import FailureOrigin

RUN_TABLES = (
    """CREATE TABLE runs (
        session INTEGER PRIMARY KEY, place TEXT NOT NULL, day TEXT, began_at REAL NOT NULL, changed_at REAL NOT NULL,
        project TEXT NOT NULL, state TEXT NOT NULL, workflow TEXT NOT NULL, model TEXT NOT NULL, verdict TEXT NOT NULL,
        cause TEXT NOT NULL, answer_s REAL NOT NULL, usd REAL NOT NULL, unpriced INTEGER NOT NULL,
        tokens INTEGER NOT NULL, cached INTEGER NOT NULL, output INTEGER NOT NULL)""",
    "CREATE INDEX runs_by_begin ON runs (began_at)",
    "CREATE INDEX runs_by_change ON runs (changed_at)",
    """CREATE TABLE failed_jobs (
        session INTEGER NOT NULL, number INTEGER NOT NULL, place TEXT NOT NULL, at REAL NOT NULL,
        pipeline INTEGER NOT NULL, origin TEXT NOT NULL, fingerprint TEXT NOT NULL, job BLOB NOT NULL,
        PRIMARY KEY (session, number)) WITHOUT ROWID""",
    "CREATE INDEX failed_jobs_by_failure ON failed_jobs (place, fingerprint, at)",
    "CREATE INDEX failed_jobs_by_time ON failed_jobs (at)",
    """CREATE TABLE pipelines (
        place TEXT NOT NULL, of_branch INTEGER NOT NULL, pipeline INTEGER NOT NULL, session INTEGER NOT NULL,
        at REAL NOT NULL, own INTEGER NOT NULL, seen BLOB NOT NULL,
        PRIMARY KEY (place, of_branch, pipeline, session)) WITHOUT ROWID""",
    "CREATE INDEX pipelines_of_session ON pipelines (session)",
    "UPDATE sessions SET stamp = ''",  # so that sessions that were indexed before get their rows
)

_ON_TARGET = FailureOrigin.TARGET.value
_PUT_RUN = "INSERT OR REPLACE INTO runs VALUES (?, ?, date(?, 'unixepoch'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_JOB = "INSERT INTO failed_jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_PIPELINE = "INSERT OR REPLACE INTO pipelines VALUES (?, ?, ?, ?, ?, ?, ?)"
_FILTERS = ("state", "workflow", "model", "verdict")
_MATCHED = "SELECT DISTINCT rowid >> 20 FROM (SELECT rowid FROM words WHERE words MATCH :match{0} LIMIT 50000)"
_IN_PERIOD = "began_at >= :since AND (:place = '' OR place = :place)"
_SUMS = "count(*), sum(usd), sum(unpriced), sum(tokens), sum(cached), sum(output)"
_ORIGINS = f"""SELECT day, verdict, count(*), 0 FROM runs WHERE {_IN_PERIOD} AND verdict <> '' AND day IS NOT NULL
    GROUP BY 1, 2 UNION ALL
    SELECT date(at, 'unixepoch') AS day, origin, 0, count(*) FROM failed_jobs
    WHERE at >= :since AND (:place = '' OR place = :place) AND day IS NOT NULL GROUP BY 1, 2 ORDER BY 1 LIMIT 4000"""
_TIMES = f"""WITH answered AS (SELECT {{0}} AS day, answer_s FROM runs WHERE {_IN_PERIOD} AND answer_s > 0),
    ranked AS (SELECT day, answer_s, row_number() OVER (PARTITION BY day ORDER BY answer_s) AS place,
        count(*) OVER (PARTITION BY day) AS answers FROM answered)
    SELECT day, answers, min(answer_s) FILTER (WHERE place * 2 >= answers),
        min(answer_s) FILTER (WHERE place * 10 >= answers * 9) FROM ranked GROUP BY day ORDER BY day LIMIT 400"""
_CAUSES = f"""SELECT cause, count(*), sum(answer_s > 0) FROM runs WHERE {_IN_PERIOD} GROUP BY cause
    ORDER BY 2 DESC LIMIT {NAMES_LISTED}"""
_MODELS = f"""SELECT model, count(*) FROM runs WHERE {_IN_PERIOD} AND answer_s > 0 GROUP BY model
    ORDER BY 2 DESC LIMIT {NAMES_LISTED}"""
_TOTAL = f"SELECT '', {_SUMS} FROM runs WHERE {_IN_PERIOD}"
_GROUPS = f"""SELECT {{0}}, {_SUMS} FROM runs WHERE began_at >= :since GROUP BY {{1}}
    ORDER BY sum(usd) DESC, count(*) DESC LIMIT {GROUPS_LISTED}"""
_DAYS = f"""SELECT day, {_SUMS} FROM runs WHERE began_at >= :since AND day IS NOT NULL GROUP BY day ORDER BY day
    LIMIT {FIGURE_DAYS}"""
# SQLite takes the other columns from the row that has the maximum.
_PIPELINES = """SELECT pipeline, own, max(own * 1e12 + at), at, seen, session FROM pipelines
    WHERE place = ? AND of_branch = ? AND pipeline < ? GROUP BY pipeline ORDER BY pipeline DESC LIMIT ?"""
_SUMMARY = "SELECT session, summary FROM sessions WHERE id = ?"


def pipelines_from_entries(entries: Iterable[JournalEntry], mask: Callable[[str], str]) -> tuple[PipelineStatus, ...]:
    """Return the pipelines that the runs of a session saw, each once and masked."""
    found: dict[int, PipelineStatus] = {}
    for entry in entries:
        if isinstance(entry, RunStarted) and entry.background is not None:
            found.update((one.pipeline_id, one) for one in entry.background.pipelines)
    return tuple(_mask_pipeline(one, mask) for one in found.values() if 0 < one.pipeline_id < 2**62)


def _mask_pipeline(one: PipelineStatus, mask: Callable[[str], str]) -> PipelineStatus:
    jobs = tuple(
        msgspec.structs.replace(job, name=mask(job.name), status=mask(job.status)) for job in one.jobs[:BACKGROUND_JOBS]
    )
    return msgspec.structs.replace(one, branch=mask(one.branch), sha=mask(one.sha), jobs=jobs)


def record_run(
    index: sqlite3.Connection, session: int, place: str, made: SessionSummary, pipelines: Sequence[PipelineStatus]
) -> None:
    """Write the rows of a session, whose summary is masked, in place of those that are there."""
    forget_run(index, session)
    about = made.about
    times = (made.began_at, made.began_at, made.changed_at)
    names = (about.project, made.state, about.workflow, made.model, made.verdict, made.cause)
    used = (made.answer_s, made.usd, made.unpriced, made.tokens, made.cached, made.output)
    index.execute(_PUT_RUN, (session, place, *times, *names, *used))
    pipeline_id = about.pipeline_id if 0 <= about.pipeline_id < 2**62 else 0
    pipeline_id = pipeline_id or next((one.pipeline_id for one in pipelines if one.mr_iid), 0)
    index.executemany(
        _PUT_JOB,
        (
            (session, number, place, made.began_at, pipeline_id, job.origin, job.fingerprint, msgspec.json.encode(job))
            for number, job in enumerate(made.jobs)
        ),
    )
    index.executemany(
        _PUT_PIPELINE,
        (
            (place, not one.mr_iid, one.pipeline_id, session, made.changed_at, bool(one.mr_iid), _dump(one))
            for one in pipelines
        ),
    )


def _dump(one: PipelineStatus) -> bytes:
    return msgspec.json.encode(one)


def forget_run(index: sqlite3.Connection, session: int) -> None:
    """Delete the rows of a session."""
    for table in ("runs", "failed_jobs", "pipelines"):
        index.execute(f"DELETE FROM {table} WHERE session = ?", (session,))


def clear_runs(index: sqlite3.Connection) -> None:
    """Delete the rows of all sessions."""
    for table in ("runs", "failed_jobs", "pipelines"):
        index.execute(f"DELETE FROM {table}")


def find_runs(
    index: sqlite3.Connection, query: RunQuery, place: str, matches: Sequence[str], limit: int
) -> list[SessionSummary]:
    """Return the sessions that fit, the last changed first; `matches` are full-text queries, the strictest first."""
    wanted = {name: getattr(query, name) for name in _FILTERS if getattr(query, name)}
    where = [f"runs.{name} = :{name}" for name in wanted] + (["runs.place = :place"] if place else [])
    values: dict[str, Any] = {**wanted, "place": place, "limit": min(limit, RUNS_LISTED), "text": query.text}
    if query.before is not None:
        where.append("(runs.changed_at, sessions.session) < (:before_at, :before_id)")
        values |= {"before_at": query.before[0], "before_id": query.before[1]}
    for match in matches or ([""] if not query.text else []):
        said = [f"(instr(told, :text) OR runs.session IN ({_MATCHED.format('')}))"] if match else []
        sql = f"""SELECT summary FROM runs JOIN sessions ON sessions.id = runs.session
            WHERE {" AND ".join([*where, *said]) or "1"} ORDER BY runs.changed_at DESC, sessions.session DESC
            LIMIT :limit"""
        rows = index.execute(sql, {**values, "match": match}).fetchall()
        if found := [made for (content,) in rows if (made := load_summary(content))]:
            return found
    return []


def run_choices(index: sqlite3.Connection) -> RunChoices:
    """Return the values that sessions have."""

    def distinct(name: str) -> tuple[str, ...]:
        sql = f"SELECT DISTINCT {name} FROM runs WHERE {name} <> '' ORDER BY 1 LIMIT {NAMES_LISTED}"
        return tuple(value for (value,) in index.execute(sql))

    newest = f"""SELECT project FROM runs WHERE project <> '' GROUP BY place ORDER BY max(changed_at) DESC
        LIMIT {NAMES_LISTED}"""
    projects = tuple(project for (project,) in index.execute(newest))
    return RunChoices(projects, *map(distinct, _FILTERS))


def run_figures(index: sqlite3.Connection, since: float, place: str) -> RunFigures:
    """Return the figures of a period; the number of queries and of rows does not grow with the sessions."""
    asked = {"since": since, "place": place}
    origins = [
        OriginCount(date.fromisoformat(day), origin, pipelines, jobs)
        for day, origin, pipelines, jobs in index.execute(_ORIGINS, asked)
    ]
    by_day = index.execute(_TIMES.format("day"), asked).fetchall()
    times = [AnswerTimes(date.fromisoformat(day), *rest) for day, *rest in by_day if day]
    overall = [AnswerTimes(None, *rest) for _, *rest in index.execute(_TIMES.format("''"), asked)]
    return RunFigures(
        tuple(origins),
        tuple(times),
        overall[0] if overall else AnswerTimes(None, 0, 0.0, 0.0),
        tuple(CauseCount(*row) for row in index.execute(_CAUSES, asked)),
        _group(index.execute(_TOTAL, asked).fetchone()),
        tuple((model, count) for model, count in index.execute(_MODELS, asked)),
    )


def spending_tables(index: sqlite3.Connection, since: float) -> SpendingTables:
    """Return what was spent in a period."""
    asked = {"since": since}
    days = tuple(map(_group, index.execute(_DAYS, asked)))
    by = (("project", "place"), ("workflow", "workflow"), ("model", "model"))
    return SpendingTables(days, *(tuple(map(_group, index.execute(_GROUPS.format(*names), asked))) for names in by))


def _group(row: Sequence[Any]) -> SpendingGroup:
    name, *sums = row
    return SpendingGroup(name or "", *(one or 0 for one in sums))


def list_pipelines(
    index: sqlite3.Connection, place: str, limit: int, *, of_branches: bool, before: int = 0
) -> list[SeenPipeline]:
    """Return pipelines of a project, newest first, each as it was seen last."""
    asked = (place, of_branches, before or 2**62, min(limit, PIPELINES_LISTED))
    rows = index.execute(_PIPELINES, asked).fetchall()
    made = []
    for _, own, _, at, content, session in rows:
        pipeline = msgspec.json.decode(content, type=PipelineStatus)
        row = index.execute(_SUMMARY, (session,)).fetchone()
        summary = load_summary(row[1]) if row else None
        if not own:
            judged = summary.jobs if summary else ()
            made.append(SeenPipeline(pipeline, at, judged=tuple(job for job in judged if job.origin == _ON_TARGET)))
            continue
        session_id, request = (row[0], summary.request) if summary else ("", "")
        made.append(SeenPipeline(pipeline, at, session_id, request, summary.jobs if summary else ()))
    return made


def failure_runs(index: sqlite3.Connection, place: str, fingerprints: Sequence[str], limit: int) -> list[FailureRun]:
    """Return the sessions in which one of the failures was judged, newest first."""
    marks = ", ".join("?" * len(fingerprints))
    sql = f"""SELECT job, summary FROM failed_jobs JOIN sessions ON sessions.id = failed_jobs.session
        WHERE failed_jobs.place = ? AND fingerprint IN ({marks}) ORDER BY at DESC LIMIT ?"""
    rows = index.execute(sql, (place, *fingerprints, min(limit, RUNS_LISTED))).fetchall()
    return [
        FailureRun(made, msgspec.json.decode(job, type=FailedJob))
        for job, content in rows
        if (made := load_summary(content))
    ]

"""Renders the pages about many runs: overview, runs, pipelines, known failures and costs. They open no journal."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlencode

from hummingbird.core.background import JobStatus
from hummingbird.core.errors import UsageError
from hummingbird.core.orders import OrderCause
from hummingbird.core.protocols.run_figures import (
    AnswerTimes,
    FailureRun,
    RunChoices,
    RunFigures,
    RunQuery,
    SeenPipeline,
    SpendingGroup,
    SpendingTables,
)
from hummingbird.core.protocols.sessions import SearchHit
from hummingbird.core.protocols.storage import AnalysisLink, FailureDay, KnownFailure
from hummingbird.core.sessions import FailedJob, SessionSummary
from hummingbird.core.verdicts import ORIGIN_WORDS, FailureOrigin
from hummingbird.dashboard.charts import ChartSeries, DayChart, bar_chart, last_days, share_bar
from hummingbird.dashboard.live_updates import LiveRun
from hummingbird.dashboard.queries import (
    FAILURES_SHOWN,
    GRID_JOBS,
    PERIODS,
    RUNS_SHOWN,
    TREND_DAYS,
    BudgetUse,
    DashboardQueries,
    QueueState,
)
from hummingbird.dashboard.rendering import (
    format_ago,
    format_cost,
    format_datetime,
    format_duration,
    format_percentage,
    iso_time,
    printable_lines,
)
from hummingbird.dashboard.views import PageRenderer, failure_address, highlight_matches

CAUSE_WORDS = {
    OrderCause.PIPELINE.value: "a failed pipeline",
    OrderCause.MERGE_REQUEST.value: "a merge request",
    OrderCause.COMMAND.value: "a command in a comment",
    OrderCause.REPLY.value: "a reply in a thread",
    OrderCause.PAGE.value: "a question on this dashboard",
    "": "a terminal, an editor or a program",
}
ORIGIN_SIGNS = {"change": "C", "target": "T", "flaky": "F", "infrastructure": "I", "unknown": "?"}
_WORDS = {origin.value: words for origin, words in ORIGIN_WORDS.items()}
_STATUS_SIGNS = {
    "success": ("✓", "passed"),
    "failed": ("✗", "failed"),
    "canceled": ("⊘", "cancelled"),
    "skipped": ("–", "skipped"),
    "manual": ("·", "waits for a person"),
}
_FILTERS = {"state": "State", "workflow": "Workflow", "model": "Model", "verdict": "Cause"}
_MODELS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class KnownFailureGroup:
    """Known failures of a project that read the same, because one failure was recognised in two ways.

    Such failures are mostly seen in the same jobs, so counts are those of the one that was seen most.
    """

    members: tuple[KnownFailure, ...]

    @property
    def newest(self) -> KnownFailure:
        return max(self.members, key=lambda one: one.last_seen)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        return tuple(one.fingerprint for one in self.members)

    @property
    def count(self) -> int:
        return max(one.count for one in self.members)

    @property
    def first_seen(self) -> float:
        return min(one.first_seen for one in self.members)

    @property
    def merge_requests(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for one in self.members for name in one.merge_requests))

    @property
    def merge_requests_total(self) -> int:
        return max(len(self.merge_requests), *(one.merge_requests_total for one in self.members))

    @property
    def branches(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for one in self.members for name in one.branches))

    @property
    def links(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(link for one in self.members for link in one.links if is_web_link(link)))

    @property
    def explanation(self) -> AnalysisLink | None:
        """Return the note that explained the failure first."""
        found = [one.analysis for one in self.members if one.analysis and is_web_link(one.analysis.link)]
        return min(found, key=lambda one: one.at, default=None)

    def sightings_by_day(self, trends: Mapping[str, Sequence[FailureDay]]) -> dict[date, float]:
        """Return how many jobs had the failure on each day."""
        found: dict[date, float] = {}
        for fingerprint in self.fingerprints:
            for day in trends.get(fingerprint, ()):
                found[day.day] = max(found.get(day.day, 0.0), float(day.sightings))
        return found


def group_failures(failures: Iterable[KnownFailure]) -> list[KnownFailureGroup]:
    """Group the failures with the same title and class, in the order of their first members."""
    groups: dict[tuple[str, str], list[KnownFailure]] = {}
    for one in failures:
        groups.setdefault((" ".join(one.title.split()) or one.fingerprint, one.class_), []).append(one)
    return [KnownFailureGroup(tuple(members)) for members in groups.values()]


async def find_failure_group(desk: DashboardQueries, project: str, fingerprint: str) -> KnownFailureGroup:
    """Return the known failure with those that read the same; raise UsageError if it is not known."""
    known = await desk.list_failures(project, FAILURES_SHOWN) if project and fingerprint else ()
    for group in group_failures(known):
        if fingerprint in group.fingerprints:
            return group
    if found := await desk.find_failure(project, fingerprint) if project and fingerprint else None:
        return KnownFailureGroup((found,))
    raise UsageError("This failure is not known: it was not seen for a long time, or never.")


def _answerer(model: str) -> str:
    notes = {"digest": "rules, no model", "known-failure": "a link to the note that explained it before"}
    return f"{model} ({notes[model]})" if model in notes else model


def is_web_link(link: str) -> bool:
    return link.startswith(("https://", "http://"))


def origin_days(figures: RunFigures, days: Sequence[date], *, jobs: bool = False) -> dict[str, list[float]]:
    """Return how many pipelines, or failed jobs, each origin had on each day, in the order of the origins."""
    found: dict[str, dict[date, float]] = {origin.value: {} for origin in FailureOrigin}
    for one in figures.origins:
        counted = found.setdefault(one.origin if one.origin in found else FailureOrigin.UNKNOWN.value, {})
        counted[one.day] = counted.get(one.day, 0.0) + (one.jobs if jobs else one.pipelines)
    return {origin: [counted.get(day, 0.0) for day in days] for origin, counted in found.items()}


def count_of(number: int, what: str) -> str:
    """Return the number with its noun, in the plural unless it is one."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def count_text(value: float) -> str:
    return f"{value:,.0f}"


def dollar_text(value: float) -> str:
    return f"${value:,.2f}"


@dataclass(frozen=True, slots=True)
class RunPages:
    """Renders the pages about many runs; `pages` escapes and masks whatever others wrote."""

    pages: PageRenderer

    def overview_page(
        self,
        figures: RunFigures,
        choices: RunChoices,
        newest: Sequence[SessionSummary],
        runs: Sequence[LiveRun],
        queue: QueueState,
        *,
        project: str,
        period: int,
        today: date,
        **more: Any,
    ) -> str:
        days = last_days(today, period)
        pipelines, jobs = origin_days(figures, days), origin_days(figures, days, jobs=True)
        running = {run.order.session_id for run in runs}
        return self.pages.render(
            "overview.html",
            title="Overview",
            here="/",
            project=project,
            projects=choices.project,
            period=period,
            periods=PERIODS,
            tiles=_overview_tiles(figures, pipelines, jobs),
            shares=self._shares(pipelines),
            charts=[
                ("Failed pipelines by cause", self._origin_chart(pipelines, days, "Failed pipelines")),
                ("Failed jobs by cause", self._origin_chart(jobs, days, "Failed jobs")),
                ("Time to answer", _answer_chart(figures.times, days)),
            ],
            runs=[self.pages.run_view(run) for run in runs],
            queue=queue,
            causes=[(CAUSE_WORDS.get(one.cause, one.cause), one.sessions, one.answered) for one in figures.causes],
            models=[(_answerer(name), count) for name, count in figures.models[:_MODELS_SHOWN]],
            sessions=[self.pages.session_view(one, running=one.session_id in running) for one in newest],
            known=bool(choices.state),
            **more,
        )

    def _origin_chart(self, counted: Mapping[str, Sequence[float]], days: Sequence[date], unit: str) -> dict[str, Any]:
        series = [ChartSeries(f"origin-{name}", _WORDS[name], values) for name, values in counted.items()]
        return DayChart(days, series, unit, count_text, whole_numbers=True).template_values

    def _shares(self, counted: Mapping[str, Sequence[float]]) -> dict[str, Any]:
        sums = {name: sum(values) for name, values in counted.items()}
        whole = int(sum(sums.values()))
        named = [(name, _WORDS[name], int(count), format_percentage(int(count), whole)) for name, count in sums.items()]
        series = [ChartSeries(f"origin-{name}", _WORDS[name], (count,)) for name, count in sums.items()]
        described = "Causes: " + ", ".join(f"{share} {words}" for _, words, count, share in named if count)
        return {"picture": share_bar(series, described), "rows": named, "whole": whole}

    def runs_page(
        self,
        sessions: Sequence[SessionSummary],
        runs: Sequence[LiveRun],
        asked: RunQuery,
        choices: RunChoices,
        hits: Sequence[SearchHit],
        *,
        older: RunQuery | None = None,
        **more: Any,
    ) -> str:
        now = {run.order.session_id for run in runs}
        found: dict[str, SearchHit] = {}
        for hit in hits:
            found.setdefault(hit.summary.session_id, hit)
        views = [
            {**self.pages.session_view(one, running=one.session_id in now), "hit": self._hit_view(found, one)}
            for one in sessions[:RUNS_SHOWN]
        ]
        named = [(label, name, getattr(asked, name), getattr(choices, name)) for name, label in _FILTERS.items()]
        values = {name: getattr(asked, name) for name in ("project", "text", *_FILTERS) if getattr(asked, name)}
        return self.pages.render(
            "runs.html",
            title="Runs",
            here="/runs",
            sessions=views,
            runs=[self.pages.run_view(run) for run in runs],
            asked=asked,
            projects=choices.project,
            choices=named,
            words=_WORDS,
            filtered=bool(values) or asked.before is not None,
            query=asked.text,
            older=_older_link(values, older),
            **more,
        )

    def _hit_view(self, found: Mapping[str, SearchHit], one: SessionSummary) -> dict[str, Any] | None:
        if (hit := found.get(one.session_id)) is None:
            return None
        return {"number": hit.number, "who": hit.who.value, "snippet": highlight_matches(self.pages.mask(hit.snippet))}

    def pipelines_page(
        self, projects: Sequence[str], project: str, seen: Sequence[SeenPipeline], *, of_branches: bool, **more: Any
    ) -> str:
        """Render the grid: a row for each pipeline, a column for each job, those that failed most often first."""
        failed: Counter[str] = Counter()
        for row in seen:
            failed.update({job.name: int(job.status == "failed") for job in row.pipeline.jobs})
        names = sorted(failed, key=lambda name: (-failed[name], name))
        shown = names[:GRID_JOBS]
        return self.pages.render(
            "pipelines.html",
            title="Pipelines",
            here="/pipelines",
            projects=projects,
            project=project,
            of_branches=of_branches,
            jobs=[(printable_lines(name), failed[name]) for name in shown],
            left_out=len(names) - len(shown),
            rows=[self._pipeline_view(project, row, shown) for row in seen],
            legend=[(f"origin-{name}", ORIGIN_SIGNS[name], words) for name, words in _WORDS.items()],
            **more,
        )

    def _pipeline_view(self, project: str, row: SeenPipeline, names: Sequence[str]) -> dict[str, Any]:
        pipeline, jobs = row.pipeline, {job.name: job for job in row.pipeline.jobs}
        judged = {job.name: job for job in row.judged}
        base = f"{self.pages.gitlab}/{project}/-"
        request = f"{base}/merge_requests/{pipeline.mr_iid}" if pipeline.mr_iid else ""
        cells = [self._cell(project, row, jobs[name], judged.get(name)) if name in jobs else None for name in names]
        return {
            "pipeline_id": pipeline.pipeline_id,
            "address": f"{base}/pipelines/{pipeline.pipeline_id}",
            "sha": printable_lines(pipeline.sha[:8]),
            "name": printable_lines(row.request or pipeline.branch or f"Pipeline {pipeline.pipeline_id}"),
            "iid": pipeline.mr_iid,
            "request": request,
            "session_id": row.session_id,
            "ago": format_ago(row.seen_at, datetime.now(UTC).timestamp()),
            "seen": format_datetime(row.seen_at),
            "machine_seen": iso_time(row.seen_at),
            "cells": cells,
        }

    def _cell(self, project: str, row: SeenPipeline, job: JobStatus, judged: FailedJob | None) -> dict[str, Any]:
        sign, words = _STATUS_SIGNS.get(job.status, ("…", printable_lines(job.status)))
        kind, address, inside, more = job.status if job.status in _STATUS_SIGNS else "other", "", True, ""
        if job.status == "failed" and judged is not None:
            kind, sign = f"origin-{judged.origin}", ORIGIN_SIGNS.get(judged.origin, "?")
            words, more = _WORDS.get(judged.origin, judged.origin), printable_lines(judged.title)
            address = self._failure_address(project, judged, row.session_id)
        elif job.status == "success" and job.retried:
            kind, sign, words = "origin-flaky", "↻", "flaky: passed when it was tried again"
        if not address and job.id and (job.status == "failed" or job.retried):
            address, inside = f"{self.pages.gitlab}/{project}/-/jobs/{job.id}", False
        return {"kind": kind, "sign": sign, "words": words, "more": more, "address": address, "inside": inside}

    def _failure_address(self, project: str, judged: FailedJob, session_id: str) -> str:
        if judged.fingerprint:
            return failure_address(project, judged.fingerprint)
        return f"/sessions/{session_id}" if session_id else ""

    def failures_page(
        self,
        projects: Sequence[str],
        project: str,
        failures: Sequence[KnownFailure],
        trends: Mapping[str, Sequence[FailureDay]],
        trend: Sequence[FailureDay],
        *,
        today: date,
        **more: Any,
    ) -> str:
        days = last_days(today, TREND_DAYS)
        groups = group_failures(failures)
        return self.pages.render(
            "failures.html",
            title="Known failures",
            projects=projects,
            project=project,
            days=TREND_DAYS,
            chart=_sightings_chart({day.day: float(day.sightings) for day in trend}, days),
            seen=sum(day.sightings for day in trend),
            failures=[
                {
                    **self._failure_view(project, one),
                    "trend": bar_chart([one.sightings_by_day(trends).get(day, 0.0) for day in days], "jobs"),
                }
                for one in groups
            ],
            here="/failures",
            **more,
        )

    def failure_page(
        self,
        project: str,
        group: KnownFailureGroup,
        trends: Mapping[str, Sequence[FailureDay]],
        runs: Sequence[FailureRun],
        today: date,
        **more: Any,
    ) -> str:
        seen: dict[str, FailureRun] = {}
        for run in runs:
            seen.setdefault(run.summary.session_id, run)
        origins = Counter(run.job.origin for run in seen.values())
        return self.pages.render(
            "failure.html",
            title="A known failure",
            here="/failures",
            project=project,
            days=TREND_DAYS,
            failure=self._failure_view(project, group),
            known=group.explanation,
            chart=_sightings_chart(group.sightings_by_day(trends), last_days(today, TREND_DAYS)),
            judged=[(f"origin-{name}", _WORDS.get(name, name), count) for name, count in origins.most_common()],
            runs=[
                {
                    **self.pages.session_view(run.summary, running=False),
                    "job": printable_lines(run.job.name),
                    "job_address": f"{self.pages.gitlab}/{project}/-/jobs/{run.job.job_id}" if run.job.job_id else "",
                    "origin": run.job.origin,
                    "origin_words": _WORDS.get(run.job.origin, run.job.origin),
                }
                for run in seen.values()
            ],
            **more,
        )

    def _failure_view(self, project: str, one: KnownFailureGroup) -> dict[str, Any]:
        newest, base = one.newest, f"{self.pages.gitlab}/{project}/-/merge_requests/"
        numbers = [(name, name.removeprefix("!")) for name in one.merge_requests]
        return {
            "title": printable_lines(self.pages.mask(newest.title)) or "A failure without a title",
            "excerpt": printable_lines(self.pages.mask(newest.excerpt)),
            "class_": newest.class_,
            "kind": newest.kind,
            "count": one.count,
            "address": failure_address(project, newest.fingerprint),
            "merge_requests": one.merge_requests_total,
            "requests": [(name, base + iid if iid.isascii() and iid.isdecimal() else "") for name, iid in numbers],
            "branches": [printable_lines(name) for name in one.branches],
            "links": one.links,
            "ways": len(one.members),
            "first": format_datetime(one.first_seen),
            "machine_first": iso_time(one.first_seen),
            "last": format_datetime(newest.last_seen),
            "machine_last": iso_time(newest.last_seen),
            "ago": format_ago(newest.last_seen, datetime.now(UTC).timestamp()),
        }

    def costs_page(
        self, tables: SpendingTables, budgets: Sequence[BudgetUse], *, period: int, today: date, **more: Any
    ) -> str:
        days = last_days(today, period)
        spent = {one.name: one.usd for one in tables.days}
        series = [ChartSeries("spent", "spent", [spent.get(day.isoformat(), 0.0) for day in days])]
        named = (("Project", tables.projects), ("Workflow", tables.workflows), ("Model", tables.models))
        total = _sum_groups(tables.days)
        return self.pages.render(
            "costs.html",
            title="Costs",
            here="/costs",
            period=period,
            periods=PERIODS,
            total={**_spending_view(total, total.usd), "cost": dollar_text(total.usd)},
            sessions=count_of(total.sessions, "session") + _unpriced_text(total.unpriced),
            chart=DayChart(days, series, "US dollars", dollar_text).template_values,
            tables=[(title, [_spending_view(one, total.usd) for one in groups]) for title, groups in named],
            days=[_spending_view(one, total.usd) for one in reversed(tables.days)],
            budgets=[_budget_view(one) for one in budgets],
            **more,
        )


def _older_link(values: Mapping[str, str], older: RunQuery | None) -> str:
    if older is None or older.before is None:
        return ""
    at, session_id = older.before
    return "/runs?" + urlencode({**values, "before": f"{at!r} {session_id}"})


def _overview_tiles(
    figures: RunFigures, pipelines: Mapping[str, Sequence[float]], jobs: Mapping[str, Sequence[float]]
) -> list[tuple[str, str, str]]:
    total, times = figures.total, figures.overall
    answered = f"{count_of(times.answers, 'answer')}, 90 % within {format_duration(times.p90_s)}"
    failed = int(sum(map(sum, jobs.values())))
    return [
        (
            "Failed pipelines",
            count_text(sum(map(sum, pipelines.values()))),
            f"{count_of(failed, 'failed job')} in them",
        ),
        ("Time to answer", format_duration(times.p50_s), answered if times.answers else "nothing answered yet"),
        ("Cost", dollar_text(total.usd), count_of(total.sessions, "session") + _unpriced_text(total.unpriced)),
        ("Read from the cache", format_percentage(total.cached, total.tokens), f"of {total.tokens:,} tokens in"),
    ]


def _answer_chart(times: Sequence[AnswerTimes], days: Sequence[date]) -> dict[str, Any]:
    by_day = {one.day: one for one in times}
    found = [by_day.get(day, AnswerTimes(None, 0, 0.0, 0.0)) for day in days]
    series = [
        ChartSeries("slow", "for 90 % of the answers", [one.p90_s for one in found]),
        ChartSeries("usual", "for half of the answers", [one.p50_s for one in found]),
    ]
    most = max((one.p90_s for one in found), default=0.0)
    step = next((unit for unit in (3_600.0, 60.0) if most >= 2 * unit), 1.0)
    return DayChart(days, series, "Time to answer", _seconds_text, overlaid=True, step=step).template_values


def _unpriced_text(calls: int) -> str:
    return f", {count_of(calls, 'call')} without a known price" if calls else ""


def _seconds_text(seconds: float) -> str:
    if seconds >= 7_200:
        return f"{seconds / 3_600:.3g} h"
    return f"{seconds / 60:.3g} min" if seconds >= 60 else f"{seconds:.3g} s"


def _sightings_chart(counted: Mapping[date, float], days: Sequence[date]) -> dict[str, Any]:
    series = [ChartSeries("seen", "jobs", [counted.get(day, 0.0) for day in days])]
    return DayChart(days, series, "Failures", count_text, whole_numbers=True).template_values


def _sum_groups(groups: Sequence[SpendingGroup]) -> SpendingGroup:
    return SpendingGroup(
        "",
        sum(one.sessions for one in groups),
        sum(one.usd for one in groups),
        sum(one.unpriced for one in groups),
        sum(one.tokens for one in groups),
        sum(one.cached for one in groups),
        sum(one.output for one in groups),
    )


def _spending_view(one: SpendingGroup, whole: float) -> dict[str, Any]:
    return {
        "name": one.name or "–",
        "sessions": f"{one.sessions:,}",
        "cost": format_cost(one.usd, one.unpriced),
        "share": f"{one.usd / whole:.0%}" if whole > 0 else "–",
        "tokens": f"{one.tokens:,}",
        "cached": format_percentage(one.cached, one.tokens),
        "output": f"{one.output:,}",
    }


def _budget_view(one: BudgetUse) -> dict[str, Any]:
    limit = one.usd_per_day
    return {
        "project": one.project,
        "workflow": one.workflow,
        "per_run": dollar_text(one.usd_per_run) if one.usd_per_run is not None else "no limit",
        "per_day": dollar_text(limit) if limit is not None else "no limit",
        "spent": dollar_text(one.spent_today) if one.spent_today is not None else "cannot be told now",
        "limit": limit or 0.0,
        "used": one.spent_today or 0.0,
        "share": f"{one.spent_today / limit:.0%}" if limit and one.spent_today is not None else "",
    }

"""The JSON API under /api/v1: what the pages show, for programs, and the OpenAPI document that describes it.

It only reads. Each operation is declared once, with its parameters and the type of its answer: the checks of a request
and the document come from there. Every text is masked as on the pages; it is not escaped, because JSON is data.
"""

import base64
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hummingbird.core.errors import UsageError
from hummingbird.core.journal import JournalEntry
from hummingbird.core.json_codec import decode_json
from hummingbird.core.protocols.run_figures import AnswerTimes, OriginCount, RunQuery, SeenPipeline, SpendingGroup
from hummingbird.core.sessions import FailedJob, SessionSummary, is_session_id, summarise_session
from hummingbird.core.text import replace_surrogates
from hummingbird.core.verdicts import FailureOrigin
from hummingbird.core.votes import VOTES_KEPT_S, VoteCount
from hummingbird.dashboard.api_objects import (
    ApiAnsweredRun,
    ApiAnswerTimes,
    ApiBudget,
    ApiCauseCount,
    ApiCost,
    ApiCosts,
    ApiDay,
    ApiEntry,
    ApiEntryPage,
    ApiFailure,
    ApiFailureHistory,
    ApiFailurePage,
    ApiFault,
    ApiJob,
    ApiModelCount,
    ApiOriginDay,
    ApiOverview,
    ApiPipeline,
    ApiPipelineJob,
    ApiPipelinePage,
    ApiProblem,
    ApiProjects,
    ApiQuality,
    ApiRun,
    ApiRunPage,
    ApiSighting,
    ApiSpending,
    ApiVotes,
)
from hummingbird.dashboard.live_updates import LiveUpdates
from hummingbird.dashboard.queries import (
    ENTRY_SHOWN_CHARS,
    FAILURE_RUNS_SHOWN,
    PAGE_S,
    PERIOD,
    QUERY_CHARS,
    TREND_DAYS,
    DashboardQueries,
)
from hummingbird.dashboard.rendering import iso_time, make_row, pair_calls
from hummingbird.dashboard.responses import PieceStreamResponse, slice_text, with_security_headers
from hummingbird.dashboard.run_pages import KnownFailureGroup, find_failure_group, group_failures
from hummingbird.dashboard.views import PageRenderer, SessionAnswer
from hummingbird.evidence.citations.checker import describe_citations

API_PATH = "/api/v1"
ITEMS = 50  # of one page, unless more or fewer are asked for
MOST_ITEMS = 100
MOST_CHARS = 100_000  # of the text of one entry
MOST_DAYS = 90
_JSON_HEADERS = {"Content-Type": "application/json; charset=utf-8"}
_LARGEST = 2**53  # larger numbers are not exact in every language


@dataclass(frozen=True, slots=True)
class ApiParameter:
    """A parameter of a request; `schema` is JSON Schema, of which type, enum, bounds and default are checked."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string", "maxLength": QUERY_CHARS})
    required: bool = False
    place: str = "query"

    def read(self, said: str | None) -> Any:
        """Return the value. Raises BadApiRequest."""
        if said is None or said == "":
            if self.required:
                raise BadApiRequest(f"The parameter {self.name} is missing.")
            return self.schema.get("default", "")
        if self.schema["type"] == "integer":
            value = int(said) if said.isascii() and said.isdecimal() and len(said) < 10 else -1
            if not self.schema["minimum"] <= value <= self.schema["maximum"]:
                raise BadApiRequest(
                    f"The parameter {self.name} must be a number from {self.schema['minimum']} to "
                    f"{self.schema['maximum']}."
                )
            return value
        if len(said) > self.schema.get("maxLength", QUERY_CHARS):
            raise BadApiRequest(f"The parameter {self.name} is too long.")
        if "enum" in self.schema and said not in self.schema["enum"]:
            raise BadApiRequest(f"The parameter {self.name} must be one of {', '.join(self.schema['enum'])}.")
        return said


class BadApiRequest(UsageError):
    """A parameter is missing or has a value that is not allowed."""


ApiHandler = Callable[["JsonApi", Mapping[str, Any]], Awaitable[msgspec.Struct]]


@dataclass(frozen=True, slots=True)
class ApiOperation:
    path: str
    summary: str
    answer: type[msgspec.Struct]
    handler: ApiHandler
    parameters: tuple[ApiParameter, ...] = ()
    may_be_missing: bool = False  # whether there may be no such thing, which is a 404
    reads_journal: bool = False


AnswerFinder = Callable[[str, Sequence[JournalEntry]], Awaitable[SessionAnswer]]
ThreadRunner = Callable[..., Awaitable[Any]]
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class JsonApi:
    """Answers the operations. `load_entries`, `find_answer` and `run_in_thread` share the limits of the pages."""

    desk: DashboardQueries
    pages: PageRenderer
    live: LiveUpdates
    load_entries: Callable[[str], Awaitable[Sequence[JournalEntry]]]
    find_answer: AnswerFinder
    run_in_thread: ThreadRunner

    async def respond(self, operation: ApiOperation, request: Request, seat: ExitStack) -> Response:
        """Answer a request; `seat` is given back when everything is sent."""
        values = {
            one.name: one.read(
                str(request.path_params[one.name]) if one.place == "path" else request.query_params.get(one.name)
            )
            for one in operation.parameters
        }
        found = await operation.handler(self, values)
        text = await self.run_in_thread(self._encode, found)
        return PieceStreamResponse(slice_text(text), _JSON_HEADERS, PAGE_S, seat.pop_all())

    def _encode(self, found: msgspec.Struct) -> str:
        return msgspec.json.encode(self._mask_all(msgspec.to_builtins(found))).decode()

    def _mask_all(self, value: Any) -> Any:
        match value:
            case str():
                return replace_surrogates(self.pages.mask(value))
            case dict():
                return {name: self._mask_all(below) for name, below in value.items()}
            case list() | tuple():
                return [self._mask_all(below) for below in value]
            case float() if not math.isfinite(value):  # a journal may hold any number, JSON may not
                return 0.0
            case _:
                return value

    async def overview(self, asked: Mapping[str, Any]) -> ApiOverview:
        days, project = asked["days"], asked["project"]
        figures = await self.desk.run_figures(_begin_of_period(days), project)
        queue = await self.desk.queue_state()
        return ApiOverview(
            days=days,
            project=project,
            failed_pipelines=sum(one.pipelines for one in figures.origins),
            failed_jobs=sum(one.jobs for one in figures.origins),
            runs=figures.total.sessions,
            cost=_cost(figures.total),
            time_to_answer=_times(figures.overall),
            origins=_origin_days(figures.origins),
            answer_days=tuple(map(_times, figures.times)),
            causes=tuple(
                ApiCauseCount(cause=one.cause, runs=one.sessions, answered=one.answered) for one in figures.causes
            ),
            models=tuple(ApiModelCount(model=name, answered=count) for name, count in figures.models),
            running=tuple(run.order.session_id for run in self.live.runs),
            queued=queue.messages,
        )

    async def projects(self, asked: Mapping[str, Any]) -> ApiProjects:
        found = await self.desk.run_choices()
        return ApiProjects(
            projects=found.project,
            states=found.state,
            workflows=found.workflow,
            models=found.model,
            verdicts=found.verdict,
        )

    async def runs(self, asked: Mapping[str, Any]) -> ApiRunPage:
        limit, before = asked["limit"], _read_cursor(asked["cursor"], float, str)
        query = RunQuery(**{name: asked[name] for name in ("project", "text", *_RUN_FILTERS)})
        if before is not None:
            query = replace(query, before=(before[0], before[1]))
        found = await self.desk.find_runs(query, limit + 1)
        last = found[limit - 1] if len(found) > limit else None
        return ApiRunPage(
            items=tuple(map(self._run, found[:limit])),
            next=_write_cursor(last.changed_at, last.session_id) if last else None,
        )

    async def run(self, asked: Mapping[str, Any]) -> ApiAnsweredRun:
        session_id = _session_id(asked)
        entries = await self.load_entries(session_id)
        answer = (await self.find_answer(session_id, entries)).posted
        made = await self.desk.find_summary(session_id) or summarise_session(entries, session_id)
        return ApiAnsweredRun(
            run=self._run(made),
            entries=len(entries),
            answer=answer.text,
            citations=tuple(describe_citations(answer.tallies)) if answer.text else (),
        )

    async def entries(self, asked: Mapping[str, Any]) -> ApiEntryPage:
        session_id, limit, after = _session_id(asked), asked["limit"], _read_cursor(asked["cursor"], int)
        entries, start = await self.load_entries(session_id), after[0] if after else 0
        items = await self.run_in_thread(self._entries, entries, start, limit, asked["chars"])
        return ApiEntryPage(items=items, next=_write_cursor(start + limit) if start + limit < len(entries) else None)

    def _entries(self, entries: Sequence[JournalEntry], start: int, limit: int, most: int) -> tuple[ApiEntry, ...]:
        spans = pair_calls(entries)
        return tuple(self._entry(entries, number, most, spans.by_end) for number in _numbers(entries, start, limit))

    def _entry(self, entries: Sequence[JournalEntry], number: int, most: int, ends: Mapping[int, Any]) -> ApiEntry:
        entry, span = entries[number - 1], ends.get(number)
        row = make_row(entry, number, self.pages.mask, most)
        return ApiEntry(
            number=number,
            at=_moment(entry.at),
            kind=row.kind,
            who=row.who,
            title=row.title,
            text=row.text,
            left_out=row.left_out,
            called=span.number if span else None,
        )

    async def pipelines(self, asked: Mapping[str, Any]) -> ApiPipelinePage:
        limit, before = asked["limit"], _read_cursor(asked["cursor"], int)
        found = await self.desk.list_pipelines(
            asked["project"], limit, of_branches=asked["of"] == "branches", before=before[0] if before else 0
        )
        full = len(found) == limit
        return ApiPipelinePage(
            items=tuple(map(_pipeline, found)), next=_write_cursor(found[-1].pipeline.pipeline_id) if full else None
        )

    async def failures(self, asked: Mapping[str, Any]) -> ApiFailurePage:
        limit, before = asked["limit"], _read_cursor(asked["cursor"], float, str)
        groups = group_failures(await self.desk.list_failures(asked["project"], _FAILURES_READ))
        keys = [(-one.newest.last_seen, one.newest.fingerprint) for one in groups]
        ordered = sorted(zip(keys, groups, strict=True), key=lambda pair: pair[0])
        left = [(key, one) for key, one in ordered if before is None or key > (-before[0], before[1])]
        last = left[limit - 1][1].newest if len(left) > limit else None
        return ApiFailurePage(
            items=tuple(_failure(one) for _, one in left[:limit]),
            next=_write_cursor(last.last_seen, last.fingerprint) if last else None,
        )

    async def failure(self, asked: Mapping[str, Any]) -> ApiFailureHistory:
        project = asked["project"]
        group = await find_failure_group(self.desk, project, asked["fingerprint"])
        since = datetime.now(UTC).date() - timedelta(days=TREND_DAYS - 1)
        trends = await self.desk.failure_trends(project, since, group.fingerprints)
        runs = await self.desk.failure_runs(project, group.fingerprints, FAILURE_RUNS_SHOWN)
        return ApiFailureHistory(
            failure=_failure(group),
            days=tuple(
                ApiDay(day=day.isoformat(), jobs=int(count))
                for day, count in sorted(group.sightings_by_day(trends).items())
            ),
            runs=tuple(
                ApiSighting(run_id=one.summary.session_id, at=_moment(one.summary.began_at), job=_job(one.job))
                for one in runs
            ),
        )

    async def costs(self, asked: Mapping[str, Any]) -> ApiCosts:
        tables = await self.desk.spending_tables(_begin_of_period(asked["days"]))
        budgets = await self.desk.budget_uses([one.name for one in tables.projects if one.name])
        return ApiCosts(
            days=asked["days"],
            by_day=tuple(map(_spending, tables.days)),
            by_project=tuple(map(_spending, tables.projects)),
            by_workflow=tuple(map(_spending, tables.workflows)),
            by_model=tuple(map(_spending, tables.models)),
            budgets=tuple(
                ApiBudget(
                    project=one.project,
                    workflow=one.workflow,
                    usd_per_run=one.usd_per_run,
                    usd_per_day=one.usd_per_day,
                    usd_today=one.spent_today,
                )
                for one in budgets
            ),
        )

    async def quality(self, asked: Mapping[str, Any]) -> ApiQuality:
        rated = await self.desk.load_ratings(datetime.now(UTC).timestamp() - VOTES_KEPT_S)
        groups: dict[tuple[str, str], list[VoteCount]] = {}
        for one in rated:
            groups.setdefault((one.note.workflow, one.note.model), []).append(one.votes)
        return ApiQuality(
            items=tuple(
                ApiVotes(
                    workflow=workflow,
                    model=model,
                    results=len(votes),
                    voted_on=sum(one.all > 0 for one in votes),
                    up=sum(one.up for one in votes),
                    down=sum(one.down for one in votes),
                )
                for (workflow, model), votes in sorted(groups.items())
            )
        )

    def _run(self, one: SessionSummary) -> ApiRun:
        about, running = one.about, self.live.find_run(one.session_id) is not None
        return ApiRun(
            id=one.session_id,
            page=f"/sessions/{one.session_id}",
            state="running" if running else one.state,
            running=running,
            verdict=one.verdict or None,
            cause=one.cause,
            workflow=about.workflow,
            project=about.project,
            merge_request=_known_number(about.mr_iid),
            title=one.request or one.title,
            branch=one.branch,
            pipeline_id=_known_number(about.pipeline_id),
            model=one.model,
            began_at=_moment(one.began_at),
            changed_at=_moment(one.changed_at),
            seconds=one.seconds,
            seconds_to_answer=one.answer_s or None,
            cost=ApiCost(
                usd=round(one.usd, 6),
                unpriced_calls=one.unpriced,
                tokens_in=one.tokens,
                tokens_cached=one.cached,
                tokens_out=one.output,
            ),
            failed_jobs=tuple(map(_job, one.jobs)),
        )


_FAILURES_READ = 500
_RUN_FILTERS = ("state", "workflow", "model", "verdict")
_DAYS = ApiParameter(
    "days", "How many UTC days up to today.", {"type": "integer", "minimum": 1, "maximum": MOST_DAYS, "default": PERIOD}
)
_LIMIT = ApiParameter(
    "limit", "Items of a page.", {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": ITEMS}
)
_CURSOR = ApiParameter("cursor", "`next` of the page before.")
_PROJECT = ApiParameter("project", "Path of a project, as GROUP/PROJECT; upper and lower case are the same.")
_THE_PROJECT = replace(_PROJECT, required=True)
_ID = ApiParameter("id", "Id of a session.", {"type": "string"}, required=True, place="path")
OPERATIONS = (
    ApiOperation(
        "/overview", "Failures by day and cause, time to answer, cost", ApiOverview, JsonApi.overview, (_DAYS, _PROJECT)
    ),
    ApiOperation("/projects", "Projects and the other values to filter by", ApiProjects, JsonApi.projects),
    ApiOperation(
        "/runs",
        "Sessions, the last changed first",
        ApiRunPage,
        JsonApi.runs,
        (
            _PROJECT,
            ApiParameter("text", "Words that were said, or that stand in a title, a job or a branch."),
            ApiParameter("state", "Why the last run ended, or `unfinished` or `empty`."),
            ApiParameter("workflow", "Name of a workflow."),
            ApiParameter("model", "Name of a model."),
            ApiParameter(
                "verdict", "Who caused the failure.", {"type": "string", "enum": [one.value for one in FailureOrigin]}
            ),
            _LIMIT,
            _CURSOR,
        ),
    ),
    ApiOperation(
        "/runs/{id}",
        "A session with its answer as it was posted",
        ApiAnsweredRun,
        JsonApi.run,
        (_ID,),
        may_be_missing=True,
        reads_journal=True,
    ),
    ApiOperation(
        "/runs/{id}/entries",
        "The entries of a session's journal, in their order",
        ApiEntryPage,
        JsonApi.entries,
        (
            _ID,
            ApiParameter(
                "chars",
                "Characters of each text; the middle of a longer one is left out.",
                {"type": "integer", "minimum": 1, "maximum": MOST_CHARS, "default": ENTRY_SHOWN_CHARS},
            ),
            _LIMIT,
            _CURSOR,
        ),
        may_be_missing=True,
        reads_journal=True,
    ),
    ApiOperation(
        "/pipelines",
        "Pipelines with their jobs, newest first",
        ApiPipelinePage,
        JsonApi.pipelines,
        (
            _THE_PROJECT,
            ApiParameter(
                "of",
                "Pipelines of merge requests, or of their target branches.",
                {"type": "string", "enum": ["merge_requests", "branches"], "default": "merge_requests"},
            ),
            _LIMIT,
            _CURSOR,
        ),
    ),
    ApiOperation(
        "/failures",
        "Known failures, last seen first",
        ApiFailurePage,
        JsonApi.failures,
        (_THE_PROJECT, _LIMIT, _CURSOR),
    ),
    ApiOperation(
        "/failure",
        "A known failure with its history",
        ApiFailureHistory,
        JsonApi.failure,
        (_THE_PROJECT, ApiParameter("fingerprint", "One of its fingerprints.", required=True)),
        may_be_missing=True,
    ),
    ApiOperation("/costs", "Cost by day, project, workflow and model, and budgets", ApiCosts, JsonApi.costs, (_DAYS,)),
    ApiOperation("/quality", "Thumbs on results of the last 90 days", ApiQuality, JsonApi.quality),
)


def openapi_document(version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of all operations."""
    answers = [one.answer for one in OPERATIONS]
    schemas, components = msgspec.json.schema_components(
        [*answers, ApiProblem], ref_template="#/components/schemas/{name}"
    )
    problem = schemas[-1]
    described = {
        API_PATH + one.path: {"get": _describe_operation(one, schema, problem)}
        for one, schema in zip(OPERATIONS, schemas, strict=False)
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hummingbird",
            "version": version,
            "description": "What the dashboard shows, read-only. Texts come from logs and from people: escape them.",
        },
        "paths": described,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Not needed on 127.0.0.1"}
            },
        },
        "security": [{"token": []}, {}],
    }


def _describe_operation(one: ApiOperation, schema: Any, problem: Any) -> dict[str, Any]:
    failures = {"400": "A parameter is missing or not allowed", "401": "The token is missing or wrong"}
    failures |= {"403": "Closed from here"} | ({"404": "There is no such thing"} if one.may_be_missing else {})
    failures |= {"429": "Too many wrong tokens", "503": "Cannot be answered now"}
    return {
        "operationId": one.handler.__name__,
        "summary": one.summary,
        "parameters": [
            {
                "name": each.name,
                "in": each.place,
                "description": each.description,
                "required": each.required,
                "schema": dict(each.schema),
            }
            for each in one.parameters
        ],
        "responses": {
            "200": {"description": one.summary, "content": {"application/json": {"schema": schema}}},
            **{
                code: {"description": words, "content": {"application/json": {"schema": problem}}}
                for code, words in failures.items()
            },
        },
    }


def json_response(content: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(content)
    return Response(body, code, with_security_headers({**_JSON_HEADERS, **(headers or {})}))


def problem_response(code: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as the API words it."""
    problem = ApiProblem(error=ApiFault(status=code, message=replace_surrogates(message)))
    return json_response(problem, code, headers)


def _begin_of_period(days: int) -> float:
    first = datetime.now(UTC).date() - timedelta(days=days - 1)
    return datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()


def _session_id(asked: Mapping[str, Any]) -> str:
    session_id = str(asked["id"])
    if not session_id or not is_session_id(session_id):
        raise UsageError("This is not a valid session id.")
    return session_id


def _numbers(entries: Sequence[JournalEntry], start: int, limit: int) -> range:
    return range(start + 1, min(start + limit, len(entries)) + 1)


def _write_cursor(*parts: float | str) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _read_cursor(cursor: str, *kinds: type) -> Sequence[Any] | None:
    """Return what `_write_cursor` was given, None for no cursor. Raises BadApiRequest for anything else."""
    if not cursor:
        return None
    try:
        parts = decode_json(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except ValueError:  # of Base64, or of JSON
        parts = None
    if not isinstance(parts, list) or [type(one) for one in parts] != list(kinds):
        raise BadApiRequest("The parameter cursor is not one that a page before has given.")
    if any(isinstance(one, int | float) and not 0 <= one < _LARGEST for one in parts):
        raise BadApiRequest("The parameter cursor is not one that a page before has given.")
    return parts


def _moment(at: float) -> str | None:
    said = iso_time(at)
    return said if said[:1].isdigit() else None


def _known_number(number: int) -> int | None:
    return number if 0 < number < _LARGEST else None


def _day_of(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _times(one: AnswerTimes) -> ApiAnswerTimes:
    return ApiAnswerTimes(day=_day_of(one.day), answers=one.answers, median_seconds=one.p50_s, p90_seconds=one.p90_s)


def _origin_days(counts: Sequence[OriginCount]) -> tuple[ApiOriginDay, ...]:
    found: dict[tuple[date, str], tuple[int, int]] = {}
    for one in counts:
        pipelines, jobs = found.get((one.day, one.origin), (0, 0))
        found[one.day, one.origin] = (pipelines + one.pipelines, jobs + one.jobs)
    return tuple(
        ApiOriginDay(day=day.isoformat(), origin=origin, pipelines=pipelines, jobs=jobs)
        for (day, origin), (pipelines, jobs) in sorted(found.items())
    )


def _cost(one: SpendingGroup) -> ApiCost:
    return ApiCost(
        usd=round(one.usd, 6),
        unpriced_calls=one.unpriced,
        tokens_in=one.tokens,
        tokens_cached=one.cached,
        tokens_out=one.output,
    )


def _spending(one: SpendingGroup) -> ApiSpending:
    return ApiSpending(name=one.name, runs=one.sessions, cost=_cost(one))


def _job(one: FailedJob) -> ApiJob:
    return ApiJob(
        name=one.name,
        job_id=_known_number(one.job_id),
        origin=one.origin or None,
        fingerprint=one.fingerprint or None,
        title=one.title,
    )


def _pipeline(row: SeenPipeline) -> ApiPipeline:
    one, judged = row.pipeline, {job.name: job for job in row.judged}
    jobs = []
    for job in one.jobs:
        found = judged.get(job.name) if job.status == "failed" else None
        jobs.append(
            ApiPipelineJob(
                name=job.name,
                job_id=_known_number(job.id),
                status=job.status,
                retried=job.retried,
                origin=found.origin or None if found else None,
                fingerprint=found.fingerprint or None if found else None,
            )
        )
    return ApiPipeline(
        pipeline_id=one.pipeline_id,
        merge_request=_known_number(one.mr_iid),
        title=row.request,
        branch=one.branch,
        sha=one.sha,
        seen_at=_moment(row.seen_at),
        run_id=row.session_id or None,
        jobs=tuple(jobs),
    )


def _failure(group: KnownFailureGroup) -> ApiFailure:
    newest = group.newest
    return ApiFailure(
        fingerprints=group.fingerprints,
        title=newest.title,
        class_=newest.class_,
        kind=newest.kind,
        excerpt=newest.excerpt,
        jobs=group.count,
        merge_requests=group.merge_requests_total,
        newest_merge_requests=group.merge_requests,
        branches=group.branches,
        notes=group.links,
        explained_by=group.explanation.link if group.explanation else None,
        first_seen=_moment(group.first_seen),
        last_seen=_moment(newest.last_seen),
    )

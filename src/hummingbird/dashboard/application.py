"""The dashboard's routes and request handlers, served beside the webhook endpoint.

DashboardAccess decides who may look; DashboardQueries provides the data; PageRenderer makes the HTML.
"""

import asyncio
import logging
import math
import secrets
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qs, quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from hummingbird import __version__
from hummingbird.core.errors import HummingbirdError, UsageError
from hummingbird.core.journal import JournalEntry, dump_entry
from hummingbird.core.projections import render_transcript
from hummingbird.core.protocols.run_figures import RunQuery
from hummingbird.core.sessions import SessionSummary, find_subject, is_session_id, summarise_session
from hummingbird.core.votes import VOTES_KEPT_S
from hummingbird.dashboard.access import COOKIE_NAME, AccessRefusal, DashboardAccess, Visitor
from hummingbird.dashboard.api import (
    API_PATH,
    OPERATIONS,
    ApiOperation,
    BadApiRequest,
    JsonApi,
    json_response,
    openapi_document,
    problem_response,
)
from hummingbird.dashboard.live_updates import LiveUpdates
from hummingbird.dashboard.queries import (
    ANSWERS_HELD,
    FAILURE_RUNS_SHOWN,
    FAILURES_SHOWN,
    FORM_BYTES,
    LIVE_VIEWERS,
    MESSAGE_CHARS,
    NEWEST_SHOWN,
    PAGE_S,
    PAGES_AT_ONCE,
    PAGES_OPEN,
    PERIOD,
    PERIODS,
    PIPELINES_SHOWN,
    QUERY_CHARS,
    ROWS_AT_ONCE,
    RUNS_SHOWN,
    SEARCH_SHOWN,
    TREND_DAYS,
    VISIT_S,
    DashboardQueries,
)
from hummingbird.dashboard.rendering import pair_calls
from hummingbird.dashboard.responses import (
    HTML_HEADERS,
    PLAIN_HEADERS,
    ConnectionLimit,
    PieceStreamResponse,
    busy_response,
    event_stream_response,
    html_response,
    slice_text,
    static_response,
    text_response,
    with_security_headers,
)
from hummingbird.dashboard.run_pages import RunPages, find_failure_group
from hummingbird.dashboard.views import PageRenderer, SessionAnswer

ValueT = TypeVar("ValueT")


class SingleFlightCache(Generic[ValueT]):
    """A cache that computes each value once, while all who ask for it wait together.

    Keeps the `most` recently used values. Must be used from one event loop.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, asyncio.Future[ValueT]] = OrderedDict()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[ValueT]]) -> ValueT:
        """Return the value of the key, and compute it with `make` if it is not there.

        Cancelling one caller does not cancel the others. A failure reaches all who wait and is not cached.
        """
        making = self._kept.get(key)
        if making is None:
            making = self._kept[key] = asyncio.ensure_future(make())
            making.add_done_callback(lambda done: self._drop_failure(key, done))
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return await asyncio.shield(making)

    def _drop_failure(self, key: Hashable, done: "asyncio.Future[ValueT]") -> None:
        if (done.cancelled() or done.exception() is not None) and self._kept.get(key) is done:
            del self._kept[key]


MadeT = TypeVar("MadeT")
PageHandler = Callable[[Request, Visitor], Awaitable[Response]]
_log = logging.getLogger("hummingbird.web")
RUN_FILTERS = ("project", "text", "state", "workflow", "model", "verdict")
_TOO_MANY_READERS = "Too many pages are being read; load it again in a minute."


class Dashboard:
    """Handles the requests for all pages.

    `exposition` takes an Accept header and returns the Prometheus metrics and their content type.
    """

    def __init__(
        self,
        desk: DashboardQueries,
        access: DashboardAccess,
        live: LiveUpdates,
        pages: PageRenderer,
        exposition: Callable[[str], tuple[bytes, str]] | None = None,
    ) -> None:
        self._desk, self._access, self._live, self._pages = desk, access, live, pages
        self._lists = RunPages(pages)
        self._exposition = exposition
        self._making = asyncio.Semaphore(PAGES_AT_ONCE)
        self._answers = SingleFlightCache[SessionAnswer](ANSWERS_HELD)
        self._readers, self._viewers = ConnectionLimit(PAGES_OPEN), ConnectionLimit(LIVE_VIEWERS)
        self._api = JsonApi(desk, pages, live, self._load_entries, self._find_answer, self._run_in_thread)
        self._api_document = openapi_document(__version__)

    @property
    def routes(self) -> Sequence[Route]:
        seen: dict[str, PageHandler] = {
            "/": self._show_overview,
            "/runs": self._show_runs,
            "/search": self._show_search,
            "/pipelines": self._show_pipelines,
            "/failures": self._show_failures,
            "/failure": self._show_failure,
            "/quality": self._show_quality,
            "/costs": self._show_costs,
            "/sessions/{id}": self._show_session,
            "/sessions/{id}/entries/{number}": self._show_entry,
            "/sessions/{id}/transcript": self._show_transcript,
            "/sessions/{id}/transcript.md": self._send_transcript,
            "/sessions/{id}/files": self._show_files,
            "/sessions/{id}/file": self._download_file,
            "/live/runs": self._stream_runs,
            "/live/sessions/{id}": self._stream_session,
            "/metrics": self._show_metrics,
        }
        sent: dict[str, PageHandler] = {"/sessions/{id}/messages": self._post_message, "/logout": self._log_out}
        return [
            *(Route(path, partial(self._guard, handler), methods=["GET"]) for path, handler in seen.items()),
            *(Route(path, partial(self._guard, handler), methods=["POST"]) for path, handler in sent.items()),
            Route("/login", self._log_in, methods=["POST"]),
            *(
                Route(API_PATH + one.path, partial(self._answer_api, one), methods=["GET"], name=one.handler.__name__)
                for one in OPERATIONS
            ),
            Route(f"{API_PATH}/openapi.json", partial(self._answer_api, None), methods=["GET"], name="openapi"),
            Route(f"{API_PATH}/{{path:path}}", partial(self._answer_api, None), methods=["GET"], name="unknown"),
            Route("/static/{name}", static_response, methods=["GET"]),
            Route("/{path:path}", partial(self._guard, self._show_nothing), methods=["GET"]),
        ]

    async def _guard(self, handler: PageHandler, request: Request) -> Response:
        judged = self._access.check_request(request.headers, request.cookies, request.scope.get("http_version", ""))
        if isinstance(judged, AccessRefusal):
            return self._refusal_response(request, judged)
        try:
            return await handler(request, judged)
        except UsageError as fault:
            return self._error_page(404, "There is nothing here", str(fault), judged)
        except HummingbirdError as error:
            _log.warning("Could not render a page: %s", error)
            return self._error_page(503, "This does not work now", str(error), judged)

    async def _answer_api(self, operation: ApiOperation | None, request: Request) -> Response:
        """Answer an operation of the API; without one, send its description or say that there is none."""
        judged = self._access.check_request(request.headers, request.cookies, request.scope.get("http_version", ""))
        if isinstance(judged, AccessRefusal):
            if not judged.may_enter:
                return problem_response(403, judged.sentence)
            if judged.too_many_attempts:
                return problem_response(429, judged.sentence, {"Retry-After": "60"})
            return problem_response(401, judged.sentence, {"WWW-Authenticate": "Bearer"})
        if operation is None:
            if request.scope["route"].name == "openapi":
                return json_response(self._api_document)
            return problem_response(404, f"There is no such operation; {API_PATH}/openapi.json lists them.")
        seat = self._readers.acquire() if operation.reads_journal else ExitStack()
        if seat is None:
            return problem_response(503, _TOO_MANY_READERS, {"Retry-After": "30"})
        with seat:
            try:
                return await self._api.respond(operation, request, seat)
            except BadApiRequest as fault:
                return problem_response(400, self._pages.mask(str(fault)))
            except UsageError as fault:
                return problem_response(404, self._pages.mask(str(fault)))
            except HummingbirdError as error:
                _log.warning("Could not answer an API request: %s", error)
                return problem_response(503, self._pages.mask(str(error)))

    def _refusal_response(self, request: Request, refused: AccessRefusal) -> Response:
        wants_page = _wants_page(request)
        if not refused.may_enter:
            return self._error_page(403, "Not from here", refused.sentence, None)
        if refused.too_many_attempts:
            return text_response(429, refused.sentence, {"Retry-After": "60"})
        if not wants_page:
            return text_response(401, refused.sentence, {"WWW-Authenticate": "Bearer"})
        back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return html_response(
            self._pages.render("login.html", title="Enter", back=back, wrong="") + self._pages.render("end.html"), 401
        )

    def _error_page(self, code: int, title: str, sentence: str, visitor: Visitor | None) -> Response:
        return self._page_response(
            self._pages.render("trouble.html", title=title, sentence=sentence, visitor=visitor), visitor, code
        )

    def _page_response(self, content: str, visitor: Visitor | None, code: int = 200) -> Response:
        return html_response(content + self._pages.render("end.html", visitor=visitor), code)

    # Pages

    async def _show_overview(self, request: Request, visitor: Visitor) -> Response:
        project, period = _read_text(request, "project"), _read_period(request)
        today = datetime.now(UTC).date()
        choices = await self._desk.run_choices()  # refreshes the index, so the others find it fresh
        figures, newest, queue = await asyncio.gather(
            self._desk.run_figures(_period_start(today, period), project),
            self._desk.find_runs(RunQuery(project=project), NEWEST_SHOWN),
            self._desk.queue_state(),
        )
        made = self._lists.overview_page(
            figures,
            choices,
            newest,
            self._live.runs,
            queue,
            project=project,
            period=period,
            today=today,
            visitor=visitor,
        )
        return self._page_response(made, visitor)

    async def _show_runs(self, request: Request, visitor: Visitor) -> Response:
        asked = RunQuery(
            **{name: _read_text(request, name) for name in RUN_FILTERS},
            before=_read_before(request.query_params.get("before", "")),
        )
        choices = await self._desk.run_choices()
        sessions = await self._desk.find_runs(asked, RUNS_SHOWN + 1)
        hits = await self._desk.search(asked.text, SEARCH_SHOWN) if asked.text else ()
        older = None
        if len(sessions) > RUNS_SHOWN:
            last = sessions[RUNS_SHOWN - 1]
            older = replace(asked, before=(last.changed_at, last.session_id))
        made = self._lists.runs_page(sessions, self._live.runs, asked, choices, hits, older=older, visitor=visitor)
        return self._page_response(made, visitor)

    async def _show_search(self, request: Request, visitor: Visitor) -> Response:
        """Redirect to the list of runs, which has the search; people may have bookmarked this address."""
        words = request.query_params.get("q", "")[:QUERY_CHARS]
        return RedirectResponse(f"/runs?{urlencode({'text': words})}", 307, headers=with_security_headers({}))

    async def _show_pipelines(self, request: Request, visitor: Visitor) -> Response:
        projects = (await self._desk.run_choices()).project
        project = _read_text(request, "project") or next(iter(projects), "")
        of_branches = request.query_params.get("of") == "branches"
        seen = await self._desk.list_pipelines(project, PIPELINES_SHOWN, of_branches=of_branches) if project else ()
        made = await self._run_in_thread(
            self._lists.pipelines_page, projects, project, seen, of_branches=of_branches, visitor=visitor
        )
        return self._page_response(made, visitor)

    async def _show_costs(self, request: Request, visitor: Visitor) -> Response:
        today, period = datetime.now(UTC).date(), _read_period(request)
        tables = await self._desk.spending_tables(_period_start(today, period))
        budgets = await self._desk.budget_uses([one.name for one in tables.projects if one.name])
        made = self._lists.costs_page(tables, budgets, period=period, today=today, visitor=visitor)
        return self._page_response(made, visitor)

    async def _show_quality(self, request: Request, visitor: Visitor) -> Response:
        now = datetime.now(UTC)
        rated = await self._desk.load_ratings(now.timestamp() - VOTES_KEPT_S)
        return self._page_response(
            await self._run_in_thread(self._pages.quality_page, rated, now.date(), visitor=visitor), visitor
        )

    async def _show_failures(self, request: Request, visitor: Visitor) -> Response:
        today = datetime.now(UTC).date()
        since = today - timedelta(days=TREND_DAYS - 1)
        projects = await self._desk.list_projects()
        project = request.query_params.get("project", "")[:300] or next(iter(projects), "")
        failures = await self._desk.list_failures(project, FAILURES_SHOWN) if project else ()
        trend = await self._desk.failure_trend(project, since) if project else ()
        trends = (
            await self._desk.failure_trends(project, since, [one.fingerprint for one in failures]) if failures else {}
        )
        made = await self._run_in_thread(
            self._lists.failures_page, projects, project, failures, trends, trend, today=today, visitor=visitor
        )
        return self._page_response(made, visitor)

    async def _show_failure(self, request: Request, visitor: Visitor) -> Response:
        project, fingerprint = _read_text(request, "project"), _read_text(request, "fingerprint")
        group = await find_failure_group(self._desk, project, fingerprint)
        today = datetime.now(UTC).date()
        since = today - timedelta(days=TREND_DAYS - 1)
        trends = await self._desk.failure_trends(project, since, group.fingerprints)
        runs = await self._desk.failure_runs(project, group.fingerprints, FAILURE_RUNS_SHOWN)
        made = self._lists.failure_page(project, group, trends, runs, today, visitor=visitor)
        return self._page_response(made, visitor)

    async def _show_session(self, request: Request, visitor: Visitor) -> Response:
        """Stream the page while it is rendered, so that the first rows appear early."""
        session_id = _session_id_from(request)
        if (seat := self._readers.acquire()) is None:
            return busy_response(_TOO_MANY_READERS)
        with seat:
            known = await self._desk.find_summary(session_id) or summarise_session(
                await self._load_entries(session_id), session_id
            )
            told = (
                "Your message is queued; the run starts when it is its turn." if "sent" in request.query_params else ""
            )
            written = self._stream_session_page(session_id, known, visitor, told or self._live.message_for(session_id))
            return PieceStreamResponse(written, HTML_HEADERS, PAGE_S, seat.pop_all())

    async def _stream_session_page(
        self, session_id: str, known: SessionSummary, visitor: Visitor, told: str
    ) -> AsyncIterator[bytes]:
        try:
            yield self._pages.session_page_start(known, visitor=visitor).encode("utf-8", "replace")
            async with aclosing(self._session_pieces(session_id, visitor, told)) as pieces:
                async for piece in pieces:
                    yield piece.encode("utf-8", "replace")
        except HummingbirdError as error:
            yield self._pages.render("sentence.html", sentence=str(error)).encode("utf-8", "replace")
        yield self._pages.render("end.html", visitor=visitor).encode()

    async def _find_answer(self, session_id: str, entries: Sequence[JournalEntry]) -> SessionAnswer:
        return await self._answers.get(
            _answer_key(session_id, entries), lambda: self._run_in_thread(self._pages.build_answer, entries)
        )

    async def _run_in_thread(self, make: Callable[..., MadeT], *given: Any, **more: Any) -> MadeT:
        """Run `make` in a thread, so that webhooks do not wait for it; at most PAGES_AT_ONCE run in parallel."""
        async with self._making:
            return await asyncio.to_thread(make, *given, **more)

    async def _session_pieces(self, session_id: str, visitor: Visitor, told: str) -> AsyncGenerator[str, None]:
        entries = await self._load_entries(session_id)
        running = self._live.find_run(session_id) is not None
        answer = await self._find_answer(session_id, entries)
        yield await self._run_in_thread(self._pages.session_page_head, session_id, entries, answer, running=running)
        spans = await self._run_in_thread(pair_calls, entries)
        for begin in range(0, len(entries), ROWS_AT_ONCE):
            some = entries[begin : begin + ROWS_AT_ONCE]
            yield await self._run_in_thread(self._pages.entry_fragments, some, begin, session_id, spans)
        begun = find_subject(entries)
        may = bool(begun.project and begun.workflow)
        more = {"may_continue": may, "most": MESSAGE_CHARS, "told": told, "once": secrets.token_hex(16)}
        yield self._pages.session_page_end(session_id, visitor=visitor, **more)

    async def _show_entry(self, request: Request, visitor: Visitor) -> Response:
        session_id, number = _session_id_from(request), parse_number(str(request.path_params["number"]))
        if (seat := self._readers.acquire()) is None:
            return busy_response(_TOO_MANY_READERS)
        with seat:
            entries = await self._load_entries(session_id)
            if not 0 < number <= len(entries):
                raise UsageError(f"The session has {len(entries)} entries, and no such one.")
            made = await self._run_in_thread(
                self._pages.entry_page, entries[number - 1], number, session_id, visitor=visitor
            )
            return PieceStreamResponse(
                slice_text(made, self._pages.render("end.html", visitor=visitor)), HTML_HEADERS, PAGE_S, seat.pop_all()
            )

    async def _show_transcript(self, request: Request, visitor: Visitor) -> Response:
        session_id = _session_id_from(request)
        if (seat := self._readers.acquire()) is None:
            return busy_response(_TOO_MANY_READERS)
        with seat:
            entries = await self._load_entries(session_id)
            made = await self._run_in_thread(self._pages.transcript_page, entries, session_id, visitor=visitor)
            return PieceStreamResponse(
                slice_text(made, self._pages.render("end.html", visitor=visitor)), HTML_HEADERS, PAGE_S, seat.pop_all()
            )

    async def _send_transcript(self, request: Request, visitor: Visitor) -> Response:
        session_id = _session_id_from(request)
        if (seat := self._readers.acquire()) is None:
            return busy_response(_TOO_MANY_READERS)
        with seat:
            entries = await self._load_entries(session_id)
            made = await self._run_in_thread(lambda: self._pages.mask(render_transcript(entries)))
            return PieceStreamResponse(slice_text(made), PLAIN_HEADERS, PAGE_S, seat.pop_all())

    async def _show_files(self, request: Request, visitor: Visitor) -> Response:
        session_id = _session_id_from(request)
        return self._page_response(
            self._pages.files_page(session_id, await self._desk.list_files(session_id), visitor=visitor), visitor
        )

    async def _download_file(self, request: Request, visitor: Visitor) -> Response:
        """Send the file as a download: a browser must not display what an outsider wrote."""
        session_id, path = _session_id_from(request), request.query_params.get("path", "")
        chunks = await self._desk.open_file(session_id, path)
        name = quote(path.rsplit("/", 1)[-1][:200] or "file", safe="")
        kept = {
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        }
        return PieceStreamResponse(chunks, kept, PAGE_S)

    async def _load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        async with self._making:
            entries = await self._desk.load_entries(session_id)
        if not entries:
            raise UsageError(f"There is no session {session_id}; it may have been removed.")
        return entries

    async def _show_metrics(self, request: Request, visitor: Visitor) -> Response:
        if self._exposition is None:
            raise UsageError("No metrics are kept here.")
        content, kind = self._exposition(request.headers.get("accept", ""))
        return Response(content, headers=with_security_headers({"Content-Type": kind}))

    async def _show_nothing(self, request: Request, visitor: Visitor) -> Response:
        if not _wants_page(request):
            raise HTTPException(404)  # programs get it as the service words it
        raise UsageError("No page has this address. The list above leads to all of them.")

    # Live updates

    async def _stream_runs(self, request: Request, visitor: Visitor) -> Response:
        return self._event_stream(self._live.stream_overview(lambda: self._pages.running_table(self._live.runs)))

    async def _stream_session(self, request: Request, visitor: Visitor) -> Response:
        after = parse_number(request.headers.get("last-event-id") or request.query_params.get("after", "0"))
        return self._event_stream(self._live.stream_session(_session_id_from(request), after))

    def _event_stream(self, pieces: AsyncIterator[bytes]) -> Response:
        if self._live.closed or (seat := self._viewers.acquire()) is None:
            return busy_response("Too many live pages are open; load the page again later.")
        return event_stream_response(pieces, seat)

    # Forms

    async def _post_message(self, request: Request, visitor: Visitor) -> Response:
        session_id, form = _session_id_from(request), await _read_form(request)
        if form is None or not self._access.is_own_form(visitor, form.get("proof", ""), request.headers):
            return self._error_page(
                403, "Not sent", "The form is out of date: load the page again and send it.", visitor
            )
        message = form.get("message", "").replace("\r\n", "\n").strip()[:MESSAGE_CHARS]
        if not message:
            return self._error_page(400, "Not sent", "The message is empty: say something.", visitor)
        await self._desk.continue_session(session_id, message, form.get("once", ""))
        return RedirectResponse(f"/sessions/{session_id}?sent#continue", 303, headers=with_security_headers({}))

    async def _log_out(self, request: Request, visitor: Visitor) -> Response:
        form = await _read_form(request)
        if form is None or not self._access.is_own_form(visitor, form.get("proof", ""), request.headers):
            return self._error_page(403, "Not logged out", "The form is out of date: load the page again.", visitor)
        gone = RedirectResponse("/", 303, headers=with_security_headers({}))
        gone.delete_cookie(COOKIE_NAME)
        return gone

    async def _log_in(self, request: Request) -> Response:
        form = await _read_form(request) or {}
        back = form.get("back", "/")
        if not back.startswith("/") or back.startswith("//") or "\\" in back:
            back = "/"
        cookie = self._access.log_in(form.get("token", ""))
        if cookie is None:
            wrong = (
                "Too many wrong tokens; wait a minute." if self._access.too_many_attempts else "That is not the token."
            )
            content = self._pages.render("login.html", title="Enter", back=back, wrong=wrong) + self._pages.render(
                "end.html"
            )
            return html_response(content, 429 if self._access.too_many_attempts else 401)
        entered = RedirectResponse(back, 303, headers=with_security_headers({}))
        secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
        entered.set_cookie(COOKIE_NAME, cookie, max_age=VISIT_S, httponly=True, samesite="lax", secure=secure)
        return entered


def _wants_page(request: Request) -> bool:
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


def _read_text(request: Request, name: str) -> str:
    return request.query_params.get(name, "")[:QUERY_CHARS].strip()


def _read_period(request: Request) -> int:
    days = parse_number(request.query_params.get("days", ""))
    return days if days in PERIODS else PERIOD


def _period_start(today: date, days: int) -> float:
    """Return the start of the period of that many UTC days that ends today."""
    first = today - timedelta(days=days - 1)
    return datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()


def _read_before(said: str) -> tuple[float, str] | None:
    """Parse the position at which a list continues; None for anything that we did not write."""
    at, _, session_id = said.partition(" ")
    try:
        return (float(at), session_id) if math.isfinite(float(at)) and is_session_id(session_id) else None
    except ValueError:
        return None


def parse_number(said: str) -> int:
    """Parse an untrusted number; return 0 for anything that is not a decimal number of at most nine digits."""
    return int(said) if said.isdecimal() and len(said) < 10 else 0


def _answer_key(session_id: str, entries: Sequence[JournalEntry]) -> Hashable:
    """Return a key for the journal's content: it only grows, so length, first and last entry identify it."""
    return session_id, len(entries), dump_entry(entries[0]), dump_entry(entries[-1])


def _session_id_from(request: Request) -> str:
    """Return the session id of the path; raise UsageError for an invalid one, since it becomes a file name."""
    session_id = str(request.path_params["id"])
    if not is_session_id(session_id) or not session_id:
        raise UsageError("This is not a valid session id.")
    return session_id


async def _read_form(request: Request) -> dict[str, str] | None:
    """Return the fields of the form; None when it cannot be parsed or is too large."""
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > FORM_BYTES:
                return None
        fields = parse_qs(body.decode(), max_num_fields=10, keep_blank_values=True)
    except (ClientDisconnect, ValueError):
        return None
    return {name: values[0] for name, values in fields.items()}

"""The dashboard's pages (O4), as one application beside the door for webhooks. Who may look, access says; what there is
to see, the desk."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from hummingbird.domain.errors import HummingbirdError, UsageFault
from hummingbird.domain.journal import Entry, dump
from hummingbird.domain.sessions import Summary, about, is_session_id, summary
from hummingbird.domain.transcript import transcript
from hummingbird.domain.vote_limits import VOTES_KEPT_S
from hummingbird.domain.web_limits import (
    ANSWERS_HELD,
    COST_DAYS,
    FAILURES_SHOWN,
    FORM_BYTES,
    LIVE_VIEWERS,
    MESSAGE_CHARS,
    PAGE_S,
    PAGES_AT_ONCE,
    PAGES_OPEN,
    ROWS_AT_ONCE,
    RUNS_SHOWN,
    SEARCH_SHOWN,
    TREND_DAYS,
    VISIT_S,
)
from hummingbird.web.access import COOKIE, Access, Refused, Visitor
from hummingbird.web.asked import Desk
from hummingbird.web.live import Live
from hummingbird.web.once import Once
from hummingbird.web.pages import Answer, Pages
from hummingbird.web.responses import HTML, PLAIN, PiecesResponse, busy, html, news, part, slices, static, text
from hummingbird.web.seats import Seats

Made = TypeVar("Made")
Handler = Callable[[Request, Visitor], Awaitable[Response]]
_log = logging.getLogger("hummingbird.web")
_MANY_READ = "Too many pages are being read; load it again in a minute."


class Dashboard:
    """`exposition` gives metrics as Prometheus reads them: content and its type, for what it accepts."""

    def __init__(
        self,
        desk: Desk,
        access: Access,
        live: Live,
        pages: Pages,
        exposition: Callable[[str], tuple[bytes, str]] | None = None,
    ) -> None:
        self._desk, self._access, self._live, self._pages = desk, access, live, pages
        self._exposition = exposition
        self._making = asyncio.Semaphore(PAGES_AT_ONCE)
        self._answers = Once[Answer](ANSWERS_HELD)
        self._readers, self._viewers = Seats(PAGES_OPEN), Seats(LIVE_VIEWERS)

    @property
    def routes(self) -> Sequence[Route]:
        seen: dict[str, Handler] = {
            "/": self._runs,
            "/search": self._search,
            "/failures": self._failures,
            "/quality": self._quality,
            "/costs": self._costs,
            "/sessions/{id}": self._session,
            "/sessions/{id}/entries/{number}": self._entry,
            "/sessions/{id}/transcript": self._transcript,
            "/sessions/{id}/files": self._files,
            "/sessions/{id}/file": self._file,
            "/live/runs": self._live_runs,
            "/live/sessions/{id}": self._live_session,
            "/metrics": self._metrics,
        }
        sent: dict[str, Handler] = {"/sessions/{id}/messages": self._message, "/logout": self._leave}
        return [
            *(Route(path, partial(self._guarded, handler), methods=["GET"]) for path, handler in seen.items()),
            *(Route(path, partial(self._guarded, handler), methods=["POST"]) for path, handler in sent.items()),
            Route("/login", self._login, methods=["POST"]),
            Route("/static/{name}", static, methods=["GET"]),
        ]

    async def _guarded(self, handler: Handler, request: Request) -> Response:
        judged = self._access.judged(request.headers, request.cookies, request.scope.get("http_version", ""))
        if isinstance(judged, Refused):
            return self._refused(request, judged)
        try:
            return await handler(request, judged)
        except UsageFault as fault:
            return self._trouble(404, "There is nothing here", str(fault), judged)
        except HummingbirdError as error:
            _log.warning("A page could not be made: %s", error)
            return self._trouble(503, "This does not work now", str(error), judged)

    def _refused(self, request: Request, refused: Refused) -> Response:
        wants_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if not refused.may_enter:
            return self._trouble(403, "Not from here", refused.sentence, None)
        if refused.overrun:
            return text(429, refused.sentence, {"Retry-After": "60"})
        if not wants_page:
            return text(401, refused.sentence, {"WWW-Authenticate": "Bearer"})
        back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return html(
            self._pages.page("login.html", title="Enter", back=back, wrong="") + self._pages.page("end.html"), 401
        )

    def _trouble(self, code: int, title: str, sentence: str, visitor: Visitor | None) -> Response:
        return self._whole(
            self._pages.page("trouble.html", title=title, sentence=sentence, visitor=visitor), visitor, code
        )

    def _whole(self, content: str, visitor: Visitor | None, code: int = 200) -> Response:
        return html(content + self._pages.page("end.html", visitor=visitor), code)

    # What can be seen

    async def _runs(self, request: Request, visitor: Visitor) -> Response:
        asked = {name: request.query_params.get(name, "")[:300].strip() for name in ("project", "text")}
        sessions = await self._desk.listed(RUNS_SHOWN, asked["project"], asked["text"])
        return self._whole(self._pages.runs(sessions, self._live.runs, visitor=visitor, here="/", **asked), visitor)

    async def _search(self, request: Request, visitor: Visitor) -> Response:
        query = request.query_params.get("q", "")[:200].strip()
        hits = await self._desk.search(query, SEARCH_SHOWN) if query else ()
        return self._whole(self._pages.found(hits, query, visitor=visitor), visitor)

    async def _costs(self, request: Request, visitor: Visitor) -> Response:
        today = datetime.now(UTC).date()
        days = await self._desk.costs(today - timedelta(days=COST_DAYS - 1))
        return self._whole(self._pages.costs(days, COST_DAYS, today, visitor=visitor), visitor)

    async def _quality(self, request: Request, visitor: Visitor) -> Response:
        now = datetime.now(UTC)
        rated = await self._desk.rated(now.timestamp() - VOTES_KEPT_S)
        return self._whole(await self._made(self._pages.quality, rated, now.date(), visitor=visitor), visitor)

    async def _failures(self, request: Request, visitor: Visitor) -> Response:
        today = datetime.now(UTC).date()
        since = today - timedelta(days=TREND_DAYS - 1)
        projects = await self._desk.projects()
        project = request.query_params.get("project", "")[:300] or next(iter(projects), "")
        failures = await self._desk.failures(project, FAILURES_SHOWN) if project else ()
        trend = await self._desk.trend(project, since) if project else ()
        trends = await self._desk.trends(project, since, [one.fingerprint for one in failures]) if failures else {}
        each = [(one, trends.get(one.fingerprint, ())) for one in failures]
        made = self._pages.failures(projects, project, each, trend, today, visitor=visitor)
        return self._whole(made, visitor)

    async def _session(self, request: Request, visitor: Visitor) -> Response:
        """Written as it is made: the first rows are seen before the last ones are."""
        session_id = _session_id(request)
        if (seat := self._readers.take()) is None:
            return busy(_MANY_READ)
        with seat:
            known = await self._desk.known(session_id) or summary(await self._entries(session_id), session_id)
            told = "It is queued, and begins when it is its turn." if "sent" in request.query_params else ""
            written = self._written(session_id, known, visitor, told or self._live.said(session_id))
            return PiecesResponse(written, HTML, PAGE_S, seat.pop_all())

    async def _written(self, session_id: str, known: Summary, visitor: Visitor, told: str) -> AsyncIterator[bytes]:
        try:
            yield self._pages.session_begin(known, visitor=visitor).encode("utf-8", "replace")
            async with aclosing(self._rows(session_id, visitor, told)) as pieces:
                async for piece in pieces:
                    yield piece.encode("utf-8", "replace")
        except HummingbirdError as error:
            yield self._pages.page("sentence.html", sentence=str(error)).encode("utf-8", "replace")
        yield self._pages.page("end.html", visitor=visitor).encode()

    async def _made(self, make: Callable[..., Made], *given: Any, **more: Any) -> Made:
        """In a thread, so that webhooks are not kept waiting, and not many at once."""
        async with self._making:
            return await asyncio.to_thread(make, *given, **more)

    async def _rows(self, session_id: str, visitor: Visitor, told: str) -> AsyncGenerator[str, None]:
        entries = await self._entries(session_id)
        running = self._live.run_of(session_id) is not None
        answer = await self._answers.of(_identity(session_id, entries), lambda: self._made(self._pages.answer, entries))
        yield await self._made(self._pages.session, session_id, entries, answer, running=running)
        for begin in range(0, len(entries), ROWS_AT_ONCE):
            yield await self._made(self._pages.fragments, entries[begin : begin + ROWS_AT_ONCE], begin, session_id)
        begun = about(entries)
        may = bool(begun.project and begun.workflow)
        more = {"may_go_on": may, "most": MESSAGE_CHARS, "told": told, "once": secrets.token_hex(16)}
        yield self._pages.session_end(session_id, visitor=visitor, **more)

    async def _entry(self, request: Request, visitor: Visitor) -> Response:
        session_id, number = _session_id(request), whole(str(request.path_params["number"]))
        if (seat := self._readers.take()) is None:
            return busy(_MANY_READ)
        with seat:
            entries = await self._entries(session_id)
            if not 0 < number <= len(entries):
                raise UsageFault(f"The session has {len(entries)} entries, and no such one.")
            made = await self._made(self._pages.text, entries[number - 1], number, session_id, visitor=visitor)
            return PiecesResponse(
                slices(made, self._pages.page("end.html", visitor=visitor)), HTML, PAGE_S, seat.pop_all()
            )

    async def _transcript(self, request: Request, visitor: Visitor) -> Response:
        session_id = _session_id(request)
        if (seat := self._readers.take()) is None:
            return busy(_MANY_READ)
        with seat:
            entries = await self._entries(session_id)
            made = await self._made(lambda: self._pages.mask(transcript(entries)))
            return PiecesResponse(slices(made), PLAIN, PAGE_S, seat.pop_all())

    async def _files(self, request: Request, visitor: Visitor) -> Response:
        session_id = _session_id(request)
        return self._whole(self._pages.files(session_id, await self._desk.files(session_id), visitor=visitor), visitor)

    async def _file(self, request: Request, visitor: Visitor) -> Response:
        """Never shown by a browser: whoever wrote it may want that."""
        session_id, path = _session_id(request), request.query_params.get("path", "")
        chunks = await self._desk.file(session_id, path)
        name = quote(path.rsplit("/", 1)[-1][:200] or "file", safe="")
        kept = {
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        }
        return PiecesResponse(chunks, kept, PAGE_S)

    async def _entries(self, session_id: str) -> Sequence[Entry]:
        async with self._making:
            entries = await self._desk.entries(session_id)
        if not entries:
            raise UsageFault(f"There is no session {session_id}; it may have been removed.")
        return entries

    async def _metrics(self, request: Request, visitor: Visitor) -> Response:
        if self._exposition is None:
            raise UsageFault("No metrics are kept here.")
        content, kind = self._exposition(request.headers.get("accept", ""))
        return Response(content, headers=part({"Content-Type": kind}))

    # What happens now

    async def _live_runs(self, request: Request, visitor: Visitor) -> Response:
        return self._news(self._live.overview(lambda: self._pages.running(self._live.runs)))

    async def _live_session(self, request: Request, visitor: Visitor) -> Response:
        after = whole(request.headers.get("last-event-id") or request.query_params.get("after", "0"))
        return self._news(self._live.session(_session_id(request), after))

    def _news(self, pieces: AsyncIterator[bytes]) -> Response:
        if self._live.closed or (seat := self._viewers.take()) is None:
            return busy("Too many look at live pages; load the page again later.")
        return news(pieces, seat)

    # What can be done

    async def _message(self, request: Request, visitor: Visitor) -> Response:
        session_id, form = _session_id(request), await _form(request)
        if form is None or not self._access.proven(visitor, form.get("proof", ""), request.headers):
            return self._trouble(403, "Not sent", "The form is out of date: load the page again and send it.", visitor)
        message = form.get("message", "").replace("\r\n", "\n").strip()[:MESSAGE_CHARS]
        if not message:
            return self._trouble(400, "Not sent", "The message is empty: say something.", visitor)
        await self._desk.go_on(session_id, message, form.get("once", ""))
        return RedirectResponse(f"/sessions/{session_id}?sent#go-on", 303, headers=part({}))

    async def _leave(self, request: Request, visitor: Visitor) -> Response:
        form = await _form(request)
        if form is None or not self._access.proven(visitor, form.get("proof", ""), request.headers):
            return self._trouble(403, "Not left", "The form is out of date: load the page again.", visitor)
        gone = RedirectResponse("/", 303, headers=part({}))
        gone.delete_cookie(COOKIE)
        return gone

    async def _login(self, request: Request) -> Response:
        form = await _form(request) or {}
        back = form.get("back", "/")
        if not back.startswith("/") or back.startswith("//") or "\\" in back:
            back = "/"
        cookie = self._access.entered(form.get("token", ""))
        if cookie is None:
            wrong = "Too many wrong tokens; wait a minute." if self._access.overrun else "That is not the token."
            content = self._pages.page("login.html", title="Enter", back=back, wrong=wrong) + self._pages.page(
                "end.html"
            )
            return html(content, 429 if self._access.overrun else 401)
        entered = RedirectResponse(back, 303, headers=part({}))
        secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", ""))
        entered.set_cookie(COOKIE, cookie, max_age=VISIT_S, httponly=True, samesite="lax", secure=secure)
        return entered


def whole(said: str) -> int:
    """A number that somebody else wrote; 0 for what is none, or none of ours."""
    return int(said) if said.isdecimal() and len(said) < 10 else 0


def _identity(session_id: str, entries: Sequence[Entry]) -> Hashable:
    """A journal only grows: one that begins and ends alike, and is as long, is the same."""
    return session_id, len(entries), dump(entries[0]), dump(entries[-1])


def _session_id(request: Request) -> str:
    """Raises UsageFault: an id is a file's name and a part of an address."""
    session_id = str(request.path_params["id"])
    if not is_session_id(session_id) or not session_id:
        raise UsageFault("That is no session's id.")
    return session_id


async def _form(request: Request) -> dict[str, str] | None:
    """None for what is none, or too large to be one of ours."""
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

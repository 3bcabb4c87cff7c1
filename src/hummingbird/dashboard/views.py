"""Turns data into the values of the page templates, and renders the templates, which escape every value."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from hummingbird.core.journal import JournalEntry
from hummingbird.core.projections import UsageLedger
from hummingbird.core.protocols.sessions import MATCH_BEGINS, MATCH_ENDS, DailyCost, SearchHit
from hummingbird.core.protocols.storage import FailureDay, KnownFailure, RatedNote, VotableNote
from hummingbird.core.sessions import SessionSubject, SessionSummary, is_session_id, summarise_session
from hummingbird.core.verdicts import ORIGIN_WORDS
from hummingbird.core.votes import (
    VOTES_AGAINST_SHOWN,
    VOTES_FOR_A_FIGURE,
    VOTES_TREND_DAYS,
    ApprovalShare,
    VoteCount,
    approval_share,
)
from hummingbird.dashboard.live_updates import LiveRun
from hummingbird.dashboard.queries import ENTRY_CHARS, RUNS_SHOWN, TREND_DAYS, SandboxList
from hummingbird.dashboard.rendering import (
    answer_to_html,
    find_quoted_lines,
    format_ago,
    format_cost,
    format_datetime,
    format_duration,
    format_percentage,
    format_size,
    iso_time,
    locate_lines,
    make_row,
    printable_lines,
)
from hummingbird.evidence.citations.checker import CheckedAnswer, describe_citations
from hummingbird.evidence.citations.source_record import ResultLocation

_VOTE_BAR_WIDTH, _HALF_HEIGHT = 12, 30  # in SVG user units
_NO_VOTES = VoteCount()


@dataclass(frozen=True, slots=True)
class QualityView:
    """The votes on our results, by workflow, model and day, and the results with thumbs down.

    `gitlab` is its address without a trailing slash. `mask` hides known credentials.
    """

    rated: Sequence[RatedNote]
    today: date
    gitlab: str
    mask: Callable[[str], str]

    @property
    def template_values(self) -> dict[str, Any]:
        return {
            "tables": [
                ("Workflow", self._figures_by(lambda note: note.workflow)),
                ("Model", self._figures_by(lambda note: note.model)),
            ],
            "all": _vote_figure("", self.rated, self.today),
            "against": [self._thumbs_down_view(one) for one in self.rated if one.votes.down][:VOTES_AGAINST_SHOWN],
            "days": VOTES_TREND_DAYS,
            "least": VOTES_FOR_A_FIGURE,
        }

    def _figures_by(self, name_of: Callable[[VotableNote], str]) -> list[dict[str, Any]]:
        """Return one figure per group, the group with most votes first."""
        groups: dict[str, list[RatedNote]] = {}
        for one in self.rated:
            groups.setdefault(name_of(one.note), []).append(one)
        made = [_vote_figure(self._display_name(name), group, self.today) for name, group in groups.items()]
        return sorted(made, key=lambda one: (-one["votes"], -one["notes"], one["name"]))

    def _display_name(self, name: str) -> str:
        return printable_lines(self.mask(name))

    def _thumbs_down_view(self, one: RatedNote) -> dict[str, Any]:
        note = one.note
        request = f"{self.gitlab}/{quote(note.project)}/-/merge_requests/{note.iid}"
        return {
            "request": self._display_name(f"{note.project}!{note.iid}"),
            "note": f"{request}#note_{note.note_id}",
            "session": note.session_id if is_session_id(note.session_id) else "",
            "workflow": self._display_name(note.workflow),
            "model": self._display_name(note.model),
            "up": one.votes.up,
            "down": one.votes.down,
            "posted": format_datetime(note.posted_at),
            "machine_posted": iso_time(note.posted_at),
        }


def _vote_figure(name: str, rated: Sequence[RatedNote], today: date) -> dict[str, Any]:
    votes = total_votes(one.votes for one in rated)
    found = approval_share(votes)
    return {
        "name": name or "–",
        "notes": len(rated),
        "voted": sum(one.votes.all > 0 for one in rated),
        "votes": votes.all,
        "up": votes.up,
        "down": votes.down,
        "share": f"{found.value:.0%}" if found else "",
        "interval": _interval_text(found),
        "trend": vote_trend_chart(rated, today),
    }


def total_votes(votes: Iterable[VoteCount]) -> VoteCount:
    return sum(votes, start=_NO_VOTES)


def _interval_text(found: ApprovalShare | None) -> str:
    return f"{found.low:.0%} – {found.high:.0%}" if found else ""


def vote_trend_chart(rated: Iterable[RatedNote], today: date) -> Markup:
    """Draw the votes by the day on which their note was posted: up above the line, down below it."""
    days = _votes_by_day(rated)
    each = [days.get(today - timedelta(days=back), _NO_VOTES) for back in reversed(range(VOTES_TREND_DAYS))]
    most = max((max(one.up, one.down) for one in each), default=0) or 1
    told = f"{total_votes(each).up} thumbs up and {total_votes(each).down} down on notes of the last {len(each)} days"
    bars = "".join(_vote_bars(at * _VOTE_BAR_WIDTH, one, _HALF_HEIGHT / most) for at, one in enumerate(each))
    width, high = len(each) * _VOTE_BAR_WIDTH, 2 * _HALF_HEIGHT
    return Markup(  # noqa: S704 - numbers, and words of ours
        f'<svg class="bars votes" role="img" aria-label="{escape(told)}" viewBox="0 0 {width} {high}" '
        f'width="{width // 2}" height="{high // 2}">'
        f'<line x1="0" x2="{width}" y1="{_HALF_HEIGHT}" y2="{_HALF_HEIGHT}"/>{bars}</svg>'
    )


def _vote_bars(x: int, votes: VoteCount, scale: float) -> str:
    up, down = votes.up * scale, votes.down * scale
    made = (
        f'<rect class="up" x="{x}" y="{_HALF_HEIGHT - up:.1f}" width="{_VOTE_BAR_WIDTH - 2}" height="{up:.1f}"/>'
        if up
        else ""
    )
    return made + (
        f'<rect class="down" x="{x}" y="{_HALF_HEIGHT}" width="{_VOTE_BAR_WIDTH - 2}" height="{down:.1f}"/>'
        if down
        else ""
    )


def _votes_by_day(rated: Iterable[RatedNote]) -> dict[date, VoteCount]:
    found: dict[date, VoteCount] = {}
    for one in rated:
        try:
            day = datetime.fromtimestamp(one.note.posted_at, UTC).date()
        except (ValueError, OverflowError, OSError):  # a stored time may be any number
            continue
        found[day] = found.get(day, _NO_VOTES) + one.votes
    return found


Mask = Callable[[str], str]
_TEMPLATES = Path(__file__).with_name("templates")
_BAR_WIDTH, _CHART_HEIGHT = 12, 60  # in SVG user units


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,  # otherwise jinja2 checks the file for every fragment
        finalize=_mask_value,
    )
    made.globals["visitor"] = made.globals["here"] = made.globals["query"] = None
    return made


@pass_context
def _mask_value(context: Context, value: Any) -> Any:
    """Mask a value that a template prints; Markup was masked when it was made. Every text of a page passes here."""
    mask = context.get("mask")
    return mask(value) if mask is not None and type(value) is str else value


def render_template(template: str, **values: Any) -> str:
    """Render a template. It escapes all values except Markup.

    If `values` has a `mask`, it is applied to every text first: every page that shows foreign text needs one.
    """
    return _environment().get_template(template).render(values)


RUN_FILTERS = ("project", "text", "state", "workflow", "model", "verdict")


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which sessions somebody wants to see; an empty value wants all."""

    project: str = ""
    text: str = ""
    state: str = ""
    workflow: str = ""
    model: str = ""
    verdict: str = ""

    def wants(self, view: Mapping[str, Any]) -> bool:
        pairs = (("state", self.state), ("workflow", self.workflow), ("model", self.model), ("verdict", self.verdict))
        return all(not wanted or view[name] == wanted for name, wanted in pairs)


@dataclass(frozen=True, slots=True)
class SessionAnswer:
    """A session's newest answer as it was posted, and where its quoted lines stand in the journal."""

    posted: CheckedAnswer
    places: Mapping[str, ResultLocation]


@dataclass(frozen=True, slots=True)
class PageRenderer:
    """Renders all pages.

    `gitlab` is its address; `mask` hides known credentials; `read_posted` finds a session's newest answer as its note
    has it.
    """

    gitlab: str
    mask: Mask
    read_posted: Callable[[Sequence[JournalEntry]], CheckedAnswer]

    def render(self, template: str, **values: Any) -> str:
        return render_template(template, mask=self.mask, **values)

    def entry_fragment(self, entry: JournalEntry, number: int, session_id: str) -> str:
        return self.render("entry.html", row=make_row(entry, number, self.mask), session_id=session_id)

    def entry_fragments(self, entries: Sequence[JournalEntry], before: int, session_id: str) -> str:
        """Render consecutive entries, of which the first has the number `before` + 1."""
        return "".join(self.entry_fragment(one, number, session_id) for number, one in enumerate(entries, before + 1))

    def entry_page(self, entry: JournalEntry, number: int, session_id: str, **more: Any) -> str:
        told = make_row(entry, number, self.mask, ENTRY_CHARS)
        lines = told.text.split("\n")
        return self.render("text.html", title=f"Entry {number}", row=told, lines=lines, session_id=session_id, **more)

    def running_table(self, runs: Sequence[LiveRun]) -> str:
        return self.render("running.html", runs=[self._run_view(run) for run in runs])

    def runs_page(
        self, sessions: Sequence[SessionSummary], runs: Sequence[LiveRun], asked: RunFilter, **more: Any
    ) -> str:
        now = {run.order.session_id for run in runs}
        views = [self._session_view(one, running=one.session_id in now) for one in sessions]
        choices = [
            (name.capitalize(), name, getattr(asked, name), sorted({one[name] for one in views if one[name]}))
            for name in RUN_FILTERS[2:]
        ]
        return self.render(
            "runs.html",
            title="Runs",
            sessions=[one for one in views if asked.wants(one)][:RUNS_SHOWN],
            runs=[self._run_view(run) for run in runs],
            asked=asked,
            choices=choices,
            words={origin.value: words for origin, words in ORIGIN_WORDS.items()},
            filtered=asked != RunFilter(),
            **more,
        )

    def session_page_start(self, made: SessionSummary, **more: Any) -> str:
        """Render the top of the page, which is sent at once, however long the rest takes."""
        return self.render("session_begin.html", title=self._session_title(made), **more)

    def build_answer(self, entries: Sequence[JournalEntry]) -> SessionAnswer:
        """Find the newest answer and check its quotations; takes seconds for a long session."""
        found = self.read_posted(entries)
        posted = CheckedAnswer(self.mask(found.text), found.tallies)
        lines = find_quoted_lines(posted.text)
        return SessionAnswer(posted, locate_lines(lines, entries) if lines else {})

    def session_page_head(
        self, session_id: str, entries: Sequence[JournalEntry], answer: SessionAnswer, *, running: bool
    ) -> str:
        """Render the part of the page above the timeline."""
        tallies = answer.posted.tallies
        checked = bool(tallies.quoted) and not tallies.unchecked
        made, bill = summarise_session(entries, session_id), UsageLedger.from_entries(entries).bill()
        return self.render(
            "session.html",
            session=self._session_view(made, running=running),
            bill={
                "answered": bill.answered,
                "tokens": f"{bill.usage.context:,}",
                "cached": format_percentage(bill.usage.cache_read, bill.usage.context),
                "out": f"{bill.usage.output:,}",
                "cost": format_cost(float(bill.known_usd), bill.unknown + bill.lost),
            },
            answer=answer_to_html(answer.posted.text, answer.places, session_id, checked=checked)
            if answer.posted.text
            else "",
            linked=bool(answer.places),
            checks=list(describe_citations(tallies)),
        )

    def session_page_end(self, session_id: str, **more: Any) -> str:
        return self.render("session_end.html", session={"session_id": session_id}, **more)

    def search_page(self, hits: Sequence[SearchHit], query: str, **more: Any) -> str:
        listed = [
            {
                "session_id": hit.summary.session_id,
                "number": hit.number,
                "title": printable_lines(hit.summary.title or hit.summary.session_id),
                "who": hit.who.value,
                "at": format_datetime(hit.at),
                "snippet": _highlight_matches(self.mask(hit.snippet)),
            }
            for hit in hits
        ]
        return self.render("found.html", title="Search", hits=listed, query=query, **more)

    def costs_page(self, days: Sequence[DailyCost], most: int, today: date, **more: Any) -> str:
        spent = {one.day: one.usd for one in days}
        chart = bar_chart(
            [spent.get(today - timedelta(days=back), 0.0) for back in reversed(range(most))], "US dollars"
        )
        listed = [
            {
                "day": one.day.isoformat(),
                "sessions": one.sessions,
                "cost": format_cost(one.usd, one.unpriced),
                "tokens": f"{one.tokens:,}",
                "cached": format_percentage(one.cached, one.tokens),
            }
            for one in reversed(days)
        ]
        return self.render("costs.html", title="Costs", days=listed, chart=chart, most=most, here="/costs", **more)

    def quality_page(self, rated: Sequence[RatedNote], today: date, **more: Any) -> str:
        values = QualityView(rated, today, self.gitlab, self.mask).template_values
        return self.render("quality.html", title="Quality", here="/quality", **values, **more)

    def failures_page(
        self,
        projects: Sequence[str],
        project: str,
        failures: Sequence[tuple[KnownFailure, Sequence[FailureDay]]],
        trend: Sequence[FailureDay],
        today: date,
        **more: Any,
    ) -> str:
        return self.render(
            "failures.html",
            title="Known failures",
            projects=projects,
            project=project,
            days=TREND_DAYS,
            trend=_failure_trend_chart(trend, today),
            seen=sum(day.sightings for day in trend),
            failures=[self._failure_view(one, days, today) for one, days in failures],
            here="/failures",
            **more,
        )

    def files_page(self, session_id: str, there: SandboxList, **more: Any) -> str:
        listed = [
            {"path": one.path, "name": printable_lines(one.path), "size": format_size(one.size)} for one in there.files
        ]
        cut = len(listed) if there.more else 0
        return self.render("files.html", title="Files", session_id=session_id, files=listed, cut=cut, **more)

    def _failure_view(self, one: KnownFailure, days: Sequence[FailureDay], today: date) -> dict[str, Any]:
        return {
            "title": printable_lines(self.mask(one.title)),
            "excerpt": printable_lines(self.mask(one.excerpt)),
            "class_": one.class_,
            "count": one.count,
            "merge_requests": one.merge_requests_total,
            "branches": [printable_lines(name) for name in one.branches],
            "links": [link for link in one.links if link.startswith(("https://", "http://"))],
            "trend": _failure_trend_chart(days, today),
            "first": format_datetime(one.first_seen),
            "last": format_datetime(one.last_seen),
        }

    def _run_view(self, run: LiveRun) -> dict[str, Any]:
        about = SessionSubject(run.order.workflow, run.order.project, run.order.mr_iid)
        bill = run.ledger.bill()
        return {
            "session_id": run.order.session_id,
            "title": f"{about.workflow} on {_merge_request_label(about)}",
            "doing": ", ".join((run.status.doing, *run.status.running_tools)),
            "turns": run.status.iterations,
            "context": f"{run.status.context_tokens:,}",
            "cost": format_cost(float(bill.known_usd), bill.unknown),
            "since": format_datetime(run.began_at),
            "machine_since": iso_time(run.began_at),
        }

    def _session_title(self, one: SessionSummary) -> str:
        return printable_lines(self.mask(one.title)) or f"Session {one.session_id[:8]}"

    def _session_view(self, one: SessionSummary, *, running: bool) -> dict[str, Any]:
        about = one.about
        linked = about.project and about.mr_iid
        return {
            "session_id": one.session_id,
            "title": self._session_title(one),
            "state": "running" if running else one.state,
            "request": _merge_request_label(about),
            "address": f"{self.gitlab}/{about.project}/-/merge_requests/{about.mr_iid}" if linked else "",
            "model": self.mask(one.model),
            "workflow": self.mask(about.workflow),
            "verdict": one.verdict,
            "took": format_duration(one.seconds),
            "ago": format_ago(one.changed_at, datetime.now(UTC).timestamp()),
            "answers": one.answers,
            "entries": one.entries,
            "cached": format_percentage(one.cached, one.tokens),
            "cost": format_cost(one.usd, one.unpriced),
            "changed": format_datetime(one.changed_at),
            "machine_changed": iso_time(one.changed_at),
        }


def _merge_request_label(about: SessionSubject) -> str:
    return f"{about.project}!{about.mr_iid}" if about.mr_iid else about.project


def _highlight_matches(snippet: str) -> Markup:
    """Escape the snippet, then mark the words that match the query."""
    made = str(escape(printable_lines(snippet.replace(MATCH_BEGINS, "\x02").replace(MATCH_ENDS, "\x03"))))
    return Markup(made.replace("\\x02", "<mark>").replace("\\x03", "</mark>"))  # noqa: S704 - escaped above


def _failure_trend_chart(days: Sequence[FailureDay], today: date) -> Markup:
    seen = {day.day: float(day.sightings) for day in days}
    return bar_chart([seen.get(today - timedelta(days=back), 0.0) for back in reversed(range(TREND_DAYS))], "jobs")


def bar_chart(values: Sequence[float], unit: str) -> Markup:
    """Draw an inline SVG bar chart, one bar per day."""
    most, width = max(values, default=0.0) or 1.0, len(values) * _BAR_WIDTH
    told = f"{sum(values):g} {unit} in {len(values)} days, {max(values, default=0.0):g} on the worst of them"
    parts = "".join(
        f'<rect x="{at * _BAR_WIDTH}" y="{_CHART_HEIGHT - high:.1f}" width="{_BAR_WIDTH - 2}" height="{high:.1f}"/>'
        for at, high in enumerate(value / most * _CHART_HEIGHT for value in values)
        if high > 0
    )
    return Markup(  # noqa: S704 - numbers, and words of ours
        f'<svg class="bars" role="img" aria-label="{escape(told)}" '
        f'viewBox="0 0 {width} {_CHART_HEIGHT}" width="{width // 2}" '
        f'height="{_CHART_HEIGHT // 2}">'
        f'<line x1="0" x2="{width}" y1="{_CHART_HEIGHT}" y2="{_CHART_HEIGHT}"/>{parts}</svg>'
    )

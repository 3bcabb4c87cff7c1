"""Turns data into the values of the page templates, and renders the templates, which escape every value."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from hummingbird.core.journal import JournalEntry
from hummingbird.core.projections import UsageLedger, render_transcript
from hummingbird.core.protocols.sessions import MATCH_BEGINS, MATCH_ENDS
from hummingbird.core.protocols.storage import RatedNote, VotableNote
from hummingbird.core.sessions import FailedJob, SessionSubject, SessionSummary, is_session_id, summarise_session
from hummingbird.core.verdicts import ORIGIN_WORDS
from hummingbird.core.votes import (
    VOTES_AGAINST_SHOWN,
    VOTES_FOR_A_FIGURE,
    VOTES_TREND_DAYS,
    ApprovalShare,
    VoteCount,
    approval_share,
)
from hummingbird.dashboard.charts import vote_trend_chart
from hummingbird.dashboard.live_updates import LiveRun
from hummingbird.dashboard.queries import ENTRY_CHARS, JOBS_LISTED, TRANSCRIPT_CHARS, SandboxList
from hummingbird.dashboard.rendering import (
    NO_SPANS,
    CallSpans,
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

_NO_VOTES = VoteCount()
_ORIGINS = {origin.value: words for origin, words in ORIGIN_WORDS.items()}


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
        "trend": vote_trend_chart(_votes_by_day(rated), today),
    }


def total_votes(votes: Iterable[VoteCount]) -> VoteCount:
    return sum(votes, start=_NO_VOTES)


def _interval_text(found: ApprovalShare | None) -> str:
    return f"{found.low:.0%} – {found.high:.0%}" if found else ""


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

    def entry_fragments(
        self, entries: Sequence[JournalEntry], before: int, session_id: str, spans: CallSpans = NO_SPANS
    ) -> str:
        """Render consecutive entries, of which the first has the number `before` + 1.

        A call of `spans` is shown with the entry that settles it; the newest answer is folded, since it stands above.
        """
        rows = (
            make_row(one, number, self.mask, span=spans.by_end.get(number))
            for number, one in enumerate(entries, before + 1)
            if number not in spans.calls
        )
        folded = (replace(row, open=row.open and row.number != spans.answer) for row in rows)
        return "".join(self.render("entry.html", row=row, session_id=session_id) for row in folded)

    def transcript_page(self, entries: Sequence[JournalEntry], session_id: str, **more: Any) -> str:
        whole = self.mask(render_transcript(entries))
        shown = whole[:TRANSCRIPT_CHARS]
        return self.render(
            "transcript.html",
            title="Transcript",
            session_id=session_id,
            transcript=answer_to_html(shown, {}, session_id, checked=True),
            left_out=f"{len(whole) - len(shown):,}" if len(whole) > len(shown) else "",
            **more,
        )

    def entry_page(self, entry: JournalEntry, number: int, session_id: str, **more: Any) -> str:
        told = make_row(entry, number, self.mask, ENTRY_CHARS)
        lines = told.text.split("\n")
        return self.render("text.html", title=f"Entry {number}", row=told, lines=lines, session_id=session_id, **more)

    def running_table(self, runs: Sequence[LiveRun]) -> str:
        return self.render("running.html", runs=[self.run_view(run) for run in runs])

    def session_page_start(self, made: SessionSummary, **more: Any) -> str:
        """Render the top of the page, which is sent at once, however long the rest takes."""
        title = printable_lines(self.mask(made.request)) or self._session_title(made)
        return self.render("session_begin.html", title=title, **more)

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
            session=self.session_view(made, running=running),
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

    def quality_page(self, rated: Sequence[RatedNote], today: date, **more: Any) -> str:
        values = QualityView(rated, today, self.gitlab, self.mask).template_values
        return self.render("quality.html", title="Quality", here="/quality", **values, **more)

    def files_page(self, session_id: str, there: SandboxList, **more: Any) -> str:
        listed = [
            {"path": one.path, "name": printable_lines(one.path), "size": format_size(one.size)} for one in there.files
        ]
        cut = len(listed) if there.more else 0
        return self.render("files.html", title="Files", session_id=session_id, files=listed, cut=cut, **more)

    def run_view(self, run: LiveRun) -> dict[str, Any]:
        about = SessionSubject(run.order.workflow, run.order.project, run.order.mr_iid)
        bill = run.ledger.bill()
        return {
            "session_id": run.order.session_id,
            "title": f"{about.workflow} on {merge_request_label(about)}",
            "doing": ", ".join((run.status.doing, *run.status.running_tools)),
            "turns": run.status.iterations,
            "context": f"{run.status.context_tokens:,}",
            "cost": format_cost(float(bill.known_usd), bill.unknown),
            "since": format_datetime(run.began_at),
            "machine_since": iso_time(run.began_at),
        }

    def _session_title(self, one: SessionSummary) -> str:
        return printable_lines(self.mask(one.title)) or f"Session {one.session_id[:8]}"

    def session_view(self, one: SessionSummary, *, running: bool) -> dict[str, Any]:
        about = one.about
        linked = about.project and about.mr_iid
        return {
            "session_id": one.session_id,
            "title": self._session_title(one),
            "state": "running" if running else one.state,
            "headline": printable_lines(self.mask(one.request)) or self._session_title(one),
            "jobs": [_job_view(about.project, job) for job in one.jobs[:JOBS_LISTED]],
            "more_jobs": max(0, len(one.jobs) - JOBS_LISTED),
            "request": merge_request_label(about),
            "project": about.project,
            "address": f"{self.gitlab}/{about.project}/-/merge_requests/{about.mr_iid}" if linked else "",
            "model": self.mask(one.model),
            "workflow": self.mask(about.workflow),
            "verdict": one.verdict,
            "verdict_words": _ORIGINS.get(one.verdict, one.verdict),
            "took": format_duration(one.seconds),
            "ago": format_ago(one.changed_at, datetime.now(UTC).timestamp()),
            "answers": one.answers,
            "entries": one.entries,
            "cached": format_percentage(one.cached, one.tokens),
            "cost": format_cost(one.usd, one.unpriced),
            "changed": format_datetime(one.changed_at),
            "machine_changed": iso_time(one.changed_at),
        }


def _job_view(project: str, job: FailedJob) -> dict[str, Any]:
    title = "" if job.title == job.name else job.title
    return {
        "name": printable_lines(job.name),
        "title": printable_lines(title),
        "address": failure_address(project, job.fingerprint) if job.fingerprint and project else "",
    }


def failure_address(project: str, fingerprint: str) -> str:
    """Return the address of a failure's page."""
    return "/failure?" + urlencode({"project": project, "fingerprint": fingerprint})


def merge_request_label(about: SessionSubject) -> str:
    return f"{about.project}!{about.mr_iid}" if about.mr_iid else about.project


def highlight_matches(snippet: str) -> Markup:
    """Escape the snippet, then mark the words that match the query."""
    made = str(escape(printable_lines(snippet.replace(MATCH_BEGINS, "\x02").replace(MATCH_ENDS, "\x03"))))
    return Markup(made.replace("\\x02", "<mark>").replace("\\x03", "</mark>"))  # noqa: S704 - escaped above

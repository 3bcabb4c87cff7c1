"""What pages show, made of what there is: plain values for the templates, which escape all of it. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from hummingbird.domain.journal import Entry, RunEnded
from hummingbird.domain.ledger import Ledger
from hummingbird.domain.sessions import About, Summary, summary
from hummingbird.domain.web_limits import ENTRY_CHARS, TREND_DAYS
from hummingbird.evidence.citations.checking import Tallies, checked
from hummingbird.evidence.citations.record import Place
from hummingbird.evidence.citations.wording import sentences
from hummingbird.ports.known_failures import FailureDay, KnownFailure
from hummingbird.ports.reactions import Rated
from hummingbird.ports.session_index import MATCH_BEGINS, MATCH_ENDS, Day, Hit
from hummingbird.web.answers import as_html, found, quoted
from hummingbird.web.asked import SandboxList
from hummingbird.web.live import Run
from hummingbird.web.quality import Quality
from hummingbird.web.shown import machine_time, moment, money, share, shown, size
from hummingbird.web.timeline import row

Mask = Callable[[str], str]
_TEMPLATES = Path(__file__).with_name("templates")
_BAR, _HIGH = 12, 60  # of a chart, in units of its own


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,  # or the file is looked at for every piece
        finalize=_masked,
    )
    made.globals["visitor"] = made.globals["here"] = made.globals["query"] = None
    return made


@pass_context
def _masked(context: Context, value: Any) -> Any:
    """The one place that every text of a page goes through; what is Markup was masked before it was made."""
    mask = context.get("mask")
    return mask(value) if mask is not None and type(value) is str else value


def page(template: str, **values: Any) -> str:
    """A part of a page; everything in `values` is escaped, except what is Markup already. With a `mask` it is masked
    before: pages that show anything of others have one."""
    return _environment().get_template(template).render(values)


@dataclass(frozen=True, slots=True)
class Answer:
    """A session's newest answer and how its quotations fared: the whole journal is looked through for it."""

    text: str
    lines: int
    places: Mapping[str, Place]
    tallies: Tallies


@dataclass(frozen=True, slots=True)
class Pages:
    """`gitlab` is its address; `mask` hides the credentials that are known here."""

    gitlab: str
    mask: Mask

    def page(self, template: str, **values: Any) -> str:
        return page(template, mask=self.mask, **values)

    def fragment(self, entry: Entry, number: int, session_id: str) -> str:
        return self.page("entry.html", row=row(entry, number, self.mask), session_id=session_id)

    def fragments(self, entries: Sequence[Entry], before: int, session_id: str) -> str:
        """Of those behind the entry with that number."""
        return "".join(self.fragment(one, number, session_id) for number, one in enumerate(entries, before + 1))

    def text(self, entry: Entry, number: int, session_id: str, **more: Any) -> str:
        told = row(entry, number, self.mask, ENTRY_CHARS)
        lines = told.text.split("\n")
        return self.page("text.html", title=f"Entry {number}", row=told, lines=lines, session_id=session_id, **more)

    def running(self, runs: Sequence[Run]) -> str:
        return self.page("running.html", runs=[self._running(run) for run in runs])

    def runs(self, sessions: Sequence[Summary], runs: Sequence[Run], **more: Any) -> str:
        now = {run.order.session_id for run in runs}
        listed = [self._session(one, running=one.session_id in now) for one in sessions]
        return self.page("runs.html", title="Runs", sessions=listed, runs=[self._running(run) for run in runs], **more)

    def session_begin(self, made: Summary, **more: Any) -> str:
        """So that something is seen at once, however long the rest takes."""
        return self.page("session_begin.html", title=self._title(made), **more)

    def answer(self, entries: Sequence[Entry]) -> Answer:
        """Of a long session this takes seconds."""
        said = next((one.text for one in reversed(entries) if isinstance(one, RunEnded) and one.answered), "")
        text = self.mask(said)
        lines = quoted(text)
        fared = checked(text, entries, known=[self.gitlab]).tallies if text else Tallies()
        return Answer(text, len(lines), found(lines, entries) if lines else {}, fared)

    def session(self, session_id: str, entries: Sequence[Entry], answer: Answer, *, running: bool) -> str:
        """Up to where its rows come."""
        made, bill = summary(entries, session_id), Ledger.of(entries).bill()
        return self.page(
            "session.html",
            session=self._session(made, running=running),
            bill={
                "answered": bill.answered,
                "tokens": f"{bill.usage.context:,}",
                "cached": share(bill.usage.cache_read, bill.usage.context),
                "out": f"{bill.usage.output:,}",
                "cost": money(float(bill.known_usd), bill.unknown + bill.lost),
            },
            answer=as_html(answer.text, answer.places, session_id) if answer.text else "",
            quotes={"all": answer.lines, "found": len(answer.places), "fared": list(sentences(answer.tallies))},
        )

    def session_end(self, session_id: str, **more: Any) -> str:
        return self.page("session_end.html", session={"session_id": session_id}, **more)

    def found(self, hits: Sequence[Hit], query: str, **more: Any) -> str:
        listed = [
            {
                "session_id": hit.summary.session_id,
                "number": hit.number,
                "title": shown(hit.summary.title or hit.summary.session_id),
                "who": hit.who.value,
                "at": moment(hit.at),
                "snippet": _marked(self.mask(hit.snippet)),
            }
            for hit in hits
        ]
        return self.page("found.html", title="Search", hits=listed, query=query, **more)

    def costs(self, days: Sequence[Day], most: int, today: date, **more: Any) -> str:
        spent = {one.day: one.usd for one in days}
        chart = bars([spent.get(today - timedelta(days=back), 0.0) for back in reversed(range(most))], "US dollars")
        listed = [
            {
                "day": one.day.isoformat(),
                "sessions": one.sessions,
                "cost": money(one.usd, one.unpriced),
                "tokens": f"{one.tokens:,}",
                "cached": share(one.cached, one.tokens),
            }
            for one in reversed(days)
        ]
        return self.page("costs.html", title="Costs", days=listed, chart=chart, most=most, here="/costs", **more)

    def quality(self, rated: Sequence[Rated], today: date, **more: Any) -> str:
        values = Quality(rated, today, self.gitlab, self.mask).values
        return self.page("quality.html", title="Quality", here="/quality", **values, **more)

    def failures(
        self,
        projects: Sequence[str],
        project: str,
        failures: Sequence[tuple[KnownFailure, Sequence[FailureDay]]],
        trend: Sequence[FailureDay],
        today: date,
        **more: Any,
    ) -> str:
        return self.page(
            "failures.html",
            title="Known failures",
            projects=projects,
            project=project,
            days=TREND_DAYS,
            trend=_trend(trend, today),
            seen=sum(day.sightings for day in trend),
            failures=[self._failure(one, days, today) for one, days in failures],
            here="/failures",
            **more,
        )

    def files(self, session_id: str, there: SandboxList, **more: Any) -> str:
        listed = [{"path": one.path, "name": shown(one.path), "size": size(one.size)} for one in there.files]
        cut = len(listed) if there.more else 0
        return self.page("files.html", title="Files", session_id=session_id, files=listed, cut=cut, **more)

    def _failure(self, one: KnownFailure, days: Sequence[FailureDay], today: date) -> dict[str, Any]:
        return {
            "title": shown(self.mask(one.title)),
            "excerpt": shown(self.mask(one.excerpt)),
            "class_": one.class_,
            "count": one.count,
            "merge_requests": one.merge_requests_total,
            "branches": [shown(name) for name in one.branches],
            "links": [link for link in one.links if link.startswith(("https://", "http://"))],
            "trend": _trend(days, today),
            "first": moment(one.first_seen),
            "last": moment(one.last_seen),
        }

    def _running(self, run: Run) -> dict[str, Any]:
        about = About(run.order.workflow, run.order.project, run.order.mr_iid)
        bill = run.ledger.bill()
        return {
            "session_id": run.order.session_id,
            "title": f"{about.workflow} on {_request(about)}",
            "doing": ", ".join((run.now.doing, *run.now.running_tools)),
            "turns": run.now.iterations,
            "context": f"{run.now.context_tokens:,}",
            "cost": money(float(bill.known_usd), bill.unknown),
            "since": moment(run.began_at),
            "machine_since": machine_time(run.began_at),
        }

    def _title(self, one: Summary) -> str:
        return shown(self.mask(one.title)) or f"Session {one.session_id[:8]}"

    def _session(self, one: Summary, *, running: bool) -> dict[str, Any]:
        about = one.about
        linked = about.project and about.mr_iid
        return {
            "session_id": one.session_id,
            "title": self._title(one),
            "state": "running" if running else one.state,
            "request": _request(about),
            "address": f"{self.gitlab}/{about.project}/-/merge_requests/{about.mr_iid}" if linked else "",
            "model": one.model,
            "answers": one.answers,
            "entries": one.entries,
            "cached": share(one.cached, one.tokens),
            "cost": money(one.usd, one.unpriced),
            "changed": moment(one.changed_at),
            "machine_changed": machine_time(one.changed_at),
        }


def _request(about: About) -> str:
    return f"{about.project}!{about.mr_iid}" if about.mr_iid else about.project


def _marked(snippet: str) -> Markup:
    """Escaped first; then the words that were looked for."""
    made = str(escape(shown(snippet.replace(MATCH_BEGINS, "\x02").replace(MATCH_ENDS, "\x03"))))
    return Markup(made.replace("\\x02", "<mark>").replace("\\x03", "</mark>"))  # noqa: S704 - escaped above


def _trend(days: Sequence[FailureDay], today: date) -> Markup:
    seen = {day.day: float(day.sightings) for day in days}
    return bars([seen.get(today - timedelta(days=back), 0.0) for back in reversed(range(TREND_DAYS))], "jobs")


def bars(values: Sequence[float], unit: str) -> Markup:
    """A chart that needs nothing but the page it stands in."""
    most, width = max(values, default=0.0) or 1.0, len(values) * _BAR
    told = f"{sum(values):g} {unit} in {len(values)} days, {max(values, default=0.0):g} on the worst of them"
    parts = "".join(
        f'<rect x="{at * _BAR}" y="{_HIGH - high:.1f}" width="{_BAR - 2}" height="{high:.1f}"/>'
        for at, high in enumerate(value / most * _HIGH for value in values)
        if high > 0
    )
    return Markup(  # noqa: S704 - numbers, and words of ours
        f'<svg class="bars" role="img" aria-label="{escape(told)}" viewBox="0 0 {width} {_HIGH}" width="{width // 2}" '
        f'height="{_HIGH // 2}"><line x1="0" x2="{width}" y1="{_HIGH}" y2="{_HIGH}"/>{parts}</svg>'
    )

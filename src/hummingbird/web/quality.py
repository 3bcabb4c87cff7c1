"""What people think of our results, as the page shows it: by workflow, by model, by day, and what they did not like.
Pure; names come as they were kept, and templates escape them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from hummingbird.domain.sessions import is_session_id
from hummingbird.domain.vote_limits import VOTES_AGAINST_SHOWN, VOTES_FOR_A_FIGURE, VOTES_TREND_DAYS
from hummingbird.domain.votes import Share, Votes, share
from hummingbird.ports.reactions import NotePosted, Rated
from hummingbird.web.shown import machine_time, moment, shown

_BAR, _HALF = 12, 30  # of a chart, in units of its own
_NOTHING = Votes()


@dataclass(frozen=True, slots=True)
class Quality:
    """`gitlab`: its address, without a slash at its end. `mask` hides the credentials that are known here."""

    rated: Sequence[Rated]
    today: date
    gitlab: str
    mask: Callable[[str], str]

    @property
    def values(self) -> dict[str, Any]:
        """For the template."""
        return {
            "tables": [
                ("Workflow", self._figures(lambda note: note.workflow)),
                ("Model", self._figures(lambda note: note.model)),
            ],
            "all": _figure("", self.rated, self.today),
            "against": [self._against(one) for one in self.rated if one.votes.down][:VOTES_AGAINST_SHOWN],
            "days": VOTES_TREND_DAYS,
            "least": VOTES_FOR_A_FIGURE,
        }

    def _figures(self, name_of: Callable[[NotePosted], str]) -> list[dict[str, Any]]:
        """Where most votes are comes first."""
        groups: dict[str, list[Rated]] = {}
        for one in self.rated:
            groups.setdefault(name_of(one.note), []).append(one)
        made = [_figure(self._named(name), group, self.today) for name, group in groups.items()]
        return sorted(made, key=lambda one: (-one["votes"], -one["notes"], one["name"]))

    def _named(self, name: str) -> str:
        return shown(self.mask(name))

    def _against(self, one: Rated) -> dict[str, Any]:
        note = one.note
        request = f"{self.gitlab}/{quote(note.project)}/-/merge_requests/{note.iid}"
        return {
            "request": self._named(f"{note.project}!{note.iid}"),
            "note": f"{request}#note_{note.note_id}",
            "session": note.session_id if is_session_id(note.session_id) else "",
            "workflow": self._named(note.workflow),
            "model": self._named(note.model),
            "up": one.votes.up,
            "down": one.votes.down,
            "posted": moment(note.posted_at),
            "machine_posted": machine_time(note.posted_at),
        }


def _figure(name: str, rated: Sequence[Rated], today: date) -> dict[str, Any]:
    votes = total(one.votes for one in rated)
    found = share(votes)
    return {
        "name": name or "–",
        "notes": len(rated),
        "voted": sum(one.votes.all > 0 for one in rated),
        "votes": votes.all,
        "up": votes.up,
        "down": votes.down,
        "share": f"{found.value:.0%}" if found else "",
        "interval": _interval(found),
        "trend": trend(rated, today),
    }


def total(votes: Iterable[Votes]) -> Votes:
    return sum(votes, start=_NOTHING)


def _interval(found: Share | None) -> str:
    return f"{found.low:.0%} – {found.high:.0%}" if found else ""


def trend(rated: Iterable[Rated], today: date) -> Markup:
    """Votes by the day that their note was posted on: up above the line, down below it."""
    days = _days(rated)
    each = [days.get(today - timedelta(days=back), _NOTHING) for back in reversed(range(VOTES_TREND_DAYS))]
    most = max((max(one.up, one.down) for one in each), default=0) or 1
    told = f"{total(each).up} thumbs up and {total(each).down} down on notes of the last {len(each)} days"
    bars = "".join(_bars(at * _BAR, one, _HALF / most) for at, one in enumerate(each))
    width, high = len(each) * _BAR, 2 * _HALF
    return Markup(  # noqa: S704 - numbers, and words of ours
        f'<svg class="bars votes" role="img" aria-label="{escape(told)}" viewBox="0 0 {width} {high}" '
        f'width="{width // 2}" height="{high // 2}"><line x1="0" x2="{width}" y1="{_HALF}" y2="{_HALF}"/>{bars}</svg>'
    )


def _bars(x: int, votes: Votes, scale: float) -> str:
    up, down = votes.up * scale, votes.down * scale
    made = f'<rect class="up" x="{x}" y="{_HALF - up:.1f}" width="{_BAR - 2}" height="{up:.1f}"/>' if up else ""
    return made + (f'<rect class="down" x="{x}" y="{_HALF}" width="{_BAR - 2}" height="{down:.1f}"/>' if down else "")


def _days(rated: Iterable[Rated]) -> dict[date, Votes]:
    found: dict[date, Votes] = {}
    for one in rated:
        try:
            day = datetime.fromtimestamp(one.note.posted_at, UTC).date()
        except (ValueError, OverflowError, OSError):  # whatever wrote it thought so
            continue
        found[day] = found.get(day, _NOTHING) + one.votes
    return found

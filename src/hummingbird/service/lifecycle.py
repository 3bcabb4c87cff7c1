"""What has become of the findings of earlier reviews (W2): still there, moved, fixed, dismissed, by where their lines
stand now and not by when they were made.

    review = await following(forge, order, request, threads)  # before the run: what it need not say again
    fresh = review.fresh(findings)                            # after it: what has to be said

Nothing is remembered: whoever asks again finds the same in GitLab. A line is followed through the diff between the
commit that it was said of and the head; if nobody keeps that commit any more, it is known by its text, if that stands
in one place alone. Where neither helps, nobody knows, and its thread stays as it is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from hummingbird.domain.diffs import Comparison, Diff, Spot
from hummingbird.domain.errors import ForgeMissing, ForgeRefused
from hummingbird.domain.findings import Earlier, Finding, is_place, near, place_of, says, telling
from hummingbird.domain.line_moves import Fate, LineMoves, Stands
from hummingbird.domain.notes import Part
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.patches import identity
from hummingbird.domain.review_limits import REVIEW_CHANGED_TOLD, REVIEW_COMPARISONS
from hummingbird.ports.forge import Forge, MergeRequest, NoteSeen, Thread

_NAME = re.compile(r"[\w./+#@-]{1,200}", re.ASCII)
Between: TypeAlias = tuple[str, str]


class State(StrEnum):
    STILL = "still there"
    MOVED = "moved"
    BACK = "back again"  # the bot has resolved it, and its line stands there again
    FIXED = "fixed"
    DISMISSED = "dismissed"
    OUTSIDE = "outside the diff"
    UNKNOWN = "not found again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """An earlier finding, and the line that it is about now: of FIXED the one that stands there instead, 0 if none or
    if nobody knows."""

    thread: Thread
    note: NoteSeen
    state: State
    path: str
    line: int = 0

    @property
    def earlier(self) -> Earlier:
        return Earlier(
            path=self.path,
            line=self.line,
            fingerprint=self.note.marker.finding if self.note.marker else "",
            resolved=self.thread.resolved,
            dismissed=self.thread.dismissed,
            followed=self.line > 0 and self.state is not State.FIXED,
            old=self.note.old,
            was=self.note.path,
        )


@dataclass(frozen=True, slots=True)
class Review:
    """What a review begins with. `patch`: the identity of its change. `changed`: files of the diff that differ from
    what the last review saw; empty if all do, or if nobody can tell."""

    diff: Diff = field(default_factory=Diff)
    followed: tuple[Followed, ...] = ()
    patch: str = ""
    changed: tuple[str, ...] = ()

    @property
    def earlier(self) -> tuple[Earlier, ...]:
        """What is not to be said again. Where the line is another one by now, there may be something to say."""
        return tuple(one.earlier for one in self.followed if one.state is not State.FIXED)

    @property
    def told(self) -> Mapping[str, object]:
        """What the model should know: numbers, and names that can be no sentences. Others it learns from its sources,
        where they are fenced (I9)."""
        dismissed = sum(one.state is State.DISMISSED for one in self.followed)
        standing = sum(one.state is not State.FIXED for one in self.followed) - dismissed
        counts = {name: count for name, count in (("open", standing), ("dismissed", dismissed)) if count}
        named = len(self.changed) <= REVIEW_CHANGED_TOLD and all(map(_NAME.fullmatch, self.changed))
        return {"earlier_findings": counts, "changed_since_last_review": list(self.changed) if named else []}

    def fresh(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Without those that only say again what was said of the line that theirs stands instead of: the change has
        not mended it, and its thread goes on."""
        known = (*self._fixed, *self._settled)
        return tuple(finding for finding in findings if not any(_said_of(finding, one) for one in known))

    def again(self, findings: Sequence[Finding]) -> frozenset[str]:
        """The threads of those."""
        return frozenset(one.thread.id for one in self._fixed if any(_said_of(finding, one) for finding in findings))

    @property
    def _fixed(self) -> tuple[Followed, ...]:
        return tuple(one for one in self.followed if one.state is State.FIXED and not one.thread.resolved)

    @property
    def _settled(self) -> tuple[Followed, ...]:
        """A developer's no holds for what stands there instead, too."""
        return tuple(one for one in self.followed if one.state is State.FIXED and one.thread.dismissed)


def _said_of(finding: Finding, one: Followed) -> bool:
    return near(finding, one.earlier) and says(finding, one.earlier)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """For the note: one line of our own Markdown about all findings, and what change it is about."""

    line: str = ""
    patch: str = ""


NOT_REVIEWED = Reviewed()


async def following(forge: Forge, order: WorkOrder, request: MergeRequest, threads: Sequence[Thread]) -> Review:
    """What the order itself has found is no earlier one. Raises what reading raises."""
    files = await forge.diffs(request.change.iid)
    diff = Diff(files)
    notes = [*_made(threads, but=order.id)]
    moves = {
        between: LineMoves(found)
        for between in _between(notes, request)
        if (found := await _compared(forge, between)) is not None
    }
    followed = tuple(_followed(thread, note, moves.get(_ends(note, request)), diff) for thread, note in notes)
    changed = await _changed(forge, request, threads, order.workflow, {file.new_path for file in files})
    return Review(diff, followed, identity(files), changed)


def _made(threads: Iterable[Thread], *, but: str) -> Iterator[tuple[Thread, NoteSeen]]:
    for thread in threads:
        for note in thread.notes:
            if note.path and note.marker is not None and note.marker.part is Part.FINDING and note.marker.order != but:
                yield thread, note


def _ends(note: NoteSeen, request: MergeRequest) -> Between:
    """What a line that is removed is counted in is the commit before the change."""
    made = note.at or ("" if note.old or note.marker is None else note.marker.sha)
    return made, request.base_sha if note.old else request.change.head


def _between(notes: Iterable[tuple[Thread, NoteSeen]], request: MergeRequest) -> Iterable[Between]:
    """The newest first, each once."""
    newest = sorted(notes, key=lambda one: -one[1].id)
    ends = dict.fromkeys(_ends(note, request) for _, note in newest if note.line)
    return [between for between in ends if all(between)][:REVIEW_COMPARISONS]


async def _compared(forge: Forge, between: Between) -> Comparison | None:
    """None: nobody can tell, for a commit is gone or the difference is too large."""
    if between[0] == between[1]:
        return Comparison()
    try:
        return await forge.compare(*between)
    except (ForgeMissing, ForgeRefused):
        return None


def _followed(thread: Thread, note: NoteSeen, moves: LineMoves | None, diff: Diff) -> Followed:
    stands = moves.of(note.old_path if note.old else note.path, note.line) if moves and note.line else _NOWHERE
    if stands.fate is Fate.UNKNOWN:
        stands = _by_its_text(note, diff)
    state, path, line = _judged(note, stands, diff)
    if state is not State.FIXED and dismissed(thread):
        state = State.DISMISSED
    elif state in (State.STILL, State.MOVED) and thread.resolved:
        state = State.BACK
    return Followed(thread=thread, note=note, state=state, path=path, line=line)


_NOWHERE = Stands(Fate.UNKNOWN)


def dismissed(thread: Thread) -> bool:
    """Whether a person has said that there is nothing to do: in words, or by resolving it while its line stands."""
    return thread.dismissed or (thread.resolved and not thread.resolved_by_bot)


def _judged(note: NoteSeen, stands: Stands, diff: Diff) -> tuple[State, str, int]:
    if stands.fate in (Fate.CHANGED, Fate.GONE):
        return State.FIXED, stands.path or note.path, stands.line
    if stands.fate is Fate.UNKNOWN:
        return State.UNKNOWN, note.path, 0
    spot = diff.spot(stands.path, stands.line, old=note.old)
    if spot is None:
        return State.OUTSIDE, stands.path, 0
    if note.old and spot.new_line:  # it is not removed any more
        return State.FIXED, spot.new_path, spot.new_line
    same = (spot.new_path, stands.line) == (note.path, note.line)
    return State.STILL if same else State.MOVED, spot.new_path, stands.line


def _by_its_text(note: NoteSeen, diff: Diff) -> Stands:
    """In its own file, or else in any: one place, or nobody knows. A file that is renamed has two names here."""
    known, same = note.marker.finding if note.marker else "", dict[Spot | None, tuple[str, int]]()
    for path, line, code in diff.lines(old=note.old):
        if telling(code) and is_place(known, place_of(note.path, code)):
            same.setdefault(diff.spot(path, line, old=note.old), (path, line))
    places = [place for place in same.values() if place[0] == note.path] or [*same.values()]
    return Stands(Fate.MOVED, *places[0]) if len(places) == 1 else _NOWHERE


async def _changed(
    forge: Forge, request: MergeRequest, threads: Iterable[Thread], workflow: str, paths: set[str]
) -> tuple[str, ...]:
    """Empty also where nothing is left out by it."""
    last = _last_seen(threads, workflow)
    found = await _compared(forge, (last, request.change.head)) if last and request.change.head else None
    if found is None or not found.whole:
        return ()
    since = paths & {file.new_path for file in found.files}
    return tuple(sorted(since)) if since != paths else ()


def _last_seen(threads: Iterable[Thread], workflow: str) -> str:
    """The head of the newest result."""
    results = [
        (note.id, note.marker.sha)
        for thread in threads
        for note in thread.notes
        if note.marker is not None and note.marker.part is Part.RESULT and note.marker.wf == workflow
    ]
    return max(results, default=(0, ""))[1]

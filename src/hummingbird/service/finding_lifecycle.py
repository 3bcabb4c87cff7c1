"""Track what became of the findings of earlier reviews: still there, moved, fixed or dismissed.

    review = await track_findings(forge, order, request, threads)  # before the run: what it need not report again
    fresh = review.new_findings(findings)                          # after the run: what has to be posted

Where the lines are now decides, not when the findings were made. Nothing is stored: asking again finds the same in
GitLab. A line is followed through the diff between the commit of its finding and the head. If that commit no longer
exists, the line is recognised by its text, if that occurs in one place only. Otherwise its place is unknown and the
thread stays as it is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from hummingbird.core.diffs import CommitComparison, Diff, DiffPosition
from hummingbird.core.errors import GitLabNotFound, GitLabRequestRefused
from hummingbird.core.findings import (
    PostedFinding,
    ReviewFinding,
    has_line_fingerprint,
    has_same_text,
    is_distinctive,
    is_near,
    line_fingerprint,
)
from hummingbird.core.orders import WorkOrder
from hummingbird.gitlab.write.protocol import (
    GitLabWriter,
    MergeRequestDetails,
    MergeRequestThread,
    NoteKind,
    ThreadNote,
)
from hummingbird.service.diff_comparison import (
    REVIEW_CHANGED_TOLD,
    REVIEW_COMPARISONS,
    LineFate,
    LineLocation,
    LineMoves,
    diff_fingerprint,
)

_NAME = re.compile(r"[\w./+#@-]{1,200}", re.ASCII)
CommitRange: TypeAlias = tuple[str, str]


class FindingState(StrEnum):
    """What became of an earlier finding."""

    STILL = "still there"
    MOVED = "moved"
    BACK = "back again"  # the bot resolved its thread, and its line is there again
    FIXED = "fixed"
    DISMISSED = "dismissed"
    OUTSIDE = "outside the diff"
    UNKNOWN = "not found again"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedFinding:
    """An earlier finding and the line that it is about now.

    The line of a FIXED finding is the one that replaced it. It is 0 if there is none or it is not known.
    """

    thread: MergeRequestThread
    note: ThreadNote
    state: FindingState
    path: str
    line: int = 0

    @property
    def earlier(self) -> PostedFinding:
        return PostedFinding(
            path=self.path,
            line=self.line,
            fingerprint=self.note.marker.finding if self.note.marker else "",
            resolved=self.thread.resolved,
            dismissed=self.thread.dismissed,
            line_is_tracked=self.line > 0 and self.state is not FindingState.FIXED,
            old=self.note.old,
            original_path=self.note.path,
        )


@dataclass(frozen=True, slots=True)
class ReviewContext:
    """What a review starts from.

    `patch` is the fingerprint of the diff. `changed` are the files of the diff that differ from what the last review
    saw; empty if all do, or if it is not known.
    """

    diff: Diff = field(default_factory=Diff)
    tracked: tuple[TrackedFinding, ...] = ()
    patch: str = ""
    changed: tuple[str, ...] = ()

    @property
    def earlier(self) -> tuple[PostedFinding, ...]:
        """Return the findings that must not be reported again.

        Fixed ones are not among them: their line is another one now, and there may be something to say about it.
        """
        return tuple(one.earlier for one in self.tracked if one.state is not FindingState.FIXED)

    @property
    def model_context(self) -> Mapping[str, object]:
        """Return what the model should know: counts, and file names that cannot be sentences.

        Other names reach it only through the tools, which fence them.
        """
        dismissed = sum(one.state is FindingState.DISMISSED for one in self.tracked)
        standing = sum(one.state is not FindingState.FIXED for one in self.tracked) - dismissed
        counts = {name: count for name, count in (("open", standing), ("dismissed", dismissed)) if count}
        named = len(self.changed) <= REVIEW_CHANGED_TOLD and all(map(_NAME.fullmatch, self.changed))
        return {"earlier_findings": counts, "changed_since_last_review": list(self.changed) if named else []}

    def new_findings(self, findings: Iterable[ReviewFinding]) -> tuple[ReviewFinding, ...]:
        """Return the findings that do not repeat an earlier finding, whose line theirs has replaced.

        A finding that is repeated was not fixed by the change, so its thread stays open.
        """
        known = (*self._fixed, *self._settled)
        return tuple(finding for finding in findings if not any(_repeats_finding(finding, one) for one in known))

    def threads_of_repeats(self, findings: Sequence[ReviewFinding]) -> frozenset[str]:
        """Return the ids of the threads whose finding is repeated."""
        return frozenset(
            one.thread.id for one in self._fixed if any(_repeats_finding(finding, one) for finding in findings)
        )

    @property
    def _fixed(self) -> tuple[TrackedFinding, ...]:
        return tuple(one for one in self.tracked if one.state is FindingState.FIXED and not one.thread.resolved)

    @property
    def _settled(self) -> tuple[TrackedFinding, ...]:
        """Return fixed findings that a developer had dismissed: the dismissal also holds for the replaced line."""
        return tuple(one for one in self.tracked if one.state is FindingState.FIXED and one.thread.dismissed)


def _repeats_finding(finding: ReviewFinding, one: TrackedFinding) -> bool:
    return is_near(finding, one.earlier) and has_same_text(finding, one.earlier)


@dataclass(frozen=True, slots=True)
class ReviewSummary:
    """What the note says about all findings, in one line of our own Markdown, and the fingerprint of the diff."""

    line: str = ""
    patch: str = ""


NO_REVIEW_SUMMARY = ReviewSummary()


async def track_findings(
    forge: GitLabWriter, order: WorkOrder, request: MergeRequestDetails, threads: Sequence[MergeRequestThread]
) -> ReviewContext:
    """Return the context of a review, in which the order's own findings are not earlier ones.

    Raises what reading from GitLab raises.
    """
    files = await forge.diffs(request.change.iid)
    diff = Diff(files)
    notes = [*_iter_finding_notes(threads, but=order.id)]
    moves = {
        between: LineMoves(found)
        for between in _ranges_to_compare(notes, request)
        if (found := await _compare(forge, between)) is not None
    }
    followed = tuple(
        _track_finding(thread, note, moves.get(_range_for_note(note, request)), diff) for thread, note in notes
    )
    changed = await _files_since_last_review(forge, request, threads, order.workflow, {file.new_path for file in files})
    return ReviewContext(diff, followed, diff_fingerprint(files), changed)


def _iter_finding_notes(
    threads: Iterable[MergeRequestThread], *, but: str
) -> Iterator[tuple[MergeRequestThread, ThreadNote]]:
    for thread in threads:
        for note in thread.notes:
            if (
                note.path
                and note.marker is not None
                and note.marker.part is NoteKind.FINDING
                and note.marker.order != but
            ):
                yield thread, note


def _range_for_note(note: ThreadNote, request: MergeRequestDetails) -> CommitRange:
    """Return the commits to compare; a removed line has its number in the commit before the change."""
    made = note.at or ("" if note.old or note.marker is None else note.marker.sha)
    return made, request.base_sha if note.old else request.change.head


def _ranges_to_compare(
    notes: Iterable[tuple[MergeRequestThread, ThreadNote]], request: MergeRequestDetails
) -> Iterable[CommitRange]:
    """Return the distinct commit ranges, the newest first."""
    newest = sorted(notes, key=lambda one: -one[1].id)
    ends = dict.fromkeys(_range_for_note(note, request) for _, note in newest if note.line)
    return [between for between in ends if all(between)][:REVIEW_COMPARISONS]


async def _compare(forge: GitLabWriter, between: CommitRange) -> CommitComparison | None:
    """Return None if a commit no longer exists or the difference is too large."""
    if between[0] == between[1]:
        return CommitComparison()
    try:
        return await forge.compare_commits(*between)
    except (GitLabNotFound, GitLabRequestRefused):
        return None


def _track_finding(thread: MergeRequestThread, note: ThreadNote, moves: LineMoves | None, diff: Diff) -> TrackedFinding:
    stands = moves.locate(note.old_path if note.old else note.path, note.line) if moves and note.line else _NOWHERE
    if stands.fate is LineFate.UNKNOWN:
        stands = _find_by_text(note, diff)
    state, path, line = _judge_state(note, stands, diff)
    if state is not FindingState.FIXED and is_dismissed(thread):
        state = FindingState.DISMISSED
    elif state in (FindingState.STILL, FindingState.MOVED) and thread.resolved:
        state = FindingState.BACK
    return TrackedFinding(thread=thread, note=note, state=state, path=path, line=line)


_NOWHERE = LineLocation(LineFate.UNKNOWN)


def is_dismissed(thread: MergeRequestThread) -> bool:
    """Return whether a person dismissed the finding: in words, or by resolving its thread while its line is there."""
    return thread.dismissed or (thread.resolved and not thread.resolved_by_bot)


def _judge_state(note: ThreadNote, stands: LineLocation, diff: Diff) -> tuple[FindingState, str, int]:
    if stands.fate in (LineFate.CHANGED, LineFate.GONE):
        return FindingState.FIXED, stands.path or note.path, stands.line
    if stands.fate is LineFate.UNKNOWN:
        return FindingState.UNKNOWN, note.path, 0
    spot = diff.find_position(stands.path, stands.line, old=note.old)
    if spot is None:
        return FindingState.OUTSIDE, stands.path, 0
    if note.old and spot.new_line:  # the change no longer removes it
        return FindingState.FIXED, spot.new_path, spot.new_line
    same = (spot.new_path, stands.line) == (note.path, note.line)
    return FindingState.STILL if same else FindingState.MOVED, spot.new_path, stands.line


def _find_by_text(note: ThreadNote, diff: Diff) -> LineLocation:
    """Find the line by its text, in its own file or else in any, if it occurs once.

    A renamed file has two names in the diff, which count as one place.
    """
    known, same = note.marker.finding if note.marker else "", dict[DiffPosition | None, tuple[str, int]]()
    for path, line, code in diff.iter_lines(old=note.old):
        if is_distinctive(code) and has_line_fingerprint(known, line_fingerprint(note.path, code)):
            same.setdefault(diff.find_position(path, line, old=note.old), (path, line))
    places = [place for place in same.values() if place[0] == note.path] or [*same.values()]
    return LineLocation(LineFate.MOVED, *places[0]) if len(places) == 1 else _NOWHERE


async def _files_since_last_review(
    forge: GitLabWriter,
    request: MergeRequestDetails,
    threads: Iterable[MergeRequestThread],
    workflow: str,
    paths: set[str],
) -> tuple[str, ...]:
    """Return the files that changed since the last review; empty also if all of them did."""
    last = _last_review_head(threads, workflow)
    found = await _compare(forge, (last, request.change.head)) if last and request.change.head else None
    if found is None or not found.is_complete:
        return ()
    since = paths & {file.new_path for file in found.files}
    return tuple(sorted(since)) if since != paths else ()


def _last_review_head(threads: Iterable[MergeRequestThread], workflow: str) -> str:
    """Return the commit of the newest result."""
    results = [
        (note.id, note.marker.sha)
        for thread in threads
        for note in thread.notes
        if note.marker is not None and note.marker.part is NoteKind.RESULT and note.marker.wf == workflow
    ]
    return max(results, default=(0, ""))[1]

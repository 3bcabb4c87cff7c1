"""Post findings on the lines of a diff, each once, and list those that cannot be posted there in the result's note.

    published = await publish_findings(forge, merge_request, result.findings, marker, public=not applied.internal_notes)
    NoteDraft(text=f"{outcome.text}\\n\\n{findings_summary(published)}", …)

A crash and a second delivery of the order do not post a finding twice. A thread on a line is always public, so none is
opened where notes are internal. With `begin` the findings are only drafts, which are released together with the result;
`repost_lost_findings` then finds those that GitLab did not post. At the end of a review, `ReviewFinisher` resolves the
threads of fixed findings, reopens those that came back, and summarizes all findings in one line.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from hummingbird.config.settings import Settings
from hummingbird.core.diffs import Diff, DiffPosition
from hummingbird.core.errors import GitLabNotFound, GitLabRequestRefused, GitLabWriteUncertain
from hummingbird.core.findings import (
    PostedFinding,
    ReviewFinding,
    Severity,
    SuggestedEdit,
    finding_fingerprint,
    has_same_text,
)
from hummingbird.core.limits import FINDING_TITLE_CHARS
from hummingbird.core.orders import WorkOrder
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.write.protocol import (
    GitLabWriter,
    MergeRequestDetails,
    MergeRequestThread,
    NoteDraft,
    NoteKind,
    NoteMarker,
)
from hummingbird.service.diff_comparison import REVIEW_LINKS
from hummingbird.service.draft_batch import DraftBatch
from hummingbird.service.finding_lifecycle import (
    FindingState,
    ReviewContext,
    ReviewSummary,
    TrackedFinding,
    is_dismissed,
)
from hummingbird.service.note_text import markdown_link, merge_request_url
from hummingbird.service.publisher import ResultPublisher

BeginBatch: TypeAlias = Callable[[MergeRequestDetails, NoteMarker], Awaitable[DraftBatch | None]]
_SEVERITY_ORDER = tuple(Severity)


@dataclass(frozen=True, slots=True)
class PublishedFindings:
    """What became of the findings.

    `inline` are on their lines; `listed` are not, so their text belongs in the note. `batch` holds the drafts of some
    inline findings until it is released; `fingerprints` are those of the inline findings.
    """

    inline: tuple[ReviewFinding, ...] = ()
    listed: tuple[ReviewFinding, ...] = ()
    batch: DraftBatch | None = field(default=None, compare=False)
    fingerprints: tuple[str, ...] = field(default=(), compare=False)


def earlier_findings(threads: Iterable[MergeRequestThread]) -> tuple[PostedFinding, ...]:
    """Return all findings that were posted on a merge request, by any run and workflow, including resolved ones."""
    return tuple(
        PostedFinding(
            path=note.path,
            line=note.line,
            fingerprint=note.marker.finding,
            resolved=thread.resolved,
            dismissed=thread.dismissed,
        )
        for thread in threads
        for note in thread.notes
        if note.marker is not None and note.marker.part is NoteKind.FINDING
    )


async def publish_findings(
    forge: GitLabWriter,
    merge_request: MergeRequestDetails,
    findings: Sequence[ReviewFinding],
    marker: NoteMarker,
    *,
    public: bool,
    begin: BeginBatch | None = None,
) -> PublishedFindings:
    """Post the findings on their lines, or as drafts with `begin`.

    `merge_request` is as the run saw it, and `marker` is the order's. If another commit is the head by now, lines mean
    something else and nothing is posted. Raises what the GitLab writer raises, except for a line that GitLab refuses.
    It can then be called again.
    """
    ranked = _separate_suggestions(
        sorted(dict.fromkeys(findings), key=lambda finding: _SEVERITY_ORDER.index(finding.severity))
    )
    iid, head = merge_request.change.iid, merge_request.change.head
    if not ranked or not public:
        return PublishedFindings(listed=tuple(ranked))
    if (marker.sha and marker.sha != head) or (await forge.merge_request(iid)).change.head != head:
        if begin is not None:
            await begin(merge_request, marker)  # deletes what an earlier try has drafted
        return PublishedFindings(listed=tuple(ranked))
    diff = Diff(await forge.diffs(iid))
    batch = None if begin is None else await begin(merge_request, marker)
    posting = _FindingPoster(
        forge, merge_request, marker, await _find_fingerprints(forge, iid) | _batch_fingerprints(batch), batch
    )
    stands = [(finding, await posting.post_once(finding, diff)) for finding in ranked]
    marks = tuple(mark for _, mark in stands if mark)
    return PublishedFindings(
        tuple(finding for finding, mark in stands if mark),
        tuple(finding for finding, mark in stands if not mark),
        batch if batch is not None and batch.contains_any(marks) else None,
        marks,
    )


def _separate_suggestions(findings: Iterable[ReviewFinding]) -> list[ReviewFinding]:
    """Let only one of several overlapping suggestions be applied with a click.

    The tool ensures that within one process, but a run may have continued in another one.
    """
    offered: list[tuple[str, SuggestedEdit]] = []
    found: list[ReviewFinding] = []
    for finding in findings:
        change = SuggestedEdit(finding.line - finding.lines_above, finding.line, "")
        clicked = finding.applies_cleanly and not any(
            path == finding.path and change.overlaps(other) for path, other in offered
        )
        offered += [(finding.path, change)] if clicked else []
        found.append(replace(finding, applies_cleanly=clicked))
    return found


async def repost_lost_findings(
    forge: GitLabWriter, merge_request: MergeRequestDetails, published: PublishedFindings, marker: NoteMarker
) -> tuple[ReviewFinding, ...]:
    """Post findings that were released with the result but are missing; return those that GitLab refuses.

    GitLab may drop a draft silently if it does not accept its line.
    """
    if published.batch is None:
        return ()
    there = await _find_fingerprints(forge, merge_request.change.iid)
    pairs = zip(published.inline, published.fingerprints, strict=True)
    missing = [finding for finding, mark in pairs if mark not in there]
    return (await publish_findings(forge, merge_request, missing, marker, public=True)).listed


async def _find_fingerprints(forge: GitLabWriter, iid: int) -> set[str]:
    return {one.fingerprint for one in earlier_findings(await forge.threads(iid))}


def _batch_fingerprints(batch: DraftBatch | None) -> set[str]:
    return set() if batch is None else batch.findings


@dataclass(slots=True)
class _FindingPoster:
    forge: GitLabWriter
    merge_request: MergeRequestDetails
    marker: NoteMarker
    posted: set[str]
    batch: DraftBatch | None = None

    async def post_once(self, finding: ReviewFinding, diff: Diff) -> str:
        """Return the finding's fingerprint if it is on its line now, or will be with the batch; else nothing."""
        spot = diff.find_position(finding.path, finding.line, old=finding.old)
        if spot is None:
            return ""
        code = diff.line_text(finding.path, finding.line, old=finding.old)
        known = finding_fingerprint(replace(finding, path=spot.new_path), code)
        if known not in self.posted:
            await self._post(finding, spot, known)
        return known if known in self.posted else ""

    async def _post(self, finding: ReviewFinding, spot: DiffPosition, known: str) -> None:
        """Try to post the finding once.

        A finding that may have been posted is looked for and not posted again, because a slow GitLab may still post it.
        A refused line raises nothing; GitLab refuses it with status 400, sometimes with 500.
        """
        draft = _build_draft(finding, msgspec.structs.replace(self.marker, part=NoteKind.FINDING, finding=known))
        if self.batch is not None:
            self.posted |= {known} if await self.batch.hold(spot, draft) else set()
            return
        try:
            await self.forge.open_line_thread(self.merge_request, spot, draft)
            self.posted.add(known)
        except GitLabWriteUncertain:
            self.posted |= await _find_fingerprints(self.forge, self.merge_request.change.iid)
        except (GitLabRequestRefused, GitLabNotFound):
            return


def _build_draft(finding: ReviewFinding, marker: NoteMarker) -> NoteDraft:
    """Return the finding's note; a suggestion that nobody tried is shown as code and cannot be applied with a click."""
    if finding.suggestion is None or not finding.applies_cleanly:
        return NoteDraft(above=_severity_label(finding), text=_full_text(finding), marker=marker)
    return NoteDraft(
        above=_severity_label(finding),
        text=finding.display_text,
        suggestion=finding.suggestion,
        suggested_above=finding.lines_above,
        marker=marker,
    )


def findings_summary(published: PublishedFindings) -> str:
    """Return Markdown for the note, the most serious findings first, or an empty string.

    Of findings on their lines only the beginning is repeated. The text holds the model's words, so it belongs in a
    draft's `text`, which is sanitized.
    """
    parts = []
    if published.inline:
        rows = (f"- {_finding_heading(finding)} {_first_line(finding)}" for finding in published.inline)
        parts.append("\n".join(["Findings, each on its line of the diff:", "", *rows]))
    if published.listed:
        items = (f"- {_finding_heading(finding)} {_indent_item(_full_text(finding))}" for finding in published.listed)
        title = "Further findings:" if published.inline else "Findings:"
        parts.append("\n".join([title, "", *items]))
    return "\n\n".join(parts)


def _severity_label(finding: ReviewFinding) -> str:
    return f"**{finding.severity.capitalize()}**"


def _finding_heading(finding: ReviewFinding) -> str:
    where = f"{finding.path}:{finding.line}".replace("`", "'")
    side = " (as it was before)" if finding.old else ""
    return f"{_severity_label(finding)} `{shorten_line(where, FINDING_TITLE_CHARS)}`{side}:"


def _first_line(finding: ReviewFinding) -> str:
    return shorten_line(finding.display_text.strip().split("\n")[0].replace("`", "'"), FINDING_TITLE_CHARS)


def _full_text(finding: ReviewFinding) -> str:
    if finding.suggestion is None:
        return finding.display_text.strip()
    instead = f"lines {finding.first_line} to {finding.line}" if finding.lines_above else "that line"
    untried = "" if finding.applies_cleanly else " (not tried, so not offered to be applied)"
    if not finding.suggestion:
        return f"{finding.display_text.strip()}\n\nWithout {instead}{untried}."
    fence = "`" * (3 + finding.suggestion.count("`"))
    return f"{finding.display_text.strip()}\n\nInstead of {instead}{untried}:\n\n{fence}\n{finding.suggestion}\n{fence}"


def _indent_item(text: str) -> str:
    """Indent the text as part of its list item."""
    first, *others = text.split("\n")
    return "\n".join([first, *(f"  {line}" if line.strip() else "" for line in others)])


_STATES_SHOWN = (
    FindingState.STILL,
    FindingState.MOVED,
    FindingState.BACK,
    FindingState.FIXED,
    FindingState.DISMISSED,
    FindingState.OUTSIDE,
    FindingState.UNKNOWN,
)
_STATES_WITHOUT_LINK = (FindingState.FIXED, FindingState.DISMISSED)  # nobody has to look there


@dataclass(frozen=True, slots=True)
class FindingsStatus:
    """The state of all findings at the end of a review.

    `repeats` are the threads whose finding was reported again. `since` is when the review started, by GitLab's clock.
    """

    tracked: Sequence[TrackedFinding]
    repeats: frozenset[str] = frozenset()
    since: float = 0.0

    def threads_to_resolve(self) -> tuple[MergeRequestThread, ...]:
        """Return the open threads of fixed findings, except those in which a person has the last word."""
        open_ones = (
            one.thread
            for one in self.tracked
            if self._current_state(one) is FindingState.FIXED and not one.thread.resolved
        )
        return tuple(thread for thread in open_ones if thread.notes[-1].by_bot)

    def threads_to_reopen(self) -> tuple[MergeRequestThread, ...]:
        """Return the resolved threads of findings that came back."""
        return tuple(one.thread for one in self.tracked if one.state is FindingState.BACK and one.thread.resolved)

    def summary_line(self, new: int, order: WorkOrder, settings: Settings) -> str:
        """Return our own Markdown about all findings; empty if there were none before."""
        if not self.tracked:
            return ""
        url = merge_request_url(settings, order.project, order.mr_iid)
        counts = [f"{new} new" if new else "nothing new", *self._state_counts(url)]
        return f"Findings: {', '.join(counts)}."

    def _state_counts(self, url: str) -> Iterator[str]:
        for state in _STATES_SHOWN:
            ones = [one for one in self.tracked if self._current_state(one) is state]
            if ones:
                yield _state_text(state, [f"{url}#note_{one.note.id}" for one in ones])

    def _current_state(self, one: TrackedFinding) -> FindingState | None:
        """Return the state to show, or None for a finding that needs no mention.

        It needs none if it was fixed before this review started, or is resolved and cannot be located.
        """
        if one.state in (FindingState.UNKNOWN, FindingState.OUTSIDE) and one.thread.resolved:
            return None
        if one.state is not FindingState.FIXED:
            return one.state
        if one.thread.id in self.repeats:
            return FindingState.STILL
        just = one.thread.resolved_by_bot and one.thread.resolved_at >= self.since
        return FindingState.FIXED if just or not one.thread.resolved else None


@dataclass(frozen=True, slots=True)
class ReviewFinisher:
    """Finish the review of one order; after an error it can be called again and does the same."""

    forge: GitLabWriter
    order: WorkOrder
    request: MergeRequestDetails
    settings: Settings

    async def finish(
        self, publication: ResultPublisher, review: ReviewContext, findings: Sequence[ReviewFinding], began: int
    ) -> ReviewSummary:
        """Resolve and reopen threads, and return the summary; `began` is the placeholder's note.

        If another commit is the head by now, its own review handles the threads, and the summary names no diff.
        """
        iid, new = self.order.mr_iid, review.new_findings(findings)
        threads = await self.forge.threads(iid)
        since = next((note.made_at for thread in threads for note in thread.notes if note.id == began), 0.0)
        end = FindingsStatus(self._current_findings(review, threads, new), review.threads_of_repeats(findings), since)
        line = end.summary_line(len(new), self.order, self.settings)
        if (await self.forge.merge_request(iid)).change.head != self.request.change.head:
            return ReviewSummary(line)
        await publication.resolve_threads(iid, end.threads_to_resolve())
        await publication.reopen_threads(iid, end.threads_to_reopen())
        return ReviewSummary(line, review.patch)

    def _current_findings(
        self, review: ReviewContext, threads: Iterable[MergeRequestThread], new: Sequence[ReviewFinding]
    ) -> Sequence[TrackedFinding]:
        """Return the workflow's own findings with their current threads, which people may change during a run.

        Findings that an order of the same session posted for this one count as new.
        """
        fresh = {thread.id: thread for thread in threads}
        known = (replace(one, thread=fresh.get(one.thread.id, one.thread)) for one in review.tracked)
        return [_apply_dismissal(one) for one in known if self._is_ours(one, new)]

    def _is_ours(self, one: TrackedFinding, new: Sequence[ReviewFinding]) -> bool:
        marker = one.note.marker
        if marker is None or marker.wf != self.order.workflow:
            return False
        return marker.id != self.order.session_id or not any(has_same_text(finding, one.earlier) for finding in new)


def _apply_dismissal(one: TrackedFinding) -> TrackedFinding:
    if one.state is FindingState.FIXED or not is_dismissed(one.thread):
        return one
    return replace(one, state=FindingState.DISMISSED)


def _state_text(state: FindingState, urls: Sequence[str]) -> str:
    words = f"{len(urls)} {state}"
    if state in _STATES_WITHOUT_LINK:
        return words
    if len(urls) == 1:
        return markdown_link(words, urls[0])
    links = (markdown_link(str(number), url) for number, url in enumerate(urls[:REVIEW_LINKS], 1))
    return f"{words} ({', '.join(links)})"

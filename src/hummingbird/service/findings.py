"""Findings on the lines of a diff (W2): each is posted once, whatever crashes and is asked for again (N3), or told in
the result's note where it cannot stand on its line.

    published = await publish(forge, merge_request, conducted.findings, marker, public=not applied.internal_notes)
    Draft(text=f"{outcome.text}\\n\\n{summary(published)}", …)

A thread on a line is always public. So where notes are internal, none is opened (N1). With `begin` they are only held
back, for whoever posts the result to release them with it; `lost` tells what is not there in spite of that.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from hummingbird.domain.diffs import Diff, Spot
from hummingbird.domain.errors import ForgeMissing, ForgeRefused, WriteUncertain
from hummingbird.domain.findings import Earlier, Finding, Severity, fingerprint
from hummingbird.domain.limits import FINDING_TITLE_CHARS
from hummingbird.domain.notes import Draft, Marker, Part
from hummingbird.domain.suggestions import Change
from hummingbird.domain.text import shortened
from hummingbird.ports.forge import Forge, MergeRequest, Thread
from hummingbird.service.batches import Batch

Begin: TypeAlias = Callable[[MergeRequest, Marker], Awaitable[Batch | None]]
_ORDER = tuple(Severity)


@dataclass(frozen=True, slots=True)
class Published:
    """`inline` stand on their lines, `listed` do not: their text belongs into the note. `batch`: what holds some of the
    former until it is released; `marks` are their fingerprints."""

    inline: tuple[Finding, ...] = ()
    listed: tuple[Finding, ...] = ()
    batch: Batch | None = field(default=None, compare=False)
    marks: tuple[str, ...] = field(default=(), compare=False)


def earlier_of(threads: Iterable[Thread]) -> tuple[Earlier, ...]:
    """The findings that stand in a merge request, of whichever run and workflow, resolved ones too."""
    return tuple(
        Earlier(
            path=note.path,
            line=note.line,
            fingerprint=note.marker.finding,
            resolved=thread.resolved,
            dismissed=thread.dismissed,
        )
        for thread in threads
        for note in thread.notes
        if note.marker is not None and note.marker.part is Part.FINDING
    )


async def publish(
    forge: Forge,
    merge_request: MergeRequest,
    findings: Sequence[Finding],
    marker: Marker,
    *,
    public: bool,
    begin: Begin | None = None,
) -> Published:
    """`merge_request` as the run saw it, `marker` the order's. Once another commit is the head, lines mean something
    else: nothing is posted any more. Raises what the forge raises, but for a line that it does not take; to be called
    again then."""
    ranked = _apart(sorted(dict.fromkeys(findings), key=lambda finding: _ORDER.index(finding.severity)))
    iid, head = merge_request.change.iid, merge_request.change.head
    if not ranked or not public or (marker.sha and marker.sha != head):
        return Published(listed=tuple(ranked))
    if (await forge.merge_request(iid)).change.head != head:
        return Published(listed=tuple(ranked))
    diff = Diff(await forge.diffs(iid))
    batch = None if begin is None else await begin(merge_request, marker)
    posting = _Posting(forge, merge_request, marker, await _there(forge, iid) | _held(batch), batch)
    stands = [(finding, await posting.done(finding, diff)) for finding in ranked]
    marks = tuple(mark for _, mark in stands if mark)
    return Published(
        tuple(finding for finding, mark in stands if mark),
        tuple(finding for finding, mark in stands if not mark),
        batch if batch is not None and batch.speaks_of(marks) else None,
        marks,
    )


def _apart(findings: Iterable[Finding]) -> list[Finding]:
    """Of suggestions that meet, one can be applied with a click. The tool sees to that within one process; a run may
    have gone on in another one."""
    offered: list[tuple[str, Change]] = []
    found: list[Finding] = []
    for finding in findings:
        change = Change(finding.line - finding.above, finding.line, "")
        clicked = finding.tried and not any(path == finding.path and change.meets(other) for path, other in offered)
        offered += [(finding.path, change)] if clicked else []
        found.append(replace(finding, tried=clicked))
    return found


async def lost(forge: Forge, merge_request: MergeRequest, published: Published, marker: Marker) -> tuple[Finding, ...]:
    """What was released with the result, and is to be seen nowhere: posted by itself, or returned if that is refused
    too. GitLab may swallow a note whose line it does not take."""
    if published.batch is None:
        return ()
    there = await _there(forge, merge_request.change.iid)
    pairs = zip(published.inline, published.marks, strict=True)
    missing = [finding for finding, mark in pairs if mark not in there]
    return (await publish(forge, merge_request, missing, marker, public=True)).listed


async def _there(forge: Forge, iid: int) -> set[str]:
    return {one.fingerprint for one in earlier_of(await forge.threads(iid))}


def _held(batch: Batch | None) -> set[str]:
    return set() if batch is None else batch.findings


@dataclass(slots=True)
class _Posting:
    forge: Forge
    merge_request: MergeRequest
    marker: Marker
    there: set[str]
    batch: Batch | None = None

    async def done(self, finding: Finding, diff: Diff) -> str:
        """Its fingerprint if it stands on its line now, or will with the batch."""
        spot = diff.spot(finding.path, finding.line, old=finding.old)
        if spot is None:
            return ""
        code = diff.text(finding.path, finding.line, old=finding.old)
        known = fingerprint(replace(finding, path=spot.new_path), code)
        if known not in self.there:
            await self._post(finding, spot, known)
        return known if known in self.there else ""

    async def _post(self, finding: Finding, spot: Spot, known: str) -> None:
        """Once: what may have been written is looked for, and not written again, for a slow GitLab may write it yet.
        A line that is refused raises nothing; GitLab says so with 400, and at times with 500 (facts 2.4)."""
        draft = _draft(finding, msgspec.structs.replace(self.marker, part=Part.FINDING, finding=known))
        if self.batch is not None:
            self.there |= {known} if await self.batch.hold(spot, draft) else set()
            return
        try:
            await self.forge.comment(self.merge_request, spot, draft)
            self.there.add(known)
        except WriteUncertain:
            self.there |= await _there(self.forge, self.merge_request.change.iid)
        except (ForgeRefused, ForgeMissing):
            return


def _draft(finding: Finding, marker: Marker) -> Draft:
    """What nobody has tried cannot be applied with a click: it is shown as code."""
    if finding.suggestion is None or not finding.tried:
        return Draft(above=_word(finding), text=_whole(finding), marker=marker)
    return Draft(
        above=_word(finding),
        text=finding.shown,
        suggestion=finding.suggestion,
        suggested_above=finding.above,
        marker=marker,
    )


def summary(published: Published) -> str:
    """Markdown for the note: the most serious first; of those on their lines no more than how they begin. Holds a
    model's words: for a draft's `text`. Empty if there are none."""
    parts = []
    if published.inline:
        rows = (f"- {_head(finding)} {_beginning(finding)}" for finding in published.inline)
        parts.append("\n".join(["Findings, each on its line of the diff:", "", *rows]))
    if published.listed:
        told = (f"- {_head(finding)} {_indented(_whole(finding))}" for finding in published.listed)
        title = "Further findings:" if published.inline else "Findings:"
        parts.append("\n".join([title, "", *told]))
    return "\n\n".join(parts)


def _word(finding: Finding) -> str:
    return f"**{finding.severity.capitalize()}**"


def _head(finding: Finding) -> str:
    where = f"{finding.path}:{finding.line}".replace("`", "'")
    side = " (as it was before)" if finding.old else ""
    return f"{_word(finding)} `{shortened(where, FINDING_TITLE_CHARS)}`{side}:"


def _beginning(finding: Finding) -> str:
    return shortened(finding.shown.strip().split("\n")[0].replace("`", "'"), FINDING_TITLE_CHARS)


def _whole(finding: Finding) -> str:
    if finding.suggestion is None:
        return finding.shown.strip()
    instead = f"lines {finding.first_line} to {finding.line}" if finding.above else "that line"
    untried = "" if finding.tried else " (not tried, so not offered to be applied)"
    if not finding.suggestion:
        return f"{finding.shown.strip()}\n\nWithout {instead}{untried}."
    fence = "`" * (3 + finding.suggestion.count("`"))
    return f"{finding.shown.strip()}\n\nInstead of {instead}{untried}:\n\n{fence}\n{finding.suggestion}\n{fence}"


def _indented(text: str) -> str:
    """As part of its item of the list."""
    first, *others = text.split("\n")
    return "\n".join([first, *(f"  {line}" if line.strip() else "" for line in others)])

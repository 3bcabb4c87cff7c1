"""Hold back the findings and the result of a review and release them together, so that people get one notification.

    batch = await begin_batch(forge, clock, merge_request, marker)  # None: not possible here
    if await batch.hold(position, draft): …
    await batch.release()                                           # then look which notes are there

GitLab releases all drafts that the bot holds on a merge request, whichever order created them. If it fails on the way,
some notes are posted and all drafts still exist. So drafts that other orders left behind are deleted first, and those
that were posted are deleted before the next release. No note depends on the batch: each is looked for afterwards, and a
missing one is posted by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hummingbird.core.diffs import DiffPosition
from hummingbird.core.errors import GitLabNotFound, GitLabRequestRefused, GitLabWriteUncertain
from hummingbird.core.limits import NOTE_LOOKS_S, NOTE_WRITES
from hummingbird.core.protocols.observer import Clock
from hummingbird.gitlab.write.protocol import (
    GitLabWriter,
    MergeRequestDetails,
    MergeRequestThread,
    NoteDraft,
    NoteKind,
    NoteMarker,
    PendingNote,
)
from hummingbird.service.thread_history import END_PARTS


@dataclass(slots=True)
class DraftBatch:
    """The drafts of one order, which `marker` names.

    `findings` are the fingerprints of drafts that exist already, whichever order created them.
    """

    forge: GitLabWriter
    clock: Clock
    merge_request: MergeRequestDetails
    marker: NoteMarker
    findings: set[str]
    waiting: bool = False  # whether this order has created a draft

    async def hold(self, place: DiffPosition | MergeRequestThread, draft: NoteDraft) -> bool:
        """Create a draft and return whether the release will post it.

        A draft that may have been created is looked for, and not created again. Raises GitLabUnavailable and
        CredentialRefused.
        """
        try:
            await self.forge.add_pending_note(self.merge_request, place, draft)
        except GitLabWriteUncertain:
            if not await self._is_there_after_doubt(draft.marker):
                return False
        except (GitLabNotFound, GitLabRequestRefused):
            return False
        self.waiting = True
        return True

    def contains_any(self, findings: Iterable[str]) -> bool:
        """Return whether a release posts something of this order, even if another order created the draft."""
        return self.waiting or not self.findings.isdisjoint(findings)

    async def release(self) -> None:
        """Post all drafts; afterwards this order has none left.

        Raises GitLabUnavailable and CredentialRefused.
        """
        for _ in range(NOTE_WRITES):
            try:
                return await self.forge.publish_pending_notes(self._iid)
            except GitLabWriteUncertain:
                if await self._is_all_released():
                    return None
            except (GitLabNotFound, GitLabRequestRefused):
                break
        for one in await self.forge.pending_notes(self._iid):
            if one.marker is not None and one.marker.order == self.marker.order:
                await self.forge.delete_pending_note(self._iid, one.id)
        return None

    @property
    def _iid(self) -> int:
        return self.merge_request.change.iid

    async def _is_there_after_doubt(self, marker: NoteMarker | None) -> bool:
        for pause_s in NOTE_LOOKS_S:
            await self.clock.sleep(pause_s)
            held = (one.marker for one in await self.forge.pending_notes(self._iid))
            if marker in held or marker in _note_markers(await self.forge.threads(self._iid)):
                return True
        return False

    async def _is_all_released(self) -> bool:
        """Return whether no draft is left; delete those that were posted, or the next release would repeat them."""
        for pause_s in NOTE_LOOKS_S:
            await self.clock.sleep(pause_s)
            there = {_marker_key(marker) for marker in _note_markers(await self.forge.threads(self._iid))}
            left = []
            for one in await self.forge.pending_notes(self._iid):
                if one.marker is not None and _marker_key(one.marker) in there:
                    await self.forge.delete_pending_note(self._iid, one.id)
                else:
                    left.append(one)
            if not left:
                return True
        return False


async def begin_batch(
    forge: GitLabWriter, clock: Clock, merge_request: MergeRequestDetails, marker: NoteMarker
) -> DraftBatch | None:
    """Return a batch without the drafts of dead orders.

    Return None if the server has no drafts, or if there are drafts that are not ours and would be released too. Raises
    what the GitLab writer raises.
    """
    iid = merge_request.change.iid
    try:
        held = await forge.pending_notes(iid)
    except (GitLabNotFound, GitLabRequestRefused):
        return None
    if any(one.marker is None for one in held):
        return None
    batch = DraftBatch(forge, clock, merge_request, marker, set())
    there = _note_markers(await forge.threads(iid)) if held else ()
    for one in held:
        if _is_left_behind(one, batch, there):
            await forge.delete_pending_note(iid, one.id)
        elif one.marker is not None:
            batch.findings |= {one.marker.finding} - {""}
    return batch


def _is_left_behind(one: PendingNote, batch: DraftBatch, there: Iterable[NoteMarker]) -> bool:
    """Return whether the draft must be deleted.

    It must if it is about another commit, was posted already, belongs to an order that has ended, or is our own: that
    may have another text by now and is created again. A draft of another order about this commit stays, because that
    order would post it anyway.
    """
    marker, head = one.marker, batch.merge_request.change.head
    if marker is None:
        return False
    own = marker.order == batch.marker.order
    elsewhere = bool(marker.sha) and marker.sha != head
    said = any(
        _marker_key(each) == _marker_key(marker) or (each.order == marker.order and each.part in END_PARTS)
        for each in there
    )
    return own or elsewhere or said


def _note_markers(threads: Iterable[MergeRequestThread]) -> tuple[NoteMarker, ...]:
    return tuple(note.marker for thread in threads for note in thread.notes if note.marker is not None)


def _marker_key(marker: NoteMarker) -> tuple[str, ...]:
    """Return what identifies a note: a finding by its fingerprint, everything else by its order and kind."""
    return (marker.finding,) if marker.part is NoteKind.FINDING else (marker.order, marker.part)

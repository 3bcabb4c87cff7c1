"""What the service says on a merge request, and where (N1–N3, N6, R5, S3).

Everything here may be asked for again at any time, by another process too, and is then said only if it is not there.
Nothing is said less privately than where it began or than the configuration wants: what cannot go into an internal
thread becomes a new one, and never a public note. The words are in wording; what GitLab needs, the forge knows.

Finding nothing (N6). A placeholder is posted in any case (N1), for nobody knows before. With `line` the result is one
line. With `silence` an automatic order has no result note: its placeholder has said so, is marked with an emoji, which
sends no mail, and its thread is resolved where GitLab can. A person who asked gets the line always. A thread that began
by itself and has nothing to report is resolved: nobody has anything to do in it. A run that had to end early cannot
know that there is nothing, and says so in a note.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import msgspec

from hummingbird.config.configuration import Applied, Configuration
from hummingbird.domain.errors import ForgeError, ForgeMissing, ForgeRefused
from hummingbird.domain.incoming import NoteWritten
from hummingbird.domain.notes import Draft, Marker, Part, marker_of
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.ports.clock import Clock
from hummingbird.ports.forge import Forge, MergeRequest, Posted, Thread
from hummingbird.service import verdict_wording, wording
from hummingbird.service.batches import Batch, begun
from hummingbird.service.evidence_words import evidence
from hummingbird.service.investigating import Conducted
from hummingbird.service.known import NOT_TOLD, Told
from hummingbird.service.lifecycle import NOT_REVIEWED, Reviewed
from hummingbird.service.posting import (
    Found,
    Posting,
    Threads,
    answer_to,
    end_of,
    finding_of,
    placeholder_of,
    refusal_of,
)

READING = "eyes"
NOTHING_FOUND = "white_check_mark"
DISMISSED = "ok_hand"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a result has to go: into that thread, or into a new one if it is empty. `note_id`: the placeholder's, 0 if
    there is none. `internal`: only members may read it."""

    discussion_id: str
    internal: bool
    note_id: int = 0


class Publication:
    """On one project, as one configuration wants it. Every method raises ForgeError and CredentialRefused; then it has
    to be asked for again, and nothing is said twice."""

    def __init__(self, forge: Forge, configuration: Configuration, clock: Clock) -> None:
        self._forge = forge
        self._configuration = configuration
        self._posting = Posting(clock)

    async def placeholder(self, order: WorkOrder, applied: Applied, threads: Threads) -> Place:
        """Says that the work begins (N1). `threads`: all of the merge request, as they are now."""
        place = _place(order, applied, threads)
        if order.cause is Cause.REPLY:
            with suppress(ForgeError):  # a courtesy: the answer matters
                await self._forge.award(order.mr_iid, order.note_id, READING)
            return place
        above = wording.placeholder(order, applied, self._configuration)
        draft = Draft(text="", above=above, marker=marker_of(order, Part.PLACEHOLDER))
        posted = await self._once(order, place, draft, placeholder_of(order), threads)
        if place.internal and not posted.internal:  # an earlier try under another configuration, or a forge that leaks
            return Place("", internal=True, note_id=posted.note_id)
        return Place(posted.discussion_id, posted.internal, posted.note_id)

    async def batch(self, merge_request: MergeRequest, marker: Marker) -> Batch | None:
        """For what is to be said with one notification."""
        return await begun(self._forge, self._posting.clock, merge_request, marker)

    async def result(
        self,
        order: WorkOrder,
        place: Place,
        applied: Applied,
        conducted: Conducted,
        told: Told = NOT_TOLD,
        *,
        batch: Batch | None = None,
        reviewed: Reviewed = NOT_REVIEWED,
    ) -> Posted | None:
        """What came of a run: an answer, nothing (N6), or that it failed; None if that is told to nobody. With what
        `batch` holds, if there is one."""
        outcome = conducted.outcome
        nothing = wording.nothing_found(outcome.text) and outcome.answered and not wording.ended_early(outcome)
        if nothing and wording.silent(order, applied):
            await self._unsaid(order, place)
            return None
        marker = marker_of(order, Part.RESULT if outcome.answered else Part.FAILED)
        draft = Draft(
            text=_text(conducted, nothing=nothing),
            more="" if nothing else told.text,
            above="\n\n".join(filter(None, ("" if nothing else _above(conducted, told), reviewed.line))),
            below="\n\n".join(
                (*evidence(conducted), wording.footer(order, conducted, self._configuration.settings, told.trouble))
            ),
            folds=wording.transcript(conducted.transcript),
            marker=msgspec.structs.replace(marker, patch=reviewed.patch),
        )
        if batch is not None:
            await self._together(batch, order, place, draft)
        posted = await self._once(order, place, draft, end_of(order))
        if nothing and order.cause.automatic:
            await self._resolve(order.mr_iid, posted.discussion_id)
        return posted

    async def _together(self, batch: Batch, order: WorkOrder, place: Place, draft: Draft) -> None:
        """The result last: GitLab releases in that order, so that once it is there, nothing of the order is to come.
        What is not there afterwards is said as if there were no batch."""
        threads = await self._forge.threads(order.mr_iid)
        thread = _thread(threads, place.discussion_id)
        if thread is not None and not thread.internal and end_of(order)(threads) is None:
            await batch.hold(thread, draft)
        await batch.release()

    async def afterthought(self, order: WorkOrder, place: Place, text: str, mark: str) -> None:
        """What the result should have said. `mark` tells it from others."""
        draft = Draft(text=text, marker=msgspec.structs.replace(marker_of(order, Part.FINDING), finding=mark))
        await self._once(order, place, draft, finding_of(order, mark))

    async def failed(
        self, order: WorkOrder, place: Place, sentence: str, found: str = "", trouble: Sequence[str] = ()
    ) -> None:
        """That there will be no result, where nobody has an outcome to tell of (N6)."""
        draft = Draft(
            text=wording.failed(sentence, found),
            below=wording.bare_footer(order, self._configuration.settings, trouble),
            marker=marker_of(order, Part.FAILED),
        )
        await self._once(order, place, draft, end_of(order))

    async def expired(self, order: WorkOrder) -> None:
        """That there is no session any more, to whoever replied (S3). Counts for nothing, like every answer."""
        above = wording.expired(order, self._configuration.settings)
        draft = Draft(text="", above=above, answers=order.note_id)
        await self._reply(order.mr_iid, order.discussion_id, draft, answer_to(order.note_id))

    async def decline(self, order: WorkOrder, text: str) -> None:
        """Answer the note that asked for a run which may not start any more."""
        draft = Draft(text=text, answers=order.note_id)
        await self._reply(order.mr_iid, order.discussion_id, draft, answer_to(order.note_id))

    async def answer(self, note: NoteWritten, text: str) -> None:
        """Help, or what is wrong with a command; `text` may quote it (R3)."""
        draft = Draft(text=text, answers=note.note_id)
        await self._reply(note.change.iid, note.discussion_id, draft, answer_to(note.note_id))

    async def refuse(self, note: NoteWritten) -> None:
        """Once for each person in each thread, so that nobody without access can make us talk (R5)."""
        draft = Draft(text="", above=wording.refusal(), answers=note.note_id)
        await self._reply(note.change.iid, note.discussion_id, draft, refusal_of(note.note_id, note.author.id))

    async def dismissed(self, note: NoteWritten) -> None:
        """That nothing will be done about a finding is heard (W2), without a word: an emoji sends no mail."""
        with suppress(ForgeMissing, ForgeRefused):
            await self._posting.surely(lambda: self._forge.award(note.change.iid, note.note_id, DISMISSED))
        await self._resolve(note.change.iid, note.discussion_id)

    async def resolve(self, iid: int, threads: Sequence[Thread]) -> None:
        """Those that are open and can be (N4)."""
        for thread in threads:
            if not thread.resolved and not thread.individual:
                await self._resolve(iid, thread.id)

    async def reopen(self, iid: int, threads: Sequence[Thread]) -> None:
        """Those whose matter has come back (W2)."""
        for thread in threads:
            with suppress(ForgeMissing, ForgeRefused):
                await self._posting.surely(partial(self._forge.reopen, iid, thread.id))

    async def _resolve(self, iid: int, discussion_id: str) -> None:
        with suppress(ForgeMissing, ForgeRefused):  # gone, or not ours to resolve: no reason to leave the others open
            await self._posting.surely(lambda: self._forge.resolve(iid, discussion_id))

    async def _unsaid(self, order: WorkOrder, place: Place) -> None:
        if place.note_id:
            with suppress(ForgeMissing, ForgeRefused):
                await self._posting.surely(lambda: self._forge.award(order.mr_iid, place.note_id, NOTHING_FOUND))
        if place.discussion_id:
            await self._resolve(order.mr_iid, place.discussion_id)

    async def _once(
        self, order: WorkOrder, place: Place, draft: Draft, found: Found, seen: Threads | None = None
    ) -> Posted:
        iid = order.mr_iid

        async def write(threads: Threads) -> Posted:
            thread = _thread(threads, place.discussion_id)
            if thread is None or (place.internal and not thread.internal):
                return await self._forge.open_thread(iid, draft, internal=place.internal)
            return await self._forge.reply(iid, thread, draft)

        return await self._posting.once(lambda: self._forge.threads(iid), found, write, seen)

    async def _reply(self, iid: int, discussion_id: str, draft: Draft, found: Found) -> None:
        """In the thread itself: it holds no analysis. Nobody is answered whose thread is gone."""

        async def look() -> Threads:
            thread = await self._forge.thread(iid, discussion_id)
            return () if thread is None else (thread,)

        async def write(threads: Threads) -> Posted:
            if not threads:
                raise ForgeMissing("The thread of the question is gone.")
            return await self._forge.reply(iid, threads[0], draft)

        with suppress(ForgeMissing):
            await self._posting.once(look, found, write)


def _place(order: WorkOrder, applied: Applied, threads: Threads) -> Place:
    """The thread of whoever asked; a new one if there is none, or if it is public and the result must not be."""
    internal = applied.internal_notes or order.internal
    thread = _thread(threads, order.discussion_id)
    if thread is None or (internal and not thread.internal):
        return Place("", internal)
    return Place(thread.id, thread.internal)


def _thread(threads: Threads, discussion_id: str) -> Thread | None:
    return next((thread for thread in threads if thread.id == discussion_id), None) if discussion_id else None


def _above(conducted: Conducted, told: Told) -> str:
    """What rules and memory say, before the model does (N8)."""
    verdict = conducted.verdict
    judged = verdict_wording.above(verdict, conducted.outcome.text) if verdict is not None else ""
    return "\n\n".join(filter(None, (told.banner, judged)))


def _text(conducted: Conducted, *, nothing: bool) -> str:
    outcome = conducted.outcome
    answer = wording.NOTHING_TO_REPORT if nothing else outcome.text
    last = answer if outcome.answered else wording.found_so_far(answer)
    return "\n\n".join(filter(None, (wording.ended_early(outcome), last)))

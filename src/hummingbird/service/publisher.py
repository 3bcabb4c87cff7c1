"""Post the service's notes on a merge request, each once and in the right thread.

Every method may be called again at any time, by another process too, and then posts only what is missing. No note is
more public than the thread where its order started or than the configuration wants: what cannot go into an internal
thread opens a new internal one, never a public note.

A placeholder is posted before it is known whether there is anything to report. If a run finds nothing:

- With `line`, the result is one line. A person who asked always gets that line.
- With `silence`, an automatic order posts no result. Its placeholder gets an emoji, which sends no mail.
- The thread of an automatic order is resolved where GitLab can, because nobody has anything to do in it.
- A run that had to end early cannot know that there is nothing, and says so in a note.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import msgspec

from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.core.errors import GitLabNotFound, GitLabRequestRefused, GitLabWriteError, GitLabWriteUncertain
from hummingbird.core.limits import NOTE_LOOKS_S, NOTE_WRITES
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.observer import Clock
from hummingbird.gitlab.webhook_events import NoteWritten
from hummingbird.gitlab.write.protocol import (
    CollapsedSection,
    GitLabWriter,
    MergeRequestDetails,
    MergeRequestThread,
    NoteDraft,
    NoteKind,
    NoteMarker,
    PostedNoteRef,
    ThreadNote,
    marker_for_order,
)
from hummingbird.service import note_text, thread_history
from hummingbird.service.coverage import NO_LOG_READ, evidence_paragraph, has_read_no_log
from hummingbird.service.draft_batch import DraftBatch, begin_batch
from hummingbird.service.failure_history import NO_KNOWN_FAILURE_TEXT, KnownFailureText
from hummingbird.service.failure_summary import (
    fold_answer,
    more_failures_section,
    reasons_section,
    write_excerpt,
    write_summary,
)
from hummingbird.service.finding_lifecycle import NO_REVIEW_SUMMARY, ReviewSummary
from hummingbird.service.protocols import InvestigationResult

Threads: TypeAlias = Sequence[MergeRequestThread]
LoadThreads: TypeAlias = Callable[[], Awaitable[Threads]]
FindNote: TypeAlias = Callable[[Threads], PostedNoteRef | None]
WriteNote: TypeAlias = Callable[[Threads], Awaitable[PostedNoteRef]]


def placeholder_finder(order: WorkOrder) -> FindNote:
    """Find the order's placeholder, or that of an order of the same session whose run died."""

    def find(threads: Threads) -> PostedNoteRef | None:
        place = thread_history.find_placeholder(order, threads)
        return PostedNoteRef(place[0].id, place[1].id, place[1].internal) if place else None

    return find


def end_note_finder(order: WorkOrder) -> FindNote:
    """Find the note that ends the order, whether it succeeded or failed."""

    def find(threads: Threads) -> PostedNoteRef | None:
        ends = ((thread, thread_history.find_end_note(order, (thread,))) for thread in threads)
        return next((PostedNoteRef(thread.id, note.id, note.internal) for thread, note in ends if note), None)

    return find


def finding_note_finder(order: WorkOrder, mark: str) -> FindNote:
    """Find the note of this order that has the given mark."""
    return _first_note_finder(
        lambda note, _: note.marker is not None and (note.marker.order, note.marker.finding) == (order.id, mark)
    )


def answer_finder(note_id: int) -> FindNote:
    """Find the answer to a note."""
    return _first_note_finder(lambda note, _: note.answers == note_id)


def refusal_finder(note_id: int, person_id: int) -> FindNote:
    """Find any answer that this person got in the thread.

    An answer whose question was deleted counts for everybody: deleting a question and asking again must not make us
    post more.
    """

    def counts(note: ThreadNote, thread: MergeRequestThread) -> bool:
        asked = next((each.author_id for each in thread.notes if each.id == note.answers), person_id)
        return bool(note.answers) and (note.answers == note_id or asked == person_id)

    return _first_note_finder(counts)


def _first_note_finder(fits: Callable[[ThreadNote, MergeRequestThread], bool]) -> FindNote:
    def find(threads: Threads) -> PostedNoteRef | None:
        fitting = (
            PostedNoteRef(thread.id, note.id, note.internal)
            for thread in threads
            for note in thread.notes
            if fits(note, thread)
        )
        return next(fitting, None)

    return find


@dataclass(frozen=True, slots=True)
class NotePoster:
    """Post a note exactly once: look, write, and look again when it is uncertain whether the write succeeded.

    A write that GitLab seemed to fail may have succeeded and may be slow to appear. So the note is looked for more than
    once before it is written again. The caller knows how to tell one note from another.
    """

    clock: Clock

    async def post_once(
        self, look: LoadThreads, found: FindNote, write: WriteNote, seen: Threads | None = None
    ) -> PostedNoteRef:
        """Return the note that is there already, or the one written now; `seen` is what a look has just shown.

        Raises what looking and writing raise; GitLabWriteUncertain only after NOTE_WRITES writes of which none was
        found.
        """
        threads = await look() if seen is None else seen
        for left in reversed(range(NOTE_WRITES)):
            if posted := found(threads):
                return posted
            try:
                return await write(threads)
            except GitLabWriteUncertain:
                threads = await self._look_again(look, found)
                if not left and not found(threads):
                    raise
        posted = found(threads)
        assert posted is not None, "the last write raises if it cannot be found"
        return posted

    async def _look_again(self, look: LoadThreads, found: FindNote) -> Threads:
        threads: Threads = ()
        for pause_s in NOTE_LOOKS_S:
            await self.clock.sleep(pause_s)
            threads = await look()
            if found(threads):
                break
        return threads

    async def retry_write(self, write: Callable[[], Awaitable[None]]) -> None:
        """Repeat a write that may safely happen twice.

        Raises what the write raises; GitLabWriteUncertain only when all tries are used up.
        """
        for pause_s in NOTE_LOOKS_S:
            try:
                return await write()
            except GitLabWriteUncertain:
                await self.clock.sleep(pause_s)
        return await write()


READING_EMOJI = "eyes"
NOTHING_FOUND_EMOJI = "white_check_mark"
DISMISSED_EMOJI = "ok_hand"


@dataclass(frozen=True, slots=True)
class ThreadLocation:
    """Where a result goes: into the thread `discussion_id`, or into a new one if that is empty.

    `note_id` is the placeholder's, 0 if there is none. `internal` means that only members may read it.
    """

    discussion_id: str
    internal: bool
    note_id: int = 0


class ResultPublisher:
    """Post the notes of one project, as one configuration wants it.

    Every method raises GitLabWriteError and CredentialRefused. It can then be called again, and posts nothing twice.
    """

    def __init__(self, forge: GitLabWriter, configuration: Configuration, clock: Clock) -> None:
        self._forge = forge
        self._configuration = configuration
        self._poster = NotePoster(clock)

    async def post_placeholder(self, order: WorkOrder, applied: ResolvedWorkflow, threads: Threads) -> ThreadLocation:
        """Announce that the work starts, and return where the result goes.

        `threads` are all current threads of the merge request. A reply gets an emoji instead of a placeholder.
        """
        place = _choose_location(order, applied, threads)
        if order.cause is OrderCause.REPLY:
            with suppress(GitLabWriteError):  # the emoji is a courtesy and must not prevent the answer
                await self._forge.add_emoji(order.mr_iid, order.note_id, READING_EMOJI)
            return place
        above = note_text.placeholder_text(order, applied, self._configuration)
        draft = NoteDraft(text="", above=above, marker=marker_for_order(order, NoteKind.PLACEHOLDER))
        posted = await self._post_once(order, place, draft, placeholder_finder(order), threads)
        if (
            place.internal and not posted.internal
        ):  # an earlier try had another configuration, or GitLab dropped `internal`
            return ThreadLocation("", internal=True, note_id=posted.note_id)
        return ThreadLocation(posted.discussion_id, posted.internal, posted.note_id)

    async def start_batch(self, merge_request: MergeRequestDetails, marker: NoteMarker) -> DraftBatch | None:
        """Begin a batch of notes that send one notification; None if that is not possible."""
        return await begin_batch(self._forge, self._poster.clock, merge_request, marker)

    async def post_result(
        self,
        order: WorkOrder,
        place: ThreadLocation,
        applied: ResolvedWorkflow,
        result: InvestigationResult,
        known: KnownFailureText = NO_KNOWN_FAILURE_TEXT,
        *,
        batch: DraftBatch | None = None,
        reviewed: ReviewSummary = NO_REVIEW_SUMMARY,
    ) -> PostedNoteRef | None:
        """Post what a run led to: an answer, that there is nothing to report, or its failure.

        Return None if nothing is posted. The note is released together with what `batch` holds, if there is one.
        """
        outcome = result.outcome
        nothing = (
            note_text.is_nothing_found(outcome.text) and outcome.answered and not note_text.early_end_text(outcome)
        )
        if nothing and note_text.is_silent(order, applied):
            await self._mark_nothing_found(order, place)
            return None
        marker = marker_for_order(order, NoteKind.RESULT if outcome.answered else NoteKind.FAILED)
        draft = NoteDraft(
            text=_result_text(order, result, nothing=nothing),
            above="\n\n".join(
                filter(None, ("" if nothing else self._first_screen(order, result, known), reviewed.line))
            ),
            below="\n\n".join(
                (
                    *evidence_paragraph(result),
                    note_text.build_footer(order, result, self._configuration.settings, known.trouble),
                )
            ),
            folds=(
                *(() if nothing else _result_sections(order, result, known)),
                *note_text.transcript_folds(result.transcript, self._configuration.settings),
            ),
            marker=msgspec.structs.replace(marker, patch=reviewed.patch),
        )
        if batch is not None:
            await self._release_batch(batch, order, place, draft)
        posted = await self._post_once(order, place, draft, end_note_finder(order))
        if nothing and order.cause.is_automatic:
            await self._resolve_thread(order.mr_iid, posted.discussion_id)
        return posted

    def _first_screen(self, order: WorkOrder, result: InvestigationResult, told: KnownFailureText) -> str:
        """Return what rules and the history of failures say, which stands above everything else."""
        verdict, settings = result.verdict, self._configuration.settings
        summary = (
            "" if verdict is None else write_summary(verdict, result.failures, order, settings, result.outcome.text)
        )
        warning = NO_LOG_READ if has_read_no_log(order, result) else ""
        return "\n\n".join(filter(None, (warning, summary, told.banner)))

    async def _release_batch(
        self, batch: DraftBatch, order: WorkOrder, place: ThreadLocation, draft: NoteDraft
    ) -> None:
        """Add the result to the batch and release it.

        The result goes last: GitLab releases drafts in their order, so once the result is there, no other note of the
        order is to come. What is missing afterwards is posted as if there were no batch.
        """
        threads = await self._forge.threads(order.mr_iid)
        thread = _find_thread(threads, place.discussion_id)
        if thread is not None and not thread.internal and end_note_finder(order)(threads) is None:
            await batch.hold(thread, draft)
        await batch.release()

    async def post_afterthought(self, order: WorkOrder, place: ThreadLocation, text: str, mark: str) -> None:
        """Post what the result should have said; `mark` distinguishes this note from others of the order."""
        draft = NoteDraft(
            text=text, marker=msgspec.structs.replace(marker_for_order(order, NoteKind.FINDING), finding=mark)
        )
        await self._post_once(order, place, draft, finding_note_finder(order, mark))

    async def post_failure(
        self, order: WorkOrder, place: ThreadLocation, sentence: str, found: str = "", trouble: Sequence[str] = ()
    ) -> None:
        """Post that there will be no result, for a run that ended without an outcome."""
        draft = NoteDraft(
            text=note_text.failure_text(sentence, found),
            below=note_text.build_bare_footer(order, self._configuration.settings, trouble),
            marker=marker_for_order(order, NoteKind.FAILED),
        )
        await self._post_once(order, place, draft, end_note_finder(order))

    async def post_expired(self, order: WorkOrder) -> None:
        """Tell the person who replied that the session no longer exists; like every answer, this is not a result."""
        above = note_text.session_expired_text(order, self._configuration.settings)
        draft = NoteDraft(text="", above=above, answers=order.note_id)
        await self._reply_once(order.mr_iid, order.discussion_id, draft, answer_finder(order.note_id))

    async def post_decline(self, order: WorkOrder, text: str) -> None:
        """Answer a note whose run is no longer allowed to start."""
        draft = NoteDraft(text=text, answers=order.note_id)
        await self._reply_once(order.mr_iid, order.discussion_id, draft, answer_finder(order.note_id))

    async def post_answer(self, note: NoteWritten, text: str) -> None:
        """Answer with help, or with what is wrong with a command; `text` may quote it."""
        draft = NoteDraft(text=text, answers=note.note_id)
        await self._reply_once(note.change.iid, note.discussion_id, draft, answer_finder(note.note_id))

    async def post_refusal(self, note: NoteWritten) -> None:
        """Tell a person without access so, once per person and thread.

        More notes would let people without access make us post as often as they like.
        """
        draft = NoteDraft(text="", above=note_text.refusal_text(), answers=note.note_id)
        await self._reply_once(note.change.iid, note.discussion_id, draft, refusal_finder(note.note_id, note.author.id))

    async def acknowledge_dismissal(self, note: NoteWritten) -> None:
        """Acknowledge a dismissed finding with an emoji, which sends no mail, and resolve its thread."""
        with suppress(GitLabNotFound, GitLabRequestRefused):
            await self._poster.retry_write(
                lambda: self._forge.add_emoji(note.change.iid, note.note_id, DISMISSED_EMOJI)
            )
        await self._resolve_thread(note.change.iid, note.discussion_id)

    async def resolve_threads(self, iid: int, threads: Sequence[MergeRequestThread]) -> None:
        """Resolve those threads that are open and can be resolved."""
        for thread in threads:
            if not thread.resolved and not thread.individual:
                await self._resolve_thread(iid, thread.id)

    async def reopen_threads(self, iid: int, threads: Sequence[MergeRequestThread]) -> None:
        """Reopen the threads of findings that have come back."""
        for thread in threads:
            with suppress(GitLabNotFound, GitLabRequestRefused):
                await self._poster.retry_write(partial(self._forge.reopen, iid, thread.id))

    async def _resolve_thread(self, iid: int, discussion_id: str) -> None:
        # The thread is gone, or we may not resolve it: that is no reason to leave the others open.
        with suppress(GitLabNotFound, GitLabRequestRefused):
            await self._poster.retry_write(lambda: self._forge.resolve(iid, discussion_id))

    async def _mark_nothing_found(self, order: WorkOrder, place: ThreadLocation) -> None:
        if place.note_id:
            with suppress(GitLabNotFound, GitLabRequestRefused):
                await self._poster.retry_write(
                    lambda: self._forge.add_emoji(order.mr_iid, place.note_id, NOTHING_FOUND_EMOJI)
                )
        if place.discussion_id:
            await self._resolve_thread(order.mr_iid, place.discussion_id)

    async def _post_once(
        self, order: WorkOrder, place: ThreadLocation, draft: NoteDraft, found: FindNote, seen: Threads | None = None
    ) -> PostedNoteRef:
        iid = order.mr_iid

        async def write(threads: Threads) -> PostedNoteRef:
            thread = _find_thread(threads, place.discussion_id)
            if thread is None or (place.internal and not thread.internal):
                return await self._forge.open_thread(iid, draft, internal=place.internal)
            return await self._forge.reply(iid, thread, draft)

        return await self._poster.post_once(lambda: self._forge.threads(iid), found, write, seen)

    async def _reply_once(self, iid: int, discussion_id: str, draft: NoteDraft, found: FindNote) -> None:
        """Reply in the thread itself, even a public one, because the note holds no analysis.

        Do nothing if the thread is gone.
        """

        async def look() -> Threads:
            thread = await self._forge.thread(iid, discussion_id)
            return () if thread is None else (thread,)

        async def write(threads: Threads) -> PostedNoteRef:
            if not threads:
                raise GitLabNotFound("The thread of the question is gone.")
            return await self._forge.reply(iid, threads[0], draft)

        with suppress(GitLabNotFound):
            await self._poster.post_once(look, found, write)


def _choose_location(order: WorkOrder, applied: ResolvedWorkflow, threads: Threads) -> ThreadLocation:
    """Return the thread of the person who asked, or a new one.

    A new one is needed if there is no such thread, or if it is public and the result must be internal.
    """
    internal = applied.internal_notes or order.internal
    thread = _find_thread(threads, order.discussion_id)
    if thread is None or (internal and not thread.internal):
        return ThreadLocation("", internal)
    return ThreadLocation(thread.id, thread.internal)


def _find_thread(threads: Threads, discussion_id: str) -> MergeRequestThread | None:
    return next((thread for thread in threads if thread.id == discussion_id), None) if discussion_id else None


def _result_text(order: WorkOrder, result: InvestigationResult, *, nothing: bool) -> str:
    """Return the text below the first screen: the decisive lines and the answer.

    The report that rules wrote repeats the first screen at length, so it is folded.
    """
    outcome = result.outcome
    answer = note_text.NOTHING_TO_REPORT if nothing else outcome.text
    last = answer if outcome.answered else note_text.findings_so_far_text(answer)
    first = [note_text.no_model_text(result.no_model_because), note_text.early_end_text(outcome)]
    if result.verdict is not None and not nothing and not result.is_known_failure:
        first.append(write_excerpt(result.verdict, result.failures))
    title, _ = fold_answer(order, result)
    return "\n\n".join(filter(None, (*first, "" if title else last)))


def _result_sections(
    order: WorkOrder, result: InvestigationResult, told: KnownFailureText
) -> tuple[CollapsedSection, ...]:
    """Return what readers unfold: the rules' whole report, the reasons, and what is known about the failures."""
    sections: list[CollapsedSection] = []
    verdict = result.verdict
    if verdict is not None and not result.is_known_failure:
        sections += more_failures_section(verdict, result.failures)
    title, folded = fold_answer(order, result)
    if title:
        sections.append(CollapsedSection(title, folded, markdown=True))
    if verdict is not None:
        sections.append(reasons_section(verdict, result.failures))
    if told.text:
        sections.append(CollapsedSection("Seen before?", told.text, markdown=True))
    return tuple(sections)

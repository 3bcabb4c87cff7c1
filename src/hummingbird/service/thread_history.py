"""Read from the threads of a merge request which runs there were, which are under way, and which threads are open.

Only the markers of the bot's own notes identify a run. A run belongs to its session wherever its notes are: the answer
to a public command may be in an internal thread. The session of an automatic run is that of its commit, and that of a
command is that of its note, so markers tell the two apart.
"""

from collections.abc import Iterator, Sequence

from hummingbird.config.configuration import ResolvedWorkflow
from hummingbird.core.orders import OrderCause, RunOverrides, WorkOrder, session_id_for
from hummingbird.gitlab.write.protocol import MergeRequestDetails, MergeRequestThread, NoteKind, NoteMarker, ThreadNote
from hummingbird.service.triggers import ignore_reason

OPENED = "opened"
END_PARTS = frozenset({NoteKind.RESULT, NoteKind.FAILED})


def run_refusal_reason(
    order: WorkOrder,
    merge_request: MergeRequestDetails,
    threads: Sequence[MergeRequestThread],
    applied: ResolvedWorkflow,
) -> str:
    """Return why the order must not run, or an empty string; one that has started is always finished."""
    if not order.needs_check or has_started(order, threads):
        return ""
    change = merge_request.change
    if change.state != OPENED:
        return "the merge request is no longer open"
    if change.head != order.sha:
        return "the head of the merge request has moved on"
    if why := _ignore_reason_now(order, merge_request, applied):
        return why
    if _has_result_for_commit(order, threads):
        return f"{order.workflow} has looked at this commit already"
    return "" if runs_left(order, threads, applied) > 0 else _too_often_reason(order, applied)


def runs_left(order: WorkOrder, threads: Sequence[MergeRequestThread], applied: ResolvedWorkflow) -> int:
    """Return how many automatic runs, this one included, the workflow may still do on the merge request."""
    return applied.max_runs_per_mr - _count_other_runs(order, threads)


def overtaken_reason(
    order: WorkOrder, threads: Sequence[MergeRequestThread], applied: ResolvedWorkflow, placeholder_id: int
) -> str:
    """Return why the order must not go on, or an empty string. Earlier runs may already have reached the limit.

    Orders for two pushes may look at the same moment, when neither has its placeholder yet. GitLab's note ids say which
    was first.
    """
    before = _count_other_runs(order, threads, before=placeholder_id)
    return "" if before < applied.max_runs_per_mr else _too_often_reason(order, applied)


def _too_often_reason(order: WorkOrder, applied: ResolvedWorkflow) -> str:
    return f"{order.workflow} has run as often as it may on this merge request ({applied.max_runs_per_mr})"


def _ignore_reason_now(order: WorkOrder, merge_request: MergeRequestDetails, applied: ResolvedWorkflow) -> str:
    """Apply the rules of the trigger to the merge request as it is now: the event may be hours old."""
    change = merge_request.change
    if order.cause is OrderCause.MERGE_REQUEST and change.draft:
        return "the merge request is now a draft"
    by_actor = ignore_reason(applied, username=order.actor, branch=change.source_branch)
    return by_actor or ignore_reason(applied, username=merge_request.author, branch="")


def last_reviewed_patch(order: WorkOrder, threads: Sequence[MergeRequestThread]) -> str:
    """Return the diff fingerprint of the workflow's newest result.

    Older results do not count: what was fixed since may be back.
    """
    results = [
        (note.id, marker.patch) for _, note, marker in _iter_marked_notes(threads) if _is_result(marker, order.workflow)
    ]
    return max(results, default=(0, ""))[1]


def _is_result(marker: NoteMarker, workflow: str) -> bool:
    return marker.part is NoteKind.RESULT and marker.wf == workflow


def has_started(order: WorkOrder, threads: Sequence[MergeRequestThread]) -> bool:
    """Return whether the order has posted its placeholder and no end note followed.

    Such an order is finished even if the head has moved on or is green again.
    """
    places = _iter_placeholders(order.session_id, threads)
    return any(marker.order == order.id and not _has_end_after(note, order, threads) for _, note, marker in places)


def find_placeholder(
    order: WorkOrder, threads: Sequence[MergeRequestThread]
) -> tuple[MergeRequestThread, ThreadNote] | None:
    """Return the order's own placeholder; for an automatic order, else that of a dead run of the same session."""
    places = _iter_placeholders(order.session_id, threads)
    own = ((thread, note) for thread, note, marker in places if marker.order == order.id)
    return next(own, None) or _find_orphan(order, threads)


def _find_orphan(
    order: WorkOrder, threads: Sequence[MergeRequestThread]
) -> tuple[MergeRequestThread, ThreadNote] | None:
    """Return a placeholder without an end: orders of a session run one after the other, so nobody works on it now."""
    if not order.cause.is_automatic:
        return None
    places = _iter_placeholders(order.session_id, threads)
    return next(((thread, note) for thread, note, _ in places if not _has_end_after(note, order, threads)), None)


def find_end_note(order: WorkOrder, threads: Sequence[MergeRequestThread]) -> ThreadNote | None:
    """Return the note that ended this very order."""
    ends = (
        note for _, note, marker in _iter_marked_notes(threads) if marker.order == order.id and marker.part in END_PARTS
    )
    return next(ends, None)


def open_threads(threads: Sequence[MergeRequestThread], workflow: str) -> tuple[MergeRequestThread, ...]:
    """Return the workflow's threads that can be resolved.

    People's discussions stay open, even if somebody gave a command in the middle of one: a thread is ours if our note
    is the first in it, or the second, after the command.
    """
    return tuple(
        thread
        for thread in threads
        if not thread.resolved and not thread.individual and _workflow_of_thread(thread) == workflow
    )


def stale_threads(threads: Sequence[MergeRequestThread], workflow: str, head: str) -> tuple[MergeRequestThread, ...]:
    """Return the open threads about another commit; none while the head is not known.

    A finding on a line stays: nobody knows yet whether the push has fixed it, and the next review does not repeat it.
    """
    found = ((thread, thread.marker) for thread in open_threads(threads, workflow))
    return tuple(thread for thread, marker in found if marker and head and _is_about_other_commit(marker, head))


def _is_about_other_commit(marker: NoteMarker, head: str) -> bool:
    return marker.part is not NoteKind.FINDING and bool(marker.sha) and marker.sha != head


def find_session_overrides(thread: MergeRequestThread) -> RunOverrides:
    """Return the last choice of each override that people made in the thread's session."""
    made, first = RunOverrides(), thread.marker
    for _, _, marker in _iter_marked_notes([thread]):
        if first is not None and marker.id == first.id:
            made = marker.overrides.merge_over(made)
    return made


def _workflow_of_thread(thread: MergeRequestThread) -> str:
    """Return the workflow that the first or second note names."""
    return next((note.marker.wf for note in thread.notes[:2] if note.marker is not None), "")


def _iter_marked_notes(
    threads: Sequence[MergeRequestThread],
) -> Iterator[tuple[MergeRequestThread, ThreadNote, NoteMarker]]:
    for thread in threads:
        for note in thread.notes:
            if note.marker is not None:
                yield thread, note, note.marker


def _iter_placeholders(
    session_id: str, threads: Sequence[MergeRequestThread]
) -> Iterator[tuple[MergeRequestThread, ThreadNote, NoteMarker]]:
    for thread, note, marker in _iter_marked_notes(threads):
        if marker.id == session_id and marker.part is NoteKind.PLACEHOLDER:
            yield thread, note, marker


def _has_end_after(place: ThreadNote, order: WorkOrder, threads: Sequence[MergeRequestThread]) -> bool:
    """Return whether the session has an end note after this one; another order may have ended it.

    GitLab's note ids always increase.
    """
    ends = (
        note
        for _, note, marker in _iter_marked_notes(threads)
        if marker.id == order.session_id and marker.part in END_PARTS
    )
    return any(note.id > place.id for note in ends)


def _has_result_for_commit(order: WorkOrder, threads: Sequence[MergeRequestThread]) -> bool:
    """Return whether a session about this commit has a result.

    The first note says which commit a session is about: a later answer in it may be given while the head is another
    one.
    """
    about: dict[str, NoteMarker] = {}
    # A bare marker does not say how its run ended; where such markers come from, any of them settled the commit.
    bare = (marker for _, _, marker in _iter_marked_notes(threads) if marker.is_bare and marker.wf == order.workflow)
    if order.sha and any(marker.sha == order.sha for marker in bare):
        return True
    for _, _, marker in _iter_marked_notes(threads):
        first = about.setdefault(marker.id, marker)
        if marker.part is NoteKind.RESULT and first.wf == order.workflow and first.sha == order.sha:
            return True
    return False


def _count_other_runs(order: WorkOrder, threads: Sequence[MergeRequestThread], *, before: int = 0) -> int:
    """Count the workflow's automatic runs by their placeholders, failed ones too; only earlier ones with `before`.

    The run that this order continues does not count. A thread with bare markers is one run.
    """
    place = find_placeholder(order, threads)
    ours = {order.id, place[1].marker.order} if place and place[1].marker else {order.id}
    orders = {
        marker.order
        for _, note, marker in _iter_marked_notes(threads)
        if marker.part is NoteKind.PLACEHOLDER
        and (not before or note.id < before)
        and marker.wf == order.workflow
        and not marker.is_bare
        and _is_automatic(order, marker)
    }
    bare = {
        thread.id for thread, _, marker in _iter_marked_notes(threads) if marker.is_bare and marker.wf == order.workflow
    }
    return len(orders - ours) + len(bare)


def _is_automatic(order: WorkOrder, marker: NoteMarker) -> bool:
    return marker.id == session_id_for(order.project, order.mr_iid, marker.wf, marker.sha)

"""What the threads of a merge request tell about runs (R7, N3, N4): what was done, what is under way, what is open.

Pure. A run is known by the markers of the bot's own notes alone, and belongs to a session wherever its notes are: the
answer to a public command may be in an internal thread. An automatic run is one whose session is that of its commit; a
command's is that of a note, so the two are told apart without asking.
"""

from collections.abc import Iterator, Sequence

from hummingbird.config.configuration import Applied
from hummingbird.domain.notes import Marker, Part
from hummingbird.domain.orders import Cause, Overrides, WorkOrder, session_of
from hummingbird.ports.forge import MergeRequest, NoteSeen, Thread
from hummingbird.service.routing import left_alone

OPENED = "opened"
ENDS = frozenset({Part.RESULT, Part.FAILED})


def may_run(order: WorkOrder, merge_request: MergeRequest, threads: Sequence[Thread], applied: Applied) -> str:
    """Why the order is not to be carried out, or nothing (R7). One that has begun and has no end is brought to it."""
    if not order.checked or begun(order, threads):
        return ""
    change = merge_request.change
    if change.state != OPENED:
        return "the merge request is no longer open"
    if change.head != order.sha:
        return "the head of the merge request has moved on"
    if why := _left_alone_now(order, merge_request, applied):
        return why
    if _handled(order, threads):
        return f"{order.workflow} has looked at this commit already"
    if _runs_besides(order, threads) >= applied.max_runs_per_mr:
        return f"{order.workflow} has run as often as it may on this merge request ({applied.max_runs_per_mr})"
    return ""


def _left_alone_now(order: WorkOrder, merge_request: MergeRequest, applied: Applied) -> str:
    """Apply the rules of the trigger to the merge request as it is now: the event may be hours old."""
    change = merge_request.change
    if order.cause is Cause.MERGE_REQUEST and change.draft:
        return "the merge request is a draft by now"
    by_actor = left_alone(applied, username=order.actor, branch=change.source_branch)
    return by_actor or left_alone(applied, username=merge_request.author, branch="")


def reviewed_patch(order: WorkOrder, threads: Sequence[Thread]) -> str:
    """The change that the workflow's newest result is about, whatever commit it was put onto (W2). Older ones do not
    count: what was mended since may be back."""
    results = [(note.id, marker.patch) for _, note, marker in _marked(threads) if _is_result(marker, order.workflow)]
    return max(results, default=(0, ""))[1]


def _is_result(marker: Marker, workflow: str) -> bool:
    return marker.part is Part.RESULT and marker.wf == workflow


def begun(order: WorkOrder, threads: Sequence[Thread]) -> bool:
    """Whether the order has posted its placeholder, and nobody its end since: it is to be brought to that, although the
    head may have moved on, or be green again."""
    places = _places(order.session_id, threads)
    return any(marker.order == order.id and not _ended_since(note, order, threads) for _, note, marker in places)


def placeholder_of(order: WorkOrder, threads: Sequence[Thread]) -> tuple[Thread, NoteSeen] | None:
    """The order's own; else, for an automatic one, that of an order of the same session whose run died (N3)."""
    places = _places(order.session_id, threads)
    own = ((thread, note) for thread, note, marker in places if marker.order == order.id)
    return next(own, None) or _orphan(order, threads)


def _orphan(order: WorkOrder, threads: Sequence[Thread]) -> tuple[Thread, NoteSeen] | None:
    """All orders of a session are carried out one after the other, so that nobody is at work on it now."""
    if not order.cause.automatic:
        return None
    places = _places(order.session_id, threads)
    return next(((thread, note) for thread, note, _ in places if not _ended_since(note, order, threads)), None)


def ended(order: WorkOrder, threads: Sequence[Thread]) -> NoteSeen | None:
    """The note that this very order has ended with."""
    ends = (note for _, note, marker in _marked(threads) if marker.order == order.id and marker.part in ENDS)
    return next(ends, None)


def open_threads(threads: Sequence[Thread], workflow: str) -> tuple[Thread, ...]:
    """Those of the workflow that can be resolved. What people discuss stays theirs, also if somebody gave a command in
    the middle of it: a thread is ours if our note is the first in it, or the second, after the command."""
    return tuple(
        thread
        for thread in threads
        if not thread.resolved and not thread.individual and _begun_by_us(thread) == workflow
    )


def stale(threads: Sequence[Thread], workflow: str, head: str) -> tuple[Thread, ...]:
    """The open ones about another commit; none while it is not known which one is the head. A finding on a line stays:
    nobody knows yet whether the push has mended it, and the next review does not say it again (W2)."""
    found = ((thread, thread.marker) for thread in open_threads(threads, workflow))
    return tuple(thread for thread, marker in found if marker and head and _about_another(marker, head))


def _about_another(marker: Marker, head: str) -> bool:
    return marker.part is not Part.FINDING and bool(marker.sha) and marker.sha != head


def session_overrides(thread: Thread) -> Overrides:
    """What people have chosen in the session that the thread is about, the last choice of each."""
    made, first = Overrides(), thread.marker
    for _, _, marker in _marked([thread]):
        if first is not None and marker.id == first.id:
            made = marker.overrides.over(made)
    return made


def _begun_by_us(thread: Thread) -> str:
    """The workflow of the first or the second note."""
    return next((note.marker.wf for note in thread.notes[:2] if note.marker is not None), "")


def _marked(threads: Sequence[Thread]) -> Iterator[tuple[Thread, NoteSeen, Marker]]:
    for thread in threads:
        for note in thread.notes:
            if note.marker is not None:
                yield thread, note, note.marker


def _places(session_id: str, threads: Sequence[Thread]) -> Iterator[tuple[Thread, NoteSeen, Marker]]:
    for thread, note, marker in _marked(threads):
        if marker.id == session_id and marker.part is Part.PLACEHOLDER:
            yield thread, note, marker


def _ended_since(place: NoteSeen, order: WorkOrder, threads: Sequence[Thread]) -> bool:
    """GitLab counts its notes upwards. Whoever ended it need not be the order that began it."""
    ends = (note for _, note, marker in _marked(threads) if marker.id == order.session_id and marker.part in ENDS)
    return any(note.id > place.id for note in ends)


def _handled(order: WorkOrder, threads: Sequence[Thread]) -> bool:
    """Whether a session about this commit has a result. It is about what its first note says: a later answer in it may
    be given while the head is another one."""
    about: dict[str, Marker] = {}
    for _, _, marker in _marked(threads):
        first = about.setdefault(marker.id, marker)
        if marker.part is Part.RESULT and first.wf == order.workflow and first.sha == order.sha:
            return True
    return False


def _runs_besides(order: WorkOrder, threads: Sequence[Thread]) -> int:
    """Automatic runs of the workflow, failed ones too: each placeholder's order is one, save that which we go on in."""
    place = placeholder_of(order, threads)
    ours = {order.id, place[1].marker.order} if place and place[1].marker else {order.id}
    orders = {
        marker.order
        for _, _, marker in _marked(threads)
        if marker.part is Part.PLACEHOLDER and marker.wf == order.workflow and _automatic(order, marker)
    }
    return len(orders - ours)


def _automatic(order: WorkOrder, marker: Marker) -> bool:
    return marker.id == session_of(order.project, order.mr_iid, marker.wf, marker.sha)

"""What the threads of a merge request tell about runs."""

from itertools import count
from typing import Any

import msgspec
import pytest

from hummingbird.core.orders import OrderCause, RunOverrides, WorkOrder, session_id_for
from hummingbird.gitlab.write.protocol import (
    MergeRequestDetails,
    MergeRequestThread,
    NoteKind,
    NoteMarker,
    NoteMarkers,
    ThreadNote,
)
from hummingbird.service.thread_history import (
    find_end_note,
    find_placeholder,
    find_session_overrides,
    has_started,
    last_reviewed_patch,
    open_threads,
    run_refusal_reason,
    stale_threads,
)
from tests.service.rules import HEAD, PROJECT, applied, change, configured

OLD = "b" * 40
LOOK = applied("look", configured({"look": {"max_runs_per_mr": 2}}))
NUMBERS = count(1)
MOVED_ON = "the head of the merge request has moved on"
HANDLED = "look has looked at this commit already"
LIMIT = "look has run as often as it may on this merge request (2)"


def session(about: str = HEAD, workflow: str = "look") -> str:
    return session_id_for(PROJECT, 7, workflow, about)


def order(name: str = "now", *, cause: OrderCause = OrderCause.PIPELINE, sha: str = HEAD, **more: Any) -> WorkOrder:
    values = {"session_id": session(sha), "workflow": "look", "project": PROJECT, "mr_iid": 7, **more}
    return WorkOrder(id=name, cause=cause, sha=sha, **values)


def ours(
    part: NoteKind, name: str, *, about: str = "", sha: str = HEAD, workflow: str = "look", **more: Any
) -> ThreadNote:
    """`about`: what the session is about; its commit, unless a command's note is."""
    marker = NoteMarker(id=session(about or sha, workflow), wf=workflow, sha=sha, order=name, part=part, **more)
    return ThreadNote(id=next(NUMBERS), author_id=99, by_bot=True, internal=False, marker=marker)


def theirs() -> ThreadNote:
    return ThreadNote(id=next(NUMBERS), author_id=11, by_bot=False, internal=False)


def thread(*notes: ThreadNote, individual: bool = False, resolved: bool = False) -> MergeRequestThread:
    return MergeRequestThread(id=f"t{next(NUMBERS)}", notes=notes, individual=individual, resolved=resolved)


def run(
    name: str, *, sha: str = HEAD, end: NoteKind | None = NoteKind.RESULT, about: str = "", workflow: str = "look"
) -> MergeRequestThread:
    begin = [theirs()] if about else []
    begin.append(ours(NoteKind.PLACEHOLDER, name, sha=sha, about=about, workflow=workflow))
    return thread(*begin, *([ours(end, name, sha=sha, about=about, workflow=workflow)] if end else []))


def request(*, head: str = HEAD, state: str = "opened") -> MergeRequestDetails:
    return MergeRequestDetails(change=change(head=head, state=state), project=PROJECT, author="ada", title="", url="")


def asked(*threads: MergeRequestThread, by: WorkOrder | None = None) -> str:
    return run_refusal_reason(by or order(), request(), threads, LOOK)


def test_nothing_speaks_against_the_first_run() -> None:
    assert asked() == ""
    assert asked(thread(theirs()), run("x", workflow="other"), run("y", workflow="other")) == ""


def test_a_commit_that_has_a_result_is_not_looked_at_again() -> None:
    assert asked(run("before")) == HANDLED


def test_a_result_about_another_commit_or_of_another_workflow_says_nothing_about_this_one() -> None:
    assert asked(run("before", sha=OLD)) == ""
    assert asked(run("before", workflow="other")) == ""


def test_a_command_that_looked_at_the_commit_has_handled_it() -> None:
    assert asked(run("command", about="note 5")) == HANDLED


def test_a_result_in_another_thread_than_its_placeholder_counts() -> None:
    public = thread(theirs(), ours(NoteKind.PLACEHOLDER, "command", about="note 5"))
    assert asked(public, thread(ours(NoteKind.RESULT, "command", about="note 5"))) == HANDLED


def test_a_failed_run_counts_for_the_limit_and_not_for_the_commit() -> None:
    assert asked(run("one", end=NoteKind.FAILED)) == ""
    assert asked(run("one", end=NoteKind.FAILED), run("two", end=NoteKind.FAILED)) == LIMIT


def test_a_failed_run_that_was_answered_by_a_reply_has_handled_the_commit() -> None:
    failed = run("one", end=NoteKind.FAILED)
    assert asked(thread(*failed.notes, theirs(), ours(NoteKind.RESULT, "reply"))) == HANDLED


def test_a_reply_given_at_this_commit_in_a_thread_about_an_older_one_does_not_handle_it() -> None:
    older = run("one", sha=OLD)
    assert asked(thread(*older.notes, theirs(), ours(NoteKind.RESULT, "reply", about=OLD, sha=HEAD))) == ""


def test_another_workflow_asked_for_in_a_failed_thread_does_not_handle_the_commit() -> None:
    failed, other = run("one", end=NoteKind.FAILED), run("two", about="note 5", workflow="other")
    assert asked(thread(*failed.notes, *other.notes)) == ""


def test_runs_on_older_commits_count_for_the_limit() -> None:
    assert asked(run("one", sha=OLD), run("two", sha="c" * 40)) == LIMIT


def test_commands_findings_and_other_workflows_do_not_count_for_the_limit() -> None:
    threads = [
        run("one", sha=OLD, about="note 1"),
        run("two", sha=OLD, about="note 2"),
        run("three", sha=OLD, workflow="other"),
        thread(ours(NoteKind.FINDING, "four", sha=OLD)),
        thread(ours(NoteKind.FINDING, "five", sha=OLD)),
        run("six", sha=OLD),
    ]
    assert asked(*threads) == ""
    assert asked(*threads, run("seven", sha="c" * 40)) == LIMIT


def test_two_placeholders_of_one_order_are_one_run() -> None:
    assert asked(run("one", sha=OLD), run("one", sha=OLD)) == ""


def test_a_limit_of_nothing_allows_nothing_by_itself() -> None:
    none = applied("look", configured({"look": {"max_runs_per_mr": 0}}))
    assert "as often as it may" in run_refusal_reason(order(), request(), [], none)
    assert run_refusal_reason(order(cause=OrderCause.COMMAND), request(), [], none) == ""


def test_a_head_that_moved_on_and_a_merge_request_that_closed_are_left() -> None:
    assert run_refusal_reason(order(), request(head=OLD), [], LOOK) == MOVED_ON
    assert run_refusal_reason(order(), request(state="merged"), [], LOOK) == "the merge request is no longer open"


@pytest.mark.parametrize(
    "free",
    [order(cause=OrderCause.COMMAND), order(cause=OrderCause.REPLY), order(forced=True), order("x", forced=True)],
)
def test_commands_replies_and_replays_bypass_all_of_it(free: WorkOrder) -> None:
    threads = [run("one"), run("two", sha=OLD), run("three", sha=OLD)]
    assert run_refusal_reason(free, request(head=OLD, state="closed"), threads, LOOK) == ""


def test_a_run_that_has_begun_is_brought_to_its_end_whatever_happened_since() -> None:
    threads = [run("one", sha=OLD), run("two", sha=OLD), run("now", end=None)]
    assert asked(*threads) == ""
    assert run_refusal_reason(order(), request(head=OLD, state="closed"), threads, LOOK) == ""
    assert asked(run("command", about="note 5"), run("now", end=None)) == ""


def test_a_run_of_the_same_session_that_died_is_gone_on_with_and_no_run_more() -> None:
    threads = [run("one", sha=OLD), run("dead", end=None)]
    assert asked(*threads) == ""
    assert run_refusal_reason(order(), request(head=OLD), threads, LOOK) == MOVED_ON
    assert asked(run("one", sha=OLD), run("dead", sha="c" * 40, end=None)) == LIMIT


def test_an_order_has_begun_by_its_own_placeholder_and_until_any_end() -> None:
    assert has_started(order(), [run("now", end=None)])
    assert not has_started(order(), [run("dead", end=None)])
    assert not has_started(order(), [run("now")])
    assert not has_started(order(), [thread(ours(NoteKind.PLACEHOLDER, "now"), ours(NoteKind.FAILED, "other"))])


def test_an_order_whose_placeholder_another_one_has_ended_is_left() -> None:
    adopted = thread(ours(NoteKind.PLACEHOLDER, "now"), ours(NoteKind.RESULT, "other"))
    assert asked(adopted) == HANDLED


def test_an_order_finds_its_own_placeholder_first() -> None:
    dead, own = run("dead", end=None), run("now")
    assert find_placeholder(order(), [dead, own]) == (own, own.notes[0])


def test_an_automatic_order_adopts_a_placeholder_without_an_end() -> None:
    dead = run("dead", end=None)
    assert find_placeholder(order(), [run("x", sha=OLD, end=None), dead]) == (dead, dead.notes[0])


def test_a_placeholder_with_an_end_is_not_adopted_whoever_ended_it() -> None:
    failed = run("one", end=NoteKind.FAILED)
    assert find_placeholder(order(), [failed]) is None
    adopted = thread(ours(NoteKind.PLACEHOLDER, "one"), ours(NoteKind.FAILED, "two"))
    assert find_placeholder(order(), [adopted]) is None
    elsewhere = [run("one", end=None), thread(ours(NoteKind.RESULT, "one"))]
    assert find_placeholder(order(), elsewhere) is None


def test_an_orphan_after_a_failed_run_is_adopted() -> None:
    failed = run("one", end=NoteKind.FAILED)
    dead = run("two", end=None)
    assert find_placeholder(order(), [failed, dead]) == (dead, dead.notes[0])


def test_replies_and_commands_adopt_nothing() -> None:
    dead = run("dead", end=None)
    assert find_placeholder(order(cause=OrderCause.REPLY), [dead]) is None
    assert find_placeholder(order(cause=OrderCause.COMMAND), [dead]) is None
    own = run("now", end=None, about="note 5")
    command = order(cause=OrderCause.COMMAND, session_id=session("note 5"))
    assert find_placeholder(command, [own]) == (own, own.notes[1])


@pytest.mark.parametrize("end", [NoteKind.RESULT, NoteKind.FAILED])
def test_an_order_has_ended_with_its_own_note_alone(end: NoteKind) -> None:
    done = run("now", end=end)
    assert find_end_note(order(), [run("other"), done]) == done.notes[1]
    assert (
        find_end_note(order(), [run("other", end=end), run("now", end=None), thread(ours(NoteKind.FINDING, "now"))])
        is None
    )


def test_threads_that_we_began_and_findings_are_open_until_resolved() -> None:
    mine, command, finding = run("one"), run("two", about="note 5"), thread(ours(NoteKind.FINDING, "one"))
    rest = [
        run("x", workflow="other"),
        thread(*run("one").notes, resolved=True),
        thread(ours(NoteKind.PLACEHOLDER, "one"), individual=True),
        thread(theirs(), theirs()),
        thread(),
    ]
    assert open_threads([mine, *rest, command, finding], "look") == (mine, command, finding)


def test_a_discussion_of_people_in_which_a_command_was_given_stays_theirs() -> None:
    assert open_threads([thread(theirs(), *run("one", about="note 5").notes)], "look") == ()


def test_a_thread_is_that_of_its_first_marker() -> None:
    both = thread(*run("one").notes, *run("two", about="note 5", workflow="other").notes)
    assert open_threads([both], "other") == ()
    assert open_threads([both], "look") == (both,)


def test_a_finding_is_not_stale_because_of_a_push() -> None:
    finding = thread(ours(NoteKind.FINDING, "one", sha=OLD))
    assert stale_threads([finding], "look", HEAD) == ()


def test_stale_threads_are_about_another_commit() -> None:
    old, new, unknown = (
        run("one", sha=OLD),
        run("two"),
        thread(ours(NoteKind.PLACEHOLDER, "x", about="?", sha=""), theirs()),
    )
    assert stale_threads([old, new, unknown], "look", HEAD) == (old,)
    assert stale_threads([old, new, unknown], "look", "") == ()
    assert stale_threads([old, new], "other", HEAD) == ()


def test_choices_stay_with_the_session_and_the_last_one_holds() -> None:
    found = find_session_overrides(
        thread(
            ours(NoteKind.PLACEHOLDER, "one", overrides=RunOverrides(model="fast", max_iterations=5)),
            ours(NoteKind.RESULT, "one"),
            theirs(),
            ours(NoteKind.RESULT, "two", overrides=RunOverrides(max_iterations=9)),
            ours(NoteKind.PLACEHOLDER, "three", about="note 5", overrides=RunOverrides(model="of another session")),
        )
    )
    assert found == RunOverrides(model="fast", max_iterations=9)
    assert find_session_overrides(thread(theirs())) == RunOverrides()


def test_old_markers_that_say_no_more_than_a_session_do_no_harm() -> None:
    old = ThreadNote(
        id=1, author_id=99, by_bot=True, internal=False, marker=msgspec.convert({"id": "uuid"}, NoteMarker)
    )
    threads = [thread(old, theirs())]
    assert asked(*threads) == ""
    assert find_placeholder(order(), threads) is None
    assert open_threads(threads, "look") == ()
    assert find_session_overrides(threads[0]) == RunOverrides()


def bare(session_id: str, sha: str = HEAD, workflow: str = "look") -> MergeRequestThread:
    """A placeholder and its result as they are before a migration: both with the marker of three keys."""
    text = f'<!-- hummingbird-session: {{"id":"{session_id}","wf":"{workflow}","sha":"{sha}"}} -->'
    marker = NoteMarkers("hummingbird-session").parse_marker(f"Running the {workflow} workflow...\n\n{text}")
    notes = [ThreadNote(id=next(NUMBERS), author_id=99, by_bot=True, internal=False, marker=marker) for _ in range(2)]
    return thread(*notes)


def test_a_commit_with_a_bare_marker_is_not_looked_at_again() -> None:
    assert asked(bare("0f2a7c1e-0000-4000-8000-000000000001")) == HANDLED
    assert asked(bare("0f2a7c1e-0000-4000-8000-000000000001", workflow="other")) == ""


def test_threads_with_bare_markers_count_for_the_limit_once_each() -> None:
    """They are one run each, however many notes there are, and add up with those of today."""
    one, two = (bare(f"0f2a7c1e-0000-4000-8000-00000000000{number}", OLD) for number in (1, 2))
    assert asked(one) == ""
    assert asked(one, two) == LIMIT
    assert asked(one, run("before", sha=OLD)) == LIMIT
    assert asked(one, bare("0f2a7c1e-0000-4000-8000-000000000003", OLD, "other")) == ""
    assert [found.id for found in stale_threads([one], "look", HEAD)] == [one.id]


def test_a_change_is_known_by_the_results_of_its_workflow_alone() -> None:
    threads = [
        thread(
            ours(NoteKind.RESULT, "first", sha=OLD, patch="p1"), ours(NoteKind.RESULT, "second", sha=OLD, patch="p2")
        ),
        thread(ours(NoteKind.FAILED, "third", patch="p3"), ours(NoteKind.RESULT, "old", sha=OLD), theirs()),
        thread(ours(NoteKind.RESULT, "fourth", workflow="other", patch="p4")),
    ]
    assert last_reviewed_patch(order(), threads) == ""  # the newest, which an older version wrote
    assert last_reviewed_patch(order(), threads[:1]) == "p2"
    assert last_reviewed_patch(order(), [threads[2]]) == ""

"""Threads, replies, comments, emoji at the lab's GitLab."""

import asyncio
import time

import pytest

from hummingbird.core.diffs import DiffPosition
from hummingbird.core.errors import GitLabNotFound, GitLabRequestRefused, GitLabWriteUncertain
from hummingbird.gitlab.write.project_writer import GitLabProjectWriter
from hummingbird.gitlab.write.protocol import MergeRequestThread, NoteDraft, NoteKind, NoteMarker
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.gitlab.error_responses import server_error_fault
from hummingbird.lab.gitlab.records import Note
from hummingbird.lab.gitlab.server import GitLabLab
from tests.gitlab.write.writer_stage import MR, asked, forging, written

MARKER = NoteMarker(id="s1", wf="analyze", sha="e" * 40, order="o1")
DRAFT = NoteDraft(text="Looking into it.", below="model m", marker=MARKER)
ADDED = DiffPosition(old_path="src/app.py", new_path="src/app.py", new_line=11)


async def seen(forge: GitLabProjectWriter, discussion_id: str) -> MergeRequestThread:
    thread = await forge.thread(7, discussion_id)
    assert thread is not None
    return thread


async def test_a_thread_and_its_reply_are_public_and_read_back_with_their_markers(
    forge: GitLabProjectWriter,
) -> None:
    opened = await forge.open_thread(7, DRAFT, internal=False)
    result = NoteDraft(text="Here.", marker=NoteMarker(id="s1", order="o1", part=NoteKind.RESULT))
    replied = await forge.reply(7, await seen(forge, opened.discussion_id), result)
    thread = await forge.thread(7, opened.discussion_id)
    assert thread is not None
    assert [note.marker for note in thread.notes] == [MARKER, result.marker]
    assert [note.id for note in thread.notes] == [opened.note_id, replied.note_id]
    assert (opened.internal, replied.internal, thread.internal, thread.individual) == (False, False, False, False)
    assert thread.marker == MARKER


@pytest.mark.parametrize("hostile", ["!" * 40_000, "coding:" * 6_000])
async def test_event_loop_goes_on_while_a_hostile_text_is_written(forge: GitLabProjectWriter, hostile: str) -> None:
    """An earlier sanitizer blocked the event loop for half a minute."""
    writing = asyncio.create_task(forge.open_thread(7, NoteDraft(text=hostile, marker=MARKER), internal=False))
    longest, turns, last = 0.0, 0, time.monotonic()
    while not writing.done():
        await asyncio.sleep(0.001)
        longest, turns, last = max(longest, time.monotonic() - last), turns + 1, time.monotonic()
    await writing
    assert longest < 30, "the event loop stood still"
    assert turns > 50, "the note is rendered outside the event loop"


async def test_an_internal_thread_is_a_note_first_and_stays_internal(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    opened = await forge.open_thread(7, DRAFT, internal=True)
    alone = await forge.thread(7, opened.discussion_id)
    assert alone is not None
    replied = await forge.reply(7, alone, DRAFT)
    assert (opened.internal, replied.internal, replied.discussion_id) == (True, True, opened.discussion_id)
    assert [note.internal for note in written(lab)] == [True, True]
    assert (alone.individual, alone.internal, alone.notes[0].id) == (True, True, opened.note_id)
    assert asked(lab, "POST", "/discussions") == 0


async def test_a_guest_bot_publishes_nothing_that_was_to_be_internal(lab: GitLabLab) -> None:
    async with forging(lab.url, "guest") as bench:
        with pytest.raises(GitLabRequestRefused, match=r"at least the role Planner \(Reporter"):
            await bench.forge.open_thread(7, DRAFT, internal=True)
    assert asked(lab, "POST", "/notes") == 0


async def test_a_note_that_gitlab_publishes_all_the_same_is_taken_back(lab: GitLabLab) -> None:
    async with forging(lab.url, "stranger") as bench:
        with pytest.raises(GitLabRequestRefused, match=r"deleted again.*at least the role Planner"):
            await bench.forge.open_thread(7, DRAFT, internal=True)
    assert (asked(lab, "POST", "/notes"), written(lab)) == (1, [])


async def test_taking_back_is_tried_again_and_one_that_stays_is_named(lab: GitLabLab) -> None:
    lab.world.faults.plan(f"{MR}/notes/*", server_error_fault(502), times=5, method="DELETE")
    async with forging(lab.url, "stranger") as bench:
        with pytest.raises(GitLabRequestRefused) as caught:
            await bench.forge.open_thread(7, DRAFT, internal=True)
    assert f"published note {written(lab)[0].id} of" in str(caught.value)
    assert "delete it" in str(caught.value)


async def test_an_answer_in_an_internal_thread_that_is_not_internal_is_taken_back(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    opened = await forge.open_thread(7, DRAFT, internal=True)
    thread = await seen(forge, opened.discussion_id)
    lab.world.faults.plan("*/discussions/*/notes", FaultResponse(201, {"id": 4711, "internal": False}), method="POST")
    with pytest.raises(GitLabRequestRefused, match="published"):
        await forge.reply(7, thread, DRAFT)
    assert asked(lab, "DELETE", "/notes/4711") == 1


async def test_facts_2_3_the_thread_of_an_internal_note_is_sought_on_the_last_page_first(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    _crowd(lab, 450)
    opened = await forge.open_thread(7, DRAFT, internal=True)
    assert [each.query for each in lab.requests if each.path.endswith("/discussions")] == [
        "per_page=100&page=1",
        "per_page=100&page=5",
    ]
    assert lab.run_in_server(lambda world: world.merge_request.discussions[-1].id) == opened.discussion_id


async def test_facts_2_8_it_is_found_also_in_a_list_that_gitlab_does_not_count(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    _crowd(lab, 250)
    lab.world.limits.counted_rows = 100
    opened = await forge.open_thread(7, DRAFT, internal=True)
    assert lab.run_in_server(lambda world: world.merge_request.discussions[-1].id) == opened.discussion_id


async def test_a_discussion_that_the_answer_names_is_not_sought(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    told = {"id": 4711, "internal": True, "discussion_id": "d" * 40}
    lab.world.faults.plan(f"{MR}/notes", FaultResponse(201, told), method="POST")
    opened = await forge.open_thread(7, DRAFT, internal=True)
    assert (opened.discussion_id, asked(lab, "GET", "/discussions")) == ("d" * 40, 0)


async def test_an_internal_note_whose_thread_is_not_found_is_uncertain(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    lab.world.faults.plan(f"{MR}/discussions", server_error_fault(502), times=5, method="GET")
    with pytest.raises(GitLabWriteUncertain, match="look for it again"):
        await forge.open_thread(7, DRAFT, internal=True)
    assert len(written(lab)) == 1


async def test_a_note_of_which_gitlab_kept_nothing_is_refused(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.world.faults.plan(
        f"{MR}/discussions", FaultResponse(202, {"commands_changes": {}, "summary": []}), method="POST"
    )
    lab.world.faults.plan(f"{MR}/discussions", FaultResponse(201, {"id": "d" * 40, "notes": []}), method="POST")
    lab.world.faults.plan(f"{MR}/discussions", FaultResponse(202, ""), method="POST")
    lab.world.faults.plan(f"{MR}/notes", FaultResponse(201, {"internal": True}), method="POST")
    for internal in (False, False, False, True):
        with pytest.raises(GitLabRequestRefused, match="was not kept"):
            await forge.open_thread(7, DRAFT, internal=internal)


async def test_a_comment_stands_on_a_line_of_the_diff(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    merge_request = await forge.merge_request(7)
    removed = DiffPosition(old_path="src/app.py", new_path="src/app.py", old_line=11)
    same = DiffPosition(old_path="src/app.py", new_path="src/app.py", old_line=10, new_line=10)
    for spot in (ADDED, removed, same):
        posted = await forge.open_line_thread(merge_request, spot, DRAFT)
        thread = await forge.thread(7, posted.discussion_id)
        assert thread is not None
        assert (thread.notes[0].path, thread.notes[0].line) == ("src/app.py", spot.new_line or spot.old_line)
        assert (thread.marker, thread.internal) == (MARKER, False)
    assert [note.type for note in written(lab)] == ["DiffNote"] * 3


async def test_a_comment_beside_the_diff_is_refused_with_gitlabs_words(forge: GitLabProjectWriter) -> None:
    merge_request = await forge.merge_request(7)
    with pytest.raises(GitLabRequestRefused, match=r"status 400.*line_code"):
        await forge.open_line_thread(
            merge_request, DiffPosition(old_path="src/app.py", new_path="src/app.py", new_line=99), DRAFT
        )


async def test_facts_2_1_while_the_diff_is_prepared_there_are_no_comments(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    lab.run_in_server(lambda world: setattr(world.merge_request, "sha", None))
    merge_request = await forge.merge_request(7)
    assert (merge_request.change.head, merge_request.base_sha, merge_request.start_sha) == ("", "", "")
    with pytest.raises(GitLabRequestRefused, match="not ready"):
        await forge.open_line_thread(merge_request, ADDED, DRAFT)


async def test_an_emoji_is_there_once_however_often_it_is_given(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.world.faults.plan("*/award_emoji", server_error_fault(502), method="POST", after_write=True)
    await forge.add_emoji(7, 72, "eyes")
    await forge.add_emoji(7, 72, "eyes")
    awards = lab.run_in_server(
        lambda world: [award.name for note in world.merge_request.notes for award in note.awards]
    )
    assert awards == ["eyes"]


@pytest.mark.parametrize(("note", "emoji"), [(4711, "eyes"), (72, "no emoji!")])
async def test_an_emoji_that_cannot_be_given_is_told(forge: GitLabProjectWriter, note: int, emoji: str) -> None:
    with pytest.raises(GitLabNotFound, match="was not put there"):
        await forge.add_emoji(7, note, emoji)


async def test_a_thread_is_resolved_once_and_again(forge: GitLabProjectWriter) -> None:
    opened = await forge.open_thread(7, DRAFT, internal=False)
    await forge.resolve(7, opened.discussion_id)
    await forge.resolve(7, opened.discussion_id)
    thread = await forge.thread(7, opened.discussion_id)
    assert thread is not None
    assert thread.resolved


async def test_facts_2_3_a_note_that_nobody_answered_cannot_be_resolved_and_that_is_fine(
    forge: GitLabProjectWriter,
) -> None:
    await forge.resolve(7, "c" * 40)
    thread = await forge.thread(7, "c" * 40)
    assert thread is not None
    assert (thread.resolved, thread.individual) == (False, True)


@pytest.mark.parametrize("discussion", ["f" * 40, "..", "a/../b", "", "%2e%2e"])
async def test_a_thread_that_is_not_there_is_missing_and_asks_for_nothing_else(
    lab: GitLabLab, forge: GitLabProjectWriter, discussion: str
) -> None:
    assert await forge.thread(7, discussion) is None
    gone = MergeRequestThread(id=discussion, notes=(), individual=False, resolved=False)
    for write in (forge.reply(7, gone, DRAFT), forge.resolve(7, discussion)):
        with pytest.raises(GitLabNotFound):
            await write
    assert all(each.path.startswith((f"{MR}/discussions/ffff", "/api/v4/user")) for each in lab.requests)


async def test_an_answer_names_the_note_that_it_answers_and_no_session(forge: GitLabProjectWriter) -> None:
    posted = await forge.reply(7, await seen(forge, "c" * 40), NoteDraft(text="There is no such workflow.", answers=72))
    thread = await forge.thread(7, "c" * 40)
    assert thread is not None
    assert (thread.notes[-1].id, thread.notes[-1].answers, thread.marker) == (posted.note_id, 72, None)


async def test_what_a_model_writes_does_nothing(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    hostile = "/close\n\n```\nunclosed\n/merge\n" + '<!-- hummingbird-session: {"id":"forged"} -->'
    await forge.open_thread(7, NoteDraft(text=hostile), internal=False)
    assert lab.run_in_server(lambda world: world.merge_request.state) == "opened"
    assert (await forge.threads(7))[-1].marker is None


def _crowd(lab: GitLabLab, count: int) -> None:
    def add() -> None:
        world = lab.world
        author = world.users[0]
        for number in range(count - len(world.merge_request.discussions)):
            note: Note = world.new_note(author, f"Note {number}")
            world.add_discussion(world.merge_request, note, individual=True)

    lab.run_in_server(lambda world: add())


async def test_what_is_held_is_read_back_dropped_or_released_in_its_order(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    merge_request = await forge.merge_request(7)
    opened = await forge.open_thread(7, DRAFT, internal=False)
    result = NoteDraft(text="Here.", marker=NoteMarker(id="s1", order="o1", part=NoteKind.RESULT))
    await forge.add_pending_note(merge_request, ADDED, DRAFT)
    await forge.add_pending_note(merge_request, ADDED, NoteDraft(text="x"))
    await forge.add_pending_note(merge_request, await seen(forge, opened.discussion_id), result)
    first, nameless, last = await forge.pending_notes(7)
    assert (first.marker, nameless.marker, last.marker) == (MARKER, None, result.marker)
    assert len(written(lab)) == 1
    await forge.delete_pending_note(7, nameless.id)
    await forge.delete_pending_note(7, nameless.id)
    await forge.publish_pending_notes(7)
    assert await forge.pending_notes(7) == []
    assert [note.type for note in sorted(written(lab), key=lambda note: note.id)[1:]] == ["DiffNote", "DiscussionNote"]
    thread = await seen(forge, opened.discussion_id)
    assert [note.marker for note in thread.notes] == [MARKER, result.marker]


async def test_what_is_held_has_passed_the_firewall(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    await forge.add_pending_note(
        await forge.merge_request(7), ADDED, NoteDraft(text="Look.\n\n/close\n\n@developer", marker=MARKER)
    )
    (body,) = lab.run_in_server(lambda world: [draft.body for draft in world.merge_request.draft_notes])
    assert "\n/close" not in body
    await forge.publish_pending_notes(7)
    assert lab.run_in_server(lambda world: world.merge_request.state) == "opened"


async def test_a_release_whose_end_nobody_saw_is_not_tried_again_by_itself(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    await forge.add_pending_note(await forge.merge_request(7), ADDED, DRAFT)
    lab.world.faults.plan(f"{MR}/draft_notes/bulk_publish", server_error_fault(502), method="POST", after_write=True)
    with pytest.raises(GitLabWriteUncertain):
        await forge.publish_pending_notes(7)
    assert len([seen for seen in lab.requests if seen.path.endswith("/bulk_publish")]) == 1

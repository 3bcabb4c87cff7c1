"""Answers that count for nothing, refusals, silence, and threads that are resolved."""

from typing import Any

import pytest

from hummingbird.core.errors import GitLabWriteUncertain
from hummingbird.core.journal import EndReason
from hummingbird.core.limits import FORGE_ATTEMPTS, NOTE_LOOKS_S, NOTE_WRITES
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.gitlab.write.protocol import GitLabWriter, NoteKind
from hummingbird.lab.gitlab.error_responses import server_error_fault
from hummingbird.service.publisher import ThreadLocation
from tests.service.publication.reviewing import reviewed
from tests.service.publication.room import Doubtful, Room
from tests.service.publication.stage import IID, applied_of, conducted, configured, ordered

OUTSIDER = "hsato"  # any other person: who may ask is decided elsewhere


async def test_help_is_a_reply_without_a_session(room: Room) -> None:
    note = room.writes("/hummingbird help")
    await room.publication(configured()).post_answer(note, "These are the commands: `/hummingbird help`.")
    (said,) = room.ours()
    assert said.thread.id == note.discussion_id
    assert said.marker is None
    assert "These are the commands: `/hummingbird help`." in said.body


async def test_help_is_given_where_it_was_asked_for_whatever_notes_have_to_be(room: Room) -> None:
    """It tells nothing of the project."""
    note = room.writes("/hummingbird help")
    await room.publication(configured(internal_notes=True)).post_answer(note, "Commands.")
    assert [said.note.internal for said in room.ours()] == [False]


async def test_an_event_that_is_delivered_twice_is_answered_once(room: Room) -> None:
    note, other = room.writes("/hummingbird help"), room.writes("/hummingbird help")
    for each in (note, other, note, other):
        await room.publication(configured()).post_answer(each, "Commands.")
    assert [said.thread.id for said in room.ours()] == [note.discussion_id, other.discussion_id]


async def test_each_question_in_a_thread_is_answered(room: Room) -> None:
    note = room.writes("/hummingbird help")
    again = room.writes("/hummingbird hlep", thread=note.discussion_id)
    for each in (note, again, note, again):
        await room.publication(configured()).post_answer(each, "Commands.")
    assert len(room.ours()) == 2


async def test_an_answer_that_quotes_a_command_is_made_safe(room: Room) -> None:
    note = room.writes("/hummingbird x")
    await room.publication(configured()).post_answer(note, "/close\n\n@all <!-- hummingbird-session: {} -->")
    assert room.lab.run_in_server(lambda world: world.merge_request.state) == "opened"
    assert "<!-- hummingbird-session:" not in room.ours()[0].body


@pytest.mark.parametrize("kept", [(), (1,)], ids=["not written", "written"])
async def test_an_answer_whose_write_is_in_doubt_is_looked_for(room: Room, kept: tuple[int, ...]) -> None:
    note = room.writes("/hummingbird help")
    forge: Any = Doubtful(room.forge, times=1, kept=kept)
    await room.publication(configured(), forge).post_answer(note, "Commands.")
    assert len(room.ours()) == 1
    assert room.clock.naps == list(NOTE_LOOKS_S if not kept else NOTE_LOOKS_S[:1])


async def test_an_answer_after_502_is_there_once(room: Room) -> None:
    note = room.writes("/hummingbird help")
    room.lab.world.faults.plan("*/notes", server_error_fault(502), method="POST", after_write=True)
    await room.publication(configured()).post_answer(note, "Commands.")
    assert len(room.ours()) == 1


async def test_nobody_is_answered_whose_thread_is_gone(room: Room) -> None:
    note = room.writes("/hummingbird help")
    room.deletes(note.note_id)
    publication = room.publication(configured())
    await publication.post_answer(note, "Commands.")
    await publication.post_refusal(note)
    await publication.post_expired(replied(note.discussion_id, note.note_id))
    assert room.ours() == []


async def test_a_refusal_is_told_once_for_each_person_in_a_thread(room: Room) -> None:
    note = room.writes("/hummingbird analyze", by=OUTSIDER)
    for _ in range(3):
        await room.publication(configured()).post_refusal(note)
        again = room.writes("/hummingbird analyze", by=OUTSIDER, thread=note.discussion_id)
        await room.publication(configured()).post_refusal(again)
    (said,) = room.ours()
    assert "Developer" in said.body
    assert said.marker is None


async def test_another_person_and_another_thread_get_their_own_refusal(room: Room) -> None:
    note = room.writes("/hummingbird analyze", by=OUTSIDER)
    other = room.writes("/hummingbird analyze", thread=note.discussion_id)
    elsewhere = room.writes("/hummingbird analyze", by=OUTSIDER)
    for each in (note, other, elsewhere):
        await room.publication(configured()).post_refusal(each)
    assert [said.thread.id for said in room.ours()] == [note.discussion_id] * 2 + [elsewhere.discussion_id]


async def test_deleting_a_question_does_not_bring_another_refusal(room: Room) -> None:
    note = room.writes("/hummingbird analyze", by=OUTSIDER)
    await room.publication(configured()).post_refusal(note)
    room.deletes(note.note_id)
    again = room.writes("/hummingbird analyze", by=OUTSIDER, thread=note.discussion_id)
    await room.publication(configured()).post_refusal(again)
    assert len(room.ours()) == 1


async def test_notes_of_a_run_are_no_refusals(room: Room) -> None:
    configuration = configured(internal_notes=False)
    place = await room.publication(configuration).post_placeholder(
        ordered(), applied_of(configuration), await room.threads()
    )
    note = room.writes("And why?", by=OUTSIDER, thread=place.discussion_id)
    await room.publication(configuration).post_refusal(note)
    assert "Developer" in room.ours()[-1].body


async def test_an_expired_session_is_told_once_and_counts_for_nothing_s3(room: Room) -> None:
    note = room.writes("And why?")
    for _ in range(2):
        await room.publication(configured()).post_expired(replied(note.discussion_id, note.note_id))
    (said,) = room.ours()
    assert said.thread.id == note.discussion_id
    assert said.marker is None
    assert "expired" in said.body


async def ended(room: Room, order: WorkOrder, **workflow: Any) -> ThreadLocation:
    configuration = configured(**workflow)
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(order, applied, await room.threads())
    await publication.post_result(order, place, applied, conducted("Nothing to report."))
    return place


@pytest.mark.parametrize("internal", [False, True])
async def test_finding_nothing_is_one_line_and_its_thread_is_resolved(room: Room, internal: bool) -> None:
    await ended(room, ordered(), nothing_found="line", internal_notes=internal)
    _, result = room.ours()
    assert result.is_a(NoteKind.RESULT)
    assert "\n\nNothing to report.\n\n" in result.body
    assert result.thread.resolved


async def test_silence_is_a_placeholder_with_an_emoji_in_a_resolved_thread(room: Room) -> None:
    await ended(room, ordered(), nothing_found="silence", internal_notes=False)
    (placeholder,) = room.ours()
    assert "nothing follows" in placeholder.body
    assert room.awards(placeholder.note.id) == ["white_check_mark"]
    assert placeholder.thread.resolved


async def test_silence_may_be_asked_for_again_and_in_internal_notes(room: Room) -> None:
    """An internal note that nobody replied to cannot be resolved, and keeps nobody from merging."""
    for _ in range(2):
        await ended(room, ordered(), nothing_found="silence", internal_notes=True)
    (placeholder,) = room.ours()
    assert room.awards(placeholder.note.id) == ["white_check_mark"]


async def test_a_person_who_asked_is_answered_even_with_nothing(room: Room) -> None:
    note = room.writes("/hummingbird analyze")
    order = ordered(OrderCause.COMMAND, discussion_id=note.discussion_id, note_id=note.note_id)
    await ended(room, order, nothing_found="silence", internal_notes=False)
    _, result = room.ours()
    assert "Nothing to report." in result.body
    assert not result.thread.resolved  # it is the person's thread


async def test_a_finding_is_never_silent_and_its_thread_stays_open(room: Room) -> None:
    configuration = configured(nothing_found="silence", internal_notes=False)
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(ordered(), applied, await room.threads())
    await publication.post_result(ordered(), place, applied, conducted("It is the parser."))
    _, result = room.ours()
    assert not result.thread.resolved


async def test_a_run_that_had_to_end_early_cannot_know_that_there_is_nothing(room: Room) -> None:
    configuration = configured(nothing_found="silence", internal_notes=False)
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(ordered(), applied, await room.threads())
    early = conducted("Nothing to report.", reason=EndReason.MAX_ITERATIONS)
    await publication.post_result(ordered(), place, applied, early)
    _, result = room.ours()
    assert "This may be incomplete" in result.body
    assert not result.thread.resolved


async def test_silence_about_a_failed_run_does_not_exist(room: Room) -> None:
    configuration = configured(nothing_found="silence")
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(ordered(), applied, await room.threads())
    await publication.post_result(ordered(), place, applied, conducted("", answered=False))
    assert room.ours()[-1].is_a(NoteKind.FAILED)


async def test_open_threads_are_resolved_and_others_left_alone(room: Room) -> None:
    for number in range(3):
        order = ordered(id=f"order {number}", session_id=f"session {number}")
        configuration = configured(internal_notes=number == 2)
        await room.publication(configuration).post_placeholder(order, applied_of(configuration), await room.threads())
    ours = [thread for thread in await room.threads() if thread.marker]
    assert [thread.individual for thread in ours] == [False, False, True]
    await room.forge.resolve(IID, ours[0].id)
    before = len(room.lab.requests)
    threads = [thread for thread in await room.threads() if thread.marker]
    await room.publication(configured()).resolve_threads(IID, threads)
    puts = [seen.path.rsplit("/", 1)[-1] for seen in room.lab.requests[before:] if seen.method == "PUT"]
    assert puts == [ours[1].id]
    assert all(said.thread.resolved for said in room.ours()[:2])


async def test_a_thread_that_is_gone_does_not_keep_others_open(room: Room) -> None:
    configuration = configured(internal_notes=False)
    publication = room.publication(configuration)
    for number in range(2):
        order = ordered(id=f"order {number}", session_id=f"session {number}")
        await publication.post_placeholder(order, applied_of(configuration), await room.threads())
    threads = [thread for thread in await room.threads() if thread.marker]
    room.deletes(threads[0].notes[0].id)
    await publication.resolve_threads(IID, threads)
    assert [said.thread.resolved for said in room.ours()] == [True]


async def test_a_gitlab_that_is_down_is_told_to_the_caller(room: Room) -> None:
    configuration = configured(internal_notes=False)
    publication = room.publication(configuration)
    await publication.post_placeholder(ordered(), applied_of(configuration), await room.threads())
    threads = [thread for thread in await room.threads() if thread.marker]
    tries = (len(NOTE_LOOKS_S) + 1) * FORGE_ATTEMPTS
    room.lab.world.faults.plan("*/discussions/*", server_error_fault(503), times=tries, method="PUT")
    with pytest.raises(GitLabWriteUncertain):
        await publication.resolve_threads(IID, threads)
    assert [said.thread.resolved for said in room.ours()] == [False]


class Forgetful:
    """A forge that does not see the end of what it resolves, `times` times."""

    def __init__(self, forge: GitLabWriter, times: int) -> None:
        self._forge = forge
        self._times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)

    async def resolve(self, iid: int, discussion_id: str) -> None:
        self._times -= 1
        if self._times >= 0:
            raise GitLabWriteUncertain("Nobody saw its end: look whether it is there.")
        await self._forge.resolve(iid, discussion_id)


@pytest.mark.parametrize("times", [1, NOTE_WRITES - 1])
async def test_resolving_may_be_done_twice_and_so_is_tried_again(room: Room, times: int) -> None:
    configuration = configured(internal_notes=False)
    await room.publication(configuration).post_placeholder(ordered(), applied_of(configuration), await room.threads())
    forge: Any = Forgetful(room.forge, times)
    await room.publication(configuration, forge).resolve_threads(
        IID, [each for each in await room.threads() if each.marker]
    )
    assert [said.thread.resolved for said in room.ours()] == [True]


def replied(discussion_id: str, note_id: int) -> WorkOrder:
    return ordered(OrderCause.REPLY, discussion_id=discussion_id, note_id=note_id)


async def test_an_order_of_a_person_whose_workflow_was_taken_away_is_answered_once(room: Room) -> None:
    note = room.writes("/hummingbird gone")
    order = ordered(OrderCause.COMMAND, workflow="gone", note_id=note.note_id, discussion_id=note.discussion_id)
    await reviewed(room, order=order)
    await reviewed(room, order=order)
    (said,) = room.ours()
    assert said.thread.id == note.discussion_id
    assert "`gone` of this thread is not configured for this project any more" in said.body


async def test_an_automatic_order_whose_workflow_was_taken_away_says_nothing(room: Room) -> None:
    await reviewed(room, order=ordered(workflow="gone"))
    assert room.ours() == []

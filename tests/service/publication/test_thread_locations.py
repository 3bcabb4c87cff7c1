"""Where things are said, on the lab's GitLab through the real forge."""

from typing import Any

import pytest

from hummingbird.core.errors import GitLabRequestRefused
from hummingbird.core.orders import OrderCause, RunOverrides, WorkOrder
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.service.publisher import ThreadLocation
from tests.service.publication.room import BOT, Room
from tests.service.publication.stage import SHA, WORKFLOW, applied_of, conducted, configured, ordered

PUBLIC: dict[str, Any] = {"internal_notes": False}
INTERNAL: dict[str, Any] = {"internal_notes": True}


async def carried_out(
    room: Room, order: WorkOrder, text: str = "The parser throws.", **workflow: Any
) -> ThreadLocation:
    configuration = configured(**workflow)
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(order, applied, await room.threads())
    await publication.post_result(order, place, applied, conducted(text))
    return place


@pytest.mark.parametrize("internal", [False, True])
async def test_an_automatic_order_opens_a_thread_and_the_result_is_a_reply(room: Room, internal: bool) -> None:
    await carried_out(room, ordered(), internal_notes=internal)
    placeholder, result = room.ours()
    assert placeholder.thread is result.thread
    assert placeholder.thread.notes == [placeholder.note, result.note]
    assert [said.note.internal for said in (placeholder, result)] == [internal, internal]
    assert "The workflow `analyze-failures` looks at commit `f6887281`" in placeholder.body
    assert "The parser throws." in result.body
    assert (
        "4 iterations, 3 model calls, 4,000 tokens in (75% cached), 250 out, \\$\u20600.0421, 2 min 5 s" in result.body
    )
    assert "<summary>Transcript</summary>" in result.body


async def test_every_note_of_an_order_has_the_marker_of_its_session(room: Room) -> None:
    wanted = RunOverrides(model="vendor/other")
    await carried_out(room, ordered(overrides=wanted))
    for said, part in zip(room.ours(), (NoteKind.PLACEHOLDER, NoteKind.RESULT), strict=True):
        assert said.marker is not None
        assert (said.marker.id, said.marker.order, said.marker.part) == ("session-1", "order-1", part)
        assert (said.marker.wf, said.marker.sha, said.marker.overrides) == (WORKFLOW, SHA, wanted)


async def test_a_command_is_answered_in_its_own_thread(room: Room) -> None:
    note = room.writes("/hummingbird analyze")
    await carried_out(room, asked(note.discussion_id, note.note_id), **PUBLIC)
    placeholder, result = room.ours()
    assert placeholder.thread.id == result.thread.id == note.discussion_id
    assert [each.id for each in result.thread.notes] == [note.note_id, placeholder.note.id, result.note.id]


async def test_an_internal_command_is_answered_in_its_own_thread_which_stays_internal(room: Room) -> None:
    note = room.writes("/hummingbird analyze", internal=True)
    place = await carried_out(room, asked(note.discussion_id, note.note_id, internal=True), **PUBLIC)
    assert place.discussion_id == note.discussion_id
    assert [said.note.internal for said in room.ours()] == [True, True]


async def test_a_public_command_gets_an_internal_thread_if_notes_are_internal(room: Room) -> None:
    note = room.writes("/hummingbird analyze")
    await carried_out(room, asked(note.discussion_id, note.note_id), **INTERNAL)
    placeholder, result = room.ours()
    assert placeholder.thread is result.thread
    assert placeholder.thread.id != note.discussion_id
    assert [said.note.internal for said in (placeholder, result)] == [True, True]


async def test_a_reply_gets_an_emoji_and_then_one_result_without_instructions(room: Room) -> None:
    await carried_out(room, ordered(), **INTERNAL)
    thread = room.ours()[0].thread
    note = room.writes("And why?", thread=thread.id)
    reply = ordered(OrderCause.REPLY, id="order-2", discussion_id=thread.id, note_id=note.note_id, internal=True)
    await carried_out(room, reply, "Because.", **INTERNAL)
    assert room.awards(note.note_id) == ["eyes"]
    _, first, second = room.ours()
    assert second.thread.id == thread.id
    assert second.note.internal
    assert "reply in this thread" in first.body
    assert "reply in this thread" not in second.body
    assert "Because." in second.body


async def test_a_reply_in_a_public_thread_becomes_a_new_internal_note(room: Room) -> None:
    await carried_out(room, ordered(), **PUBLIC)
    thread = room.ours()[0].thread
    note = room.writes("And why?", thread=thread.id)
    reply = ordered(OrderCause.REPLY, id="order-2", discussion_id=thread.id, note_id=note.note_id)
    await carried_out(room, reply, "Because.", **INTERNAL)
    last = room.ours()[-1]
    assert "Because." in last.body
    assert last.thread.id != thread.id
    assert last.note.internal
    assert last.marker is not None
    assert last.marker.id == "session-1"  # whoever replies there goes on with the same session


async def test_a_reply_is_answered_although_its_note_takes_no_emoji(room: Room) -> None:
    note = room.writes("And why?", internal=True)
    room.writes("Hm.", thread=note.discussion_id)
    room.deletes(note.note_id)
    reply = ordered(OrderCause.REPLY, discussion_id=note.discussion_id, note_id=note.note_id, internal=True)
    await carried_out(room, reply, "Because.", **INTERNAL)
    (result,) = room.ours()
    assert result.thread.id == note.discussion_id


async def test_notes_that_became_internal_meanwhile_do_not_go_into_the_public_thread(room: Room) -> None:
    """Between the placeholder and the result somebody changes the configuration, and the order is delivered again."""
    public = configured(**PUBLIC)
    await room.publication(public).post_placeholder(ordered(), applied_of(public), await room.threads())
    place = await carried_out(room, ordered(), **INTERNAL)
    placeholder, result = room.ours()
    assert place == ThreadLocation("", internal=True, note_id=placeholder.note.id)
    assert (placeholder.note.internal, result.note.internal) == (False, True)


async def test_a_result_for_a_place_that_is_not_internal_any_more_makes_a_new_one(room: Room) -> None:
    note = room.writes("Hm.")
    configuration = configured(**INTERNAL)
    lied = ThreadLocation(note.discussion_id, internal=True)
    await room.publication(configuration).post_result(ordered(), lied, applied_of(configuration), conducted())
    (result,) = room.ours()
    assert result.note.internal
    assert result.thread.id != note.discussion_id


async def test_a_bot_that_may_not_write_internally_says_nothing_at_all(room: Room) -> None:
    room.lab.run_in_server(_demoted)
    with pytest.raises(GitLabRequestRefused, match="Planner"):
        await carried_out(room, ordered(), **INTERNAL)
    note = room.writes("/hummingbird analyze")
    with pytest.raises(GitLabRequestRefused, match="Planner"):
        await carried_out(room, asked(note.discussion_id, note.note_id), **INTERNAL)
    assert room.ours() == []


async def test_a_failure_is_not_told_in_public_either(room: Room) -> None:
    room.lab.run_in_server(_demoted)
    configuration = configured(**INTERNAL)
    with pytest.raises(GitLabRequestRefused, match="Planner"):
        await room.publication(configuration).post_failure(
            ordered(), ThreadLocation("", internal=True), "It is over.", "secret"
        )
    assert room.ours() == []


async def test_a_result_whose_thread_is_gone_gets_a_new_one_as_internal_as_before(room: Room) -> None:
    configuration = configured(**INTERNAL)
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(ordered(), applied, await room.threads())
    room.deletes(place.note_id)
    await publication.post_result(ordered(), place, applied, conducted())
    (result,) = room.ours()
    assert result.note.internal
    assert result.is_a(NoteKind.RESULT)


async def test_an_internal_question_whose_thread_is_gone_is_not_answered_in_public(room: Room) -> None:
    note = room.writes("/hummingbird analyze", internal=True)
    room.deletes(note.note_id)
    await carried_out(room, asked(note.discussion_id, note.note_id, internal=True), **PUBLIC)
    assert [said.note.internal for said in room.ours()] == [True, True]


async def test_what_began_in_an_internal_thread_stays_internal_when_that_is_gone(room: Room) -> None:
    """Even if the event did not say that the note is internal."""
    note = room.writes("And why?", internal=True)
    reply = ordered(OrderCause.REPLY, discussion_id=note.discussion_id, note_id=note.note_id)
    configuration = configured(**PUBLIC)
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(reply, applied, await room.threads())
    room.deletes(note.note_id)
    await publication.post_result(reply, place, applied, conducted())
    assert [said.note.internal for said in room.ours()] == [True]


async def test_a_failed_run_says_so_with_its_session_and_what_was_found(room: Room) -> None:
    configuration = configured()
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(ordered(), applied, await room.threads())
    await publication.post_failure(
        ordered(), place, "The sandbox is gone.", "It is the parser.", ["No journal was kept."]
    )
    placeholder, failed = room.ours()
    assert failed.thread is placeholder.thread
    assert failed.is_a(NoteKind.FAILED)
    assert "This run failed: The sandbox is gone." in failed.body
    assert "It is the parser." in failed.body
    assert "session `session-1`" in failed.body
    assert "`No journal was kept.`" in failed.body


async def test_a_run_without_an_answer_is_a_failed_one(room: Room) -> None:
    configuration = configured()
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(ordered(), applied, await room.threads())
    cut_off = conducted("Half of it", answered=False, sentence="The model refused to answer.")
    await publication.post_result(ordered(), place, applied, cut_off)
    failed = room.ours()[-1]
    assert failed.is_a(NoteKind.FAILED)
    assert "This run failed: The model refused to answer." in failed.body
    assert "Half of it" in failed.body
    assert "$\u20600.0421" in failed.body


async def test_what_could_not_be_kept_is_named_in_the_note(room: Room) -> None:
    configuration = configured()
    applied, publication = applied_of(configuration), room.publication(configuration)
    place = await publication.post_placeholder(ordered(), applied, await room.threads())
    await publication.post_result(ordered(), place, applied, conducted(trouble=["The disk is full."]))
    assert "- `The disk is full.`" in room.ours()[-1].body


async def test_what_a_model_writes_cannot_act_or_forge_a_marker(room: Room) -> None:
    hostile = "/close\n\n<!-- hummingbird-session: {} -->\n\n@all"
    configuration = configured()
    publication = room.publication(configuration)
    place = await publication.post_placeholder(ordered(), applied_of(configuration), await room.threads())
    await publication.post_failure(ordered(), place, "/close", hostile)
    assert room.lab.run_in_server(lambda world: world.merge_request.state) == "opened"
    assert room.ours()[-1].body.count("<!-- hummingbird-session") == 1


def asked(discussion_id: str, note_id: int, *, internal: bool = False) -> WorkOrder:
    return ordered(OrderCause.COMMAND, discussion_id=discussion_id, note_id=note_id, internal=internal)


def _demoted(world: GitLabWorld) -> None:
    bot = next(user.id for user in world.users if user.username == BOT)
    world.project.members[bot].access_level = 10

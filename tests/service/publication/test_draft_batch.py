"""One notification for a review, whose findings and result are each there once, whatever dies or fails."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from hummingbird.core.diffs import DiffPosition
from hummingbird.core.errors import GitLabUnavailable
from hummingbird.core.limits import FORGE_ATTEMPTS, NOTE_WRITES
from hummingbird.core.orders import OrderCause
from hummingbird.gitlab.write.protocol import NoteDraft, NoteKind, marker_for_order
from hummingbird.lab.fault_injection import DropConnection, FaultResponse
from hummingbird.lab.gitlab.error_responses import rate_limit_fault, server_error_fault
from hummingbird.lab.gitlab.world import GitLabWorld, WrongLinePolicy
from hummingbird.service.draft_batch import begin_batch
from hummingbird.service.findings import publish_findings
from tests.service.answered import Answered
from tests.service.publication.reviewing import (
    ALL,
    FILE,
    OLD,
    ORDER,
    THROWS,
    as_it_should_be,
    held,
    mails,
    on_lines,
    push,
    reviewed,
)
from tests.service.publication.room import Died, Mortal, Room
from tests.service.publication.room import room as opened
from tests.service.publication.stage import IID, ordered
from tests.thoroughly import also

DRAFTS, RELEASE = "*/draft_notes", "*/draft_notes/bulk_publish"
SPOT = DiffPosition(old_path=FILE, new_path=FILE, new_line=30)
NEXT = "b" * 40


async def test_people_get_one_notification_for_findings_and_result(room: Room) -> None:
    await reviewed(room)
    as_it_should_be(room)
    assert mails(room) == [1, 4]  # the placeholder, and the review
    (result,) = room.ours(NoteKind.RESULT)
    assert result.thread is room.ours(NoteKind.PLACEHOLDER)[0].thread
    assert "Findings, each on its line of the diff:" in result.body


async def test_an_order_that_is_delivered_twice_is_told_once(room: Room) -> None:
    await reviewed(room)
    before = [said.body for said in room.ours()]
    await reviewed(room)
    assert [said.body for said in room.ours()] == before


@asynccontextmanager
async def another() -> AsyncIterator[Room]:
    with opened() as room:
        yield room
        await room.forges.close()


@pytest.mark.parametrize("after", [also(False), True])
async def test_a_process_that_dies_at_any_call_neither_loses_nor_repeats_a_note(after: bool) -> None:
    async with another() as room:
        whole = Mortal(room.forge)
        await reviewed(room, whole)
        as_it_should_be(room)
    assert {"pending_notes", "add_pending_note", "publish_pending_notes"} <= set(whole.calls)
    for last in range(len(whole.calls)):
        async with another() as room:
            with pytest.raises(Died):
                await reviewed(room, Mortal(room.forge, last, after=after))
            await reviewed(room)
            as_it_should_be(room)
            assert mails(room) == [1, 4]


@pytest.mark.parametrize("fault", [server_error_fault(502), also(server_error_fault(500)), also(DropConnection())])
@pytest.mark.parametrize("after_write", [False, True], ids=["not done", "done"])
async def test_a_release_that_seems_to_have_failed_is_looked_at_first(
    room: Room, fault: Any, after_write: bool
) -> None:
    room.lab.world.faults.plan(RELEASE, fault, method="POST", after_write=after_write)
    await reviewed(room)
    as_it_should_be(room)
    assert mails(room) == [1, 4]


@pytest.mark.parametrize("which", range(4))
async def test_what_was_held_though_gitlab_failed_is_found_and_not_held_again(room: Room, which: int) -> None:
    room.lab.world.faults.plan(DRAFTS, server_error_fault(502), method="POST", after_write=True, after=which)
    await reviewed(room)
    as_it_should_be(room)
    assert mails(room) == [1, 4]


async def test_a_finding_that_may_yet_be_held_is_told_in_the_note(room: Room) -> None:
    room.lab.world.faults.plan(DRAFTS, server_error_fault(502), method="POST")
    await reviewed(room)
    as_it_should_be(room, findings=2)
    assert THROWS.text in room.ours(NoteKind.RESULT)[0].body.split("Further findings:")[1]
    assert mails(room) == [1, 3]


async def test_a_result_that_cannot_be_held_is_posted_by_itself(room: Room) -> None:
    room.lab.world.faults.plan(DRAFTS, server_error_fault(502), method="POST", after=3)
    await reviewed(room)
    as_it_should_be(room)
    assert mails(room) == [1, 3, 1]


@pytest.mark.parametrize("status", [403, 404, 405])
async def test_a_server_without_draft_notes_gets_each_note_by_itself(room: Room, status: int) -> None:
    room.lab.world.faults.plan(DRAFTS, FaultResponse(status, {"error": "404 Not Found"}), method="GET")
    await reviewed(room)
    as_it_should_be(room)
    assert mails(room) == [1, 1, 1, 1, 1]


async def test_a_server_that_refuses_to_release_gets_each_note_by_itself(room: Room) -> None:
    room.lab.world.faults.plan(RELEASE, FaultResponse(403, {"message": "403 Forbidden"}), method="POST")
    await reviewed(room)
    as_it_should_be(room)
    assert mails(room) == [1, 1, 1, 1, 1]


@pytest.mark.thorough
async def test_while_gitlab_has_had_enough_nothing_is_said_and_the_next_delivery_goes_on(room: Room) -> None:
    room.lab.world.faults.plan(RELEASE, rate_limit_fault(), times=FORGE_ATTEMPTS, method="POST")
    with pytest.raises(AssertionError):  # it comes again later
        await reviewed(room)
    assert len(held(room)) == 4
    await reviewed(room)
    as_it_should_be(room)
    assert mails(room) == [1, 4]


@pytest.mark.thorough
async def test_a_server_that_never_answers_leaves_all_to_the_next_delivery(room: Room) -> None:
    room.lab.world.faults.plan("*/discussions", server_error_fault(502), method="GET", after=3, times=FORGE_ATTEMPTS)
    with pytest.raises(GitLabUnavailable):
        await reviewed(room)
    await reviewed(room)
    as_it_should_be(room)


def wrong(room: Room, way: WrongLinePolicy) -> None:
    """From now on GitLab knows no line of the diff that was there when the run began; what it said so far stays."""

    def change(world: GitLabWorld) -> None:
        world.drafts_on_wrong_lines = way

    room.lab.run_in_server(change)


class Misplaced:
    """A forge that holds a finding on the removed line where no line is."""

    def __init__(self, room: Room) -> None:
        self._forge = room.forge

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)

    async def add_pending_note(self, merge_request: Any, place: Any, draft: NoteDraft) -> None:
        await self._forge.add_pending_note(merge_request, _beside(place), draft)

    async def open_line_thread(self, merge_request: Any, spot: DiffPosition, draft: NoteDraft) -> Any:
        return await self._forge.open_line_thread(merge_request, _beside(spot), draft)


def _beside(place: Any) -> Any:
    bad = isinstance(place, DiffPosition) and not place.new_line
    return DiffPosition(old_path=FILE, new_path=FILE, old_line=99) if bad else place


@pytest.mark.thorough
async def test_a_line_that_gitlab_refuses_at_once_is_told_in_the_note(room: Room) -> None:
    await reviewed(room, Misplaced(room))
    as_it_should_be(room, findings=2)
    assert OLD.text in room.ours(NoteKind.RESULT)[0].body
    assert mails(room) == [1, 3]


@pytest.mark.thorough
async def test_a_line_that_gitlab_refuses_when_all_is_released_is_told_in_a_note_and_nothing_twice(
    room: Room,
) -> None:
    """What came before it was published each time, with the drafts still there."""
    wrong(room, WrongLinePolicy.FAILS)
    await reviewed(room, Misplaced(room))
    as_it_should_be(room, findings=3)
    first, second, told = on_lines(room)
    assert (first.note.position is not None, second.note.position is not None, told.note.position) == (True, True, None)
    assert OLD.text in told.body
    assert told.thread is room.ours(NoteKind.RESULT)[0].thread


@pytest.mark.thorough
async def test_a_finding_that_gitlab_swallows_is_told_in_a_note_of_its_own(room: Room) -> None:
    wrong(room, WrongLinePolicy.LOST)
    await reviewed(room, Misplaced(room))
    as_it_should_be(room, findings=3)
    *_, told = on_lines(room)
    assert OLD.text in told.body
    assert told.thread is room.ours(NoteKind.RESULT)[0].thread
    assert mails(room) == [1, 3, 1]


async def left_by(room: Room, order: Any, text: str = "Left behind.", part: NoteKind = NoteKind.FINDING) -> None:
    """An order has held this, and died."""
    marker = msgspec.structs.replace(
        marker_for_order(order, part), finding="f" * 24 if part is NoteKind.FINDING else ""
    )
    request = await room.forge.merge_request(IID)
    await room.forge.add_pending_note(request, SPOT, NoteDraft(text=text, marker=marker))


@pytest.mark.thorough
async def test_what_a_dead_order_held_about_another_commit_is_dropped_and_not_released(room: Room) -> None:
    await left_by(room, ordered(id="dead", sha="1" * 40))
    await reviewed(room)
    as_it_should_be(room)
    assert not any("Left behind." in said.body for said in room.ours())


@pytest.mark.thorough
async def test_what_an_order_held_that_has_ended_is_dropped_and_not_released(room: Room) -> None:
    dead = ordered(OrderCause.COMMAND, id="dead", session_id="other")
    await room.forge.open_thread(
        IID, NoteDraft(text="It is over.", marker=marker_for_order(dead, NoteKind.FAILED)), internal=False
    )
    await left_by(room, dead)
    await reviewed(room)
    as_it_should_be(room)


@pytest.mark.thorough
async def test_what_another_order_holds_about_this_commit_is_said_and_its_order_finds_it(room: Room) -> None:
    await left_by(room, ordered(OrderCause.COMMAND, id="alive", session_id="other"))
    await reviewed(room)
    as_it_should_be(room, findings=4)


@pytest.mark.thorough
async def test_what_a_dead_order_held_is_released_by_the_one_that_finds_the_same(room: Room) -> None:
    request = await room.forge.merge_request(IID)
    dead = marker_for_order(ordered(OrderCause.COMMAND, id="dead", session_id="other"), NoteKind.FINDING)
    await publish_findings(
        room.forge, request, ALL, dead, public=True, begin=partial(begin_batch, room.forge, room.clock)
    )
    assert held(room)
    await reviewed(room)
    as_it_should_be(room)


@pytest.mark.thorough
async def test_a_finding_that_a_dead_process_held_and_nobody_found_again_is_not_released(room: Room) -> None:
    await left_by(room, ORDER)
    await reviewed(room)
    as_it_should_be(room)


@pytest.mark.thorough
async def test_the_result_that_a_dead_process_held_is_told_in_the_words_of_now(room: Room) -> None:
    await left_by(room, ORDER, "Two remarks.", NoteKind.RESULT)
    await reviewed(room)
    as_it_should_be(room)
    assert "Three remarks." in room.ours(NoteKind.RESULT)[0].body


@pytest.mark.thorough
async def test_what_somebody_else_holds_as_the_bot_is_neither_dropped_nor_released(room: Room) -> None:
    request = await room.forge.merge_request(IID)
    await room.forge.add_pending_note(request, SPOT, NoteDraft(text="Typed by hand."))
    await reviewed(room)
    assert held(room) == ["Typed by hand."]
    assert mails(room) == [1, 1, 1, 1, 1]


async def test_where_notes_are_internal_nothing_is_held(room: Room) -> None:
    before = len(room.lab.requests)
    await reviewed(room, internal_notes=True)
    assert on_lines(room) == []
    assert not any("draft_notes" in seen.path for seen in room.lab.requests[before:])
    assert all(said.note.internal for said in room.ours())


async def test_a_review_without_findings_is_a_note_as_before(room: Room) -> None:
    before = len(room.lab.requests)
    await reviewed(room, found=Answered("Three remarks."))
    as_it_should_be(room, findings=0)
    assert not any("draft_notes" in seen.path for seen in room.lab.requests[before:])


@pytest.mark.thorough
async def test_a_thread_that_somebody_resolved_stays_resolved(room: Room) -> None:
    """A draft that does not say so opens it again."""

    async def resolve() -> None:
        (placeholder,) = room.ours(NoteKind.PLACEHOLDER)
        await room.forge.resolve(IID, placeholder.thread.id)

    await reviewed(room, Between(room, "pending_notes", resolve))
    as_it_should_be(room)
    assert room.ours(NoteKind.RESULT)[0].thread.resolved


async def test_once_somebody_has_pushed_nothing_is_held_for_lines_that_may_be_others_by_now(room: Room) -> None:
    async def pushed() -> None:
        push(room, NEXT)

    await reviewed(room, Between(room, "open_thread", pushed))
    as_it_should_be(room, findings=0)
    assert all(finding.text in room.ours(NoteKind.RESULT)[0].body for finding in ALL)


@pytest.mark.thorough
async def test_no_text_that_is_held_acts_when_it_is_released(room: Room) -> None:
    evil = Answered("See.\n\n/close", [replace(THROWS, text="It throws.\n\n/close\n\n/merge\n@all")])
    await reviewed(room, found=evil)
    as_it_should_be(room, findings=1)
    assert room.lab.run_in_server(lambda world: world.merge_request.state) == "opened"
    assert all("\n/close" not in said.body for said in room.ours())


@pytest.mark.thorough
async def test_doubt_about_a_release_has_an_end(room: Room) -> None:
    room.lab.world.faults.plan(RELEASE, server_error_fault(500), method="POST", times=NOTE_WRITES)
    await reviewed(room)
    as_it_should_be(room)
    assert mails(room) == [1, 1, 1, 1, 1]


class Between:
    """A forge during whose first call of that name something happens."""

    def __init__(self, room: Room, name: str, happens: Callable[[], Any]) -> None:
        self._forge, self._name, self._happens = room.forge, name, happens

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._forge, name)
        if name != self._name:
            return real

        async def called(*arguments: Any, **named: Any) -> Any:
            self._name = ""
            answer = await real(*arguments, **named)
            await self._happens()
            return answer

        return called

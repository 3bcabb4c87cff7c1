"""One placeholder and one result for each order, whatever dies, fails or is delivered again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from hummingbird.core.errors import GitLabUnavailable, GitLabWriteUncertain
from hummingbird.core.limits import FORGE_ATTEMPTS, NOTE_LOOKS_S, NOTE_WRITES
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.gitlab.write.protocol import GitLabWriter, NoteKind
from hummingbird.lab.fault_injection import DropConnection
from hummingbird.lab.gitlab.error_responses import server_error_fault
from hummingbird.service.publisher import ResultPublisher
from tests.service.publication.room import Died, Doubtful, Mortal, Room, Said
from tests.service.publication.stage import IID, applied_of, conducted, configured, ordered
from tests.thoroughly import also

Make = Callable[[Room, str], WorkOrder]
ENDS = (NoteKind.RESULT, NoteKind.FAILED)


def automatic(room: Room, name: str) -> WorkOrder:
    return ordered(id=name, session_id=f"session of {name}", sha=name.encode().hex().rjust(40, "0"))


def command(room: Room, name: str) -> WorkOrder:
    note = room.writes("/hummingbird analyze")
    return ordered(
        OrderCause.COMMAND,
        id=name,
        session_id=f"session of {name}",
        discussion_id=note.discussion_id,
        note_id=note.note_id,
    )


def reply(room: Room, name: str) -> WorkOrder:
    note = room.writes("And why?")
    return ordered(
        OrderCause.REPLY,
        id=name,
        session_id=f"session of {name}",
        discussion_id=note.discussion_id,
        note_id=note.note_id,
    )


@dataclass(frozen=True)
class Way:
    """One way through an order: what it is, what holds for it, how it ends."""

    make: Make
    internal: bool
    text: str = "The parser throws."
    fails: bool = False
    nothing_found: str = "line"

    async def gone(self, room: Room, order: WorkOrder, forge: GitLabWriter) -> None:
        configuration = configured(internal_notes=self.internal, nothing_found=self.nothing_found)
        applied = applied_of(configuration)
        publication = ResultPublisher(forge, configuration, room.clock)
        place = await publication.post_placeholder(order, applied, await forge.threads(IID))
        if self.fails:
            await publication.post_failure(order, place, "It is over.")
        else:
            await publication.post_result(order, place, applied, conducted(self.text))

    def as_it_should_be(self, room: Room, order: WorkOrder) -> None:
        """One placeholder, except for a reply, and one end; nothing that has to be internal is public."""
        notes = said_by(room, order)
        assert [each.is_a(NoteKind.PLACEHOLDER) for each in notes].count(True) == (order.cause is not OrderCause.REPLY)
        assert len([each for each in notes if each.marker and each.marker.part in ENDS]) == 1
        assert [each.note.internal for each in notes] == [self.internal] * len(notes)


WAYS = {
    "automatic, public": Way(automatic, internal=False),
    "automatic, internal": Way(automatic, internal=True),
    "command in its thread": Way(command, internal=False),
    "command, internal": Way(command, internal=True),
    "reply in its thread": Way(reply, internal=False),
    "reply, internal": Way(reply, internal=True),
    "failed": Way(automatic, internal=True, fails=True),
    "nothing found": Way(automatic, internal=False, text="Nothing to report."),
}


@pytest.fixture(params=list(WAYS.values()), ids=list(WAYS))
def way(request: pytest.FixtureRequest) -> Way:
    found = request.param
    assert isinstance(found, Way)
    return found


def said_by(room: Room, order: WorkOrder) -> list[Said]:
    return [said for said in room.ours() if said.marker and said.marker.order == order.id]


def alive(forge: Any) -> GitLabWriter:
    """The stand-ins fulfil the port by passing on what they do not change."""
    found: GitLabWriter = forge
    return found


async def test_an_order_that_is_delivered_twice_is_told_once(room: Room, way: Way) -> None:
    order = way.make(room, "order")
    await way.gone(room, order, room.forge)
    before = [said.body for said in room.ours()]
    await way.gone(room, order, room.forge)
    assert [said.body for said in room.ours()] == before
    way.as_it_should_be(room, order)


@pytest.mark.parametrize("after", [also(False), True])
async def test_a_process_that_dies_at_any_call_neither_loses_nor_repeats_a_note(
    room: Room, way: Way, after: bool
) -> None:
    whole = Mortal(room.forge)
    await way.gone(room, way.make(room, "whole"), alive(whole))
    assert len(whole.calls) >= 4
    for last in range(len(whole.calls)):
        order = way.make(room, f"order {last}")
        mortal = Mortal(room.forge, last, after=after)
        with pytest.raises(Died):
            await way.gone(room, order, alive(mortal))
        assert mortal.calls == whole.calls[: last + 1]
        await way.gone(room, order, room.forge)
        way.as_it_should_be(room, order)


@pytest.mark.thorough
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_process_that_dies_in_silence_leaves_nothing_half_done(room: Room, after: bool) -> None:
    way = Way(automatic, internal=False, text="Nothing to report.", nothing_found="silence")
    whole = Mortal(room.forge)
    await way.gone(room, way.make(room, "whole"), alive(whole))
    assert whole.calls == ["threads", "open_thread", "add_emoji", "resolve"]
    for last in range(len(whole.calls)):
        order = way.make(room, f"order {last}")
        with pytest.raises(Died):
            await way.gone(room, order, alive(Mortal(room.forge, last, after=after)))
        await way.gone(room, order, room.forge)
        (placeholder,) = said_by(room, order)
        assert room.awards(placeholder.note.id) == ["white_check_mark"]
        assert placeholder.thread.resolved


@pytest.mark.parametrize("fault", [server_error_fault(502), also(server_error_fault(500)), also(DropConnection())])
@pytest.mark.parametrize("after_write", [False, True], ids=["not written", "written"])
@pytest.mark.parametrize("which", [0, 1])
async def test_a_write_that_seems_to_have_failed_is_looked_for_first(
    room: Room, fault: Any, after_write: bool, which: int
) -> None:
    """`which`: the placeholder's or the result's. Both are notes; in public, the first one is a discussion."""
    for internal, path in ((True, "*/notes"), (False, "*/discussions" if which == 0 else "*/notes")):
        order = automatic(room, f"{internal}")
        after = which if internal else 0
        room.lab.world.faults.plan(path, fault, method="POST", after_write=after_write, after=after)
        way = Way(automatic, internal=internal)
        await way.gone(room, order, room.forge)
        way.as_it_should_be(room, order)
        assert room.clock.naps


async def test_an_internal_note_whose_thread_cannot_be_looked_up_is_found_later(room: Room) -> None:
    """GitLab writes it and is gone: neither the forge nor we can look."""
    way, order = WAYS["automatic, internal"], automatic(room, "order")
    threads = await room.forge.threads(IID)
    room.lab.world.faults.plan("*/discussions", server_error_fault(502), times=2 * FORGE_ATTEMPTS, method="GET")
    configuration = configured()
    with pytest.raises(GitLabUnavailable):
        await room.publication(configuration).post_placeholder(order, applied_of(configuration), threads)
    assert len(said_by(room, order)) == 1
    await way.gone(room, order, room.forge)
    way.as_it_should_be(room, order)


async def test_a_note_that_is_slow_to_appear_is_waited_for(room: Room) -> None:
    way, order = WAYS["automatic, public"], automatic(room, "order")
    slow = Doubtful(room.forge, times=1, kept=[1], hidden=1)
    await way.gone(room, order, alive(slow))
    way.as_it_should_be(room, order)
    assert room.clock.naps == list(NOTE_LOOKS_S)


async def test_what_is_found_at_once_is_not_waited_for_any_longer(room: Room) -> None:
    way, order = WAYS["automatic, public"], automatic(room, "order")
    await way.gone(room, order, alive(Doubtful(room.forge, times=1, kept=[1])))
    way.as_it_should_be(room, order)
    assert room.clock.naps == [NOTE_LOOKS_S[0]]


async def test_what_was_not_written_is_written_again(room: Room) -> None:
    way, order = WAYS["automatic, public"], automatic(room, "order")
    doubtful = Doubtful(room.forge, times=NOTE_WRITES - 1)
    await way.gone(room, order, alive(doubtful))
    way.as_it_should_be(room, order)
    assert doubtful.wrote == NOTE_WRITES + 1  # and the result


@pytest.mark.thorough
async def test_doubt_has_an_end_and_the_next_delivery_goes_on(room: Room) -> None:
    way, order = WAYS["automatic, public"], automatic(room, "order")
    doubtful = Doubtful(room.forge, times=99)
    with pytest.raises(GitLabWriteUncertain):
        await way.gone(room, order, alive(doubtful))
    assert doubtful.wrote == NOTE_WRITES
    assert said_by(room, order) == []
    await way.gone(room, order, room.forge)
    way.as_it_should_be(room, order)


async def test_the_last_write_counts_if_it_is_found(room: Room) -> None:
    way, order = WAYS["automatic, public"], automatic(room, "order")
    doubtful = Doubtful(room.forge, times=NOTE_WRITES, kept=[NOTE_WRITES])
    await way.gone(room, order, alive(doubtful))
    way.as_it_should_be(room, order)


async def test_a_failure_after_a_result_is_not_told(room: Room) -> None:
    """An order has one end: whatever goes wrong once it was told does not matter to readers."""
    order = automatic(room, "order")
    await WAYS["automatic, internal"].gone(room, order, room.forge)
    await WAYS["failed"].gone(room, order, room.forge)
    assert [said.marker.part for said in said_by(room, order) if said.marker] == [NoteKind.PLACEHOLDER, NoteKind.RESULT]


async def test_two_orders_in_one_thread_have_a_result_each(room: Room) -> None:
    first = reply(room, "first")
    second = ordered(
        OrderCause.REPLY,
        id="second",
        session_id=first.session_id,
        discussion_id=first.discussion_id,
        note_id=room.writes("And now?", thread=first.discussion_id).note_id,
    )
    for order in (first, second, first, second):
        await WAYS["reply in its thread"].gone(room, order, room.forge)
    for order in (first, second):
        WAYS["reply in its thread"].as_it_should_be(room, order)


async def test_an_order_goes_on_in_the_thread_of_one_whose_run_died(room: Room) -> None:
    """Both are about the same commit and so in one session."""
    dead = automatic(room, "dead")
    next_one = ordered(id="next", session_id=dead.session_id, sha=dead.sha)
    configuration = configured()
    publication = room.publication(configuration)
    await publication.post_placeholder(dead, applied_of(configuration), await room.threads())
    await WAYS["automatic, internal"].gone(room, next_one, room.forge)
    placeholder, result = room.ours()
    assert placeholder.thread is result.thread
    assert result.marker is not None
    assert result.marker.order == "next"


async def test_somebody_elses_note_with_our_marker_is_no_note_of_ours(room: Room) -> None:
    way, order = WAYS["automatic, public"], automatic(room, "order")
    await way.gone(room, order, room.forge)
    copied = room.ours()[-1].body
    other = automatic(room, "other")
    room.writes(copied.replace('"order":"order"', '"order":"other"'))
    await way.gone(room, other, room.forge)
    way.as_it_should_be(room, other)

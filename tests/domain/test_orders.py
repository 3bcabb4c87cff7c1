"""What travels on the queue is read back as it was, whatever people wrote (E2), and names the same thing alike (R7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from hummingbird.adapters.queues.acceptable import check_sendable
from hummingbird.domain.orders import Arrived, Cause, Envelope, Overrides, WorkOrder, order_of, session_of, written

WORDS = st.text()
HALVES = st.text(st.characters(categories=["Cs", "Lu", "Nd"]), min_size=1)


def order(message: str = "", model: str = "") -> WorkOrder:
    return WorkOrder(
        id="o",
        session_id="s",
        cause=Cause.REPLY,
        workflow="look",
        project="group/project",
        mr_iid=7,
        message=message,
        overrides=Overrides(model=model),
    )


def read(text: str) -> Envelope:
    return json.decode(text, type=Arrived | WorkOrder)


@given(WORDS, WORDS)
def test_e2_what_is_written_is_read_back_and_every_queue_takes_it(message: str, model: str) -> None:
    for envelope in (order(message, model), Arrived(identity=message, body=model, at=1.5, forced=True)):
        text = written(envelope)
        check_sendable(text, "group", "id")
        assert text.isascii()
        assert read(text) == envelope


@given(HALVES)
def test_e2_half_a_character_costs_itself_and_nothing_else(text: str) -> None:
    """JSON's escapes can say it, UTF-8 cannot; who asked must not wait for an answer in vain because of it."""
    whole = text.encode("utf-8", "replace").decode()
    for envelope, expected in (
        (order(text, text), order(whole, whole)),
        (Arrived(identity=text), Arrived(identity=whole)),
    ):
        body = written(envelope)
        check_sendable(body, "group", "id")
        assert read(body) == expected


@pytest.mark.parametrize("text", ["\x00\x1b\x7f\x85\u2028\ufffe\uffff", "\U0001f680é", '"\\u0041\\'])
def test_e2_signs_that_queues_do_not_carry_arrive_all_the_same(text: str) -> None:
    assert read(written(order(text))) == order(text)


def test_e2_what_says_nothing_is_not_written() -> None:
    """An older worker may read it: it knows no key that was added since, and needs none that is not used."""
    assert written(Arrived(identity="i", body="b")) == '{"kind":"event","identity":"i","body":"b"}'
    assert "message" not in written(order())


def test_e2_a_key_of_a_newer_version_is_passed_over() -> None:
    assert read('{"kind":"event","identity":"i","added_later":[1]}') == Arrived(identity="i")


def test_r7_the_same_thing_has_one_session_whoever_writes_the_path() -> None:
    session = session_of("Group/Project", 7, "look", "abc")
    assert session == session_of("group/project", 7, "look", "abc")
    others = {
        session_of("group/other", 7, "look", "abc"),
        session_of("group/project", 8, "look", "abc"),
        session_of("group/project", 7, "review", "abc"),
        session_of("group/project", 7, "look", "abd"),
        session_of("group/project7", 7, "look", "abc"),
        order_of(session, "event"),
        order_of(session, "another"),
        order_of("another", "event"),
    }
    assert len(others | {session}) == 9


@given(HALVES)
def test_e2_ids_can_be_names_of_groups_whatever_they_are_made_of(text: str) -> None:
    check_sendable("body", session_of(text, 1, text, text), order_of(text, text))


@pytest.mark.parametrize(
    ("cause", "forced", "checked"),
    [
        (Cause.PIPELINE, False, True),
        (Cause.MERGE_REQUEST, False, True),
        (Cause.PIPELINE, True, False),
        (Cause.COMMAND, False, False),
        (Cause.REPLY, False, False),
    ],
)
def test_r7_only_what_nobody_asked_for_is_checked_against_earlier_runs(
    cause: Cause, forced: bool, checked: bool
) -> None:
    made = WorkOrder(id="o", session_id="s", cause=cause, workflow="w", project="p", mr_iid=1, forced=forced)
    assert made.checked is checked


def test_r6_what_is_said_later_holds_and_the_rest_stays() -> None:
    earlier = Overrides(model="a", max_iterations=3)
    assert Overrides(max_iterations=5).over(earlier) == Overrides(model="a", max_iterations=5)
    assert Overrides(model="b").over(earlier) == Overrides(model="b", max_iterations=3)
    assert Overrides().over(earlier) == earlier

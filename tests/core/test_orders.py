"""What travels on the queue is read back as it was, whatever people wrote, and names the same thing alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json

from hummingbird.core.orders import (
    EventEnvelope,
    OrderCause,
    QueueEnvelope,
    RunOverrides,
    WorkOrder,
    encode_envelope,
    order_id_for,
    session_id_for,
)
from hummingbird.queues.queue_rules import check_sendable

WORDS = st.text()
HALVES = st.text(st.characters(categories=["Cs", "Lu", "Nd"]), min_size=1)


def order(message: str = "", model: str = "") -> WorkOrder:
    return WorkOrder(
        id="o",
        session_id="s",
        cause=OrderCause.REPLY,
        workflow="look",
        project="group/project",
        mr_iid=7,
        message=message,
        overrides=RunOverrides(model=model),
    )


def read(text: str) -> QueueEnvelope:
    return json.decode(text, type=EventEnvelope | WorkOrder)


@given(WORDS, WORDS)
def test_what_is_written_is_read_back_and_every_queue_takes_it(message: str, model: str) -> None:
    for envelope in (order(message, model), EventEnvelope(identity=message, body=model, at=1.5, forced=True)):
        text = encode_envelope(envelope)
        check_sendable(text, "group", "id")
        assert text.isascii()
        assert read(text) == envelope


@given(HALVES)
def test_half_a_character_costs_itself_and_nothing_else(text: str) -> None:
    """JSON's escapes can say it, UTF-8 cannot; who asked must not wait for an answer in vain because of it."""
    whole = text.encode("utf-8", "replace").decode()
    for envelope, expected in (
        (order(text, text), order(whole, whole)),
        (EventEnvelope(identity=text), EventEnvelope(identity=whole)),
    ):
        body = encode_envelope(envelope)
        check_sendable(body, "group", "id")
        assert read(body) == expected


@pytest.mark.parametrize("text", ["\x00\x1b\x7f\x85\u2028\ufffe\uffff", "\U0001f680é", '"\\u0041\\'])
def test_signs_that_queues_do_not_carry_arrive_all_the_same(text: str) -> None:
    assert read(encode_envelope(order(text))) == order(text)


def test_what_says_nothing_is_not_written() -> None:
    """An older worker may read it: it knows no key that was added since, and needs none that is not used."""
    assert encode_envelope(EventEnvelope(identity="i", body="b")) == '{"kind":"event","identity":"i","body":"b"}'
    assert "message" not in encode_envelope(order())


def test_a_key_of_a_newer_version_is_passed_over() -> None:
    assert read('{"kind":"event","identity":"i","added_later":[1]}') == EventEnvelope(identity="i")


def test_the_same_thing_has_one_session_whoever_writes_the_path() -> None:
    session = session_id_for("Group/Project", 7, "look", "abc")
    assert session == session_id_for("group/project", 7, "look", "abc")
    others = {
        session_id_for("group/other", 7, "look", "abc"),
        session_id_for("group/project", 8, "look", "abc"),
        session_id_for("group/project", 7, "review", "abc"),
        session_id_for("group/project", 7, "look", "abd"),
        session_id_for("group/project7", 7, "look", "abc"),
        order_id_for(session, "event"),
        order_id_for(session, "another"),
        order_id_for("another", "event"),
    }
    assert len(others | {session}) == 9


@given(HALVES)
def test_ids_can_be_names_of_groups_whatever_they_are_made_of(text: str) -> None:
    check_sendable("body", session_id_for(text, 1, text, text), order_id_for(text, text))


@pytest.mark.parametrize(
    ("cause", "forced", "checked"),
    [
        (OrderCause.PIPELINE, False, True),
        (OrderCause.MERGE_REQUEST, False, True),
        (OrderCause.PIPELINE, True, False),
        (OrderCause.COMMAND, False, False),
        (OrderCause.REPLY, False, False),
    ],
)
def test_only_what_nobody_asked_for_is_checked_against_earlier_runs(
    cause: OrderCause, forced: bool, checked: bool
) -> None:
    made = WorkOrder(id="o", session_id="s", cause=cause, workflow="w", project="p", mr_iid=1, forced=forced)
    assert made.needs_check is checked


def test_what_is_said_later_holds_and_the_rest_stays() -> None:
    earlier = RunOverrides(model="a", max_iterations=3)
    assert RunOverrides(max_iterations=5).merge_over(earlier) == RunOverrides(model="a", max_iterations=5)
    assert RunOverrides(model="b").merge_over(earlier) == RunOverrides(model="b", max_iterations=3)
    assert RunOverrides().merge_over(earlier) == earlier

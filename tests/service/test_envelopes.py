"""Whatever door an event comes by, the same event has the same identity; what is not an event is a sentence."""

import base64
import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.errors import EventUnreadable
from hummingbird.core.limits import EVENT_BYTES, QUEUE_BODY_BYTES
from hummingbird.core.orders import EventEnvelope, OrderCause, WorkOrder, encode_envelope
from hummingbird.service.envelopes import (
    EventDelivery,
    UnwantedMessage,
    create_copy,
    create_successor,
    delivery_from_sqs,
    delivery_from_webhook,
    parse_envelope,
    queue_group,
)

WEBHOOKS = Path(__file__).parent.parent / "fixtures" / "gitlab" / "webhooks"
NOTE = (WEBHOOKS / "derived_note_mr_slash_command.json").read_bytes()
PIPELINE = (WEBHOOKS / "pipeline_failed_merge_request_event.json").read_bytes()
ORDER = WorkOrder(
    id="o", session_id="s", cause=OrderCause.REPLY, workflow="w", project="a/b", mr_iid=1, message="é\U0001f426"
)


def packed(body: bytes) -> str:
    return base64.b64encode(gzip.compress(body)).decode()


def notification(message: str, message_id: str = "sns-1", **attributes: str) -> str:
    raw: dict[str, Any] = {
        "Type": "Notification",
        "MessageId": message_id,
        "TopicArn": "arn:aws:sns:x",
        "Message": message,
    }
    if attributes:
        raw["MessageAttributes"] = {name: {"Type": "String", "Value": value} for name, value in attributes.items()}
    return json.dumps(raw)


def delivered(text: str, **attributes: str) -> EventDelivery:
    delivery = delivery_from_sqs(text, attributes)
    assert isinstance(delivery, EventDelivery)
    return delivery


def test_a_resend_keeps_its_identity_though_other_headers_change() -> None:
    first = delivery_from_webhook(NOTE, {"idempotency-key": "k", "x-gitlab-event-uuid": "1"})
    again = delivery_from_webhook(NOTE, {"idempotency-key": "k", "x-gitlab-event-uuid": "2"})
    assert first == again
    assert delivery_from_webhook(NOTE, {"idempotency-key": "other"}).identity != first.identity


def test_the_id_of_a_signed_delivery_is_the_idempotency_key_and_counts_as_it() -> None:
    vector = json.loads((WEBHOOKS / "signing_token_vector.json").read_text())
    headers = {name.lower(): value for name, value in vector["headers"].items()}
    body = vector["raw_body"].encode()
    by_key = delivery_from_webhook(body, {"idempotency-key": headers["idempotency-key"]})
    assert delivery_from_webhook(body, {"webhook-id": headers["webhook-id"]}) == by_key
    assert delivery_from_webhook(body, headers, headers["webhook-id"]) == by_key


def test_a_header_that_is_not_signed_cannot_give_a_signed_delivery_another_identity() -> None:
    honest = delivery_from_webhook(NOTE, {"idempotency-key": "k", "webhook-id": "k"}, "k")
    assert delivery_from_webhook(NOTE, {"idempotency-key": "forged", "webhook-id": "k"}, "k") == honest


def test_without_a_key_the_bytes_are_the_identity() -> None:
    assert delivery_from_webhook(NOTE, {}) == delivery_from_webhook(NOTE, {"idempotency-key": ""})
    assert delivery_from_webhook(NOTE, {}).identity != delivery_from_webhook(PIPELINE, {}).identity


@pytest.mark.parametrize("key", ["x" * 5_000, "with spaces", "\x00", "ünï\udc80", "a/../b"])
def test_any_key_becomes_a_name_that_queues_and_stores_take(key: str) -> None:
    identity = delivery_from_webhook(NOTE, {"idempotency-key": key}).identity
    assert len(identity) == 32
    assert set(identity) <= set("0123456789abcdef")


def test_the_same_event_by_both_doors_is_one_if_gitlabs_key_comes_along() -> None:
    by_http = delivery_from_webhook(NOTE, {"idempotency-key": "k"})
    assert delivered(notification(packed(NOTE), idempotency_key="k")) == by_http
    assert delivered(NOTE.decode(), **{"Idempotency-Key": "k"}) == by_http


@pytest.mark.parametrize("message", [NOTE.decode(), packed(NOTE), f"  {packed(NOTE)[:40]}\n{packed(NOTE)[40:]}\n"])
def test_sns_may_send_it_plain_or_packed_in_an_envelope_or_raw(message: str) -> None:
    assert delivered(notification(message)).body == NOTE
    assert delivered(message).body == NOTE


def test_an_envelope_is_one_without_the_fields_that_only_sns_fills_in() -> None:
    assert delivered(json.dumps({"Type": "Notification", "MessageId": "1", "Message": packed(NOTE)})).body == NOTE
    odd = json.dumps({"object_kind": "push", "Type": "Notification", "Message": "of somebody's template"})
    assert delivered(odd).body == odd.encode()


def test_a_redelivery_by_sns_is_known_by_the_id_of_sns() -> None:
    first = delivered(notification(packed(NOTE)))
    assert delivered(notification(packed(NOTE))) == first
    assert delivered(notification(packed(NOTE), "sns-2")).identity != first.identity


def test_what_is_not_gitlabs_is_unwanted_and_not_an_error() -> None:
    assert delivery_from_sqs(notification("{}", source="kubernetes"), {}) == UnwantedMessage("its source is not GitLab")
    assert delivered(notification(NOTE.decode(), source="gitlab", event_type="note")).body == NOTE
    confirmation = json.dumps({"Type": "SubscriptionConfirmation", "TopicArn": "arn", "Message": "You have chosen …"})
    assert delivery_from_sqs(confirmation, {}) == UnwantedMessage("SNS sent it for itself")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        packed(NOTE)[:-9],
        base64.b64encode(NOTE).decode(),
        base64.b64encode(gzip.compress(NOTE)[:-4]).decode(),
        base64.b64encode(gzip.compress(NOTE) + b"more").decode(),
        json.dumps({"Type": "Notification", "TopicArn": "arn", "Message": 3}),
        "\ud800",
    ],
)
def test_what_cannot_be_unpacked_is_one_sentence(text: str) -> None:
    with pytest.raises(EventUnreadable) as caught:
        delivery_from_sqs(text, {})
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_a_bomb_is_not_unpacked_beyond_the_bound() -> None:
    bomb = packed(b" " * (EVENT_BYTES + 1))
    assert len(bomb) < QUEUE_BODY_BYTES
    with pytest.raises(EventUnreadable, match="unpacks to more than"):
        delivery_from_sqs(bomb, {})


def test_notes_of_a_thread_are_one_group_and_all_else_is_alone() -> None:
    thread = json.loads(NOTE)["object_attributes"]["discussion_id"]
    assert queue_group(delivery_from_webhook(NOTE, {"idempotency-key": "1"})) == thread
    pipeline = delivery_from_webhook(PIPELINE, {"idempotency-key": "2"})
    assert queue_group(pipeline) == pipeline.identity


@pytest.mark.parametrize("thread", ["with space", "x" * 129, "ü", "\n"])
def test_a_thread_with_an_odd_name_is_still_a_group(thread: str) -> None:
    body = json.dumps({"object_kind": "note", "object_attributes": {"discussion_id": thread}}).encode()
    first, other = (queue_group(delivery_from_webhook(body, {"idempotency-key": key})) for key in "12")
    assert first == other
    assert first.isalnum()


@pytest.mark.parametrize("thread", [None, "", 3, [], {}])
def test_a_note_without_a_thread_is_alone(thread: object) -> None:
    body = json.dumps({"object_kind": "note", "object_attributes": {"discussion_id": thread}}).encode()
    delivery = delivery_from_webhook(body, {})
    assert queue_group(delivery) == delivery.identity


@given(st.text())
def test_any_text_in_the_queue_of_events_is_understood_or_refused(text: str) -> None:
    with suppress(EventUnreadable):
        delivery_from_sqs(text, {})
    with suppress(EventUnreadable):
        delivery_from_sqs(notification(text), {})


@given(st.binary())
def test_any_bytes_have_an_identity_and_a_group(body: bytes) -> None:
    delivery = delivery_from_webhook(body, {})
    assert queue_group(delivery)


@pytest.mark.parametrize("envelope", [EventEnvelope(identity="i", body=NOTE.decode(), at=1.5), ORDER])
def test_what_was_written_is_read_back_and_is_ascii(envelope: EventEnvelope | WorkOrder) -> None:
    assert encode_envelope(envelope).isascii()
    assert parse_envelope(encode_envelope(envelope)) == envelope


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "hello", '{"kind":"verdict"}', '{"kind":"order","id":"o"}', "\ud800", "[" * 100_000]
)
def test_what_is_none_of_our_messages_or_newer_is_one_sentence(body: str) -> None:
    with pytest.raises(EventUnreadable, match=r"not ours, or a newer version .*delete the message\.$"):
        parse_envelope(body)


def test_a_successor_counts_on_and_has_an_id_of_its_own() -> None:
    first = create_successor(ORDER, 0)
    second = create_copy(first.body, "any")
    assert [parse_envelope(one.body) for one in (first, second)] == [
        WorkOrder(**{**_fields(ORDER), "waits": waits}) for waits in (1, 2)
    ]
    assert len({first.dedup_id, second.dedup_id, ORDER.id}) == 3
    assert create_successor(ORDER, 0) == first


def test_a_copy_of_what_is_no_order_is_the_same_for_the_same_message() -> None:
    event = encode_envelope(EventEnvelope(identity="i", body="{}"))
    assert create_copy(event, "1") == create_copy(event, "1")
    assert create_copy(event, "1").body == event
    assert create_copy(event, "1").dedup_id != create_copy(event, "2").dedup_id
    assert create_copy("nonsense", "1").body == "nonsense"


def _fields(order: WorkOrder) -> dict[str, Any]:
    return {name: getattr(order, name) for name in order.__struct_fields__}

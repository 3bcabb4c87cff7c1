"""Pack and unpack the envelopes that events travel in: webhook headers, SNS, SQS and our own queue.

The functions are pure and read nothing of an event's content but the thread of a note. An event may be delivered more
than once: its identity says whether it is the same one.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import msgspec

from hummingbird.core.errors import EventUnreadable
from hummingbird.core.json_codec import InvalidJson, JsonDecoder, decode_json_object
from hummingbird.core.limits import EVENT_BYTES, QUEUE_NAME_CHARS
from hummingbird.core.orders import EventEnvelope, QueueEnvelope, WorkOrder, encode_envelope
from hummingbird.core.protocols.queues import SuccessorMessage

_GZIPPED = 16 + zlib.MAX_WBITS
_NAME = re.compile(rf"[!-~]{{1,{QUEUE_NAME_CHARS}}}")
_ENVELOPE: JsonDecoder[QueueEnvelope] = JsonDecoder(EventEnvelope | WorkOrder)


class _NoteAttributes(msgspec.Struct):
    discussion_id: Any = None


class _NotePayload(msgspec.Struct):
    object_kind: Any = None
    object_attributes: _NoteAttributes | None = None


_NOTE: JsonDecoder[_NotePayload] = JsonDecoder(_NotePayload)


@dataclass(frozen=True, slots=True)
class EventDelivery:
    """An event's own bytes and its identity, which is the same for every delivery and usable as a name."""

    body: bytes
    identity: str


@dataclass(frozen=True, slots=True)
class UnwantedMessage:
    """A message that arrived in the event queue but is not from GitLab."""

    reason: str


def delivery_from_webhook(body: bytes, headers: Mapping[str, str], signed_id: str = "") -> EventDelivery:
    """Return the event of a webhook request; `headers` have lower-case names.

    `signed_id` is the id that a signature vouches for: whoever repeats a signed delivery can change every other header.
    """
    key = signed_id or headers.get("idempotency-key", "") or headers.get("webhook-id", "")
    return EventDelivery(body, _delivery_identity(body, key, ""))


def delivery_from_sqs(text: str, attributes: Mapping[str, str]) -> EventDelivery | UnwantedMessage:
    """Return the event in an SQS message: an SNS envelope or, with raw delivery, its content.

    `attributes` are those of the message itself. Raises EventUnreadable.
    """
    sns = _parse_sns(text)
    if sns is None:
        return _unpack_delivery(text, attributes, "")
    if sns.get("Type") != "Notification":
        return UnwantedMessage("SNS sent it for itself")
    message, own = sns.get("Message"), sns.get("MessageId")
    if not isinstance(message, str):
        raise EventUnreadable("The notification of SNS holds no Message: subscribe the queue to the topic of events.")
    return _unpack_delivery(message, _sns_attributes(sns.get("MessageAttributes")), own if isinstance(own, str) else "")


def _parse_sns(text: str) -> dict[str, Any] | None:
    raw = decode_json_object(text)
    if raw is None or "object_kind" in raw:
        return None
    return raw if isinstance(raw.get("Type"), str) and "Message" in raw else None


def _sns_attributes(raw: object) -> dict[str, str]:
    if not isinstance(raw, dict):
        return {}
    values = {name: entry.get("Value") for name, entry in raw.items() if isinstance(entry, dict)}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _unpack_delivery(message: str, attributes: Mapping[str, str], sns_id: str) -> EventDelivery | UnwantedMessage:
    named = {name.lower().replace("_", "-"): value for name, value in attributes.items()}
    if named.get("source", "gitlab") != "gitlab":
        return UnwantedMessage("its source is not GitLab")
    body = _decode_body(message)
    key = named.get("idempotency-key", "") or named.get("webhook-id", "")
    return EventDelivery(body, _delivery_identity(body, key, sns_id))


def _decode_body(message: str) -> bytes:
    """Return JSON as it is and unpack anything else as gzip in base64.

    The text itself decides: an attribute may name the encoding too, but it may be wrong.
    """
    if message.lstrip()[:1] in ("{", "["):
        body = message.encode("utf-8", "replace")
        if len(body) > EVENT_BYTES:
            raise EventUnreadable(f"The event is larger than {EVENT_BYTES} bytes: GitLab sends no such thing.")
        return body
    try:
        packed = base64.b64decode("".join(message.split()), validate=True)
        return _gunzip(packed)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise EventUnreadable("The message holds neither JSON nor gzip in base64: send what GitLab sent.") from error


def _gunzip(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj(_GZIPPED)
    body = unpacking.decompress(packed, EVENT_BYTES + 1)
    if len(body) > EVENT_BYTES:
        raise EventUnreadable(f"The event unpacks to more than {EVENT_BYTES} bytes: GitLab sends no such thing.")
    if not unpacking.eof or unpacking.unused_data:
        raise EventUnreadable("The packed event is cut off, or something stands behind it: send it whole.")
    return body


def _delivery_identity(body: bytes, key: str, sns_id: str) -> str:
    """Return the identity of a delivery from the most reliable source there is.

    GitLab's own key survives a resend, whichever way the event arrives. The id of SNS survives only SNS's own
    redeliveries. Without either, the bytes are hashed: two events with the same bytes are one. An identity made of
    chosen fields would take two events for one as soon as a field is missing from the list.
    """
    if key:
        return hash_name("delivery", key)
    if sns_id:
        return hash_name("sns", sns_id)
    return sha256(b"body\0" + body).hexdigest()[:32]


def hash_name(*parts: str) -> str:
    """Return a name made of the parts that every queue and store accepts."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def queue_group(delivery: EventDelivery) -> str:
    """Return the group whose messages are processed in order: the note's thread, or the event alone."""
    try:
        note = _NOTE.decode(delivery.body)
    except InvalidJson:
        return delivery.identity
    thread = note.object_attributes.discussion_id if note.object_attributes else None
    if note.object_kind != "note" or not isinstance(thread, str) or not thread:
        return delivery.identity
    return thread if _NAME.fullmatch(thread) else hash_name("thread", thread)


def is_event(body: str) -> bool:
    """Return whether the message is an event, by its beginning: we always write the kind first."""
    return body.startswith('{"kind":"event"')


def parse_envelope(body: str) -> QueueEnvelope:
    """Read what `encode_envelope` wrote.

    Raises EventUnreadable if the message is not ours, or a newer version wrote it.
    """
    try:
        return _ENVELOPE.decode(body)
    except InvalidJson as error:
        raise EventUnreadable(
            "A message in the queue is not ours, or a newer version wrote it: update this one, or delete the message."
        ) from error


def create_successor(order: WorkOrder, waits: int) -> SuccessorMessage:
    """Return a new message with the same order."""
    following = msgspec.structs.replace(order, waits=waits + 1)
    return SuccessorMessage(encode_envelope(following), hash_name("successor", order.id, str(following.waits)))


def count_postponement(envelope: QueueEnvelope) -> QueueEnvelope:
    """Return the envelope with one more postponement counted."""
    return msgspec.structs.replace(envelope, put_off=envelope.put_off + 1)


def count_tries(envelope: QueueEnvelope, receives: int) -> QueueEnvelope:
    """Return the envelope with the tries of a message counted that its queue would not give out again."""
    return msgspec.structs.replace(envelope, tries=envelope.tries + receives)


def create_copy(body: str, message_id: str) -> SuccessorMessage:
    """Return a new message that goes behind the one before it."""
    try:
        envelope = parse_envelope(body)
    except EventUnreadable:
        envelope = None
    if isinstance(envelope, WorkOrder):
        return create_successor(envelope, envelope.waits)
    return SuccessorMessage(body, hash_name("copy", message_id))

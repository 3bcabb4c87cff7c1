"""What events travel in (E1, E2): a webhook's headers, SNS, SQS, our own queue. Pure, and it knows no event's meaning
but where a note's thread is named.

Whoever hands an event over may do so more than once: its identity says whether it is the same one.
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

from hummingbird.domain.errors import EventUnreadable
from hummingbird.domain.limits import EVENT_BYTES, QUEUE_NAME_CHARS
from hummingbird.domain.orders import Arrived, Envelope, WorkOrder, written
from hummingbird.ports.queue import Successor

_GZIPPED = 16 + zlib.MAX_WBITS
_NAME = re.compile(rf"[!-~]{{1,{QUEUE_NAME_CHARS}}}")
_ENVELOPE: msgspec.json.Decoder[Envelope] = msgspec.json.Decoder(Arrived | WorkOrder)


class _Thread(msgspec.Struct):
    discussion_id: Any = None


class _Note(msgspec.Struct):
    object_kind: Any = None
    object_attributes: _Thread | None = None


_NOTE = msgspec.json.Decoder(_Note)


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event's own bytes, and its identity: the same for every delivery of it, and fit to name things by."""

    body: bytes
    identity: str


@dataclass(frozen=True, slots=True)
class Unwanted:
    """It came through the right door and is none of GitLab's."""

    reason: str


def from_webhook(body: bytes, headers: Mapping[str, str], signed_id: str = "") -> Delivery:
    """`headers` by their names in small letters. `signed_id` is the one that a signature vouches for: whoever repeats
    a signed delivery can change every other header."""
    key = signed_id or headers.get("idempotency-key", "") or headers.get("webhook-id", "")
    return Delivery(body, _identity(body, key, ""))


def from_sqs(text: str, attributes: Mapping[str, str]) -> Delivery | Unwanted:
    """A message of SQS: an envelope of SNS or, with raw delivery, what SNS would put into one; `attributes` are
    the message's own. Raises EventUnreadable."""
    sns = _sns(text)
    if sns is None:
        return _unpacked(text, attributes, "")
    if sns.get("Type") != "Notification":
        return Unwanted("SNS sent it for itself")
    message, own = sns.get("Message"), sns.get("MessageId")
    if not isinstance(message, str):
        raise EventUnreadable("The notification of SNS holds no Message: subscribe the queue to the topic of events.")
    return _unpacked(message, _attributes(sns.get("MessageAttributes")), own if isinstance(own, str) else "")


def _sns(text: str) -> dict[str, Any] | None:
    try:
        raw = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if not isinstance(raw, dict) or "object_kind" in raw:
        return None
    return raw if isinstance(raw.get("Type"), str) and "Message" in raw else None


def _attributes(raw: object) -> dict[str, str]:
    if not isinstance(raw, dict):
        return {}
    values = {name: entry.get("Value") for name, entry in raw.items() if isinstance(entry, dict)}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _unpacked(message: str, attributes: Mapping[str, str], sns_id: str) -> Delivery | Unwanted:
    named = {name.lower().replace("_", "-"): value for name, value in attributes.items()}
    if named.get("source", "gitlab") != "gitlab":
        return Unwanted("its source is not GitLab")
    body = _bytes(message)
    key = named.get("idempotency-key", "") or named.get("webhook-id", "")
    return Delivery(body, _identity(body, key, sns_id))


def _bytes(message: str) -> bytes:
    """JSON as it is; anything else must be gzip in base64. An attribute may say so too, but the text cannot lie."""
    if message.lstrip()[:1] in ("{", "["):
        body = message.encode("utf-8", "replace")
        if len(body) > EVENT_BYTES:
            raise EventUnreadable(f"The event is larger than {EVENT_BYTES} bytes: GitLab sends no such thing.")
        return body
    try:
        packed = base64.b64decode("".join(message.split()), validate=True)
        return _gunzipped(packed)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise EventUnreadable("The message holds neither JSON nor gzip in base64: send what GitLab sent.") from error


def _gunzipped(packed: bytes) -> bytes:
    unpacking = zlib.decompressobj(_GZIPPED)
    body = unpacking.decompress(packed, EVENT_BYTES + 1)
    if len(body) > EVENT_BYTES:
        raise EventUnreadable(f"The event unpacks to more than {EVENT_BYTES} bytes: GitLab sends no such thing.")
    if not unpacking.eof or unpacking.unused_data:
        raise EventUnreadable("The packed event is cut off, or something stands behind it: send it whole.")
    return body


def _identity(body: bytes, key: str, sns_id: str) -> str:
    """GitLab's own key for a delivery, which a resend keeps, by whatever door it comes. Without one, SNS's, which
    only its own redeliveries keep. Else the bytes: two events that say exactly the same are one, and an identity made
    of some fields would take two for one as soon as a field is missing from the list."""
    if key:
        return named_by("delivery", key)
    if sns_id:
        return named_by("sns", sns_id)
    return sha256(b"body\0" + body).hexdigest()[:32]


def named_by(*parts: str) -> str:
    """A name that every queue and store takes."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def group_of(delivery: Delivery) -> str:
    """What it is worked off in line with (E2): the other notes of its thread, or nothing."""
    try:
        note = _NOTE.decode(delivery.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return delivery.identity
    thread = note.object_attributes.discussion_id if note.object_attributes else None
    if note.object_kind != "note" or not isinstance(thread, str) or not thread:
        return delivery.identity
    return thread if _NAME.fullmatch(thread) else named_by("thread", thread)


def is_event(body: str) -> bool:
    """By how it begins: what it is stands first in whatever we write."""
    return body.startswith('{"kind":"event"')


def opened(body: str) -> Envelope:
    """What `written` wrote. Raises EventUnreadable: nothing of ours, or of a newer version."""
    try:
        return _ENVELOPE.decode(body)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise EventUnreadable(
            "A message in the queue is none of ours, or a newer version wrote it: update this one, or drop it."
        ) from error


def successor_of(order: WorkOrder, waits: int) -> Successor:
    """The same order, as another message (E3)."""
    following = msgspec.structs.replace(order, waits=waits + 1)
    return Successor(written(following), named_by("successor", order.id, str(following.waits)))


def put_off(envelope: Envelope) -> Envelope:
    """The same once more, later."""
    return msgspec.structs.replace(envelope, put_off=envelope.put_off + 1)


def copied(body: str, message_id: str) -> Successor:
    """Of any message that has to make room for one before it."""
    try:
        envelope = opened(body)
    except EventUnreadable:
        envelope = None
    if isinstance(envelope, WorkOrder):
        return successor_of(envelope, envelope.waits)
    return Successor(body, named_by("copy", message_id))

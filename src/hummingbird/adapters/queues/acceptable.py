"""What every queue takes: the rules of SQS, for what the embedded queue accepts must not fail in the cloud."""

import re

from hummingbird.domain.errors import InvalidRequest
from hummingbird.domain.limits import (
    QUEUE_BATCH,
    QUEUE_BODY_BYTES,
    QUEUE_HELD_S,
    QUEUE_NAME_CHARS,
    QUEUE_WAIT_S,
)

_NAME = re.compile(rf"[!-~]{{1,{QUEUE_NAME_CHARS}}}")  # ASCII letters, digits and punctuation
_NOT_CARRIED = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML 1.0 has no place for


def check_sendable(body: str, group: str, dedup_id: str) -> None:
    """Raises InvalidRequest."""
    for what, name in (("group", group), ("deduplication id", dedup_id)):
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"A message's {what} is 1 to {QUEUE_NAME_CHARS} ASCII characters without spaces, not {name[:200]!a}; "
                "use a hash of it."
            )
    _check_body(body)


def _check_body(body: str) -> None:
    if not body:
        raise InvalidRequest("A queue carries no empty message; put something into its body.")
    if found := _NOT_CARRIED.search(body):
        raise InvalidRequest(
            f"A queue cannot carry the character U+{ord(found[0]):04X} at position {found.start()}; encode the body."
        )
    if (weight := len(body.encode())) > QUEUE_BODY_BYTES:
        raise InvalidRequest(
            f"The message weighs {weight} bytes and a queue carries {QUEUE_BODY_BYTES}; store it and send its name."
        )


def check_receivable(most: int, wait_s: float) -> None:
    """Raises InvalidRequest."""
    if not 1 <= most <= QUEUE_BATCH:
        raise InvalidRequest(f"A queue gives 1 to {QUEUE_BATCH} messages at once, not {most}; ask again for more.")
    if not 0 <= wait_s <= QUEUE_WAIT_S:
        raise InvalidRequest(f"A queue waits 0 to {QUEUE_WAIT_S:.0f} seconds, not {wait_s}; ask again to wait longer.")


def check_holdable(seconds: int, least: int) -> None:
    """Raises InvalidRequest."""
    if not least <= seconds <= QUEUE_HELD_S:
        raise InvalidRequest(
            f"A message is held for {least} to {QUEUE_HELD_S} seconds, not {seconds}; send a successor for later work."
        )

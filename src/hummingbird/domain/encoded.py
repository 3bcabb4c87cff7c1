"""What a wire already made of the beginning of a conversation (M2: each message is encoded once).

Belongs to one wire epoch: within it the beginning never changes, and the next epoch starts with an empty one. It is a
cache and nothing else: a request encodes to the same bytes with and without it.
"""

from dataclasses import dataclass, field

from hummingbird.domain.messages import Message


@dataclass(slots=True)
class Encoded:
    """`count` messages, the last of them `last`, stand in `body`; `call_ids` are the tool calls among them. `head`
    holds what stands before the conversation, by name."""

    count: int = 0
    last: Message | None = None
    body: bytearray = field(default_factory=bytearray)
    call_ids: set[str] = field(default_factory=set)
    head: dict[str, bytes] = field(default_factory=dict)

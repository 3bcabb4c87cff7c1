"""Cache the encoded beginning of a conversation, so that each turn checks and encodes only what is new.

The cached prefix ends with an assistant message before the end of the last answered call. So neither later messages
nor a moving cache breakpoint can change how the prefix is encoded. The caller passes the function that encodes messages
for its API.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from hummingbird.core.errors import InvalidRequest
from hummingbird.core.messages import AssistantMessage, EncodedMessages, Message, find_request_problems
from hummingbird.core.protocols.model import ModelRequest


class TurnFragment(NamedTuple):
    """A JSON fragment of a turn, for APIs whose turns are a role and a list (Anthropic's blocks, Gemini's parts).

    `body` is one item of the turn's list, or all items of an assistant message. `message` is the index of the message
    that it encodes.
    """

    role: str
    body: bytes
    message: int


def join_turns(fragments: Iterable[TurnFragment], items: str) -> bytes:
    """Join fragments into the items of a JSON list of turns; adjacent fragments of one role share a turn.

    `items` is the key of a turn's list.
    """
    pieces: list[bytes] = []
    role, close = "", b""
    for fragment in fragments:
        if fragment.role == role:
            pieces.append(b",")
        else:
            role = fragment.role
            pieces.append(close + f'{{"role":"{role}","{items}":['.encode())
            close = b"]},"
        pieces.append(fragment.body)
    if pieces:
        pieces.append(b"]}")
    return b"".join(pieces)


Render: TypeAlias = Callable[[Sequence[Message], Message | None], bytes]


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """The encoded beginning of a conversation and what follows it.

    `prefix` holds JSON items, each followed by a comma. `rest` are the messages after them, from index `start`, and
    `before` is the last message of the prefix.
    """

    prefix: bytearray
    rest: Sequence[Message]
    start: int
    before: Message | None


def extend_prefix(request: ModelRequest, provider: str, render: Render) -> CachedPrefix:
    """Check the new messages and add those to the prefix that can no longer change.

    `render` encodes messages and also receives the message before them. Raises InvalidRequest for the first problem
    that every provider would refuse.
    """
    messages, memo = request.messages, request.encoded
    if memo.count and (memo.count > len(messages) or messages[memo.count - 1] is not memo.last):
        memo.count, memo.last, memo.body = 0, None, bytearray()
        memo.call_ids.clear()
    if problem := next(find_request_problems(messages, memo.count, memo.call_ids), None):
        raise InvalidRequest(f"The conversation cannot be sent to {provider}: {problem}.")
    _advance(memo, messages, request.cached_messages, render)
    return CachedPrefix(memo.body, messages[memo.count :], memo.count, memo.last)


def _advance(memo: EncodedMessages, messages: Sequence[Message], cached: int, render: Render) -> None:
    end = _stable_end(messages, memo.count, min(cached, len(messages)) - 1)
    if end == memo.count:
        return
    fresh = messages[memo.count : end]
    if items := render(fresh, memo.last):
        memo.body += items
        memo.body += b","
    memo.call_ids.update(call.id for m in fresh if isinstance(m, AssistantMessage) for call in m.calls)
    memo.count, memo.last = end, fresh[-1]


def _stable_end(messages: Sequence[Message], start: int, limit: int) -> int:
    """Find the end of the longest prefix within `limit` that ends with an assistant message and no further one."""
    for end in range(limit, start, -1):
        if type(messages[end - 1]) is AssistantMessage and type(messages[end]) is not AssistantMessage:
            return end
    return start

"""A turn costs what is new (M2): the settled beginning of a conversation is proven and encoded once, then kept.

The beginning ends with an assistant message that lies before the last answered call's end, so neither what follows nor
a moving cache breakpoint can change how it is written. Knows no wire: how messages become bytes is handed in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hummingbird.domain.encoded import Encoded
from hummingbird.domain.errors import InvalidRequest
from hummingbird.domain.history import unsendable
from hummingbird.domain.messages import AssistantMessage, Message
from hummingbird.ports.model import ModelRequest

Render: TypeAlias = Callable[[Sequence[Message], Message | None], bytes]


@dataclass(frozen=True, slots=True)
class Grown:
    """`sealed` is JSON items with a comma after the last one; `rest` the messages after them, from index `start`."""

    sealed: bytearray
    rest: Sequence[Message]
    start: int
    before: Message | None


def grown(request: ModelRequest, provider: str, render: Render) -> Grown:
    """Proves what is new (L4) and seals what has settled. `render` gets messages and the one before them.

    Raises InvalidRequest with the first thing that any provider would refuse.
    """
    messages, memo = request.messages, request.encoded
    if memo.count and (memo.count > len(messages) or messages[memo.count - 1] is not memo.last):
        memo.count, memo.last, memo.body = 0, None, bytearray()
        memo.call_ids.clear()
    if problem := next(unsendable(messages, memo.count, memo.call_ids), None):
        raise InvalidRequest(f"The conversation cannot be sent to {provider}: {problem}.")
    _advance(memo, messages, request.cached, render)
    return Grown(memo.body, messages[memo.count :], memo.count, memo.last)


def _advance(memo: Encoded, messages: Sequence[Message], cached: int, render: Render) -> None:
    end = _settled(messages, memo.count, min(cached, len(messages)) - 1)
    if end == memo.count:
        return
    fresh = messages[memo.count : end]
    if items := render(fresh, memo.last):
        memo.body += items
        memo.body += b","
    memo.call_ids.update(call.id for m in fresh if isinstance(m, AssistantMessage) for call in m.calls)
    memo.count, memo.last = end, fresh[-1]


def _settled(messages: Sequence[Message], start: int, limit: int) -> int:
    """The longest beginning within `limit` that ends with an assistant message and is not continued by another."""
    for end in range(limit, start, -1):
        if type(messages[end - 1]) is AssistantMessage and type(messages[end]) is not AssistantMessage:
            return end
    return start

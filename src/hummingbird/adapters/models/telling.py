"""An answer that is there already, told as if it were streamed: for models that no provider stands behind."""

from collections.abc import Iterator

from hummingbird.domain.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.domain.messages import AssistantMessage

PIECE_CHARS = 40


def deltas(message: AssistantMessage) -> Iterator[Delta]:
    for piece in _pieces(message.reasoning):
        yield ReasoningDelta(piece)
    for piece in _pieces(message.text):
        yield TextDelta(piece)
    for index, call in enumerate(message.calls):
        for piece in _pieces(call.arguments):
            yield CallDelta(index, call.name, piece)


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]

"""Base class for models that answer in this process, and a model with one fixed answer.

Such models use no network, cost nothing and need no key.
"""

from collections.abc import Iterator
from decimal import Decimal

from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.journal import FinishReason
from hummingbird.core.messages import AssistantMessage
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.usage import TokenUsage
from hummingbird.models.prices import zero_price

PIECE_CHARS = 40


def message_deltas(message: AssistantMessage) -> Iterator[Delta]:
    """Yield a complete message in small pieces, as if it were streamed."""
    for piece in _split_pieces(message.reasoning):
        yield ReasoningDelta(piece)
    for piece in _split_pieces(message.text):
        yield TextDelta(piece)
    for index, call in enumerate(message.calls):
        for piece in _split_pieces(call.arguments):
            yield CallDelta(index, call.name, piece)


def _split_pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE_CHARS):
        yield text[start : start + PIECE_CHARS]


_WINDOW = 1_000_000  # tokens; larger than any conversation


class LocalModel:
    """The `Model` protocol except for `generate`."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        return _WINDOW

    @property
    def takes_images(self) -> bool:
        return False

    @property
    def disabling_tools_is_free(self) -> bool:
        return True

    async def refresh_credentials(self) -> bool:
        return False

    def price(self, usage: TokenUsage) -> Decimal | None:
        return zero_price(usage)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def stream_message(message: AssistantMessage, listen: DeltaListener | None) -> None:
    """Send a complete message to `listen`, if there is one, as if it were streamed."""
    if listen is not None:
        for delta in message_deltas(message):
            listen(delta)


class FixedReplyModel(LocalModel):
    """Answer with one fixed text, for runs whose answer is known before they start.

    Later runs of the session use the configured models.
    """

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name)
        self._text = text

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        message = AssistantMessage(self._text)
        stream_message(message, listen)
        return ModelReply(message, FinishReason.STOP, TokenUsage())

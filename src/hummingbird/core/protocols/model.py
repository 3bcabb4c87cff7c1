"""Define the protocol of a model: one answer to one conversation."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from hummingbird.core.events import Delta
from hummingbird.core.journal import FinishReason
from hummingbird.core.limits import MAX_OUTPUT_TOKENS
from hummingbird.core.messages import AssistantMessage, EncodedMessages, Message
from hummingbird.core.tool_spec import ToolDefinition
from hummingbird.core.usage import TokenUsage

DeltaListener: TypeAlias = Callable[[Delta], None]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    `cached_messages` counts the messages of the last answered call of this epoch: a cache breakpoint goes behind them.
    `encoded` caches the wire encoding of the beginning of this epoch's conversation. `call_id` is unique per call;
    adapters derive the ids of tool calls from it where the provider gives none. `call_ids` are the ids of tool calls
    that this conversation already has.
    """

    system: str
    tools: tuple[ToolDefinition, ...]
    messages: Sequence[Message]
    session_id: str
    call_id: str
    cached_messages: int = 0
    disable_tools: bool = False
    max_output_tokens: int = MAX_OUTPUT_TOKENS
    encoded: EncodedMessages = field(default_factory=EncodedMessages)
    call_ids: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One answer of a model.

    `usage_known` is False when the provider did not report the usage, so that the cost is unknown.
    """

    message: AssistantMessage
    finish: FinishReason
    usage: TokenUsage
    raw_usage: dict[str, Any] = field(default_factory=dict)
    usage_known: bool = True


class Model(Protocol):
    """A model of one provider; stateless, everything it needs is in the request."""

    @property
    def name(self) -> str:
        """Return the name as the operator would write it: `provider:model`."""
        ...

    @property
    def context_tokens(self) -> int:
        """Return the size of the model's window in tokens."""
        ...

    @property
    def takes_images(self) -> bool:
        """Tell whether images of user messages are sent; where they are not, the text says so."""
        ...

    @property
    def disabling_tools_is_free(self) -> bool:
        """Tell whether `disable_tools` leaves the provider's prompt cache intact."""
        ...

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        """Call the model once, without retries.

        With `listen` the answer is streamed, and `listen` receives each delta as it comes.

        Raises ProviderError and its kinds, CredentialRefused, CreditExhausted, InvalidRequest (nothing was sent),
        ReplayMismatch (replay only).
        """
        ...

    async def refresh_credentials(self) -> bool:
        """Try to get new credentials; return False when there is nothing to refresh."""
        ...

    def price(self, usage: TokenUsage) -> Decimal | None:
        """Return the USD for this usage, or None when the price is unknown."""
        ...

    async def close(self) -> None:
        """Close the connections to the provider."""
        ...

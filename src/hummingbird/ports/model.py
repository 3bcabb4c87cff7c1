"""What we ask of a model: one answer to one conversation."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

from hummingbird.domain.encoded import Encoded
from hummingbird.domain.events import Delta
from hummingbird.domain.journal import Finish
from hummingbird.domain.limits import MAX_OUTPUT_TOKENS
from hummingbird.domain.messages import AssistantMessage, Message
from hummingbird.domain.tools import ToolDefinition
from hummingbird.domain.usage import Usage

Listen: TypeAlias = Callable[[Delta], None]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """`cached`: how many messages the last answered call of this epoch had (M3: where B1 goes).
    `encoded`: what the wire already made of the beginning of this epoch's conversation.
    `call_id`: unique per call; adapters derive the ids of tool calls from it where the provider gives none.
    `call_ids`: ids of tool calls that this conversation already has."""

    system: str
    tools: tuple[ToolDefinition, ...]
    messages: Sequence[Message]
    session_id: str
    call_id: str
    cached: int = 0
    disable_tools: bool = False
    max_output_tokens: int = MAX_OUTPUT_TOKENS
    encoded: Encoded = field(default_factory=Encoded)
    call_ids: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ModelReply:
    """`counted` False: the provider did not say what was used, so nobody knows what it costs (M7)."""

    message: AssistantMessage
    finish: Finish
    usage: Usage
    raw_usage: dict[str, Any] = field(default_factory=dict)
    counted: bool = True


class Model(Protocol):
    """Stateless: what it needs to know is in the request."""

    @property
    def name(self) -> str:
        """As the operator would write it: `provider:model`."""
        ...

    @property
    def context_tokens(self) -> int:
        """The model's window."""
        ...

    @property
    def disabling_tools_is_free(self) -> bool:
        """Whether `disable_tools` leaves the provider's prompt cache intact (L7)."""
        ...

    async def generate(self, request: ModelRequest, listen: Listen | None = None) -> ModelReply:
        """One call, no retries. With `listen` the answer is streamed and deltas are told as they come.

        Raises ProviderError and its kinds, CredentialRefused, CreditExhausted, InvalidRequest (nothing was
        sent), ScriptDeparted (replay only).
        """
        ...

    async def refresh_credentials(self) -> bool:
        """Tries to get new credentials; False when there is nothing to refresh (L14)."""
        ...

    def price(self, usage: Usage) -> Decimal | None:
        """USD for this usage, None when the price is unknown (M7)."""
        ...

    async def close(self) -> None: ...

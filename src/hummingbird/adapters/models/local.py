"""What models share that answer in this very process: nothing is asked of a network, so nothing costs anything, no key
grows old, and no window is too small. What they say is theirs."""

from decimal import Decimal

from hummingbird.adapters.models.prices import free
from hummingbird.adapters.models.telling import deltas
from hummingbird.domain.messages import AssistantMessage
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import Listen

_WINDOW = 1_000_000  # larger than anything that they are told


class LocalModel:
    """All of ports.model.Model but `generate`."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        return _WINDOW

    @property
    def disabling_tools_is_free(self) -> bool:
        return True

    async def refresh_credentials(self) -> bool:
        return False

    def price(self, usage: Usage) -> Decimal | None:
        return free(usage)

    async def close(self) -> None:
        """Nothing was opened."""


def told(message: AssistantMessage, listen: Listen | None) -> None:
    """As a stream would tell it."""
    if listen is not None:
        for delta in deltas(message):
            listen(delta)

"""A model that has one thing to say and says it, at no cost: for runs whose answer is there before they begin. What
comes after it in the session is answered by those that are configured."""

from decimal import Decimal

from hummingbird.adapters.models.prices import free
from hummingbird.adapters.models.telling import deltas
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import Listen, ModelReply, ModelRequest

_WINDOW = 1_000_000  # nothing is held against a window: nothing is read


class StatedModel:
    """Fulfils ports.model.Model."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        return _WINDOW

    @property
    def disabling_tools_is_free(self) -> bool:
        return True

    async def generate(self, request: ModelRequest, listen: Listen | None = None) -> ModelReply:
        message = AssistantMessage(self._text)
        if listen is not None:
            for delta in deltas(message):
                listen(delta)
        return ModelReply(message, Finish.STOP, Usage())

    async def refresh_credentials(self) -> bool:
        return False

    def price(self, usage: Usage) -> Decimal | None:
        return free(usage)

    async def close(self) -> None:
        pass

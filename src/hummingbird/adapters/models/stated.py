"""A model that has one thing to say and says it, at no cost: for runs whose answer is there before they begin. What
comes after it in the session is answered by those that are configured."""

from hummingbird.adapters.models.local import LocalModel, told
from hummingbird.domain.journal import Finish
from hummingbird.domain.messages import AssistantMessage
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import Listen, ModelReply, ModelRequest


class StatedModel(LocalModel):
    def __init__(self, name: str, text: str) -> None:
        super().__init__(name)
        self._text = text

    async def generate(self, request: ModelRequest, listen: Listen | None = None) -> ModelReply:
        message = AssistantMessage(self._text)
        told(message, listen)
        return ModelReply(message, Finish.STOP, Usage())

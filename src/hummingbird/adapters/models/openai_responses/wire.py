"""The Responses wire: its four pure parts under one name."""

from typing import Any

from hummingbird.adapters.models.openai_errors import classify
from hummingbird.adapters.models.openai_responses.decode import decode
from hummingbird.adapters.models.openai_responses.encode import WIRE, encode
from hummingbird.adapters.models.openai_responses.stream import ResponsesAssembler
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import HummingbirdError
from hummingbird.ports.model import ModelReply, ModelRequest


class OpenAIResponsesWire:
    """`server` is how error sentences name whoever answers: OpenAI, or the host of an imitator."""

    def __init__(self, server: str = "OpenAI") -> None:
        self._server = server

    @property
    def name(self) -> str:
        return WIRE

    def encode(self, request: ModelRequest, profile: Profile, *, stream: bool) -> bytes:
        return encode(request, profile, stream=stream)

    def decode(self, answer: Any, request: ModelRequest, profile: Profile) -> ModelReply:
        return decode(answer, request, profile, self._server)

    def assembler(self) -> ResponsesAssembler:
        return ResponsesAssembler(self._server)

    def classify(self, status: int, answer: Any) -> HummingbirdError:
        return classify(self._server, status, answer)

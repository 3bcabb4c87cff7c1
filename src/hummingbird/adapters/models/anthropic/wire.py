"""Anthropic's wire format as `HttpModel` wants it: the four pure functions of this room under one name."""

from typing import Any

from hummingbird.adapters.models.anthropic.decode import decode
from hummingbird.adapters.models.anthropic.encode import WIRE, encode
from hummingbird.adapters.models.anthropic.errors import classify
from hummingbird.adapters.models.anthropic.stream import Assembler
from hummingbird.adapters.models.wire import Profile
from hummingbird.domain.errors import HummingbirdError
from hummingbird.ports.model import ModelReply, ModelRequest


class AnthropicWire:
    @property
    def name(self) -> str:
        return WIRE

    def encode(self, request: ModelRequest, profile: Profile, *, stream: bool) -> bytes:
        return encode(request, profile, stream=stream)

    def decode(self, answer: Any, request: ModelRequest, profile: Profile) -> ModelReply:
        return decode(answer, request, profile)

    def assembler(self) -> Assembler:
        return Assembler()

    def classify(self, status: int, answer: Any) -> HummingbirdError:
        return classify(status, answer)

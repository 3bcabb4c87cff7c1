"""The models of the lab, each as an operator would reach it: by key or on Vertex."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hummingbird.models.anthropic import anthropic_wire
from hummingbird.models.endpoints import (
    AnthropicEndpoint,
    GeminiEndpoint,
    VertexAnthropicEndpoint,
    VertexGeminiEndpoint,
)
from hummingbird.models.gemini import gemini_wire
from hummingbird.models.http_model import HttpModel
from hummingbird.models.prices import zero_price
from hummingbird.models.registry import profile_for
from hummingbird.models.transport import ModelTransport
from hummingbird.models.wire_format import ModelEndpoint, WireFormat
from tests.standins.vendors.server import VendorLab


class Tokens:
    """The given token first; a refresh gives `renewed`."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self) -> str:
        return self._token

    async def refresh(self) -> bool:
        self._token = "renewed"
        return True


@asynccontextmanager
async def reached(
    lab: VendorLab, provider: str, model: str, *, key: str = "any", patience_s: float = 60.0
) -> AsyncIterator[HttpModel]:
    wire, endpoint = _door(lab, provider, key)
    made = HttpModel(
        f"{provider}:{model}",
        wire=wire,
        endpoint=endpoint,
        profile=profile_for(provider, model),
        transport=ModelTransport(lambda: 0.0, stall_timeout_s=patience_s, whole_timeout_s=patience_s),
        price=zero_price,
    )
    try:
        yield made
    finally:
        await made.close()


def _door(lab: VendorLab, provider: str, key: str) -> tuple[WireFormat, ModelEndpoint]:
    match provider:
        case "anthropic":
            return anthropic_wire(), AnthropicEndpoint(key, lab.anthropic_url)
        case "vertex-anthropic":
            return anthropic_wire(), VertexAnthropicEndpoint("p", "global", Tokens(key), lab.vertex_url)
        case "gemini":
            return gemini_wire(), GeminiEndpoint(key, lab.gemini_url)
        case _:
            return gemini_wire(), VertexGeminiEndpoint("p", "global", Tokens(key), lab.vertex_url)

"""A model behind HTTP: wire + endpoint + profile, and nothing that remembers anything between calls (M2).

The last place that knows which credential was sent, so the one that keeps it out of every sentence (T7).
"""

from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from decimal import Decimal
from typing import Any

from hummingbird.adapters.models.prices import Price
from hummingbird.adapters.models.transport import WHOLE, Transport
from hummingbird.adapters.models.wire import Endpoint, Profile, Wire
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.events import CallDelta, ReasoningDelta, TextDelta
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.usage import Usage
from hummingbird.ports.model import Listen, ModelReply, ModelRequest


class HttpModel:
    """Fulfils ports.model.Model for every provider that speaks HTTP. A `shared` transport is closed by its owner."""

    def __init__(
        self,
        name: str,
        *,
        wire: Wire,
        endpoint: Endpoint,
        profile: Profile,
        transport: Transport,
        price: Price,
        shared: bool = False,
    ) -> None:
        self._name = name
        self._wire = wire
        self._endpoint = endpoint
        self._profile = profile
        self._transport = transport
        self._price = price
        self._shared = shared

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        return self._profile.context_tokens

    @property
    def disabling_tools_is_free(self) -> bool:
        return self._profile.disabling_tools_is_free

    async def generate(self, request: ModelRequest, listen: Listen | None = None) -> ModelReply:
        with self._discreet():
            streamed = listen is not None
            body = self._endpoint.finish(self._wire.encode(request, self._profile, stream=streamed), self._profile)
            url = self._endpoint.url(self._profile, stream=streamed)
            headers = await self._endpoint.headers()
            if listen is None:
                answer = await self._transport.post(url, headers, body, self._classify)
                return self._wire.decode(answer, request, self._profile)
            assembler = self._wire.assembler()
            async with aclosing(self._transport.stream(url, headers, body, self._classify)) as events:
                async for event, content in events:
                    if event == WHOLE:
                        return _told(self._wire.decode(content, request, self._profile), listen)
                    for delta in assembler.feed(event, content):
                        listen(delta)
            return self._wire.decode(assembler.result(), request, self._profile)

    async def refresh_credentials(self) -> bool:
        with self._discreet():
            return await self._endpoint.refresh()

    def price(self, usage: Usage) -> Decimal | None:
        return self._price(usage)

    async def close(self) -> None:
        if not self._shared:
            await self._transport.close()

    @contextmanager
    def _discreet(self) -> Iterator[None]:
        """No sentence tells a credential, whoever wrote it into what we quote; an original that does is not chained."""
        try:
            yield
        except HummingbirdError as error:
            secrets = Secrets(self._endpoint.secrets)
            error.args = tuple(secrets.mask(part) if isinstance(part, str) else part for part in error.args)
            if any(secrets.mask(text) != text for text in _originals(error)):
                error.__cause__ = error.__context__ = None
            raise

    def _classify(self, status: int, answer: Any) -> HummingbirdError:
        """Masked before it is quoted: of a credential that is cut in two, neither half would be known."""
        return self._wire.classify(status, _masked(answer, Secrets(self._endpoint.secrets)))


def _told(reply: ModelReply, listen: Listen) -> ModelReply:
    """The deltas of an answer that came in one piece."""
    message = reply.message
    if message.reasoning:
        listen(ReasoningDelta(message.reasoning))
    if message.text:
        listen(TextDelta(message.text))
    for index, call in enumerate(message.calls):
        listen(CallDelta(index, call.name, call.arguments))
    return reply


def _originals(error: BaseException) -> Iterator[str]:
    below = error.__cause__ or error.__context__
    while below is not None:
        yield str(below)
        below = below.__cause__ or below.__context__


def _masked(value: Any, secrets: Secrets, depth: int = 20) -> Any:
    """What lies deeper than any complaint does is dropped: it could be nested as deep as the stack."""
    if isinstance(value, str):
        return secrets.mask(value)
    if isinstance(value, list):
        return [_masked(item, secrets, depth - 1) for item in value] if depth else None
    if isinstance(value, dict):
        return {key: _masked(item, secrets, depth - 1) for key, item in value.items()} if depth else None
    return value

"""A model behind HTTP: wire + endpoint + profile, and nothing that remembers anything between calls (M2)."""

from contextlib import aclosing
from decimal import Decimal

from hummingbird.adapters.models.prices import Price
from hummingbird.adapters.models.transport import Transport
from hummingbird.adapters.models.wire import Endpoint, Profile, Wire
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
        streamed = listen is not None
        body = self._endpoint.finish(self._wire.encode(request, self._profile, stream=streamed), self._profile)
        url = self._endpoint.url(self._profile, stream=streamed)
        headers = await self._endpoint.headers()
        if listen is None:
            answer = await self._transport.post(url, headers, body, self._wire.classify)
            return self._wire.decode(answer, request, self._profile)
        assembler = self._wire.assembler()
        async with aclosing(self._transport.stream(url, headers, body, self._wire.classify)) as events:
            async for event, content in events:
                for delta in assembler.feed(event, content):
                    listen(delta)
        return self._wire.decode(assembler.result(), request, self._profile)

    async def refresh_credentials(self) -> bool:
        return await self._endpoint.refresh()

    def price(self, usage: Usage) -> Decimal | None:
        return self._price(usage)

    async def close(self) -> None:
        if not self._shared:
            await self._transport.close()

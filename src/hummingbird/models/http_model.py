"""A model behind HTTP: combine wire format, endpoint and profile.

Between calls it keeps only what a server taught it about itself: the size of its window, and a key that it refuses.

This is the last layer that knows the credential of a request, so it masks it in all errors.
"""

from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

from hummingbird.core.errors import (
    ContextOverflow,
    HummingbirdError,
    ProviderRequestRefused,
    ProviderTimeout,
    ProviderUnavailable,
    ProviderUnreachable,
)
from hummingbird.core.events import CallDelta, ReasoningDelta, TextDelta
from hummingbird.core.masking import Secrets
from hummingbird.core.messages import UserMessage
from hummingbird.core.protocols.model import DeltaListener, ModelReply, ModelRequest
from hummingbird.core.usage import TokenUsage
from hummingbird.core.work_context import ensure_work_lease
from hummingbird.models.openai_api import read_told_window
from hummingbird.models.prices import Price
from hummingbird.models.transport import WHOLE, ModelTransport
from hummingbird.models.wire_format import ModelEndpoint, ModelProfile, WireFormat

_ANSWER_SHARE = 4  # an answer may take up to this part of the window: many servers count it as used beforehand
_LEAST_WINDOW = 512  # tokens; a smaller number in an error is something else
_WINDOW_QUESTION_S = 3.0  # for an address that may not exist; a server that answers at all answers this at once


class HttpModel:
    """The `Model` protocol for every provider with an HTTP API. The owner of a `shared` transport closes it.

    `window_urls` are where a server may tell the size of the model's window; they are asked before the first request.
    """

    def __init__(
        self,
        name: str,
        *,
        wire: WireFormat,
        endpoint: ModelEndpoint,
        profile: ModelProfile,
        transport: ModelTransport,
        price: Price,
        shared: bool = False,
        window_urls: Sequence[str] = (),
    ) -> None:
        self._name = name
        self._wire = wire
        self._endpoint = endpoint
        self._profile = profile
        self._transport = transport
        self._price = price
        self._shared = shared
        self._window_urls = window_urls

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int:
        return self._profile.context_tokens

    @property
    def disabling_tools_is_free(self) -> bool:
        return self._profile.disabling_tools_is_free

    @property
    def takes_images(self) -> bool:
        return self._profile.takes_images

    async def generate(self, request: ModelRequest, listen: DeltaListener | None = None) -> ModelReply:
        """Call the model, and once more if its refusal says how it can be asked."""
        await self._ask_window()
        try:
            return await self._generate(request, listen)
        except (ContextOverflow, ProviderRequestRefused, ProviderUnavailable) as error:
            if not self._learn_from(error, request, streamed=listen is not None):
                raise
        return await self._generate(request, listen)

    async def _ask_window(self) -> None:
        """Ask a server of open models once for the size of the window; if it does not say, the default size applies."""
        urls, self._window_urls = self._window_urls, ()
        for url in urls:
            try:
                with self._mask_credentials():
                    headers = await self._endpoint.headers()
                    answer = await self._transport.get(url, headers, _WINDOW_QUESTION_S, self._classify)
            except (ProviderUnreachable, ProviderTimeout):
                return  # the request itself will say so
            except HummingbirdError:
                continue
            window = read_told_window(answer, self._profile.model)
            if window is not None and window >= _LEAST_WINDOW:
                self._profile = replace(self._profile, context_tokens=window)
                return

    def _learn_from(self, error: HummingbirdError, request: ModelRequest, *, streamed: bool) -> bool:
        """Take over what a refusal says about the server; return whether the same request may succeed now."""
        profile = self._profile
        if isinstance(error, ContextOverflow):
            if error.window is None or not _LEAST_WINDOW <= error.window < profile.context_tokens:
                return False
            self._profile = replace(profile, context_tokens=error.window)
            return True  # there may be room for the conversation, and only none for so long an answer
        has_images = any(isinstance(one, UserMessage) and one.images for one in request.messages)
        if has_images and profile.takes_images and "image" in str(error).lower():
            self._profile = replace(profile, takes_images=False)
            request.encoded.clear()
            return True
        if streamed and profile.include_usage and ("stream_options" in str(error) or "include_usage" in str(error)):
            self._profile = replace(profile, include_usage=False)
            return True
        return False

    async def _generate(self, request: ModelRequest, listen: DeltaListener | None) -> ModelReply:
        window = self._profile.context_tokens
        if window >= _LEAST_WINDOW and request.max_output_tokens > (most := window // _ANSWER_SHARE):
            request = replace(request, max_output_tokens=most)
        with self._mask_credentials():
            streamed = listen is not None
            body = self._endpoint.finish_body(self._wire.encode(request, self._profile, stream=streamed), self._profile)
            url = self._endpoint.url(self._profile, stream=streamed)
            headers = await self._endpoint.headers()
            await ensure_work_lease()  # questions for the window or a token came between the loop's look and this
            if listen is None:
                answer = await self._transport.post(url, headers, body, self._classify)
                return self._wire.decode(answer, request, self._profile)
            assembler = self._wire.create_assembler()
            async with aclosing(self._transport.stream(url, headers, body, self._classify)) as events:
                async for event, content in events:
                    if event == WHOLE:
                        return _emit_deltas(self._wire.decode(content, request, self._profile), listen)
                    for delta in assembler.feed(event, content):
                        listen(delta)
            return self._wire.decode(assembler.result(), request, self._profile)

    async def refresh_credentials(self) -> bool:
        with self._mask_credentials():
            return await self._endpoint.refresh()

    def price(self, usage: TokenUsage) -> Decimal | None:
        return self._price(usage)

    async def close(self) -> None:
        if not self._shared:
            await self._transport.close()

    @contextmanager
    def _mask_credentials(self) -> Iterator[None]:
        """Mask credentials in error messages, also in text quoted from the server.

        If a chained error contains one, it is removed.
        """
        try:
            yield
        except HummingbirdError as error:
            secrets = Secrets(self._endpoint.secrets)
            error.args = tuple(secrets.mask(part) if isinstance(part, str) else part for part in error.args)
            if any(secrets.mask(text) != text for text in _cause_texts(error)):
                error.__cause__ = error.__context__ = None
            raise

    def _classify(self, status: int, answer: Any) -> HummingbirdError:
        """Mask the answer, then classify it. Masking comes first because quoting may cut a credential in two."""
        return self._wire.classify_error(status, _mask_values(answer, Secrets(self._endpoint.secrets)))


def _emit_deltas(reply: ModelReply, listen: DeltaListener) -> ModelReply:
    """Send the deltas of an answer that was not streamed."""
    message = reply.message
    if message.reasoning:
        listen(ReasoningDelta(message.reasoning))
    if message.text:
        listen(TextDelta(message.text))
    for index, call in enumerate(message.calls):
        listen(CallDelta(index, call.name, call.arguments))
    return reply


def _cause_texts(error: BaseException) -> Iterator[str]:
    below = error.__cause__ or error.__context__
    while below is not None:
        yield str(below)
        below = below.__cause__ or below.__context__


def _mask_values(value: Any, secrets: Secrets, depth: int = 20) -> Any:
    """Mask all texts of an answer. Drop what is nested too deeply, because it could exhaust the stack."""
    if isinstance(value, str):
        return secrets.mask(value)
    if isinstance(value, list):
        return [_mask_values(item, secrets, depth - 1) for item in value] if depth else None
    if isinstance(value, dict):
        return {key: _mask_values(item, secrets, depth - 1) for key, item in value.items()} if depth else None
    return value

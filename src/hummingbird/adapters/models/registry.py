"""Names of models, and what stands behind each: `provider:model` → a lazy factory (M1, M6).

Everything that can be missing is missed here, in one sentence, before a run starts. Importing this module imports
no wire, no HTTP and no price table. The environment is a mapping that somebody hands in.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from hummingbird.adapters.models.addresses import host_of, is_local, takes_google_tokens
from hummingbird.adapters.models.names import CLAUDE_KEYS, GEMINI_KEYS, OPENAI_KEY, Named, decide, setting
from hummingbird.adapters.models.prices import PriceOverride, priced
from hummingbird.adapters.models.profiles import OPENAI_HOST, profile_for
from hummingbird.domain.errors import MissingSetting
from hummingbird.ports.model import Model

if TYPE_CHECKING:
    from hummingbird.adapters.models.endpoints import TokenSource
    from hummingbird.adapters.models.transport import Transport
    from hummingbird.adapters.models.wire import Endpoint, Wire

NO_REGIONS: Mapping[str, str] = MappingProxyType({})
NO_PRICES: Mapping[str, PriceOverride] = MappingProxyType({})
_BASE_URLS = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "vertex-anthropic": "ANTHROPIC_VERTEX_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
    "vertex-gemini": "GOOGLE_VERTEX_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "openai-chat": "OPENAI_BASE_URL",
}


class Models:
    """Makes models that share one transport, so one per event loop; whoever made it closes it.

    `model_regions` maps prefixes of model names to Vertex regions. `now` is the wall clock. `tokens` and
    `transport` are for tests and for whoever wants to share them further.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        model_regions: Mapping[str, str] = NO_REGIONS,
        price_overrides: Mapping[str, PriceOverride] = NO_PRICES,
        ca_bundle: str | None = None,
        now: Callable[[], float] = time.time,
        transport: "Transport | None" = None,
        tokens: "TokenSource | None" = None,
    ) -> None:
        self._environment = environment
        self._model_regions = model_regions
        self._prices = price_overrides
        self._ca_bundle = ca_bundle
        self._now = now
        self._given_transport = transport
        self._given_tokens = tokens

    def resolve(self, name: str, *, api_mode: str | None = None, base_url: str | None = None) -> Model:
        """Raises UnknownModel, MissingSetting, UsageFault, and SessionUnreadable for a replay."""
        base_url = (base_url or "").strip() or None
        named = decide(name, self._environment, api_mode=api_mode, base_url=base_url)
        if named.provider == "replay":
            from hummingbird.adapters.models.replay import replay_of  # noqa: PLC0415 - a lazy factory

            return replay_of(named.model)
        if named.provider == "digest":
            from hummingbird.adapters.models.digest.model import DigestModel  # noqa: PLC0415 - a lazy factory

            return DigestModel()
        address = base_url or setting(self._environment, _BASE_URLS[named.provider])
        wanted = Wanted(named, address, self._environment, self._model_regions, self)
        wire, endpoint = _FACTORIES[named.provider](wanted)
        self.transport.open()  # proxies and certificates that cannot be used are told now
        return self._model(name.strip(), wanted, wire, endpoint)

    async def close(self) -> None:
        await self.transport.close()

    @cached_property
    def transport(self) -> "Transport":
        from hummingbird.adapters.models.transport import Transport  # noqa: PLC0415 - imports HTTP

        return self._given_transport or Transport(self._now, ca_bundle=self._ca_bundle)

    @cached_property
    def tokens(self) -> "TokenSource":
        from hummingbird.adapters.models.google_credentials import (  # noqa: PLC0415 - a lazy factory
            GoogleTokens,
            application_default,
        )

        return self._given_tokens or GoogleTokens(self._now, partial(application_default, self._ca_bundle))

    def _model(self, written: str, wanted: "Wanted", wire: "Wire", endpoint: "Endpoint") -> Model:
        from hummingbird.adapters.models.http_model import HttpModel  # noqa: PLC0415 - imports HTTP

        provider, model = wanted.named.provider, wanted.named.on_wire
        address = wanted.base_url or f"https://{OPENAI_HOST}/v1"  # asked only where the provider says nothing
        return HttpModel(
            f"{provider}:{wanted.named.model}",
            wire=wire,
            endpoint=endpoint,
            profile=profile_for(provider, model, host_of(address)),
            transport=self.transport,
            price=priced(
                model,
                provider,
                self._prices,
                written=(written, f"{provider}:{wanted.named.model}"),
                base_url=address,
                now=self._today,
            ),
            shared=True,
        )

    def _today(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One model on its way from a name to a wire and an endpoint."""

    named: Named
    base_url: str | None
    environment: Mapping[str, str]
    model_regions: Mapping[str, str]
    models: Models

    @property
    def host(self) -> str:
        return host_of(self.base_url) if self.base_url else ""

    def first(self, *variables: str) -> str | None:
        return next((value for name in variables if (value := setting(self.environment, name))), None)

    def key(self, *variables: str) -> str:
        """The first of these keys that is set; "" for a machine of one's own. Raises MissingSetting."""
        for variable in variables:
            if key := setting(self.environment, variable):
                return _sendable(key, variable)
        if self.base_url and is_local(self.host):
            return ""
        at = f" at {self.host}" if self.base_url else ""
        chat = self.base_url and self.named.bare and OPENAI_KEY not in variables
        other = f", or {OPENAI_KEY} to use Chat Completions there" if chat else ""
        raise MissingSetting(f"The model {self.named}{at} needs an API key: set {' or '.join(variables)}{other}.")

    def google_address(self) -> str | None:
        """The base URL, if a Google token may go there: to Google, or where somebody said so in so many words.
        Raises MissingSetting."""
        if self.base_url is None or not self.named.bare or takes_google_tokens(self.base_url):
            return self.base_url
        raise MissingSetting(
            f"The model {self.named} would send a Google token to {self.host}, which is not Google over https: write "
            f"{self.named.provider}:{self.named.model} if that is meant{_OTHER_WAY[self.named.provider]}."
        )

    def project(self, *variables: str) -> str:
        if project := self.first(*variables):
            return project
        other = _OTHER_WAY[self.named.provider] if self.named.bare else ""
        raise MissingSetting(
            f"The model {self.named} on Vertex needs a Google Cloud project: set {' or '.join(variables)}{other}."
        )

    def region(self, *variables: str) -> str:
        """By the longest prefix of the model's name in `model_regions`, else by the environment (M6)."""
        fitting = [prefix for prefix in self.model_regions if self.named.model.startswith(prefix)]
        if fitting:
            return self.model_regions[max(fitting, key=len)]
        if (region := self.first(*variables)) is not None:
            return region
        raise MissingSetting(
            f"The model {self.named} on Vertex needs a region: add a prefix of its name to model_regions, or set "
            f"{' or '.join(variables)}."
        )


_OTHER_WAY = {
    "vertex-anthropic": f", or {CLAUDE_KEYS[0]} to use Anthropic's own API",
    "vertex-gemini": f", or {GEMINI_KEYS[0]} to use Google's Gemini API",
}


def _sendable(key: str, variable: str) -> str:
    if key.isascii() and key.isprintable():
        return key
    raise MissingSetting(
        f"{variable} holds a line break, a control character or a letter that is not ASCII, which no key has: copy the "
        "key again."
    )


Factory: TypeAlias = "Callable[[Wanted], tuple[Wire, Endpoint]]"


def _anthropic(wanted: Wanted) -> "tuple[Wire, Endpoint]":
    from hummingbird.adapters.models.anthropic.wire import AnthropicWire  # noqa: PLC0415 - a lazy factory
    from hummingbird.adapters.models.endpoints import ANTHROPIC_URL, AnthropicEndpoint  # noqa: PLC0415 - a lazy factory

    return AnthropicWire(), AnthropicEndpoint(wanted.key(*CLAUDE_KEYS), wanted.base_url or ANTHROPIC_URL)


def _vertex_anthropic(wanted: Wanted) -> "tuple[Wire, Endpoint]":
    from hummingbird.adapters.models.anthropic.wire import AnthropicWire  # noqa: PLC0415 - a lazy factory
    from hummingbird.adapters.models.endpoints import VertexAnthropicEndpoint  # noqa: PLC0415 - a lazy factory

    project = wanted.project("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
    region = wanted.region("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION")
    return AnthropicWire(), VertexAnthropicEndpoint(project, region, wanted.models.tokens, wanted.google_address())


def _gemini(wanted: Wanted) -> "tuple[Wire, Endpoint]":
    from hummingbird.adapters.models.endpoints import GEMINI_URL, GeminiEndpoint  # noqa: PLC0415 - a lazy factory
    from hummingbird.adapters.models.gemini.wire import GeminiWire  # noqa: PLC0415 - a lazy factory

    return GeminiWire(), GeminiEndpoint(wanted.key(*GEMINI_KEYS), wanted.base_url or GEMINI_URL)


def _vertex_gemini(wanted: Wanted) -> "tuple[Wire, Endpoint]":
    from hummingbird.adapters.models.endpoints import VertexGeminiEndpoint  # noqa: PLC0415 - a lazy factory
    from hummingbird.adapters.models.gemini.wire import GeminiWire  # noqa: PLC0415 - a lazy factory

    project = wanted.project("GOOGLE_CLOUD_PROJECT")
    region = wanted.region("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION")
    return GeminiWire(), VertexGeminiEndpoint(project, region, wanted.models.tokens, wanted.google_address())


def _openai(wanted: Wanted) -> "tuple[Wire, Endpoint]":
    from hummingbird.adapters.models.endpoints import OPENAI_URL, OpenAIEndpoint  # noqa: PLC0415 - a lazy factory
    from hummingbird.adapters.models.openai_responses.wire import OpenAIResponsesWire  # noqa: PLC0415 - a lazy factory

    endpoint = OpenAIEndpoint("/responses", wanted.key(OPENAI_KEY), wanted.base_url or OPENAI_URL)
    return OpenAIResponsesWire(_spoken(wanted.host)), endpoint


def _openai_chat(wanted: Wanted) -> "tuple[Wire, Endpoint]":
    from hummingbird.adapters.models.endpoints import OPENAI_URL, OpenAIEndpoint  # noqa: PLC0415 - a lazy factory
    from hummingbird.adapters.models.openai_chat.wire import OpenAIChatWire  # noqa: PLC0415 - a lazy factory

    if wanted.base_url is None and not wanted.named.model.startswith("gpt-"):
        raise MissingSetting(
            f"The model {wanted.named} needs the address of its server: set base_url or OPENAI_BASE_URL."
        )
    endpoint = OpenAIEndpoint("/chat/completions", wanted.key(OPENAI_KEY), wanted.base_url or OPENAI_URL)
    return OpenAIChatWire(_spoken(wanted.host)), endpoint


def _spoken(host: str) -> str:
    return "OpenAI" if host in {"", OPENAI_HOST} else host


_FACTORIES: dict[str, Factory] = {
    "anthropic": _anthropic,
    "vertex-anthropic": _vertex_anthropic,
    "gemini": _gemini,
    "vertex-gemini": _vertex_gemini,
    "openai": _openai,
    "openai-chat": _openai_chat,
}

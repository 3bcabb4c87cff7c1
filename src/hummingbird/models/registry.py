"""Create models from their names (`provider:model`).

Missing settings are reported here, before a run starts. Importing this module loads no wire format, no HTTP library and
no price table. The environment is passed as a mapping.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from hummingbird.core.errors import MissingSetting, UsageError
from hummingbird.core.protocols.model import Model
from hummingbird.models.endpoints import host_of_url, is_local, may_receive_google_token, strip_version
from hummingbird.models.model_names import (
    CLAUDE_KEYS,
    GEMINI_KEYS,
    OPENAI_KEY,
    ResolvedModelName,
    env_value,
    resolve_model_name,
)
from hummingbird.models.prices import PriceOverride, find_price
from hummingbird.models.wire_format import ModelProfile, ModelSampling

if TYPE_CHECKING:
    from hummingbird.models.endpoints import TokenSource
    from hummingbird.models.transport import ModelTransport
    from hummingbird.models.wire_format import ModelEndpoint, WireFormat

# List context windows and quirks of the model families, by provider, host and model name.
#
# The tables know models only by name; nothing is asked over the network. An unknown model gets settings that are safe
# with every server.


OPENAI_HOST = "api.openai.com"
UNKNOWN_WINDOW = 128_000  # common for servers of open models; one with less answers with an overflow error

# The first match wins. The numbers are the vendors' own, as of November 2026.
_WINDOWS = (
    (r"claude-(?:[a-z]+-)?3|claude-[a-z]+-4(?:-[015])?(?:[-@]\d{8}|$)", 200_000),
    (r"claude-", 1_000_000),
    (r"gemini-(?:2\.5|4)", 1_048_576),
    (r"gemini-", 1_000_000),
    (r"gpt-oss", 131_072),
    (r"gpt-5\.4-(?:mini|nano)", 400_000),
    (r"gpt-5\.5", 1_000_000),
    (r"gpt-(?:5\.[4-9]|[6-9])", 1_050_000),
    # OpenAI has shut down the models before gpt-5.4 or announced it; routers may still offer some of them.
    (r"gpt-5", 400_000),
)

# Each matching row adds its quirks: provider, model, fields of the profile.
_QUIRKS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    # Claude and Gemini put tool_choice before the messages, so changing it invalidates the cached conversation.
    (r"anthropic|vertex-anthropic|gemini|vertex-gemini", r"", {"disabling_tools_is_free": False}),
    # System entries within the conversation. Older models answer 400; Sonnet 5 accepts and ignores them.
    (
        r"anthropic|vertex-anthropic",
        r"claude-(?:opus-(?:4-[89]|[5-9])|(?:sonnet|haiku)-(?:5-[5-9]|[6-9])|(?:fable|mythos)-[5-9])",
        {"system_entries": True},
    ),
    # Adaptive thinking came with 4.6. The 5.x models always use it, and hide it unless asked for a summary.
    (
        r"anthropic|vertex-anthropic",
        r"claude-[a-z]+-(?:4-[6-9]|[5-9])|claude-mythos",
        {"summarised_thinking": True},
    ),
    # A name without a version (gemini-flash-latest) means a current model. An unneeded signature does no harm, while a
    # missing one is answered with 400. So signatures are on for all models except those known not to use them.
    (r"gemini|vertex-gemini", r"gemini-(?!1|2\.0|2-)", {"summarised_thinking": True}),
    (r"gemini|vertex-gemini", r"gemini-(?![12][.-])", {"signs_calls": True}),
    (r"openai", r"", {"cache_key": True}),
    (r"openai", r"gpt-[5-9]", {"summarised_thinking": True, "encrypted_reasoning": True}),
    # A server that refuses `stream_options` is asked again without it.
    (r"openai-chat", r"", {"max_tokens_key": "max_tokens", "include_usage": True}),
)

# Chat Completions only: what the server at a host expects. `*.` stands for any subdomain.
_HOSTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (OPENAI_HOST, r"", {"max_tokens_key": "max_completion_tokens", "cache_key": True, "include_usage": True}),
    # With function tools these models answer 400 here unless reasoning is off. Use `openai:` (Responses) for them.
    (OPENAI_HOST, r"gpt-(?:5\.[6-9]|[6-9])", {"effort": "none"}),
    ("*.openai.azure.com", r"", {"max_tokens_key": "max_completion_tokens"}),
    ("openrouter.ai", r"", {"echo_keys": ("reasoning_details",), "include_usage": True}),
    ("api.deepseek.com", r"", {"echo_keys": ("reasoning_content",)}),
)


def profile_for(provider: str, model: str, host: str = "") -> ModelProfile:
    """Return the profile of a model, given the name that is sent to the API.

    Of a router's name (`vendor/model`) only the last part counts.
    """
    plain = model.rpartition("/")[2].lower()
    window = next((tokens for pattern, tokens in _WINDOWS if re.match(pattern, plain)), UNKNOWN_WINDOW)
    profile = ModelProfile(model, window)
    for providers, pattern, quirks in _QUIRKS:
        if re.fullmatch(providers, provider) and re.match(pattern, plain):
            profile = replace(profile, **quirks)
    if provider == "openai-chat":
        for place, pattern, quirks in _HOSTS:
            if _host_matches(host, place) and re.match(pattern, plain):
                profile = replace(profile, **quirks)
    return profile


def _host_matches(host: str, place: str) -> bool:
    return host.endswith(place[1:]) if place.startswith("*") else host == place


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


def _names_proxy_or_certificates() -> bool:
    return any(name.lower().endswith("_proxy") or name in {"SSL_CERT_FILE", "SSL_CERT_DIR"} for name in os.environ)


class ModelRegistry:
    """Create models that share one HTTP transport. The creator of a registry closes it.

    `model_regions` maps prefixes of model names to Vertex regions. `now` is the wall clock. `tokens` replaces Google's
    token source in tests.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        model_regions: Mapping[str, str] = NO_REGIONS,
        price_overrides: Mapping[str, PriceOverride] = NO_PRICES,
        windows: Mapping[str, int] = MappingProxyType({}),
        ca_bundle: str | None = None,
        now: Callable[[], float] = time.time,
        tokens: "TokenSource | None" = None,
        sampling: ModelSampling | None = None,
    ) -> None:
        self._environment = environment
        self._model_regions = model_regions
        self._prices = price_overrides
        self._windows = windows
        self._ca_bundle = ca_bundle
        self._now = now
        self._sampling = sampling or ModelSampling()
        self._given_tokens = tokens

    def check(self, name: str) -> bool:
        """Check that the model is known and has its credentials, without any connection.

        Return whether it calls a provider: `digest` and a replay do not. Raises UnknownModel, MissingSetting,
        UsageError.
        """
        named = resolve_model_name(name, self._environment)
        if named.provider not in _FACTORIES:
            return False
        address = env_value(self._environment, _BASE_URLS[named.provider])
        wanted = EndpointSettings(named, address, self._environment, self._model_regions, self)
        _FACTORIES[named.provider](wanted)
        return True

    def resolve(self, name: str, *, api_mode: str | None = None, base_url: str | None = None) -> Model:
        """Create the model with this name.

        Raises UnknownModel, MissingSetting, UsageError, and SessionUnreadable for a replay.
        """
        base_url = (base_url or "").strip() or None
        named = resolve_model_name(name, self._environment, api_mode=api_mode, base_url=base_url)
        if named.provider == "replay":
            from hummingbird.models.replay import load_replay

            return load_replay(named.model)
        if named.provider == "digest":
            from hummingbird.models.rules_report.rules_model import RulesModel

            return RulesModel()
        address = base_url or env_value(self._environment, _BASE_URLS[named.provider])
        wanted = EndpointSettings(named, address, self._environment, self._model_regions, self)
        wire, endpoint = _FACTORIES[named.provider](wanted)
        if self._ca_bundle or _names_proxy_or_certificates():
            self.transport.check_settings()  # else the first call finds out
        return self._create_model(name.strip(), wanted, wire, endpoint)

    async def close(self) -> None:
        await self.transport.close()

    @cached_property
    def transport(self) -> "ModelTransport":
        from hummingbird.models.transport import ModelTransport

        return ModelTransport(self._now, ca_bundle=self._ca_bundle)

    @cached_property
    def tokens(self) -> "TokenSource":
        from hummingbird.models.google_credentials import GoogleTokenSource, load_application_default

        return self._given_tokens or GoogleTokenSource(self._now, partial(load_application_default, self._ca_bundle))

    def _create_model(
        self, written: str, wanted: "EndpointSettings", wire: "WireFormat", endpoint: "ModelEndpoint"
    ) -> Model:
        from hummingbird.models.http_model import HttpModel

        provider, model = wanted.named.provider, wanted.named.on_wire
        address = wanted.base_url or f"https://{OPENAI_HOST}/v1"  # profile and price use it only for openai-chat
        profile = profile_for(provider, model, host_of_url(address))
        names = (written, f"{provider}:{wanted.named.model}", wanted.named.model)
        if window := next((self._windows[name] for name in names if name in self._windows), None):
            profile = replace(profile, context_tokens=window)
        unknown = not window and profile.context_tokens == UNKNOWN_WINDOW
        profile = self._apply_sampling(profile)
        return HttpModel(
            f"{provider}:{wanted.named.model}",
            wire=wire,
            endpoint=endpoint,
            profile=profile,
            transport=self.transport,
            price=find_price(
                model,
                provider,
                self._prices,
                written=(written, f"{provider}:{wanted.named.model}"),
                base_url=address,
                now=self._current_time,
            ),
            shared=True,
            window_urls=_window_urls(wanted) if unknown else (),
        )

    def _apply_sampling(self, profile: ModelProfile) -> ModelProfile:
        """Raises UsageError for a temperature that the model would refuse."""
        wanted = self._sampling
        if wanted.temperature is not None and profile.summarised_thinking and not profile.signs_calls:
            raise UsageError(
                f"The model {profile.model} thinks, and takes no temperature: leave it out, or set effort."
            )
        return replace(profile, temperature=wanted.temperature, effort=wanted.effort or profile.effort)

    def _current_time(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """The settings from which the wire format and the endpoint of a model are created."""

    named: ResolvedModelName
    base_url: str | None
    environment: Mapping[str, str]
    model_regions: Mapping[str, str]
    models: ModelRegistry

    @property
    def host(self) -> str:
        return host_of_url(self.base_url) if self.base_url else ""

    def first_setting(self, *variables: str) -> str | None:
        return next((value for name in variables if (value := env_value(self.environment, name))), None)

    def api_key(self, *variables: str) -> str:
        """Return the first of these keys that is set; empty for a local server. Raises MissingSetting."""
        for variable in variables:
            if key := env_value(self.environment, variable):
                return _check_key(key, variable)
        if self.base_url and is_local(self.host):
            return ""
        at = f" at {self.host}" if self.base_url else ""
        chat = self.base_url and self.named.bare and OPENAI_KEY not in variables
        other = f", or {OPENAI_KEY} to use Chat Completions there" if chat else ""
        raise MissingSetting(f"The model {self.named}{at} needs an API key: set {' or '.join(variables)}{other}.")

    def google_base_url(self) -> str | None:
        """Return the base URL if a Google token may be sent there.

        That is the case for Google's hosts, and for any host if the user wrote the Vertex provider explicitly. Raises
        MissingSetting otherwise.
        """
        if self.base_url is None or not self.named.bare or may_receive_google_token(self.base_url):
            return self.base_url
        raise MissingSetting(
            f"The model {self.named} would send a Google token to {self.host}, which is not Google over https: write "
            f"{self.named.provider}:{self.named.model} if that is meant{_OTHER_WAY[self.named.provider]}."
        )

    def project(self, *variables: str) -> str:
        if project := self.first_setting(*variables):
            return project
        other = _OTHER_WAY[self.named.provider] if self.named.bare else ""
        raise MissingSetting(
            f"The model {self.named} on Vertex needs a Google Cloud project: set {' or '.join(variables)}{other}."
        )

    def region(self, *variables: str) -> str:
        """Return the region of the longest matching prefix in `model_regions`, else from the environment.

        Raises MissingSetting if there is none.
        """
        fitting = [prefix for prefix in self.model_regions if self.named.model.startswith(prefix)]
        if fitting:
            return self.model_regions[max(fitting, key=len)]
        if (region := self.first_setting(*variables)) is not None:
            return region
        raise MissingSetting(
            f"The model {self.named} on Vertex needs a region: add a prefix of its name to model_regions, or set "
            f"{' or '.join(variables)}."
        )


_OTHER_WAY = {
    "vertex-anthropic": f", or {CLAUDE_KEYS[0]} to use Anthropic's own API",
    "vertex-gemini": f", or {GEMINI_KEYS[0]} to use Google's Gemini API",
}


def _check_key(key: str, variable: str) -> str:
    if key.isascii() and key.isprintable():
        return key
    raise MissingSetting(
        f"{variable} holds a line break, a control character or a letter that is not ASCII, which no key has: copy the "
        "key again."
    )


WireFactory: TypeAlias = "Callable[[EndpointSettings], tuple[WireFormat, ModelEndpoint]]"


def _create_anthropic(wanted: EndpointSettings) -> "tuple[WireFormat, ModelEndpoint]":
    from hummingbird.models.anthropic import anthropic_wire
    from hummingbird.models.endpoints import ANTHROPIC_URL, AnthropicEndpoint

    return anthropic_wire(), AnthropicEndpoint(wanted.api_key(*CLAUDE_KEYS), wanted.base_url or ANTHROPIC_URL)


def _create_vertex_anthropic(wanted: EndpointSettings) -> "tuple[WireFormat, ModelEndpoint]":
    from hummingbird.models.anthropic import anthropic_wire
    from hummingbird.models.endpoints import VertexAnthropicEndpoint

    project = wanted.project("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
    region = wanted.region("CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION")
    return anthropic_wire(), VertexAnthropicEndpoint(project, region, wanted.models.tokens, wanted.google_base_url())


def _create_gemini(wanted: EndpointSettings) -> "tuple[WireFormat, ModelEndpoint]":
    from hummingbird.models.endpoints import GEMINI_URL, GeminiEndpoint
    from hummingbird.models.gemini import gemini_wire

    return gemini_wire(), GeminiEndpoint(wanted.api_key(*GEMINI_KEYS), wanted.base_url or GEMINI_URL)


def _create_vertex_gemini(wanted: EndpointSettings) -> "tuple[WireFormat, ModelEndpoint]":
    from hummingbird.models.endpoints import VertexGeminiEndpoint
    from hummingbird.models.gemini import gemini_wire

    project = wanted.project("GOOGLE_CLOUD_PROJECT")
    region = wanted.region("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION")
    return gemini_wire(), VertexGeminiEndpoint(project, region, wanted.models.tokens, wanted.google_base_url())


def _create_openai(wanted: EndpointSettings) -> "tuple[WireFormat, ModelEndpoint]":
    from hummingbird.models.endpoints import OPENAI_URL, OpenAIEndpoint
    from hummingbird.models.openai_responses import openai_responses_wire

    endpoint = OpenAIEndpoint("/responses", wanted.api_key(OPENAI_KEY), wanted.base_url or OPENAI_URL)
    return openai_responses_wire(_server_label(wanted.host)), endpoint


def _create_openai_chat(wanted: EndpointSettings) -> "tuple[WireFormat, ModelEndpoint]":
    from hummingbird.models.endpoints import OPENAI_URL, OpenAIEndpoint
    from hummingbird.models.openai_chat import openai_chat_wire

    if wanted.base_url is None and not wanted.named.model.startswith("gpt-"):
        raise MissingSetting(
            f"The model {wanted.named} needs the address of its server: set base_url or OPENAI_BASE_URL."
        )
    endpoint = OpenAIEndpoint("/chat/completions", wanted.api_key(OPENAI_KEY), wanted.base_url or OPENAI_URL)
    return openai_chat_wire(_server_label(wanted.host)), endpoint


def _window_urls(wanted: EndpointSettings) -> tuple[str, ...]:
    """Return where a server of open models may tell the window of its model; llama.cpp's /props is above the API."""
    if wanted.base_url is None or wanted.named.provider not in ("openai", "openai-chat") or wanted.host == OPENAI_HOST:
        return ()
    return f"{wanted.base_url.rstrip('/')}/models", f"{strip_version(wanted.base_url)}/props"


def _server_label(host: str) -> str:
    return "OpenAI" if host in {"", OPENAI_HOST} else host


_FACTORIES: dict[str, WireFactory] = {
    "anthropic": _create_anthropic,
    "vertex-anthropic": _create_vertex_anthropic,
    "gemini": _create_gemini,
    "vertex-gemini": _create_vertex_gemini,
    "openai": _create_openai,
    "openai-chat": _create_openai_chat,
}

"""Resolve the name of a model to its provider and model, or explain why the name is unknown.

It looks at the environment only to see which API keys are set. The registry checks everything else that a provider
needs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from hummingbird.core.errors import UnknownModel, UsageError
from hummingbird.core.text import shorten_line
from hummingbird.models.endpoints import host_of_url, is_local, provider_for_url

DIGEST = "digest"  # the model that works by rules alone
PROVIDERS = ("anthropic", "vertex-anthropic", "gemini", "vertex-gemini", "openai", "openai-chat", "replay", DIGEST)
FORMS = (
    "anthropic:MODEL, vertex-anthropic:MODEL, gemini:MODEL, vertex-gemini:MODEL, openai:MODEL, openai-chat:MODEL, "
    "replay:PATH, digest, or a bare claude-…, gemini-… or gpt-… name"
)
# The providers of each api_mode; the first one is used when the model's name does not say which.
MODES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "chat_completions": ("openai-chat",),
        "codex_responses": ("openai",),
        "anthropic_messages": ("anthropic", "vertex-anthropic"),
        "gemini": ("gemini", "vertex-gemini"),
    }
)
GEMINI_KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
CLAUDE_KEYS = ("ANTHROPIC_API_KEY",)
OPENAI_KEY = "OPENAI_API_KEY"
_GPT = re.compile(r"gpt-(?!oss)|chatgpt-|o\d(?:-|$)")  # gpt-oss is an open model that others serve
_DATE = re.compile(r"-(?=20\d{6}$)")


@dataclass(frozen=True, slots=True)
class ResolvedModelName:
    """A provider and its model. `bare` means that the name had no provider, so error messages may suggest another."""

    provider: str
    model: str
    bare: bool = False

    def __str__(self) -> str:
        return self.model if self.bare else f"{self.provider}:{self.model}" if self.model else self.provider

    @property
    def on_wire(self) -> str:
        """The model's name as the API expects it.

        Vertex writes the date of a Claude model as `name@date`, others as `name-date`. We accept both forms for both.
        """
        if self.provider == "vertex-anthropic":
            return _DATE.sub("@", self.model)
        return self.model if self.provider == "openai-chat" else self.model.replace("@", "-")


def env_value(environment: Mapping[str, str], variable: str) -> str | None:
    """Return a variable without surrounding white space; None if it is unset or blank.

    A value that was read from a file commonly ends with a line break.
    """
    return environment.get(variable, "").strip() or None


def api_key_variable(name: str) -> str:
    """Return the variable that holds the key of a model's provider. Raises UsageError if it has none."""
    provider, model = parse_model_name(name)
    if provider is None:
        provider = "anthropic" if model.startswith("claude-") else "gemini" if model.startswith("gemini-") else "openai"
    keys = {"anthropic": CLAUDE_KEYS[0], "gemini": GEMINI_KEYS[0], "openai": OPENAI_KEY, "openai-chat": OPENAI_KEY}
    if provider not in keys:
        raise UsageError(f"The provider {provider} takes no api_key; leave it out.")
    return keys[provider]


def parse_model_name(name: str) -> tuple[str | None, str]:
    """Split a name into (provider, model). A bare name has no provider, and may contain a colon (`llama3:8b`)."""
    name = name.strip()
    if name.lower() == DIGEST:
        return DIGEST, ""
    provider, colon, model = name.partition(":")
    if not colon or provider.lower() not in PROVIDERS:
        return None, name
    return provider.lower(), model.strip()


def resolve_model_name(
    name: str, environment: Mapping[str, str], *, api_mode: str | None = None, base_url: str | None = None
) -> ResolvedModelName:
    """Resolve a name to its provider and model. Raises UnknownModel."""
    provider, model = parse_model_name(name)
    if provider == DIGEST:
        return ResolvedModelName(provider, "")
    if not model or name.strip().lower() in PROVIDERS:
        what = "a provider but no model" if name.strip() else "no model"
        raise UnknownModel(f"{name.strip()!r} names {what}. Known forms: {FORMS}.")
    if provider == "replay":
        return ResolvedModelName(provider, model)
    speakers = _providers_for_mode(api_mode)
    if provider is None:
        return _resolve_bare_name(model, environment, speakers, base_url)
    if speakers and provider not in speakers:
        provider = speakers[0]
    return ResolvedModelName(provider, model)


def _providers_for_mode(api_mode: str | None) -> tuple[str, ...]:
    if not api_mode:
        return ()
    if api_mode not in MODES:
        raise UnknownModel(
            f"There is no api_mode {shorten_line(api_mode, 40)!r}{_suggestion(api_mode, MODES)}: {', '.join(MODES)}."
        )
    return MODES[api_mode]


def _resolve_bare_name(
    model: str, environment: Mapping[str, str], speakers: tuple[str, ...], base_url: str | None
) -> ResolvedModelName:
    address = base_url or env_value(environment, "OPENAI_BASE_URL")
    found = _provider_for_family(model, environment, base_url)
    found = found or (provider_for_url(address, model) or "openai-chat" if address else None)
    if speakers and found not in speakers:
        found = speakers[0]
    if found is None:
        raise _unknown_model_error(model)
    return ResolvedModelName(found, model, bare=True)


def _provider_for_family(model: str, environment: Mapping[str, str], base_url: str | None) -> str | None:
    """Choose the provider of a known model family by the host of the base URL, else by the keys that are set."""
    there = provider_for_url(base_url, model) if base_url else None
    if model.startswith("gemini-"):
        return there or _vendor_or_vertex("gemini", GEMINI_KEYS, environment, base_url)
    if model.startswith("claude-"):
        return there or _vendor_or_vertex("anthropic", CLAUDE_KEYS, environment, base_url)
    return "openai" if _GPT.match(model) else None


def _vendor_or_vertex(own: str, keys: tuple[str, ...], environment: Mapping[str, str], base_url: str | None) -> str:
    """Choose between the vendor's own API, Vertex and Chat Completions.

    Never guess Vertex for a base URL: that host would receive a token for the user's whole Google Cloud account. There
    we use Chat Completions if its key is set or the host is local. Otherwise the vendor's API will ask for its key.
    """
    if any(env_value(environment, key) for key in keys):
        return own
    if not base_url:
        return f"vertex-{own}"
    return "openai-chat" if env_value(environment, OPENAI_KEY) or is_local(host_of_url(base_url)) else own


def _unknown_model_error(name: str) -> UnknownModel:
    head, colon, _ = name.partition(":")
    if colon:
        return UnknownModel(
            f"There is no provider {shorten_line(head, 40)!r}{_suggestion(head, PROVIDERS)}. Known forms: {FORMS}."
        )
    return UnknownModel(
        f"The model {shorten_line(name, 80)!r} is of no known family: name its provider, or set a base URL to use it "
        f"through Chat Completions. Known forms: {FORMS}."
    )


def _suggestion(word: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    close = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""

"""What a model's name means (M1): which provider, which model. Says so in a sentence when it means nothing.

Looks at the environment only to see which keys there are; what else a provider needs is the registry's business.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType

from hummingbird.adapters.models.addresses import host_of, is_local, provider_at
from hummingbird.domain.errors import UnknownModel
from hummingbird.domain.text import shortened

PROVIDERS = ("anthropic", "vertex-anthropic", "gemini", "vertex-gemini", "openai", "openai-chat", "replay", "digest")
FORMS = (
    "anthropic:MODEL, vertex-anthropic:MODEL, gemini:MODEL, vertex-gemini:MODEL, openai:MODEL, openai-chat:MODEL, "
    "replay:PATH, digest, or a bare claude-…, gemini-… or gpt-… name"
)
# The providers that speak what a mode means; the first is meant where the name says nothing.
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
_GPT = re.compile(r"gpt-(?!oss)|chatgpt-|o\d(?:-|$)")  # gpt-oss is what others serve
_DATE = re.compile(r"-(?=20\d{6}$)")


@dataclass(frozen=True, slots=True)
class Named:
    """`bare`: the operator named no provider, so sentences may offer another one."""

    provider: str
    model: str
    bare: bool = False

    def __str__(self) -> str:
        return self.model if self.bare else f"{self.provider}:{self.model}" if self.model else self.provider

    @property
    def on_wire(self) -> str:
        """Vertex writes Claude's dates `name@date`, everybody else `name-date`; both are taken for both."""
        if self.provider == "vertex-anthropic":
            return _DATE.sub("@", self.model)
        return self.model if self.provider == "openai-chat" else self.model.replace("@", "-")


def setting(environment: Mapping[str, str], variable: str) -> str | None:
    """A variable of the environment; one that holds nothing but white space is not set. What was read from a file
    commonly ends with a line break."""
    return environment.get(variable, "").strip() or None


def parse_name(name: str) -> tuple[str | None, str]:
    """(provider, model); no provider for a bare name, which may have a colon of its own (`llama3:8b`)."""
    name = name.strip()
    if name.lower() == "digest":
        return "digest", ""
    provider, colon, model = name.partition(":")
    if not colon or provider.lower() not in PROVIDERS:
        return None, name
    return provider.lower(), model.strip()


def decide(
    name: str, environment: Mapping[str, str], *, api_mode: str | None = None, base_url: str | None = None
) -> Named:
    """Raises UnknownModel."""
    provider, model = parse_name(name)
    if provider == "digest":
        return Named(provider, "")
    if not model or name.strip().lower() in PROVIDERS:
        what = "a provider but no model" if name.strip() else "no model"
        raise UnknownModel(f"{name.strip()!r} names {what}. Known forms: {FORMS}.")
    if provider == "replay":
        return Named(provider, model)
    speakers = _speakers(api_mode)
    if provider is None:
        return _bare(model, environment, speakers, base_url)
    if speakers and provider not in speakers:
        provider = speakers[0]
    return Named(provider, model)


def _speakers(api_mode: str | None) -> tuple[str, ...]:
    if not api_mode:
        return ()
    if api_mode not in MODES:
        raise UnknownModel(
            f"There is no api_mode {shortened(api_mode, 40)!r}{_near(api_mode, MODES)}: {', '.join(MODES)}."
        )
    return MODES[api_mode]


def _bare(model: str, environment: Mapping[str, str], speakers: tuple[str, ...], base_url: str | None) -> Named:
    address = base_url or setting(environment, "OPENAI_BASE_URL")
    found = _by_family(model, environment, base_url)
    found = found or (provider_at(address, model) or "openai-chat" if address else None)
    if speakers and found not in speakers:
        found = speakers[0]
    if found is None:
        raise _unknown(model)
    return Named(found, model, bare=True)


def _by_family(model: str, environment: Mapping[str, str], base_url: str | None) -> str | None:
    """As the host of the base URL says, else by the keys there are."""
    there = provider_at(base_url, model) if base_url else None
    if model.startswith("gemini-"):
        return there or _own_or_vertex("gemini", GEMINI_KEYS, environment, base_url)
    if model.startswith("claude-"):
        return there or _own_or_vertex("anthropic", CLAUDE_KEYS, environment, base_url)
    return "openai" if _GPT.match(model) else None


def _own_or_vertex(own: str, keys: tuple[str, ...], environment: Mapping[str, str], base_url: str | None) -> str:
    """Vertex is never guessed for a host that is not Google's: it would get a token for all of somebody's Google
    Cloud. What is spoken there is Chat Completions, if there is a key for that or none is needed; else the family's
    own key will be asked for."""
    if any(setting(environment, key) for key in keys):
        return own
    if not base_url:
        return f"vertex-{own}"
    return "openai-chat" if setting(environment, OPENAI_KEY) or is_local(host_of(base_url)) else own


def _unknown(name: str) -> UnknownModel:
    head, colon, _ = name.partition(":")
    if colon:
        return UnknownModel(
            f"There is no provider {shortened(head, 40)!r}{_near(head, PROVIDERS)}. Known forms: {FORMS}."
        )
    return UnknownModel(
        f"The model {shortened(name, 80)!r} is of no known family: name its provider, or set a base URL to use it "
        f"through Chat Completions. Known forms: {FORMS}."
    )


def _near(word: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    close = get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""

"""Define the address and the authentication of each provider, and what a base URL says about its host.

Endpoints take plain arguments and return URLs and headers; they read no environment and send nothing. A wire format
leaves out what depends on the endpoint (Anthropic's `model` and `anthropic_version`); `finish_body` adds it.
"""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec

from hummingbird.core.errors import UsageError
from hummingbird.core.masking import MASK, Secrets
from hummingbird.core.text import shorten_line
from hummingbird.models.wire_format import ModelProfile

# Compare whole host names, never parts of a URL: these checks decide who receives a credential.
_OWNERS = {
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
    "api.openai.com": "openai",
}
_VERTEX = re.compile(r"(?:[a-z0-9-]+-)?aiplatform(?:\.(?:us|eu)\.rep)?\.googleapis\.com")
_CHAT_PATH = re.compile(r"/open(?:ai|api)$")  # Google's hosts offer Chat Completions below these paths
_LOCAL_HOST = re.compile(r"localhost|[^.:]+|.+\.(?:localhost|local|internal|svc|cluster\.local|home\.arpa)")
_SECRET_SHAPES = Secrets()


def host_of_url(base_url: str) -> str:
    """Return the host name in lower case. Raises UsageError if this is no web address."""
    parts = _split_url(base_url)
    host = (parts.hostname or "").rstrip(".").lower() if parts else ""
    if parts is None or parts.scheme not in {"http", "https"} or not host:
        raise UsageError(
            f"The base URL {quote_url(base_url)} is not a web address: write it like https://host.example/v1."
        )
    return host


def quote_url(base_url: str) -> str:
    """Quote a URL for a message, with everything before an @ and everything that looks like a key masked."""
    before, at, rest = base_url.rpartition("@")
    return repr(shorten_line(_SECRET_SHAPES.mask(f"{MASK}@{rest}" if at and before else base_url), 100))


def passwords_in_url(base_url: str) -> tuple[str, ...]:
    """Return the password in the URL as written and decoded; empty if there is none."""
    parts = _split_url(base_url)
    password = parts.password if parts else None
    return (password, unquote(password)) if password else ()


def provider_for_url(base_url: str, model: str) -> str | None:
    """Return the provider whose API is at this URL; None if the host does not say."""
    host = host_of_url(base_url)
    if _CHAT_PATH.search(urlsplit(base_url).path.rstrip("/")):
        return "openai-chat"
    if _VERTEX.fullmatch(host):
        return "vertex-anthropic" if model.startswith("claude-") else "vertex-gemini"
    return _OWNERS.get(host)


def may_receive_google_token(base_url: str) -> bool:
    """Tell whether a Google token may be sent to this URL without the user's explicit consent.

    The token gives access to the user's whole Google Cloud account, so only Google's hosts over https and this machine
    may receive it.
    """
    host = host_of_url(base_url)
    return is_loopback(host) or (urlsplit(base_url).scheme == "https" and host.endswith(".googleapis.com"))


def is_loopback(host: str) -> bool:
    """Tell whether the host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_local(host: str) -> bool:
    """Tell whether the host is in the local network, where servers often need no key."""
    try:
        address = ip_address(host)
    except ValueError:
        return _LOCAL_HOST.fullmatch(host) is not None
    return address.is_private or address.is_loopback or address.is_link_local


def _split_url(base_url: str) -> SplitResult | None:
    """Split a URL; return None if it is invalid. `urlsplit` itself drops line breaks and does not check the port."""
    if not base_url.isprintable() or " " in base_url:
        return None
    try:
        parts = urlsplit(base_url)
        _ = parts.port
    except ValueError:
        return None
    return parts


ANTHROPIC_URL = "https://api.anthropic.com"
# The latest version; the tests check request bodies against its types. We never send what it removed (sampling
# parameters, documents in assistant messages, citations in user text). Vertex supports it too.
ANTHROPIC_VERSION = "2026-10-21"
GEMINI_URL = "https://generativelanguage.googleapis.com"
OPENAI_URL = "https://api.openai.com/v1"

_VERSION = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?$")


class TokenSource(Protocol):
    """A source of bearer tokens that expire and can be renewed."""

    async def get_token(self) -> str:
        """Return a valid token.

        Raises MissingSetting or CredentialRefused if there is none, ProviderUnavailable if a retry may help.
        """
        ...

    async def refresh(self) -> bool:
        """Replace the token by a new one; return False if that failed."""
        ...


class _GoogleBearer:
    """The authentication of both Vertex endpoints.

    `recent_tokens` are the tokens that requests under way may use: the last one and the one before it.
    """

    def __init__(self, tokens: TokenSource) -> None:
        self._tokens = tokens
        self.recent_tokens: tuple[str, ...] = ()

    async def headers(self) -> Mapping[str, str]:
        token = await self._tokens.get_token()
        if token not in self.recent_tokens:
            self.recent_tokens = (token, *self.recent_tokens[:1])
        return {"authorization": f"Bearer {token}"}

    async def refresh(self) -> bool:
        return await self._tokens.refresh()


class AnthropicEndpoint:
    """Anthropic's own API, or a compatible gateway. `version` is for gateways that only support an older one."""

    def __init__(self, key: str, base_url: str = ANTHROPIC_URL, version: str = ANTHROPIC_VERSION) -> None:
        self._url = f"{strip_version(base_url)}/v1/messages"
        self._headers = {"x-api-key": key, "anthropic-version": version}
        self.secrets = (key, *passwords_in_url(base_url))

    def url(self, profile: ModelProfile, *, stream: bool) -> str:
        return self._url

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    def finish_body(self, body: bytes, profile: ModelProfile) -> bytes:
        return _prepend_member(body, "model", profile.model)

    async def refresh(self) -> bool:
        return False


class VertexAnthropicEndpoint:
    """Claude on Vertex AI, with the model in the path and the API version in the body."""

    def __init__(
        self,
        project: str,
        region: str,
        tokens: TokenSource,
        base_url: str | None = None,
        version: str = ANTHROPIC_VERSION,
    ) -> None:
        self._models = (
            f"{_vertex_url(region, base_url)}/v1/{_vertex_location(project, region)}/publishers/anthropic/models"
        )
        self._bearer = _GoogleBearer(tokens)
        self._version = version
        self._password = passwords_in_url(base_url or "")

    def url(self, profile: ModelProfile, *, stream: bool) -> str:
        method = "streamRawPredict" if stream else "rawPredict"
        return f"{self._models}/{quote(profile.model, safe='@')}:{method}"

    async def headers(self) -> Mapping[str, str]:
        return await self._bearer.headers()

    def finish_body(self, body: bytes, profile: ModelProfile) -> bytes:
        return _prepend_member(body, "anthropic_version", self._version)

    async def refresh(self) -> bool:
        return await self._bearer.refresh()

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*self._bearer.recent_tokens, *self._password)


class GeminiEndpoint:
    """Google's Gemini API with a key."""

    def __init__(self, key: str, base_url: str = GEMINI_URL) -> None:
        self._models = f"{strip_version(base_url)}/v1/models"
        self._headers = {"x-goog-api-key": key}
        self.secrets = (key, *passwords_in_url(base_url))

    def url(self, profile: ModelProfile, *, stream: bool) -> str:
        return _generate_url(self._models, profile, stream=stream)

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    def finish_body(self, body: bytes, profile: ModelProfile) -> bytes:
        return body

    async def refresh(self) -> bool:
        return False


class VertexGeminiEndpoint:
    """Gemini on Vertex AI."""

    def __init__(self, project: str, region: str, tokens: TokenSource, base_url: str | None = None) -> None:
        self._models = (
            f"{_vertex_url(region, base_url)}/v1beta1/{_vertex_location(project, region)}/publishers/google/models"
        )
        self._bearer = _GoogleBearer(tokens)
        self._password = passwords_in_url(base_url or "")

    def url(self, profile: ModelProfile, *, stream: bool) -> str:
        return _generate_url(self._models, profile, stream=stream)

    async def headers(self) -> Mapping[str, str]:
        return await self._bearer.headers()

    def finish_body(self, body: bytes, profile: ModelProfile) -> bytes:
        return body

    async def refresh(self) -> bool:
        return await self._bearer.refresh()

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*self._bearer.recent_tokens, *self._password)


class OpenAIEndpoint:
    """OpenAI or a compatible server; `path` is `/responses` or `/chat/completions`.

    The base URL includes the API's version, as in every OpenAI client. Local servers often need no key. The body
    already contains the model.
    """

    def __init__(self, path: str, key: str | None = None, base_url: str = OPENAI_URL) -> None:
        self._url = f"{base_url.rstrip('/')}/{path.lstrip('/')}"
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self.secrets = (key or "", *passwords_in_url(base_url))

    def url(self, profile: ModelProfile, *, stream: bool) -> str:
        return self._url

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    def finish_body(self, body: bytes, profile: ModelProfile) -> bytes:
        return body

    async def refresh(self) -> bool:
        return False


def _prepend_member(body: bytes, key: str, value: str) -> bytes:
    """Add a member at the beginning of a JSON object, which must not be empty."""
    return b'{"%s":%s,%s' % (key.encode(), msgspec.json.encode(value), body[1:])


def strip_version(base_url: str) -> str:
    """Remove a trailing slash and the API version, which some users write and others do not."""
    return _VERSION.sub("", base_url.rstrip("/"))


def _vertex_url(region: str, base_url: str | None) -> str:
    if base_url is not None:
        return strip_version(base_url)
    if region == "global":
        return "https://aiplatform.googleapis.com"
    if region in {"us", "eu"}:
        return f"https://aiplatform.{region}.rep.googleapis.com"
    return f"https://{quote(region, safe='')}-aiplatform.googleapis.com"


def _vertex_location(project: str, region: str) -> str:
    return f"projects/{quote(project, safe=':')}/locations/{quote(region, safe='')}"


def _generate_url(models: str, profile: ModelProfile, *, stream: bool) -> str:
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{models}/{quote(profile.model.removeprefix('models/'), safe='@')}:{method}"

"""Where each provider is reached and how a request proves who sends it.

Plain arguments in, URL and headers out: no environment, no wire format, no HTTP. A wire leaves out of its body
what depends on the place (Anthropic's `model` and `anthropic_version`); `finish` puts it in front.
"""

import re
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote

import msgspec

from hummingbird.adapters.models.addresses import password_in
from hummingbird.adapters.models.wire import Profile

ANTHROPIC_URL = "https://api.anthropic.com"
# The latest version, and the one whose request types the tests check bodies with. What it took away (sampling
# parameters, documents in assistant messages, citations in user text) is never sent. Known on Vertex too.
ANTHROPIC_VERSION = "2026-10-21"
GEMINI_URL = "https://generativelanguage.googleapis.com"
OPENAI_URL = "https://api.openai.com/v1"

_VERSION = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?$")


class TokenSource(Protocol):
    """Bearer tokens that run out and can be had anew."""

    async def token(self) -> str:
        """Raises MissingSetting or CredentialRefused when there is none to be had, Unavailable to try again."""
        ...

    async def refresh(self) -> bool:
        """Drops the token and gets a new one; False when that failed."""
        ...


class _Bearer:
    """What both of Vertex's endpoints prove themselves with. `told` are the tokens that may still be under way: the
    last one and the one before it."""

    def __init__(self, tokens: TokenSource) -> None:
        self._tokens = tokens
        self.told: tuple[str, ...] = ()

    async def headers(self) -> Mapping[str, str]:
        token = await self._tokens.token()
        if token not in self.told:
            self.told = (token, *self.told[:1])
        return {"authorization": f"Bearer {token}"}

    async def refresh(self) -> bool:
        return await self._tokens.refresh()


class AnthropicEndpoint:
    """Anthropic's own API, or a gateway that speaks it. `version` is for gateways that know only an older one."""

    def __init__(self, key: str, base_url: str = ANTHROPIC_URL, version: str = ANTHROPIC_VERSION) -> None:
        self._url = f"{_root(base_url)}/v1/messages"
        self._headers = {"x-api-key": key, "anthropic-version": version}
        self.secrets = (key, *password_in(base_url))

    def url(self, profile: Profile, *, stream: bool) -> str:
        return self._url

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    def finish(self, body: bytes, profile: Profile) -> bytes:
        return _opened(body, "model", profile.model)

    async def refresh(self) -> bool:
        return False


class VertexAnthropicEndpoint:
    """Claude on Google Cloud, Google managed: the model in the path, the API version in the body."""

    def __init__(
        self,
        project: str,
        region: str,
        tokens: TokenSource,
        base_url: str | None = None,
        version: str = ANTHROPIC_VERSION,
    ) -> None:
        self._models = f"{_vertex(region, base_url)}/v1/{_place(project, region)}/publishers/anthropic/models"
        self._bearer = _Bearer(tokens)
        self._version = version
        self._password = password_in(base_url or "")

    def url(self, profile: Profile, *, stream: bool) -> str:
        method = "streamRawPredict" if stream else "rawPredict"
        return f"{self._models}/{quote(profile.model, safe='@')}:{method}"

    async def headers(self) -> Mapping[str, str]:
        return await self._bearer.headers()

    def finish(self, body: bytes, profile: Profile) -> bytes:
        return _opened(body, "anthropic_version", self._version)

    async def refresh(self) -> bool:
        return await self._bearer.refresh()

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*self._bearer.told, *self._password)


class GeminiEndpoint:
    """Google's Gemini API with a key."""

    def __init__(self, key: str, base_url: str = GEMINI_URL) -> None:
        self._models = f"{_root(base_url)}/v1/models"
        self._headers = {"x-goog-api-key": key}
        self.secrets = (key, *password_in(base_url))

    def url(self, profile: Profile, *, stream: bool) -> str:
        return _generate(self._models, profile, stream=stream)

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    def finish(self, body: bytes, profile: Profile) -> bytes:
        return body

    async def refresh(self) -> bool:
        return False


class VertexGeminiEndpoint:
    """Gemini on Vertex AI."""

    def __init__(self, project: str, region: str, tokens: TokenSource, base_url: str | None = None) -> None:
        self._models = f"{_vertex(region, base_url)}/v1beta1/{_place(project, region)}/publishers/google/models"
        self._bearer = _Bearer(tokens)
        self._password = password_in(base_url or "")

    def url(self, profile: Profile, *, stream: bool) -> str:
        return _generate(self._models, profile, stream=stream)

    async def headers(self) -> Mapping[str, str]:
        return await self._bearer.headers()

    def finish(self, body: bytes, profile: Profile) -> bytes:
        return body

    async def refresh(self) -> bool:
        return await self._bearer.refresh()

    @property
    def secrets(self) -> tuple[str, ...]:
        return (*self._bearer.told, *self._password)


class OpenAIEndpoint:
    """OpenAI or a server that speaks its language; `path` is `/responses` or `/chat/completions`.

    The base URL is taken as it is, version included, the way every OpenAI client takes it. Servers at home
    often want no key. The body names the model already.
    """

    def __init__(self, path: str, key: str | None = None, base_url: str = OPENAI_URL) -> None:
        self._url = f"{base_url.rstrip('/')}/{path.lstrip('/')}"
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self.secrets = (key or "", *password_in(base_url))

    def url(self, profile: Profile, *, stream: bool) -> str:
        return self._url

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    def finish(self, body: bytes, profile: Profile) -> bytes:
        return body

    async def refresh(self) -> bool:
        return False


def _opened(body: bytes, key: str, value: str) -> bytes:
    """The JSON object `body`, which is never empty, with one more member in front."""
    return b'{"%s":%s,%s' % (key.encode(), msgspec.json.encode(value), body[1:])


def _root(base_url: str) -> str:
    """Without the trailing slash and the API version that some write and some don't."""
    return _VERSION.sub("", base_url.rstrip("/"))


def _vertex(region: str, base_url: str | None) -> str:
    if base_url is not None:
        return _root(base_url)
    if region == "global":
        return "https://aiplatform.googleapis.com"
    if region in {"us", "eu"}:
        return f"https://aiplatform.{region}.rep.googleapis.com"
    return f"https://{quote(region, safe='')}-aiplatform.googleapis.com"


def _place(project: str, region: str) -> str:
    return f"projects/{quote(project, safe=':')}/locations/{quote(region, safe='')}"


def _generate(models: str, profile: Profile, *, stream: bool) -> str:
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{models}/{quote(profile.model.removeprefix('models/'), safe='@')}:{method}"

"""Where requests go and with which credential."""

import json

import pytest
from google.auth.credentials import AnonymousCredentials

from hummingbird.models.endpoints import (
    AnthropicEndpoint,
    GeminiEndpoint,
    OpenAIEndpoint,
    VertexAnthropicEndpoint,
    VertexGeminiEndpoint,
)
from hummingbird.models.wire_format import ModelEndpoint, ModelProfile

CLAUDE = ModelProfile("claude-opus-5-5", 1_000_000)
GEMINI = ModelProfile("gemini-3.8-flash", 1_000_000)
REGIONS = ["us-east5", "europe-west1", "global", "us", "eu"]


class Tokens:
    def __init__(self) -> None:
        self.refreshed = 0

    async def get_token(self) -> str:
        return f"token-{self.refreshed}"

    async def refresh(self) -> bool:
        self.refreshed += 1
        return True


@pytest.mark.parametrize("region", REGIONS)
def test_claude_on_vertex_is_reached_where_its_own_sdk_reaches_it(region: str) -> None:
    """The SDK is the oracle for the hosts of regions, multi-regions and global."""
    from anthropic import AnthropicVertex

    sdk = AnthropicVertex(region=region, project_id="p", access_token="t")
    endpoint = VertexAnthropicEndpoint("p", region, Tokens())
    path = f"projects/p/locations/{region}/publishers/anthropic/models/claude-opus-5-5"
    assert endpoint.url(CLAUDE, stream=False) == f"{sdk.base_url}{path}:rawPredict"
    assert endpoint.url(CLAUDE, stream=True) == f"{sdk.base_url}{path}:streamRawPredict"
    sdk.close()


@pytest.mark.thorough
@pytest.mark.parametrize("region", REGIONS)
def test_gemini_on_vertex_is_reached_where_its_own_sdk_reaches_it(region: str) -> None:
    credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]  # google-auth types only a part of itself
    from google.genai import Client

    sdk = Client(enterprise=True, project="p", location=region, credentials=credentials)
    options = sdk._api_client._http_options
    path = f"projects/p/locations/{region}/publishers/google/models/gemini-3.8-flash"
    endpoint = VertexGeminiEndpoint("p", region, Tokens())
    assert endpoint.url(GEMINI, stream=False) == f"{options.base_url}{options.api_version}/{path}:generateContent"
    assert endpoint.url(GEMINI, stream=True).endswith(f"{path}:streamGenerateContent?alt=sse")


def test_a_dated_claude_keeps_its_at_sign_in_the_path() -> None:
    url = VertexAnthropicEndpoint("p", "global", Tokens()).url(
        ModelProfile("claude-haiku-4-5@20251001", 1), stream=False
    )
    assert url.endswith("/models/claude-haiku-4-5@20251001:rawPredict")


def test_a_model_name_cannot_leave_its_place_in_the_path() -> None:
    url = GeminiEndpoint("k").url(ModelProfile("../secrets?x=1", 1), stream=False)
    assert url == "https://generativelanguage.googleapis.com/v1/models/..%2Fsecrets%3Fx%3D1:generateContent"


async def test_the_direct_anthropic_api_gets_key_version_and_the_model_in_the_body() -> None:
    endpoint = AnthropicEndpoint("secret")
    assert endpoint.url(CLAUDE, stream=True) == "https://api.anthropic.com/v1/messages"
    assert await endpoint.headers() == {"x-api-key": "secret", "anthropic-version": "2026-10-21"}
    assert json.loads(endpoint.finish_body(b'{"max_tokens":1}', CLAUDE)) == {
        "model": "claude-opus-5-5",
        "max_tokens": 1,
    }


async def test_vertex_gets_a_bearer_and_the_version_in_the_body_but_no_model() -> None:
    endpoint = VertexAnthropicEndpoint("p", "global", Tokens())
    assert await endpoint.headers() == {"authorization": "Bearer token-0"}
    body = json.loads(endpoint.finish_body(b'{"max_tokens":1}', CLAUDE))
    assert body == {"anthropic_version": "2026-10-21", "max_tokens": 1}


async def test_a_refresh_reaches_the_token_source_and_the_next_headers() -> None:
    for endpoint in (VertexAnthropicEndpoint("p", "eu", Tokens()), VertexGeminiEndpoint("p", "eu", Tokens())):
        assert await endpoint.refresh()
        assert await endpoint.headers() == {"authorization": "Bearer token-1"}


async def test_a_key_has_nothing_to_refresh() -> None:
    endpoints: list[ModelEndpoint] = [AnthropicEndpoint("k"), GeminiEndpoint("k"), OpenAIEndpoint("/responses", "k")]
    assert [await endpoint.refresh() for endpoint in endpoints] == [False, False, False]


@pytest.mark.parametrize("base_url", ["http://gate/x", "http://gate/x/", "http://gate/x/v1"])
def test_a_base_url_may_end_in_a_slash_or_the_version(base_url: str) -> None:
    assert AnthropicEndpoint("k", base_url).url(CLAUDE, stream=False) == "http://gate/x/v1/messages"
    assert GeminiEndpoint("k", base_url).url(GEMINI, stream=False).startswith("http://gate/x/v1/models/gemini")
    vertex = VertexGeminiEndpoint("p", "global", Tokens(), base_url)
    assert vertex.url(GEMINI, stream=False).startswith("http://gate/x/v1beta1/projects/p/locations/global/")


async def test_an_openai_compatible_server_may_want_no_key() -> None:
    endpoint = OpenAIEndpoint("/chat/completions", base_url="http://localhost:11434/v1/")
    assert endpoint.url(ModelProfile("llama", 1), stream=False) == "http://localhost:11434/v1/chat/completions"
    assert await endpoint.headers() == {}
    assert endpoint.finish_body(b"{}", CLAUDE) == b"{}"
    assert await OpenAIEndpoint("/responses", "k").headers() == {"authorization": "Bearer k"}


async def test_an_endpoint_says_what_must_be_masked_and_never_shows_it() -> None:
    vertex = VertexGeminiEndpoint("p", "eu", Tokens(), "https://me:p%40ss@gate")
    assert list(vertex.secrets) == ["p%40ss", "p@ss"]
    for _ in range(3):
        await vertex.headers()
        await vertex.refresh()
    assert list(vertex.secrets) == ["token-2", "token-1", "p%40ss", "p@ss"]
    keyed: list[ModelEndpoint] = [AnthropicEndpoint("s3cret"), GeminiEndpoint("s3cret"), OpenAIEndpoint("/x", "s3cret")]
    for endpoint in keyed:
        assert endpoint.secrets == ("s3cret",)
        assert "s3cret" not in f"{endpoint} {endpoint!r}"

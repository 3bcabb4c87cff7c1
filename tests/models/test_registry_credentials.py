"""Which credential goes where, and what is never shown of it."""

import pytest

from hummingbird.core.errors import MissingSetting, UsageError
from hummingbird.models.model_names import resolve_model_name
from tests.models.resolved import KEYS, VERTEX, made, url


@pytest.mark.parametrize(
    ("name", "variable", "header", "value"),
    [
        ("anthropic:claude-opus-5-5", "ANTHROPIC_API_KEY", "x-api-key", "k3y"),
        ("gemini:gemini-3.5-flash", "GEMINI_API_KEY", "x-goog-api-key", "k3y"),
        ("openai:gpt-6.1-sol", "OPENAI_API_KEY", "authorization", "Bearer k3y"),
    ],
)
async def test_a_key_is_sent_without_the_white_space_around_it(
    name: str, variable: str, header: str, value: str
) -> None:
    """One read from a file ends with a line break."""
    assert (await made(name, {variable: " k3y\r\n"})._endpoint.headers())[header] == value
    with pytest.raises(MissingSetting, match="needs an API key"):
        made(name, {variable: " \n"})


@pytest.mark.parametrize("key", ["s3cret\nkey", "s3cret\x00key", "s3cretkéy", "s3cret\u200bkey", "s3cret\x7fkey"])
def test_a_key_that_cannot_be_sent_is_told_by_its_variable_and_never_by_its_value(key: str) -> None:
    with pytest.raises(MissingSetting, match="ANTHROPIC_API_KEY holds a line break") as caught:
        made("anthropic:claude-opus-5-5", {"ANTHROPIC_API_KEY": key})
    assert "s3cret" not in str(caught.value)


def test_a_key_of_white_space_does_not_choose_the_provider() -> None:
    assert resolve_model_name("claude-opus-5-5", {"ANTHROPIC_API_KEY": "\n"}).provider == "vertex-anthropic"
    assert resolve_model_name("gemini-3.5-flash", {"GOOGLE_API_KEY": " "}).provider == "vertex-gemini"


@pytest.mark.parametrize(
    "base_url",
    [
        "htp://me:hidden@host.example/v1",
        "me:hidden@host.example/v1",
        "http://me:hid@den@host.example:port/",
        f"sk-{'hidden' * 5}",
        "http://me:hidden@ho st/v1",
    ],
)
def test_a_mistyped_base_url_is_quoted_without_its_password(base_url: str) -> None:
    with pytest.raises(UsageError, match="is not a web address") as caught:
        made("openai-chat:llama-4", KEYS, base_url=base_url)
    assert "hid" not in str(caught.value)


GATE = "https://gate.example"


@pytest.mark.parametrize(
    ("name", "environment", "base_url", "provider"),
    [
        ("claude-opus-5-5", KEYS, GATE, "anthropic"),
        ("gemini-3.5-flash", KEYS, GATE, "gemini"),
        ("claude-opus-5-5", {"OPENAI_API_KEY": "k"}, GATE, "openai-chat"),
        ("gemini-3.5-flash", {"OPENAI_API_KEY": "k"}, GATE, "openai-chat"),
        ("claude-opus-5-5", {}, GATE, "anthropic"),
        ("gemini-3.5-flash", {}, GATE, "gemini"),
        ("claude-opus-5-5", {}, "http://localhost:4000", "openai-chat"),
        ("gemini-3.5-flash", VERTEX, "https://aiplatform.googleapis.com.gate.example", "gemini"),
        ("claude-opus-5-5", KEYS, "https://api.openai.com/v1", "openai"),
    ],
)
def test_vertex_is_never_guessed_for_a_host_that_is_not_googles(
    name: str, environment: dict[str, str], base_url: str, provider: str
) -> None:
    """It would get a token for all of somebody's Google Cloud."""
    assert resolve_model_name(name, {**environment, **VERTEX}, base_url=base_url).provider == provider


def test_a_family_at_a_strangers_host_asks_for_its_own_key() -> None:
    with pytest.raises(MissingSetting) as caught:
        made("claude-opus-5-5", VERTEX, base_url=GATE)
    assert str(caught.value) == (
        "The model claude-opus-5-5 at gate.example needs an API key: set ANTHROPIC_API_KEY, or OPENAI_API_KEY to use "
        "Chat Completions there."
    )


@pytest.mark.parametrize("base_url", [GATE, "http://aiplatform.googleapis.com", "http://10.1.2.3", "http://gate"])
def test_a_google_token_goes_to_a_strangers_host_only_when_that_was_said(base_url: str) -> None:
    """A bare name did not say it."""
    environment = {**VERTEX, "GOOGLE_VERTEX_BASE_URL": base_url, "ANTHROPIC_VERTEX_BASE_URL": base_url}
    for name in ("gemini-3.5-flash", "claude-opus-5-5"):
        with pytest.raises(MissingSetting, match=f"would send a Google token to .*: write vertex-.*:{name} if"):
            made(name, environment)
    assert url(made("vertex-gemini:gemini-3.5-flash", VERTEX, base_url=base_url)).startswith(base_url)
    assert url(made("vertex-anthropic:claude-opus-5-5", environment)).startswith(base_url)


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:8000", "http://[::1]", "https://aiplatform.eu.rep.googleapis.com"]
)
def test_a_google_token_may_go_to_google_and_to_this_machine(base_url: str) -> None:
    assert url(made("gemini-3.5-flash", {**VERTEX, "GOOGLE_VERTEX_BASE_URL": base_url})).startswith(base_url)

"""What each model family takes."""

import pytest

from hummingbird.models.registry import UNKNOWN_WINDOW, profile_for


@pytest.mark.parametrize(
    ("model", "entries", "thinking"),
    [
        ("claude-opus-4-5", False, False),
        ("claude-opus-4-6", False, True),
        ("claude-opus-4-7", False, True),
        ("claude-opus-4-8", True, True),
        ("claude-opus-4-8@20260401", True, True),
        ("claude-opus-5", True, True),
        ("claude-opus-5-5", True, True),
        ("claude-sonnet-4-5-20250929", False, False),
        ("claude-sonnet-4-6", False, True),
        ("claude-sonnet-5", False, True),
        ("claude-sonnet-5@20260701", False, True),
        ("claude-sonnet-5-5", True, True),
        ("claude-haiku-4-5", False, False),
        ("claude-haiku-5-5", True, True),
        ("claude-fable-5", True, True),
        ("claude-fable-5-2", True, True),
        ("claude-mythos-5-1", True, True),
        ("glm-5", False, False),
    ],
)
@pytest.mark.parametrize("provider", ["anthropic", "vertex-anthropic"])
def test_claudes_take_system_entries_and_summarised_thinking_by_version(
    provider: str, model: str, entries: bool, thinking: bool
) -> None:
    profile = profile_for(provider, model)
    assert (profile.system_entries, profile.summarised_thinking) == (entries, thinking)
    assert not profile.disabling_tools_is_free


@pytest.mark.parametrize(
    ("model", "signs"),
    [
        ("gemini-2.5-pro", False),
        ("gemini-2.5-flash-preview-09-2025", False),
        ("gemini-3.1-pro-preview", True),
        ("gemini-4-argon", True),
        ("gemini-3.8-flash", True),
        ("gemini-flash-latest", True),
        ("gemini-pro-latest", True),
        ("gemini-flash-lite-latest", True),
    ],
)
def test_geminis_sign_their_calls_from_3_on_and_where_the_name_has_no_version(model: str, signs: bool) -> None:
    """A signature too much is taken, a missing one is a 400."""
    for provider in ("gemini", "vertex-gemini"):
        profile = profile_for(provider, model)
        assert profile.signs_calls is signs
        assert profile.summarised_thinking
        assert not profile.disabling_tools_is_free


def test_openais_models_get_a_cache_key_and_reason_readably() -> None:
    profile = profile_for("openai", "gpt-6.1-sol")
    assert profile.cache_key
    assert profile.summarised_thinking
    assert profile.disabling_tools_is_free
    assert profile.encrypted_reasoning
    other = profile_for("openai", "my-own-model")
    assert (other.summarised_thinking, other.encrypted_reasoning) == (False, False)


@pytest.mark.parametrize(
    ("host", "model", "key", "echo", "effort"),
    [
        ("api.openai.com", "gpt-5.4", "max_completion_tokens", (), None),
        ("api.openai.com", "gpt-5.6-sol", "max_completion_tokens", (), "none"),
        ("api.openai.com", "gpt-6.1-sol", "max_completion_tokens", (), "none"),
        ("mine.openai.azure.com", "gpt-5.4", "max_completion_tokens", (), None),
        ("openrouter.ai", "openai/gpt-6.1-sol", "max_tokens", ("reasoning_details",), None),
        ("api.deepseek.com", "deepseek-chat", "max_tokens", ("reasoning_content",), None),
        ("localhost", "llama-4", "max_tokens", (), None),
        ("api.openai.com.evil.example", "gpt-5.6-sol", "max_tokens", (), None),
    ],
)
def test_chat_servers_get_what_their_host_wants(
    host: str, model: str, key: str, echo: tuple[str, ...], effort: str | None
) -> None:
    profile = profile_for("openai-chat", model, host)
    assert (profile.max_tokens_key, profile.echo_keys, profile.effort) == (key, echo, effort)
    assert profile.cache_key is (host == "api.openai.com")
    assert profile.include_usage


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-haiku-4-5-20251001", 200_000),
        ("claude-opus-4-1", 200_000),
        ("claude-opus-4-6", 1_000_000),
        ("claude-opus-5-5", 1_000_000),
        ("gemini-4-argon", 1_048_576),
        ("gemini-3.5-flash", 1_000_000),
        ("gpt-6.1-sol", 1_050_000),
        ("gpt-5.4-2026-03-05", 1_050_000),
        ("gpt-5.4-mini", 400_000),
        ("gpt-oss-120b", 131_072),
        ("anthropic/claude-opus-5-5", 1_000_000),
        ("llama-4", UNKNOWN_WINDOW),
    ],
)
def test_windows_are_known_by_family(model: str, window: int) -> None:
    """Else the model's window."""
    assert profile_for("openai-chat", model).context_tokens == window

"""Names of models: who answers, and what is missing, in one sentence and before any run."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.errors import MissingSetting, SessionUnreadable, UnknownModel, UsageError
from hummingbird.core.usage import TokenUsage
from hummingbird.models.http_model import HttpModel
from hummingbird.models.model_names import ResolvedModelName, parse_model_name, resolve_model_name
from hummingbird.models.prices import PriceOverride
from hummingbird.models.registry import ModelRegistry
from tests.models.resolved import EVERYTHING, KEYS, VERTEX, made, url, wire


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("anthropic:claude-opus-5-5", ("anthropic", "claude-opus-5-5")),
        (" OpenAI:gpt-6.1-sol ", ("openai", "gpt-6.1-sol")),
        ("openai-chat:llama3:8b", ("openai-chat", "llama3:8b")),
        ("openai-chat:vendor/model", ("openai-chat", "vendor/model")),
        ("replay:/tmp/a:b", ("replay", "/tmp/a:b")),
        ("claude-opus-4-8@20260401", (None, "claude-opus-4-8@20260401")),
        ("llama3:8b", (None, "llama3:8b")),
        ("digest", ("digest", "")),
    ],
)
def test_a_name_is_a_provider_and_a_model(name: str, parsed: tuple[str | None, str]) -> None:
    assert parse_model_name(name) == parsed


@pytest.mark.parametrize(
    ("name", "expected_wire", "address"),
    [
        ("anthropic:claude-opus-5-5", "anthropic", "https://api.anthropic.com/v1/messages"),
        (
            "vertex-anthropic:claude-opus-5-5",
            "anthropic",
            "https://europe-west1-aiplatform.googleapis.com/v1/projects/acme/locations/europe-west1"
            "/publishers/anthropic/models/claude-opus-5-5:rawPredict",
        ),
        (
            "gemini:gemini-3.5-flash",
            "gemini",
            "https://generativelanguage.googleapis.com/v1/models/gemini-3.5-flash:generateContent",
        ),
        (
            "vertex-gemini:gemini-3.5-flash",
            "gemini",
            "https://europe-west1-aiplatform.googleapis.com/v1beta1/projects/acme/locations/europe-west1"
            "/publishers/google/models/gemini-3.5-flash:generateContent",
        ),
        ("openai:gpt-6.1-sol", "openai_responses", "https://api.openai.com/v1/responses"),
        ("openai-chat:gpt-5.4", "openai_chat", "https://api.openai.com/v1/chat/completions"),
    ],
)
def test_each_provider_has_its_wire_and_its_place(name: str, expected_wire: str, address: str) -> None:
    model = made(name, EVERYTHING)
    assert (model.name, wire(model), url(model)) == (name, expected_wire, address)


@pytest.mark.parametrize(
    ("model", "environment", "provider"),
    [
        ("gemini-3.5-flash", {"GOOGLE_API_KEY": "k", **VERTEX}, "gemini"),
        ("gemini-3.5-flash", {"GEMINI_API_KEY": "k", **VERTEX}, "gemini"),
        ("gemini-3.5-flash", {"GOOGLE_API_KEY": "", **VERTEX}, "vertex-gemini"),
        ("gemini-3.5-flash", {"ANTHROPIC_API_KEY": "k", **VERTEX}, "vertex-gemini"),
        ("claude-opus-5-5", {"ANTHROPIC_API_KEY": "k", **VERTEX}, "anthropic"),
        ("claude-opus-5-5", VERTEX, "vertex-anthropic"),
        ("claude-opus-4-8@20260401", VERTEX, "vertex-anthropic"),
        ("gpt-6.1-sol", {}, "openai"),
        ("o4-mini", {}, "openai"),
    ],
)
def test_a_bare_name_is_resolved_by_its_family(model: str, environment: dict[str, str], provider: str) -> None:
    assert resolve_model_name(model, environment) == ResolvedModelName(provider, model, bare=True)


@pytest.mark.parametrize(
    ("model", "base_url", "provider"),
    [
        ("claude-opus-5-5", "https://api.anthropic.com", "anthropic"),
        ("claude-opus-5-5", "https://europe-west1-aiplatform.googleapis.com", "vertex-anthropic"),
        ("glm-5", "https://api.anthropic.com/v1", "anthropic"),
        ("gemma-4", "https://generativelanguage.googleapis.com", "gemini"),
        ("gemma-4", "https://generativelanguage.googleapis.com/v1beta/openai/", "openai-chat"),
        ("gemma-4", "https://aiplatform.googleapis.com", "vertex-gemini"),
        ("gemma-4", "https://us-central1-aiplatform.googleapis.com/v1", "vertex-gemini"),
        ("ft:mine", "https://API.openai.com./v1", "openai"),
        ("llama3:8b", "http://localhost:11434/v1", "openai-chat"),
        ("gpt-oss-120b", "http://localhost:8000/v1", "openai-chat"),
        # host names are compared, not parts of the address
        ("llama-4", "https://evil.example/api.anthropic.com", "openai-chat"),
        ("llama-4", "https://api.openai.com.evil.example/v1", "openai-chat"),
        ("llama-4", "https://api.anthropic.com@evil.example/v1", "openai-chat"),
        ("llama-4", "https://evil-aiplatform.googleapis.com.example/v1", "openai-chat"),
    ],
)
def test_then_by_the_host_of_the_base_url_then_it_is_chat(model: str, base_url: str, provider: str) -> None:
    assert resolve_model_name(model, {}, base_url=base_url).provider == provider
    if not model.startswith("claude-"):
        assert resolve_model_name(model, {"OPENAI_BASE_URL": base_url}).provider == provider


@pytest.mark.parametrize(
    ("name", "mode", "provider"),
    [
        ("openai:gpt-5.4", "chat_completions", "openai-chat"),
        ("openai-chat:gpt-5.4", "codex_responses", "openai"),
        ("gpt-5.4", "chat_completions", "openai-chat"),
        ("vertex-anthropic:claude-opus-5-5", "anthropic_messages", "vertex-anthropic"),
        ("openai-chat:glm-5", "anthropic_messages", "anthropic"),
        ("glm-5", "anthropic_messages", "anthropic"),
        ("gemma-4", "gemini", "gemini"),
    ],
)
def test_an_explicit_mode_wins(name: str, mode: str, provider: str) -> None:
    assert resolve_model_name(name, KEYS, api_mode=mode).provider == provider


@pytest.mark.parametrize(
    ("name", "provider", "on_wire"),
    [
        ("claude-opus-4-8@20260401", "vertex-anthropic", "claude-opus-4-8@20260401"),
        ("claude-opus-4-8-20260401", "vertex-anthropic", "claude-opus-4-8@20260401"),
        ("claude-opus-4-8@20260401", "anthropic", "claude-opus-4-8-20260401"),
        ("gpt-5.4@2026-03-05", "openai", "gpt-5.4-2026-03-05"),
        ("name@odd", "openai-chat", "name@odd"),
    ],
)
def test_dates_are_written_as_the_provider_writes_them(name: str, provider: str, on_wire: str) -> None:
    """`name@date` accepted."""
    assert ResolvedModelName(provider, name).on_wire == on_wire


UNKNOWN: list[tuple[str, dict[str, Any], str]] = [
    ("antropic:claude-opus-5-5", {}, "There is no provider 'antropic' (did you mean 'anthropic'?). Known forms: anth"),
    ("vertex:gemini-3.5-flash", {}, "There is no provider 'vertex' (did you mean 'vertex-gemini'?). Known forms: anth"),
    ("cladue-opus-5-5", {}, "The model 'cladue-opus-5-5' is of no known family: name its provider, or set a base URL"),
    ("bananas", {}, "The model 'bananas' is of no known family: name its provider, or set a base URL to use it throu"),
    ("Anthropic", {}, "'Anthropic' names a provider but no model. Known forms: anthropic:MODEL"),
    ("anthropic:", {}, "'anthropic:' names a provider but no model. Known forms: anthropic:MODEL"),
    ("", {}, "'' names no model. Known forms: anthropic:MODEL"),
    ("gpt-5.4", {"api_mode": "chat"}, "There is no api_mode 'chat'"),
    ("gpt-5.4", {"api_mode": "codex_response"}, "(did you mean 'codex_responses'?): chat_completions, codex_responses"),
]


@pytest.mark.parametrize(("name", "settings", "words"), UNKNOWN)
def test_an_unknown_model_name_is_one_sentence_with_the_nearest_and_the_forms(
    name: str, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(UnknownModel) as caught:
        ModelRegistry(EVERYTHING).resolve(name, **settings)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


MISSING: list[tuple[str, dict[str, str], str]] = [
    (
        "anthropic:claude-opus-5-5",
        {},
        "The model anthropic:claude-opus-5-5 needs an API key: set ANTHROPIC_API_KEY.",
    ),
    (
        "gemini:gemini-3.5-flash",
        {"GOOGLE_API_KEY": ""},
        "The model gemini:gemini-3.5-flash needs an API key: set GOOGLE_API_KEY or GEMINI_API_KEY.",
    ),
    ("gpt-6.1-sol", {}, "The model gpt-6.1-sol needs an API key: set OPENAI_API_KEY."),
    (
        "openai-chat:llama-4",
        {"OPENAI_BASE_URL": "https://openrouter.ai/api/v1"},
        "The model openai-chat:llama-4 at openrouter.ai needs an API key: set OPENAI_API_KEY.",
    ),
    (
        "openai-chat:llama-4",
        KEYS,
        "The model openai-chat:llama-4 needs the address of its server: set base_url or OPENAI_BASE_URL.",
    ),
    (
        "claude-opus-5-5",
        {},
        "The model claude-opus-5-5 on Vertex needs a Google Cloud project: set ANTHROPIC_VERTEX_PROJECT_ID or "
        "GOOGLE_CLOUD_PROJECT, or ANTHROPIC_API_KEY to use Anthropic's own API.",
    ),
    (
        "gemini-3.5-flash",
        {},
        "The model gemini-3.5-flash on Vertex needs a Google Cloud project: set GOOGLE_CLOUD_PROJECT, or "
        "GOOGLE_API_KEY to use Google's Gemini API.",
    ),
    (
        "vertex-gemini:gemini-3.5-flash",
        {"GOOGLE_CLOUD_PROJECT": "acme"},
        "The model vertex-gemini:gemini-3.5-flash on Vertex needs a region: add a prefix of its name to model_regions, "
        "or set GOOGLE_CLOUD_LOCATION or CLOUD_ML_REGION.",
    ),
    (
        "vertex-anthropic:claude-opus-5-5",
        {"ANTHROPIC_VERTEX_PROJECT_ID": "acme"},
        "The model vertex-anthropic:claude-opus-5-5 on Vertex needs a region: add a prefix of its name to "
        "model_regions, or set CLOUD_ML_REGION or GOOGLE_CLOUD_LOCATION.",
    ),
]


@pytest.mark.parametrize(("name", "environment", "sentence"), MISSING)
def test_what_is_missing_is_named_before_any_run(name: str, environment: dict[str, str], sentence: str) -> None:
    """A missing key, project, region or address."""
    with pytest.raises(MissingSetting) as caught:
        ModelRegistry(environment).resolve(name)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("base_url", ["localhost:8000/v1", "not a url", "ftp://host/v1", "http://", "http://[::1"])
def test_a_base_url_that_is_none_is_one_sentence(base_url: str) -> None:
    with pytest.raises(UsageError, match="is not a web address: write it like"):
        ModelRegistry(KEYS).resolve("openai-chat:llama-4", base_url=base_url)


@pytest.mark.parametrize(
    "base_url",
    ["http://localhost:8000/v1", "http://127.0.0.1/v1", "http://[::1]:1/v1", "http://10.1.2.3/v1", "http://ollama/v1"],
)
async def test_a_server_at_home_needs_no_key(base_url: str) -> None:
    model = made("openai-chat:llama-4", {}, base_url=base_url)
    assert await model._endpoint.headers() == {}
    assert url(model) == f"{base_url}/chat/completions"


@pytest.mark.parametrize(
    ("model", "region"),
    [
        ("gemini-3.5-flash", "global"),
        ("gemini-3.5-flash-lite", "us-central1"),
        ("gemini-2.5-pro", "europe-west4"),
    ],
)
def test_the_longest_prefix_decides_the_region(model: str, region: str) -> None:
    regions = {"gemini-": "europe-west4", "gemini-3.5": "global", "gemini-3.5-flash-lite": "us-central1"}
    built = made(f"vertex-gemini:{model}", VERTEX, model_regions=regions)
    assert f"/locations/{region}/" in url(built)


def test_a_region_of_another_family_does_not_count() -> None:
    built = made("vertex-anthropic:claude-opus-5-5", VERTEX, model_regions={"gemini-": "global"})
    assert "/locations/europe-west1/" in url(built)


def test_the_environments_base_urls_are_used_and_the_setting_wins() -> None:
    environment = {
        **KEYS,
        "ANTHROPIC_BASE_URL": "https://gateway.example",
        "OPENAI_BASE_URL": "https://proxy.example/v1",
    }
    assert url(made("anthropic:claude-opus-5-5", environment)) == "https://gateway.example/v1/messages"
    assert url(made("openai:gpt-6.1-sol", environment)) == "https://proxy.example/v1/responses"
    other = made("openai:gpt-6.1-sol", environment, base_url="https://other.example/v1")
    assert url(other) == "https://other.example/v1/responses"


async def test_models_of_one_registry_share_a_transport_that_outlives_them() -> None:
    models = ModelRegistry(EVERYTHING)
    one, other = models.resolve("anthropic:claude-opus-5-5"), models.resolve("openai:gpt-6.1-sol")
    assert isinstance(one, HttpModel)
    assert isinstance(other, HttpModel)
    assert one._transport is other._transport
    client = await one._transport.client()
    await one.close()
    assert not client.is_closed
    await models.close()
    assert client.is_closed


def test_prices_of_the_config_win() -> None:
    override = {"openai-chat:llama-4": PriceOverride(Decimal(1), Decimal(2))}
    model = ModelRegistry({}, price_overrides=override).resolve("openai-chat:llama-4", base_url="http://localhost/v1")
    assert model.price(TokenUsage(fresh=1_000_000)) == 1
    listed = made("openai-chat:gpt-5.4", KEYS)
    assert listed.price(TokenUsage(fresh=1_000)) == Decimal("0.0025")


def test_an_override_is_found_by_the_name_that_was_written_then_by_longer_and_shorter_ones() -> None:
    names = ["claude-opus-5-5@20260401", "anthropic:claude-opus-5-5@20260401", "claude-opus-5-5-20260401"]
    for first in range(3):
        overrides = {name: PriceOverride(Decimal(at), Decimal(0)) for at, name in enumerate(names) if at >= first}
        model = ModelRegistry(KEYS, price_overrides=overrides).resolve(" claude-opus-5-5@20260401 ")
        assert model.price(TokenUsage(fresh=1_000_000)) == first


def test_prices_are_those_of_the_clock() -> None:
    """Gemini-4-argon doubles on 2026-12-01."""
    day = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
    clocks = [lambda: day, lambda: day + 86_400]
    before, after = (ModelRegistry(KEYS, now=clock).resolve("gemini:gemini-4-argon") for clock in clocks)
    cost = before.price(TokenUsage(fresh=1_000))
    assert cost is not None
    assert after.price(TokenUsage(fresh=1_000)) == 2 * cost


def test_proxies_and_certificates_are_checked_before_any_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingSetting, match="ca_bundle"):
        ModelRegistry(KEYS, ca_bundle=f"{tmp_path}/none.pem").resolve("openai:gpt-6.1-sol")
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy.example")
    with pytest.raises(MissingSetting, match="SOCKS"):
        made("openai:gpt-6.1-sol", KEYS)


def test_a_recording_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SessionUnreadable, match=r"There is no recording to replay at .*journal\.jsonl: No such file"):
        ModelRegistry({}).resolve(f"replay:{tmp_path}/journal.jsonl")


def test_importing_the_registry_imports_no_wire_no_http_and_no_prices() -> None:
    """Names can be checked for the price of a few milliseconds."""
    code = "import json, sys, hummingbird.models.registry; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(json.loads(done.stdout))
    assert "hummingbird.models.model_names" in loaded
    wires = {name for name in loaded if name.startswith("hummingbird.models.") and name.count(".") > 3}
    assert not wires
    assert loaded.isdisjoint({"httpx2", "genai_prices", "google.auth", "pydantic", "ssl"})

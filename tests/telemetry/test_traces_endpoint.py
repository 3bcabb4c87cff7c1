"""Where traces go, by the variables that others use too; what cannot be used is a sentence."""

import logging
import sys

import pytest

from hummingbird.core.errors import MissingSetting
from hummingbird.core.masking import Secrets
from hummingbird.telemetry.delivery import create_traces as made
from hummingbird.telemetry.delivery import otlp_endpoint_from_env
from hummingbird.telemetry.traces import Traces
from tests.telemetry.collecting import Collector

CANARY = "canary-of-a-secret-0123456789"
GENERAL, OWN = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


def test_without_an_endpoint_there_are_no_traces() -> None:
    assert made({}, "1", Secrets()) is None
    assert made({GENERAL: " "}, "1", Secrets()) is None


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({GENERAL: "http://c:4318"}, "http://c:4318/v1/traces"),
        ({GENERAL: "http://c:4318/otlp/"}, "http://c:4318/otlp/v1/traces"),
        ({OWN: "http://c:4318/here"}, "http://c:4318/here"),
        ({OWN: "http://c/here", GENERAL: "http://d"}, "http://c/here"),
    ],
)
def test_the_address_is_made_as_others_make_it(environment: dict[str, str], url: str) -> None:
    found = otlp_endpoint_from_env(environment)
    assert found is not None
    assert found.url == url


def test_certificates_are_those_of_the_configuration_unless_opentelemetry_has_its_own() -> None:
    ours, theirs = (
        otlp_endpoint_from_env({GENERAL: "https://c"}, "/ca.pem"),
        otlp_endpoint_from_env({GENERAL: "https://c", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/other.pem"}, "/ca.pem"),
    )
    assert ours is not None
    assert theirs is not None
    assert (ours.certificates, theirs.certificates) == ("/ca.pem", "")


def test_an_address_is_told_without_its_password() -> None:
    found = otlp_endpoint_from_env({OWN: "https://user:hunter2@c:4318/v1/traces?key=hunter2"})
    assert found is not None
    assert found.host == "https://c:4318/v1/traces"
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({GENERAL: "collector:4318"}, f"{GENERAL} is not an address"),
        ({GENERAL: "http://c:port"}, f"{GENERAL} is not an address"),
        ({OWN: "http://[::1"}, f"{OWN} is not an address"),
        ({GENERAL: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "set it to http/protobuf"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(environment: dict[str, str], words: str) -> None:
    with pytest.raises(MissingSetting, match=words):
        made(environment, "1", Secrets())


def test_variables_that_the_library_cannot_use_are_a_sentence(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "-3")
    assert Traces is not None, "it is loaded before its variables are wrong"
    before = set(logging.getLogger("opentelemetry").handlers)
    with pytest.raises(MissingSetting, match=r"correct its OTEL_ variables .*OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"):
        made({GENERAL: collector.url}, "1.2", Secrets())
    assert set(logging.getLogger("opentelemetry").handlers) <= before, "it still listens"


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("traces", "delivering", "spans"):
        monkeypatch.delitem(sys.modules, f"hummingbird.telemetry.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingSetting, match=r"pip install 'hummingbird-agent\[otel\]'"):
        made({GENERAL: "http://c:4318"}, "1", Secrets())

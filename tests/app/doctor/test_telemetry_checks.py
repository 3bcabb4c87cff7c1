"""A collector for traces and a DSN of Sentry, each shown broken; and nothing where nobody wants them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hummingbird.app.doctor.remote_checks import telemetry_checks
from tests.app.doctor.examining import FAIL, OK, doctor_context, only, tried
from tests.telemetry.collecting import Collector, collecting

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    for name in [name for name in os.environ if name.startswith(("OTEL_", "SENTRY_"))]:
        monkeypatch.delenv(name)
    with collecting() as found:
        yield found


def test_where_nothing_is_set_nothing_is_said(tmp_path: Path) -> None:
    assert tried(telemetry_checks, doctor_context(tmp_path, "")) == []


def test_a_collector_that_takes_an_empty_export_is_well(tmp_path: Path, collector: Collector) -> None:
    found = only(tried(telemetry_checks, doctor_context(tmp_path, "", environment={ENDPOINT: collector.url})))
    assert (found.part, found.standing, found.sentence) == ("traces", OK, f"{collector.url}/v1/traces takes traces.")
    (path, headers, body), *_ = collector.requests
    assert (path, headers["content-type"], body) == ("/v1/traces", "application/x-protobuf", b"")


@pytest.mark.parametrize("status", [401, 404, 500])
def test_one_that_refuses_is_told_with_its_answer(tmp_path: Path, collector: Collector, status: int) -> None:
    collector.status = status
    found = only(tried(telemetry_checks, doctor_context(tmp_path, "", environment={ENDPOINT: collector.url})))
    assert found.standing is FAIL
    assert f"takes no traces: correct {ENDPOINT}" in found.sentence
    assert str(status) in found.sentence


def test_nobody_at_the_address_is_one_sentence_without_its_password(tmp_path: Path) -> None:
    given = {ENDPOINT: "http://user:hunter2hunter2@127.0.0.1:9"}
    found = only(tried(telemetry_checks, doctor_context(tmp_path, "", environment=given)))
    assert found.standing is FAIL
    assert "refused" in found.sentence
    assert "hunter2" not in found.sentence


def test_an_address_that_is_none_is_told(tmp_path: Path) -> None:
    found = only(tried(telemetry_checks, doctor_context(tmp_path, "", environment={ENDPOINT: "collector:4318"})))
    assert (found.part, found.standing) == ("traces", FAIL)
    assert "is not an address" in found.sentence


def test_a_dsn_is_looked_at_and_nothing_is_sent(tmp_path: Path, collector: Collector) -> None:
    found = only(tried(telemetry_checks, doctor_context(tmp_path, "", environment={"SENTRY_DSN": collector.dsn})))
    assert (found.part, found.standing) == ("sentry", OK)
    assert collector.requests == []


def test_a_dsn_that_is_none_and_a_missing_extra_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = doctor_context(tmp_path, "", environment={"SENTRY_DSN": "nonsense"})
    assert "SENTRY_DSN is not a DSN" in only(tried(telemetry_checks, of)).sentence
    monkeypatch.delitem(sys.modules, "hummingbird.telemetry.sentry")
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    found = only(tried(telemetry_checks, of))
    assert found.standing is FAIL
    assert "pip install 'hummingbird-agent[sentry]'" in found.sentence

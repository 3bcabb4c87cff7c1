"""A collector for each test, and OpenTelemetry's variables as nobody has set them."""

import os
from collections.abc import Iterator

import pytest

from tests.telemetry.collecting import Collector, collecting


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture(autouse=True)
def _no_settings_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("OTEL_", "SENTRY_"))]:
        monkeypatch.delenv(name)

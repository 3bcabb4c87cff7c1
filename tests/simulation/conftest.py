"""Keep the log of simulated services quiet: they meet thousands of faults."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="hummingbird")

"""Ordinary Markdown looks the same before and after (N5)."""

import pytest

from hummingbird.adapters.forge.firewall import safe
from hummingbird.domain.secrets import Secrets
from tests.adapters.forge.hostile import MARKER
from tests.adapters.forge.judging import Seen, commands, html
from tests.adapters.forge.ordinary import SAMPLES


@pytest.mark.parametrize("sample", SAMPLES)
def test_n5_ordinary_markdown_looks_as_before(sample: str) -> None:
    body = safe(sample, Secrets(), MARKER)
    assert html(body) == html(sample)
    assert "\u2060" not in body
    assert commands(body) == []
    assert Seen(body).faults == []


def test_there_are_enough_samples_to_mean_something() -> None:
    assert len(set(SAMPLES)) >= 60

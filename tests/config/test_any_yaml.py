"""Whatever a file holds, there is a configuration or ConfigurationBroken, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.config.configuration import Configuration
from hummingbird.config.defaults import CONFIG_KEYS
from hummingbird.config.loader import load_config
from hummingbird.core.errors import ConfigurationError
from tests.config.files import EVERYTHING, written

KEYS = sorted(
    {part for key in CONFIG_KEYS for part in key.removesuffix("[]").split(".")} | {"settings", "workflows", "chat"}
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.sampled_from(KEYS)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(), below, max_size=5),
)
SECTIONS = st.dictionaries(st.sampled_from(["settings", "workflows", "chat"]), VALUES)
PIECES = [
    "settings",
    "workflows",
    ":",
    " ",
    "\n",
    "  ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "<<",
    "!",
    '"',
    "'",
    "\t",
    "|",
]
PIECES += ["#", ",", "? ", "---\n", "...\n", "%", "\\U", "\\x", "~", "0", "1e9", "é", "\x85", "\ufeff", ">", "@", "`"]
SCRIBBLE = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
often = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def tried(folder: Path, content: bytes) -> None:
    path = written(folder, content)
    result: Configuration | ConfigurationError
    try:
        result = load_config(path, {})
    except ConfigurationError as error:
        result = error
    if isinstance(result, ConfigurationError):
        assert result.faults
        assert all(fault.startswith("line ") for fault in result.faults)
    else:
        assert result.settings.max_iterations >= 1


@often
@given(VALUES | SECTIONS)
def test_any_values(tmp_path: Path, value: Any) -> None:
    tried(tmp_path, yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "replace"))


@pytest.mark.thorough
@often
@given(SCRIBBLE)
def test_any_scribble(tmp_path: Path, text: str) -> None:
    tried(tmp_path, text.encode())


@often
@given(st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, content: bytes) -> None:
    tried(tmp_path, content)


@pytest.mark.thorough
@often
@given(st.integers(min_value=0), st.sampled_from(["", "\t", ":", "[", "*", "&x ", "\x00", "}", "- ", '"', "é"]))
def test_any_slip_of_the_pen(tmp_path: Path, at: int, slip: str) -> None:
    """A good file with one change."""
    text = EVERYTHING.read_text()
    at %= len(text)
    tried(tmp_path, (text[:at] + slip + text[at + 1 :]).encode())


@pytest.mark.parametrize("value", ["12:30", "0x1f", "010", "2026-01-01", "1_000x", "+", "-", "1e999"])
def test_what_only_looks_like_a_number_is_text(tmp_path: Path, value: str) -> None:
    """No surprises with times, dates and numbers of another base."""
    path = written(tmp_path, f"settings:\n  model: {value if value not in '+-' else repr(value)}\n")
    assert load_config(path, None).settings.model == value


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), (".5", 0.5), ("5e-1", 0.5), ("+0.5", 0.5)])
def test_numbers_are_read_as_people_write_them(tmp_path: Path, text: str, value: float) -> None:
    path = written(tmp_path, f"chat:\n  compression: {{threshold: {text}}}\n")
    assert load_config(path, None).chat.compression.threshold == value


@pytest.mark.parametrize(("text", "value"), [("no", False), ("Off", False), ("TRUE", True), ("yes", True)])
def test_yes_and_no_are_read_as_they_were_before(tmp_path: Path, text: str, value: bool) -> None:
    """Files of others were written for such a reader."""
    assert (
        load_config(written(tmp_path, f"settings:\n  internal_notes: {text}\n"), None).settings.internal_notes is value
    )

"""The JSON Schema for editors accepts what the loader accepts, and knows every key."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from hummingbird.config.document import read_document
from hummingbird.config.validation import json_schema, keys_at
from tests.config.files import CONTINUITY, EVERYTHING, OLDER

VALIDATOR = jsonschema_rs.validator_for(json_schema())


def content(path: Path) -> Any:
    return read_document(path.read_bytes()).value


@pytest.mark.parametrize("path", [CONTINUITY, OLDER, EVERYTHING], ids=lambda path: path.stem)
def test_the_examples_are_valid(path: Path) -> None:
    VALIDATOR.validate(content(path))


def sections(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from sections(below)


def test_unknown_keys_are_refused_in_every_section() -> None:
    """Except where people choose the names."""
    free = (
        {"team"},
        {"note"},
        {"claude"},
        {"Authorization"},
        {"look"},
        {"group/project"},
        {"local-model"},
        {"summary"},
    )
    refused = 0
    for number, section in enumerate(sections(content(EVERYTHING))):
        changed = content(EVERYTHING)
        if set(section) in free or set(section) == {"search", "remote"}:
            continue
        list(sections(changed))[number]["nobody_knows_this"] = 1
        assert not VALIDATOR.is_valid(changed), section
        refused += 1
    assert refused > 20


@pytest.mark.parametrize(
    "broken",
    [
        {"settings": {"max_iterations": "3"}},
        {"settings": {"max_iterations": 0}},
        {"settings": {"sandbox": {"backend": "docker"}}},
        {"workflows": {"look": {}}},
        {"workflows": {"look": {"prompt": "a", "data_sources": {"gitlab": {"token_env": "ORCHESTRATOR_X"}}}}},
        None,
    ],
)
def test_what_the_loader_refuses_the_schema_refuses(broken: object) -> None:
    assert not VALIDATOR.is_valid(broken)


def test_every_key_is_explained_and_defaults_are_told() -> None:
    made = json_schema()
    settings = made["$defs"]["Settings"]["properties"]
    assert settings["max_iterations"]["default"] == 30
    for definition in made["$defs"].values():
        for name, key in definition["properties"].items():
            assert "description" in key or "$ref" in key or "anyOf" in key, name


@pytest.mark.thorough
def test_the_schema_is_made_anew_for_everybody_who_asks() -> None:
    """So that nobody changes another one's."""
    json_schema().clear()
    assert json_schema()["properties"].keys() == {"settings", "workflows", "chat"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ((), "workflows"),
        (("settings", "sandbox", "resources", "limits"), "ephemeral-storage"),
        (("workflows", "any", "data_sources", "konflux"), "cluster_url"),
        (("workflows", "any", "projects", "a/b", "tokens"), "gitlab"),
        (("chat", "permissions", 0), "pattern"),
    ],
)
def test_the_names_at_a_place_are_known(path: tuple[str | int, ...], name: str) -> None:
    """The nearest one is told."""
    assert name in keys_at(path)


def test_there_are_no_names_where_there_is_no_section() -> None:
    assert keys_at(("settings", "model", "x")) == ()

"""Sources by name, as a workflow declares them (D1): those that are not declared do not exist, and are not even loaded.

Knows what each of them is made from, not what any of them does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from hummingbird.adapters.sources.gitlab.settings import GitLabSettings
from hummingbird.adapters.sources.konflux.settings import KonfluxSettings
from hummingbird.adapters.sources.testing_farm.settings import TestingFarmSettings
from hummingbird.ports.source import Source

_ROOM = "hummingbird.adapters.sources"


@dataclass(frozen=True, slots=True)
class Declared:
    """What a workflow declares; None leaves a source out."""

    gitlab: GitLabSettings | None = None
    konflux: KonfluxSettings | None = None
    testing_farm: TestingFarmSettings | None = None


def sources(declared: Declared, environment: Mapping[str, str]) -> list[Source]:
    """Made for one run. Raises OperatorError for settings that make no sense; nothing is asked yet."""
    found: list[Source] = []
    if declared.gitlab is not None:
        found.append(_made("gitlab", "GitLabSource", declared.gitlab))
    if declared.konflux is not None:
        found.append(_made("konflux", "KonfluxSource", declared.konflux, environment))
    if declared.testing_farm is not None:
        found.append(_made("testing_farm", "TestingFarmSource", declared.testing_farm))
    return found


def _made(room: str, name: str, *given: object) -> Source:
    """Loaded when it is wanted: python-gitlab alone takes a quarter of a second."""
    return cast(Source, getattr(import_module(f"{_ROOM}.{room}.source"), name)(*given))

"""Sources by name, as a workflow declares them: those that are not declared do not exist, and are not even loaded.

Knows what each of them is made from, not what any of them does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hummingbird.core.protocols.tools import DataSource
from hummingbird.gitlab.read.settings import GitLabSettings
from hummingbird.konflux.settings import KonfluxSettings
from hummingbird.testing_farm.settings import TestingFarmSettings


@dataclass(frozen=True, slots=True)
class SourceDeclarations:
    """What a workflow declares; None leaves a source out."""

    gitlab: GitLabSettings | None = None
    konflux: KonfluxSettings | None = None
    testing_farm: TestingFarmSettings | None = None


def create_sources(declared: SourceDeclarations, environment: Mapping[str, str]) -> list[DataSource]:
    """Made for one run. Raises OperatorError for settings that make no sense; nothing is asked yet."""
    found: list[DataSource] = []
    if declared.gitlab is not None:
        from hummingbird.gitlab.read.source import GitLabSource  # noqa: PLC0415 - loaded when declared

        found.append(GitLabSource(declared.gitlab))
    if declared.konflux is not None:
        from hummingbird.konflux.source import KonfluxSource  # noqa: PLC0415 - loaded when declared

        found.append(KonfluxSource(declared.konflux, environment))
    if declared.testing_farm is not None:
        from hummingbird.testing_farm.source import TestingFarmSource  # noqa: PLC0415 - loaded when declared

        found.append(TestingFarmSource(declared.testing_farm))
    return found

"""Creates the data sources that a workflow declares. Sources that are not declared are not even imported."""

from collections.abc import Mapping
from dataclasses import dataclass

from hummingbird.core.extras import require_extra
from hummingbird.core.protocols.tools import DataSource
from hummingbird.gitlab.read.settings import GitLabSettings
from hummingbird.konflux.settings import KonfluxSettings
from hummingbird.testing_farm.settings import TestingFarmSettings


@dataclass(frozen=True, slots=True)
class SourceDeclarations:
    """The settings of the sources that a workflow declares; None leaves a source out."""

    gitlab: GitLabSettings | None = None
    konflux: KonfluxSettings | None = None
    testing_farm: TestingFarmSettings | None = None


def create_sources(declared: SourceDeclarations, environment: Mapping[str, str]) -> list[DataSource]:
    """Create the sources for one run; no request is sent yet.

    Raises OperatorError for settings that make no sense.
    """
    found: list[DataSource] = []
    if declared.gitlab is not None:
        from hummingbird.gitlab.read.source import GitLabSource  # noqa: PLC0415 - loaded when declared

        found.append(GitLabSource(declared.gitlab))
    if declared.konflux is not None:
        require_extra("lightkube", "kubernetes", "The source konflux")
        from hummingbird.konflux.source import KonfluxSource  # noqa: PLC0415 - loaded when declared

        found.append(KonfluxSource(declared.konflux, environment))
    if declared.testing_farm is not None:
        from hummingbird.testing_farm.source import TestingFarmSource  # noqa: PLC0415 - loaded when declared

        found.append(TestingFarmSource(declared.testing_farm))
    return found

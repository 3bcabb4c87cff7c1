"""Creates the data sources that a workflow declares, from its settings. Others are not even imported."""

from collections.abc import Mapping
from dataclasses import dataclass

from hummingbird.config.configuration import Configuration, ResolvedWorkflow, read_tool_token
from hummingbird.config.settings import KonfluxSourceSettings, Settings, TestingFarmSourceSettings
from hummingbird.core.errors import MissingSetting, require_extra
from hummingbird.core.protocols.tools import DataSource, ToolToken
from hummingbird.gitlab.read import GitLabSettings
from hummingbird.konflux import KonfluxSettings
from hummingbird.mcp import McpServerSettings
from hummingbird.testing_farm import TestingFarmSettings


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
        from hummingbird.gitlab.read.source import GitLabSource

        found.append(GitLabSource(declared.gitlab))
    if declared.konflux is not None:
        require_extra("lightkube", "kubernetes", "The source konflux")
        from hummingbird.konflux.source import KonfluxSource

        found.append(KonfluxSource(declared.konflux, environment))
    if declared.testing_farm is not None:
        from hummingbird.testing_farm.source import TestingFarmSource

        found.append(TestingFarmSource(declared.testing_farm))
    return found


def build_source_settings(
    settings: Settings, applied: ResolvedWorkflow, environment: Mapping[str, str], bot_ids: frozenset[int] = frozenset()
) -> SourceDeclarations:
    """Return the settings of all sources; `bot_ids` are the authors of our own notes.

    Raises MissingSetting for a variable that is not set.
    """
    return SourceDeclarations(
        _gitlab_settings(settings, applied, environment, bot_ids),
        _workflow_konflux_settings(settings, applied, environment),
        _workflow_testing_farm_settings(settings, applied, environment),
    )


def _gitlab_settings(
    settings: Settings, applied: ResolvedWorkflow, environment: Mapping[str, str], bot_ids: frozenset[int]
) -> GitLabSettings | None:
    wanted = applied.declared.data_sources.gitlab
    if wanted is None:
        return None
    return GitLabSettings(
        url=settings.gitlab_url,
        token=_read_token(applied, "gitlab", environment),
        project=applied.project,
        projects=wanted.projects,
        bot_ids=bot_ids | frozenset(settings.former_bot_ids),
        marker_prefix=settings.session_marker_prefix,
        ca_bundle=settings.ca_bundle,
        storage=wanted.storage,
    )


def _workflow_konflux_settings(
    settings: Settings, applied: ResolvedWorkflow, environment: Mapping[str, str]
) -> KonfluxSettings | None:
    wanted = applied.declared.data_sources.konflux
    return None if wanted is None else konflux_settings(settings, wanted, environment)


def konflux_settings(
    settings: Settings, wanted: KonfluxSourceSettings, environment: Mapping[str, str]
) -> KonfluxSettings:
    """Return the settings for Konflux.

    Raises MissingSetting.
    """
    kubeconfig = environment.get(wanted.kubeconfig_env, "").strip() if wanted.kubeconfig_env else ""
    if wanted.kubeconfig_env and not kubeconfig:
        raise MissingSetting(f"Set {wanted.kubeconfig_env} to the path of the kubeconfig that Konflux is read with.")
    return KonfluxSettings(
        cluster_url=wanted.cluster_url,
        kubeconfig=kubeconfig,
        context=wanted.context,
        kubearchive_url=wanted.kubearchive_url,
        ui_url=wanted.ui_url,
        ca_bundle=settings.ca_bundle,
    )


def _workflow_testing_farm_settings(
    settings: Settings, applied: ResolvedWorkflow, environment: Mapping[str, str]
) -> TestingFarmSettings | None:
    wanted = applied.declared.data_sources.testing_farm
    if wanted is None:
        return None
    return testing_farm_settings(settings, wanted, _read_token(applied, "testing_farm", environment))


def testing_farm_settings(
    settings: Settings, wanted: TestingFarmSourceSettings, token: ToolToken | None
) -> TestingFarmSettings:
    usual = TestingFarmSettings()
    return TestingFarmSettings(
        api_url=wanted.api_url or usual.api_url,
        artifacts=wanted.artifacts or usual.artifacts,
        token=token,
        private_addresses=wanted.private_addresses,
        ca_bundle=settings.ca_bundle,
    )


def _read_token(applied: ResolvedWorkflow, source: str, environment: Mapping[str, str]) -> ToolToken | None:
    return read_tool_token(applied.entry, applied.declared, source, environment)


def mcp_server_settings(configuration: Configuration, given: Mapping[str, str], name: str) -> McpServerSettings:
    """Return the settings of an MCP server.

    Raises MissingSetting for a variable that is not set.
    """
    found = configuration.chat.mcp_servers[name]
    wanted = [*found.env, *found.headers_env.values()]
    if missing := [variable for variable in wanted if not given.get(variable, "").strip()]:
        raise MissingSetting(f"Set {missing[0]}: chat.mcp_servers.{name} is given it.")
    return McpServerSettings(
        name=name,
        command=found.command,
        args=found.args,
        env={variable: given[variable] for variable in found.env},
        url=found.url,
        headers={header: given[variable].strip() for header, variable in found.headers_env.items()},
        tools=found.tools,
        read_tools=found.read_tools,
    )

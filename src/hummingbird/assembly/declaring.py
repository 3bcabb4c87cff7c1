"""What a workflow declares to the sources it reads from (D1, G3): addresses, projects, and the tokens that read."""

from collections.abc import Mapping

from hummingbird.adapters.sources.gitlab.settings import GitLabSettings
from hummingbird.adapters.sources.konflux.settings import KonfluxSettings
from hummingbird.adapters.sources.registry import Declared
from hummingbird.adapters.sources.testing_farm.settings import TestingFarmSettings
from hummingbird.config.configuration import Applied
from hummingbird.config.settings import Settings
from hummingbird.config.tokens import tool_token
from hummingbird.config.workflows import KonfluxDeclared, TestingFarmDeclared
from hummingbird.domain.errors import MissingSetting
from hummingbird.ports.source import ToolToken


def declared(
    settings: Settings, applied: Applied, environment: Mapping[str, str], bot_ids: frozenset[int] = frozenset()
) -> Declared:
    """`bot_ids`: whom our notes are by. Raises MissingSetting for a variable that is not set."""
    return Declared(
        _gitlab(settings, applied, environment, bot_ids),
        _konflux(settings, applied, environment),
        _testing_farm(settings, applied, environment),
    )


def _gitlab(
    settings: Settings, applied: Applied, environment: Mapping[str, str], bot_ids: frozenset[int]
) -> GitLabSettings | None:
    wanted = applied.declared.data_sources.gitlab
    if wanted is None:
        return None
    return GitLabSettings(
        url=settings.gitlab_url,
        token=_token(applied, "gitlab", environment),
        project=applied.project,
        projects=wanted.projects,
        bot_ids=bot_ids | frozenset(settings.former_bot_ids),
        marker_prefix=settings.session_marker_prefix,
        ca_bundle=settings.ca_bundle,
    )


def _konflux(settings: Settings, applied: Applied, environment: Mapping[str, str]) -> KonfluxSettings | None:
    wanted = applied.declared.data_sources.konflux
    return None if wanted is None else konflux_of(settings, wanted, environment)


def konflux_of(settings: Settings, wanted: KonfluxDeclared, environment: Mapping[str, str]) -> KonfluxSettings:
    """Raises MissingSetting."""
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


def _testing_farm(settings: Settings, applied: Applied, environment: Mapping[str, str]) -> TestingFarmSettings | None:
    wanted = applied.declared.data_sources.testing_farm
    if wanted is None:
        return None
    return testing_farm_of(settings, wanted, _token(applied, "testing_farm", environment))


def testing_farm_of(settings: Settings, wanted: TestingFarmDeclared, token: ToolToken | None) -> TestingFarmSettings:
    usual = TestingFarmSettings()
    return TestingFarmSettings(
        api_url=wanted.api_url or usual.api_url,
        artifacts=wanted.artifacts or usual.artifacts,
        token=token,
        private_addresses=wanted.private_addresses,
        ca_bundle=settings.ca_bundle,
    )


def _token(applied: Applied, source: str, environment: Mapping[str, str]) -> ToolToken | None:
    return tool_token(applied.entry, applied.declared, source, environment)

"""Creates the clients that write to GitLab. No module that runs a model imports this one.

When the settings change, runs that have started keep the client with the old settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hummingbird.app.environment_secrets import environment_secrets, tool_secret_values
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE, Configuration, orchestrator_variables
from hummingbird.core.errors import MissingSetting
from hummingbird.gitlab.write.project_writer import GitLabProjectWriters
from hummingbird.gitlab.write.protocol import GitLabWriters, OrchestratorToken


def write_token(project: str, environment: Mapping[str, str]) -> OrchestratorToken:
    """Return the project's own write token, else the common one.

    Raises MissingSetting.
    """
    for name in orchestrator_variables(project):
        if value := environment.get(name, "").strip():
            return OrchestratorToken(value)
    own, _ = orchestrator_variables(project)
    raise MissingSetting(f"There is no token that writes to {project}: set {ORCHESTRATOR_VARIABLE}, or {own}.")


@dataclass(frozen=True, slots=True)
class _ForgeKey:
    """The settings that a client is made of, to see whether a new one is needed."""

    url: str
    marker_prefix: str
    former_bot_ids: tuple[int, ...]
    ca_bundle: str
    secret: tuple[str, ...]


class ForgeCache:
    """Returns the clients for a configuration, the same ones until a setting that they depend on changes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._cache: dict[_ForgeKey, GitLabProjectWriters] = {}

    def __call__(self, configuration: Configuration) -> GitLabWriters:
        """Return the clients for this configuration.

        Raises MissingSetting for certificates or proxies that cannot be used.
        """
        settings = configuration.settings
        site = _ForgeKey(
            settings.gitlab_url,
            settings.session_marker_prefix,
            settings.former_bot_ids,
            settings.ca_bundle,
            tuple(tool_secret_values(configuration, self._environment)),
        )
        if site not in self._cache:
            self._cache[site] = self._create_forges(site)
        return self._cache[site]

    async def close(self) -> None:
        """Close all clients, also those of earlier configurations."""
        made, self._cache = self._cache, {}
        for forges in made.values():
            await forges.close()

    def _create_forges(self, site: _ForgeKey) -> GitLabProjectWriters:
        return GitLabProjectWriters(
            site.url,
            lambda project: write_token(project, self._environment),
            secrets=environment_secrets(self._environment, site.secret),
            marker_prefix=site.marker_prefix,
            former_bot_ids=site.former_bot_ids,
            ca_bundle=site.ca_bundle,
        )

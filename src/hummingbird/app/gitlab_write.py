"""The write side, with the token that writes. Nothing that runs a model knows of this module.

Settings of the forge may change while it is in use; whoever began with the old ones goes on with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hummingbird.app.environment_secrets import environment_secrets, tool_secret_values
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE, Configuration, orchestrator_variables
from hummingbird.core.errors import MissingSetting
from hummingbird.gitlab.write.project_writer import GitLabProjectWriters
from hummingbird.gitlab.write.protocol import GitLabWriters, OrchestratorToken


def write_token(project: str, environment: Mapping[str, str]) -> OrchestratorToken:
    """The project's own, else the one for all. Raises MissingSetting."""
    for name in orchestrator_variables(project):
        if value := environment.get(name, "").strip():
            return OrchestratorToken(value)
    own, _ = orchestrator_variables(project)
    raise MissingSetting(f"There is no token that writes to {project}: set {ORCHESTRATOR_VARIABLE}, or {own}.")


@dataclass(frozen=True, slots=True)
class _ForgeKey:
    """What a forge is made of, to see whether another one is needed."""

    url: str
    marker_prefix: str
    former_bot_ids: tuple[int, ...]
    ca_bundle: str
    secret: tuple[str, ...]


class ForgeCache:
    """Called with a configuration, the forges that it means; the same ones for as long as nothing of that changes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._cache: dict[_ForgeKey, GitLabProjectWriters] = {}

    def __call__(self, configuration: Configuration) -> GitLabWriters:
        """Raises MissingSetting for certificates or proxies that cannot be used."""
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
        """All of them: whoever began with an earlier configuration has ended by then."""
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

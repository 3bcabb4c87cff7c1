"""The write side, with the token that writes (G3). Nothing that runs a model knows of this module.

Settings of the forge may change while it is in use; whoever began with the old ones goes on with them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from hummingbird.adapters.forge.forges import GitLabForges
from hummingbird.assembly.secrets import secrets_of, tool_secrets
from hummingbird.config.configuration import Configuration
from hummingbird.config.tokens import ORCHESTRATOR_VARIABLE, orchestrator_variables
from hummingbird.domain.errors import MissingSetting
from hummingbird.ports.forge import Forges, OrchestratorToken


def token_of(project: str, environment: Mapping[str, str]) -> OrchestratorToken:
    """The project's own, else the one for all. Raises MissingSetting."""
    for name in orchestrator_variables(project):
        if value := environment.get(name, "").strip():
            return OrchestratorToken(value)
    own, _ = orchestrator_variables(project)
    raise MissingSetting(f"There is no token that writes to {project}: set {ORCHESTRATOR_VARIABLE}, or {own}.")


@dataclass(frozen=True, slots=True)
class _Site:
    """What a forge is made of, to see whether another one is needed."""

    url: str
    marker_prefix: str
    former_bot_ids: tuple[int, ...]
    ca_bundle: str
    secret: tuple[str, ...]


class ForgesOf:
    """Called with a configuration, the forges that it means; the same ones for as long as nothing of that changes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._made: dict[_Site, GitLabForges] = {}

    def __call__(self, configuration: Configuration) -> Forges:
        """Raises MissingSetting for certificates or proxies that cannot be used."""
        settings = configuration.settings
        site = _Site(
            settings.gitlab_url,
            settings.session_marker_prefix,
            settings.former_bot_ids,
            settings.ca_bundle,
            tuple(tool_secrets(configuration, self._environment)),
        )
        if site not in self._made:
            self._made[site] = self._forges(site)
        return self._made[site]

    async def close(self) -> None:
        """All of them: whoever began with an earlier configuration has ended by then."""
        made, self._made = self._made, {}
        for forges in made.values():
            await forges.close()

    def _forges(self, site: _Site) -> GitLabForges:
        return GitLabForges(
            site.url,
            lambda project: token_of(project, self._environment),
            secrets=secrets_of(self._environment, site.secret),
            marker_prefix=site.marker_prefix,
            former_bot_ids=site.former_bot_ids,
            ca_bundle=site.ca_bundle,
        )

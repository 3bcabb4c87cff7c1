"""The forges of all projects at one GitLab: one pool of connections, a token for each project (G3).

    forges = GitLabForges(url, token_of, secrets=secrets, marker_prefix="hummingbird-session")
    await forges.of("acme/widgets").merge_request(7)

Cheap to make anew when settings change. Reads no configuration.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

from hummingbird.adapters.forge.client import Door
from hummingbird.adapters.forge.connections import made_client
from hummingbird.adapters.forge.markers import Markers
from hummingbird.adapters.forge.writing import GitLabForge
from hummingbird.domain.errors import MissingSetting
from hummingbird.domain.limits import FORGE_ANSWER_S
from hummingbird.domain.secrets import Secrets
from hummingbird.ports.forge import OrchestratorToken


class GitLabForges:
    """`token_of` is asked each time, so that a token may change; it raises MissingSetting if a project has none.

    `answer_s` is how long an answer may take, and `pause` what waits between two tries.
    """

    def __init__(
        self,
        url: str,
        token_of: Callable[[str], OrchestratorToken],
        *,
        secrets: Secrets,
        marker_prefix: str,
        former_bot_ids: Iterable[int] = (),
        ca_bundle: str = "",
        now: Callable[[], float] = time.time,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        answer_s: float = FORGE_ANSWER_S,
    ) -> None:
        """Raises MissingSetting for certificates or proxies that cannot be used."""
        http = made_client(ca_bundle, answer_s)
        self._door = Door(http, f"{url.rstrip('/')}/api/v4", answer_s, pause, now)
        self._token_of = token_of
        self._secrets = secrets
        self._markers = Markers(marker_prefix)
        self._former = frozenset(each for each in former_bot_ids if each > 0)  # 0 is nobody's
        self._made: dict[str, tuple[str, GitLabForge]] = {}

    def of(self, project: str) -> GitLabForge:
        """Raises MissingSetting."""
        token = self._token_of(project)
        value = _usable(token, project)
        known = self._made.get(project)
        if known is None or known[0] != value:
            forge = GitLabForge(self._door, token, project, self._markers, self._former, secrets=self._secrets)
            known = self._made[project] = (value, forge)
        return known[1]

    async def close(self) -> None:
        await self._door.http.aclose()


def _usable(token: OrchestratorToken, project: str) -> str:
    """The client's own complaint about a value that no header can hold would quote it."""
    value = token.reveal()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise MissingSetting(
            f"The token that writes to {project} is empty, or holds a blank, a line break or a letter that is not "
            "ASCII: copy it again into the orchestrator token's variable."
        )
    return value

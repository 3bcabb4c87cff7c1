"""What the GitLab source is given: where, with which token, and which projects it may look at."""

from dataclasses import dataclass

from hummingbird.ports.source import ToolToken


@dataclass(frozen=True, slots=True)
class GitLabSettings:
    """`project` is the path of the event's project; `projects` are the others that the workflow lists (D4). `bot_ids`:
    the agent's own users, of whom there may be several over time. `ca_bundle`: a file; without one, as the environment
    says."""

    url: str
    token: ToolToken | None
    project: str
    projects: tuple[str, ...] = ()
    bot_ids: frozenset[int] = frozenset()
    marker_prefix: str = "hummingbird-session"
    ca_bundle: str = ""

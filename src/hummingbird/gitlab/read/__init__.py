"""Give the agent read-only tools for GitLab's merge requests, pipelines, logs and files.

It sends only GET requests, only to the configured host, and with a token that can only read.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hummingbird.core.errors import CallDenied
from hummingbird.core.protocols.tools import ToolToken
from hummingbird.core.text import shorten_line


@dataclass(frozen=True, slots=True)
class GitLabSettings:
    """How the GitLab source connects and what it may read.

    `project` is the path of the event's project; `projects` are the other ones that the workflow lists. `bot_ids` are
    the user ids under which the agent posts or has posted. `ca_bundle` is a PEM file; when it is empty, the
    environment decides. `storage` are addresses of object stores that GitLab may lead to; they may be in a private
    network or in plain text, others must be public and encrypted.
    """

    url: str
    token: ToolToken | None
    project: str
    projects: tuple[str, ...] = ()
    bot_ids: frozenset[int] = frozenset()
    marker_prefix: str = "hummingbird-session"
    ca_bundle: str = ""
    storage: tuple[str, ...] = ()


_FORKS = (
    "A merge request from a fork is read through the project that it targets: diff, commits, discussions and statuses "
    "are all there. If the fork itself is needed, whoever runs this must list it under the workflow's projects."
)


class ProjectScope:
    """The projects that the tools may read: the event's own and those that the workflow lists.

    Every tool checks the scope before it sends a request. Paths compare without case, as in GitLab.
    """

    def __init__(self, own: str, others: Iterable[str] = ()) -> None:
        self.own = own.strip("/")
        self._allowed = {_path_key(path): path.strip("/") for path in (own, *others) if path.strip("/")}

    def resolve_project(self, project: str | None = None) -> str:
        """Return the path as configured; the event's own project when none is named.

        Raises CallDenied for a project outside the scope.
        """
        if project is None:
            return self.own
        found = self._allowed.get(_path_key(project))
        if found is None:
            known = ", ".join(sorted(self._allowed.values()))
            raise CallDenied(
                f"Project {shorten_line(_printable_text(project), 100)!r} is outside the scope of "
                "this run: leave `project` "
                f"out or name one of {known}. {_FORKS}"
            )
        return found


def _path_key(path: str) -> str:
    return path.strip("/").casefold()


def _printable_text(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)

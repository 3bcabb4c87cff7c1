"""Which projects may be looked at (D4): the event's own, and those that the workflow lists. Asked first of all."""

from collections.abc import Iterable

from hummingbird.domain.errors import CallDenied
from hummingbird.domain.text import shortened

_FORKS = (
    "A merge request from a fork is read through the project that it targets: diff, commits, discussions and statuses "
    "are all there. If the fork itself is needed, whoever runs this must list it under the workflow's projects."
)


class Scope:
    """GitLab does not tell paths apart by case, so neither does this."""

    def __init__(self, own: str, others: Iterable[str] = ()) -> None:
        self.own = own.strip("/")
        self._allowed = {_key(path): path.strip("/") for path in (own, *others) if path.strip("/")}

    def allowed(self, project: str | None = None) -> str:
        """The project's path as it was configured; the event's own where none is named. Raises CallDenied."""
        if project is None:
            return self.own
        found = self._allowed.get(_key(project))
        if found is None:
            known = ", ".join(sorted(self._allowed.values()))
            raise CallDenied(
                f"Project {shortened(_printable(project), 100)!r} is outside the scope of this run: leave `project` "
                f"out or name one of {known}. {_FORKS}"
            )
        return found


def _key(path: str) -> str:
    return path.strip("/").casefold()


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)

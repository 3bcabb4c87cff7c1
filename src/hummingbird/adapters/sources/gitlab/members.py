"""Which access an author has, asked once for each in a call (D3). Whoever cannot be checked has none: that is said."""

from datetime import UTC, datetime

from hummingbird.adapters.sources.gitlab.client import Visit
from hummingbird.adapters.sources.gitlab.faults import told
from hummingbird.domain.access import access_of
from hummingbird.domain.errors import CredentialRefused, NothingThere, SourceError

NO_ACCESS = 0


class Members:
    """Of one project; inherited members and those of invited groups count. `unchecked`: authors of whom GitLab would
    not say."""

    def __init__(self, visit: Visit, project: str) -> None:
        self._visit = visit
        self._project = project
        self._known: dict[int, int] = {}
        self.unchecked: set[int] = set()

    def access(self, user: int) -> int:
        if user not in self._known:
            self._known[user] = self._asked(user)
        return self._known[user]

    def _asked(self, user: int) -> int:
        try:
            with told("A member"):
                member = self._visit.one(self._project, f"members/all/{user:d}")
        except NothingThere:
            return NO_ACCESS
        except (SourceError, CredentialRefused):
            self._visit.effort.check()
            self.unchecked.add(user)
            return NO_ACCESS
        return access_of(member, datetime.now(UTC).date()) if member.get("id") == user else NO_ACCESS

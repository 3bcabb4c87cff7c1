"""What a session was begun for, as its first order says: which project, which merge request. Reads entries alone."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hummingbird.domain.journal import Entry, Source, UserSaid


@dataclass(frozen=True, slots=True)
class About:
    """Empty and 0 for what the order does not say."""

    workflow: str = ""
    project: str = ""
    mr_iid: int = 0
    sha: str = ""

    def is_of(self, project: str, mr_iid: int) -> bool:
        """Whether it was begun for that very merge request; what nobody knows is no yes."""
        return bool(self.project and self.mr_iid) and (self.project.casefold(), self.mr_iid) == (
            project.casefold(),
            mr_iid,
        )


def about(entries: Sequence[Entry]) -> About:
    orders = (entry.text for entry in entries if isinstance(entry, UserSaid) and entry.source is Source.ORDER)
    try:
        said = json.loads(next(orders, ""))
    except (ValueError, RecursionError):
        return About()
    return About(**_known(said)) if isinstance(said, dict) else About()


def _known(said: dict[str, Any]) -> dict[str, Any]:
    kinds = {"workflow": str, "project": str, "mr_iid": int, "sha": str}
    return {name: said[name] for name, kind in kinds.items() if type(said.get(name)) is kind}

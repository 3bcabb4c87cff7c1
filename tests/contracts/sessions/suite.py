"""All cases, in lists: what every store plays, what those do that other processes can reach, and what buckets do."""

import inspect
from collections.abc import Sequence
from types import ModuleType

from tests.contracts.sessions.cases import (
    bounds,
    damage,
    keeping,
    leases,
    listing,
    older,
    processes,
    removing,
    sealing,
    taking,
    unsure,
)
from tests.contracts.sessions.stage import Case


def _cases(topics: Sequence[ModuleType]) -> list[Case]:
    """Those that the topics themselves define, in the order in which they do."""
    own = [(topic, member) for topic in topics for member in vars(topic).values()]
    return [member for topic, member in own if getattr(member, "__module__", "") == topic.__name__ and _is_case(member)]


def _is_case(member: Case) -> bool:
    if not inspect.iscoroutinefunction(member) or member.__name__.startswith("_"):
        return False
    return list(inspect.signature(member).parameters) == ["stage"]


EVERYWHERE = _cases((keeping, taking, listing, removing, older, damage, bounds))
ACROSS_PROCESSES = _cases((processes,))
IN_BUCKETS = _cases((leases, unsure, sealing))

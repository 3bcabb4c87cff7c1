"""All cases, in one list: every backend plays this list."""

import inspect
from types import ModuleType

from tests.contracts.sandboxes.cases import (
    archives,
    beside,
    bounds,
    breaking,
    cancelling,
    exits,
    leftovers,
    lifecycle,
    odd_names,
    output,
    reading,
    stdin,
    streams,
    surroundings,
    timeouts,
    writing,
)
from tests.contracts.sandboxes.stage import Case

_TOPICS = (
    surroundings,
    exits,
    output,
    stdin,
    writing,
    odd_names,
    reading,
    streams,
    timeouts,
    leftovers,
    cancelling,
    beside,
    bounds,
    lifecycle,
    breaking,
    archives,
)


def _cases(topic: ModuleType) -> list[Case]:
    """Those that the topic itself defines, in the order in which it does."""
    own = [member for member in vars(topic).values() if getattr(member, "__module__", "") == topic.__name__]
    return [member for member in own if inspect.iscoroutinefunction(member) and _is_case(member)]


def _is_case(member: Case) -> bool:
    return not member.__name__.startswith("_") and list(inspect.signature(member).parameters) == ["stage"]


CASES = [case for topic in _TOPICS for case in _cases(topic)]

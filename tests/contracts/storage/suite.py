"""All cases, in one list: every backend plays this list."""

import inspect
from types import ModuleType

from tests.contracts.storage.cases import flows, listing, looking, racing, swapping, trouble
from tests.contracts.storage.stage import Case

_TOPICS = (looking, swapping, listing, flows, trouble, racing)


def _cases(topic: ModuleType) -> list[Case]:
    """Those that the topic itself defines, in the order in which it does."""
    own = [member for member in vars(topic).values() if getattr(member, "__module__", "") == topic.__name__]
    return [member for member in own if inspect.iscoroutinefunction(member) and _is_case(member)]


def _is_case(member: Case) -> bool:
    return not member.__name__.startswith("_") and list(inspect.signature(member).parameters) == ["stage"]


CASES = [case for topic in _TOPICS for case in _cases(topic)]

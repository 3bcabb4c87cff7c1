"""Every rule there is, and which words of a line call for which of them."""

from collections.abc import Mapping
from types import MappingProxyType

from hummingbird.evidence.blame.code import CODE
from hummingbird.evidence.blame.configuration import CONFIGURATION
from hummingbird.evidence.blame.machine import MACHINE
from hummingbird.evidence.blame.network import NETWORK
from hummingbird.evidence.blame.rule import Rank, Rule, Way
from hummingbird.evidence.blame.tests import TESTS
from hummingbird.evidence.regions import INTERMITTENT

RULES: tuple[Rule, ...] = (*MACHINE, *NETWORK, *CONFIGURATION, *CODE, *TESTS)
"""Where two rules speak of one line with the same weight, the first of them counts."""


PASSING_RULES = frozenset(rule.name for rule in RULES if rule.class_ in INTERMITTENT or rule.rank is Rank.FOLLOWS)
"""The names of the rules for what a second run may get over, and for what may follow from that: a full disk is why the
code "could not compile"."""


WAYS: tuple[tuple[int, Way], ...] = tuple((place, way) for place, rule in enumerate(RULES) for way in rule.ways)
"""Every way of saying something, with the place of its rule."""


def _called_by() -> Mapping[str, tuple[int, ...]]:
    calls: dict[str, tuple[int, ...]] = {}
    for place, (_, way) in enumerate(WAYS):
        for word in way.words:
            calls[word] = (*calls.get(word, ()), place)
    return MappingProxyType(calls)


CALLED_BY = _called_by()
"""The ways that a word calls for, by their places."""

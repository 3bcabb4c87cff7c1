"""What `make test` leaves to `make thorough`: cases that another backend of the same kind, or another row of the same
table, has played already. Everything is there once in `make test`; here it is there in every way."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

_CASES = 5  # of a test that `make test` plays
ALL = bool(os.environ.get("HUMMINGBIRD_TEST_ALL"))


def also(*values: Any) -> Any:
    """A parameter that is tried thoroughly only."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def topical(cases: Iterable[Callable[..., Any]], *topics: str) -> list[Any]:
    """Cases of a contract: always those of the modules with these names."""
    return [case if case.__module__.rpartition(".")[2] in topics else also(case) for case in cases]


def one_per_topic(cases: Iterable[Callable[..., Any]], *topics: str) -> list[Any]:
    """Cases of a contract: always the first one of each module, or of each of the modules with these names."""
    chosen: list[Any] = []
    seen: set[str] = set()
    for case in cases:
        topic = case.__module__.rpartition(".")[2]
        is_played = topic not in seen and (not topics or topic in topics)
        chosen.append(case if is_played else also(case))
        seen.add(topic)
    return chosen


def on_the_way(cases: Iterable[Callable[..., Any]], *topics: str) -> list[Any]:
    """`one_per_topic` for pods: a cluster that somebody named plays all of them."""
    return list(cases) if os.environ.get("HUMMINGBIRD_TEST_KUBECONFIG") else one_per_topic(cases, *topics)


def spread_cases(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Keep a few cases of each test, from all over its table; all of them where it is marked `every_case`."""
    cases: defaultdict[tuple[Path, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.path, item.nodeid.partition("[")[0]].append(item)
    kept: list[pytest.Item] = []
    for of_one_test in cases.values():
        last = len(of_one_test) - 1
        if last < _CASES or of_one_test[0].get_closest_marker("every_case"):
            kept += of_one_test
        else:
            kept += [of_one_test[round(number * last / (_CASES - 1))] for number in range(_CASES)]
    return kept


def tries(thoroughly: int) -> int:
    """How many examples of a property are made: others each time."""
    return thoroughly if ALL else min(40, max(10, thoroughly // 3))

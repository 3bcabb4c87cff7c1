"""What `make test` leaves to `make thorough`: cases that another backend of the same kind, or another row of the same
table, has played already. Everything is there once in `make test`; here it is there in every way."""

import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import pytest

ALL = bool(os.environ.get("HUMMINGBIRD_TEST_ALL"))
only_thoroughly = pytest.mark.thorough

_Case = TypeVar("_Case")


def first(values: Iterable[Any], usually: int) -> Iterator[Any]:
    """Parameters of which so many are always tried."""
    for at, value in enumerate(values):
        yield value if at < usually else also(value)


def also(*values: Any) -> Any:
    """A parameter that is tried thoroughly only."""
    if len(values) == 1 and hasattr(values[0], "values"):  # a pytest.param
        given = values[0]
        return pytest.param(*given.values, marks=(*given.marks, only_thoroughly), id=given.id)
    return pytest.param(*values, marks=only_thoroughly)


def topical(cases: Iterable[_Case], *topics: str) -> list[Any]:
    """Cases of a contract: always those of the modules with these names."""
    return [case if case.__module__.rpartition(".")[2] in topics else also(case) for case in cases]


def tries(thoroughly: int) -> int:
    """How many examples of a property are made: others each time."""
    return thoroughly if ALL else max(10, thoroughly // 3)

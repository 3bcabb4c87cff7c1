"""G8: no key is read and ignored; each has a test in which changing it changes what happens."""

import ast
from functools import cache
from pathlib import Path

import pytest

from hummingbird.config.defaults import TABLE
from tests.config.effects.entries import EFFECTS

TESTS = Path(__file__).parents[2]


def test_every_key_has_a_test_that_shows_its_effect() -> None:
    assert (set(TABLE) - set(EFFECTS), set(EFFECTS) - set(TABLE)) == (set(), set())


@pytest.mark.parametrize("test", sorted(set(EFFECTS.values())))
def test_the_tests_that_are_named_exist(test: str) -> None:
    file, _, name = test.partition("::")
    assert name in functions(file)


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))

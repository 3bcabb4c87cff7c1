"""No key is read and ignored; each has a test in which changing it changes what happens."""

import ast
from functools import cache
from pathlib import Path

from hummingbird.config.defaults import CONFIG_KEYS
from tests.config.effects.entries import EFFECTS

TESTS = Path(__file__).parents[2]


def test_every_key_has_a_test_that_shows_its_effect() -> None:
    assert (set(CONFIG_KEYS) - set(EFFECTS), set(EFFECTS) - set(CONFIG_KEYS)) == (set(), set())


def test_the_tests_that_are_named_exist() -> None:
    named = [test.partition("::") for test in sorted(set(EFFECTS.values()))]
    assert [(file, name) for file, _, name in named if name not in functions(file)] == []


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))

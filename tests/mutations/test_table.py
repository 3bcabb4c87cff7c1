"""The table of mutations fits the sources and the tests as they are now, and the page says what the table says."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.mutations.mutation import Mutation
from tests.mutations.room import ROOT, SOURCES, changed
from tests.mutations.run import DOCUMENT
from tests.mutations.table import INVARIANTS, TABLE

pytestmark = pytest.mark.every_case

_ROW = re.compile(r"^\| ([a-z-]+) \| (.+?) \| `(.+?)` \| (.+?) \|", re.MULTILINE)
on_every_mutation = pytest.mark.parametrize("mutation", TABLE, ids=lambda each: f"{each.invariant} {each.broken}")


@pytest.mark.parametrize("invariant", INVARIANTS)
def test_every_invariant_has_walls_that_are_broken_in_at_least_two_ways(invariant: str) -> None:
    assert len({each.broken for each in TABLE if each.invariant == invariant}) >= 2


def test_no_two_mutations_are_called_the_same() -> None:
    assert len({each.broken for each in TABLE}) == len(TABLE)


@on_every_mutation
def test_a_mutation_is_still_about_what_stands_in_the_sources(mutation: Mutation) -> None:
    whole = (SOURCES / mutation.file).read_text(encoding="utf-8")
    broken = changed(whole, mutation)
    assert broken != whole
    if mutation.file.endswith(".json"):
        assert json.loads(broken) != json.loads(whole)
    else:
        assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(whole))


@on_every_mutation
def test_every_test_that_a_mutation_names_is_there(mutation: Mutation) -> None:
    assert mutation.tests
    for name in mutation.tests:
        file, _, function = name.partition("::")
        assert function.partition("[")[0] in functions(ROOT / file), name


@cache
def functions(path: Path) -> frozenset[str]:
    found = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(each.name for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_page_lists_the_mutations_of_the_table_and_all_of_them_were_caught() -> None:
    """To renew it: make mutate."""
    rows = _ROW.findall(DOCUMENT.read_text(encoding="utf-8"))
    assert [row[:3] for row in rows] == [(each.invariant, each.broken, each.file) for each in TABLE]
    assert [row for row in rows if not row[3].startswith("caught")] == []

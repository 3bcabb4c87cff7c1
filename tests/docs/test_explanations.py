"""What docs/security.md and docs/costs.md claim is backed: by tests with an invariant's number, by measurements."""

import ast
import re
from pathlib import Path

import pytest

from hummingbird.config.defaults import CONFIG_KEYS as KEYS
from tests.docs.reading import ROOT
from tests.mutations.table import INVARIANTS, TABLE

_ROW = re.compile(r"^\| (?P<number>[a-z-]+) \| (?P<claim>[^|]+) \| (?P<tests>tests/[^|]+) \|$", re.MULTILINE)
_NUMBER = re.compile(r"\d[\d,]*\.\d+(?:×| %)|\d+%")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def proofs() -> dict[str, list[Path]]:
    return {
        row["number"]: [ROOT / name for name in row["tests"].split(", ")] for row in _ROW.finditer(page("security.md"))
    }


def test_every_invariant_stands_in_the_page_once() -> None:
    assert [row["number"] for row in _ROW.finditer(page("security.md"))] == list(INVARIANTS)


@pytest.mark.parametrize("number", INVARIANTS)
def test_each_file_that_proves_an_invariant_holds_tests(number: str) -> None:
    for file in proofs()[number]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = [one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert any(name.startswith("test_") for name in names), file


@pytest.mark.parametrize("number", INVARIANTS)
def test_each_invariant_has_mutations_that_a_test_notices(number: str) -> None:
    assert len([one for one in TABLE if one.invariant == number]) > 1
    assert re.search(rf"\| {number} \|.*\| caught \|", page("mutations.md"))


def test_measured_numbers_of_the_page_of_costs_are_those_of_the_benchmarks() -> None:
    """Computed ones stand in blocks of code, which are renewed by themselves."""
    prose = re.sub(r"```.*?```", "", page("costs.md"), flags=re.DOTALL).replace("0% cached", "")
    numbers = set(_NUMBER.findall(prose)) - {"80 %", "100 %"}
    measured = page("benchmarks.md")
    assert len(numbers) > 8
    assert [one for one in numbers if one.removesuffix(" %") not in measured] == []


def test_defaults_in_the_page_of_costs_are_the_defaults() -> None:
    rows = re.findall(r"^\| `([a-z_.]+)` \| (\w+) \|", page("costs.md"), re.MULTILINE)
    assert len(rows) == 7
    for key, said in rows:
        default = KEYS[key if key in KEYS else f"settings.{key}"].default
        assert said == ("none" if default is None else str(default)), key

"""What documents point at is there: pages and headings behind links, modules and tests behind names, variables."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from hummingbird.cli.main import COMMANDS, commands
from tests.docs.reading import DOCUMENTS, ROOT, anchors, links, name_of

ROOMS = ("src", "tests", "benchmarks", "scripts")
PACKAGE = ROOT / "src" / "hummingbird"
_FILE = re.compile(r"(?:[a-z_]+/)+[a-z_*]+\.py|\btest_[a-z_*]+\.py")
_SPOT = re.compile(r"`([a-z_/]+\.py): ([\w.]+)`")
_VARIABLE = re.compile(r"\bHUMMINGBIRD_[A-Z_]*[A-Z]\b")
_EXAMPLES = {"src/prices.py", "src/rate.py"}  # of the projects that are talked about in a chat
_TESTED = "HUMMINGBIRD_TEST_"  # what tests are told; everything else is the product's


def named(document: Path) -> Iterator[str]:
    found = (name.group() for name in _FILE.finditer(document.read_text(encoding="utf-8")))
    return (name for name in found if name not in _EXAMPLES)


def dead_links(document: Path) -> list[str]:
    """Those that lead to no file of this repository, or to no heading of it."""
    found = []
    for link in links(document):
        path, _, anchor = link.target.partition("#")
        if re.match(r"[a-z]+:", link.target):
            continue
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"line {link.line}: {link.target}")
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_link_of_a_document_leads_somewhere(document: Path) -> None:
    assert dead_links(document) == []


@pytest.mark.parametrize(
    "link", ["gone.md", "there.md#nowhere", "#not-here", "../up.md", "![](no.png)", "there.md#in-code"]
)
def test_a_link_that_leads_nowhere_is_noticed(link: str, tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading\n\n    # in code\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        f"# Here\n\n{link if link.startswith('!') else f'[a]({link})'}, [b](there.md#a-heading), [c](#here)\n"
    )
    assert len(dead_links(page)) == 1


@cache
def python_files() -> tuple[Path, ...]:
    return tuple(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def test_every_python_file_that_a_document_names_is_there() -> None:
    every = {(name_of(document), name) for document in DOCUMENTS for name in named(document)}
    assert [one for one in sorted(every) if not any(path.match(one[1]) for path in python_files())] == []


def missing_functions(text: str) -> tuple[list[str], int]:
    """Those of the `file: function` in a text that are not there, and how many it has."""
    spots = _SPOT.findall(text)
    return [f"{path}: {name}" for path, name in spots if not has_definition(PACKAGE / path, name)], len(spots)


def has_definition(path: Path, name: str) -> bool:
    """Whether the file has a function, a class, or a class with that method."""
    body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = next((one for one in body if isinstance(one, kinds) and one.name == part), None)
        if found is None:
            return False
        body = found.body
    return True


def test_every_function_that_the_architecture_names_is_there() -> None:
    missing, count = missing_functions((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    assert missing == []
    assert count > 20


@pytest.mark.parametrize("spot", ["core/gone.py: read", "core/journal.py: gone", "core/journal.py: load_entry.gone"])
def test_a_function_that_is_not_there_is_noticed(spot: str) -> None:
    assert missing_functions(f"see `{spot}`") == ([spot], 1)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_in_the_readmes_table(name: str) -> None:
    rows = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    row = next((row for row in rows if re.search(rf"`{name}\b", row)), "")
    assert row
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    below = sorted(command.commands) if isinstance(command, click.Group) else []
    assert [verb for verb in below if not re.search(rf"\b{verb}\b", row)] == []


@cache
def variables_of(room: str) -> frozenset[str]:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / room).rglob("*.py"))
    return frozenset(name for text in texts for name in _VARIABLE.findall(text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_variable_that_a_document_names_exists(document: Path) -> None:
    named_there = set(_VARIABLE.findall(document.read_text(encoding="utf-8")))
    product = {name for name in named_there if not name.startswith(_TESTED)}
    assert product - variables_of("src") == set()
    assert (named_there - product) - variables_of("tests") == set()


def test_every_variable_that_the_program_reads_is_in_the_table_of_variables() -> None:
    """But for one that it gives to its own children."""
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    table = text[text.index("## Environment") : text.index("## Every key")]
    assert variables_of("src") - {"HUMMINGBIRD_COMMAND"} == set(_VARIABLE.findall(table))

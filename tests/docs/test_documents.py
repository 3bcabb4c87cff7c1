"""What documents point at is there: pages and headings behind links, modules and tests behind names, variables."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from hummingbird.cli.main import COMMANDS, commands
from tests.docs.reading import DOCUMENTS, ROOT, anchors, links, name_of

ROOMS = ("src", "tests", "benchmarks", "scripts")
_FILE = re.compile(r"(?:[a-z_]+/)+[a-z_*]+\.py|\btest_[a-z_*]+\.py")
_VARIABLE = re.compile(r"\bHUMMINGBIRD_[A-Z_]*[A-Z]\b")
_EXAMPLES = {"src/prices.py"}  # of the project that is talked about in a chat
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_python_file_that_a_document_names_is_there(document: Path) -> None:
    assert [name for name in named(document) if not any(path.match(name) for path in python_files())] == []


def test_names_of_files_are_found_in_the_architecture() -> None:
    assert len(list(named(ROOT / "ARCHITECTURE.md"))) > 20


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

"""What documents point at is there: files behind links, modules and tests behind names, commands behind words."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hummingbird.cli.main import commands

ROOT = Path(__file__).parents[2]
ROOMS = ("src", "tests", "benchmarks")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_LINK = re.compile(r"\]\((?!https?://|#|…)([^)#\s]+)")
_FILE = re.compile(r"(?:[a-z_]+/)+[a-z_*]+\.py|\btest_[a-z_*]+\.py")
_COMMAND = re.compile(r"hummingbird ([a-z]+)")


def named(document: Path) -> Iterator[str]:
    return (found.group() for found in _FILE.finditer(document.read_text(encoding="utf-8")))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_a_file(document: Path) -> None:
    links = _LINK.findall(document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_every_file_that_the_architecture_names_is_there() -> None:
    names = list(named(ROOT / "ARCHITECTURE.md"))
    ends = [path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    assert [name for name in names if not any(end.match(name) for end in ends)] == []
    assert len(names) > 20, "or the pattern finds nothing any more"


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_every_command_is_in_the_readmes_table(name: str) -> None:
    rows = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert any(re.search(rf"`{name}\b", row) for row in rows)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_that_a_document_shows_exists(document: Path) -> None:
    shown = [line for line in document.read_text(encoding="utf-8").splitlines() if line.startswith("    $ hummingbird")]
    typed = [found.group(1) for line in shown if (found := _COMMAND.search(line))]
    assert [name for name in typed if name not in commands.commands] == []

"""Pages that are made of the code are up to date; `make docs` renews them."""

from typing import get_args

import click
import pytest

from hummingbird.cli.main import COMMANDS, commands
from hummingbird.cli.serve import serve
from hummingbird.core.journal import JournalEntry
from tests.docs import commands_page
from tests.docs.generating import PAGES, keys, written
from tests.docs.reading import ROOT, anchors


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_made_of_code_is_up_to_date(name: str) -> None:
    assert PAGES[name](written(name)) == written(name), "make docs renews it"


def test_another_help_text_makes_the_page_of_commands_another(monkeypatch: pytest.MonkeyPatch) -> None:
    option = next(one for one in serve.params if one.name == "port")
    assert isinstance(option, click.Option)
    monkeypatch.setattr(option, "help", "Which port.")
    assert "Which port." in commands_page.page()
    assert commands_page.page() != written("docs/reference/cli.md")


def test_every_command_and_every_kind_of_entry_has_a_heading() -> None:
    top = click.Context(commands)
    loaded = {name: commands.get_command(top, name) for name in COMMANDS}
    groups = {name: each.commands for name, each in loaded.items() if isinstance(each, click.Group)}
    paths = [*COMMANDS, *(f"{name}-{verb}" for name, verbs in groups.items() for verb in verbs)]
    assert {f"hummingbird-{path}" for path in paths} <= anchors(ROOT / "docs" / "reference" / "cli.md")
    kinds = {kind.__struct_config__.tag for kind in get_args(JournalEntry)}
    assert kinds <= anchors(ROOT / "docs" / "reference" / "journal.md")
    assert len(kinds) > 15


def test_what_people_wrote_above_the_table_of_keys_stays() -> None:
    page = written("docs/configuration.md")
    assert keys(page.replace("| `settings.model`", "| `settings.modle`")) == page
    assert keys(f"Mine. {page}").startswith("Mine. ")

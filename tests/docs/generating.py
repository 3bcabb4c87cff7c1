"""Pages that are made of the code: `python -m tests.docs.generating --write` renews them, without --write it says which
are out of date. `make docs` does the former, tests/docs/test_generated.py the latter."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from hummingbird.config.defaults import reference_markdown
from tests.docs import api_page, commands_page, costs_page, journal_page

ROOT = Path(__file__).parents[2]
TABLE_OF_KEYS = "| key | default | meaning |"


def keys(text: str) -> str:
    """The page with the table of all keys below what people wrote."""
    return text[: text.index(TABLE_OF_KEYS)] + reference_markdown()


PAGES: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "docs/configuration.md": keys,
        "docs/costs.md": costs_page.renewed,
        "docs/reference/api.md": lambda _: api_page.page(),
        "docs/reference/cli.md": lambda _: commands_page.page(),
        "docs/reference/journal.md": lambda _: journal_page.page(),
    }
)


def written(name: str) -> str:
    path = ROOT / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def out_of_date() -> dict[str, str]:
    """Page → what it ought to be."""
    fresh = {name: make(written(name)) for name, make in PAGES.items()}
    return {name: text for name, text in fresh.items() if text != written(name)}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.generating", description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew them")
    chosen = parser.parse_args(arguments)
    for name, text in out_of_date().items():
        if chosen.write:
            (ROOT / name).write_text(text, encoding="utf-8")
        sys.stderr.write(f"{name} {'was renewed' if chosen.write else 'is out of date'}.\n")
    return 0 if chosen.write or not out_of_date() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Quotations in lists, and lists in quotations: a label takes the item's sign, which is nobody's words."""

import pytest

from hummingbird.core.journal import JournalEntry
from hummingbird.evidence.citations.checker import check_answer
from hummingbird.evidence.citations.claims import REMOVED_QUOTATION
from hummingbird.evidence.citations.quote_checks import PRINTED_LABEL
from tests.evidence.cited import ORDER, block, log, printed

FETCHED: list[JournalEntry] = [ORDER, *log(["$ make test", "E  assert 1 == 2"])]
MELTED: list[JournalEntry] = [*FETCHED, *printed("the database melted")]


@pytest.mark.parametrize(
    ("written", "posted"),
    [
        ("1. > the database melted\n2. next", f"1. {PRINTED_LABEL}\n\n   > the database melted\n2. next"),
        ("10) > the database melted", f"10) {PRINTED_LABEL}\n\n    > the database melted"),
        ("- - > the database melted", f"- - {PRINTED_LABEL}\n\n    > the database melted"),
        ("1. ```\n   the database melted\n   ```", f"1. {PRINTED_LABEL}\n\n   ```\n   the database melted\n   ```"),
        ("-     the database melted", f"- {PRINTED_LABEL}\n\n      the database melted"),
        ("1. so:\n   > the database melted", f"1. so:\n   {PRINTED_LABEL}\n\n   > the database melted"),
        (
            "> [!note]\n> - ```\n>   the database melted\n>   ```",
            f"> [!note]\n> - {PRINTED_LABEL}\n>\n>   ```\n>   the database melted\n>   ```",
        ),
    ],
)
def test_what_a_command_printed_is_told_once_as_that_and_stays_in_its_item(written: str, posted: str) -> None:
    assert check_answer(written, MELTED).text == posted
    assert check_answer(posted, MELTED).text == posted


@pytest.mark.parametrize(
    "item", ["- {}", "* {}", "+ {}", "1. {}", "12)  {}", "- 2: {}", "- `{}`", "- L2: `{}`", '1. "{}"', "> - {}"]
)
def test_an_item_of_a_list_in_a_quotation_is_the_line_that_it_shows(item: str) -> None:
    right, wrong = f"> {item.format('E  assert 1 == 2')}", f"> {item.format('the database melted')}"
    done = check_answer(right, FETCHED)
    assert (done.text, done.tallies.found) == (right, 1)
    assert check_answer(wrong, FETCHED).text == REMOVED_QUOTATION


def test_a_number_within_an_item_claims_to_quote_though_the_line_reads_like_code() -> None:
    assert check_answer("> - 2: E  assert 1 == 2", FETCHED).tallies.found == 1
    assert check_answer("> - 2: E  assert 1 == 3", FETCHED).text == REMOVED_QUOTATION


@pytest.mark.parametrize("sign", ["- ", "+ ", "1. "])
def test_in_code_a_sign_is_a_part_of_the_line(sign: str) -> None:
    """Else whatever was fetched could be shown as taken out by a change."""
    assert check_answer(block(f"{sign}E  assert 1 == 2"), FETCHED).text == REMOVED_QUOTATION

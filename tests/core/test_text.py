"""Text from outside, made safe to store and to quote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.text import replace_surrogates, shorten_line

wild = st.text(st.characters(), max_size=30)  # with lone surrogates


@given(wild)
def test_plain_text_can_always_be_stored(text: str) -> None:
    assert replace_surrogates(text).encode().decode() == replace_surrogates(text)


@pytest.mark.thorough
@given(st.text())
def test_what_can_be_stored_is_left_as_it_is(text: str) -> None:
    assert replace_surrogates(text) is text


@given(wild)
def test_only_what_cannot_be_stored_is_replaced(text: str) -> None:
    expected = "".join("?" if "\ud800" <= character <= "\udfff" else character for character in text)
    assert replace_surrogates(text) == expected


@given(wild, st.integers(1, 40))
def test_a_quotation_is_one_line_of_at_most_so_many_characters(text: str, chars: int) -> None:
    """For sentences that quote somebody."""
    quoted = shorten_line(text, chars)
    assert len(quoted) <= chars
    assert len(quoted.splitlines()) <= 1


@given(wild, st.integers(1, 40))
def test_a_quotation_is_cut_only_when_it_must_be(text: str, chars: int) -> None:
    """And says so."""
    line, quoted = " ".join(text.split()), shorten_line(text, chars)
    assert quoted == line if len(line) <= chars else quoted.endswith("…") and line.startswith(quoted[:-1])


@pytest.mark.parametrize(
    ("text", "chars", "quoted"),
    [
        ("", 5, ""),
        ("12345", 5, "12345"),
        ("123456", 5, "1234…"),
        (" a\n\tb ", 5, "a b"),
        ("123456", 1, "…"),
        ("a\u2028b\x85c", 9, "a b c"),
    ],
)
def test_quotations(text: str, chars: int, quoted: str) -> None:
    """As they come out."""
    assert shorten_line(text, chars) == quoted

"""Text from outside, made safe to look at."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hummingbird.evidence.printable import make_printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, äöü, 失敗, ✖ and ❌", "plain text, äöü, 失敗, ✖ and ❌"),
        ("\x1b]52;c;eA==\x07", "\\x1b]52;c;eA==\\x07"),
        ("a\u202eb\u2066c\u200bd\ufeffe", "a\\u202eb\\u2066c\\u200bd\\ufeffe"),
        ("\x9b31m\x85", "\\x9b31m\\x85"),
        ("half of a pair \ud83d", "half of a pair \\ud83d"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("a\tb\u00a0c\u3000d", "a   b c d"),
        ("one\ntwo\r", "one\\x0atwo\\x0d"),
        ("e\u0301 Z\u0335\u0322\u0327\u033a!", "e\u0301 Z\u0335\u0322\u0327\\u033a!"),
    ],
)
def test_what_would_be_acted_upon_is_shown_instead(text: str, shown: str) -> None:
    assert make_printable(text) == shown


@given(some.text())
def test_whatever_comes_in_what_goes_out_can_be_printed_and_encoded(text: str) -> None:
    shown = make_printable(text)
    assert shown.isprintable()
    shown.encode()
    assert make_printable(shown) == shown

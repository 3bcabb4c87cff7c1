"""Globs that permit to the letter and restrict generously."""

import re
import unicodedata
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hummingbird.core.errors import UsageError
from hummingbird.core.limits import JUDGED_CHARS, PATTERN_CHARS
from hummingbird.core.permissions import FoldableText, GlobPattern
from tests.thoroughly import tries

letters = st.text(st.sampled_from("ab \n"), max_size=8)


def fits(pattern: str, text: str) -> bool:
    return GlobPattern(pattern).matches_strictly(text)


def touches(pattern: str, text: str) -> bool:
    return GlobPattern(pattern).matches_loosely(FoldableText(text))


@settings(max_examples=tries(500))
@example(pattern="*ab*b", text="ab")
@example(pattern="a*ba*a", text="aba")
@given(pattern=st.text(st.sampled_from("ab*\n"), min_size=1, max_size=8), text=letters)
def test_a_star_is_any_text_and_the_rest_is_itself_from_beginning_to_end(pattern: str, text: str) -> None:
    """Against a regular expression, which may take its time here."""
    wanted = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None
    assert touches(pattern, text) or not wanted
    assert fits(pattern, text) == (wanted and text.count("\n") == pattern.count("\n"))


@given(
    pattern=st.text(st.sampled_from("aé;*. "), min_size=1, max_size=8),
    text=st.text(st.sampled_from("aé;. "), max_size=8),
)
def test_what_would_be_permitted_would_be_restricted_too(pattern: str, text: str) -> None:
    """So a deny rule with the same pattern is never narrower than the allow rule."""
    assert touches(pattern, text) or not fits(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        (r"a\*b", "a*b", True),
        (r"a\*b", "axb", False),
        (r"a\\b", r"a\b", True),
        ("git", "git push", False),
        ("git", "a git", False),
        ("git*", "git", True),
        ("a*a", "a", False),
        ("?[ab]", "?[ab]", True),
        ("?[ab]", "xa", False),
    ],
)
def test_there_is_one_wildcard_and_one_escape(pattern: str, text: str, wanted: bool) -> None:
    assert fits(pattern, text) == touches(pattern, text) == wanted


@pytest.mark.parametrize("pattern", [r"\d+", "a\\", r"\.", "", "x" * (PATTERN_CHARS + 1)])
def test_a_pattern_that_means_nothing_is_said(pattern: str) -> None:
    with pytest.raises(UsageError):
        GlobPattern(pattern)


@pytest.mark.parametrize(
    "text",
    [
        "git log; rm x",
        "git log && rm x",
        "git log | sh",
        "git log\nrm x",
        "git log\rrm x",
        "git log `rm x`",
        "git log $(rm x)",
        "git log > x",
        "git log < x",
        "git log \\",
        "git log \x00",
        "git log ../../secret",
        "git log a/..",
    ],
)
def test_a_star_that_permits_does_not_stand_for_a_second_command(text: str) -> None:
    """Nor for a way out of the folder; each of them is restricted by the same pattern."""
    assert fits("git log*", "git log -p 'a b' --stat=3 src/x.py")
    assert not fits("git log*", text)
    assert touches("git log*", text)


def test_what_stands_in_the_pattern_itself_is_meant() -> None:
    assert fits("git log * | head", "git log -p | head")
    assert not fits("git log * | head", "git log -p | sh | head")
    assert not fits("git log * | head", "git log -p; x | head")
    assert fits("../docs/*", "../docs/a")
    assert not fits("../docs/*", "../docs/../a")
    assert not fits("docs/.*", "docs/../a")


@pytest.mark.parametrize(
    "text",
    [
        "rm -rf /",
        "  rm -rf /  ",
        "rm  -rf\t/",
        "rm\n-rf /",
        "rm \\\n-rf /",
        "r\\\nm -rf /",
        "RM -rf /",
        "ｒｍ -rf /",
        "r\u200bm -rf /",
        "r\u00adm -rf /",
        "r\x00m -rf /",
        "r\u0301m -rf /",
        "rm\u00a0-rf\u3000/",
        "𝓇𝓂 -rf /",
    ],
)
def test_what_restricts_looks_past_every_disguise(text: str) -> None:
    """Case, white space, Unicode forms, what cannot be seen."""
    assert touches("rm -rf *", text)
    assert text == "rm -rf /" or not fits("rm -rf *", text)


def test_the_normal_form_of_neither_text_nor_pattern_matters_to_what_restricts() -> None:
    name = "Größe ñ ﬁx ệ 각"
    forms = {name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD", "NFKC", "NFKD"))}
    assert len(forms) >= 4
    for one, other in product(forms, forms):
        assert touches(one + "*", other + "!")


def test_marks_in_another_order_are_the_same_letter() -> None:
    assert touches("*q\u0323\u0307*", "x q\u0307\u0323 y")


def test_what_restricts_is_still_a_pattern() -> None:
    """Generous is not the same as anything."""
    assert not touches("rm *", "rmdir x")
    assert not touches("rm *", "ls; rm x")
    assert not touches("*passwd", "/etc/passwd.old")


def test_a_piece_of_which_nothing_is_left_is_looked_for_as_it_is_written() -> None:
    """A pattern against invisible characters does not hit everything."""
    assert touches("*\u202e*", "a\u202eb")
    assert not touches("*\u202e*", "ab")
    assert not touches("* ", "ab")


@pytest.mark.parametrize(
    "text",
    ["a" * JUDGED_CHARS, "e" + "\u0301\u0323" * (JUDGED_CHARS // 2), "ab" * (JUDGED_CHARS // 2)],
    ids=["one letter", "marks out of order", "two letters"],
)
def test_the_longest_text_and_the_worst_pattern_come_to_an_end(text: str) -> None:
    """A regular expression would take longer than the test may; so would putting marks in order."""
    assert not touches("*a" * (PATTERN_CHARS // 2 - 1) + "*z", text)
    assert not fits("*a" * (PATTERN_CHARS // 2 - 1) + "*z", text)

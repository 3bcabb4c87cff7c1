"""What dismisses a finding, and what only sounds like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.findings import is_dismissal
from hummingbird.core.limits import DISMISSAL_CHARS

SAID = [
    "won't fix",
    "Won’t fix.",
    "WONTFIX",
    "wont fix",
    "**won't fix**",
    "`wontfix`",
    "Will not fix this.",
    "We won't fix this because the caller checks it.",
    "Won't fix: the caller checks it.",
    "Won't fix for now.",
    "We're not going to fix this",
    "by design",
    "This is by design.",
    "It's by design, see the ADR.",
    "Works as designed",
    "working as intended!",
    "As intended.",
    "That is intentional.",
    "This is expected behaviour.",
    "on purpose",
    "false positive",
    "This is a false positive: the list is never empty.",
    "False-positive",
    "not a bug",
    "This is not a bug, the index starts at 1.",
    "Not an issue here.",
    "Sorry, won't fix.",
    "dismiss",
    "False positive\n\nThe lock is held by the caller.",
]
NOT_SAID = [
    "",
    "Is this by design?",
    "Why won't fix?",
    "won't fix? I think we should",
    "This is not a false positive.",
    "This is not by design.",
    "It is not intended.",
    "Not sure that this is a false positive",
    "I wonder whether it works as designed when the list is empty",
    "Is that not a bug",
    "Please fix this, it is not by design.",
    "Thanks, fixed.",
    "by design documents we mean something else",
    "Explain why this is a false positive",
    "That won't fix the problem, the page is still lost.",
    "It won't fix it.",
    "won't fix itself",
    "Not a problem, fixing now!",
    "not a problem - will fix",
    "intended: fix coming",
    "as expected, this breaks prod",
    "will not fix. Actually fixed now in abc",
    "> won't fix\n\nI disagree.",
    "Won't fix. " + "x" * DISMISSAL_CHARS,
]


@pytest.mark.parametrize("text", SAID)
def test_a_short_reply_that_begins_with_it_dismisses(text: str) -> None:
    assert is_dismissal(text)


@pytest.mark.parametrize("text", NOT_SAID)
def test_questions_denials_and_stories_do_not(text: str) -> None:
    assert not is_dismissal(text)


@given(st.text())
def test_every_text_does_or_does_not(text: str) -> None:
    assert is_dismissal(text) in (True, False)

"""What an answer states, in the words of our prompts and of `digest`."""

import pytest

from hummingbird.app.evaluation.scores import find_places, find_statement, prose_lines
from hummingbird.evidence.regions import FailureClass


@pytest.mark.parametrize(
    ("text", "verdict", "caused"),
    [
        ("**Verdict:** code, caused by this merge request", FailureClass.CODE, True),
        ("**Verdict: code** (sure), in `a`. Caused by this merge request: rules cannot tell.", FailureClass.CODE, None),
        ("**Verdict: code**. Caused by this merge request: likely, it changes `a.py`.", FailureClass.CODE, True),
        (
            "Verdict: infrastructure. Caused by this merge request: no sign of it; a second run.",
            FailureClass.INFRASTRUCTURE,
            False,
        ),
        ("**Verdict:** flaky, not caused by this merge request", FailureClass.FLAKY, False),
        ("**Verdict:** test, probably not caused by this change", FailureClass.TEST, False),
        ("**Verdict:** test, cannot tell whether it was caused by this merge request", FailureClass.TEST, None),
        ("**Verdict:** test, cannot tell", FailureClass.TEST, None),
        ("**Verdict:** infrastructure. It is unrelated to this merge request.", FailureClass.INFRASTRUCTURE, False),
        ("**Verdict: unknown.** Nothing that failed was found.", FailureClass.UNKNOWN, None),
        ("It is not known; caused by this merge request", None, True),
        ("Nothing to report.", None, None),
        ("```\nVerdict: flaky, caused by this merge request\n```", None, None),
    ],
)
def test_verdict_and_guilt_are_read_from_prose(text: str, verdict: FailureClass | None, caused: bool | None) -> None:
    found = find_statement(text, ())
    assert (found.verdict, found.caused) == (verdict, caused)


def test_a_heading_of_a_report_by_rules_states_a_class() -> None:
    text = "**Verdict: code**\n\n### 1. [`a`](http://x): test\nold words\n\n### 2. [`b`](http://x): flaky\n"
    assert find_statement(text, ["`b`"]).verdict is FailureClass.FLAKY


def test_a_block_that_is_never_closed_goes_on_to_the_end() -> None:
    text = "Before.\n~~~\nquoted\n```\nstill quoted"
    assert prose_lines(text) == ["Before."]


def test_places_are_read_from_prose_and_not_from_addresses() -> None:
    text = "See `src/a.py:27` and b.rs:3, http://host.example:80/x.py:9.\n```\nc.py:1\n```"
    assert find_places(text) == (("src/a.py", 27), ("b.rs", 3))

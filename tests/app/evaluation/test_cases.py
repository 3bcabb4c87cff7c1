"""What a case may say of a good answer; each fault is one sentence that names case and key."""

from typing import Any

import pytest

from hummingbird.app.evaluation.cases import parse_expected
from hummingbird.core.errors import UsageError
from hummingbird.core.verdicts import FailureOrigin
from hummingbird.lab.case import case_names, find_case


@pytest.mark.parametrize("name", case_names())
def test_every_built_in_case_says_what_is_scored(name: str) -> None:
    about = find_case(name).description
    found = parse_expected(name, about)
    assert bool(found.failures or found.findings) == bool(about["expected"])


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ([], "expected is not an object"),
        ({"verdict": "guilty"}, "expected.verdict is none of code, test"),
        ({"verdict": 3}, "expected.verdict is not text"),
        ({"caused_by_change": "yes"}, "expected.caused_by_change is not true or false"),
        ({"evidence": "a line"}, "expected.evidence is not a list"),
        ({"evidence": [1]}, "expected.evidence is not a list of texts"),
        ({"must_not": [""]}, "expected.must_not is not a list of texts"),
        ({"evidences": []}, "expected.evidences is not something that is scored; known are verdict"),
        ({"also": [{"job": 1}]}, "expected.also[0].job is not text"),
        ({"findings": [{"path": "a.py"}]}, "expected.findings[0] needs a path and a line"),
        ({"findings": [{"path": "a.py", "line": True}]}, "expected.findings[0].line is not a number"),
        ({"origin": "me"}, "expected.origin is none of change, target"),
        ({"evidence": ["x"] * 201}, "expected.evidence has more than 200 entries"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(expected: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_expected("mine", {"expected": expected})
    assert f"case.json of mine: {said}" in str(refused.value)
    assert str(refused.value).endswith("Fix it.")


@pytest.mark.parametrize(
    ("expected", "origins"),
    [
        ({"verdict": "code", "caused_by_change": True}, {FailureOrigin.CHANGE}),
        ({"verdict": "code", "caused_by_change": False}, {FailureOrigin.TARGET}),
        (
            {"verdict": "infrastructure", "caused_by_change": False},
            {FailureOrigin.INFRASTRUCTURE, FailureOrigin.TARGET},
        ),
        ({"verdict": "flaky", "caused_by_change": False}, {FailureOrigin.FLAKY, FailureOrigin.TARGET}),
        ({"verdict": "code"}, set()),
        ({"verdict": "code", "caused_by_change": True, "origin": "target"}, {FailureOrigin.TARGET}),
    ],
)
def test_what_rules_may_say_follows_unless_the_case_says_it(expected: Any, origins: set[FailureOrigin]) -> None:
    assert parse_expected("mine", {"expected": expected}).origins == origins

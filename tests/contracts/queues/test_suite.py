"""The suite itself: that it is as large as it claims, and that every name in it stands for one behaviour."""

from tests.contracts.queues.suite import CASES


def test_the_contract_has_at_least_forty_cases_e3() -> None:
    assert len(CASES) >= 40


def test_no_two_cases_prove_the_same_thing_by_name() -> None:
    assert len({case.__name__ for case in CASES}) == len(CASES)

"""The suite itself: that it is as large as it claims, and that every name in it stands for one behaviour."""

from tests.contracts.stores.suite import CASES


def test_the_contract_has_at_least_thirty_cases_s1() -> None:
    assert len(CASES) >= 30


def test_no_two_cases_prove_the_same_thing_by_name() -> None:
    assert len({case.__name__ for case in CASES}) == len(CASES)

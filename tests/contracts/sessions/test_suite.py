"""The suite itself: that it is as large as it claims, and that every name in it stands for one behaviour."""

from tests.contracts.sessions.suite import ACROSS_PROCESSES, EVERYWHERE, IN_BUCKETS

_ALL = [*EVERYWHERE, *ACROSS_PROCESSES, *IN_BUCKETS]


def test_the_contract_has_at_least_fifty_cases_s1() -> None:
    assert len(_ALL) >= 50


def test_no_two_cases_prove_the_same_thing_by_name() -> None:
    assert len({case.__name__ for case in _ALL}) == len(_ALL)

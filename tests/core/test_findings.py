"""When a finding says again what stands in the merge request already."""

from dataclasses import replace

import pytest

from hummingbird.core.findings import PostedFinding, ReviewFinding, Severity, find_repeated, finding_fingerprint

CODE = "    for number in range(len(entries) // size):"
FINDING = ReviewFinding(path="a.py", line=27, severity=Severity.MAJOR, text="The last page is lost.")
EARLIER = PostedFinding(path="a.py", line=27, fingerprint=finding_fingerprint(FINDING, CODE))
OTHER_WORDS = replace(FINDING, text="Entries beyond the last full page never come out of this loop.")


def test_the_same_words_on_the_same_line_are_a_repetition_however_they_are_written() -> None:
    assert find_repeated(replace(FINDING, text="the *last* page is lost"), CODE, [EARLIER]) == EARLIER


def test_other_words_about_the_same_line_of_code_are_one_too_wherever_a_push_has_moved_it() -> None:
    assert find_repeated(OTHER_WORDS, CODE, [EARLIER]) == EARLIER
    assert find_repeated(replace(OTHER_WORDS, line=90), f"\t{CODE}", [EARLIER]) == EARLIER


def test_in_one_and_the_same_run_two_things_may_be_said_of_a_line() -> None:
    assert find_repeated(OTHER_WORDS, CODE, [EARLIER], in_other_words=False) is None
    assert find_repeated(FINDING, CODE, [EARLIER], in_other_words=False) == EARLIER


def test_the_same_words_nearby_are_a_repetition_and_far_away_they_are_not() -> None:
    assert find_repeated(replace(FINDING, line=30), "        changed = True", [EARLIER]) == EARLIER
    assert find_repeated(replace(FINDING, line=31), "        changed = True", [EARLIER]) is None


def test_a_line_that_is_known_to_stand_elsewhere_silences_none_of_its_like() -> None:
    there = replace(EARLIER, line_is_tracked=True, dismissed=True)
    assert find_repeated(OTHER_WORDS, CODE, [there]) == there
    assert find_repeated(replace(OTHER_WORDS, line=200), CODE, [there]) is None


def test_a_line_that_any_file_has_many_of_is_the_same_only_where_it_was() -> None:
    there = PostedFinding(path="a.py", line=27, fingerprint=finding_fingerprint(FINDING, "    return"))
    assert find_repeated(replace(OTHER_WORDS, line=28), "return", [there]) == there
    assert find_repeated(replace(OTHER_WORDS, line=80), "return", [there]) is None


@pytest.mark.parametrize(
    ("finding", "code"),
    [
        (replace(FINDING, path="b.py"), CODE),
        (replace(FINDING, text="Sizes below one divide by nought.", line=60), "def page_count(self):"),
    ],
)
def test_another_file_or_another_matter_elsewhere_is_none(finding: ReviewFinding, code: str) -> None:
    assert find_repeated(finding, code, [EARLIER]) is None


def test_one_whose_line_nobody_knows_any_more_is_known_by_its_code() -> None:
    outdated = replace(EARLIER, line=0)
    assert find_repeated(replace(FINDING, line=3), CODE, [outdated]) == outdated
    assert find_repeated(replace(FINDING, line=3), "something else", [outdated]) is None

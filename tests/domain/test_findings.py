"""When a finding says again what stands in the merge request already (W2)."""

from dataclasses import replace

import pytest

from hummingbird.domain.findings import Earlier, Finding, Severity, fingerprint, repeated

CODE = "    for number in range(len(entries) // size):"
FINDING = Finding(path="a.py", line=27, severity=Severity.MAJOR, text="The last page is lost.")
EARLIER = Earlier(path="a.py", line=27, fingerprint=fingerprint(FINDING, CODE))
OTHER_WORDS = replace(FINDING, text="Entries beyond the last full page never come out of this loop.")


def test_w2_the_same_words_on_the_same_line_are_a_repetition_however_they_are_written() -> None:
    assert repeated(replace(FINDING, text="the *last* page is lost"), CODE, [EARLIER]) == EARLIER


def test_w2_other_words_about_the_same_line_of_code_are_one_too_wherever_a_push_has_moved_it() -> None:
    assert repeated(OTHER_WORDS, CODE, [EARLIER]) == EARLIER
    assert repeated(replace(OTHER_WORDS, line=90), f"\t{CODE}", [EARLIER]) == EARLIER


def test_w2_in_one_and_the_same_run_two_things_may_be_said_of_a_line() -> None:
    assert repeated(OTHER_WORDS, CODE, [EARLIER], in_other_words=False) is None
    assert repeated(FINDING, CODE, [EARLIER], in_other_words=False) == EARLIER


def test_w2_the_same_words_nearby_are_a_repetition_and_far_away_they_are_not() -> None:
    assert repeated(replace(FINDING, line=30), "        changed = True", [EARLIER]) == EARLIER
    assert repeated(replace(FINDING, line=31), "        changed = True", [EARLIER]) is None


def test_w2_a_line_that_is_known_to_stand_elsewhere_silences_none_of_its_like() -> None:
    there = replace(EARLIER, followed=True, dismissed=True)
    assert repeated(OTHER_WORDS, CODE, [there]) == there
    assert repeated(replace(OTHER_WORDS, line=200), CODE, [there]) is None


def test_w2_a_line_that_any_file_has_many_of_is_the_same_only_where_it_was() -> None:
    there = Earlier(path="a.py", line=27, fingerprint=fingerprint(FINDING, "    return"))
    assert repeated(replace(OTHER_WORDS, line=28), "return", [there]) == there
    assert repeated(replace(OTHER_WORDS, line=80), "return", [there]) is None


@pytest.mark.parametrize(
    ("finding", "code"),
    [
        (replace(FINDING, path="b.py"), CODE),
        (replace(FINDING, text="Sizes below one divide by nought.", line=60), "def page_count(self):"),
    ],
)
def test_w2_another_file_or_another_matter_elsewhere_is_none(finding: Finding, code: str) -> None:
    assert repeated(finding, code, [EARLIER]) is None


def test_w2_one_whose_line_nobody_knows_any_more_is_known_by_its_code() -> None:
    outdated = replace(EARLIER, line=0)
    assert repeated(replace(FINDING, line=3), CODE, [outdated]) == outdated
    assert repeated(replace(FINDING, line=3), "something else", [outdated]) is None

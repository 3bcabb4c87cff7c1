"""Regions grouped by failure within a budget: plain values, whoever paints them."""

from hypothesis import given
from hypothesis import strategies as some

from hummingbird.evidence.failure_groups import FailureGroup, describe_confidence, group_regions
from hummingbird.evidence.printable import make_printable
from hummingbird.evidence.regions import Blame, EvidenceLine, FailureClass, Region, RegionKind

FIRST = frozenset({0})
BLAME = Blame(FailureClass.CODE, "compiler-error", 0.9, "A compiler refused a line of the code.")
OTHER_BLAME = Blame(FailureClass.TEST, "test-failed", 0.8, "A test failed.")
NO_BLAME = Blame(FailureClass.UNKNOWN, "no-rule", 0.0, "Nothing is known.")


def region(
    *texts: str,
    kind: RegionKind = RegionKind.COMPILER,
    blame: Blame = BLAME,
    name: str = "",
    first: int = 1,
    score: float = 1.0,
) -> Region:
    lines = tuple(EvidenceLine(number, text) for number, text in enumerate(texts, first))
    return Region(lines, kind, blame, name, score, "rule")


def groups_of(*regions: Region, budget: int = 8192) -> tuple[FailureGroup, ...]:
    return group_regions(regions, [FIRST] * len(regions), budget)


def excerpts(groups: tuple[FailureGroup, ...]) -> list[list[str]]:
    return [[line.text for line in place.excerpt] for group in groups for place in group.excerpts]


def test_the_same_kind_blamed_by_the_same_rule_is_one_group() -> None:
    groups = groups_of(
        region("a", name="1"), region("b", name="2", kind=RegionKind.TEST), region("c", name="3"),
        region("d", name="4", blame=OTHER_BLAME),
    )  # fmt: skip
    assert excerpts(groups) == [["a"], ["c"], ["b"], ["d"]]
    assert [len(group.excerpts) for group in groups] == [2, 1, 1]
    assert [group.repeats for group in groups] == [0, 0, 0]


def test_the_same_fingerprint_is_one_group_whatever_it_looks_like_and_counts_as_a_repeat() -> None:
    groups = groups_of(region("a", name="1"), region("b", name="1", kind=RegionKind.TEST, blame=OTHER_BLAME))
    assert [len(group.excerpts) for group in groups] == [2]
    assert (groups[0].kind, groups[0].blame, groups[0].repeats) == (RegionKind.COMPILER, BLAME, 1)
    assert [place.repeat for place in groups[0].excerpts] == [False, True]


def test_regions_without_a_fingerprint_are_no_repeats_of_each_other() -> None:
    groups = groups_of(region("a"), region("b", kind=RegionKind.TEST))
    assert [group.repeats for group in groups] == [0, 0]


def test_each_failure_is_heard_before_any_of_them_is_heard_twice() -> None:
    long = "x" * 100
    groups = groups_of(
        region("a1 " + long, "a2 " + long, name="1"), region("a3 " + long, name="2"),
        region("b1 " + long, kind=RegionKind.TEST, name="3"), budget=256,
    )  # fmt: skip
    assert [[text[:2] for text in texts] for texts in excerpts(groups)] == [["a1"], [], ["b1"]]
    assert [place.left_out for group in groups for place in group.excerpts] == [1, 1, 0]


def test_a_repeat_comes_after_other_failures_of_its_group() -> None:
    long = "x" * 100
    groups = groups_of(
        region("a" + long, name="1"), region("b" + long, name="1"), region("c" + long, name="2"), budget=300
    )
    assert [[text[0] for text in texts] for texts in excerpts(groups)] == [["a"], [], ["c"]]


def test_what_stands_next_to_the_lead_is_shown_first() -> None:
    lines = [f"{at} " + "x" * 38 for at in range(9)]
    (group,) = group_regions([region(*lines)], [frozenset({6})], 400)
    assert [line.text[0] for line in group.excerpts[0].excerpt] == ["4", "5", "6", "7"]
    assert group.excerpts[0].leads == {2}
    assert [line.number for line in group.excerpts[0].excerpt] == [5, 6, 7, 8]


def test_lines_that_were_written_over_each_other_share_their_number() -> None:
    (group,) = groups_of(region("first\nsecond", "third\r"))
    assert [(line.number, line.text) for line in group.excerpts[0].excerpt] == [
        (1, "first"),
        (1, "second"),
        (2, "third"),
    ]
    assert group.excerpts[0].leads == {0, 1}


def test_a_region_that_nothing_is_known_of_shows_a_few_lines_and_misses_none() -> None:
    (group,) = groups_of(region(*"abcdefghi", kind=RegionKind.OTHER, blame=NO_BLAME))
    assert [line.text for line in group.excerpts[0].excerpt] == ["a", "b", "c", "d"]
    assert group.excerpts[0].left_out == 0


def test_spaces_that_look_shorter_than_they_are_cost_what_they_are() -> None:
    """The document for programs has them as they came."""
    assert excerpts(groups_of(region("a" + "\u3000" * 200), budget=600)) == [[]]
    assert excerpts(groups_of(region("a" + "\u3000" * 200), budget=602)) == [["a" + "\u3000" * 200]]


def test_nothing_is_no_groups() -> None:
    assert groups_of() == ()


def test_sureness_has_a_word() -> None:
    """The same words as in a note; below 0.75 it is a guess, and says so."""
    words = [describe_confidence(Blame(FailureClass.CODE, "r", sure, "w")) for sure in (0.95, 0.75, 0.74, 0.3)]
    assert words == ["sure", "fairly sure", "not sure", "not sure"]


@given(some.lists(some.lists(some.text(max_size=400), min_size=1, max_size=6), max_size=6), some.integers(0, 2000))
def test_the_budget_holds_for_any_text_as_it_is_and_made_visible(texts: list[list[str]], budget: int) -> None:
    groups = groups_of(*(region(*lines, name=str(at % 3)) for at, lines in enumerate(texts)), budget=budget)
    shown = [text for lines in excerpts(groups) for text in lines]
    assert sum(len(text.encode("utf-8", "replace")) + 1 for text in shown) <= budget
    assert sum(len(make_printable(text).encode()) + 1 for text in shown) <= budget
    assert not any("\n" in text for text in shown)

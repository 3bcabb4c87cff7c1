"""Where a line of one commit stands in another, by diffs that git makes."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.core.diffs import CommitComparison, FileDiff
from hummingbird.service.diff_comparison import MOVE_CANDIDATES, LineFate, LineLocation, LineMoves
from tests.core.git_trees import Tree, compared
from tests.thoroughly import tries

GONE, UNKNOWN = LineLocation(LineFate.GONE), LineLocation(LineFate.UNKNOWN)
PLAIN = [f"line number {number}" for number in range(1, 41)]
BLOCK = ["def pages(self):", "    for each in self.entries:", "        yield each.page()", "    return None"]


def text(lines: list[str], end: str = "\n") -> str:
    return "".join(f"{line}{end}" for line in lines)


def stands(folder: Path, before: Tree, after: Tree, line: int, path: str = "a.py") -> LineLocation:
    return LineMoves(compared(folder, before, after)).locate(path, line)


@pytest.mark.parametrize(
    ("after", "line", "there"),
    [
        (PLAIN, 20, 20),
        (["new", *PLAIN], 20, 21),
        (PLAIN[2:], 20, 18),
        ([*PLAIN[:30], "new", *PLAIN[30:]], 20, 20),
        ([*PLAIN[:18], "new", "more", *PLAIN[18:]], 20, 22),
        ([*PLAIN[:19], "before it", *PLAIN[19:20], "behind it", *PLAIN[20:]], 20, 21),
        ([*PLAIN[:5], *PLAIN[8:30], "new", *PLAIN[30:]], 40, 38),
        (PLAIN[39:], 40, 1),
    ],
)
def test_a_line_that_is_left_alone_is_shifted_by_what_changes_before_it(
    after: list[str], line: int, there: int, tmp_path: Path
) -> None:
    found = stands(tmp_path, {"a.py": text(PLAIN)}, {"a.py": text(after)}, line)
    assert found == LineLocation(LineFate.SAME, "a.py", there)


def test_it_goes_along_when_its_file_is_renamed_and_edited(tmp_path: Path) -> None:
    after = {"src/b.py": text(["new", *PLAIN[:25], *PLAIN[30:]])}
    assert stands(tmp_path, {"a.py": text(PLAIN)}, after, 20) == LineLocation(LineFate.SAME, "src/b.py", 21)
    assert stands(tmp_path, {"a.py": text(PLAIN)}, after, 40) == LineLocation(LineFate.SAME, "src/b.py", 36)


def test_of_a_file_that_did_not_change_every_line_is_where_it_was(tmp_path: Path) -> None:
    before, after = {"a.py": text(PLAIN), "b.py": "x\n"}, {"a.py": text(PLAIN), "b.py": "y\n"}
    assert stands(tmp_path, before, after, 7) == LineLocation(LineFate.SAME, "a.py", 7)


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_block_that_is_put_elsewhere_in_its_file_takes_its_lines_along(indent: str, tmp_path: Path) -> None:
    before = [*PLAIN[:5], *BLOCK, *PLAIN[5:]]
    after = [*PLAIN[:35], *(indent + line for line in BLOCK), *PLAIN[35:]]
    found = [stands(tmp_path, {"a.py": text(before)}, {"a.py": text(after)}, line) for line in range(6, 10)]
    assert found == [LineLocation(LineFate.MOVED, "a.py", line) for line in range(36, 40)]


def test_a_block_that_goes_to_another_file_is_found_there(tmp_path: Path) -> None:
    before = {"a.py": text([*PLAIN[:5], *BLOCK, *PLAIN[5:]]), "b.py": text(PLAIN[20:30])}
    after = {"a.py": text(PLAIN), "b.py": text([*PLAIN[20:24], *BLOCK, *PLAIN[24:30]])}
    assert stands(tmp_path, before, after, 7) == LineLocation(LineFate.MOVED, "b.py", 6)


def test_a_file_that_is_deleted_while_its_text_is_spread_over_new_ones_is_followed(tmp_path: Path) -> None:
    before = {"a.py": text([*PLAIN, *BLOCK])}
    after = {"b.py": text(["first", *PLAIN[:12]]), "c.py": text(["second", *BLOCK])}
    assert stands(tmp_path, before, after, 43) == LineLocation(LineFate.MOVED, "c.py", 4)
    assert stands(tmp_path, before, after, 30).fate in (LineFate.GONE, LineFate.CHANGED)


@pytest.mark.thorough
def test_a_line_that_is_taken_away_is_gone_and_one_in_whose_place_others_stand_is_changed(tmp_path: Path) -> None:
    before = {"a.py": text(PLAIN)}
    assert stands(tmp_path, before, {"a.py": text([*PLAIN[:19], *PLAIN[20:]])}, 20) == GONE
    changed = stands(tmp_path, before, {"a.py": text(["new", *PLAIN[:19], "quite another", *PLAIN[20:]])}, 20)
    assert changed == LineLocation(LineFate.CHANGED, "a.py", 21)
    assert stands(tmp_path, before, {"b.py": "another file\n"}, 20) == GONE


@pytest.mark.parametrize(("old", "new"), [("\n", "\r\n"), ("\r\n", "\n")])
def test_other_line_ends_move_nothing(old: str, new: str, tmp_path: Path) -> None:
    found = stands(tmp_path, {"a.py": text(PLAIN, old)}, {"a.py": text(["new", *PLAIN], new)}, 20)
    assert (found.path, found.line) == ("a.py", 21)


def test_the_last_line_is_the_same_with_and_without_its_end(tmp_path: Path) -> None:
    found = stands(tmp_path, {"a.py": text(PLAIN)}, {"a.py": text(["new", *PLAIN]).removesuffix("\n")}, 40)
    assert (found.path, found.line) == ("a.py", 41)


def test_of_two_lines_that_say_the_same_each_is_found_by_what_is_around_it(tmp_path: Path) -> None:
    first = ["def one():", "    total = count(entries)", "    return total"]
    second = ["def two():", "    total = count(entries)", "    return -total"]
    before = {"a.py": text([*first, *second, *PLAIN])}
    after = {"a.py": text([*PLAIN, *second, *first])}
    moved = compared(tmp_path, before, after)
    assert LineMoves(moved).locate("a.py", 2).line == 45
    assert LineMoves(moved).locate("a.py", 5).line == 42


def test_nothing_is_guessed_where_two_places_are_as_good(tmp_path: Path) -> None:
    before = {"a.py": text([*PLAIN[:5], "the line that counts", *PLAIN[5:]])}
    after = {"a.py": text([*PLAIN, "the line that counts"]), "b.py": text(["the line that counts", "x"])}
    assert stands(tmp_path, before, {**after, "a.py": text(PLAIN), "c.py": after["b.py"]}, 6) == UNKNOWN


def test_nothing_is_guessed_where_two_lines_may_have_become_the_one(tmp_path: Path) -> None:
    alike = "the line that counts"
    before = {"a.py": text([*PLAIN[:5], alike, *PLAIN[5:20], alike, *PLAIN[20:]])}
    assert stands(tmp_path, before, {"a.py": text(PLAIN), "b.py": text([alike])}, 6) == UNKNOWN


def test_a_line_that_any_file_has_is_not_taken_for_another_one_without_anything_around_it(tmp_path: Path) -> None:
    for word, fate in (("return", UNKNOWN), ("}", GONE)):
        before = {"a.py": text([*PLAIN[:5], word, *PLAIN[5:]])}
        after = {"a.py": text(PLAIN), "b.py": text(["def f():", word])}
        assert stands(tmp_path, before, after, 6) == fate


def test_of_a_line_that_stands_everywhere_nobody_can_say_which_it_became(tmp_path: Path) -> None:
    many = ["    entries.append(None)"] * (MOVE_CANDIDATES + 1)
    assert stands(tmp_path, {"a.py": text([many[0], *PLAIN])}, {"a.py": text(PLAIN), "b.py": text(many)}, 1) == UNKNOWN


def test_of_what_a_forge_does_not_show_nobody_knows(tmp_path: Path) -> None:
    shown = FileDiff(old_path="a.py", new_path="a.py", text="@@ -1,3 +1,2 @@\n x\n-a line that counts\n y\n")
    hidden = FileDiff(old_path="b.py", new_path="b.py", text="", hidden=True)
    assert LineMoves(CommitComparison([hidden])).locate("b.py", 3) == UNKNOWN
    assert LineMoves(CommitComparison([shown, hidden])).locate("a.py", 2) == UNKNOWN, "it may have moved there"
    picture = replace(hidden, old_path="b.png", new_path="b.png")
    assert LineMoves(CommitComparison([shown, picture])).locate("a.py", 2) == GONE
    part = LineMoves(CommitComparison([shown], is_complete=False))
    assert (part.locate("a.py", 2), part.locate("c.py", 1), part.locate("a.py", 3).line) == (UNKNOWN, UNKNOWN, 2)


def test_a_new_file_under_the_name_of_one_that_was_renamed_is_not_taken_for_it() -> None:
    moved = FileDiff(old_path="a.py", new_path="b.py", text="")
    fresh = FileDiff(old_path="a.py", new_path="a.py", text="@@ -0,0 +1 @@\n+x\n", is_new=True)
    for files in ([moved, fresh], [fresh, moved]):
        assert LineMoves(CommitComparison(files)).locate("a.py", 9) == LineLocation(LineFate.SAME, "b.py", 9)


@given(st.text(alphabet=" +-@\\,0123456789ab\n\r", max_size=200), st.integers(1, 50))
def test_whatever_stands_in_a_diff_there_is_an_answer(diff: str, line: int) -> None:
    found = LineMoves(CommitComparison([FileDiff(old_path="a", new_path="a", text=diff)])).locate("a", line)
    assert (found.line > 0) == (found.fate in (LineFate.SAME, LineFate.MOVED, LineFate.CHANGED))


def counted(tree: dict[str, list[str]], line: str) -> int:
    return sum(lines.count(line) for lines in tree.values())


WORDS = st.sampled_from([*(f"unique text {number}" for number in range(30)), "", "}", "return None", "    pass"])
FILES = st.dictionaries(st.sampled_from(["a.py", "b.py", "dir/c.py"]), st.lists(WORDS, max_size=25), min_size=1)


@pytest.mark.thorough
@settings(max_examples=tries(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=FILES, after=FILES)
def test_wherever_a_line_is_told_to_stand_its_text_stands(
    before: dict[str, list[str]], after: dict[str, list[str]], tmp_path: Path
) -> None:
    was, now = ({path: text(lines) for path, lines in tree.items()} for tree in (before, after))
    moves = LineMoves(compared(tmp_path, was, now))
    for path, lines in before.items():
        for number, line in enumerate(lines, 1):
            found = moves.locate(path, number)
            if found.fate in (LineFate.SAME, LineFate.MOVED):
                assert after[found.path][found.line - 1].strip() == line.strip()
            elif found.fate in (LineFate.CHANGED, LineFate.GONE) and line.startswith("unique"):
                assert counted(after, line) < counted(before, line)

"""Which lines of a diff can carry a comment, whatever the diff is like."""

import difflib
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.diffs import Diff, DiffLine, DiffPosition, FileDiff, parse_diff_lines
from hummingbird.lab.case import case_names, find_case
from hummingbird.lab.gitlab.repository import parse_diff
from hummingbird.lab.gitlab.write import notes

HUNK = "@@ -10,4 +10,4 @@ def run():\n keep\n-old\n+new\n also\n last\n"
LINES = st.lists(
    st.sampled_from(["", " ", "a", "b", "-", "--- a", "+++ b", "@@ -1 +1 @@", "\\ x", "é\x0c\u2028z"]), max_size=30
)


def changed(text: str, old: str = "src/app.py", new: str = "src/app.py") -> Diff:
    return Diff([FileDiff(old_path=old, new_path=new, text=text)])


def test_an_added_line_has_its_new_number_a_removed_one_its_old_one_an_unchanged_one_both() -> None:
    diff, at = changed(HUNK), partial(DiffPosition, old_path="src/app.py", new_path="src/app.py")
    assert diff.find_position("src/app.py", 11) == at(new_line=11)
    assert diff.find_position("src/app.py", 11, old=True) == at(old_line=11)
    assert (
        diff.find_position("src/app.py", 12)
        == diff.find_position("src/app.py", 12, old=True)
        == at(old_line=12, new_line=12)
    )


@pytest.mark.parametrize(("path", "line"), [("src/app.py", 9), ("src/app.py", 14), ("src/app.py", 0), ("other.py", 11)])
def test_nothing_can_be_said_outside_of_the_hunks(path: str, line: int) -> None:
    assert changed(HUNK).find_position(path, line) is None
    assert changed(HUNK).line_text(path, line) == ""


def test_the_nearest_lines_are_told_in_order() -> None:
    diff = changed("@@ -1,2 +1,2 @@\n a\n b\n@@ -100,3 +100,3 @@\n c\n d\n e\n")
    assert diff.nearest_lines("src/app.py", 99, most=3) == (100, 101, 102)
    assert diff.nearest_lines("src/app.py", 50, most=2) == (1, 2)
    assert diff.nearest_lines("src/app.py", 4, most=3) == (1, 2, 100)
    assert diff.nearest_lines("nowhere.py", 4) == ()


def test_a_renamed_file_is_known_by_its_old_name_on_the_old_side() -> None:
    diff = changed(HUNK, "was.py", "is.py")
    at = partial(DiffPosition, old_path="was.py", new_path="is.py")
    assert diff.find_position("is.py", 11) == at(new_line=11)
    assert diff.find_position("was.py", 11, old=True) == diff.find_position("is.py", 11, old=True) == at(old_line=11)
    assert diff.find_position("was.py", 11) is None
    assert "was.py" in diff
    assert "is.py" in diff


def test_a_file_that_took_the_name_of_a_renamed_one_is_not_confused_with_it() -> None:
    moved = FileDiff(old_path="a.py", new_path="b.py", text="@@ -1 +1 @@\n-x\n+y\n")
    fresh = FileDiff(old_path="a.py", new_path="a.py", text="@@ -0,0 +1,2 @@\n+one\n+two\n")
    diff = Diff([moved, fresh])
    assert diff.find_position("a.py", 2) == DiffPosition(old_path="a.py", new_path="a.py", new_line=2)
    assert diff.find_position("b.py", 1) == DiffPosition(old_path="a.py", new_path="b.py", new_line=1)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("\n", []),
        ("Binary files differ\n", []),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n", [DiffLine(1, 0, "x"), DiffLine(0, 1, "y")]),
        ("@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n", [DiffLine(1, 0, "x"), DiffLine(0, 1, "y")]),
        ("@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n", [DiffLine(1, 1, "a"), DiffLine(2, 0, "b"), DiffLine(0, 2, "c")]),
        ("@@ -1,3 +1,3 @@\n a\n\n b", [DiffLine(1, 1, "a"), DiffLine(2, 2, ""), DiffLine(3, 3, "b")]),
        ("@@ -1 +1 @@\n a\n+beyond what the hunk says\n", [DiffLine(1, 1, "a")]),
        ("@@ -1,9 +1,9 @@\n a\n", [DiffLine(1, 1, "a")]),
        ("@@ -9999999999 +1 @@\n-a\n+b\n", []),
        ("@@ -1,x +1 @@\n-a\n+b\n", []),
        ("@@@ -1 -1 +1 @@@\n-a\n+b\n", []),
        (" @@ -1 +1 @@\n-a\n", []),
        ("@@ -0,0 +1 @@\n+first\n", [DiffLine(0, 1, "first")]),
        ("@@ -1 +0,0 @@\n-last\n", [DiffLine(1, 0, "last")]),
        ("@@ -1 +1 @@\n-@@ -5 +5 @@\n+x\n", [DiffLine(1, 0, "@@ -5 +5 @@"), DiffLine(0, 1, "x")]),
    ],
)
def test_a_diff_may_look_like_anything(text: str, lines: list[DiffLine]) -> None:
    assert list(parse_diff_lines(text)) == lines


def test_line_nought_and_a_number_that_is_claimed_twice_are_no_places_to_comment_on() -> None:
    diff = changed("@@ -0,1 +0,1 @@\n zero\n@@ -5 +5 @@\n first\n@@ -5 +5 @@\n second\n")
    assert diff.find_position("src/app.py", 0) is None
    assert diff.line_text("src/app.py", 5) == "first"


@given(LINES, LINES, st.integers(0, 4))
def test_every_line_is_where_the_files_have_it_and_no_change_is_missing(
    old: list[str], new: list[str], around: int
) -> None:
    hunks = list(difflib.unified_diff(old, new, n=around, lineterm=""))[2:]
    found = list(parse_diff_lines("".join(f"{line}\n" for line in hunks)))
    assert all(old[line.old - 1] == line.text for line in found if line.old)
    assert all(new[line.new - 1] == line.text for line in found if line.new)
    assert sum(not line.new for line in found) == sum(line.startswith("-") for line in hunks)
    assert sum(not line.old for line in found) == sum(line.startswith("+") for line in hunks)


@given(st.text(st.sampled_from("@-+ 0159,\n\r\\ax"), max_size=200))
def test_hostile_text_is_no_diff_and_breaks_nothing(text: str) -> None:
    diff = changed(text)
    for line in parse_diff_lines(text):
        assert not line.new or diff.find_position("src/app.py", line.new) is not None
        assert not line.old or diff.find_position("src/app.py", line.old, old=True) is not None


@pytest.mark.thorough
def test_a_large_diff_is_read_whole() -> None:
    count = 40_000
    diff = changed(f"@@ -0,0 +1,{count} @@\n" + "+a line of thirty letters, no more\n" * count)
    assert diff.find_position("src/app.py", count) is not None
    assert diff.find_position("src/app.py", count + 1) is None


@pytest.mark.parametrize("name", case_names())
def test_every_place_of_a_cases_diff_is_one_that_gitlab_takes(name: str) -> None:
    case = find_case(name)
    patch = (case.list_files("gitlab") and case.read_text("gitlab/diff.patch")) or ""
    for file in parse_diff(patch):
        taken = {(old or 0, new or 0) for old, new in notes.diff_lines(file)}
        assert {(line.old, line.new) for line in parse_diff_lines(file.diff)} == taken

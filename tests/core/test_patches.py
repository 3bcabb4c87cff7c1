"""When two diffs are the same change."""

from dataclasses import replace

import pytest

from hummingbird.core.diffs import FileDiff
from hummingbird.service.diff_comparison import PATCH_FILES, PATCH_LINES, diff_fingerprint

ONE = FileDiff(old_path="a.py", new_path="a.py", text="@@ -3,2 +3,3 @@ def f():\n one\n+two\n three\n")
OTHER = FileDiff(old_path="b.py", new_path="c.py", text="@@ -1 +1 @@\n-x\n+y\n")


def test_on_top_of_another_commit_and_in_another_order_it_is_the_same_change() -> None:
    further_down = replace(ONE, text=ONE.text.replace("@@ -3,2 +3,3 @@ def f():", "@@ -90,2 +91,3 @@ class G:"))
    assert diff_fingerprint([ONE, OTHER]) == diff_fingerprint([OTHER, further_down]) != ""


@pytest.mark.parametrize(
    "changed",
    [
        replace(ONE, text=ONE.text.replace("+two", "+two ")),
        replace(ONE, text=ONE.text.replace("+two", "+two\r")),
        replace(ONE, text=ONE.text.replace(" one", " another")),
        replace(ONE, text=ONE.text.replace("+two", "-two")),
        replace(ONE, new_path="d.py"),
        replace(ONE, modes="100644→100755"),
        replace(ONE, is_new=True),
    ],
)
def test_whatever_a_reviewer_could_see_makes_it_another_change(changed: FileDiff) -> None:
    assert diff_fingerprint([changed, OTHER]) != diff_fingerprint([ONE, OTHER])


def test_a_line_does_not_wander_from_one_file_or_part_to_another_unseen() -> None:
    two = replace(ONE, text="@@ -1 +1,2 @@\n a\n+b\n@@ -9 +10,2 @@\n c\n+d\n")
    assert diff_fingerprint([two]) != diff_fingerprint([replace(two, text="@@ -1 +1,4 @@\n a\n+b\n c\n+d\n")])
    assert diff_fingerprint([ONE]) != diff_fingerprint([ONE, OTHER])


@pytest.mark.parametrize(
    "files",
    [
        [],
        [ONE, replace(OTHER, text="", hidden=True)],
        [ONE] * PATCH_FILES,
        [replace(ONE, text="@@ -0,0 +1,9 @@\n" + "+x\n" * PATCH_LINES)],
    ],
)
def test_of_what_is_not_shown_as_a_whole_nobody_can_tell(files: list[FileDiff]) -> None:
    assert diff_fingerprint(files) == ""

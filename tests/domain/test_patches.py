"""When two diffs are the same change (W2)."""

from dataclasses import replace

import pytest

from hummingbird.domain.diffs import FileDiff
from hummingbird.domain.patches import identity
from hummingbird.domain.review_limits import PATCH_FILES, PATCH_LINES

ONE = FileDiff(old_path="a.py", new_path="a.py", text="@@ -3,2 +3,3 @@ def f():\n one\n+two\n three\n")
OTHER = FileDiff(old_path="b.py", new_path="c.py", text="@@ -1 +1 @@\n-x\n+y\n")


def test_w2_on_top_of_another_commit_and_in_another_order_it_is_the_same_change() -> None:
    further_down = replace(ONE, text=ONE.text.replace("@@ -3,2 +3,3 @@ def f():", "@@ -90,2 +91,3 @@ class G:"))
    assert identity([ONE, OTHER]) == identity([OTHER, further_down]) != ""


@pytest.mark.parametrize(
    "changed",
    [
        replace(ONE, text=ONE.text.replace("+two", "+two ")),
        replace(ONE, text=ONE.text.replace("+two", "+two\r")),
        replace(ONE, text=ONE.text.replace(" one", " another")),
        replace(ONE, text=ONE.text.replace("+two", "-two")),
        replace(ONE, new_path="d.py"),
        replace(ONE, modes="100644→100755"),
        replace(ONE, born=True),
    ],
)
def test_w2_whatever_a_reviewer_could_see_makes_it_another_change(changed: FileDiff) -> None:
    assert identity([changed, OTHER]) != identity([ONE, OTHER])


def test_w2_a_line_does_not_wander_from_one_file_or_part_to_another_unseen() -> None:
    two = replace(ONE, text="@@ -1 +1,2 @@\n a\n+b\n@@ -9 +10,2 @@\n c\n+d\n")
    assert identity([two]) != identity([replace(two, text="@@ -1 +1,4 @@\n a\n+b\n c\n+d\n")])
    assert identity([ONE]) != identity([ONE, OTHER])


@pytest.mark.parametrize(
    "files",
    [
        [],
        [ONE, replace(OTHER, text="", hidden=True)],
        [ONE] * PATCH_FILES,
        [replace(ONE, text="@@ -0,0 +1,9 @@\n" + "+x\n" * PATCH_LINES)],
    ],
)
def test_w2_of_what_is_not_shown_as_a_whole_nobody_can_tell(files: list[FileDiff]) -> None:
    assert identity(files) == ""

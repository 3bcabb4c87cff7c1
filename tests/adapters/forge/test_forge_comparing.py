"""What differs between two commits, and which of it GitLab does not show (W2), over HTTP."""

from typing import Any

import pytest

from hummingbird.adapters.forge.parsing import file_diff_of
from hummingbird.adapters.forge.writing import GitLabForge
from hummingbird.domain.diffs import Comparison
from hummingbird.domain.errors import ForgeMissing, ForgeRefused
from hummingbird.domain.notes import Draft, Marker
from hummingbird.lab.gitlab.diffs import files_of
from hummingbird.lab.gitlab.lab import GitLabLab
from hummingbird.lab.gitlab.store import World
from hummingbird.lab.planned import Answer
from tests.adapters.forge.forging import asked
from tests.lab.gitlab.written_case import HEAD, PARENT

COMPARE = "*/repository/compare"
RENAMED = """diff --git a/src/app.py b/src/tool.py
similarity index 90%
rename from src/app.py
rename to src/tool.py
index 1111111..2222222 100644
--- a/src/app.py
+++ b/src/tool.py
@@ -1,2 +1,3 @@
 keep
+new
 also
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git a/b.py b/b.py
new file mode 100644
index 0000000..1111111
--- /dev/null
+++ b/b.py
@@ -0,0 +1 @@
+x
"""


async def test_w2_two_commits_are_compared_with_renames_modes_and_new_files(lab: GitLabLab, forge: GitLabForge) -> None:
    def differ(world: World) -> None:
        world.compared[PARENT, HEAD] = files_of(RENAMED)

    lab.ask(differ)
    found = await forge.compare(PARENT, HEAD)
    assert [(file.old_path, file.new_path) for file in found.files] == [
        ("src/app.py", "src/tool.py"),
        ("run.sh", "run.sh"),
        ("b.py", "b.py"),
    ]
    assert found.files[0].text.startswith("@@ -1,2 +1,3 @@")
    assert [(file.hidden, file.born, file.modes) for file in found.files] == [
        (False, False, ""),
        (False, False, "100644→100755"),
        (False, True, "0→100644"),
    ]
    assert found.whole
    (seen,) = [one for one in lab.requests if one.path.endswith("/compare")]
    assert "straight=true" in seen.query


async def test_w2_a_commit_that_nobody_keeps_is_missing_and_what_is_none_is_not_asked_for(
    lab: GitLabLab, forge: GitLabForge
) -> None:
    for old in ("9" * 40, "main", "", "../../user"):
        with pytest.raises(ForgeMissing):
            await forge.compare(old, HEAD)
    assert asked(lab, "GET", "/compare") == 1


async def test_w2_a_file_that_is_too_large_to_be_shown_is_hidden_and_not_the_same(
    lab: GitLabLab, forge: GitLabForge
) -> None:
    def differ(world: World) -> None:
        world.compared[PARENT, HEAD] = files_of(RENAMED)
        world.limits.collapsed_bytes, world.limits.too_large_bytes = 10, 40

    lab.ask(differ)
    found = await forge.compare(PARENT, HEAD)
    assert [(file.text, file.hidden) for file in found.files] == [("", True), ("", False), ("", True)]
    assert found.whole


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        ({"diffs": [], "compare_timeout": True}, False),
        ({"diffs": [{"old_path": "a", "new_path": "a", "diff": ""}, 7]}, False),
        ({"diffs": [{"new_path": "a"}]}, False),
        ({"diffs": []}, True),
    ],
)
async def test_w2_a_comparison_that_lacks_something_says_so(
    body: dict[str, Any], whole: bool, lab: GitLabLab, forge: GitLabForge
) -> None:
    lab.world.faults.plan(COMPARE, Answer(200, body))
    assert (await forge.compare(PARENT, HEAD)).whole is whole


async def test_w2_what_is_no_comparison_is_refused(lab: GitLabLab, forge: GitLabForge) -> None:
    lab.world.faults.plan(COMPARE, Answer(200, {"message": "soon"}))
    with pytest.raises(ForgeRefused):
        await forge.compare(PARENT, HEAD)
    assert await forge.compare(HEAD, HEAD) == Comparison()


@pytest.mark.parametrize(
    ("row", "hidden"),
    [
        ({}, True),
        ({"too_large": False, "collapsed": False}, True),
        ({"too_large": False, "collapsed": False, "renamed_file": True}, False),
        ({"renamed_file": True}, True),
        ({"too_large": False, "collapsed": False, "a_mode": "100644", "b_mode": "100755"}, False),
        ({"too_large": True, "collapsed": False, "renamed_file": True}, True),
        ({"diff": "@@ -1 +1 @@\n-x\n+y\n"}, False),
    ],
)
def test_facts_2_2_no_text_is_no_change_only_where_gitlab_can_be_taken_at_its_word(
    row: dict[str, Any], hidden: bool
) -> None:
    """Old servers do not say which files are too large to be shown."""
    given = {"a_mode": "100644", "b_mode": "100644", **row}
    assert file_diff_of({"old_path": "a", "new_path": "b", "diff": "", **given}).hidden is hidden


async def test_w2_who_has_resolved_a_thread_is_seen_and_it_can_be_opened_again(
    lab: GitLabLab, forge: GitLabForge
) -> None:
    posted = await forge.open_thread(7, Draft(text="x", marker=Marker(id="s")), internal=False)
    await forge.resolve(7, posted.discussion_id)
    thread = await forge.thread(7, posted.discussion_id)
    assert thread is not None
    assert (thread.resolved, thread.resolved_by_bot) == (True, True)
    assert thread.resolved_at > thread.notes[0].made_at > 0
    for _ in range(2):
        await forge.reopen(7, posted.discussion_id)
    thread = await forge.thread(7, posted.discussion_id)
    assert thread is not None
    assert (thread.resolved, thread.resolved_by_bot, thread.resolved_at) == (False, False, 0.0)

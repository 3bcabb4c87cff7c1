"""What differs between two commits, and which of it GitLab does not show, over HTTP."""

from typing import Any

import pytest

from hummingbird.core.diffs import CommitComparison
from hummingbird.core.errors import GitLabNotFound, GitLabRequestRefused
from hummingbird.gitlab.write.api_response import parse_file_diff
from hummingbird.gitlab.write.project_writer import GitLabProjectWriter
from hummingbird.gitlab.write.protocol import NoteDraft, NoteMarker
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.gitlab.repository import parse_diff
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.gitlab.write.writer_stage import asked
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


async def test_two_commits_are_compared_with_renames_modes_and_new_files(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    def differ(world: GitLabWorld) -> None:
        world.compared[PARENT, HEAD] = parse_diff(RENAMED)

    lab.run_in_server(differ)
    found = await forge.compare_commits(PARENT, HEAD)
    assert [(file.old_path, file.new_path) for file in found.files] == [
        ("src/app.py", "src/tool.py"),
        ("run.sh", "run.sh"),
        ("b.py", "b.py"),
    ]
    assert found.files[0].text.startswith("@@ -1,2 +1,3 @@")
    assert [(file.hidden, file.is_new, file.modes) for file in found.files] == [
        (False, False, ""),
        (False, False, "100644→100755"),
        (False, True, "0→100644"),
    ]
    assert found.is_complete
    (seen,) = [one for one in lab.requests if one.path.endswith("/compare")]
    assert "straight=true" in seen.query


async def test_a_commit_that_nobody_keeps_is_missing_and_what_is_none_is_not_asked_for(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    for old in ("9" * 40, "main", "", "../../user"):
        with pytest.raises(GitLabNotFound):
            await forge.compare_commits(old, HEAD)
    assert asked(lab, "GET", "/compare") == 1


async def test_a_file_that_is_too_large_to_be_shown_is_hidden_and_not_the_same(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    def differ(world: GitLabWorld) -> None:
        world.compared[PARENT, HEAD] = parse_diff(RENAMED)
        world.limits.collapsed_bytes, world.limits.too_large_bytes = 10, 40

    lab.run_in_server(differ)
    found = await forge.compare_commits(PARENT, HEAD)
    assert [(file.text, file.hidden) for file in found.files] == [("", True), ("", False), ("", True)]
    assert found.is_complete


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        ({"diffs": [], "compare_timeout": True}, False),
        ({"diffs": [{"old_path": "a", "new_path": "a", "diff": ""}, 7]}, False),
        ({"diffs": [{"new_path": "a"}]}, False),
        ({"diffs": []}, True),
    ],
)
async def test_a_comparison_that_lacks_something_says_so(
    body: dict[str, Any], whole: bool, lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    lab.world.faults.plan(COMPARE, FaultResponse(200, body))
    assert (await forge.compare_commits(PARENT, HEAD)).is_complete is whole


async def test_what_is_no_comparison_is_refused(lab: GitLabLab, forge: GitLabProjectWriter) -> None:
    lab.world.faults.plan(COMPARE, FaultResponse(200, {"message": "soon"}))
    with pytest.raises(GitLabRequestRefused):
        await forge.compare_commits(PARENT, HEAD)
    assert await forge.compare_commits(HEAD, HEAD) == CommitComparison()


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
    assert parse_file_diff({"old_path": "a", "new_path": "b", "diff": "", **given}).hidden is hidden


async def test_who_has_resolved_a_thread_is_seen_and_it_can_be_opened_again(
    lab: GitLabLab, forge: GitLabProjectWriter
) -> None:
    posted = await forge.open_thread(7, NoteDraft(text="x", marker=NoteMarker(id="s")), internal=False)
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

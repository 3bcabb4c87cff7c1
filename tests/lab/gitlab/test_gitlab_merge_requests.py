"""Merge requests and their diffs."""

from typing import Any

import pytest

from hummingbird.lab.gitlab.repository import parse_diff, undo_diff
from hummingbird.lab.gitlab.world import GitLabWorld
from tests.lab.gitlab.asking import BASE, HEAD, MERGED, MR, PROJECT, TINY, Web


def test_facts_2_1_a_merge_request_is_shown_whole(web: Web) -> None:
    shown = web.json(MR)
    assert (shown["sha"], shown["changes_count"], shown["state"]) == (HEAD, "4", "opened")
    assert shown["diff_refs"] == {"base_sha": BASE, "head_sha": HEAD, "start_sha": "b1" * 20}
    assert shown["references"]["full"] == "acme/widgets!7"
    assert shown["web_url"] == f"{web.lab.url}/acme/widgets/-/merge_requests/7"
    assert shown["description"] == f"See {web.lab.url}/help"
    assert [each["username"] for each in shown["reviewers"]] == ["grace"]


def test_facts_1_1_the_head_pipeline_may_run_on_another_commit(web: Web) -> None:
    shown = web.json(MR)
    assert (shown["head_pipeline"]["id"], shown["head_pipeline"]["sha"]) == (9002, MERGED)
    assert shown["head_pipeline"]["ref"] == "refs/merge-requests/7/merge"
    assert shown["pipeline"]["id"] == 9002
    assert "user" not in shown["pipeline"]


def test_facts_2_1_mergeability_flips_between_two_reads(web: Web) -> None:
    assert [web.json(MR)["detailed_merge_status"] for _ in range(2)] == ["checking", "discussions_not_resolved"]


def test_facts_2_1_while_it_is_prepared_there_is_no_sha(web: Web) -> None:
    web.lab.run_in_server(lambda world: setattr(world.merge_request, "sha", None))
    shown = web.json(MR)
    gone = [shown[name] for name in ("sha", "diff_refs", "changes_count", "prepared_at")]
    assert gone == [None] * 4
    assert shown["detailed_merge_status"] == "preparing"
    assert web.json(f"{MR}/versions") == []


def test_facts_2_1_a_draft_is_told_twice(web: Web) -> None:
    web.lab.run_in_server(lambda world: setattr(world.merge_request, "draft", True))
    web.json(MR)
    shown = web.json(MR)
    assert (shown["draft"], shown["work_in_progress"], shown["detailed_merge_status"]) == (True, True, "draft_status")


def test_facts_2_1_more_files_than_are_counted_make_a_plus(web: Web) -> None:
    web.lab.run_in_server(lambda world: setattr(world.limits, "files", 3))
    assert web.json(MR)["changes_count"] == "3+"
    assert len(web.json(f"{MR}/diffs")) == 3
    assert web.json(f"{MR}/changes")["overflow"] is True


def test_facts_2_1_a_fork_s_merge_request_names_two_projects(web: Web) -> None:
    web.lab.run_in_server(lambda world: setattr(world.merge_request, "source_project_id", 202))
    shown = web.json(MR)
    assert (shown["source_project_id"], shown["target_project_id"]) == (202, 101)


def test_facts_1_2_a_deleted_fork_is_no_project(web: Web) -> None:
    def delete(world: GitLabWorld) -> None:
        world.merge_request.source_project_id = None
        world.projects = [each for each in world.projects if each.id != 202]
        world.pipelines = [each for each in world.pipelines if each.project_id != 202]

    web.lab.run_in_server(delete)
    shown = web.json(MR)
    assert (shown["source_project_id"], shown["target_project_id"], shown["sha"]) == (None, 101, HEAD)
    assert shown["allow_collaboration"] is True
    assert web.get("/projects/202").status_code == 404
    (version,) = web.ids(f"{MR}/versions")
    assert web.json(f"{MR}/versions/{version}")["commits"][0]["id"] == HEAD


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=opened", [5001]),
        ("state=closed", []),
        ("state=all", [5001]),
        ("source_branch=feature/faster", [5001]),
        ("source_branch=main", []),
        ("target_branch=main&author_username=ada&labels=bug", [5001]),
        ("iids[]=7", [5001]),
        ("iids[]=8", []),
        ("author_id=12", []),
        ("wip=yes", []),
        ("search=FASTER", [5001]),
    ],
)
def test_merge_requests_are_filtered(web: Web, query: str, found: list[int]) -> None:
    assert web.ids(f"{PROJECT}/merge_requests?{query}") == found


def test_facts_2_2_the_raw_diff_is_git_s_own_text(web: Web) -> None:
    answer = web.get(f"{MR}/raw_diffs")
    assert answer.content == (TINY.folder / "gitlab/diff.patch").read_bytes()
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["cache-control"] == "no-cache"


def test_facts_2_2_diffs_name_what_happened_to_a_file(web: Web) -> None:
    new, gone, moved, changed = web.json(f"{MR}/diffs")
    assert (new["new_file"], new["a_mode"], new["old_path"]) == (True, "0", "docs/new.md")
    assert (gone["deleted_file"], gone["b_mode"], gone["new_path"]) == (True, "0", "docs/old.md")
    assert (moved["renamed_file"], moved["old_path"], moved["new_path"]) == (True, "docs/names.txt", "docs/words.txt")
    assert (changed["a_mode"], changed["new_file"], changed["generated_file"]) == ("100644", False, False)


def test_facts_2_2_the_names_are_in_the_text_only_for_those_who_ask(web: Web) -> None:
    assert web.json(f"{MR}/diffs")[3]["diff"].startswith("@@ -1,6 +1,6 @@")
    assert web.json(f"{MR}/diffs?unidiff=true")[3]["diff"].startswith(
        "--- a/src/widgets.txt\n+++ b/src/widgets.txt\n@@"
    )
    assert web.json(f"{MR}/diffs?unidiff=true")[0]["diff"].startswith("--- /dev/null\n+++ b/docs/new.md\n")


@pytest.mark.parametrize(("limit", "mark"), [("too_large_bytes", "too_large"), ("collapsed_bytes", "collapsed")])
def test_facts_2_2_a_large_file_has_no_text_though_it_changed(web: Web, limit: str, mark: str) -> None:
    web.lab.run_in_server(lambda world: setattr(world.limits, limit, 10))
    changed = web.json(f"{MR}/diffs")[3]
    assert (changed["diff"], changed[mark]) == ("", True)
    whole = web.json(f"{MR}/changes")
    assert (whole["overflow"], whole["changes"][3]["diff"]) == (True, "")
    raw = web.json(f"{MR}/changes?access_raw_diffs=true")
    assert (raw["overflow"], raw["changes"][3]["diff"][:2]) == (False, "@@")


def test_facts_2_2_limits_hold_for_the_raw_diff_too(web: Web) -> None:
    web.lab.run_in_server(lambda world: setattr(world.limits, "too_large_bytes", 10))
    text = web.get(f"{MR}/raw_diffs").text
    assert "diff --git a/src/widgets.txt" in text
    assert "return a - b" not in text


def test_versions_tell_the_shas_that_positions_need(web: Web) -> None:
    (only,) = web.json(f"{MR}/versions")
    assert (only["head_commit_sha"], only["base_commit_sha"], only["real_size"]) == (HEAD, BASE, "4")
    assert len(web.json(f"{MR}/versions/{only['id']}")["diffs"]) == 4
    assert web.get(f"{MR}/versions/1").status_code == 404


def test_commits_come_newest_first(web: Web) -> None:
    assert web.ids(f"{MR}/commits") == [HEAD, "a2" * 20]


def test_pipelines_of_the_merge_request_come_before_those_of_its_branch(web: Web) -> None:
    assert web.ids(f"{MR}/pipelines") == [9002, 9001, 9003, 7500]
    web.lab.run_in_server(lambda world: setattr(world.fork, "visibility", "private"))
    assert web.ids(f"{MR}/pipelines") == [9002, 9001, 9003]


def test_a_merge_request_without_a_diff_has_no_files(web: Web) -> None:
    def empty(world: GitLabWorld) -> None:
        world.merge_request.files, world.merge_request.diff_text = [], ""

    web.lab.run_in_server(empty)
    assert (web.json(f"{MR}/diffs"), web.get(f"{MR}/raw_diffs").text) == ([], "")


PATCH = """diff --git a/a b/a
old mode 100644
new mode 100755
diff --git "a/caf\\303\\251" "b/caf\\303\\251"
index 1..2 100644
--- "a/caf\\303\\251"
+++ "b/caf\\303\\251"
@@ -1 +1,2 @@
 one
+two
diff --git a/pic.png b/pic.png
index 1..2 100644
Binary files a/pic.png and b/pic.png differ
"""


def test_diffs_of_modes_odd_names_and_pictures_are_read() -> None:
    mode, named, picture = parse_diff(PATCH)
    assert (mode.a_mode, mode.b_mode, mode.diff) == ("100644", "100755", "")
    assert (named.new_path, undo_diff(named, "one\ntwo\n")) == ("café", "one\n")
    assert (picture.new_path, picture.diff) == ("pic.png", "")
    assert "".join(each.header + each.diff for each in (mode, named, picture)) == PATCH


def test_a_diff_that_does_not_fit_is_not_undone() -> None:
    (_mode, named, _picture) = parse_diff(PATCH)
    assert undo_diff(named, "other\n") is None


def keys(raw: Any) -> set[str]:
    return set(raw)


def test_lists_leave_out_what_only_the_whole_has(web: Web) -> None:
    listed, whole = web.json(f"{PROJECT}/merge_requests")[0], web.json(MR)
    assert keys(whole) - keys(listed) >= {"head_pipeline", "diff_refs", "changes_count"}
    assert keys(listed) <= keys(whole)

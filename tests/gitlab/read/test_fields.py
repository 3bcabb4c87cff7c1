"""What is passed on of GitLab's objects: the fields that are named, whatever else comes."""

import json
from pathlib import Path
from typing import Any

import pytest

from hummingbird.gitlab.read import fields

API = Path(__file__).parents[2] / "fixtures/gitlab/api"
HOME = "https://gitlab.example.com"


def captured(name: str) -> Any:
    return json.loads((API / name).read_text())


def test_the_documented_merge_request_is_read_and_its_pipeline_told_apart() -> None:
    """Facts 1.1: a merged-results pipeline runs on another commit than the head."""
    raw = captured("mr_get_doc.json")
    found = fields.pick_merge_request(raw, 30)
    assert found["sha"] == raw["sha"]
    assert found["author"] == raw["author"]["username"]
    assert found["author_access"] == 30
    assert found["head_pipeline"]["sha"] != found["sha"]
    assert fields.MERGED_RESULTS in found["remarks"]
    assert "avatar_url" not in json.dumps(found)
    assert raw["author"]["name"] not in json.dumps(found)


def test_an_outsiders_username_is_not_shown() -> None:
    raw = captured("mr_get_doc.json")
    assert "author" not in fields.pick_merge_request(raw, 20)
    assert fields.pick_merge_request(raw, None)["author_access"] == "unknown"


@pytest.mark.parametrize("sha", [None, ""])
def test_a_merge_request_without_a_head_says_so(sha: str | None) -> None:
    raw = {**captured("mr_get_doc.json"), "sha": sha, "diff_refs": None, "head_pipeline": None}
    assert fields.pick_merge_request(raw, 0)["remarks"] == [fields.NO_HEAD]


def test_a_deleted_fork_says_so() -> None:
    """Facts 1.2: the source may be null."""
    raw = {**captured("mr_get_doc.json"), "source_project_id": None, "head_pipeline": None}
    found = fields.pick_merge_request(raw, 0)
    assert found["remarks"] == [fields.NO_SOURCE]
    assert found["from_fork"] is True


def test_captured_commits_and_files_of_a_diff_are_read() -> None:
    commits = [fields.pick_commit(raw) for raw in captured("mr_commits.json")]
    assert all(each["id"] and each["title"] for each in commits)
    assert "author_email" not in json.dumps(commits)
    files = [fields.pick_file_diff(raw) for raw in captured("mr_diffs_page1.json")]
    assert all(each["new_path"] and "no_text" not in each for each in files)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"collapsed": True}, fields.COLLAPSED),
        ({"too_large": True, "collapsed": True}, fields.TOO_LARGE),
        ({}, fields.NO_TEXT),
        ({"renamed_file": True}, None),
        ({"new_file": True}, None),
        ({"b_mode": "100755"}, None),
    ],
)
def test_a_file_without_text_says_why(flags: dict[str, Any], said: str | None) -> None:
    """Facts 2.2: absence of text is not absence of change."""
    raw = {"old_path": "a", "new_path": "a", "a_mode": "100644", "b_mode": "100644", "diff": "", **flags}
    assert fields.pick_file_diff(raw).get("no_text") == said


@pytest.mark.parametrize("name", ["commit_statuses.json", "derived_commit_statuses_konflux.json"])
def test_captured_statuses_are_read(name: str) -> None:
    raws = captured(name)
    found = [fields.pick_status(raw) for raw in raws]
    assert [each["name"] for each in found] == [raw["name"] for raw in raws]
    assert {each["kind"] for each in found} <= {"job", "external"}
    assert "avatar_url" not in json.dumps(found)


def test_a_native_job_is_told_by_its_own_id_in_its_address() -> None:
    """Facts 2.5. GitLab may be asked at another address than it writes."""
    native = {"id": 7, "name": "unit", "target_url": f"{HOME}/acme/widgets/-/jobs/7"}
    assert fields.pick_status(native) == {**native, "kind": "job", "job_id": 7}
    for address in (f"{HOME}/acme/widgets/-/jobs/8", f"{HOME}/acme/-/pipelines/7", f"{HOME}/-/jobs/7?x", None, ""):
        found = fields.pick_status({**native, "target_url": address})
        assert found["kind"] == "external"
        assert "job_id" not in found


def test_konflux_rows_are_external_and_native_ones_are_jobs() -> None:
    rows = captured("derived_commit_statuses_konflux.json")
    native = [raw for raw in rows if "/-/jobs/" in (raw["target_url"] or "")]
    found = [fields.pick_status(raw) for raw in rows]
    assert [each["job_id"] for each in found if each["kind"] == "job"] == [raw["id"] for raw in native]
    assert len(native) < len(rows)


def test_all_but_the_newest_job_of_a_name_were_retried() -> None:
    jobs = [{"id": 3, "name": "a"}, {"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    assert fields.mark_retried(jobs) == [jobs[0], {**jobs[1], "retried": True}, jobs[2]]


def test_failed_suites_and_in_them_failed_cases_come_first() -> None:
    case = {"name": "t", "classname": "c", "stack_trace": "s", "system_output": "o"}
    fine = {"name": "fine", "test_cases": [{**case, "status": "success"}]}
    bad = {"name": "bad", "test_cases": [{**case, "status": "skipped"}, {**case, "status": "failed"}, "junk"]}
    broken = {"name": "broken", "suite_error": "JUnit data parsing failed", "test_cases": None}
    found = fields.pick_test_suites({"test_suites": [fine, bad, broken, None]})
    assert [suite["name"] for suite in found] == ["bad", "broken", "fine"]
    assert [each["status"] for each in found[0]["test_cases"]] == ["failed", "skipped"]
    assert found[0]["test_cases"][0]["stack_trace"] == "s"
    assert "stack_trace" not in found[2]["test_cases"][0]

"""What is passed on of GitLab's objects, field by field: all else (avatars, mail addresses, names that people gave
themselves) stays behind. Pure, and forgiving: a field that is missing or null is left out.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hummingbird.domain.access import DEVELOPER

_MERGE_REQUEST = (
    "iid", "title", "description", "state", "draft", "labels", "source_branch", "target_branch", "source_project_id",
    "target_project_id", "sha", "merge_commit_sha", "squash_commit_sha", "changes_count", "has_conflicts",
    "detailed_merge_status", "blocking_discussions_resolved", "created_at", "updated_at", "merged_at", "closed_at",
    "web_url",
)  # fmt: skip
_REFS = ("base_sha", "start_sha", "head_sha")
_PIPELINE = ("id", "sha", "ref", "source", "status", "created_at", "updated_at", "web_url")
_COMMIT = ("id", "title", "message", "parent_ids", "authored_date", "committed_date")
_STATUS = (
    "id", "sha", "ref", "name", "status", "description", "target_url", "allow_failure", "pipeline_id", "created_at",
    "started_at", "finished_at",
)  # fmt: skip
_JOB = (
    "id", "name", "stage", "status", "failure_reason", "allow_failure", "created_at", "started_at", "finished_at",
    "duration", "web_url",
)  # fmt: skip
_NO_REPORTS = ("archive", "metadata", "trace")  # artifacts of a job that report nothing
_FILE = (
    "old_path", "new_path", "a_mode", "b_mode", "new_file", "renamed_file", "deleted_file", "generated_file",
    "collapsed", "too_large", "diff",
)  # fmt: skip
_SUITE = (
    "name",
    "total_time",
    "total_count",
    "success_count",
    "failed_count",
    "skipped_count",
    "error_count",
    "suite_error",
)
_CASE = ("status", "name", "classname", "file", "execution_time", "system_output", "stack_trace", "recent_failures")
_CASE_SHORT = ("status", "name", "classname")
_BAD = ("failed", "error")
_JOB_ADDRESS = re.compile(r"/-/(?:jobs|builds)/(\d{1,19})/?\Z")

NO_HEAD = (
    "This merge request has no head commit: it is new and GitLab still prepares it, or its branch is empty or gone. "
    "There is no diff and there are no statuses yet."
)
NO_SOURCE = (
    "The source project is gone or not visible: the fork was deleted. Diff and commits can still be read here; the "
    "branch itself cannot."
)
MERGED_RESULTS = (
    "The newest pipeline ran on another commit than `sha` (a merge of source and target that GitLab made): its own "
    "jobs are listed under head_pipeline.sha, external statuses under `sha`."
)
COLLAPSED = "The text of this file's diff is left out by GitLab because it is large (collapsed); the file did change."
TOO_LARGE = "The text of this file's diff is left out by GitLab because it is too large; the file did change."
NO_TEXT = "GitLab gives no text for this file's diff: it is binary, or too large. The file did change."


def picked(raw: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: raw[name] for name in names if raw.get(name) is not None}


def merge_request(raw: Mapping[str, Any], author_access: int | None) -> dict[str, Any]:
    """`author_access` None: could not be found out."""
    found = picked(raw, _MERGE_REQUEST)
    author = _inner(raw, "author")
    trusted = author_access is not None and author_access >= DEVELOPER
    if trusted and isinstance(author.get("username"), str):
        found["author"] = author["username"]
    found["author_access"] = "unknown" if author_access is None else author_access
    found["from_fork"] = raw.get("source_project_id") != raw.get("target_project_id")
    if refs := picked(_inner(raw, "diff_refs"), _REFS):
        found["diff_refs"] = refs
    if head := picked(_inner(raw, "head_pipeline"), _PIPELINE):
        found["head_pipeline"] = head
    return found | _remarks(raw, head)


def _remarks(raw: Mapping[str, Any], head: Mapping[str, Any]) -> dict[str, Any]:
    remarks = []
    if not raw.get("sha"):
        remarks.append(NO_HEAD)
    elif head.get("sha") and head["sha"] != raw["sha"]:
        remarks.append(MERGED_RESULTS)
    if raw.get("source_project_id") is None:
        remarks.append(NO_SOURCE)
    return {"remarks": remarks} if remarks else {}


def commit(raw: Mapping[str, Any]) -> dict[str, Any]:
    return picked(raw, _COMMIT)


def changed_file(raw: Mapping[str, Any]) -> dict[str, Any]:
    """An empty text does not mean that nothing changed."""
    found = picked(raw, _FILE)
    if not raw.get("diff") and (why := _without_text(raw)):
        found["no_text"] = why
    return found


def _without_text(raw: Mapping[str, Any]) -> str:
    if raw.get("too_large") is True:
        return TOO_LARGE
    if raw.get("collapsed") is True:
        return COLLAPSED
    explained = raw.get("renamed_file") or raw.get("new_file") or raw.get("deleted_file")
    return "" if explained or raw.get("a_mode") != raw.get("b_mode") else NO_TEXT


def status(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A native job has its own id in its address. By that it is known, not by the host: GitLab writes the address that
    people use, which need not be the one that it is asked at."""
    found = picked(raw, _STATUS)
    address = _JOB_ADDRESS.search(str(raw.get("target_url")))
    native = address is not None and int(address[1]) == raw.get("id")
    return {**found, "kind": "job", "job_id": raw["id"]} if native else {**found, "kind": "external"}


def job(raw: Mapping[str, Any]) -> dict[str, Any]:
    """With the kinds of reports that it uploaded, if there are any."""
    listed = raw.get("artifacts")
    kinds = [each.get("file_type") for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    reports = [kind for kind in dict.fromkeys(kinds) if isinstance(kind, str) and kind not in _NO_REPORTS]
    return picked(raw, _JOB) | ({"reports": reports} if reports else {})


def bridge(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A job that starts another pipeline; its log is that pipeline."""
    found = {**picked(raw, _JOB), "kind": "bridge"}
    if below := picked(_inner(raw, "downstream_pipeline"), ("id", "sha", "ref", "status", "web_url")):
        found["downstream_pipeline"] = below
    return found


def with_retried(jobs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """GitLab does not say which jobs were tried again; of one name, all but the newest were."""
    listed = [dict(found) for found in jobs]
    newest: dict[Any, int] = {}
    for each in listed:
        newest[each.get("name")] = max(newest.get(each.get("name"), 0), _number(each))
    return [each | ({"retried": True} if _number(each) < newest[each.get("name")] else {}) for each in listed]


def pipeline(raw: Mapping[str, Any]) -> dict[str, Any]:
    return picked(raw, _PIPELINE)


def report(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The sums of a test report."""
    return picked(raw, _SUITE)


def suites(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those with failures first, and in each of them the failed cases; of tests that did not fail only the name."""
    listed = raw.get("test_suites")
    found = [_suite(each) for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return sorted(found, key=lambda suite: not _troubled(suite))


def _suite(raw: Mapping[str, Any]) -> dict[str, Any]:
    listed = raw.get("test_cases")
    cases = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    bad = [picked(each, _CASE) for each in cases if each.get("status") in _BAD]
    fine = [picked(each, _CASE_SHORT) for each in cases if each.get("status") not in _BAD]
    return {**picked(raw, _SUITE), "test_cases": bad + fine}


def _troubled(suite: Mapping[str, Any]) -> bool:
    return bool(suite.get("suite_error")) or any(case.get("status") in _BAD for case in suite["test_cases"])


def _number(raw: Mapping[str, Any]) -> int:
    found = raw.get("id")
    return found if isinstance(found, int) else 0


def _inner(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, Mapping) else {}

"""Pick the fields of GitLab's objects that the model gets to see.

Everything else (avatars, mail addresses, display names that people chose) is dropped. A field that is missing or null
is left out. The all-caps sentences are part of what the model reads.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hummingbird.gitlab.access import DEVELOPER

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
_NO_REPORTS = ("archive", "metadata", "trace")  # artifacts of a job that are not reports
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


def pick_fields(raw: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the named fields that are present and not null."""
    return {name: raw[name] for name in names if raw.get(name) is not None}


def pick_merge_request(raw: Mapping[str, Any], author_access: int | None) -> dict[str, Any]:
    """Return a merge request's fields, with the author's name only if the author is at least Developer.

    `author_access` is None when GitLab did not say.
    """
    found = pick_fields(raw, _MERGE_REQUEST)
    author = _object_or_empty(raw, "author")
    trusted = author_access is not None and author_access >= DEVELOPER
    if trusted and isinstance(author.get("username"), str):
        found["author"] = author["username"]
    found["author_access"] = "unknown" if author_access is None else author_access
    found["from_fork"] = raw.get("source_project_id") != raw.get("target_project_id")
    if refs := pick_fields(_object_or_empty(raw, "diff_refs"), _REFS):
        found["diff_refs"] = refs
    if head := pick_fields(_object_or_empty(raw, "head_pipeline"), _PIPELINE):
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


def pick_commit(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a commit's fields."""
    return pick_fields(raw, _COMMIT)


def pick_file_diff(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return one file's diff; `no_text` says why the text is empty, for the file may have changed all the same."""
    found = pick_fields(raw, _FILE)
    if not raw.get("diff") and (why := _missing_text_reason(raw)):
        found["no_text"] = why
    return found


def _missing_text_reason(raw: Mapping[str, Any]) -> str:
    if raw.get("too_large") is True:
        return TOO_LARGE
    if raw.get("collapsed") is True:
        return COLLAPSED
    explained = raw.get("renamed_file") or raw.get("new_file") or raw.get("deleted_file")
    return "" if explained or raw.get("a_mode") != raw.get("b_mode") else NO_TEXT


def pick_status(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a commit status, marked as a native job or as an external status.

    A native job is recognised by its own id in `target_url`, not by the host: GitLab writes its public address there,
    which may differ from the configured one.
    """
    found = pick_fields(raw, _STATUS)
    address = _JOB_ADDRESS.search(str(raw.get("target_url")))
    native = address is not None and int(address[1]) == raw.get("id")
    return {**found, "kind": "job", "job_id": raw["id"]} if native else {**found, "kind": "external"}


def pick_job(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job's fields, with the kinds of reports that it uploaded and the size of its other artifacts."""
    listed = raw.get("artifacts")
    kinds = [each.get("file_type") for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    reports = [kind for kind in dict.fromkeys(kinds) if isinstance(kind, str) and kind not in _NO_REPORTS]
    archive = _object_or_empty(raw, "artifacts_file").get("size")
    size = {"artifacts_bytes": archive} if isinstance(archive, int) and archive > 0 else {}
    return pick_fields(raw, _JOB) | ({"reports": reports} if reports else {}) | size


def pick_bridge(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a bridge, a job that starts another pipeline; it has no log of its own, so the pipeline is named."""
    found = {**pick_fields(raw, _JOB), "kind": "bridge"}
    if below := pick_fields(_object_or_empty(raw, "downstream_pipeline"), ("id", "sha", "ref", "status", "web_url")):
        found["downstream_pipeline"] = below
    return found


def mark_retried(jobs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mark retried jobs: GitLab does not say which they are, but of one name all except the newest were retried."""
    listed = [dict(found) for found in jobs]
    newest: dict[Any, int] = {}
    for each in listed:
        newest[each.get("name")] = max(newest.get(each.get("name"), 0), _object_id(each))
    return [each | ({"retried": True} if _object_id(each) < newest[each.get("name")] else {}) for each in listed]


def pick_pipeline(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pipeline's fields."""
    return pick_fields(raw, _PIPELINE)


def pick_report_totals(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the totals of a test report or of one suite."""
    return pick_fields(raw, _SUITE)


def pick_test_suites(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the suites, those with failures first, and in each the failed cases first.

    Of a test that did not fail only status, name and class name are kept.
    """
    listed = raw.get("test_suites")
    found = [_pick_suite(each) for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return sorted(found, key=lambda suite: not _has_failures(suite))


def _pick_suite(raw: Mapping[str, Any]) -> dict[str, Any]:
    listed = raw.get("test_cases")
    cases = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    bad = [pick_fields(each, _CASE) for each in cases if each.get("status") in _BAD]
    fine = [pick_fields(each, _CASE_SHORT) for each in cases if each.get("status") not in _BAD]
    return {**pick_fields(raw, _SUITE), "test_cases": bad + fine}


def _has_failures(suite: Mapping[str, Any]) -> bool:
    return bool(suite.get("suite_error")) or any(case.get("status") in _BAD for case in suite["test_cases"])


def _object_id(raw: Mapping[str, Any]) -> int:
    found = raw.get("id")
    return found if isinstance(found, int) else 0


def _object_or_empty(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, Mapping) else {}

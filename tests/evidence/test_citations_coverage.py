"""What a run looked at and what it did not, read off its entries."""

import json

from hummingbird.core.journal import JournalEntry, ToolOutcome
from hummingbird.evidence.citations.coverage import Coverage, coverage_from_entries
from tests.evidence.cited import call, jobs, log, preview, printed, whole

DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"


def test_failed_jobs_are_told_apart_by_whether_their_logs_were_read() -> None:
    entries: list[JournalEntry] = [
        *jobs(
            (1, "unit", "failed"),
            (2, "lint", "failed"),
            (3, "docs", "success"),
            (4, "flaky", "failed"),
            (5, "flaky", "success"),
        ),
        *log(["it broke"], job_id=1),
    ]
    found = coverage_from_entries(entries)
    assert (found.logs, found.unread) == (("unit",), ("lint",))


def test_what_was_fetched_into_a_file_was_looked_at_and_what_was_not_saved_was_not() -> None:
    fetches = [
        {"tool": "gitlab_get_job_log", "arguments": {"job_id": 1}, "path": "one.log"},
        {"tool": "gitlab_get_job_log", "arguments": {"job_id": 2}, "path": "two.log"},
    ]
    said = "1 of 2 fetched.\n/tmp/data/one.log: 99 bytes, 7 lines\n/tmp/data/two.log: nothing was saved. It is gone."
    entries: list[JournalEntry] = [
        *jobs((1, "unit", "failed"), (2, "lint", "failed")),
        *call("fetch_batch_to_sandbox", said, fetches=fetches),
    ]
    found = coverage_from_entries(entries)
    assert (found.logs, found.unread) == (("unit",), ("lint",))


def test_the_diff_the_report_previews_and_what_failed_are_told() -> None:
    large = {"new_path": "big.json", "too_large": True}
    entries: list[JournalEntry] = [
        *whole("gitlab_get_mr_unified_diff", DIFF),
        *whole("gitlab_get_mr_diff", json.dumps(large)),
        *whole("gitlab_get_test_report", '{"total_count":1}'),
        *preview([(1, "abc")], 900),
        *call("gitlab_get_mr_commits", "gitlab_get_mr_commits failed: 500", outcome=ToolOutcome.ERROR),
        *call("tf_get_test_log", "[tf_get_test_log broke off after 12 bytes (late). Not the whole:]\nabc"),
        *printed("anything"),
    ]
    assert coverage_from_entries(entries) == Coverage(
        logs=("70011",),
        elsewhere=1,
        report=True,
        diff=True,
        files=2,
        without_text=("big.json",),
        failed=("gitlab_get_mr_commits",),
        broken_off=("tf_get_test_log",),
        previewed=1,
        answered=True,
    )


def test_a_source_that_answered_is_told_from_a_batch_that_fetched_nothing() -> None:
    failed = call("gitlab_get_mr_commits", "gitlab_get_mr_commits failed: 500", outcome=ToolOutcome.ERROR)
    said = "0 of 1 fetched.\n/tmp/data/one.log: nothing was saved. It is gone."
    fetches = [{"tool": "gitlab_get_job_log", "arguments": {"job_id": 1}, "path": "one.log"}]
    batch = call("fetch_batch_to_sandbox", said, fetches=fetches)
    assert not coverage_from_entries([*failed, *batch, *printed("anything")]).answered
    assert coverage_from_entries([*failed, *whole("gitlab_get_mr_details", '{"iid":7}')]).answered


def test_a_report_that_is_not_there_was_not_looked_at_nor_a_tool_that_failed_once_and_then_did_not() -> None:
    entries: list[JournalEntry] = [
        *call("gitlab_get_test_report", "failed: 500", outcome=ToolOutcome.ERROR),
        *whole("gitlab_get_test_report", "Pipeline 1 has no test report: none of its jobs uploaded one."),
    ]
    assert coverage_from_entries(entries) == Coverage(answered=True)

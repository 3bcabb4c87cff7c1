"""Lists with one object a line, as sources give them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core import limits
from hummingbird.evidence.report_preview import ObjectPreview

TEKTON = Path(__file__).parent.parent / "fixtures" / "evidence" / "tekton"


def shown(lines: Iterable[Any], piece: int = 4_000, budget: int = limits.PREVIEW_BYTES) -> str:
    content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    preview = ObjectPreview()
    for at in range(0, len(content), piece):
        preview.feed(content[at : at + piece])
    return preview.text(budget)


def job(number: int, status: str) -> dict[str, Any]:
    return {"id": number, "name": f"job-{number}", "status": status, "web_url": f"https://forge/-/jobs/{number}"}


def test_of_a_list_of_jobs_the_failed_ones_are_shown_with_their_lines_and_the_others_counted() -> None:
    text = shown(job(number, "failed" if number in {17, 63} else "success") for number in range(1, 121))
    assert text.splitlines()[0] == "A list of 120 lines: 118 success, 2 failed"
    assert '17: {"id": 17, "name": "job-17", "status": "failed"' in text
    assert '63: {"id": 63, "name": "job-63", "status": "failed"' in text
    assert "job-18" not in text


@pytest.mark.parametrize("piece", [1, 7, 100, 10_000])
def test_how_a_list_is_cut_into_chunks_changes_nothing(piece: int) -> None:
    lines = [job(1, "success"), job(2, "failed"), {"incomplete": "The archive did not answer."}]
    assert shown(lines, piece) == shown(lines)
    assert shown(lines).splitlines()[0] == "Incomplete: The archive did not answer."


def test_tekton_objects_one_a_line_are_read_as_in_a_list_and_passed_ones_counted() -> None:
    failed = json.loads((TEKTON / "derived_taskrun_build_container_failed.json").read_text())
    passed = json.loads((TEKTON / "pipelinerun_test_succeeded.json").read_text())
    copies = [{**passed, "metadata": {**passed["metadata"], "uid": f"u{number}"}} for number in range(40)]
    text = shown([*copies, failed, {"incomplete": "Only the archive answered."}])
    assert text.startswith(
        "Incomplete: Only the archive answered.\n40 more Tekton runs passed\nTekton, 1 run: 1 failed"
    )
    assert "step build: exit code 1" in text


def test_a_list_far_longer_than_what_is_read_whole_is_still_recognised_and_what_is_kept_is_bounded() -> None:
    lines = [{**job(number, "failed"), "pad": "x" * 4_000} for number in range(1_000)]
    assert sum(len(json.dumps(line)) for line in lines) > 3 * limits.OBJECT_BYTES
    text = shown(lines, 64 * 1024)
    assert text.startswith("A list of 1000 lines: 1000 failed")
    assert "more failures" in text
    assert len(text.encode()) <= limits.PREVIEW_BYTES


def test_a_line_that_is_too_long_is_counted_and_the_next_one_read() -> None:
    text = shown([job(1, "success"), {"status": "failed", "pad": "x" * limits.OBJECT_BYTES}, job(3, "failed")])
    assert "1 too long to be read" in text
    assert "job-3" in text


def test_a_last_line_without_an_end_counts_and_half_of_one_does_not() -> None:
    preview = ObjectPreview()
    preview.feed(f"{json.dumps(job(1, 'success'))}\n{json.dumps(job(2, 'failed'))}".encode())
    assert "job-2" in preview.text(4_000)
    half = ObjectPreview()
    half.feed(f"{json.dumps(job(1, 'failed'))}\n{json.dumps(job(2, 'failed'))[:-3]}".encode())
    assert half.text(4_000).startswith("A list of 1 lines: 1 failed")


@pytest.mark.parametrize(
    "lines", [[{"message": "log"}, {"message": "more"}], [{"a": 1}], [{"status": {}}], [{"status": None}]]
)
def test_lines_of_other_json_are_left_to_others(lines: list[Any]) -> None:
    assert shown(lines) == ""

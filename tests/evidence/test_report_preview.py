"""Previews of test reports and Tekton objects."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.agent.tools.preview import OutputPreview, create_evidence_preview
from hummingbird.core import limits
from hummingbird.evidence.regions import Blame, EvidenceLine, FailureClass, Region, RegionKind
from hummingbird.evidence.report_preview import ObjectPreview, ReportPreview, preview_regions
from tests.evidence import sample_reports

FIXTURES = Path(__file__).parents[1] / "fixtures" / "evidence"
BLAME = Blame(FailureClass.TEST, "r", 0.8, "Why.")


def shown(content: bytes, budget: int = limits.PREVIEW_BYTES, step: int = 0) -> str:
    preview: OutputPreview = ReportPreview()
    for at in range(0, len(content), step or len(content)):
        preview.feed(content[at : at + (step or len(content))])
    return preview.text(budget)


def region(name: str, mark: str, lines: int = 3) -> Region:
    whole = tuple(EvidenceLine(number, f"{name} line {number}") for number in range(1, lines + 1))
    return Region(whole, RegionKind.TEST, BLAME, mark, 1.0, "r")


def test_a_report_s_preview_has_the_totals_and_each_failure_with_its_line() -> None:
    text = shown(sample_reports.SUREFIRE)
    lines = text.split("\n")
    assert lines[0] == "Test report, 5 tests: 1 failed, 1 with errors, 1 flaky, 2 passed, 1 skipped"
    at = next(n for n, line in enumerate(sample_reports.SUREFIRE.decode().split("\n"), 1) if 'name="totals"' in line)
    assert f"{at}: FAILED org.example.CartTest.totals" in text
    assert "CartTest.java:42" in text
    assert "ERROR org.example.CartTest.loads" in text
    assert text.index("ERROR") < text.index("FLAKY org.example.CartTest.races")


def test_testing_farm_s_preview_leads_to_the_logs() -> None:
    text = shown(sample_reports.TESTING_FARM)
    assert "overall result: failed" in text
    assert "log testout.log: https://artifacts.example.org/1/a/output.txt" in text
    assert "FAILED /plans/one > /tests/a on client, aarch64, Fedora-44" in text


def test_every_distinct_failure_is_shown_before_a_second_of_the_same() -> None:
    regions = [*(region(f"same{n}", "s") for n in range(50)), region("other", "o"), region("third", "t")]
    text = preview_regions(["head"], regions, 700)
    assert text.index("same0") < text.index("other") < text.index("third") < text.index("same1")
    assert "same0 line 1 (and 49 more like it)" in text
    assert re.search(r"\[… not shown: \d+ more failures …]$", text)


def test_a_preview_has_its_own_bound_whatever_the_budget() -> None:
    text = preview_regions(["head"], [region(f"r{number}", f"f{number}", 60) for number in range(200)], 1_000_000)
    assert limits.PREVIEW_BYTES - 400 < len(text.encode()) <= limits.PREVIEW_BYTES


def test_what_is_not_shown_is_counted_to_the_last() -> None:
    regions = [region(f"r{n}", f"f{n}", 40) for n in range(100)]
    text = preview_regions(["head"], regions, 2_000, unkept=7)
    told = len(re.findall(r"^1: r\d+ line 1$", text, re.MULTILINE))
    assert told > 3
    assert f"not shown: {107 - told} more failures" in text


def test_the_telling_lines_of_a_long_trace_are_shown_and_gaps_are_marked() -> None:
    body = (
        "\n".join(f"    source line {n}" for n in range(300)) + "\nE   assert 41 == 42\n\ntest_x.py:9: AssertionError"
    )
    content = f'<testsuite><testcase name="t"><failure message="">{body}</failure></testcase></testsuite>'
    text = shown(content.encode(), 600)
    assert "E   assert 41 == 42" in text
    assert "test_x.py:9: AssertionError" in text
    assert "\n[…]\n" in text


@given(name=st.sampled_from(sorted(sample_reports.ALL)), budget=st.integers(-5, 6_000), step=st.integers(1, 999))
def test_a_preview_never_exceeds_its_budget_and_cuts_no_line_without_a_mark(name: str, budget: int, step: int) -> None:
    content = sample_reports.ALL[name]
    whole = set(shown(content).split("\n"))
    text = shown(content, budget, step)
    assert len(text.encode()) <= max(0, min(budget, limits.PREVIEW_BYTES))
    for line in text.split("\n") if text else []:
        assert line in whole or line.endswith("…") or re.fullmatch(r"\[… not shown.*…]|\[…]", line)


@pytest.mark.thorough
@given(
    texts=st.lists(st.tuples(st.sampled_from("abc"), st.text(max_size=400)), max_size=20),
    budget=st.integers(0, 3_000),
    head=st.text(max_size=500),
)
def test_any_regions_fit_any_budget(texts: list[tuple[str, str]], budget: int, head: str) -> None:
    regions = [
        Region((EvidenceLine(1, text), EvidenceLine(2, text)), RegionKind.TEST, BLAME, mark, 1.0, "r")
        for mark, text in texts
    ]
    assert len(preview_regions([head], regions, budget).encode()) <= budget


def test_a_broken_report_says_so_in_its_preview() -> None:
    cut = sample_reports.GTEST[: sample_reports.GTEST.index(b'<testcase name="Waits')]
    assert (
        "Not all of the report could be read. It is truncated: it ends before its last element is closed. "
        "It declares 3 tests." in shown(cut)
    )


def test_the_preview_of_a_truncated_report_has_the_failure_that_it_broke_off_in() -> None:
    preview = create_evidence_preview("xml")
    preview.feed(b'<testsuite name="a"><testcase name="t2"><failure message="boom">AssertionError: 1 != 2\n')
    text = preview.text(limits.PREVIEW_BYTES)
    assert text.startswith("Test report, 1 test: 1 failed\nNot all of the report could be read. It is truncated")
    assert "1: FAILED a > t2" in text
    assert "AssertionError: 1 != 2" in text


@pytest.mark.parametrize(
    ("attributes", "inside", "said"),
    [
        (b'failures="3" errors="1"', b"", "0 tests: none named\nThe report declares 3 failures and 1 error without"),
        (b'failures="1"', b"", "0 tests: none named\nThe report declares 1 failure without naming it."),
        (b'errors="2"', b'<testcase name="a"/>', "1 passed\nThe report declares 2 errors without naming them."),
        (
            b'failures="2"',
            b'<testcase name="a"><failure/></testcase>',
            "1 failed\nThe report declares 2 failures and names only 1 of them.",
        ),
    ],
)
def test_failures_that_a_report_declares_and_does_not_name_are_told(
    attributes: bytes, inside: bytes, said: str
) -> None:
    assert said in shown(b"<testsuites><testsuite %s>%s</testsuite></testsuites>" % (attributes, inside))


@pytest.mark.parametrize("content", [b"", b"plain log\nerror: x", b"<html/>", b'{"kind": "Pod"}', b"\xff\xfe\x00"])
def test_what_is_no_report_says_that_it_is_not_recognised(content: bytes) -> None:
    preview = ReportPreview()
    preview.feed(content)
    assert not preview.recognised
    assert preview.text(4_000) == ""


def test_a_report_is_recognised_from_its_first_element_on() -> None:
    preview = ReportPreview()
    preview.feed(b"<?xml version='1.0'?><testsuites>")
    assert preview.recognised


def test_a_tekton_object_s_preview_names_task_step_and_log() -> None:
    preview: OutputPreview = ObjectPreview()
    content = (FIXTURES / "tekton" / "derived_taskrun_build_container_failed.json").read_bytes()
    for at in range(0, len(content), 1_000):
        preview.feed(content[at : at + 1_000])
    text = preview.text(limits.PREVIEW_BYTES)
    assert text.startswith("Tekton, 1 run: 1 failed\nFAILED TaskRun")
    assert "step build: exit code 1" in text
    assert "container step-build" in text
    assert len(preview.text(90).encode()) <= 90


def test_an_object_is_not_recognised_before_it_is_whole_nor_when_it_is_too_long() -> None:
    content = json.dumps({"kind": "TaskRun", "metadata": {"name": "x"}, "pad": "p" * 100}).encode()
    preview = ObjectPreview()
    seen = []
    for piece in (content[:50], content[50:], b" " * (limits.OBJECT_BYTES - len(content)), b" "):
        preview.feed(piece)
        seen.append((preview.recognised, preview.text(4_000) != ""))
    assert seen == [(False, False), (True, True), (True, True), (False, False)]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"kind": "Status"}', b"[" * 100_000, b"1" * 5_000, b'"\\ud800"', b"\xff\xfe{}"]
)
def test_other_json_and_what_is_none_is_not_recognised(content: bytes) -> None:
    preview = ObjectPreview()
    preview.feed(content)
    assert not preview.recognised
    assert preview.text(4_000) == ""


def test_half_a_surrogate_pair_in_an_object_can_be_shown() -> None:
    preview = ObjectPreview()
    said = '{"type": "Succeeded", "status": "False", "reason": "Failed", "message": "bad \\ud800 name"}'
    preview.feed(b'{"kind": "TaskRun", "status": {"conditions": [%s]}}' % said.encode())
    assert "bad ? name" in preview.text(4_000).encode().decode()


def test_the_bounds_of_reports_fit_each_other() -> None:
    assert limits.XML_PIECE_BYTES < limits.XML_TOKEN_BYTES
    assert limits.CASES_ALIKE < limits.CASES_KEPT
    assert limits.CASE_FIELD_CHARS < limits.CASE_BODY_CHARS
    kept = 4 * (2 * limits.CASE_BODY_CHARS + 2 * limits.CASE_OUTPUT_CHARS + 20 * limits.CASE_FIELD_CHARS)
    assert limits.CASES_KEPT * kept < 64 * 1024 * 1024, "what a log may cost, a report may cost"

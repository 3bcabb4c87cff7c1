"""Whatever came out of a job, told apart by content and explained in one pass."""

from pathlib import Path

import pytest

from hummingbird.core.limits import OBJECT_BYTES
from hummingbird.evidence import analyse
from hummingbird.evidence.explanation import JobOutputForm, OutputExplainer, OutputExplanation
from hummingbird.evidence.regions import FailureClass
from tests.evidence.sample_reports import PYTEST, SUREFIRE

FIXTURES = Path(__file__).parents[1] / "fixtures" / "evidence"
TEKTON = (FIXTURES / "tekton" / "pod_step_failed_exit1.json").read_bytes()
LOG = (FIXTURES / "log-tldr-lint.log").read_bytes()


def explained(content: bytes, size: int = 700) -> OutputExplanation:
    explaining = OutputExplainer()
    for at in range(0, len(content), size):
        explaining.feed(content[at : at + size])
    assert explaining.size == len(content)
    return explaining.explain()


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (SUREFIRE, JobOutputForm.REPORT),
        (b"\xef\xbb\xbf \n" + SUREFIRE.lstrip(), JobOutputForm.REPORT),
        (TEKTON, JobOutputForm.TEKTON),
        (b"\n [" + TEKTON + b"]", JobOutputForm.TEKTON),
        (LOG, JobOutputForm.LOG),
        (b"<html><body>error: 502 Bad Gateway</body></html>\n", JobOutputForm.LOG),
        (b'{"level": "error", "message": "it failed"}\n' * 3, JobOutputForm.LOG),
        (b"[INFO] BUILD FAILURE\n[ERROR] it failed\n", JobOutputForm.LOG),
    ],
)
@pytest.mark.parametrize("size", [1, 10**6])
def test_content_tells_what_it_is(content: bytes, form: JobOutputForm, size: int) -> None:
    found = explained(content, size)
    assert found.form is form
    assert found.analysis.regions
    assert found.analysis.size == len(content)


def test_a_log_in_pieces_is_the_same_as_a_log_at_once() -> None:
    assert explained(LOG).analysis == analyse(LOG.decode())


@pytest.mark.parametrize("content", [LOG, SUREFIRE, PYTEST, TEKTON])
def test_each_region_has_lines_that_lead(content: bytes) -> None:
    found = explained(content)
    assert len(found.lead_lines) == len(found.analysis.regions)
    for leads, region in zip(found.lead_lines, found.analysis.regions, strict=True):
        assert leads
        assert leads <= set(range(len(region.lines)))


def test_the_line_that_a_region_grew_from_leads_it() -> None:
    found = explained(LOG)
    lead = found.analysis.regions[0].lines[min(found.lead_lines[0])]
    assert lead.text == "pages/common/mat2.md:3: TLDR004 Command descriptions should end in a period"


def test_in_a_report_the_test_and_what_it_expected_lead() -> None:
    found = explained(PYTEST)
    led = [
        region.lines[at].text
        for region, leads in zip(found.analysis.regions, found.lead_lines, strict=True)
        for at in leads
    ]
    assert any(text.startswith("FAILED") for text in led)
    assert "E       assert 1 == 2" in led


def test_the_verdict_on_a_report_is_that_of_most_of_its_failures() -> None:
    refused = b'<testcase name="a"><error message="Connection refused"/></testcase>'
    wrong = b'<testcase name="b%d"><failure message="expected %d"/></testcase>'
    cases = refused + b"".join(wrong % (at, at) for at in range(3))
    assert explained(b"<testsuite>" + cases + b"</testsuite>").analysis.blame.class_ is FailureClass.TEST
    assert explained(b"<testsuite>" + refused + b"</testsuite>").analysis.blame.class_ is FailureClass.INFRASTRUCTURE


def test_a_report_without_failures_says_so() -> None:
    found = explained(b'<testsuite tests="1"><testcase name="a"/></testsuite>')
    assert found.analysis.regions == ()
    assert found.analysis.blame.rule == "nothing-failed"
    assert found.summary == ("Test report, 1 test: 1 passed",)


def test_failures_that_a_report_only_counts_are_a_region_of_their_own() -> None:
    found = explained(b'<testsuites>\n<testsuite tests="5" failures="3" errors="1"/></testsuites>')
    (region,) = found.analysis.regions
    assert (region.first, region.excerpt) == (2, "The report declares 3 failures and 1 error without naming them.")
    assert found.analysis.blame.rule == "failures-unnamed"
    assert region.excerpt in found.summary


def test_failures_that_are_named_leave_no_region_for_those_that_are_not() -> None:
    found = explained(b'<testsuite failures="2"><testcase name="a"><failure message="m"/></testcase></testsuite>')
    assert [region.rule for region in found.analysis.regions] == ["test-failed"]


@pytest.mark.parametrize(("ending", "lines"), [(b"", 2), (b"\n", 2), (b"\n\n", 3)])
def test_a_last_line_without_its_end_is_a_line(ending: bytes, lines: int) -> None:
    report = b"<testsuite>\n</testsuite>"
    assert explained(report + ending).analysis.lines == lines


@pytest.mark.parametrize(
    ("size", "form"), [(OBJECT_BYTES, JobOutputForm.TEKTON), (OBJECT_BYTES + 1, JobOutputForm.LOG)]
)
def test_objects_too_large_to_hold_are_read_as_a_log(size: int, form: JobOutputForm) -> None:
    assert explained(TEKTON.ljust(size), 10**5).form is form

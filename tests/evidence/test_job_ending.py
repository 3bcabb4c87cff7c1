"""A log of a job that passed has no sure cause, whatever errors it prints on the way."""

import pytest

from hummingbird.evidence import analyse
from hummingbird.evidence.classification.classifier import classify_job
from hummingbird.evidence.logs.job_ending import failure_likelihood
from hummingbird.evidence.regions import CONFIDENT, EvidenceLine, FailureClass

PROBE = [
    "checking for sys/endian.h",
    "probe.c:1:24: error: unknown type name 'endian_t'",
    "failure.",
    "removing: probe.c",
]
WORK = [f"[{number}/40] Building object part{number}.o" for number in range(40)]
PASSES = ["collected 3 items", "tests/test_a.py::test_one PASSED", "tests/test_a.py::test_two PASSED", "3 passed in 1s"]
FAILS = ["src/main.c:3:1: error: expected ';' before '}'", "make: *** [main.o] Error 1", "build FAILED"]


def confidence(*lines: str) -> float:
    blame = analyse("\n".join(lines)).blame
    return 0.0 if blame.class_ is FailureClass.UNKNOWN else blame.confidence


@pytest.mark.parametrize("status", ['The command "make" exited with 0.', "Job succeeded"])
def test_error_before_stated_success_is_no_cause(status: str) -> None:
    assert confidence(*PROBE, *WORK, *PASSES, status) < CONFIDENT


def test_error_before_success_of_tests_is_no_cause() -> None:
    assert confidence(*PROBE, *WORK, *PASSES) < CONFIDENT


def test_same_error_is_a_cause_when_the_job_failed() -> None:
    assert confidence(*PROBE, *WORK, *PASSES, "ERROR: Job failed: exit code 1") >= CONFIDENT


def test_log_that_ends_in_trouble_needs_no_exit_status() -> None:
    assert confidence(*WORK, *PASSES, *WORK, *FAILS) >= CONFIDENT


def test_regions_of_a_passed_job_are_doubted_too() -> None:
    regions = analyse("\n".join([*PROBE, *WORK, *PASSES, "Job succeeded"])).regions
    assert regions
    assert max(region.blame.confidence for region in regions) < CONFIDENT


def test_likelihood_follows_its_signs() -> None:
    assert failure_likelihood(5, 0, False) > failure_likelihood(1, 0, False) > failure_likelihood(1, 4, False)
    assert failure_likelihood(5, 0, True) < 0.5


def test_github_log_without_an_error_mark_is_that_of_a_passed_job() -> None:
    ending = ["Post job cleanup.", "Cleaning up orphan processes"]
    assert confidence(*WORK, *FAILS, *ending) < CONFIDENT
    assert confidence(*WORK, *FAILS, "##[error]Process completed with exit code 1.", *ending) >= CONFIDENT


def test_cause_of_the_best_region_outweighs_one_that_hardly_stands_out() -> None:
    best = EvidenceLine(10, "--- FAIL: TestProxy (4.30s)")
    other = EvidenceLine(3, "ERROR settings.yaml: did not find expected key")

    assert classify_job([best, other], []).rule == "pipeline-file-invalid"
    assert classify_job([best, other], [], behind={3: 6.0}).rule == "test-failed"

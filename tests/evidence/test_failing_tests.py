"""What is a failure for sure, and so worth remembering: of logs, reports and Tekton's objects."""

import json
from typing import Any

import pytest

from hummingbird.evidence.explanation import CertainFailure, FailureDetector
from hummingbird.evidence.regions import FailureClass, RegionKind
from hummingbird.lab.case import case_names, find_case

GREEN = [("failing-test", "logs/build-test-deploy.main.log"), ("out-of-memory", "logs/build.main.log")]
RED = {
    "compiler-error": ("logs/code-quality.log", RegionKind.COMPILER, "error[E0063]: missing field"),
    "disk-full": ("logs/benchmarks.log", RegionKind.QUOTA, "No space left on device"),
    "network": ("logs/docker.log", RegionKind.NETWORK, "Could not resolve host"),
    "out-of-memory": ("logs/build.log", RegionKind.MEMORY, "Killed signal terminated program cc1plus"),
    "runner-lost": ("logs/unittests.log", RegionKind.RUNNER, "timed out waiting for pod"),
}


def failed(content: bytes, step: int = 1 << 20) -> tuple[CertainFailure, ...]:
    failing = FailureDetector()
    for at in range(0, len(content), step):
        failing.feed(content[at : at + step])
    return failing.find_failures()


def log_of(case: str, path: str) -> bytes:
    return (find_case(case).folder / path).read_bytes()


def suite(*cases: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"name": "unit", "test_cases": list(cases), **more}).encode()


def bad(name: str, said: str, status: str = "failed") -> dict[str, Any]:
    return {"status": status, "name": name, "classname": "tests.Pages", "system_output": said}


@pytest.mark.parametrize("case", RED)
def test_a_red_log_says_what_failed_in_a_line_that_tells(case: str) -> None:
    path, kind, words = RED[case]
    first = failed(log_of(case, path))[0]
    assert first.region.kind is kind
    assert words in first.title


@pytest.mark.parametrize("case", RED)
def test_it_is_known_again_however_the_log_is_cut_into_pieces(case: str) -> None:
    content = log_of(case, RED[case][0])
    assert [one.region.fingerprint for one in failed(content)] == [
        one.region.fingerprint for one in failed(content, 997)
    ]


@pytest.mark.parametrize(("case", "path"), GREEN)
def test_the_log_of_a_job_that_went_well_has_no_failures_whatever_it_speaks_of(case: str, path: str) -> None:
    assert failed(log_of(case, path)) == ()
    assert failed(b"ERROR: cannot open file\nTypeError: x is not a function\n\x1b[32;1mJob succeeded\n\x1b[0;m\n") == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all is well\n",
        "step 1\nERROR: Job failed: exit code 1\n",
        "Cleaning up project directory\nERROR: Job failed: command terminated with exit code 137\n",
    ],
)
def test_that_a_job_failed_is_not_what_a_failure_is_known_by(text: str) -> None:
    assert failed(text.encode()) == ()


def test_every_failed_log_of_the_cases_has_one_with_a_fingerprint() -> None:
    found = 0
    for name in (name for name in case_names() if find_case(name).description["expected"].get("evidence")):
        for job in find_case(name).read_json("gitlab/jobs.json", []):
            if job["status"] == "failed" and job.get("log"):
                known = failed(log_of(name, job["log"]))
                assert known, (name, job["name"])
                assert all(one.region.fingerprint for one in known)
                found += 1
    assert found >= 8


def test_a_test_report_in_json_has_the_tests_that_failed() -> None:
    lines = [
        b'{"total_count":3,"failed_count":1}',
        suite({"status": "success", "name": "fine"}, bad("test_last_page", "E   AssertionError: 3 != 4")),
        suite(bad("test_setup", "Connection refused", "error"), name="integration"),
    ]
    one, other = failed(b"\n".join(lines))
    assert one.title == "FAILED unit > tests.Pages.test_last_page"
    assert (one.region.kind, one.region.blame.class_) == (RegionKind.TEST, FailureClass.TEST)
    assert "AssertionError: 3 != 4" in one.region.excerpt
    assert (other.region.kind, other.region.blame.class_) == (RegionKind.NETWORK, FailureClass.INFRASTRUCTURE)


def test_a_test_is_known_again_in_the_next_pipeline() -> None:
    (one,) = failed(b'{"total_count":9}\n' + suite(bad("test_last_page", "E   AssertionError: lost page of 0x7f3a")))
    (again,) = failed(b'{"total_count":1}\n' + suite(bad("test_last_page", "E   AssertionError: lost page of 0x91bc")))
    (other,) = failed(b'{"total_count":1}\n' + suite(bad("test_first_page", "E   KeyError: 'pages'")))
    assert one.region.fingerprint == again.region.fingerprint != other.region.fingerprint


@pytest.mark.parametrize(
    "line",
    [
        b'{"test_cases":3}',
        b'{"test_cases":[1,null,"x",{"status":1},{"status":"failed"}]}',
        b'{"test_cases":[{"status":"failed","name":7,"system_output":{"message":"x"}}]}',
        b'{"test_cases":[',
        b"[1, 2]",
    ],
)
def test_odd_reports_break_nothing(line: bytes) -> None:
    assert len(failed(b'{"total_count":1}\n' + line)) <= 1


def test_a_list_that_merely_calls_jobs_failed_says_nothing_to_remember() -> None:
    rows = [{"id": 1, "name": "unit", "status": "failed"}, {"id": 2, "name": "lint", "status": "success"}]
    assert failed(b"\n".join(json.dumps(row).encode() for row in rows)) == ()


def test_tekton_objects_give_first_causes_alone() -> None:
    case = find_case("konflux-build-and-test")
    runs = [json.loads(path.read_text()) for path in case.list_files("konflux/live", "*.json")]
    tasks = [run for run in runs if run["kind"] == "TaskRun"]
    found = failed(b"\n".join(json.dumps(run).encode() for run in tasks))
    assert found
    assert all(one.region.fingerprint and one.region.score >= 0.75 for one in found)


def test_a_task_that_passed_when_it_was_tried_again_is_none() -> None:
    failed_once = {"conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed"}]}
    passed = {"conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]}
    labels = {"tekton.dev/pipelineTask": "build"}
    run = {"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {"name": "build-1", "labels": labels}}
    flaky = {**run, "status": {**passed, "retriesStatus": [failed_once]}}
    assert failed(json.dumps({**run, "status": failed_once}).encode())
    assert failed(json.dumps(flaky).encode()) == ()


def test_junit_gives_what_failed_and_not_what_passed_when_it_was_tried_again() -> None:
    report = b"""<testsuites><testsuite name="s">
      <testcase name="bad"><failure message="boom went the page">x</failure></testcase>
      <testcase name="flaky"><flakyFailure message="now and then a socket">y</flakyFailure></testcase>
    </testsuite></testsuites>"""
    (one,) = failed(report)
    assert "bad" in one.title


ENDS = "ERROR: Job failed: exit code 1\n"
THAT_SOMETHING_FAILED = {
    "gradle": "> Task :test FAILED\n\nFAILURE: Build failed with an exception.\n\n* What went wrong:\n"
    "Execution failed for task ':test'.\n> There were failing tests. See the report at: file:///builds/x/index.html\n"
    "\nBUILD FAILED in 12s\n",
    "maven": "Tests run: 12, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE\n[INFO] Total time:  12.3 s\n"
    "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin:2.22:test on project core: There "
    "are test failures.\n[ERROR] Please refer to /builds/x/target/surefire-reports for the individual test results.\n",
    "pytest": "===== 2 failed, 10 passed in 3.2s =====\n",
    "eslint": "✖ 2 problems (2 errors, 0 warnings)\n",
    "jest": "Tests:       1 failed, 30 passed, 31 total\nSnapshots:   0 total\n",
}


@pytest.mark.parametrize("tool", THAT_SOMETHING_FAILED)
def test_that_something_failed_is_nothing_to_be_known_by(tool: str) -> None:
    """Two merge requests would be told to have the same failure, though each broke another test."""
    assert failed((THAT_SOMETHING_FAILED[tool] + ENDS).encode()) == ()


def test_what_failed_is_known_by_its_name_though_a_tool_says_the_same_after_all_of_them() -> None:
    def of(test: str) -> list[str]:
        log = f"PagesTest > {test} FAILED\n    java.lang.AssertionError: expected 3 pages\n"
        return [one.region.fingerprint for one in failed((log + THAT_SOMETHING_FAILED["gradle"] + ENDS).encode())]

    assert of("lastPageIsShort")
    assert of("lastPageIsShort") == of("lastPageIsShort")
    assert set(of("lastPageIsShort")).isdisjoint(of("firstPageIsFull"))


def test_the_same_complaint_about_another_file_is_another_failure_and_both_show_their_file() -> None:
    """As eslint tells it: a file, and below it what is wrong there."""

    def of(*files: str) -> list[CertainFailure]:
        told = [f"/builds/x/src/{file}\n  12:5  error  'window' is not defined  no-undef\n\n" for file in files]
        return list(
            failed(("".join(told) + f"✖ {len(files)} problems ({len(files)} errors, 0 warnings)\n\n{ENDS}").encode())
        )

    (one,), (other,) = of("pages.js"), of("menu.js")
    assert one.region.fingerprint == of("pages.js")[0].region.fingerprint
    assert one.region.fingerprint != other.region.fingerprint
    assert [line.text for line in one.region.lines][:2] == [
        "/builds/x/src/pages.js",
        "  12:5  error  'window' is not defined  no-undef",
    ]

"""Which logs prove that the runner alone wrote them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.evidence.gitlab_jobs import RunnerTrace
from hummingbird.lab.case import find_case


def section(name: str, *lines: str) -> str:
    body = "".join(f"{line}\n" for line in lines)
    return f"section_start:1683351762:{name}\r\x1b[0K\x1b[0K{body}section_end:1683351766:{name}\r\x1b[0K"


BEGINNING = "Running with gitlab-runner 15.10.0 (12335144)\n" + section("prepare_executor", "Using Docker executor")
CLONED = BEGINNING + section("prepare_script", "Running on host") + section("get_sources", "Fetching changes")
CLEANED = section("cleanup_file_variables", "Cleaning up") + "ERROR: Job failed: exit code 1\n"
LOGS = {
    "no pod": (BEGINNING + "ERROR: Job failed (system failure): timed out waiting for pod to start", True),
    "no clone": (CLONED + CLEANED, True),
    "no clone, and artifacts": (CLONED + section("upload_artifacts_on_failure", "Uploading") + CLEANED, True),
    "the last line is the marker": (BEGINNING + "section_start:1683351766:get_sources", True),
    "the script ran": (CLONED + section("step_script", "$ make") + CLEANED, False),
    "the script began": (CLONED + "section_start:1683351766:step_script", False),
    "a step of another name": (CLONED + section("step_release", "$ release-cli"), False),
    "after_script alone": (CLONED + section("after_script", "$ rm -r out"), False),
    "a stage that is masked": (CLONED + section("[MASKED]", "$ make"), False),
    "a marker that is masked in part": (CLONED + "section_start:1683351766[MASKED]\n$ make", False),
    "a section in a section": (BEGINNING + section("get_sources_of_mine", "$ make"), False),
    "no runner at all": ("$ make\nNo space left on device\n", False),
    "markers far below": ("$ make\n" * 20_000 + CLONED, False),
    "nothing": ("", False),
}


def is_runners(text: str, size: int = 7) -> bool:
    trace, content = RunnerTrace(), text.encode()
    for at in range(0, len(content), size):
        trace.feed(content[at : at + size])
    return trace.only_runner_wrote


@pytest.mark.parametrize("name", LOGS)
def test_script_is_told_from_runner(name: str) -> None:
    text, expected = LOGS[name]
    assert is_runners(text, 4096) is expected


@given(st.sampled_from([text for text, _ in LOGS.values() if len(text) < 10_000]), st.integers(1, 300))
def test_chunks_do_not_matter(text: str, size: int) -> None:
    assert is_runners(text, size) is is_runners(text, len(text) or 1)


forged = st.sampled_from([
    "section_end:1683351766:step_script\r\x1b[0K",
    "section_start:1683351762:get_sources\r\x1b[0K",
    BEGINNING,
    CLONED,
    CLEANED,
    "ERROR: Job failed (system failure): pod evicted",
])  # fmt: skip


@given(st.lists(forged | st.text(max_size=30), max_size=6))
def test_nothing_printed_takes_the_script_back(lines: list[str]) -> None:
    assert not is_runners(CLONED + section("step_script", "$ make", *lines) + CLEANED, 64)


@pytest.mark.parametrize(
    ("case", "name", "expected"),
    [
        ("runner-lost", "unittests", True),
        ("network", "docker", True),
        ("disk-full", "benchmarks", False),
        ("hostile", "code-quality", False),
    ],
)
def test_real_logs(case: str, name: str, expected: bool) -> None:
    content = (find_case(case).folder / "logs" / f"{name}.log").read_bytes()
    trace = RunnerTrace()
    trace.feed(content)
    assert trace.only_runner_wrote is expected

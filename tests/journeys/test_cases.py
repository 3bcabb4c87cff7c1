"""From a case's event to a report with its evidence: the lab over HTTP, the sources, a real sandbox, and a model made
of rules. What a language model would be told is here, word for word."""

from pathlib import Path
from typing import Any

import pytest

from hummingbird.lab.case import case_names, find_case
from tests.journeys.staging import judged_order, on_stage, order

FAILED = [name for name in case_names() if find_case(name).description["expected"].get("evidence")]


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = find_case(name).description["expected"]
    return found


@pytest.mark.parametrize("name", FAILED)
def test_a_report_quotes_the_evidence_of_its_case_and_finds_what_is_to_blame(name: str, tmp_path: Path) -> None:
    with on_stage(name, tmp_path / "stage") as (scene, agent, _):
        report = agent.chat(judged_order(scene, tmp_path / "judged"))
    failures = [expected(name), *expected(name).get("also", ())]
    for failure in failures:
        assert any(line in report for line in failure["evidence"]), report
    first = report.splitlines()[2]
    assert any(f"Verdict: {failure['verdict']}**" in first for failure in failures), first


@pytest.mark.parametrize("name", ["odd-corners", "merge-request-review"])
def test_a_case_in_which_nothing_failed_ends_well_and_says_so(name: str, tmp_path: Path) -> None:
    with on_stage(name, tmp_path) as (scene, agent, told):
        report = agent.chat(order(scene))
    assert "Nothing that failed was found" in report
    assert told.results


@pytest.mark.thorough
def test_konflux_and_testing_farm_are_followed_to_the_log_of_the_failed_test(tmp_path: Path) -> None:
    with on_stage("konflux-build-and-test", tmp_path) as (scene, agent, told):
        agent.chat(order(scene))
    wanted = {
        "gitlab_get_commit_statuses",
        "konflux_list_pipelineruns",
        "konflux_list_taskruns",
        "konflux_get_pod_log",
        "tf_get_results",
        "tf_get_test_log",
    }
    assert wanted <= told.results.keys()
    assert "TEST_OUTPUT says FAILURE" in told.results["konflux_list_pipelineruns"]

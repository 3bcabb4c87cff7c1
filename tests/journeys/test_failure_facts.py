"""What is gathered before a model speaks, from the lab's GitLab over HTTP, and what rules make of each case."""

import asyncio
from pathlib import Path

import pytest

from hummingbird.agent import failed_logs, failure_facts
from hummingbird.agent.failed_logs import ToolReader
from hummingbird.agent.failure_facts import FailureSubject, GatheredFacts, gather_facts
from hummingbird.app.source_registry import create_sources
from hummingbird.core.masking import Secrets
from hummingbird.core.verdicts import FailureOrigin, render_verdict
from hummingbird.evidence.verdict_rules import judge_failures
from hummingbird.lab.case import case_names, find_case
from hummingbird.lab.fault_injection import FaultGate, Hold
from hummingbird.lab.gitlab.error_responses import server_error_fault
from hummingbird.lab.scene import LabWorlds, Scene
from tests.journeys.staging import declared, looked

FAILED = [name for name in case_names() if find_case(name).description["expected"].get("evidence")]
CERTAIN_ENOUGH = {
    "flaky-test": FailureOrigin.FLAKY,
    "failing-test": FailureOrigin.CHANGE,
    "compiler-error": FailureOrigin.CHANGE,
}


def subject(scene: Scene, *, bare: bool = False) -> FailureSubject:
    request, event = scene.worlds.gitlab.merge_request, scene.case.description["event"]
    if bare:
        return FailureSubject(mr_iid=request.iid)
    return FailureSubject(
        mr_iid=request.iid,
        sha=request.sha or "",
        pipeline_id=event.get("pipeline") or 0,
        target_branch=request.target_branch,
    )


async def of(case: str, folder: Path, *, bare: bool = False) -> GatheredFacts:
    with Scene(find_case(case)) as scene:
        return await looked(scene, folder, subject(scene, bare=bare))


@pytest.mark.parametrize("case", FAILED)
async def test_no_case_is_judged_wrongly_and_most_are_judged(case: str, tmp_path: Path) -> None:
    verdict = judge_failures((await of(case, tmp_path)).facts)
    expected = find_case(case).description["expected"]
    wrong = (
        {FailureOrigin.CHANGE}
        if not expected["caused_by_change"]
        else set(FailureOrigin) - {FailureOrigin.CHANGE, FailureOrigin.UNKNOWN}
    )
    assert verdict.jobs
    assert verdict.origin not in wrong, render_verdict(verdict)
    assert verdict.origin is CERTAIN_ENOUGH.get(case, verdict.origin), render_verdict(verdict)


async def test_external_statuses_are_read_as_jobs_are(tmp_path: Path) -> None:
    """The log of a Konflux task; behind one that only waited, Testing Farm's report and the failed test's log."""
    found = await of("konflux-build-and-test", tmp_path)
    facts = found.facts
    jobs = {job.name: job for job in facts.jobs}
    assert "is not signed" in jobs["Konflux / server-cli-on-pull-request"].text
    tested = jobs["Konflux / i18n-tests / voxygen"].text
    assert "FAILED /plans/i18n > /tests/unit" in tested
    assert "panicked at voxygen/i18n-helpers/src/lib.rs:462:17" in tested
    (failure,) = [one for one in found.failures if "/tests/unit" in one.title]
    assert "panicked at voxygen" in failure.excerpt
    verdict = judge_failures(facts)
    assert "Its log was not read." not in render_verdict(verdict)


@pytest.mark.parametrize("case", ["odd-corners", "merge-request-review"])
async def test_where_nothing_failed_there_is_nothing_to_judge(case: str, tmp_path: Path) -> None:
    assert not (await of(case, tmp_path)).facts.jobs


async def test_what_an_order_does_not_say_its_merge_request_does(tmp_path: Path) -> None:
    whole, bare = await of("failing-test", tmp_path), await of("failing-test", tmp_path, bare=True)
    assert bare.facts == whole.facts
    assert bare.failures == whole.failures


@pytest.mark.thorough
async def test_the_facts_of_a_flaky_job_are_its_tries(tmp_path: Path) -> None:
    (job,) = (await of("flaky-test", tmp_path)).facts.jobs
    assert (job.name, job.tries.passed, job.tries.passed_in_others) == ("translation", 1, 1)
    assert job.fingerprints
    assert job.target is not None
    assert job.target.is_green


@pytest.mark.thorough
async def test_a_source_in_trouble_is_a_sentence_and_no_error(tmp_path: Path) -> None:
    with Scene(find_case("failing-test")) as scene:
        for _ in range(20):
            scene.worlds.gitlab.faults.plan("*/trace", server_error_fault(503), method="GET")
        found = await looked(scene, tmp_path, subject(scene))
    (job,) = found.facts.jobs
    assert job.analysis is None
    assert f"The log of job {job.id} could not be read." in found.facts.missing_facts
    assert judge_failures(found.facts).sure <= judge_failures((await of("failing-test", tmp_path)).facts).sure


async def test_a_log_that_is_longer_than_what_is_looked_at_was_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end tells most, so its beginning alone tells nothing."""
    monkeypatch.setattr(failed_logs, "LOOK_LOG_BYTES", 1_000)
    found = await of("failing-test", tmp_path)
    assert found.facts.jobs[0].analysis is None
    assert any("could not be read" in sentence for sentence in found.facts.missing_facts)


async def test_a_look_ends_when_its_time_is_over_with_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failure_facts, "LOOK_S", 3.0)
    gate = FaultGate()
    with Scene(find_case("failing-test")) as scene:
        scene.worlds.gitlab.faults.plan("*/trace", Hold(gate), method="GET")
        async with asyncio.timeout(30):
            found = await looked(scene, tmp_path, subject(scene))
        gate.open()
    assert [job.name for job in found.facts.jobs] == ["build-test-deploy"]
    assert found.facts.changed
    assert "Not everything was looked at: the time for it was over." in found.facts.missing_facts


async def test_a_workflow_without_a_tool_is_told_what_was_not_looked_at(tmp_path: Path) -> None:
    reads = ToolReader([], Secrets())
    found = await gather_facts(reads, FailureSubject(mr_iid=1, pipeline_id=2, sha="ab", target_branch="main"))
    assert not found.facts.jobs
    assert any("was not looked at" in sentence for sentence in reads.missing)


@pytest.mark.thorough
async def test_what_is_secret_is_in_no_fact(tmp_path: Path) -> None:
    """A name of a job is somebody's words like any other."""
    secret = "s3cret-in-the-name-of-a-job"

    def renamed(worlds: LabWorlds) -> None:
        for job in worlds.gitlab.jobs:
            job.name = f"build {secret}"

    with Scene(find_case("failing-test")) as scene:
        scene.run_in_server(renamed)
        found = create_sources(declared(scene, tmp_path), {})
        reads = ToolReader([tool for one in found for tool in one.tools], Secrets([secret]))
        seen = await gather_facts(reads, subject(scene))
        for one in found:
            await one.close()
    assert seen.facts.jobs
    assert secret not in str(seen)

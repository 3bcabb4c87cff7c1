"""What is gathered before a model speaks (N8), from the lab's GitLab over HTTP, and what rules make of each case."""

import asyncio
from pathlib import Path

import pytest

from hummingbird.adapters.sources.registry import sources
from hummingbird.agent.looking import gathering, reading
from hummingbird.agent.looking.gathering import Gathered, Subject, gathered
from hummingbird.agent.looking.reading import Reads
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.verdicts import Origin, plainly
from hummingbird.evidence.verdicts.judging import judge
from hummingbird.lab.case import find, names
from hummingbird.lab.gitlab.faults import server_error
from hummingbird.lab.planned import Gate, Hold
from hummingbird.lab.scene import Scene, Worlds
from tests.journeys.staging import declared, looked

FAILED = [name for name in names() if find(name).about["expected"].get("evidence")]
CERTAIN_ENOUGH = {"flaky-test": Origin.FLAKY, "failing-test": Origin.CHANGE, "compiler-error": Origin.CHANGE}


def subject(scene: Scene, *, bare: bool = False) -> Subject:
    request, event = scene.worlds.gitlab.merge_request, scene.case.about["event"]
    if bare:
        return Subject(mr_iid=request.iid)
    return Subject(
        mr_iid=request.iid,
        sha=request.sha or "",
        pipeline_id=event.get("pipeline") or 0,
        target_branch=request.target_branch,
    )


async def of(case: str, folder: Path, *, bare: bool = False) -> Gathered:
    with Scene(find(case)) as scene:
        return await looked(scene, folder, subject(scene, bare=bare))


@pytest.mark.parametrize("case", FAILED)
async def test_n8_no_case_is_judged_wrongly_and_most_are_judged(case: str, tmp_path: Path) -> None:
    verdict = judge((await of(case, tmp_path)).facts)
    expected = find(case).about["expected"]
    wrong = {Origin.CHANGE} if not expected["caused_by_change"] else set(Origin) - {Origin.CHANGE, Origin.UNKNOWN}
    assert verdict.jobs
    assert verdict.origin not in wrong, plainly(verdict)
    assert verdict.origin is CERTAIN_ENOUGH.get(case, verdict.origin), plainly(verdict)


@pytest.mark.parametrize("case", ["odd-corners", "merge-request-review"])
async def test_n8_where_nothing_failed_there_is_nothing_to_judge(case: str, tmp_path: Path) -> None:
    assert not (await of(case, tmp_path)).facts.jobs


async def test_n8_what_an_order_does_not_say_its_merge_request_does(tmp_path: Path) -> None:
    whole, bare = await of("failing-test", tmp_path), await of("failing-test", tmp_path, bare=True)
    assert bare.facts == whole.facts
    assert bare.failures == whole.failures


@pytest.mark.thorough
async def test_n8_the_facts_of_a_flaky_job_are_its_tries(tmp_path: Path) -> None:
    (job,) = (await of("flaky-test", tmp_path)).facts.jobs
    assert (job.name, job.tries.passed, job.tries.passed_in_others) == ("translation", 1, 1)
    assert job.fingerprints
    assert job.target is not None
    assert job.target.green


@pytest.mark.thorough
async def test_n8_a_source_in_trouble_is_a_sentence_and_no_error(tmp_path: Path) -> None:
    with Scene(find("failing-test")) as scene:
        for _ in range(20):
            scene.worlds.gitlab.faults.plan("*/trace", server_error(503), method="GET")
        found = await looked(scene, tmp_path, subject(scene))
    (job,) = found.facts.jobs
    assert job.analysis is None
    assert f"The log of job {job.id} could not be read." in found.facts.unseen
    assert judge(found.facts).sure <= judge((await of("failing-test", tmp_path)).facts).sure


async def test_n8_a_log_that_is_longer_than_what_is_looked_at_was_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end tells most, so its beginning alone tells nothing."""
    monkeypatch.setattr(reading, "LOOK_LOG_BYTES", 1_000)
    found = await of("failing-test", tmp_path)
    assert found.facts.jobs[0].analysis is None
    assert any("could not be read" in sentence for sentence in found.facts.unseen)


async def test_n8_a_look_ends_when_its_time_is_over_with_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "LOOK_S", 3.0)
    gate = Gate()
    with Scene(find("failing-test")) as scene:
        scene.worlds.gitlab.faults.plan("*/trace", Hold(gate), method="GET")
        async with asyncio.timeout(30):
            found = await looked(scene, tmp_path, subject(scene))
        gate.open()
    assert [job.name for job in found.facts.jobs] == ["build-test-deploy"]
    assert found.facts.changed
    assert "Not everything was looked at: the time for it was over." in found.facts.unseen


async def test_n8_a_workflow_without_a_tool_is_told_what_was_not_looked_at(tmp_path: Path) -> None:
    reads = Reads([], Secrets())
    found = await gathered(reads, Subject(mr_iid=1, pipeline_id=2, sha="ab", target_branch="main"))
    assert not found.facts.jobs
    assert any("was not looked at" in sentence for sentence in reads.unseen)


@pytest.mark.thorough
async def test_t7_what_is_secret_is_in_no_fact(tmp_path: Path) -> None:
    """A name of a job is somebody's words like any other."""
    secret = "s3cret-in-the-name-of-a-job"

    def renamed(worlds: Worlds) -> None:
        for job in worlds.gitlab.jobs:
            job.name = f"build {secret}"

    with Scene(find("failing-test")) as scene:
        scene.ask(renamed)
        found = sources(declared(scene, tmp_path), {})
        reads = Reads([tool for one in found for tool in one.tools], Secrets([secret]))
        seen = await gathered(reads, subject(scene))
        for one in found:
            await one.close()
    assert seen.facts.jobs
    assert secret not in str(seen)

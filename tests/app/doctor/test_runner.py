"""The checks together: side by side, each with its time, in their order, and without a secret."""

import asyncio
import os
from pathlib import Path

from hummingbird.app.doctor import CheckFinding, CheckOutcomes, DoctorCheck
from hummingbird.app.doctor.runner import examine, run_checks
from hummingbird.core.errors import QueueUnusable
from hummingbird.lab.fault_injection import FaultResponse
from hummingbird.lab.gitlab.server import GitLabLab
from tests.app.doctor.examining import FAIL, OK, written


async def test_one_that_fails_or_never_ends_does_not_keep_others_from_being_told() -> None:
    async def broken() -> CheckOutcomes:
        yield OK, "It began."
        raise QueueUnusable("Fix it.")

    async def endless() -> CheckOutcomes:
        await asyncio.Event().wait()
        yield OK, "Never."

    async def well() -> CheckOutcomes:
        yield OK, "Fine."

    checks = [DoctorCheck("broken", broken), DoctorCheck("endless", endless), DoctorCheck("well", well)]
    found = [(one.part, one.standing, one.sentence) async for one in run_checks(checks, 0.05)]
    assert found[:2] == [("broken", OK, "It began."), ("broken", FAIL, "Fix it.")]
    assert found[2][:2] == ("endless", FAIL)
    assert found[3] == ("well", OK, "Fine.")


async def test_they_run_side_by_side() -> None:
    """Each waits for the other."""
    met = asyncio.Barrier(2)

    async def meets() -> CheckOutcomes:
        await met.wait()
        yield OK, "Met."

    found = [one async for one in run_checks([DoctorCheck("a", meets), DoctorCheck("b", meets)], 5)]
    assert [one.sentence for one in found] == ["Met.", "Met."]


async def test_leaving_early_ends_the_others() -> None:
    ended = asyncio.Event()

    async def quick() -> CheckOutcomes:
        yield OK, "Quick."

    async def slow() -> CheckOutcomes:
        try:
            await asyncio.Event().wait()
            yield OK, "Never."
        finally:
            ended.set()

    findings = run_checks([DoctorCheck("quick", quick), DoctorCheck("slow", slow)], 60)
    await anext(findings)
    await asyncio.sleep(0)
    await findings.aclose()
    assert ended.is_set()


def test_the_whole_of_it_shows_no_token_and_leaves_nothing_behind(tmp_path: Path, gitlab: GitLabLab) -> None:
    """Not even where a server repeats the token: it is masked."""
    path = gitlab.world.project.path
    workflow = f"data_sources:\n  gitlab: {{token_env: READING}}\nprojects: {{{path}: }}\n"
    gitlab.world.faults.plan("*/members/all/*", FaultResponse(302, "", {"Location": f"https://{gitlab.write_token}/"}))
    file = written(tmp_path, f"gitlab_url: {gitlab.url}\nmodel: digest", workflow)
    environment = {
        **{"PATH": os.environ["PATH"], "HUMMINGBIRD_HOME": str(tmp_path / "state")},
        **{"ORCHESTRATOR_GITLAB_TOKEN": gitlab.write_token, "READING": gitlab.read_token},
    }
    before = set(tmp_path.rglob("*"))

    async def all_of_it() -> list[CheckFinding]:
        return [one async for one in examine(file, environment)]

    found = asyncio.run(all_of_it())
    said = "\n".join(one.sentence for one in found)
    assert "redirects to" in said, "or the masking was not tried"
    assert gitlab.write_token not in said
    assert gitlab.read_token not in said
    assert set(tmp_path.rglob("*")) == before
    assert {one.part for one in found} >= {
        *("configuration", "prompts", "variables", "webhook secret", "dashboard", "gitlab", "token that writes", path),
        *("token that reads", "model", "sandbox", "state folder", "queue", "store"),
        *("session index", "known failures", "spending"),
    }

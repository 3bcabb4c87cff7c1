"""The pool: claimed once, by one, and never for ever."""

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hummingbird.core.errors import SandboxUnavailable
from hummingbird.sandboxes.kubernetes_api import PodApi, PodStatus, find_cluster
from hummingbird.sandboxes.kubernetes_manifest import build_deployment
from hummingbird.sandboxes.kubernetes_pool import PodPool
from tests.sandboxes.kube import (  # noqa: F401 - a fixture
    LabStage,
    Stage,
    beside,
    given_lab,
    given_lab_stage,
    given_stage,
    is_ready,
    names,
    pool_of,
    shape,
)
from tests.sandboxes.kube_gate import gate_before
from tests.sandboxes.kube_pool import HeldClock, Warnings, all_ready, at, cancelled, pool_on, put
from tests.sandboxes.test_cluster import outside


def metadata(stage: Stage, name: str) -> dict[str, Any]:
    [found] = [pod["metadata"] for pod in stage.pods() if pod["metadata"]["name"] == name]
    return dict(found)


async def test_a_claimed_pod_is_relabelled_released_dated_and_replaced(stage: Stage) -> None:
    await beside(lambda: pool_of(stage, 1))
    async with pool_on(stage, HeldClock()) as pool:
        claimed = await pool.claim()
        found = await beside(lambda: metadata(stage, claimed.name))
        assert found["labels"]["hummingbird/role"] == "active"
        assert "ownerReferences" not in found
        assert found["annotations"]["hummingbird/reap-by"] == at(1800)
        assert found["uid"] == claimed.uid
        await beside(lambda: stage.wait_until(lambda: names(stage, role="standby")))
        assert names(stage, role="active") == {claimed.name}
        # the ReplicaSet takes in any orphan that fits; a claimed one must not
        await beside(lambda: stage.wait_until(lambda: all(map(is_ready, stage.pods()))))
        assert "ownerReferences" not in await beside(lambda: metadata(stage, claimed.name))


async def test_a_claim_is_one_change_that_lets_go_of_the_owner_and_names_the_version(lab_stage: LabStage) -> None:
    """Two changes would leave a moment in which the pod is neither ours nor the Deployment's."""
    await put(lab_stage, "one", role="standby")
    await all_ready(lab_stage)
    sent: list[tuple[dict[str, Any], bool]] = []

    class Heard(PodApi):
        async def patch(self, pod: PodStatus, changes: dict[str, Any], *, unchanged: bool) -> PodStatus:
            sent.append((changes, unchanged))
            return await super().patch(pod, changes, unchanged=unchanged)

    async with pool_on(lab_stage, HeldClock()) as pool:
        pool.cluster = Heard(find_cluster(lab_stage.site, {}))
        await pool.claim()
        await pool.close()
    [(changes, unchanged)] = sent
    assert unchanged
    assert changes["ownerReferences"] is None
    assert changes["labels"]["hummingbird/role"] == "active"
    assert changes["annotations"]["hummingbird/reap-by"] == at(1800)


async def race(kubeconfig: str, verb: str, word: str, processes: int) -> list[str]:
    """Processes that begin at the same moment; the lines of all of them."""
    command = (sys.executable, "-m", "tests.sandboxes.claimer", kubeconfig, verb, word)
    pipe = asyncio.subprocess.PIPE
    root = Path(__file__).parents[2]
    racing = [
        await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=root) for _ in range(processes)
    ]
    for each in racing:
        assert each.stdout is not None
        assert await each.stdout.readline() == b"ready\n"
    answers = await asyncio.gather(*(each.communicate(b"go\n") for each in racing))
    assert all(each.returncode == 0 for each in racing)
    return [line for out, _ in answers for line in out.decode().split()]


@pytest.mark.thorough
async def test_processes_that_claim_at_once_never_get_the_same_pod(stage: Stage) -> None:
    """Three processes, two claims in each, three pods that stand by; the rest waits for replacements."""
    await beside(lambda: pool_of(stage, 3))
    claimed = await race(stage.site.kubeconfig, "claim", "2", 3)
    assert len(claimed) == 6
    assert len(set(claimed)) == 6
    assert names(stage, role="active") == set(claimed)


@pytest.mark.thorough
async def test_of_many_claimers_after_one_pod_one_gets_it_and_the_others_wait(lab_stage: LabStage) -> None:
    await put(lab_stage, "only", role="standby")
    await all_ready(lab_stage)
    clocks = [HeldClock() for _ in range(8)]
    async with AsyncExitStack() as stack:
        pools = [await stack.enter_async_context(pool_on(lab_stage, clock)) for clock in clocks]
        claims = [asyncio.create_task(pool.claim()) for pool in pools]
        naps = [asyncio.create_task(clock.napped.wait()) for clock in clocks]
        for claim, nap in zip(claims, naps, strict=True):
            await asyncio.wait({claim, nap}, return_when=asyncio.FIRST_COMPLETED)
        assert [claim.result().name for claim in claims if claim.done()] == ["only"]
        for waiting in [task for task in (*claims, *naps) if not task.done()]:
            await cancelled(waiting)
    assert sum(each.verb == "patch" for each in lab_stage.asked()) >= 1


@pytest.mark.thorough
async def test_a_pod_that_somebody_else_was_quicker_to_take_is_left_and_the_next_one_taken(
    lab_stage: LabStage,
) -> None:
    await put(lab_stage, "one", role="standby")
    await put(lab_stage, "two", role="standby")
    await all_ready(lab_stage)

    class Late(PodPool):
        async def _try_claim(self, pod: PodStatus, session_id: str) -> PodStatus | None:
            if len(names(lab_stage, role="standby")) == 2:
                lab_stage.patch(pod.name, {"metadata": {"labels": {"hummingbird/role": "active"}}})
            return await super()._try_claim(pod, session_id)

    async with pool_on(lab_stage, HeldClock(), kind=Late) as pool:
        claimed = await pool.claim()
    stolen = {"one", "two"} - {claimed.name}
    assert "hummingbird/claimed-by" not in metadata(lab_stage, stolen.pop()).get("annotations", {})
    assert "hummingbird/claimed-by" in metadata(lab_stage, claimed.name)["annotations"]


@pytest.mark.thorough
async def test_claim_waits_warns_once_after_two_minutes_and_takes_what_comes(lab_stage: LabStage) -> None:
    clock = HeldClock(flying=True)
    warnings = Warnings(clock)
    async with pool_on(lab_stage, clock, warnings) as pool:
        claiming = asyncio.create_task(pool.claim())
        await clock.reach(300)
        assert "no pod stands by; check the pool's Deployment" in await warnings.first()
        await put(lab_stage, "late", role="standby")
        assert (await claiming).name == "late"
    assert len(warnings.said) == 1
    assert 120 <= warnings.after[0] < 122


@pytest.mark.thorough
async def test_pods_that_are_not_ready_are_left_to_their_deployment_and_the_warning_says_why(
    lab_stage: LabStage,
) -> None:
    """Taking them would have the Deployment replace a broken image's pods for ever."""
    lab_stage.deploy(build_deployment(replace(shape(lab_stage), image="localhost/hummingbird-nothing:1"), 2))
    await beside(lambda: lab_stage.wait_until(lambda: str(lab_stage.pods()).count("'ImagePullBackOff'") == 2))
    clock = HeldClock(flying=True)
    warnings = Warnings(clock)
    async with pool_on(lab_stage, clock, warnings) as pool:
        claiming = asyncio.create_task(pool.claim())
        assert "2 stand by, none is ready: its image cannot be pulled" in await warnings.first()
        await cancelled(claiming)
    assert len(lab_stage.pods()) == 2
    assert names(lab_stage, role="active") == set()


@pytest.mark.thorough
async def test_a_pod_that_was_used_and_put_back_by_hand_is_not_claimed(lab_stage: LabStage) -> None:
    """A pod is never used by two sessions."""
    await put(lab_stage, "second-hand", role="standby", claimed_by="somebody", reap_by=at(5))
    await all_ready(lab_stage)
    clock = HeldClock(flying=True)
    warnings = Warnings(clock)
    async with pool_on(lab_stage, clock, warnings) as pool:
        claiming = asyncio.create_task(pool.claim())
        assert "second-hand stands by and was used before; delete it" in await warnings.first()
        await cancelled(claiming)
    assert names(lab_stage, role="standby") == {"second-hand"}


@pytest.mark.thorough
async def test_a_claim_cancelled_in_the_middle_leaves_no_pod_that_nobody_uses(lab_stage: LabStage) -> None:
    await put(lab_stage, "one", role="standby")
    await all_ready(lab_stage)
    async with gate_before(lab_stage.lab.url, lab_stage.kubeconfig) as gate, pool_on(lab_stage, HeldClock()) as pool:
        gate.method = "PATCH"
        claiming = asyncio.create_task(pool.claim())
        await gate.arrived.wait()
        assert names(lab_stage, role="active") == {"one"}
        claiming.cancel()
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await claiming
        assert lab_stage.pods() == []


@pytest.mark.thorough
async def test_a_claim_whose_answer_is_lost_is_known_by_its_mark(lab_stage: LabStage) -> None:
    await put(lab_stage, "one", role="standby")
    await all_ready(lab_stage)
    async with gate_before(lab_stage.lab.url, lab_stage.kubeconfig) as gate, pool_on(lab_stage, HeldClock()) as pool:
        gate.method, gate.lose = "PATCH", 1
        gate.opened.set()
        assert (await pool.claim()).name == "one"
        assert gate.arrived.is_set()


@pytest.mark.thorough
async def test_a_role_that_may_not_list_ends_the_waiting(lab_stage: LabStage) -> None:
    lab_stage.lab.narrow(lab_stage.token, {"pods": ("get", "patch")})
    async with pool_on(lab_stage, HeldClock()) as pool:
        with pytest.raises(SandboxUnavailable, match="may not list pods"):
            await pool.claim()


@pytest.mark.thorough
async def test_a_cluster_that_is_silent_for_a_while_does_not_end_the_waiting(lab_stage: LabStage) -> None:
    await put(lab_stage, "one", role="standby")
    await all_ready(lab_stage)
    clock = HeldClock()
    async with gate_before(lab_stage.lab.url, lab_stage.kubeconfig) as gate, pool_on(lab_stage, clock) as pool:
        gate.method, gate.lose = "GET", 1
        claiming = asyncio.create_task(pool.claim())
        await gate.arrived.wait()
        gate.method = ""
        await clock.napped.wait()
        await clock.move(1)
        assert (await claiming).name == "one"


@pytest.mark.thorough
async def test_only_the_roles_verbs_in_one_namespace_are_used(lab_stage: LabStage) -> None:
    await put(lab_stage, "one", role="standby")
    await all_ready(lab_stage)
    async with pool_on(lab_stage, HeldClock()) as pool:
        claimed = await pool.claim()
        await pool.linger(claimed, "session")
        assert await pool.reclaim("session")
        await pool.reap_expired()
    assert {(each.resource, each.verb) for each in lab_stage.asked()} == {("pods", "list"), ("pods", "patch")}
    assert outside(lab_stage.asked(), lab_stage.namespace) == []

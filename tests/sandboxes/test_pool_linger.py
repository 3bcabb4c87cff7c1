"""What stays for a reply, what is taken back, and what is reaped."""

import asyncio
import json
import time

import pytest

from hummingbird.core.errors import SandboxBroken
from hummingbird.sandboxes.kubernetes_api import PodApi, PodGoneError, PodStatus, find_cluster
from hummingbird.sandboxes.kubernetes_pool import PodPool
from tests.sandboxes.kube import LabStage, Stage, beside, given_lab, given_lab_stage, given_stage, names, pool_of  # noqa: F401 - a fixture
from tests.sandboxes.kube_pool import HeldClock, Warnings, all_ready, at, cancelled, no_room, pool_on, put
from tests.sandboxes.test_pool import metadata, race

AWKWARD = "https://gitlab.example/group/project/-/merge_requests/7#note_" + "9" * 300


@pytest.mark.parametrize("session", ["0197c1de-plain", AWKWARD, "-ä-"], ids=["plain", "long", "odd"])
async def test_a_lingering_pod_is_kept_for_its_session_and_taken_back_by_it(lab_stage: LabStage, session: str) -> None:
    await put(lab_stage, "one", role="standby")
    await all_ready(lab_stage)
    clock = HeldClock()
    async with pool_on(lab_stage, clock) as pool, pool_on(lab_stage, clock) as other:
        claimed = await pool.claim()
        await pool.linger(claimed, session)
        marks = metadata(lab_stage, "one")
        assert marks["annotations"]["hummingbird/session-id"] == session
        assert marks["annotations"]["hummingbird/reap-by"] == at(300)
        assert await other.reclaim("another session") is None
        await clock.move(299)
        taken = await other.reclaim(session)
        assert taken is not None
        assert taken.uid == claimed.uid
        marks = metadata(lab_stage, "one")
        assert marks["annotations"]["hummingbird/reap-by"] == at(299 + 1800)
        assert "hummingbird/session-id" not in marks["annotations"]
        assert "hummingbird/session-id" not in marks["labels"]
        assert await pool.reclaim(session) is None


@pytest.mark.thorough
async def test_processes_that_reclaim_at_once_never_share_the_pod(stage: Stage) -> None:
    await beside(lambda: pool_of(stage, 1))
    async with pool_on(stage, _Wall()) as pool:
        claimed = await pool.claim()
        await pool.linger(claimed, "session")
    answers = await race(stage.site.kubeconfig, "reclaim", "session", 4)
    assert sorted(answers) == ["-", "-", "-", claimed.name]


class _Wall(HeldClock):
    """The processes of the race have the real time."""

    def now(self) -> float:
        return time.time()


@pytest.mark.thorough
async def test_many_reclaimers_of_one_pod_are_one_winner_every_time(lab_stage: LabStage) -> None:
    await put(lab_stage, "one", role="standby")
    await all_ready(lab_stage)
    clock = HeldClock()
    async with (
        pool_on(lab_stage, clock) as first,
        pool_on(lab_stage, clock) as second,
        pool_on(lab_stage, clock) as third,
    ):
        pod: PodStatus | None = await first.claim()
        for _ in range(10):
            assert pod is not None
            await first.linger(pod, "session")
            won = [
                each for each in await asyncio.gather(*(p.reclaim("session") for p in (first, second, third))) if each
            ]
            assert len(won) == 1
            pod = won[0]


@pytest.mark.thorough
async def test_an_overdue_pod_cannot_be_taken_back(lab_stage: LabStage) -> None:
    await put(lab_stage, "late", session="late", reap_by=at(0))
    await put(lab_stage, "unreadable", session="unreadable", reap_by="soon")
    await put(lab_stage, "timely", session="timely", reap_by=at(1))
    await all_ready(lab_stage)
    async with pool_on(lab_stage, HeldClock(), max_lingering=9) as pool:
        assert await pool.reclaim("late") is None
        assert await pool.reclaim("unreadable") is None
        assert await pool.reclaim("timely") is not None


@pytest.mark.thorough
async def test_a_pod_that_is_being_deleted_cannot_be_taken_back(lab_stage: LabStage) -> None:
    await put(lab_stage, "going", session="session", reap_by=at(100))
    await all_ready(lab_stage)
    async with pool_on(lab_stage, HeldClock()) as pool:
        assert await reclaimed_while_going(lab_stage, pool) is None


async def reclaimed_while_going(lab_stage: LabStage, pool: PodPool) -> PodStatus | None:
    """The list still has the pod, and says that it is leaving."""
    await beside(lambda: lab_stage.delete("going", grace_s=30))
    assert "deletionTimestamp" in json.dumps(lab_stage.pods())
    return await pool.reclaim("session")


@pytest.mark.thorough
async def test_what_is_overdue_is_reaped_and_the_rest_stays(lab_stage: LabStage) -> None:
    with no_room(lab_stage):
        await put(lab_stage, "overdue", reap_by=at(0))
        await put(lab_stage, "working", reap_by=at(1))
        await put(lab_stage, "lingered-out", session="a", reap_by=at(-1))
        await put(lab_stage, "lingering", session="b", reap_by=at(200))
        await put(lab_stage, "standing-by", role="standby", reap_by=at(-9))
        async with pool_on(lab_stage, HeldClock()) as pool:
            assert sorted(await pool.reap_expired()) == ["lingered-out", "overdue"]
            assert {pod["metadata"]["name"] for pod in lab_stage.pods()} == {"working", "lingering", "standing-by"}
            assert await pool.reap_expired() == []


@pytest.mark.thorough
async def test_of_too_many_lingering_pods_those_nearest_to_their_deadline_go_first(lab_stage: LabStage) -> None:
    with no_room(lab_stage):
        for name, seconds in (("c", 30), ("a", 10), ("d", 40), ("b", 20)):
            await put(lab_stage, name, session=name, reap_by=at(seconds))
        await put(lab_stage, "working", reap_by=at(5))
        async with pool_on(lab_stage, HeldClock(), max_lingering=2) as pool:
            assert await pool.reap_expired() == ["a", "b"]
        assert {pod["metadata"]["name"] for pod in lab_stage.pods()} == {"c", "d", "working"}


@pytest.mark.thorough
async def test_a_pod_taken_back_while_the_reaper_decides_is_not_reaped(lab_stage: LabStage) -> None:
    """By the reaper's list it was overdue; by the time of its deletion somebody works in it."""
    await put(lab_stage, "one", session="session", reap_by=at(10))
    await all_ready(lab_stage)
    async with pool_on(lab_stage, HeldClock()) as other:

        class Slow(PodPool):
            async def _try_reap(self, pod: PodStatus) -> bool:
                assert await other.reclaim("session") is not None
                return await super()._try_reap(pod)

        late = HeldClock()
        await late.move(60)
        async with pool_on(lab_stage, late, kind=Slow) as reaper:
            assert await reaper.reap_expired() == []
    assert names(lab_stage, role="active") == {"one"}


@pytest.mark.thorough
async def test_a_pod_reaped_while_somebody_takes_it_back_is_not_taken(lab_stage: LabStage) -> None:
    await put(lab_stage, "one", session="session", reap_by=at(10))
    await all_ready(lab_stage)
    late = HeldClock()
    await late.move(60)
    async with pool_on(lab_stage, late) as reaper:

        class Slow(PodPool):
            async def _try_claim(self, pod: PodStatus, session_id: str) -> PodStatus | None:
                assert await reaper.reap_expired() == ["one"]
                return await super()._try_claim(pod, session_id)

        async with pool_on(lab_stage, HeldClock(), kind=Slow) as pool:
            assert await pool.reclaim("session") is None
    assert lab_stage.pods() == []


@pytest.mark.thorough
async def test_an_active_pod_without_a_readable_deadline_gets_one_and_is_reaped_by_it(lab_stage: LabStage) -> None:
    """Somebody may work in it; but it does not stay for ever."""
    with no_room(lab_stage):
        await put(lab_stage, "none")
        await put(lab_stage, "odd", reap_by="tomorrow")
        await put(lab_stage, "nowhere", reap_by="2030-01-01T00:00:00")
        clock = HeldClock()
        warnings = Warnings(clock)
        async with pool_on(lab_stage, clock, warnings) as pool:
            assert await pool.reap_expired() == []
            for name in ("none", "odd", "nowhere"):
                assert metadata(lab_stage, name)["annotations"]["hummingbird/reap-by"] == at(1800)
            assert len(warnings.said) == 3
            await clock.move(1800)
            assert sorted(await pool.reap_expired()) == ["none", "nowhere", "odd"]


@pytest.mark.thorough
async def test_reaping_follows_each_acquisition(lab_stage: LabStage) -> None:
    await put(lab_stage, "overdue", reap_by=at(-1))
    await put(lab_stage, "fresh", role="standby")
    await all_ready(lab_stage)
    async with pool_on(lab_stage, HeldClock()) as pool:
        await pool.claim()
        await beside(lambda: lab_stage.wait_until(lambda: names(lab_stage) == {"fresh"}))
        await put(lab_stage, "overdue-too", reap_by=at(-1))
        await put(lab_stage, "kept", session="session", reap_by=at(9))
        await all_ready(lab_stage)
        assert await pool.reclaim("session")
        await beside(lambda: lab_stage.wait_until(lambda: names(lab_stage) == {"fresh", "kept"}))


@pytest.mark.thorough
async def test_a_reaper_goes_on_when_the_cluster_does_not_answer_and_says_so(lab_stage: LabStage) -> None:
    with no_room(lab_stage):
        await put(lab_stage, "overdue", reap_by=at(-1))
        lab_stage.lab.narrow(lab_stage.token, {"pods": ("get",)})
        clock = HeldClock()
        warnings = Warnings(clock)
        async with pool_on(lab_stage, clock, warnings) as pool:
            reaping = asyncio.create_task(pool.reap_forever(60))
            assert "could not be removed: You may not list pods" in await warnings.first()
            lab_stage.lab.narrow(lab_stage.token, {"pods": ("list", "delete")})
            await clock.napped.wait()
            await clock.move(60)
            await beside(lambda: lab_stage.wait_until(lambda: not lab_stage.pods()))
            await cancelled(reaping)


@pytest.mark.thorough
async def test_a_pod_that_is_gone_cannot_linger(lab_stage: LabStage) -> None:
    await put(lab_stage, "one", role="standby")
    await all_ready(lab_stage)
    async with pool_on(lab_stage, HeldClock()) as pool:
        claimed = await pool.claim()
        await beside(lambda: lab_stage.delete("one"))
        with pytest.raises(SandboxBroken):
            await pool.linger(claimed, "session")


@pytest.mark.thorough
async def test_a_dead_lingering_pod_is_reaped_before_its_time(lab_stage: LabStage) -> None:
    await put(lab_stage, "evicted", session="session", reap_by=at(100))
    await all_ready(lab_stage)
    await beside(lambda: lab_stage.lab.evict(lab_stage.namespace, "evicted"))
    await beside(lambda: lab_stage.wait_until(lambda: lab_stage.pods()[0]["status"]["phase"] == "Failed"))
    async with pool_on(lab_stage, HeldClock()) as pool:
        assert await pool.reclaim("session") is None
        assert await pool.reap_expired() == ["evicted"]
    cluster = PodApi(find_cluster(lab_stage.site, {}))
    with pytest.raises(PodGoneError):
        await cluster.get("evicted")
    await cluster.close()

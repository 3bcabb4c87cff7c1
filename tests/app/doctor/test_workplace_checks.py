"""Sandbox, folders, queue and store, each shown broken; and what a check makes it takes away."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from hummingbird.app.doctor import CheckFinding, DoctorContext
from hummingbird.app.doctor.platform_checks import check_conditional_writes, platform_checks
from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.limits import QUEUE_RECEIVES
from hummingbird.core.protocols.storage import ObjectVersion
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.storage.object_store import BucketObjectStore
from tests.app.doctor.examining import FAIL, OK, WARN, doctor_context, tried
from tests.contracts.queues.backends.ministack import Ministack
from tests.sandboxes.kube import LabStage, given_lab, given_lab_stage  # noqa: F401 - a fixture


def part(of: DoctorContext, *names: str) -> list[CheckFinding]:
    return tried(lambda one: [check for check in platform_checks(one) if check.part in names], of)


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_a_sandbox_that_starts_and_keeps_its_promises_is_well(tmp_path: Path) -> None:
    (found,) = part(doctor_context(tmp_path, "", environment=dict(os.environ)), "sandbox")
    said = (
        "A bubblewrap sandbox starts and keeps what it promises. Commands run in bubblewrap: nothing names another one."
    )
    assert (found.standing, found.sentence) == (OK, said)


def test_a_sandbox_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    (found,) = part(
        doctor_context(tmp_path, "sandbox: {backend: podman}", environment={"PATH": str(tmp_path)}), "sandbox"
    )
    assert found.standing is FAIL
    assert "Podman is not installed" in found.sentence


def test_a_pool_without_a_pod_that_stands_by_is_told(
    lab_stage: LabStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hummingbird.app.doctor.platform_checks.DOCTOR_CLAIM_S", 0.0)
    monkeypatch.setattr("hummingbird.app.doctor.platform_checks.DOCTOR_SANDBOX_S", 3.0)
    kubeconfig = lab_stage.lab.kubeconfig(tmp_path / "kubeconfig", lab_stage.token)
    environment = {"KUBECONFIG": str(kubeconfig), "PATH": os.environ["PATH"]}
    settings = f"sandbox: {{backend: k8spool, namespace: {lab_stage.namespace}}}"
    (found,) = part(doctor_context(tmp_path, settings, environment=environment), "sandbox")
    assert found.standing is FAIL
    assert "no pod stands by; check the pool's Deployment and its number of replicas" in found.sentence


def test_folders_that_are_not_there_yet_are_well_and_stay_away(tmp_path: Path) -> None:
    chosen = doctor_context(tmp_path, "")
    before = tree(tmp_path)
    found = part(chosen, "state folder", "queue", "store")
    assert [one.standing for one in found] == [OK] * 4
    assert all("will be created when it is needed" in one.sentence for one in found)
    assert tree(tmp_path) == before, "nothing is left behind"


def test_folders_that_are_there_are_used_and_left_as_they_were(tmp_path: Path) -> None:
    chosen = doctor_context(tmp_path, "")
    (tmp_path / "state" / "objects").mkdir(parents=True)
    (tmp_path / "state" / "sessions").mkdir()
    before = tree(tmp_path)
    found = part(chosen, "state folder", "store")
    assert [one.standing for one in found] == [OK] * 3
    assert found[-1].sentence == f"{tmp_path}/state/objects stores and returns data."
    assert tree(tmp_path) == before


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    chosen = doctor_context(tmp_path, "", environment={"HUMMINGBIRD_HOME": str(tmp_path / "file" / "below")})
    found = part(chosen, "state folder", "queue", "store")
    assert [one.standing for one in found] == [FAIL] * 4
    assert all("set HUMMINGBIRD_HOME to a folder that this user may write to" in one.sentence for one in found)


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(("mebibytes", "standing"), [(10, FAIL), (500, WARN), (5000, OK)])
def test_a_disk_that_is_full_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mebibytes: int, standing: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(0, 0, mebibytes * 1024**2))
    found = part(doctor_context(tmp_path, ""), "state folder")
    assert {one.standing for one in found} == {standing}
    assert all(f"{mebibytes:,} MiB are free" in one.sentence for one in found)


def test_a_queue_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "queue.sqlite").write_bytes(b"not a queue at all" * 100)
    (found,) = part(doctor_context(tmp_path, ""), "queue")
    assert found.standing is FAIL
    assert "is damaged or no queue; move it away" in found.sentence


async def given_up(path: Path) -> None:
    """A message that was received too often."""
    queue = SqliteQueue(path, 60)
    await queue.send("lost", group="g", dedup_id="d")
    for _ in range(QUEUE_RECEIVES):
        (message,) = await queue.receive(1, 0)
        await queue.postpone(message, 0)
    await queue.close()


def test_work_that_was_given_up_is_told(tmp_path: Path) -> None:
    """And stays where it is."""
    (tmp_path / "state").mkdir()
    asyncio.run(given_up(tmp_path / "state" / "queue.sqlite"))
    for _ in range(2):
        usable, dead = part(doctor_context(tmp_path, ""), "queue")
        assert usable.standing is OK
        assert (dead.standing, dead.sentence) == (WARN, "One message was given up: see `hummingbird queue list`.")


@pytest.mark.thorough
def test_a_queue_of_the_cloud_is_asked_whether_it_is_fit(tmp_path: Path, cloud: Ministack) -> None:
    """It must be FIFO, and should have a queue for dead letters behind it."""
    fit = asyncio.run(cloud.site()).url
    (found,) = part(doctor_context(tmp_path, f"sqs_fifo_queue_url: {fit}"), "queue")
    assert (found.standing, found.sentence) == (OK, f"{fit} can be used.")
    losing = cloud.create("losing.fifo")
    usable, weak = part(doctor_context(tmp_path, f"sqs_fifo_queue_url: {losing}"), "queue")
    assert (usable.standing, weak.standing) == (OK, WARN)
    assert "Give it a RedrivePolicy." in weak.sentence
    unfit = cloud.create("unfit")
    (found,) = part(doctor_context(tmp_path, f"sqs_fifo_queue_url: {unfit}"), "queue")
    assert found.standing is FAIL
    assert "is not a FIFO queue" in found.sentence


@pytest.mark.thorough
def test_the_queue_that_events_come_from_is_tried_too(tmp_path: Path, cloud: Ministack) -> None:
    fifo, events = asyncio.run(cloud.site()).url, cloud.create("events-to-try")
    for url, standing, words in ((events, OK, "can be reached"), (f"{events}-gone", FAIL, "There is no queue")):
        settings = f"sqs_queue_url: {url}\nsqs_fifo_queue_url: {fifo}"
        (found,) = part(doctor_context(tmp_path, settings), "events' queue")
        assert found.standing == standing
        assert words in found.sentence


def test_a_bucket_that_does_not_exist_is_told(tmp_path: Path, cloud: Ministack) -> None:
    (found,) = part(doctor_context(tmp_path, "session_store: s3://no-such-bucket/prefix"), "store")
    assert found.standing is FAIL
    assert "s3://no-such-bucket" in found.sentence


def test_a_store_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "objects").write_text("in the way")
    (found,) = part(doctor_context(tmp_path, ""), "store")
    assert found.standing is FAIL
    assert str(tmp_path / "state" / "objects") in found.sentence


async def test_a_store_that_does_not_keep_conditions_is_told() -> None:
    class Careless(BucketObjectStore):
        async def compare_and_swap(
            self, name: str, content: bytes, known: ObjectVersion | None
        ) -> ObjectVersion | None:
            await self.put(name, content)
            return ObjectVersion(e_tag="any")

    careless = Careless.in_memory()
    with pytest.raises(ObjectStoreUnusable, match="two hosts could continue the same session"):
        await check_conditional_writes(careless)
    assert await careless.list_names("") == []
    await check_conditional_writes(BucketObjectStore.in_memory())

"""The `sandbox` section, from YAML to what a cluster's API has been asked for."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.console import SystemClock
from hummingbird.app.sandboxes import SandboxChoice, resolve_sandbox
from hummingbird.core.errors import HummingbirdError
from hummingbird.core.protocols.observer import Clock
from hummingbird.sandboxes.podman import run_arguments
from hummingbird.sandboxes.registry import SandboxRegistry
from tests.app.conducting import configured
from tests.sandboxes.kube import LabStage, beside, given_lab, given_lab_stage, names  # noqa: F401 - a fixture
from tests.sandboxes.kube_pool import NOW, HeldClock, all_ready, at, cancelled, no_room, put
from tests.thoroughly import also


class StandingClock:
    """The same moment all the time, though people do sleep."""

    def now(self) -> float:
        return NOW

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def sandboxes(folder: Path, lab_stage: LabStage, clock: Clock, *lines: str) -> AsyncIterator[SandboxRegistry]:
    """As the lines of the section say, in the stage's namespace unless they name one."""
    usual = {"backend": "k8s", "image": lab_stage.image, "namespace": lab_stage.namespace}
    named = {line.split(":", 1)[0] for line in lines}
    section = [*(f"  {name}: {value}" for name, value in usual.items() if name not in named)]
    settings = configured(folder, "\n".join(["sandbox:", *section, *(f"  {line}" for line in lines)])).settings
    nowhere = lab_stage.lab.kubeconfig(folder / "kubeconfig", lab_stage.token)  # a context's namespace would hold
    given = {"KUBECONFIG": str(nowhere), "PATH": os.environ["PATH"]}
    if lab_stage.site.kubectl:
        given["PATH"] = f"{Path(lab_stage.site.kubectl).parent}:{given['PATH']}"
    made = SandboxRegistry(resolve_sandbox(settings, SandboxChoice()), given, clock, print)
    try:
        await made.open()
        yield made
    finally:
        await made.close()


async def pod_of(folder: Path, lab_stage: LabStage, *lines: str) -> dict[str, Any]:
    """The pod that is there while a sandbox is."""
    async with sandboxes(folder, lab_stage, SystemClock(), *lines) as made:
        sandbox = made.make("session")
        try:
            await sandbox.start()
            (pod,) = await beside(lab_stage.pods)
        finally:
            await sandbox.cleanup()
    assert isinstance(pod, dict)
    return pod


CHANGED = (
    "active_deadline_seconds: 600",
    "metadata: {labels: {team: birds}, annotations: {why: tests}}",
    "resources:",
    "  requests: {cpu: 50m, memory: 64Mi, ephemeral-storage: 32Mi}",
    '  limits: {cpu: "2", memory: 512Mi, ephemeral-storage: 128Mi}',
)
TOLD = {
    "active_deadline_seconds": (1800, 600),
    "metadata.labels": (None, "birds"),
    "metadata.annotations": (None, "tests"),
    "resources.requests.cpu": ("100m", "50m"),
    "resources.requests.memory": ("256Mi", "64Mi"),
    "resources.requests.ephemeral-storage": ("256Mi", "32Mi"),
    "resources.limits.cpu": ("1", "2"),
    "resources.limits.memory": ("1Gi", "512Mi"),
    "resources.limits.ephemeral-storage": ("2Gi", "128Mi"),
}


def told(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    amounts = {
        f"resources.{kind}.{name}": amount
        for kind, each in container["resources"].items()
        for name, amount in each.items()
    }
    return {
        "active_deadline_seconds": pod["spec"]["activeDeadlineSeconds"],
        "metadata.labels": pod["metadata"]["labels"].get("team"),
        "metadata.annotations": pod["metadata"]["annotations"].get("why"),
        **amounts,
    }


async def test_each_key_of_a_pod_reaches_the_api(lab_stage: LabStage, tmp_path: Path) -> None:
    usual = told(await pod_of(tmp_path / "usual", lab_stage))
    changed = told(await pod_of(tmp_path / "changed", lab_stage, *CHANGED))
    assert {key: (usual[key], changed[key]) for key in TOLD} == TOLD


@pytest.mark.thorough
async def test_image_is_what_a_pod_runs(lab_stage: LabStage, tmp_path: Path) -> None:
    """The one that nobody has never starts; what was asked for is seen all the same."""
    async with sandboxes(tmp_path, lab_stage, StandingClock(), "image: registry.example/gone:1") as made:
        starting = asyncio.create_task(made.make("session").start())
        await beside(lambda: lab_stage.wait_until(lab_stage.pods))
        (pod,) = await beside(lab_stage.pods)
        await cancelled(starting)
    assert [container["image"] for container in pod["spec"]["containers"]] == ["registry.example/gone:1"]


@pytest.mark.thorough
async def test_namespace_is_where_a_pod_is_made(lab_stage: LabStage, tmp_path: Path) -> None:
    assert (await pod_of(tmp_path, lab_stage))["metadata"]["namespace"] == lab_stage.namespace
    with pytest.raises(HummingbirdError, match="elsewhere"):
        await pod_of(tmp_path, lab_stage, "namespace: elsewhere")


@pytest.mark.parametrize("backend", ["bubblewrap", "podman", "k8s"])
def test_backend_is_the_kind_of_sandbox(tmp_path: Path, backend: str) -> None:
    """Bubblewrap unless it says otherwise."""
    line = "max_iterations: 9" if backend == "bubblewrap" else f"sandbox: {{backend: {backend}}}"
    wanted = resolve_sandbox(configured(tmp_path, line).settings, SandboxChoice())
    assert SandboxRegistry(wanted, {"PATH": os.environ["PATH"]}, StandingClock(), print).make().name == backend


def test_limits_hold_for_a_container_too(tmp_path: Path) -> None:
    lines = (
        "sandbox: {backend: podman, image: 'registry.example/box:1', resources: {limits: {ephemeral-storage: 64Mi}}}"
    )
    wanted = resolve_sandbox(configured(tmp_path, lines).settings, SandboxChoice())
    place: Any = SandboxRegistry(wanted, {"PATH": os.environ["PATH"]}, StandingClock(), print).make()._backend
    arguments = run_arguments(place._spec, "name")
    assert "registry.example/box:1" in arguments
    assert f"--tmpfs=/tmp:rw,nosuid,nodev,size={64 * 2**20},mode=1777" in arguments


POOL = "backend: k8spool"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "working", "waiting"),
    [
        also("max_lingering_pods: 2", 1800, 300),
        also("active_deadline_seconds: 600", 600, 300),
        ("linger_seconds: 7", 1800, 7),
        also("linger_seconds: 0", 1800, None),
        also("max_lingering_pods: 0", 1800, None),
    ],
)
async def test_active_deadline_seconds_and_linger_seconds_are_how_long_a_pod_of_a_pool_lives(
    lab_stage: LabStage, tmp_path: Path, line: str, working: int, waiting: int | None
) -> None:
    """While it works, and for a reply; 0 removes it at once."""
    await put(lab_stage, "one", role="standby")
    await all_ready(lab_stage)
    async with sandboxes(tmp_path, lab_stage, StandingClock(), POOL, line) as made:
        sandbox = made.make("session")
        async with asyncio.timeout(60):  # by a clock that stands, nobody ever gives up
            await sandbox.start()
        assert ends(lab_stage) == at(working)
        await sandbox.linger("session")
        assert ends(lab_stage) == (None if waiting is None else at(waiting))


def ends(lab_stage: LabStage) -> str | None:
    """When the one pod is to go; None if there is none that stays."""
    pods = [pod["metadata"] for pod in lab_stage.pods() if "deletionTimestamp" not in pod["metadata"]]
    return pods[0]["annotations"]["hummingbird/reap-by"] if pods else None


@pytest.mark.thorough
@pytest.mark.parametrize(("most", "left"), [(2, {"b", "c"}), (1, {"c"})])
async def test_max_lingering_pods_wait_and_the_others_are_removed(
    lab_stage: LabStage, tmp_path: Path, most: int, left: set[str]
) -> None:
    """Nearest deadline first."""
    with no_room(lab_stage):
        for number, name in enumerate("abc"):
            await put(lab_stage, name, session=name, reap_by=at(100 + number))
        clock = HeldClock()
        async with sandboxes(tmp_path, lab_stage, clock, POOL, f"max_lingering_pods: {most}") as made:
            reaping = asyncio.create_task(made.reap_forever())
            await clock.napped.wait()
            await cancelled(reaping)
            assert names(lab_stage) == left

"""A pod of its own for each sandbox, on the stand-in with real containers and on a real cluster."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.console import SystemClock
from hummingbird.core.errors import SandboxBroken, SandboxUnavailable
from hummingbird.sandboxes.command_sandbox import CommandSandbox
from hummingbird.sandboxes.kubernetes_pod import KubernetesBackend
from tests.sandboxes.kube import LabStage, Stage, beside, given_lab, given_lab_stage, given_stage, shape  # noqa: F401 - a fixture
from tests.sandboxes.kube_gate import gate_before
from tests.sandboxes.test_cluster import outside
from tests.standins.kubernetes.kubectl import install


class RipeClock:
    """Time that stands still until something is the case, and flies then."""

    def __init__(self, ripe: Callable[[], bool]) -> None:
        self._ripe = ripe
        self._now = 1_000_000.0

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.01)
        self._now += 10 * seconds if self._ripe() else 0.0


def place_on(stage: Stage, environment: Mapping[str, str] | None = None, **chosen: Any) -> KubernetesBackend:
    return KubernetesBackend(stage.site, shape(stage, **chosen), SystemClock(), environment)


@asynccontextmanager
async def started(stage: Stage, **chosen: Any) -> AsyncIterator[tuple[CommandSandbox, KubernetesBackend]]:
    place = place_on(stage, **chosen)
    sandbox = CommandSandbox(place)
    await sandbox.start()
    try:
        yield sandbox, place
    finally:
        await sandbox.cleanup()


async def printed(sandbox: CommandSandbox, command: str) -> str:
    done = await sandbox.exec(command, timeout_s=30)
    assert done.exit_code == 0, done
    return done.stdout.decode()


async def test_a_pod_runs_commands_and_keeps_files_and_is_gone_after_cleanup(stage: Stage) -> None:
    async with started(stage) as (sandbox, place):
        await sandbox.write_file("/tmp/data/in/a file", b"\x00\xff" * 1000)
        assert b"".join([chunk async for chunk in sandbox.read_file_iter("/tmp/data/in/a file")]) == b"\x00\xff" * 1000
        done = await sandbox.exec("cat; echo err >&2; exit 42", b"given")
        assert (done.exit_code, done.stdout, done.stderr) == (42, b"given", b"err\n")
        [pod] = await beside(stage.pods)
        assert pod["metadata"]["name"] == place.pod_name
        # what a killed process leaves is collected by any reaper of the namespace, once its own deadline has passed
        assert pod["metadata"]["labels"]["hummingbird/role"] == "active"
        due = datetime.fromisoformat(pod["metadata"]["annotations"]["hummingbird/reap-by"]).timestamp()
        assert due > time.time() + pod["spec"]["activeDeadlineSeconds"]
    assert await beside(stage.pods) == []
    await sandbox.cleanup()
    with pytest.raises(SandboxBroken, match="start it first"):
        await sandbox.exec("true")


async def test_a_pod_is_as_hardened_on_the_inside_as_its_manifest_says(stage: Stage) -> None:
    """No capability, no new privileges, a seccomp filter, no token, a root that cannot be written."""
    async with started(stage) as (sandbox, _):
        said = await printed(sandbox, LOOKING_AROUND)
        facts = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
        assert {facts[name].strip() for name in ("CapEff", "CapBnd", "CapPrm")} == {"0000000000000000"}
        assert (facts["NoNewPrivs"].strip(), facts["Seccomp"].strip()) == ("1", "2")
        assert facts["user"] != "0"
        assert facts["token"] == "none"
        assert facts["root"] == "read-only"
        assert facts["files"] == "x"


LOOKING_AROUND = """
cat /proc/self/status
echo user:$(id -u)
ls /var/run/secrets/kubernetes.io >/dev/null 2>&1 || echo token:none
(echo x >/bin/x) 2>/dev/null || echo root:read-only
echo x >x; echo files:$(cat x)
"""


@pytest.mark.thorough
async def test_a_command_that_kills_its_supervisor_ended_badly_but_the_sandbox_did_not(stage: Stage) -> None:
    """And process 1 ends what lost its parent and collects the dead, which count towards the pod's limit."""
    async with started(stage) as (sandbox, _):
        done = await sandbox.exec("(sleep 100 & sleep 100 &) ; kill -9 $PPID; sleep 100", timeout_s=30)
        assert done.exit_code == 137
        states = ") Z "
        while "(sleep)" in states or ") Z " in states:  # the test's own time-out bounds it
            states = await printed(sandbox, "cat /proc/[0-9]*/stat 2>/dev/null || true")


@asynccontextmanager
async def busy(sandbox: CommandSandbox) -> AsyncIterator[Awaitable[None]]:
    """A command that has begun and would go on for a minute; awaited, it is taken to its end."""
    async with aclosing(sandbox.stream_exec("echo begun; sleep 60", timeout_s=60)) as stream:
        assert await anext(stream) == b"begun\n"

        async def end() -> None:
            async for _ in stream:
                pass

        yield end()


@pytest.mark.thorough
async def test_a_pod_deleted_under_a_command_is_a_broken_sandbox_and_says_so(stage: Stage) -> None:
    """Never the output or the exit code of the command."""
    async with started(stage) as (sandbox, place), busy(sandbox) as end:
        await beside(lambda: stage.delete(place.pod_name))
        with pytest.raises(SandboxBroken, match=f"the pod {place.pod_name} is gone: somebody or something deleted it"):
            await end


@pytest.mark.thorough
async def test_an_evicted_pod_is_a_broken_sandbox_and_says_why(lab_stage: LabStage) -> None:
    async with started(lab_stage) as (sandbox, place), busy(sandbox) as end:
        await beside(lambda: lab_stage.lab.evict(lab_stage.namespace, place.pod_name))
        with pytest.raises(SandboxBroken, match="it was evicted: Usage of EmptyDir volume"):
            await end
        with pytest.raises(SandboxBroken, match="it was evicted"):
            await sandbox.exec("true")


@pytest.mark.thorough
async def test_a_pod_whose_time_is_up_is_a_broken_sandbox_and_says_so(stage: Stage) -> None:
    async with started(stage) as (sandbox, place):
        await beside(lambda: stage.patch(place.pod_name, {"spec": {"activeDeadlineSeconds": 1}}))
        with pytest.raises(SandboxBroken, match=rf"the pod {place.pod_name} ended: its time was up"):
            await sandbox.exec("sleep 60", timeout_s=60)


@pytest.mark.thorough
async def test_input_that_nobody_reads_hangs_nothing(lab_stage: LabStage) -> None:
    """The stand-in lets each exec with unread input hang, which real clusters do now and then."""
    async with started(lab_stage) as (sandbox, _):
        lab_stage.lab.hang_on_unread_stdin()
        try:
            assert (await sandbox.exec("true", b"x" * 1_000_000, timeout_s=30)).exit_code == 0
        finally:
            lab_stage.lab.hang_on_unread_stdin(on=False)


@pytest.mark.thorough
async def test_a_pod_of_its_own_does_not_linger_and_only_the_roles_verbs_in_one_namespace_are_used(
    lab_stage: LabStage,
) -> None:
    """Kubectl's requests too; test_cluster shows that a call outside would be seen."""
    async with started(lab_stage) as (sandbox, _):
        await sandbox.linger("session")
        assert lab_stage.pods() == []
    asked = lab_stage.asked()
    assert {each.verb for each in asked if each.resource == "pods"} == {"create", "get", "delete"}
    assert {each.verb for each in asked if each.resource == "pods/exec"} <= {"create", "get"}
    assert outside(asked, lab_stage.namespace) == []


@pytest.mark.thorough
async def test_a_cleanup_that_failed_can_be_tried_again(lab_stage: LabStage) -> None:
    async with started(lab_stage) as (sandbox, place):
        lab_stage.lab.narrow(lab_stage.token, {"pods": ("get",)})
        with pytest.raises(SandboxBroken, match=f"kubectl delete pod {place.pod_name}"):
            await sandbox.cleanup()
        lab_stage.lab.narrow(lab_stage.token, {"pods": ("get", "delete")})
        await sandbox.cleanup()
        assert lab_stage.pods() == []


async def test_without_kubectl_no_pod_is_made(lab_stage: LabStage) -> None:
    place = place_on(lab_stage, environment={"PATH": "/nowhere"})
    place._cluster_options = replace(lab_stage.site, kubectl="")
    with pytest.raises(SandboxUnavailable, match="install kubectl"):
        await place.start()
    assert lab_stage.asked() == []


@pytest.mark.thorough
async def test_a_role_without_exec_is_named_and_leaves_no_pod(lab_stage: LabStage) -> None:
    lab_stage.lab.narrow(lab_stage.token, {"pods": ("create", "get", "list", "delete", "patch")})
    with pytest.raises(SandboxUnavailable, match=r"may not run commands in pods: bind the role .*pods/exec"):
        await place_on(lab_stage).start()
    assert lab_stage.pods() == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("image", "reason", "said"),
    [
        ("localhost/hummingbird-nothing:1", "ImagePullBackOff", "after 20 s: its image cannot be pulled"),
        ("ROOT", "CreateContainerConfigError", "its image runs as root .* give the image a numeric USER"),
    ],
)
async def test_an_image_that_cannot_run_is_told_with_what_to_do_and_leaves_no_pod(
    lab_stage: LabStage, image: str, reason: str, said: str
) -> None:
    wanted = rooted(lab_stage.image) if image == "ROOT" else image
    clock = RipeClock(lambda: reason in json.dumps(lab_stage.pods()))
    place = KubernetesBackend(lab_stage.site, replace(shape(lab_stage), image=wanted), clock)
    with pytest.raises(SandboxUnavailable, match=said):
        await place.start()
    assert lab_stage.pods() == []


def rooted(image: str) -> str:
    """The same image, with root for its user."""
    name = f"{image.partition(':')[0]}:root"
    text = f"FROM {image}\nUSER 0\n".encode()
    subprocess.run(["podman", "build", "-q", "-t", name, "-"], input=text, check=True, capture_output=True)
    return name


@pytest.mark.thorough
async def test_a_pod_that_no_node_takes_is_waited_for_and_given_up(lab_stage: LabStage) -> None:
    lab_stage.lab.hold()
    try:
        place = KubernetesBackend(
            lab_stage.site, shape(lab_stage), RipeClock(lambda: "Unschedulable" in json.dumps(lab_stage.pods()))
        )
        with pytest.raises(
            SandboxUnavailable, match=r"after 120 s: no node can take it .* ask for less in `resources`"
        ):
            await place.start()
    finally:
        lab_stage.lab.release()
    assert lab_stage.pods() == []


@pytest.mark.thorough
async def test_start_cancelled_while_the_pod_is_being_made_leaves_none(lab_stage: LabStage) -> None:
    """The answer to the creation stands at the gate: the pod exists, and only its name is known here."""
    async with gate_before(lab_stage.lab.url, lab_stage.kubeconfig) as gate:
        gate.method = "POST"
        starting = asyncio.create_task(place_on(lab_stage).start())
        await gate.arrived.wait()
        assert len(lab_stage.pods()) == 1
        starting.cancel()
        starting.cancel()
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert lab_stage.pods() == []


@pytest.mark.thorough
async def test_start_cancelled_before_the_creation_arrives_leaves_no_pod(lab_stage: LabStage) -> None:
    """The removal must not overtake the creation: what is made after it would stay."""
    async with gate_before(lab_stage.lab.url, lab_stage.kubeconfig) as gate:
        gate.method, gate.early = "POST", True
        starting = asyncio.create_task(place_on(lab_stage).start())
        await gate.arrived.wait()
        starting.cancel()
        await asyncio.wait({starting}, timeout=1.5)  # whoever does not wait for it has ended by then
        gate.opened.set()
        await beside(lambda: lab_stage.lab.wait_until(lambda: "create" in {each.verb for each in lab_stage.asked()}))
        await asyncio.wait({starting})
        assert starting.cancelled()
        assert lab_stage.pods() == []


@pytest.mark.thorough
async def test_a_creation_whose_answer_is_lost_leaves_no_pod(lab_stage: LabStage) -> None:
    async with gate_before(lab_stage.lab.url, lab_stage.kubeconfig) as gate:
        gate.method, gate.lose = "POST", 1
        gate.opened.set()
        with pytest.raises(SandboxBroken, match="does not answer") as broken:
            await place_on(lab_stage).start()
        assert lab_stage.token not in str(broken.value)  # the stand-in's address holds it, as some proxies' do
        assert gate.arrived.is_set()
        assert lab_stage.pods() == []


@pytest.mark.thorough
@pytest.mark.parametrize("turns", [0, 5, 20, 60, 120, 200])
async def test_start_cancelled_at_any_time_leaves_no_pod(lab_stage: LabStage, turns: int) -> None:
    place = place_on(lab_stage)
    starting = asyncio.create_task(place.start())
    for _ in range(turns):
        await asyncio.sleep(0.003)  # not a wait for anything: it moves the moment of the cancellation
    if starting.cancel():
        with pytest.raises(asyncio.CancelledError):
            await starting
    else:  # it was quicker than that
        await place.remove()
    assert lab_stage.pods() == []


@pytest.mark.thorough
async def test_the_double_of_kubectl_carries_conversations_too(lab_stage: LabStage, tmp_path: Path) -> None:
    lab_stage.site = replace(lab_stage.site, kubectl=str(install(tmp_path / "double")))
    async with started(lab_stage) as (sandbox, _):
        done = await sandbox.exec("cat; exit 3", b"through the double")
        assert (done.exit_code, done.stdout) == (3, b"through the double")


@pytest.mark.thorough
def test_nobody_pays_for_kubernetes_who_did_not_ask_for_it() -> None:
    """Never chosen unless asked for; not even imported."""
    text = "import sys, hummingbird.cli.main; print([m for m in ('lightkube', 'yaml') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"

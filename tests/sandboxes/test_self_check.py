"""The self-check notices a promise that is not kept, says so, and removes the sandbox all the same."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from hummingbird.app.sandboxes import cluster_api
from hummingbird.core.errors import SandboxBroken, SandboxUnavailable
from hummingbird.core.protocols.sandbox import Chunks, ExecResult
from hummingbird.sandboxes.self_check import _PROBE_SCRIPT, self_check


class Flawed:
    """A sandbox that keeps every promise but the one it is told to break."""

    def __init__(self, flaw: str = "", name: str = "podman", uid: int = 65532) -> None:
        self.name, self._flaw, self._uid = name, flaw, uid
        self._file = b""
        self.removals = 0

    async def start(self) -> None:
        if self._flaw == "start":
            raise SandboxUnavailable("Podman is not installed.")

    async def exec(self, command: str, stdin: bytes | Chunks = b"", **_: Any) -> ExecResult:
        if self._flaw == "broken":
            raise SandboxBroken("The podman sandbox broke off.")
        if command.startswith("python3"):
            seen = {"way": self._flaw in {"network", "way"}, "reached": int(self._flaw == "network"), "uid": self._uid}
            seen |= {"rights": 0x3F if self._flaw == "rights" else 0}
            return ExecResult(1 if self._flaw == "python" else 0, json.dumps(seen).encode(), b"no json module")
        return ExecResult(3, b"" if self._flaw == "stdin" else b"here", b"there\n")

    async def write_file(self, path: str, content: bytes) -> None:
        self._file = content[1:] if self._flaw == "file" else content

    async def read_file_iter(self, path: str) -> AsyncGenerator[bytes, None]:
        yield self._file

    async def cleanup(self) -> None:
        self.removals += 1
        if self._flaw == "cleanup":
            raise SandboxBroken("Podman could not remove a container.")


async def faults(sandbox: Any) -> list[tuple[str, str]]:
    return [(checked.what, checked.fault) async for checked in self_check(sandbox)]


@pytest.mark.parametrize(
    ("flaw", "what", "sentence"),
    [
        ("start", "starts", "Podman is not installed."),
        ("broken", "runs a command", "The podman sandbox broke off."),
        ("stdin", "runs a command", "It answered"),
        ("file", "keeps a file byte for byte", "300000 bytes were written, but 299999 different bytes were read back."),
        ("network", "has no network", "A command can reach a network. Do not use this sandbox."),
        ("python", "has no network", "Its python3 failed: no json module"),
        ("rights", "runs as user 65532 without rights", "Commands have the capabilities 0x3f."),
        ("cleanup", "is removed", "Podman could not remove a container."),
    ],
)
async def test_a_promise_that_is_not_kept_is_the_last_line(flaw: str, what: str, sentence: str) -> None:
    sandbox = Flawed(flaw)
    *kept, (last, fault) = await faults(sandbox)
    assert not [fault for _, fault in kept if fault]
    assert last == what
    assert fault.startswith(sentence)
    assert sandbox.removals >= 1


@pytest.mark.parametrize(
    ("backend", "uid", "is_fine"),
    [
        ("podman", 65532, True),
        ("podman", 1000, False),
        ("podman", 0, False),
        ("k8s", 1000, True),
        ("k8spool", 0, False),
    ],
)
async def test_the_user_is_ours_or_where_a_cluster_chooses_any_but_root(backend: str, uid: int, is_fine: bool) -> None:
    found = await faults(Flawed(name=backend, uid=uid))
    assert any(fault for _, fault in found) is not is_fine
    assert len(found) == (6 if is_fine else 5)


async def test_a_pod_behind_a_policy_has_a_way_out_that_leads_nowhere() -> None:
    """Elsewhere a way is enough to say no."""
    assert not [fault for _, fault in await faults(Flawed("way", name="k8s")) if fault]
    assert [what for what, fault in await faults(Flawed("way")) if fault] == ["has no network"]
    (fault,) = [fault for _, fault in await faults(Flawed("network", name="k8spool")) if fault]
    assert "NetworkPolicy" in fault


async def test_a_pod_is_asked_about_the_api_that_the_agent_knows_of() -> None:
    """No variable of a command says where it is, so the probe of it could never fire."""
    asked: list[str] = []

    class Listening(Flawed):
        async def exec(self, command: str, stdin: Any = b"", **more: Any) -> ExecResult:
            asked.append(stdin.decode("utf-8", "replace"))
            return await super().exec(command, stdin, **more)

    sandbox: Any = Listening(name="k8s")
    async for _ in self_check(sandbox, cluster_api({"KUBERNETES_SERVICE_HOST": "10.96.0.1"})):
        pass
    assert any("""NEAR = '[["10.96.0.1", 443]]'""" in one for one in asked)


@pytest.mark.parametrize("listening", [True, False])
def test_who_answers_is_tried_for_real(listening: bool) -> None:
    """A port that turns away was reached as well; one that says nothing cannot be had on one machine."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        if listening:
            door.listen()
        near = json.dumps([["127.0.0.1", door.getsockname()[1]]])
        done = subprocess.run(
            [sys.executable, "-"],
            input=f"NEAR = {near!r}\n{_PROBE_SCRIPT}",
            env={"PATH": os.environ["PATH"]},  # a command sees no variable of the cluster
            capture_output=True,
            text=True,
            check=True,
        )
    found = json.loads(done.stdout)
    if not found["way"]:
        pytest.skip("this machine has no way to anywhere")
    assert found["reached"] >= 1

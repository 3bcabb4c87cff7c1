"""Checks that a sandbox keeps its promises: it starts, runs commands, keeps files, and has no network and no rights."""

import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from hummingbird.core.errors import HummingbirdError, SandboxBroken
from hummingbird.core.limits import SANDBOX_UID
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT, Sandbox

# Connecting a datagram socket sends nothing: the kernel only looks for a route. 192.0.2.1 is a documentation address.
# A pod has a route even when a policy drops all its traffic, so there somebody has to answer: the candidates are the
# cluster's API and its name servers. A refused connection counts as an answer, and so does a name that is found. A
# command has no variable of the cluster in its environment, so the caller says where the API is.
_PROBE_SCRIPT = """\
import json, os, socket
def answers(host, port):
    try:
        socket.create_connection((host, port), 2).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9))
    way = True
except OSError:
    way = False
near = [tuple(each) for each in json.loads(NEAR)]
try:
    near += [(line.split()[1], "53") for line in open("/etc/resolv.conf") if line.startswith("nameserver ")]
except OSError:
    pass
reached = [host for host, port in near[:4] if way and host and answers(host, int(port))]
os.environ["RES_OPTIONS"] = "timeout:1 attempts:1"
try:
    reached += socket.getaddrinfo("kubernetes.default.svc", 443)[:1] if way else []
except OSError:
    pass
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({"way": way, "reached": len(reached), "uid": os.getuid(), "rights": int(status["CapEff"], 16)}))
"""
_POD_BACKENDS = ("k8s", "k8spool")  # there the cluster chooses the user id; any but root is fine


@dataclass(frozen=True, slots=True)
class SelfCheckResult:
    """The outcome of one step. `fault` is empty when the step succeeded."""

    what: str
    seconds: float
    fault: str = ""


CheckStep: TypeAlias = Callable[[Sandbox], Awaitable[str]]


async def self_check(sandbox: Sandbox, api: tuple[str, int] | None = None) -> AsyncGenerator[SelfCheckResult, None]:
    """Run all steps and yield each result; stop after the first fault. Remove the sandbox in any case.

    `api` is where the cluster's API listens, which no pod may reach. Close the generator when you stop early.
    """
    try:
        for what, step in _steps(api):
            checked = await _run_step(sandbox, what, step)
            yield checked
            if checked.fault:
                return
    finally:
        with suppress(SandboxBroken):  # already reported, if the last step failed
            await sandbox.cleanup()


async def _run_step(sandbox: Sandbox, what: str, step: CheckStep) -> SelfCheckResult:
    began = time.monotonic()
    try:
        fault = await step(sandbox)
    except HummingbirdError as error:
        fault = str(error)
    return SelfCheckResult(what, time.monotonic() - began, fault)


async def _check_start(sandbox: Sandbox) -> str:
    await sandbox.start()
    return ""


async def _check_exec(sandbox: Sandbox) -> str:
    done = await sandbox.exec("cat; echo there >&2; exit 3", b"here")
    return "" if (done.exit_code, done.stdout, done.stderr) == (3, b"here", b"there\n") else f"It answered {done}."


async def _check_files(sandbox: Sandbox) -> str:
    path, content = f"{SANDBOX_ROOT}/check", os.urandom(300_000)
    await sandbox.write_file(path, content)
    found = b"".join([chunk async for chunk in sandbox.read_file_iter(path)])
    return (
        ""
        if found == content
        else f"{len(content)} bytes were written, but {len(found)} different bytes were read back."
    )


async def _check_no_network(sandbox: Sandbox, api: tuple[str, int] | None) -> str:
    found = await _probe_inside(sandbox, api)
    if sandbox.name in _POD_BACKENDS:
        advice = "Let a NetworkPolicy deny all egress in its namespace, as deploy/kubernetes does."
        return f"A command can reach the cluster's network. {advice}" if found["reached"] else ""
    return "A command can reach a network. Do not use this sandbox." if found["way"] else ""


async def _check_no_privileges(sandbox: Sandbox) -> str:
    found = await _probe_inside(sandbox)
    uid, rights = found["uid"], found["rights"]
    if uid == 0 or (uid != SANDBOX_UID and sandbox.name not in _POD_BACKENDS):
        return f"Commands run as user {uid} instead of {SANDBOX_UID}. Do not use this sandbox."
    return f"Commands have the capabilities {rights:#x}. Do not use this sandbox." if rights else ""


async def _probe_inside(sandbox: Sandbox, api: tuple[str, int] | None = None) -> dict[str, int]:
    near = json.dumps([api] if api else [])
    done = await sandbox.exec("python3 -", f"NEAR = {near!r}\n{_PROBE_SCRIPT}".encode())
    if done.exit_code:
        raise SandboxBroken(f"Its python3 failed: {done.stderr.decode('utf-8', 'replace')[-200:]}")
    found: dict[str, int] = json.loads(done.stdout)
    return found


async def _check_cleanup(sandbox: Sandbox) -> str:
    await sandbox.cleanup()
    return ""


def _steps(api: tuple[str, int] | None) -> tuple[tuple[str, CheckStep], ...]:
    return (
        ("starts", _check_start),
        ("runs a command", _check_exec),
        ("keeps a file byte for byte", _check_files),
        ("has no network", partial(_check_no_network, api=api)),
        (f"runs as user {SANDBOX_UID} without rights", _check_no_privileges),
        ("is removed", _check_cleanup),
    )

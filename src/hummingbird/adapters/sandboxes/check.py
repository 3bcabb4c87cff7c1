"""A sandbox tries itself: one line a promise, whichever backend it is. Knows the port alone."""

import json
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from hummingbird.domain.errors import HummingbirdError, SandboxBroken
from hummingbird.domain.limits import SANDBOX_UID
from hummingbird.ports.sandbox import ROOT, Sandbox

# A datagram socket that is "connected" sends nothing; the kernel only looks for a way there. The address is one that
# is reserved for documents. A pod has a way out also behind a policy that lets nothing through: there somebody has to
# answer, and those who would are the cluster's own API and names. To be turned away is an answer too.
_LOOK = """\
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
near = [(os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443"))]
try:
    near += [(line.split()[1], "53") for line in open("/etc/resolv.conf") if line.startswith("nameserver ")]
except OSError:
    pass
reached = [host for host, port in near[:4] if way and host and answers(host, int(port))]
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({"way": way, "reached": len(reached), "uid": os.getuid(), "rights": int(status["CapEff"], 16)}))
"""
_PODS = ("k8s", "k8spool")  # there the cluster chooses the user; any but root will do


@dataclass(frozen=True, slots=True)
class Checked:
    """`fault` is empty where the promise is kept."""

    what: str
    seconds: float
    fault: str = ""


Step: TypeAlias = Callable[[Sandbox], Awaitable[str]]


async def self_check(sandbox: Sandbox) -> AsyncGenerator[Checked, None]:
    """Ends after the first fault, and removes the sandbox whatever happens. Close it when you stop early."""
    try:
        for what, step in _STEPS:
            checked = await _checked(sandbox, what, step)
            yield checked
            if checked.fault:
                return
    finally:
        with suppress(SandboxBroken):  # said already, if it was the last step
            await sandbox.cleanup()


async def _checked(sandbox: Sandbox, what: str, step: Step) -> Checked:
    began = time.monotonic()
    try:
        fault = await step(sandbox)
    except HummingbirdError as error:
        fault = str(error)
    return Checked(what, time.monotonic() - began, fault)


async def _starts(sandbox: Sandbox) -> str:
    await sandbox.start()
    return ""


async def _runs(sandbox: Sandbox) -> str:
    done = await sandbox.exec("cat; echo there >&2; exit 3", b"here")
    return "" if (done.exit_code, done.stdout, done.stderr) == (3, b"here", b"there\n") else f"It answered {done}."


async def _keeps(sandbox: Sandbox) -> str:
    path, content = f"{ROOT}/check", os.urandom(300_000)
    await sandbox.write_file(path, content)
    found = b"".join([chunk async for chunk in sandbox.read_file_iter(path)])
    return "" if found == content else f"{len(content)} bytes went in, {len(found)} others came out."


async def _is_cut_off(sandbox: Sandbox) -> str:
    found = await _looked(sandbox)
    if sandbox.name in _PODS:
        advice = "Let a NetworkPolicy deny all egress in its namespace, as deploy/kubernetes does."
        return f"A command can reach the cluster's network. {advice}" if found["reached"] else ""
    return "A command can reach a network. Do not use this sandbox." if found["way"] else ""


async def _has_no_rights(sandbox: Sandbox) -> str:
    found = await _looked(sandbox)
    uid, rights = found["uid"], found["rights"]
    if uid == 0 or (uid != SANDBOX_UID and sandbox.name not in _PODS):
        return f"Commands run as user {uid} instead of {SANDBOX_UID}. Do not use this sandbox."
    return f"Commands have the capabilities {rights:#x}. Do not use this sandbox." if rights else ""


async def _looked(sandbox: Sandbox) -> dict[str, int]:
    done = await sandbox.exec("python3 -", _LOOK.encode())
    if done.exit_code:
        raise SandboxBroken(f"Its python3 failed: {done.stderr.decode('utf-8', 'replace')[-200:]}")
    found: dict[str, int] = json.loads(done.stdout)
    return found


async def _goes(sandbox: Sandbox) -> str:
    await sandbox.cleanup()
    return ""


_STEPS: tuple[tuple[str, Step], ...] = (
    ("starts", _starts),
    ("runs a command", _runs),
    ("keeps a file byte for byte", _keeps),
    ("has no network", _is_cut_off),
    (f"runs as user {SANDBOX_UID} without rights", _has_no_rights),
    ("goes away", _goes),
)

"""Containers whose owner was killed before it could remove them (X4).

A container says in a label which process owns it: the boot of the machine, the process namespace, the process and when
it began. So a number that was given out again is nobody's owner, and a process that cannot be seen from here is left
alone. Nothing without our label is ever touched.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hummingbird.adapters.sandboxes.engine import Podman
from hummingbird.domain.errors import SandboxBroken

MARK = "hummingbird.sandbox=1"
OWNER = "hummingbird.owner"
_PROC = Path("/proc")
_DEAD = (b"Z", b"X")


@dataclass(frozen=True, slots=True)
class Owner:
    boot: str
    namespace: str
    pid: int
    began: int  # in clock ticks since the boot

    def __str__(self) -> str:
        return f"{self.boot}/{self.namespace}/{self.pid}/{self.began}"


class _Listed(msgspec.Struct, rename="pascal"):
    """A container in the output of `podman ps`."""

    id: str
    names: list[str]
    state: str
    labels: dict[str, str] | None = None


def this_process() -> Owner:
    boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
    namespace = (_PROC / "self/ns/pid").readlink().name
    pid = os.getpid()
    return Owner(boot, namespace, pid, _began(pid) or 0)


def is_gone(owner: str, *, running: bool, me: Owner) -> bool:
    """Whether the owner is known to be dead. What cannot be judged from here counts as alive."""
    try:
        boot, namespace, pid, began = owner.split("/")
        its = Owner(boot, namespace, int(pid), int(began))
    except ValueError:
        return False
    if its.boot != me.boot:
        return not running  # no container survives a boot; one that runs belongs to a machine that we do not know
    return its.namespace == me.namespace and _began(its.pid) != its.began


async def reap_leftovers(podman: Podman) -> list[str]:
    """The names of the containers that were removed. Raises SandboxUnavailable, SandboxBroken."""
    listed = await podman.call("ps", "--all", "--no-trunc", f"--filter=label={MARK}", "--format=json")
    if listed.code:
        raise SandboxBroken(f"Podman could not list its containers: {listed.words} Try `podman ps --all`.")
    me = this_process()
    found = [one for one in _decoded(listed.out) if _is_leftover(one, me)]
    if found:
        removed = await podman.call("rm", "--force", "--time=0", "--ignore", *(one.id for one in found))
        if removed.code:
            raise SandboxBroken(f"Podman could not remove leftover containers: {removed.words}")
    return [name for one in found for name in one.names]


def _is_leftover(listed: _Listed, me: Owner) -> bool:
    labels = listed.labels or {}
    return OWNER in labels and is_gone(labels[OWNER], running=listed.state == "running", me=me)


def _decoded(listing: bytes) -> list[_Listed]:
    try:
        return msgspec.json.decode(listing, type=list[_Listed])
    except msgspec.MsgspecError as error:
        raise SandboxBroken(
            "Podman listed its containers in a way that cannot be read. Is it a new version?"
        ) from error


def _began(pid: int) -> int | None:
    """When that process began; None when it is dead, also when only its parent has not noticed yet."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in _DEAD else int(fields[19])

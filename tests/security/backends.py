"""The sandboxes that are there to be attacked, as they are and weakened, and how attempts are made in one."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from hummingbird.core.protocols.sandbox import Sandbox
from hummingbird.sandboxes.bubblewrap import BubblewrapBackend, BubblewrapLimits
from hummingbird.sandboxes.command_sandbox import CommandSandbox, SandboxBackend
from hummingbird.sandboxes.podman import PodmanBackend
from tests.sandbox_image import sandbox_image
from tests.security.attempt import MAKER, Attempt, Lack, Outcome, Verdict, order, outcomes
from tests.security.host import Host
from tests.security.weakened import WeakBubblewrap, WeakPodman, without_command_limits
from tests.thoroughly import also

T = TypeVar("T")
MIB = 1024**2
TIGHT = BubblewrapLimits(memory_bytes=96 * MIB, space_bytes=64 * MIB, inodes=4000, locks=1000)
TOO_MUCH = {
    "memory": 320,
    "space": 128,
    "inodes": 6000,
    "processes": 320,
    "pipes": 2400,
    "locks": 2000,
}  # for a tight room; MiB where it is memory
MAKING = f"rm -rf /tmp/data/* /dev/shm/*; exec python3 -I -c {shlex.quote(MAKER)}"  # nothing left of those before


class Backend(Protocol):
    name: str

    def place(self) -> SandboxBackend: ...

    def tight(self) -> SandboxBackend: ...

    def weak(self, lacking: frozenset[Lack], host: Host) -> SandboxBackend: ...


class Bubblewrap:
    name = "bubblewrap"

    def place(self) -> SandboxBackend:
        return BubblewrapBackend()

    def tight(self) -> SandboxBackend:
        return BubblewrapBackend(TIGHT)

    def weak(self, lacking: frozenset[Lack], host: Host) -> SandboxBackend:
        return WeakBubblewrap(lacking, host)


class Podman:
    name = "podman"

    def place(self) -> SandboxBackend:
        return PodmanBackend(self._image(), environment=os.environ)

    def tight(self) -> SandboxBackend:
        memory, space = TIGHT.memory_bytes, TIGHT.space_bytes
        return PodmanBackend(self._image(), environment=os.environ, memory_bytes=memory, space_bytes=space)

    def weak(self, lacking: frozenset[Lack], host: Host) -> SandboxBackend:
        return WeakPodman(self._image(), lacking, host)

    @staticmethod
    @cache
    def _image() -> str:
        return sandbox_image()


BACKENDS: tuple[Backend, ...] = (Bubblewrap(), Podman())


def _name(backend: Backend) -> str:
    return backend.name


on_both_backends = pytest.mark.parametrize("backend", BACKENDS, ids=_name)
on_every_backend = pytest.mark.parametrize("backend", [BACKENDS[0], *map(also, BACKENDS[1:])], ids=_name)


def with_sandbox(place: SandboxBackend, story: Callable[[Sandbox], Awaitable[T]]) -> T:
    """A story from the start of a sandbox to its end."""

    async def whole() -> T:
        sandbox = CommandSandbox(place)
        await sandbox.start()
        try:
            return await story(sandbox)
        finally:
            await sandbox.cleanup()

    return asyncio.run(whole())


async def attempted(sandbox: Sandbox, attempts: Sequence[Attempt], world: Mapping[str, Any]) -> dict[str, Outcome]:
    """What came of each. One that took the maker with it was ended by a limit of the whole sandbox."""
    done = await sandbox.exec(MAKING, order(attempts, world), timeout_s=250)
    found = outcomes(done.stdout)
    verdict = Verdict.REFUSED if done.exit_code == 137 and len(attempts) == 1 else Verdict.BROKEN
    ended = Outcome(verdict, f"exit code {done.exit_code} {done.stderr!r} {done.complaint}")
    return {name: found.get(name, ended) for name in ("", *(each.name for each in attempts))}


async def in_a_sandbox(
    place: SandboxBackend,
    attempts: Sequence[Attempt],
    world: Mapping[str, Any],
    lacking: frozenset[Lack] = frozenset(),
    *,
    one_by_one: bool = False,
) -> dict[str, Outcome]:
    """From its start to its end, when nothing is left of it on this machine."""
    sandbox, found = CommandSandbox(place), dict[str, Outcome]()
    with without_command_limits(lacking):
        await sandbox.start()
        try:
            for group in [[each] for each in attempts] if one_by_one else [attempts]:
                found |= await attempted(sandbox, group, world)
            inside = {} if Lack.PROCESSES in lacking else members(found[""].words)
            if not lacking:
                assert (await sandbox.exec("echo still")).stdout == b"still\n", "the sandbox is of no use any more"
        finally:
            await sandbox.cleanup()
    left = [shown(pid) for pid, began in inside.items() if began_at(pid) == began]
    assert not left, f"processes of the sandbox are left on the host: {left}"
    return found


def shown(pid: int) -> bytes:
    """What this machine's list of processes says about one: its words and its environment."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() + b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def members(namespace: str) -> dict[int, str]:
    """The processes of this machine that belong to a process namespace, and when each began: numbers of processes and
    of namespaces are given out again."""
    assert namespace.startswith("pid:[")
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str((folder / "ns/pid").readlink()) == namespace and (began := began_at(int(folder.name))):
                found[int(folder.name)] = began
        except OSError:
            continue  # ended meanwhile, or somebody else's
    return found


def began_at(pid: int) -> str:
    """Nothing for one that has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else fields[18]

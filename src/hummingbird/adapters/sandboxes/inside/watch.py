"""Memory and files of a bubblewrap sandbox, bounded as a whole. Limits per process do not add up to one, and control
groups need rights that an ordinary user does not have."""

from __future__ import annotations

import contextlib
import os
import signal

from hummingbird.adapters.sandboxes.inside.processes import descendants, parents, tell

SPACES = ("/tmp", "/dev/shm")  # noqa: S108 - inside the sandbox, where they are private
SOCKET = 262144  # what the kernel may hold for a Unix socket that nobody reads from; no process is charged with it


class Watch:
    """Kills the largest process while all of them together are over the bound, and every command once there are too
    many files or sockets: what a control group would do."""

    interval_ms = 25

    def __init__(self, memory: int, inodes: int) -> None:
        self.memory, self.inodes = memory, inodes
        self.used = dict.fromkeys(SPACES, 0)

    def look(self, workers: set[int]) -> None:
        if not workers:
            return
        commands = [pid for pid in parents() if pid != 1 and pid not in workers]
        sizes = {pid: resident(pid) for pid in commands}
        if sum(sizes.values()) > self.memory:
            sizes = {pid: own_share(pid, size) for pid, size in sizes.items()}
        while sum(sizes.values()) > self.memory:
            largest = max(sizes, key=lambda pid: sizes[pid])
            tell([largest], signal.SIGKILL)
            del sizes[largest]
        if self.too_many_files() or sockets() * SOCKET > self.memory:
            tell(descendants(1, frozenset(workers)), signal.SIGKILL)
            tell(commands, signal.SIGKILL)

    def too_many_files(self) -> bool:
        """Too many, and still more than before: whoever takes some away is let."""
        before, self.used = self.used, {space: used_inodes(space) for space in SPACES}
        return any(self.used[space] > max(self.inodes, before[space]) for space in SPACES)


def used_inodes(space: str) -> int:
    found = os.statvfs(space)
    return found.f_files - found.f_ffree


def sockets() -> int:
    """Of this network namespace, in which commands make their own and nobody else does."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/net/sockstat", "rb") as file:  # noqa: PTH123 - see processes
        return int(file.readline().split()[2])
    return 0


def resident(pid: int) -> int:
    """Memory of its own and shared memory, also what of it is swapped out, and what it costs to map it; forked
    processes that share pages count them twice."""
    return sum(fields(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:")))


def own_share(pid: int, otherwise: int) -> int:
    """Shared pages divided by those who share them. Takes longer to find out."""
    found = fields(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))
    return sum([*found, *fields(f"/proc/{pid}/status", (b"VmPTE:",))]) if found else otherwise


def fields(path: str, names: tuple[bytes, ...]) -> list[int]:
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:  # noqa: PTH123 - see processes
        return [int(line.split()[1]) * 1024 for line in file if line.startswith(names)]
    return []

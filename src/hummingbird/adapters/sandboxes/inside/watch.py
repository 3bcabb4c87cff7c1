"""Memory, files, pipes and locks of a bubblewrap sandbox, bounded as a whole. Limits per process do not add up to one,
control groups need rights that an ordinary user does not have, and the kernel charges file locks to none of them."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time

from hummingbird.adapters.sandboxes.inside.processes import descendants, parents, tell

SPACES = ("/tmp", "/dev/shm")  # noqa: S108 - inside the sandbox, where they are private
SOCKET = 262144  # what the kernel may hold for a Unix socket that nobody reads from; no process is charged with it
PIPE = 65536  # the same for a pipe, until the user has 64 MiB in pipes; from then on a pipe holds 8 KiB
MIB = 1048576


class Watch:
    """Kills the largest process while all of them together are over the bound, and every command once there are too
    many files, sockets or locks: what a control group would do. Tells the workers why before it does."""

    interval_ms = 25

    def __init__(self, memory: int, inodes: int, locks: int) -> None:
        self.memory, self.inodes, self.locks = memory, inodes, locks
        self.used = dict.fromkeys(SPACES, 0)
        self.known_workers: set[int] = set()
        self.in_pipes: dict[int, int] = {}
        self.held_locks = 0
        self.count_at = 0.0

    def look(self, workers: dict[int, int]) -> None:
        """`workers`: the descriptor over which each of them, by its number, hears why its command is ended."""
        if not workers:
            return
        if workers.keys() - self.known_workers and max(self.used.values()) > self.inodes:
            self.used = count_files()  # a command that was ended left them: they are not the next one's fault
        self.known_workers = set(workers)
        family = parents()
        commands = [pid for pid in family if pid != 1 and pid not in workers]
        self.count(commands)
        sizes, in_pipes = {pid: resident(pid) for pid in commands}, self.in_pipes
        if sum(sizes.values()) + sum(in_pipes.get(pid, 0) for pid in commands) > self.memory:
            sizes = {pid: own_share(pid, size) + in_pipes.get(pid, 0) for pid, size in sizes.items()}
        while sum(sizes.values()) > self.memory:
            largest = max(sizes, key=lambda pid: sizes[pid])
            why = f"a process was ended because all together had more than {self.memory // MIB} MiB of memory and pipes"
            say(why, [fd for worker, fd in workers.items() if worker in ancestors(largest, family)])
            tell([largest], signal.SIGKILL)
            del sizes[largest]
        if why := self.too_many():
            say(f"the command was ended because there were {why}", list(workers.values()))
            tell(descendants(1, frozenset(workers)), signal.SIGKILL)
            tell(commands, signal.SIGKILL)
            self.held_locks, self.count_at = 0, 0.0  # what was counted is gone, and is not the next command's fault

    def count(self, commands: list[int]) -> None:
        """Pipes and locks, which takes the longer the more there are: at most a tenth of the time goes into it."""
        began = time.monotonic()
        if began >= self.count_at:
            self.in_pipes = memory_in_pipes(commands)
            self.held_locks = count_locks(self.locks + 1)
            self.count_at = began + 10 * (time.monotonic() - began)

    def too_many(self) -> str:
        """What there is too much of, or nothing."""
        if self.too_many_files():
            return f"more than {self.inodes} files"
        if sockets() * SOCKET > self.memory:
            return f"more than {self.memory // SOCKET} sockets"
        return f"more than {self.locks} file locks" if self.held_locks > self.locks else ""

    def too_many_files(self) -> bool:
        """Too many, and still more than before: whoever takes some away is let."""
        before, self.used = self.used, count_files()
        return any(self.used[space] > max(self.inodes, before[space]) for space in SPACES)


def say(words: str, listeners: list[int]) -> None:
    for fd in listeners:
        with contextlib.suppress(OSError):  # full, so it has heard enough, or gone
            os.write(fd, words.encode() + b"\n")


def ancestors(pid: int, family: dict[int, int]) -> set[int]:
    found = set()
    while pid in family and pid not in found:
        found.add(pid)
        pid = family[pid]
    return found


def memory_in_pipes(commands: list[int]) -> dict[int, int]:
    """What each process may hold in pipes. One that several have open counts for the first. Who lets nobody look counts
    as if all its open files were pipes."""
    known: set[tuple[int, int]] = set()
    found = {}
    for pid in sorted(commands):
        folder = living(pid)
        try:
            fresh = open_pipes(folder + "/fd") - known
        except PermissionError:
            found[pid] = PIPE // 1024 * sum(fields(folder + "/status", (b"FDSize:",)))
        except OSError:
            continue  # ended meanwhile
        else:
            known |= fresh
            found[pid] = PIPE * len(fresh)
    return found


def open_pipes(folder: str) -> set[tuple[int, int]]:
    """With a name in a file system or without one."""
    found = set()
    for name in os.listdir(folder):  # noqa: PTH208 - see processes
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            status = os.stat(f"{folder}/{name}")  # noqa: PTH116 - see processes
            if stat.S_ISFIFO(status.st_mode):
                found.add((status.st_dev, status.st_ino))
    return found


def count_locks(most: int) -> int:
    """Locks of processes in here; no more than `most` are counted. The kernel goes through the whole machine's list for
    every 4 KiB that is read."""
    found = 0
    with contextlib.suppress(OSError, IndexError), open("/proc/locks", "rb") as file:  # noqa: PTH123 - see processes
        for line in file:
            found += line.split()[-4] != b"-1"  # others' and ownerless, which commands cannot make
            if found >= most:
                break
    return found


def count_files() -> dict[str, int]:
    found = {space: os.statvfs(space) for space in SPACES}
    return {space: each.f_files - each.f_ffree for space, each in found.items()}


def sockets() -> int:
    """Of this network namespace, in which commands make their own and nobody else does."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/net/sockstat", "rb") as file:  # noqa: PTH123 - see processes
        return int(file.readline().split()[2])
    return 0


def resident(pid: int) -> int:
    """Memory of its own and shared memory, also what of it is swapped out, and what it costs to map it; forked
    processes that share pages count them twice."""
    names = (b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:")
    return sum(fields(f"/proc/{pid}/status", names) or fields(living(pid) + "/status", names))


def own_share(pid: int, otherwise: int) -> int:
    """Shared pages divided by those who share them. Takes longer to find out."""
    folder = living(pid)
    found = fields(folder + "/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))
    return sum([*found, *fields(folder + "/status", (b"VmPTE:",))]) if found else otherwise


def living(pid: int) -> str:
    """The folder of a thread that lives. Once its main thread has ended, a process's own folder tells of no memory and
    no open files, while the other threads go on with both."""
    if is_dead(pid):
        with contextlib.suppress(OSError):
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):  # noqa: PTH208 - see processes
                if not is_dead(thread):
                    return f"/proc/{thread}"
    return f"/proc/{pid}"


def is_dead(thread: int) -> bool:
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{thread}/stat", "rb") as file:  # noqa: PTH123 - see processes
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    return True


def fields(path: str, names: tuple[bytes, ...]) -> list[int]:
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:  # noqa: PTH123 - see processes
        return [int(line.split()[1]) * 1024 for line in file if line.startswith(names)]
    return []

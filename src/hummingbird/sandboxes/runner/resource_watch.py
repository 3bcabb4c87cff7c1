"""Limits memory, files, pipes, sockets and locks of a bubblewrap sandbox as a whole.

Limits per process do not add up to a limit of the whole, an ordinary user may not set up control groups, and the kernel
charges file locks to no control group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time

from hummingbird.sandboxes.runner.processes import descendants, parents_by_pid, signal_all

MOUNT_POINTS = ("/tmp", "/dev/shm")  # noqa: S108 - inside the sandbox, where they are private
SOCKET_BYTES = 262144  # what the kernel may hold for a Unix socket that nobody reads; it counts as no process's memory
PIPE_BYTES = 65536  # the same for a pipe, until the user has 64 MiB in pipes; from then on a pipe holds 8 KiB
MIB = 1048576


class ResourceWatch:
    """Does what a control group would do, and tells the workers why before it kills.

    While all processes together exceed the memory limit, it kills the largest one. When there are too many files,
    sockets or locks, it kills every command.
    """

    interval_ms = 25

    def __init__(self, memory: int, inodes: int, locks: int) -> None:
        self.memory, self.inodes, self.locks = memory, inodes, locks
        self.used = dict.fromkeys(MOUNT_POINTS, 0)
        self.known_workers: set[int] = set()
        self.in_pipes: dict[int, int] = {}
        self.held_locks = 0
        self.count_at = 0.0

    def enforce(self, workers: dict[int, int]) -> None:
        """Check all limits. `workers` maps the id of each worker to the descriptor that tells it why we kill."""
        if not workers:
            return
        if workers.keys() - self.known_workers and max(self.used.values()) > self.inodes:
            self.used = count_files()  # an ended command left them, so do not blame the next one
        self.known_workers = set(workers)
        family = parents_by_pid()
        commands = [pid for pid in family if pid != 1 and pid not in workers]
        self.count_pipes_and_locks(commands)
        sizes, in_pipes = {pid: resident_bytes(pid) for pid in commands}, self.in_pipes
        if sum(sizes.values()) + sum(in_pipes.get(pid, 0) for pid in commands) > self.memory:
            sizes = {pid: proportional_bytes(pid, size) + in_pipes.get(pid, 0) for pid, size in sizes.items()}
        while sum(sizes.values()) > self.memory:
            largest = max(sizes, key=lambda pid: sizes[pid])
            why = f"a process was ended because all together had more than {self.memory // MIB} MiB of memory and pipes"
            send_reason(why, [fd for worker, fd in workers.items() if worker in ancestors(largest, family)])
            signal_all([largest], signal.SIGKILL)
            del sizes[largest]
        if why := self.find_exceeded_limit():
            send_reason(f"the command was ended because there were {why}", list(workers.values()))
            signal_all(descendants(1, frozenset(workers)), signal.SIGKILL)
            signal_all(commands, signal.SIGKILL)
            self.held_locks, self.count_at = 0, 0.0  # the holders are gone, so do not blame the next command

    def count_pipes_and_locks(self, commands: list[int]) -> None:
        """Count pipes and locks. That takes longer the more there are, so spend at most a tenth of the time on it."""
        began = time.monotonic()
        if began >= self.count_at:
            self.in_pipes = pipe_memory_by_pid(commands)
            self.held_locks = count_locks(self.locks + 1)
            self.count_at = began + 10 * (time.monotonic() - began)

    def find_exceeded_limit(self) -> str:
        """Return what there is too much of, or an empty string."""
        if self.has_too_many_files():
            return f"more than {self.inodes} files"
        if count_sockets() * SOCKET_BYTES > self.memory:
            return f"more than {self.memory // SOCKET_BYTES} sockets"
        return f"more than {self.locks} file locks" if self.held_locks > self.locks else ""

    def has_too_many_files(self) -> bool:
        """Return whether there are too many files and more than before; removing some is always allowed."""
        before, self.used = self.used, count_files()
        return any(self.used[space] > max(self.inodes, before[space]) for space in MOUNT_POINTS)


def send_reason(words: str, listeners: list[int]) -> None:
    for fd in listeners:
        with contextlib.suppress(OSError):  # the pipe is full of reasons already, or the worker is gone
            os.write(fd, words.encode() + b"\n")


def ancestors(pid: int, family: dict[int, int]) -> set[int]:
    found = set()
    while pid in family and pid not in found:
        found.add(pid)
        pid = family[pid]
    return found


def pipe_memory_by_pid(commands: list[int]) -> dict[int, int]:
    """Return how many bytes each process may hold in pipes.

    A pipe that several processes have open counts for the first. A process that may not be inspected counts as if all
    its open files were pipes.
    """
    known: set[tuple[int, int]] = set()
    found = {}
    for pid in sorted(commands):
        folder = live_thread_folder(pid)
        try:
            fresh = open_pipes(folder + "/fd") - known
        except PermissionError:
            found[pid] = PIPE_BYTES // 1024 * sum(read_byte_fields(folder + "/status", (b"FDSize:",)))
        except OSError:
            continue  # the process has ended
        else:
            known |= fresh
            found[pid] = PIPE_BYTES * len(fresh)
    return found


def open_pipes(folder: str) -> set[tuple[int, int]]:
    """Return the pipes, with and without a name in a file system, that are open in a folder of descriptors."""
    found = set()
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # closed in the meantime
            status = os.stat(f"{folder}/{name}")
            if stat.S_ISFIFO(status.st_mode):
                found.add((status.st_dev, status.st_ino))
    return found


def count_locks(most: int) -> int:
    """Count the locks of processes in the sandbox, up to `most`.

    There is a bound because the kernel walks through the whole machine's list for every 4 KiB that is read.
    """
    found = 0
    with contextlib.suppress(OSError, IndexError), open("/proc/locks", "rb") as file:
        for line in file:
            found += line.split()[-4] != b"-1"  # -1: locks of other sandboxes, and OFD locks, which seccomp forbids
            if found >= most:
                break
    return found


def count_files() -> dict[str, int]:
    found = {space: os.statvfs(space) for space in MOUNT_POINTS}
    return {space: each.f_files - each.f_ffree for space, each in found.items()}


def count_sockets() -> int:
    """Count the sockets of this network namespace, in which only commands create any."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/net/sockstat", "rb") as file:
        return int(file.readline().split()[2])
    return 0


def resident_bytes(pid: int) -> int:
    """Return the process's own and shared memory, including what is swapped out, and the page tables.

    Pages that forked processes share count for each of them.
    """
    names = (b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:")
    return sum(
        read_byte_fields(f"/proc/{pid}/status", names) or read_byte_fields(live_thread_folder(pid) + "/status", names)
    )


def proportional_bytes(pid: int, otherwise: int) -> int:
    """Return the memory with shared pages divided by the number of sharers. Slower than `resident_bytes`."""
    folder = live_thread_folder(pid)
    found = read_byte_fields(folder + "/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"))
    return sum([*found, *read_byte_fields(folder + "/status", (b"VmPTE:",))]) if found else otherwise


def live_thread_folder(pid: int) -> str:
    """Return the /proc folder of a living thread of the process.

    Once the main thread has ended, the process's own folder shows no memory and no open files, although the other
    threads still use both.
    """
    if is_dead(pid):
        with contextlib.suppress(OSError):
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                if not is_dead(thread):
                    return f"/proc/{thread}"
    return f"/proc/{pid}"


def is_dead(thread: int) -> bool:
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{thread}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    return True


def read_byte_fields(path: str, names: tuple[bytes, ...]) -> list[int]:
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        return [int(line.split()[1]) * 1024 for line in file if line.startswith(names)]
    return []

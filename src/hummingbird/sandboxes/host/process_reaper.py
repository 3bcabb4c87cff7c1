"""The program between us and one command on the host, which ends everything that the command started.

It is a subreaper: whatever loses its parent becomes its child, so nothing gets away by forking twice or by starting a
session of its own. It ends everything when its standard input ends, which happens when we ask for it and also when we
die. When the command itself has ended it reports the exit code; when nothing of it is left, it exits.

The script uses only the standard library. Its arguments are a descriptor for the report, the id of the process that
started it, how many seconds to wait between SIGTERM and SIGKILL, and the command.
"""

import ctypes
import os
import select
import signal
import sys
import time
from typing import NoReturn

DIES_WITH_PARENT, SUBREAPER = 1, 36  # options of prctl(2)
_CHILDREN_FILE = f"/proc/self/task/{os.getpid()}/children"  # some kernels are built without it


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def pid_names(path: str) -> list[str]:
    try:
        return [name for name in os.listdir(path) if name.isdigit()]
    except OSError:
        return []


def child_pids(pid: int) -> list[int]:
    """Return the children of each thread, because the thread that forked is the parent."""
    return [
        int(each)
        for task in pid_names(f"/proc/{pid}/task")
        for each in read_bytes(f"/proc/{pid}/task/{task}/children").split()
    ]


def children_by_parent() -> dict[int, list[int]]:
    """Return the children of all processes, by looking at every process."""
    found: dict[int, list[int]] = {}
    for name in pid_names("/proc"):
        fields = read_bytes(f"/proc/{name}/stat").rpartition(b")")[2].split()
        if len(fields) > 1:
            found.setdefault(int(fields[1]), []).append(int(name))
    return found


def descendants() -> set[int]:
    known = None if os.path.exists(_CHILDREN_FILE) else children_by_parent()
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        new = set(child_pids(pid) if known is None else known.get(pid, ())) - found
        found |= new
        waiting.extend(new)
    return found


def signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:  # it has ended, or belongs to another user by now
            continue


class ProcessReaper:
    """Starts the command, waits for its end or for our request, and ends what is left."""

    def __init__(self, report: int, parent: int, grace_s: float) -> None:
        self.report, self.parent, self.grace_s = report, parent, grace_s
        self.command = 0
        self.alarm, wake = os.pipe()
        for fd in (self.alarm, wake):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        prctl(SUBREAPER, 1)
        prctl(DIES_WITH_PARENT, signal.SIGTERM)  # sent when the starting thread ends, so it only makes us check

    def start_command(self, arguments: list[str]) -> None:
        self.command = os.fork()
        if not self.command:
            exec_command(arguments)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (1, 2):
            os.dup2(nowhere, fd)  # so that the output ends when all other processes have ended

    def watch(self) -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self.alarm, select.POLLIN)
        while self.reap_children():
            ready = {fd for fd, _ in poll.poll()}
            if self.alarm in ready:
                os.read(self.alarm, 4096)
            if 0 in ready or os.getppid() != self.parent:
                self.end_all()
                return

    def reap_children(self) -> bool:
        """Reap dead children; return False when there is none left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                if pid == self.command:
                    self.report_exit(status)
        except ChildProcessError:
            return False

    def report_exit(self, status: int) -> None:
        code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        try:
            os.write(self.report, b"%d\n" % code)
        except OSError:  # the reader has gone
            return

    def end_all(self) -> None:
        """Send SIGTERM, then stop all processes so that none can fork while others die, then kill them."""
        signal_all(descendants(), signal.SIGTERM)
        until = time.monotonic() + self.grace_s
        while time.monotonic() < until and self.reap_children():
            time.sleep(0.002)
        while self.reap_children():
            stopped: set[int] = set()
            while new := descendants() - stopped:
                signal_all(new, signal.SIGSTOP)
                stopped |= new
            signal_all(stopped, signal.SIGKILL)
            time.sleep(0.001)


def exec_command(arguments: list[str]) -> NoReturn:
    """Turn the forked process into the command, with none of our descriptors open and no signal ignored."""
    try:
        prctl(DIES_WITH_PARENT, signal.SIGKILL)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(1, 2)
        os.closerange(3, 4096)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execv(arguments[0], arguments)  # noqa: S606 - this is what it is for
    except BaseException as error:  # noqa: BLE001 - a forked process must never return into its parent's code
        os.write(1, f"The command could not be started: {error}\n".encode())
    finally:
        os._exit(126)


def main(arguments: list[str]) -> None:
    report = int(arguments[0])
    os.set_inheritable(report, False)
    guardian = ProcessReaper(report, int(arguments[1]), float(arguments[2]))
    guardian.start_command(arguments[3:])
    guardian.watch()


if __name__ == "__main__":
    main(sys.argv[1:])

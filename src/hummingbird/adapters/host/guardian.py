"""The program that stands between us and one command of the host, and ends everything that the command started.

Whatever loses its parent below here becomes a child of this process, so nothing gets away by forking twice or by
moving to a session of its own. It ends all of it when its standard input ends, which is when somebody wants that or
when we are gone, however we went. Once the command itself is over it says how; once nothing of it is left, it goes.

A script of its own that knows nothing of ours: arguments are a descriptor for what it has to say, the process that
wants to know, how long to wait between asking and killing, and the command.
"""

import ctypes
import os
import select
import signal
import sys
import time
from typing import NoReturn

DIES_WITH_PARENT, SUBREAPER = 1, 36  # of prctl(2)
_LISTED = f"/proc/self/task/{os.getpid()}/children"  # a kernel may be built without these


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def contents(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes longer to load than all of this
            return file.read()
    except OSError:
        return b""


def names(path: str) -> list[str]:
    try:
        return [name for name in os.listdir(path) if name.isdigit()]  # noqa: PTH208 - as above
    except OSError:
        return []


def children(pid: int) -> list[int]:
    """Of each thread: whichever forked is the parent."""
    return [
        int(each)
        for task in names(f"/proc/{pid}/task")
        for each in contents(f"/proc/{pid}/task/{task}/children").split()
    ]


def families() -> dict[int, list[int]]:
    """Everybody's children, by looking at everybody."""
    found: dict[int, list[int]] = {}
    for name in names("/proc"):
        fields = contents(f"/proc/{name}/stat").rpartition(b")")[2].split()
        if len(fields) > 1:
            found.setdefault(int(fields[1]), []).append(int(name))
    return found


def descendants() -> set[int]:
    known = None if os.path.exists(_LISTED) else families()  # noqa: PTH110 - as above
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        pid = waiting.pop()
        new = set(children(pid) if known is None else known.get(pid, ())) - found
        found |= new
        waiting.extend(new)
    return found


def tell(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:  # gone, or somebody else's by now
            continue


class Guardian:
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
        prctl(DIES_WITH_PARENT, signal.SIGTERM)  # of the thread that started us, so it is only a reason to look

    def start(self, arguments: list[str]) -> None:
        self.command = os.fork()
        if not self.command:
            become(arguments)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for fd in (1, 2):
            os.dup2(nowhere, fd)  # the output ends when everybody else has ended

    def watch(self) -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self.alarm, select.POLLIN)
        while self.collected():
            ready = {fd for fd, _ in poll.poll()}
            if self.alarm in ready:
                os.read(self.alarm, 4096)
            if 0 in ready or os.getppid() != self.parent:
                self.end()
                return

    def collected(self) -> bool:
        """Buries the dead; False when there is nobody left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return True
                if pid == self.command:
                    self.say(status)
        except ChildProcessError:
            return False

    def say(self, status: int) -> None:
        code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        try:
            os.write(self.report, b"%d\n" % code)
        except OSError:  # nobody listens any more
            return

    def end(self) -> None:
        """First asked, then stopped so that none can fork while others die, then killed."""
        tell(descendants(), signal.SIGTERM)
        until = time.monotonic() + self.grace_s
        while time.monotonic() < until and self.collected():
            time.sleep(0.002)
        while self.collected():
            stopped: set[int] = set()
            while new := descendants() - stopped:
                tell(new, signal.SIGSTOP)
                stopped |= new
            tell(stopped, signal.SIGKILL)
            time.sleep(0.001)


def become(arguments: list[str]) -> NoReturn:
    """The forked process turns into the command, with nothing of ours open and no signal ignored."""
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
    guardian = Guardian(report, int(arguments[1]), float(arguments[2]))
    guardian.start(arguments[3:])
    guardian.watch()


if __name__ == "__main__":
    main(sys.argv[1:])

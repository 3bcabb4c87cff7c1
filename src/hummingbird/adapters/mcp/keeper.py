"""Stands between us and a server that we started, and outlives neither: runs alone, on the standard library.

    keeper.py LIFELINE COMMAND [ARGUMENT …]

Whatever the server starts becomes a descendant of this process (a subreaper), also what puts itself into a session of
its own. When the server ends, or when the other end of the lifeline is closed, by us or by our death, all of them are
told to end and then killed. The server itself has the standard streams, this process has none.
"""

import ctypes
import os
import select
import signal
import sys
import time

_DEATH_SIGNAL, _SUBREAPER = 1, 36  # of prctl(2)
_GRACE_S, _POLL_S, _KILLING_S = 0.2, 0.01, 3.0


def main(lifeline: int, command: list[str]) -> int:
    os.set_inheritable(lifeline, False)
    libc = ctypes.CDLL(None)
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    server = os.fork()
    if server == 0:
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        _become(command)
    _let_go_of_streams()
    status = _wait(server, lifeline)
    _end_all()
    return status


def _become(command: list[str]) -> None:
    os.setsid()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and exec would hand that down
    try:
        os.execvpe(command[0], command, _environment())  # noqa: S606 - the operator's command, without a shell
    except OSError as error:
        os.write(2, f"{command[0]} cannot be run: {error.strerror}\n".encode("utf-8", "replace"))
    os._exit(127)


def _environment() -> dict[bytes, bytes]:
    """As it was given: Python adds LC_CTYPE to its own where there is no locale."""
    with open("/proc/self/environ", "rb") as block:  # noqa: PTH123 - pathlib would be most of the time to start
        pairs = (line.partition(b"=") for line in block.read().split(b"\0") if b"=" in line)
        return {name: value for name, _, value in pairs}


def _let_go_of_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _wait(server: int, lifeline: int) -> int:
    """For the server's end or ours. The server is not reaped before it has ended: its number stays its own."""
    poll = select.poll()
    ended = os.pidfd_open(server)
    for number in (ended, lifeline):
        poll.register(number, select.POLLIN)
    ready = {number for number, _ in poll.poll()}
    if ended not in ready:
        return 0
    code = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
    return code if code >= 0 else 128 - code  # as shells say it of a signal


def _end_all() -> None:
    began = time.monotonic()
    number, told = signal.SIGTERM, set[int]()
    while (alive := _descendants()) and time.monotonic() - began < _KILLING_S:
        if number == signal.SIGTERM and time.monotonic() - began > _GRACE_S:
            number, told = signal.SIGKILL, set()
        for each in alive - told:
            _signal(each, number)
        told |= alive if number == signal.SIGTERM else set()  # kill again and again: they may still be forking
        _reap()
        time.sleep(_POLL_S)


def _signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except OSError:
        return


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _descendants() -> set[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - as above
        if name.isdigit() and (parent := _parent(name)):
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    left = [os.getpid()]
    while left:
        below = children.get(left.pop(), [])
        found.update(below)
        left += below
    return found


def _parent(process: str) -> int:
    """None of one that has ended and waits to be reaped by somebody else."""
    try:
        with open(f"/proc/{process}/stat", "rb") as stat:  # noqa: PTH123 - as above
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return 0
    return int(parent) if state not in (b"Z", b"X") or int(parent) == os.getpid() else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))

"""The program between us and an MCP server that we started; it ends the server when we end, and exits with it.

    server_reaper.py LIFELINE COMMAND [ARGUMENT …]

It uses only the standard library. It is a subreaper: whatever the server starts becomes its descendant, even in a
session of its own. When the server ends, or when we close our end of the lifeline or die, it sends all of them SIGTERM
and then SIGKILL. The server has the standard streams; this process has none.
"""

import ctypes
import os
import select
import signal
import sys
import time

_DEATH_SIGNAL, _SUBREAPER = 1, 36  # options of prctl(2)
_GRACE_S, _POLL_S, _KILLING_S = 0.2, 0.01, 3.0


def main(lifeline: int, command: list[str]) -> int:
    os.set_inheritable(lifeline, False)
    libc = ctypes.CDLL(None)
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    server = os.fork()
    if server == 0:
        libc.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        _exec_server(command)
    _detach_streams()
    status = _wait_for_end(server, lifeline)
    _end_all()
    return status


def _exec_server(command: list[str]) -> None:
    os.setsid()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores SIGPIPE, and exec would pass that on
    try:
        os.execvpe(command[0], command, _read_environment())  # noqa: S606 - the operator's command, without a shell
    except OSError as error:
        os.write(2, f"{command[0]} cannot be run: {error.strerror}\n".encode("utf-8", "replace"))
    os._exit(127)


def _read_environment() -> dict[bytes, bytes]:
    """Return the environment as it was given: Python adds LC_CTYPE to os.environ where there is no locale."""
    with open("/proc/self/environ", "rb") as block:
        pairs = (line.partition(b"=") for line in block.read().split(b"\0") if b"=" in line)
        return {name: value for name, _, value in pairs}


def _detach_streams() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _wait_for_end(server: int, lifeline: int) -> int:
    """Wait for the server's end or ours. The server is not reaped before it has ended, so its id is not reused."""
    poll = select.poll()
    ended = os.pidfd_open(server)
    for number in (ended, lifeline):
        poll.register(number, select.POLLIN)
    ready = {number for number, _ in poll.poll()}
    if ended not in ready:
        return 0
    code = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
    return code if code >= 0 else 128 - code  # as shells report a signal


def _end_all() -> None:
    began = time.monotonic()
    number, told = signal.SIGTERM, set[int]()
    while (alive := _descendants()) and time.monotonic() - began < _KILLING_S:
        if number == signal.SIGTERM and time.monotonic() - began > _GRACE_S:
            number, told = signal.SIGKILL, set()
        for each in alive - told:
            _signal(each, number)
        told |= alive if number == signal.SIGTERM else set()  # repeat SIGKILL: processes may still be forking
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
    for name in os.listdir("/proc"):
        if name.isdigit() and (parent := _parent_pid(name)):
            children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    left = [os.getpid()]
    while left:
        below = children.get(left.pop(), [])
        found.update(below)
        left += below
    return found


def _parent_pid(process: str) -> int:
    """Return the parent's id, or 0 for a zombie that another process has to reap."""
    try:
        with open(f"/proc/{process}/stat", "rb") as stat:
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return 0
    return int(parent) if state not in (b"Z", b"X") or int(parent) == os.getpid() else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))

"""The ways into the program: one conversation on a pair of streams, or many over a socket as process 1 of bubblewrap.

Process 1 never runs anything itself. It cannot be killed from inside, it ends what lost its parent, and it looks after
memory and the number of files and locks, which no control group does there.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from hummingbird.adapters.sandboxes.inside import files
from hummingbird.adapters.sandboxes.inside.command import ROOT, Command
from hummingbird.adapters.sandboxes.inside.frames import CHUNK, REQUEST, read_frame, write_all
from hummingbird.adapters.sandboxes.inside.processes import DUMPABLE, SUBREAPER, end_descendants, prctl
from hummingbird.adapters.sandboxes.inside.watch import Watch

SPARE = 32  # processes for ourselves that commands cannot use up: one that forks without end must not stop the next


def converse(fd_in: int, fd_out: int, **under: Any) -> None:
    """One request to its end, its command `under` further limits or a filter of system calls. `reasons` among it is the
    descriptor where somebody says why he ended the command. Whatever happens, nothing that it started is left."""
    prctl(SUBREAPER, 1)
    prctl(DUMPABLE, 0)  # commands run as the same user and may not look into this process
    try:
        settle()
        kind, request = read_frame(fd_in)
        if kind == REQUEST:
            answer = work(json.loads(request), fd_in, fd_out, under)
            for fd in (fd_in, fd_out):
                os.set_blocking(fd, True)
            write_all(fd_out, answer)
            hear_out(fd_in)
    except (EOFError, OSError):
        pass  # nobody waits any more
    finally:
        end_descendants()


def settle() -> None:
    """Goes where commands run and where relative paths begin. An earlier command may have removed that, or put
    something else there; then the next one starts beside it and can mend it."""
    try:
        os.makedirs(ROOT, exist_ok=True)  # noqa: PTH103 - see processes
        os.chdir(ROOT)
    except OSError:
        os.chdir(os.path.dirname(ROOT))  # noqa: PTH120 - as above


def work(wanted: dict[str, Any], fd_in: int, fd_out: int, under: dict[str, Any]) -> bytes:
    if wanted["do"] == "exec":
        wanted["limits"].update(under.get("limits", {}))
        wanted["filters"] = under.get("filters")
        return Command(wanted, fd_in, fd_out, under.get("reasons")).run()
    return files.write(wanted, fd_in) if wanted["do"] == "write" else files.read(wanted, fd_out)


def hear_out(fd_in: int) -> None:
    """Unread input makes `kubectl exec` hang now and then. The other side hangs up once it has the answer."""
    with contextlib.suppress(OSError):
        while os.read(fd_in, CHUNK):
            pass


def serve(control: int, processes: int, memory: int, inodes: int, locks: int) -> None:
    """Process 1 of a bubblewrap sandbox: each socket that comes over `control` is a conversation, in a process of its
    own. Ends, and everything with it, when the other end of `control` is gone."""
    import resource  # noqa: PLC0415 - only here

    prctl(DUMPABLE, 0)
    forget_descriptors(control)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 gets no signal from inside that it has no handler for
    resource.setrlimit(resource.RLIMIT_NPROC, (processes + SPARE, processes + SPARE))
    os.umask(0o022)
    os.makedirs(ROOT, exist_ok=True)  # noqa: PTH103 - see processes
    line = socket.socket(fileno=control)
    alarm = wake_on_death()
    watch = Watch(memory, inodes, locks)
    workers: dict[int, int] = {}  # each with the descriptor over which it hears why its command was ended
    line.send(b"ready")
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(alarm, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll(watch.interval_ms if workers else None)]
        if alarm in ready:
            os.read(alarm, 4096)
        bury(workers)
        watch.look(workers)
        if control in ready:
            message, fds, _, _ = socket.recv_fds(line, 1, 1)
            if not message:
                return
            for fd in fds:
                with contextlib.suppress(BlockingIOError):  # no process to be had: whoever asked sees its socket close
                    pid, reasons = worker(line, fd, {"NPROC": processes})
                    workers[pid] = reasons
                os.close(fd)


def forget_descriptors(kept: int) -> None:
    """Bubblewrap leaves open what it was started with. A directory of the host among it would be a way out: its `..`
    leads up there, for whoever names a file by way of /proc/self/fd."""
    for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - see processes
        if fd > 2 and fd != kept:
            with contextlib.suppress(OSError):  # the one that was listing them
                os.close(fd)


def worker(line: socket.socket, fd: int, limits: dict[str, int]) -> tuple[int, int]:
    """A process for one conversation, and the descriptor to tell it something."""
    hearing, telling = os.pipe()
    for end in (hearing, telling):
        os.set_blocking(end, False)
    try:
        pid = os.fork()
    except OSError:
        os.close(hearing)
        os.close(telling)
        raise
    if pid:
        os.close(hearing)
        return pid, telling
    try:
        signal.set_wakeup_fd(-1)
        line.close()
        converse(fd, fd, limits=limits, reasons=hearing)
    finally:
        os._exit(0)


def bury(workers: dict[int, int]) -> None:
    """Collects the dead. A worker that was killed left its children to us: they are ended."""
    killed = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if not pid:
            break
        if pid in workers:
            killed = killed or os.WIFSIGNALED(status)
            os.close(workers.pop(pid))
    if killed:
        end_descendants(frozenset(workers), reap=False)


def wake_on_death() -> int:
    alarm, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return alarm


def main(arguments: list[str]) -> None:
    if arguments[0] == "serve":
        serve(*map(int, arguments[1:]))
    else:
        converse(sys.stdin.fileno(), sys.stdout.fileno(), filters=json.loads(arguments[1]))

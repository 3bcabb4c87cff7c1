"""Entry points of the runner: one request on a pair of streams, or many over a socket as process 1 of bubblewrap.

Process 1 runs no command itself. It cannot be killed from inside, it kills processes that lost their parent, and it
limits memory and the number of files and locks, because no control group does that in bubblewrap. Files are written and
read without a shell, so that any name works; a file appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import stat
import sys
from typing import Any

from hummingbird.sandboxes.runner.command import ROOT, RunnerCommand
from hummingbird.sandboxes.runner.frames import (
    CHUNK,
    HEAD,
    INPUT,
    INPUT_END,
    OUT,
    REQUEST,
    end_frame,
    frame,
    read_exactly,
    read_frame,
    write_all,
)
from hummingbird.sandboxes.runner.processes import DUMPABLE, SUBREAPER, kill_descendants, prctl
from hummingbird.sandboxes.runner.resource_watch import ResourceWatch

SPARE_PROCESSES = 32  # reserved for ourselves, so that a command which forks without end cannot block the next one


def handle_request(fd_in: int, fd_out: int, **under: Any) -> None:
    """Handle one request to its end, and leave no process that it started.

    `under` holds further limits of the command (`limits`), a seccomp filter (`filters`), and the descriptor where the
    resource watch says why it ended the command (`reasons`).
    """
    prctl(SUBREAPER, 1)
    prctl(DUMPABLE, 0)  # commands run as the same user and must not inspect this process
    try:
        enter_working_directory()
        kind, request = read_frame(fd_in)
        if kind == REQUEST:
            answer = dispatch(json.loads(request), fd_in, fd_out, under)
            for fd in (fd_in, fd_out):
                os.set_blocking(fd, True)
            write_all(fd_out, answer)
            drain_input(fd_in)
    except (EOFError, OSError):
        pass  # the caller has gone
    finally:
        kill_descendants()


def enter_working_directory() -> None:
    """Change to the directory where commands run and relative paths begin.

    An earlier command may have removed it or put something else there. Then start in its parent directory, so that the
    next command can repair it.
    """
    try:
        os.makedirs(ROOT, exist_ok=True)
        os.chdir(ROOT)
    except OSError:
        os.chdir(os.path.dirname(ROOT))


def dispatch(wanted: dict[str, Any], fd_in: int, fd_out: int, under: dict[str, Any]) -> bytes:
    if wanted["do"] == "exec":
        wanted["limits"].update(under.get("limits", {}))
        wanted["filters"] = under.get("filters")
        return RunnerCommand(wanted, fd_in, fd_out, under.get("reasons")).run()
    return write_file(wanted, fd_in) if wanted["do"] == "write" else read_file(wanted, fd_out)


def drain_input(fd_in: int) -> None:
    """Read input until the caller closes it, because `kubectl exec` sometimes hangs when input stays unread.

    The caller closes its end once it has the answer.
    """
    with contextlib.suppress(OSError):
        while os.read(fd_in, CHUNK):
            pass


def serve(control: int, processes: int, memory: int, inodes: int, locks: int) -> None:
    """Serve as process 1 of a bubblewrap sandbox: handle each socket that comes over `control` in a process of its own.

    Return, which ends everything inside, when the other end of `control` is closed.
    """
    import resource  # noqa: PLC0415 - only here

    prctl(DUMPABLE, 0)
    close_inherited_descriptors(control)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 ignores signals from inside unless it has a handler
    resource.setrlimit(resource.RLIMIT_NPROC, (processes + SPARE_PROCESSES, processes + SPARE_PROCESSES))
    os.umask(0o022)
    os.makedirs(ROOT, exist_ok=True)
    line = socket.socket(fileno=control)
    alarm = child_death_alarm()
    watch = ResourceWatch(memory, inodes, locks)
    workers: dict[int, int] = {}  # process id -> the descriptor that tells it why its command was ended
    line.send(b"ready")
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(alarm, select.POLLIN)
    while True:
        ready = [fd for fd, _ in poll.poll(watch.interval_ms if workers else None)]
        if alarm in ready:
            os.read(alarm, 4096)
        reap_workers(workers)
        watch.enforce(workers)
        if control in ready:
            message, fds, _, _ = socket.recv_fds(line, 1, 1)
            if not message:
                return
            for fd in fds:
                with contextlib.suppress(BlockingIOError):  # no process left: the caller sees its socket close
                    pid, reasons = fork_worker(line, fd, {"NPROC": processes})
                    workers[pid] = reasons
                os.close(fd)


def close_inherited_descriptors(kept: int) -> None:
    """Close the descriptors that bubblewrap was started with and left open.

    A directory of the host among them would be a way out: its `..`, reached through /proc/self/fd, leads to the host's
    file system.
    """
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd != kept:
            with contextlib.suppress(OSError):  # the descriptor that listed the folder is closed already
                os.close(fd)


def fork_worker(line: socket.socket, fd: int, limits: dict[str, int]) -> tuple[int, int]:
    """Fork a process for one connection; return its id and the descriptor that tells it why its command was ended."""
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
        handle_request(fd, fd, limits=limits, reasons=hearing)
    finally:
        os._exit(0)


def reap_workers(workers: dict[int, int]) -> None:
    """Reap dead workers, and kill the children that a killed worker left behind."""
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
        kill_descendants(frozenset(workers), reap=False)


def child_death_alarm() -> int:
    alarm, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    return alarm


def main(arguments: list[str]) -> None:
    if arguments[0] == "serve":
        serve(*map(int, arguments[1:]))
    else:
        handle_request(sys.stdin.fileno(), sys.stdout.fileno(), filters=json.loads(arguments[1]))


def write_file(wanted: dict[str, Any], fd_in: int) -> bytes:
    """Write the input to a file. Raises EOFError when the stream breaks off; then nothing of the file is left."""
    path = wanted["path"]
    folder = os.path.dirname(path) or "."
    unfinished = os.path.join(folder, f".part-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        os.makedirs(folder, exist_ok=True)
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            size = copy_input(fd_in, file)
        finally:
            os.close(file)
        os.rename(unfinished, path)
    except (OSError, EOFError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            os.unlink(unfinished)
        if isinstance(error, EOFError):
            raise
        return end_frame(error=error_reason(error))
    return end_frame(bytes=size)


def copy_input(fd_in: int, file: int) -> int:
    size = 0
    while True:
        kind, left = HEAD.unpack(read_exactly(fd_in, HEAD.size))
        if kind == INPUT_END:
            return size
        if kind != INPUT:
            raise EOFError
        size += left
        while left:
            part = os.read(fd_in, min(left, CHUNK))
            if not part:
                raise EOFError
            write_all(file, part)
            left -= len(part)


def read_file(wanted: dict[str, Any], fd_out: int) -> bytes:
    try:
        file = os.open(wanted["path"], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                return end_frame(error="It is not a regular file")
            left = found.st_size or sys.maxsize  # files in /proc and /sys claim to be empty but have content
            while content := os.read(file, min(CHUNK, left)):
                send_output(fd_out, content)
                left -= len(content)  # stop at the size at the start: what is appended meanwhile is not sent
        finally:
            os.close(file)
    except (OSError, ValueError) as error:
        return end_frame(error=error_reason(error))
    return end_frame()


def error_reason(error: Exception) -> str:
    """Return the reason of an error. A ValueError means an impossible name, with a NUL or a lone surrogate."""
    return getattr(error, "strerror", None) or str(error)


def send_output(fd_out: int, content: bytes) -> None:
    try:
        write_all(fd_out, frame(OUT, content))
    except OSError:
        raise EOFError from None

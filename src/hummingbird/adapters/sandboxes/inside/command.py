"""A command that runs: fed, drained, timed, and ended with everything it started.

Nothing here waits for one side while the other is stuck: a command that does not read, a command that does not stop
writing and a listener that does not listen each hold up themselves alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import select
import signal
import time
from typing import Any, NoReturn

from hummingbird.adapters.sandboxes.inside.frames import CHUNK, ERR, HEAD, OUT, OVER, ended, frame, write_all
from hummingbird.adapters.sandboxes.inside.processes import confine, descendants, end_descendants, tell

ROOT = "/tmp/data"  # noqa: S108 - inside the sandbox, where it is private
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/python/bin",
    "HOME": ROOT,
    "LANG": "C.UTF-8",
    "TMPDIR": "/tmp",  # noqa: S108 - as above
}
STDERR_KEPT = 65536  # of a command whose stdout is streamed
WIDEN = 1031  # F_SETPIPE_SZ, which Python names since 3.10


class Kept:
    """One output stream of a command: forwarded as it comes, or its beginning forwarded and the whole put into a
    file once there is more than that."""

    def __init__(self, kind: bytes, keep: int | None, path: str, most: int) -> None:
        self.kind, self.keep, self.path, self.most = kind, keep, path, most
        self.size = 0
        self.head = b""
        self.file: int | None = None
        self.complaint = ""

    def take(self, content: bytes) -> bytes:
        """What of it goes to the other side, as a frame."""
        before, self.size = self.size, self.size + len(content)
        if self.keep is None:
            return frame(self.kind, content)
        if self.path:
            self.put(content, before)
        shown = content[: max(0, self.keep - before)]
        return frame(self.kind, shown) if shown else b""

    def put(self, content: bytes, before: int) -> None:
        if self.size <= (self.keep or 0):
            self.head += content
        elif not self.complaint:
            try:
                self.store(content[: max(0, self.most - before)])
            except (OSError, ValueError) as error:  # a ValueError is a name that no file can have
                self.complaint = getattr(error, "strerror", None) or str(error)
            else:
                if self.size > self.most:
                    self.complaint = f"the file holds the first {self.most} bytes"

    def store(self, content: bytes) -> None:
        if self.file is None:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)  # noqa: PTH103, PTH120 - as in processes
            wanted = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self.file = os.open(self.path, wanted | os.O_NONBLOCK, 0o644)  # a command may have put a FIFO there
            write_all(self.file, self.head)
            self.head = b""
        write_all(self.file, content)

    def close(self) -> str:
        """The path of the file, if there is one."""
        if self.file is None:
            return ""
        os.close(self.file)
        return self.path


class Input:
    """Frames for the command's stdin, taken in pieces as they come. Unread input never stops anything: it goes nowhere
    once the command has closed its end."""

    def __init__(self, source: int, stdin: int) -> None:
        self.source, self.stdin = source, stdin
        self.pending = memoryview(b"")
        self.header = b""
        self.left = 0
        self.over = False

    @property
    def hungry(self) -> bool:
        return not self.pending and not self.over

    def listen(self) -> None:
        """Raises EOFError when the stream breaks off: then nobody waits any more."""
        try:
            content = os.read(self.source, min(CHUNK, self.left) if self.left else HEAD.size - len(self.header))
        except BlockingIOError:
            return
        if not content:
            raise EOFError
        if self.left:
            self.left -= len(content)
            self.pending = memoryview(content)
            self.feed()
        else:
            self.begin(content)

    def begin(self, content: bytes) -> None:
        self.header += content
        if len(self.header) == HEAD.size:
            kind, self.left = HEAD.unpack(self.header)
            self.header = b""
            if kind == OVER:
                self.over = True
                self.close()

    def feed(self) -> None:
        if self.stdin < 0:
            self.pending = memoryview(b"")
            return
        try:
            self.pending = self.pending[os.write(self.stdin, self.pending) :]
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def close(self) -> None:
        self.pending = memoryview(b"")
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1


class Command:
    """A running `sh -c`. `run` returns when it, everything it started and everything it wrote is dealt with."""

    def __init__(self, wanted: dict[str, Any], fd_in: int, fd_out: int, reasons: int | None = None) -> None:
        """`reasons`: where somebody who ends the command says why, a sentence a line."""
        self.fd_in, self.fd_out, self.reasons = fd_in, fd_out, reasons
        keep, most = wanted["keep"], wanted["most"]
        stdin, feeding = os.pipe()
        out, stdout = os.pipe()
        err, stderr = os.pipe()
        self.streams = (
            Kept(OUT, keep, wanted["stdout_file"], most),
            Kept(ERR, STDERR_KEPT if keep is None else keep, wanted["stderr_file"], most),
        )
        self.outputs = {out: self.streams[0], err: self.streams[1]}
        self.input = Input(fd_in, feeding)
        self.pending_out = memoryview(b"")
        self.alarm, wake = os.pipe()
        for fd in (self.alarm, wake, feeding, fd_in, fd_out):
            os.set_blocking(fd, False)
        for fd in (stdin, out):
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, WIDEN, 4 * CHUNK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.pid = os.fork()
        if not self.pid:
            become(wanted["command"], (stdin, stdout, stderr), wanted["limits"], wanted["filters"])
        for fd in (stdin, stdout, stderr):
            os.close(fd)
        self.status: int | None = None
        self.timed_out = False
        self.deadline = time.monotonic() + wanted["timeout_s"]
        self.grace = wanted["grace_s"]

    def run(self) -> bytes:
        """How it ended, as a frame. Raises EOFError when nobody waits any more."""
        while self.outputs or self.pending_out or self.status is None:
            self.wait()
            self.collect()
            self.mind_the_time()
        return self.facts()

    def wait(self) -> None:
        poll = select.poll()
        poll.register(self.alarm, select.POLLIN)
        wanted = {self.fd_in: select.POLLRDHUP | (select.POLLIN if self.input.hungry else 0)}
        if self.input.pending:
            wanted[self.input.stdin] = select.POLLOUT
        if self.pending_out:
            wanted[self.fd_out] = wanted.get(self.fd_out, 0) | select.POLLOUT
        else:
            wanted.update(dict.fromkeys(self.outputs, select.POLLIN))
        for fd, events in wanted.items():
            poll.register(fd, events)
        left = None if self.status is not None else max(0.0, self.deadline - time.monotonic()) * 1000
        for fd, events in poll.poll(left):
            self.attend(fd, events)

    def attend(self, fd: int, events: int) -> None:
        if fd == self.alarm:
            os.read(fd, 4096)
        elif fd in self.outputs:
            if not self.pending_out:  # the other one may have brought something in this very round
                self.drain(fd)
        elif fd == self.input.stdin:
            self.input.feed()
        else:
            self.converse(fd, events)

    def converse(self, fd: int, events: int) -> None:
        """With whoever waits for the outcome."""
        if events & select.POLLOUT:
            self.send(fd)
        if events & (select.POLLERR | select.POLLNVAL):
            raise EOFError
        if fd == self.fd_in:
            if events & (select.POLLHUP | select.POLLRDHUP):
                raise EOFError
            if events & select.POLLIN:
                self.input.listen()

    def send(self, fd: int) -> None:
        try:
            self.pending_out = self.pending_out[os.write(fd, self.pending_out) :]
        except BlockingIOError:
            return
        except OSError:
            raise EOFError from None

    def drain(self, fd: int) -> None:
        content = os.read(fd, CHUNK)
        if content:
            self.pending_out = memoryview(self.outputs[fd].take(content))
        else:
            os.close(fd)
            del self.outputs[fd]

    def collect(self) -> None:
        """The command's own end is the end: what it left running goes with it."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self.pid:
                self.status = status
                end_descendants()
                self.input.close()

    def mind_the_time(self) -> None:
        if self.status is not None or time.monotonic() < self.deadline:
            return
        if self.timed_out:
            end_descendants(reap=False)
            self.deadline = time.monotonic() + 1
        else:
            self.timed_out = True
            tell(descendants(os.getpid()), signal.SIGTERM)
            self.deadline = time.monotonic() + self.grace

    def facts(self) -> bytes:
        status, (out, err) = self.status or 0, self.streams
        return ended(
            exit_code=128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
            timed_out=self.timed_out,
            stdout_bytes=out.size,
            stderr_bytes=err.size,
            stdout_file=out.close(),
            stderr_file=err.close(),
            complaint="; ".join(filter(None, (self.reason(), out.complaint or err.complaint))),
        )

    def reason(self) -> str:
        """Why somebody ended a process of the command, if he did."""
        with contextlib.suppress(BlockingIOError):
            if self.reasons is not None:
                return os.read(self.reasons, 4096).partition(b"\n")[0].decode()
        return ""


def become(
    command: str, pipes: tuple[int, int, int], limits: dict[str, int], filters: dict[str, str] | None
) -> NoReturn:
    """The forked process turns into the command, with nothing of ours open and no signal ignored. `filters`, by kind of
    machine, where nobody has set one before: a container's own leaves doors open that a command has no use for."""
    try:
        os.setsid()
        for fd, pipe in enumerate(pipes):
            os.dup2(pipe, fd)
        os.closerange(3, 4096)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)  # whoever started us may have ignored some, and that is inherited
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for name, value in limits.items():
            kind = getattr(resource, "RLIMIT_" + name)
            hard = resource.getrlimit(kind)[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (most, most))
        if filters is not None:
            confine(filters)
        os.execve("/bin/sh", ["sh", "-c", command], ENVIRONMENT)  # noqa: S606 - this is what it is for
    except BaseException as error:  # noqa: BLE001 - a forked process must never return into its parent's code
        os.write(2, f"The command could not be started: {error}\n".encode())
    finally:
        os._exit(126)

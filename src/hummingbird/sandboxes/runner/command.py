"""Runs one command: feeds its input, reads its output, enforces its timeout, and ends it with everything it started.

All input and output is non-blocking. A command that does not read, a command that does not stop writing and a client
that does not listen block only themselves.
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

from hummingbird.sandboxes.runner.frames import CHUNK, ERR, HEAD, INPUT_END, OUT, end_frame, frame, write_all
from hummingbird.sandboxes.runner.processes import apply_seccomp_filter, descendants, kill_descendants, signal_all

ROOT = "/tmp/data"  # noqa: S108 - inside the sandbox, where it is private
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/opt/python/bin",
    "HOME": ROOT,
    "LANG": "C.UTF-8",
    "TMPDIR": "/tmp",  # noqa: S108 - as above
}
STDERR_BYTES = 65536  # how much stderr is kept of a command whose stdout is streamed
F_SETPIPE_SZ = 1031  # Python names it since 3.10


class OutputStream:
    """One output stream of a command.

    Without `keep`, forward everything as it comes. Otherwise forward the first `keep` bytes, and once there is more,
    write the whole stream (at most `most` bytes) to the file `path`.
    """

    def __init__(self, kind: bytes, keep: int | None, path: str, most: int) -> None:
        self.kind, self.keep, self.path, self.most = kind, keep, path, most
        self.size = 0
        self.head = b""
        self.file: int | None = None
        self.complaint = ""

    def take(self, content: bytes) -> bytes:
        """Take what the command wrote; return the frame to forward, or nothing."""
        before, self.size = self.size, self.size + len(content)
        if self.keep is None:
            return frame(self.kind, content)
        if self.path:
            self.spill(content, before)
        shown = content[: max(0, self.keep - before)]
        return frame(self.kind, shown) if shown else b""

    def spill(self, content: bytes, before: int) -> None:
        if self.size <= (self.keep or 0):
            self.head += content
        elif not self.complaint:
            try:
                self.write_to_file(content[: max(0, self.most - before)])
            except (OSError, ValueError) as error:  # a ValueError means an impossible file name
                self.complaint = getattr(error, "strerror", None) or str(error)
            else:
                if self.size > self.most:
                    self.complaint = f"the file holds the first {self.most} bytes"

    def write_to_file(self, content: bytes) -> None:
        if self.file is None:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            wanted = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self.file = os.open(
                self.path, wanted | os.O_NONBLOCK, 0o644
            )  # O_NONBLOCK: a command may have put a FIFO there
            write_all(self.file, self.head)
            self.head = b""
        write_all(self.file, content)

    def close(self) -> str:
        """Close the file and return its path, or an empty string when there is none."""
        if self.file is None:
            return ""
        os.close(self.file)
        return self.path


class CommandInput:
    """Passes input frames to the command's stdin, piece by piece as they come.

    Unread input never blocks: once the command has closed its stdin, the input is dropped.
    """

    def __init__(self, source: int, stdin: int) -> None:
        self.source, self.stdin = source, stdin
        self.pending = memoryview(b"")
        self.header = b""
        self.left = 0
        self.over = False

    @property
    def needs_input(self) -> bool:
        return not self.pending and not self.over

    def read_source(self) -> None:
        """Read the next piece. Raises EOFError when the stream breaks off, which means that the client is gone."""
        try:
            content = os.read(self.source, min(CHUNK, self.left) if self.left else HEAD.size - len(self.header))
        except BlockingIOError:
            return
        if not content:
            raise EOFError
        if self.left:
            self.left -= len(content)
            self.pending = memoryview(content)
            self.write_stdin()
        else:
            self.read_header(content)

    def read_header(self, content: bytes) -> None:
        self.header += content
        if len(self.header) == HEAD.size:
            kind, self.left = HEAD.unpack(self.header)
            self.header = b""
            if kind == INPUT_END:
                self.over = True
                self.close()

    def write_stdin(self) -> None:
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


class RunnerCommand:
    """A running `sh -c`. `run` returns once the command, its children and its output are all finished."""

    def __init__(self, wanted: dict[str, Any], fd_in: int, fd_out: int, reasons: int | None = None) -> None:
        """Start the command. `reasons` is where the resource watch says why it ended the command, one line each."""
        self.fd_in, self.fd_out, self.reasons = fd_in, fd_out, reasons
        keep, most = wanted["keep"], wanted["most"]
        stdin, feeding = os.pipe()
        out, stdout = os.pipe()
        err, stderr = os.pipe()
        self.streams = (
            OutputStream(OUT, keep, wanted["stdout_file"], most),
            OutputStream(ERR, STDERR_BYTES if keep is None else keep, wanted["stderr_file"], most),
        )
        self.outputs = {out: self.streams[0], err: self.streams[1]}
        self.input = CommandInput(fd_in, feeding)
        self.pending_out = memoryview(b"")
        self.alarm, wake = os.pipe()
        for fd in (self.alarm, wake, feeding, fd_in, fd_out):
            os.set_blocking(fd, False)
        for fd in (stdin, out):
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, F_SETPIPE_SZ, 4 * CHUNK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.pid = os.fork()
        if not self.pid:
            exec_command(wanted["command"], (stdin, stdout, stderr), wanted["limits"], wanted["filters"])
        for fd in (stdin, stdout, stderr):
            os.close(fd)
        self.status: int | None = None
        self.timed_out = False
        self.deadline = time.monotonic() + wanted["timeout_s"]
        self.grace = wanted["grace_s"]

    def run(self) -> bytes:
        """Return a frame that says how the command ended. Raises EOFError when the client is gone."""
        while self.outputs or self.pending_out or self.status is None:
            self.poll_once()
            self.reap_children()
            self.enforce_timeout()
        return self.build_reply()

    def poll_once(self) -> None:
        poll = select.poll()
        poll.register(self.alarm, select.POLLIN)
        wanted = {self.fd_in: select.POLLRDHUP | (select.POLLIN if self.input.needs_input else 0)}
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
            self.handle_event(fd, events)

    def handle_event(self, fd: int, events: int) -> None:
        if fd == self.alarm:
            os.read(fd, 4096)
        elif fd in self.outputs:
            if not self.pending_out:  # the other stream may have filled it in the same round
                self.read_output(fd)
        elif fd == self.input.stdin:
            self.input.write_stdin()
        else:
            self.handle_client_event(fd, events)

    def handle_client_event(self, fd: int, events: int) -> None:
        """Handle an event on the streams to and from the client."""
        if events & select.POLLOUT:
            self.send_pending(fd)
        if events & (select.POLLERR | select.POLLNVAL):
            raise EOFError
        if fd == self.fd_in:
            if events & (select.POLLHUP | select.POLLRDHUP):
                raise EOFError
            if events & select.POLLIN:
                self.input.read_source()

    def send_pending(self, fd: int) -> None:
        try:
            self.pending_out = self.pending_out[os.write(fd, self.pending_out) :]
        except BlockingIOError:
            return
        except OSError:
            raise EOFError from None

    def read_output(self, fd: int) -> None:
        content = os.read(fd, CHUNK)
        if content:
            self.pending_out = memoryview(self.outputs[fd].take(content))
        else:
            os.close(fd)
            del self.outputs[fd]

    def reap_children(self) -> None:
        """Reap dead children. When the command itself has ended, kill what it left running."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self.pid:
                self.status = status
                kill_descendants()
                self.input.close()

    def enforce_timeout(self) -> None:
        if self.status is not None or time.monotonic() < self.deadline:
            return
        if self.timed_out:
            kill_descendants(reap=False)
            self.deadline = time.monotonic() + 1
        else:
            self.timed_out = True
            signal_all(descendants(os.getpid()), signal.SIGTERM)
            self.deadline = time.monotonic() + self.grace

    def build_reply(self) -> bytes:
        status, (out, err) = self.status or 0, self.streams
        return end_frame(
            exit_code=128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
            timed_out=self.timed_out,
            stdout_bytes=out.size,
            stderr_bytes=err.size,
            stdout_file=out.close(),
            stderr_file=err.close(),
            complaint="; ".join(filter(None, (self.read_kill_reason(), out.complaint or err.complaint))),
        )

    def read_kill_reason(self) -> str:
        """Return why the resource watch ended a process of the command, or an empty string."""
        with contextlib.suppress(BlockingIOError):
            if self.reasons is not None:
                return os.read(self.reasons, 4096).partition(b"\n")[0].decode()
        return ""


def exec_command(
    command: str, pipes: tuple[int, int, int], limits: dict[str, int], filters: dict[str, str] | None
) -> NoReturn:
    """Turn the forked process into the command, with none of our descriptors open and no signal ignored.

    `filters` are seccomp filters by architecture, for containers, whose own filter allows more than a command needs;
    None in bubblewrap, which has set one already.
    """
    try:
        os.setsid()
        for fd, pipe in enumerate(pipes):
            os.dup2(pipe, fd)
        os.closerange(3, 4096)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)  # ignored signals are inherited from whoever started us
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for name, value in limits.items():
            kind = getattr(resource, "RLIMIT_" + name)
            hard = resource.getrlimit(kind)[1]
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (most, most))
        if filters is not None:
            apply_seccomp_filter(filters)
        os.execve("/bin/sh", ["sh", "-c", command], ENVIRONMENT)  # noqa: S606 - this is what it is for
    except BaseException as error:  # noqa: BLE001 - a forked process must never return into its parent's code
        os.write(2, f"The command could not be started: {error}\n".encode())
    finally:
        os._exit(126)

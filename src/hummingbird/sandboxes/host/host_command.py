"""One command on the host: starts it, collects its output and exit code, and ends it with everything it started.

A thread reads the output, so that it is taken and the end noticed whatever the event loop does, even when the next
call comes on another event loop.
"""

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hummingbird.core.errors import CommandFailed
from hummingbird.core.shell.values import (
    ENDING_S,
    OUTPUT_CHUNK_BYTES,
    OUTPUT_PAUSE_S,
    OUTPUT_UNHURRIED_BYTES,
    STANDING_CHARS,
    TERM_GRACE_S,
)
from hummingbird.core.text import shorten_line

_LAST_LINE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class OutputSlice:
    """Part of the output: from byte `start` to `end`, where to go on. `lost_bytes` before it were not kept."""

    content: bytes
    start: int
    end: int
    lost_bytes: int


class OutputBuffer:
    """Keeps the beginning and the end of a command's output. One thread writes it, others read it."""

    def __init__(self, kept: int) -> None:
        self._half = kept // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._lock = threading.Lock()
        self.total = 0

    def add(self, content: bytes) -> None:
        with self._lock:
            self.total += len(content)
            room = self._half - len(self._head)
            self._head += content[:room] if room > 0 else b""
            self._tail += content[max(0, room) :]
            if len(self._tail) > 2 * self._half:
                del self._tail[: -self._half]

    def read_slice(self, offset: int, most: int) -> OutputSlice:
        with self._lock:
            if offset < len(self._head):
                content = bytes(self._head[offset : offset + most])
                return OutputSlice(content, offset, offset + len(content), 0)
            tail = self._tail_bytes()
            begins = max(min(offset, self.total), self.total - len(tail))
            content = tail[begins - (self.total - len(tail)) :][:most]
            return OutputSlice(content, begins, begins + len(content), max(0, begins - offset))

    def full_content(self) -> bytes:
        """Return all that was kept, with a line where something is missing."""
        with self._lock:
            tail = self._tail_bytes()
            lost = self.total - len(self._head) - len(tail)
            between = b"\n[%d bytes of the output were not kept]\n" % lost if lost > 0 else b""
            return bytes(self._head) + between + tail

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines that are not empty, oldest first."""
        with self._lock:
            end = bytes((self._tail or self._head)[-_LAST_LINE_BYTES:])
        lines = end.decode("utf-8", "replace").replace("\r", "\n").split("\n")
        return [line for line in lines if line.strip()][-count:]

    def _tail_bytes(self) -> bytes:
        return bytes(self._tail[-self._half :])


_REAPER = Path(__file__).with_name("process_reaper.py")
_MARK = "HUMMINGBIRD_COMMAND"


class HostCommand:
    """A command, which starts when the object is created. Raises CommandFailed when it cannot be started.

    `exit_code` is the command's own; it is known before everything that the command started has ended (`is_finished`).
    """

    def __init__(
        self, command: str, shell: Sequence[str], folder: Path, environment: Mapping[str, str], kept: int
    ) -> None:
        self.command = command
        self.output = OutputBuffer(kept)
        self.exit_code: int | None = None
        self.is_finished = False
        self.started_at = time.monotonic()
        self.seconds = 0.0
        self.ended_by = ""  # who asked for the end, if anybody did
        self._mark = os.urandom(12).hex()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._lock = threading.Lock()
        self._spawn([*shell, command], folder, {**environment, _MARK: self._mark})
        threading.Thread(target=self._listen_loop, name="hummingbird command", daemon=True).start()

    @property
    def title(self) -> str:
        return shorten_line("".join(c if c.isprintable() else " " for c in self.command), STANDING_CHARS)

    @property
    def age_s(self) -> float:
        return self.seconds if self.is_finished else time.monotonic() - self.started_at

    def _spawn(self, arguments: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        control, self._control = os.pipe()
        self._out, out = os.pipe()
        self._report, report = os.pipe()
        ours = [self._control, self._out, self._report]
        told = [str(report), str(os.getpid()), str(TERM_GRACE_S), *arguments]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a command that was asked for
                [sys.executable or "python3", "-I", "-S", str(_REAPER), *told],
                stdin=control,
                stdout=out,
                stderr=subprocess.DEVNULL,
                pass_fds=(report,),
                cwd=folder,
                env=dict(environment),
                start_new_session=True,  # Ctrl-C in a terminal is ours to handle
            )
        except (OSError, ValueError) as error:
            for fd in ours:
                os.close(fd)
            why = getattr(error, "strerror", None) or str(error)
            raise CommandFailed(f"The command could not be started: {why}.") from error
        finally:
            for fd in (control, out, report):
                os.close(fd)

    def request_end(self, by: str = "") -> None:
        """Make the process reaper end the command with everything it started. Returns at once."""
        with self._lock:
            control, self._control = self._control, -1
        if control >= 0:
            if not self.is_finished:
                self.ended_by = by
            os.close(control)

    async def terminate(self, by: str = "") -> None:
        """End the command and wait until nothing of it is left."""
        self.request_end(by)
        if not await self.wait_for(lambda: self.is_finished, ENDING_S):
            with suppress(ProcessLookupError):
                self._process.kill()
            await self.wait_for(lambda: self.is_finished, ENDING_S)

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for the condition; return whether it became true in time."""
        told = (asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            self._waiting.append(told)
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    await told[1].wait()
                    told[1].clear()
        except TimeoutError:
            return condition()
        finally:
            with self._lock:
                self._waiting.remove(told)
        return True

    def _listen_loop(self) -> None:
        poll = select.poll()
        for fd in (self._out, self._report):
            os.set_blocking(fd, False)
            poll.register(fd, select.POLLIN)
        there = True
        while there:
            for fd, _ in poll.poll():
                if fd == self._report:
                    there = self._read_report()
                elif self._read_output() == b"":
                    poll.unregister(fd)
        self._finish()

    def _read_report(self) -> bool:
        """Read the exit code from the reaper; return False once the reaper is gone."""
        said = os.read(self._report, 64)
        if said and self.exit_code is None:
            self.exit_code = int(said.split()[0])
            self._notify_waiters()
        return bool(said)

    def _read_output(self) -> bytes | None:
        """Read some output: return b"" at its end, and None when there is nothing now."""
        try:
            content = os.read(self._out, OUTPUT_CHUNK_BYTES)
        except BlockingIOError:
            return None
        self.output.add(content)
        if self.output.total > OUTPUT_UNHURRIED_BYTES:
            time.sleep(OUTPUT_PAUSE_S)
        return content

    def _finish(self) -> None:
        self._process.wait()
        if self._process.returncode:  # somebody killed the reaper, so nobody looks after its children
            _kill_marked(f"{_MARK}={self._mark}".encode())
        for _ in range(64):  # output that is still in the pipe
            if not self._read_output():
                break
        self.seconds = time.monotonic() - self.started_at
        self.is_finished = True
        self.request_end()
        for fd in (self._out, self._report):
            os.close(fd)
        self._notify_waiters()

    def _notify_waiters(self) -> None:
        with self._lock:
            waiting = tuple(self._waiting)
        for loop, event in waiting:
            with suppress(RuntimeError):  # that event loop is closed, so nobody waits on it
                loop.call_soon_threadsafe(event.set)


def _kill_marked(mark: bytes) -> None:
    """Kill the processes with this mark in their environment, until there are none."""
    for _ in range(100):
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        marked = [pid for pid in pids if _has_mark(pid, mark)]
        if not marked:
            return
        for pid in marked:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _has_mark(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False

"""One command of the host while it runs, and afterwards what is known of it.

A thread listens to it, so that output is taken and its end noticed whatever the event loop does, and also when the next
call comes on another loop.
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
from pathlib import Path

from hummingbird.adapters.host.rolling import Rolling
from hummingbird.domain.errors import CommandFailed
from hummingbird.domain.host_limits import (
    ENDING_S,
    OUTPUT_CHUNK_BYTES,
    OUTPUT_PAUSE_S,
    OUTPUT_UNHURRIED_BYTES,
    STANDING_CHARS,
    TERM_GRACE_S,
)
from hummingbird.domain.text import shortened

_GUARDIAN = Path(__file__).with_name("guardian.py")
_MARK = "HUMMINGBIRD_COMMAND"


class Running:
    """Started when it is made. `code` is the command's own, known before all that it started is `over`. Raises
    CommandFailed when it cannot be started."""

    def __init__(
        self, command: str, shell: Sequence[str], folder: Path, environment: Mapping[str, str], kept: int
    ) -> None:
        self.command = command
        self.output = Rolling(kept)
        self.code: int | None = None
        self.over = False
        self.began = time.monotonic()
        self.seconds = 0.0
        self.ended_by = ""  # who wanted that, if anybody
        self._mark = os.urandom(12).hex()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._lock = threading.Lock()
        self._begin([*shell, command], folder, {**environment, _MARK: self._mark})
        threading.Thread(target=self._listen, name="hummingbird command", daemon=True).start()

    @property
    def title(self) -> str:
        return shortened("".join(c if c.isprintable() else " " for c in self.command), STANDING_CHARS)

    @property
    def age_s(self) -> float:
        return self.seconds if self.over else time.monotonic() - self.began

    def _begin(self, arguments: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        control, self._control = os.pipe()
        self._out, out = os.pipe()
        self._report, report = os.pipe()
        ours = [self._control, self._out, self._report]
        told = [str(report), str(os.getpid()), str(TERM_GRACE_S), *arguments]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a command that was asked for
                [sys.executable or "python3", "-I", "-S", str(_GUARDIAN), *told],
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

    def hang_up(self, by: str = "") -> None:
        """From now on the guardian ends it, with everything it started. Returns at once."""
        with self._lock:
            control, self._control = self._control, -1
        if control >= 0:
            if not self.over:
                self.ended_by = by
            os.close(control)

    async def end(self, by: str = "") -> None:
        """Until nothing of it is left."""
        self.hang_up(by)
        if not await self.until(lambda: self.over, ENDING_S):
            with suppress(ProcessLookupError):
                self._process.kill()
            await self.until(lambda: self.over, ENDING_S)

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Whether it came true in this time."""
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

    def _listen(self) -> None:
        poll = select.poll()
        for fd in (self._out, self._report):
            os.set_blocking(fd, False)
            poll.register(fd, select.POLLIN)
        there = True
        while there:
            for fd, _ in poll.poll():
                if fd == self._report:
                    there = self._hear()
                elif self._take() == b"":
                    poll.unregister(fd)
        self._finish()

    def _hear(self) -> bool:
        """False once the guardian is gone, who says no more than one thing."""
        said = os.read(self._report, 64)
        if said and self.code is None:
            self.code = int(said.split()[0])
            self._tell()
        return bool(said)

    def _take(self) -> bytes | None:
        """Empty when there is no more to come, None when there is nothing now."""
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
        if self._process.returncode:  # somebody killed the guardian, whose children are nobody's now
            _sweep(f"{_MARK}={self._mark}".encode())
        for _ in range(64):  # what was still on its way
            if not self._take():
                break
        self.seconds = time.monotonic() - self.began
        self.over = True
        self.hang_up()
        for fd in (self._out, self._report):
            os.close(fd)
        self._tell()

    def _tell(self) -> None:
        with self._lock:
            waiting = tuple(self._waiting)
        for loop, event in waiting:
            with suppress(RuntimeError):  # that loop is gone, and nobody waits on it
                loop.call_soon_threadsafe(event.set)


def _sweep(mark: bytes) -> None:
    """Kills whoever carries the mark, until nobody does."""
    for _ in range(100):
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        marked = [pid for pid in pids if _carries(pid, mark)]
        if not marked:
            return
        for pid in marked:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _carries(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False

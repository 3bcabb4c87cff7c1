"""`hummingbird serve` as a process that sees a disk of its own: small, full or read-only, and gone with the process.

The disk is mounted by bubblewrap in a mount namespace, as root and as anybody else; the sandboxes that the service
starts are nested in it. From outside it is looked into by way of /proc.
"""

import asyncio
import ctypes
import errno
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hummingbird.core.errors import SandboxUnavailable
from hummingbird.lab.gitlab.webhook_delivery import webhook_sender
from hummingbird.lab.gitlab.world import GitLabWorld
from hummingbird.lab.gitlab.write.webhooks import EVENT_FLAGS
from hummingbird.sandboxes.bubblewrap import find_bubblewrap
from tests.journeys.service.stage import SECRET, Stage
from tests.journeys.service.test_processes import Process
from tests.real_parts import missing

PAGE = 4096  # a disk in memory gives room by the page
KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE, which Python's own verb does not know


@dataclass
class Host(Process):
    """`pid`: the service's own, not that of bubblewrap, which waits for it."""

    pid: int = 0

    def sees(self, path: Path) -> Path:
        """What this process finds under that name."""
        return Path(f"/proc/{self.pid}/root") / path.relative_to("/")

    @property
    def log(self) -> str:
        return "".join(self.said)


class Disk:
    """The small disk of one host, at `path` there."""

    def __init__(self, host: Host, path: Path) -> None:
        self.folder = host.sees(path)
        self._filler = self.folder / "somebody-elses-file"

    def fill(self, *, but_for: int = 0) -> None:
        """So many pages stay free; beside these, files only grow within a page that they have."""
        with self._filler.open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * PAGE)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
            file.truncate(file.tell() // PAGE * PAGE - but_for * PAGE)

    def reserve(self, session_id: str, pages: int) -> None:
        """The journal alone may grow by so many pages, however full the disk gets."""
        path = self.folder / session_id / "journal.jsonl"
        with path.open("r+b") as file:
            where = ctypes.c_int64(path.stat().st_size), ctypes.c_int64(pages * PAGE)
            if ctypes.CDLL(None, use_errno=True).fallocate(file.fileno(), KEEP_SIZE, *where):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def free(self) -> None:
        self._filler.unlink()

    def journal(self, session_id: str) -> bytes:
        path = self.folder / session_id / "journal.jsonl"
        return path.read_bytes() if path.exists() else b""

    def beside(self, session_id: str) -> dict[str, bytes]:
        """The files that stand beside the journal, half ones too."""
        found = (path for path in (self.folder / session_id).iterdir() if path.name != "journal.jsonl")
        return {path.name: path.read_bytes() for path in found}


@asynccontextmanager
async def host(stage: Stage, *options: str) -> AsyncIterator[Host]:
    """The service where bubblewrap's options hold, hearing of everything in the scene."""
    hearing, telling = os.pipe()
    serve = (sys.executable, "-m", "hummingbird", "serve", "--config", str(stage.file), "--port", "0")
    words = (*_wrapped(*options), "--die-with-parent", "--info-fd", str(telling), "--", *serve)
    given, log = {**os.environ, **stage.environment}, asyncio.subprocess.PIPE
    running = await asyncio.create_subprocess_exec(*words, env=given, stderr=log, pass_fds=(telling,))
    os.close(telling)
    with os.fdopen(hearing) as told:
        served = Host(running, pid=json.load(told)["child-pid"])
    listening = asyncio.create_task(served.listen())
    try:
        await served.until_said("/webhooks/gitlab")
        _subscribe(stage, served.port)
        yield served
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()
        await listening


def _wrapped(*options: str) -> tuple[str, ...]:
    try:
        words = (str(find_bubblewrap()), "--dev-bind", "/", "/", *options)
        subprocess.run([*words, "--", "true"], check=True, capture_output=True)
    except (SandboxUnavailable, OSError, subprocess.CalledProcessError) as error:
        missing(f"this machine does not let us mount a disk for one process ({error})")
    return words


def _subscribe(stage: Stage, port: int) -> None:
    def send(world: GitLabWorld) -> None:
        hooks = webhook_sender(world)
        hooks.disables_failing_hooks = False
        hook = hooks.hooks[0] if hooks.hooks else hooks.subscribe("", *EVENT_FLAGS)
        hook.url, hook.token = f"http://127.0.0.1:{port}/webhooks/gitlab", SECRET

    stage.ask(send)

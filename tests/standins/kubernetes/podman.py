"""podman, called with a configuration of its own, and no container of ours left behind.

Every container carries the id of its lab and of the process that made it: `sweep` removes what a killed process
left, `close` what this one made. A call that was begun is finished even if nobody waits for it any more, since a
half-done `podman run` would make a container that nobody knows.
"""

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
import uuid
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hummingbird.lab.kubernetes_api.access import Raw

LABEL = "tests.standins.kubernetes"
OWNER = "tests.standins.kubernetes.owner"
_FOLDER = "hummingbird-kubernetes-"
_AT_ONCE = 4  # podman's database has one lock; more at once only wait for each other

# Debian's podman 4.3.1 wants all of these spelt out: without the ulimits it asks for more than a container may have,
# crun cannot do hybrid cgroups, and there is no systemd to ask for a cgroup
_CONFIGURATION = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


class Podman:
    """One lab's podman; `folder` is its scratch space on the host."""

    def __init__(self, program: str = "podman") -> None:
        self._program = program
        self.lab = uuid.uuid4().hex[:12]
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{owner(os.getpid())}-"))
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._begun: set[asyncio.Task[Outcome]] = set()
        self._configuration = self.folder / "containers.conf"
        runc = 'runtime = "runc"\n' if shutil.which("runc") else ""
        self._configuration.write_text(_CONFIGURATION + runc)

    @property
    def labels(self) -> list[str]:
        return [f"--label={LABEL}={self.lab}", f"--label={OWNER}={owner(os.getpid())}"]

    async def call(self, *arguments: str, at: Path | None = None) -> Outcome:
        task = asyncio.create_task(self._call(arguments, at))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)
        return await asyncio.shield(task)

    async def _call(self, arguments: Sequence[str], at: Path | None) -> Outcome:
        async with self._slots:
            process = await self._start(arguments, DEVNULL, at)
            out, err = await process.communicate()
        return Outcome(process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))

    async def spawn(self, *arguments: str, stdin: bool) -> Process:
        return await self._start(arguments, PIPE if stdin else DEVNULL)

    async def _start(self, arguments: Sequence[str], stdin: int, at: Path | None = None) -> Process:
        place = at or self.folder
        return await asyncio.create_subprocess_exec(
            self._program, *arguments, stdin=stdin, stdout=PIPE, stderr=PIPE, env=self._environment, cwd=place
        )

    @property
    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_RUNTIME_DIR") if name in os.environ}
        return {**kept, "CONTAINERS_CONF": str(self._configuration)}

    async def image(self, name: str) -> Raw | None:
        """What podman knows of an image that it has; None of one that it would have to pull."""
        found = await self.call("image", "inspect", name)
        images = json.loads(found.out) if found.code == 0 else []
        return images[0] if images else None

    async def sweep(self) -> None:
        """Remove the containers and folders of labs whose process is gone."""
        listed = await self.call("ps", "-a", f"--filter=label={OWNER}", "--format=json")
        found = json.loads(listed.out or "null") or []
        await self._remove([each["Id"] for each in found if _orphaned(each["Labels"][OWNER])])
        _sweep_folders()

    async def close(self) -> None:
        while self._begun:
            await asyncio.gather(*self._begun, return_exceptions=True)
        listed = await self.call("ps", "-aq", f"--filter=label={LABEL}={self.lab}")
        await self._remove(listed.out.split())
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _remove(self, containers: Sequence[str]) -> None:
        if containers:
            await self.call("rm", "-f", "-t", "0", *containers)


def _sweep_folders() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        if _orphaned(folder.name.removeprefix(_FOLDER).rpartition("-")[0]):
            shutil.rmtree(folder, ignore_errors=True)


def owner(pid: int) -> str:
    """A process that no other can be taken for: where it runs, its number, and when it began.

    One that has ended is nobody.
    """
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        if fields[0] not in {"Z", "X"}:
            return f"{_world()}-{pid}-{fields[19]}"
    return ""


def _world() -> str:
    """The process namespace: the numbers of another one say nothing here."""
    return "".join(filter(str.isdigit, str(Path("/proc/self/ns/pid").readlink())))


def _orphaned(label: str) -> bool:
    world, _, rest = label.partition("-")
    pid = rest.partition("-")[0]
    return world == _world() and pid.isdigit() and owner(int(pid)) != label

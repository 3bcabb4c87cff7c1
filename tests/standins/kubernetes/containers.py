"""One pod's container: a manifest translated into `podman run`, its start, and how it ended.

Knows podman's options and nothing of the API; the kubelet decides when.
"""

import asyncio
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from hummingbird.lab.kubernetes_api.access import Raw
from tests.standins.kubernetes.podman import Podman
from tests.standins.kubernetes.quantities import quantity

TERMINATION_LOG = "/dev/termination-log"
_TERMINATION_BYTES = 4096  # that the kubelet reads of it
_PIDS = 256  # the kubelet's podPidsLimit on the cluster that this was compared with
# a real cluster sets these even where enableServiceLinks is false
_SERVICE = {
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_SERVICE_PORT_HTTPS": "443",
    "KUBERNETES_PORT": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1",
    "KUBERNETES_PORT_443_TCP_PORT": "443",
    "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
}


class StartFailed(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Ending:
    code: int
    reason: str
    message: str = ""


def run_options(pod: Raw, folder: Path) -> list[str]:
    """What `podman run` is told, image and command last. `folder` holds the pod's volumes on the host."""
    spec = pod["spec"]
    container = spec["containers"][0]
    context = {**(spec.get("securityContext") or {}), **(container.get("securityContext") or {})}
    return [
        "--network=none",
        "--no-hosts",
        "--log-driver=none",
        "--pull=never",
        f"--pids-limit={_PIDS}",
        f"--hostname={pod['metadata']['name'][:63]}",
        "--unsetenv=container",
        "--unsetenv=TERM",
        *_security(context),
        *_limits((container.get("resources") or {}).get("limits") or {}),
        *_volumes(spec, container, folder),
        f"--volume={_termination_log(folder)}:{container.get('terminationMessagePath', TERMINATION_LOG)}:rw",
        *(f"--env={name}={value}" for name, value in _variables(container).items()),
        *([f"--workdir={container['workingDir']}"] if container.get("workingDir") else []),
        *([f"--entrypoint={json.dumps(container['command'])}"] if container.get("command") else []),
        container["image"],
        *(container.get("args") or []),
    ]


def _termination_log(folder: Path) -> Path:
    """A file of the node that anybody in the container may write to, as the kubelet makes one for each start."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "termination-log"
    file.write_bytes(b"")
    file.chmod(0o666)
    return file


def _variables(container: Raw) -> dict[str, str]:
    return {**_SERVICE, **{each["name"]: each.get("value", "") for each in container.get("env") or []}}


def _security(context: Raw) -> list[str]:
    options = []
    if "runAsUser" in context:
        group = f":{context['runAsGroup']}" if "runAsGroup" in context else ""
        options.append(f"--user={context['runAsUser']}{group}")
    if context.get("readOnlyRootFilesystem"):
        options += ["--read-only", "--read-only-tmpfs=false"]
    if context.get("allowPrivilegeEscalation") is False:
        options.append("--security-opt=no-new-privileges")
    capabilities = context.get("capabilities") or {}
    options += [f"--cap-drop={name}" for name in capabilities.get("drop") or []]
    return options + [f"--cap-add={name}" for name in capabilities.get("add") or []]


def _limits(limits: Raw) -> list[str]:
    options = []
    if "memory" in limits:
        size = int(quantity(limits["memory"]))
        options += [f"--memory={size}", f"--memory-swap={size}"]
    if "cpu" in limits:
        options.append(f"--cpus={float(quantity(limits['cpu']))}")
    return options


def _volumes(spec: Raw, container: Raw, folder: Path) -> list[str]:
    kinds = {volume["name"]: volume for volume in spec.get("volumes") or []}
    return [_volume(kinds[mount["name"]], mount, folder) for mount in container.get("volumeMounts") or []]


def _volume(volume: Raw, mount: Raw, folder: Path) -> str:
    """Memory is a tmpfs with a hard limit; disk a directory of the host with none: its sizeLimit is soft in real."""
    mode, target = "ro" if mount.get("readOnly") else "rw", mount["mountPath"]
    empty = volume.get("emptyDir") or {}
    if empty.get("medium") == "Memory":
        size = f",size={int(quantity(empty['sizeLimit']))}" if empty.get("sizeLimit") else ""
        return f"--tmpfs={target}:{mode},nosuid,nodev,exec,mode=1777,notmpcopyup{size}"
    place = folder / volume["name"]
    if not place.exists():
        place.mkdir(parents=True)
        place.chmod(0o1777)
    if "projected" in volume:
        for name in ("token", "namespace", "ca.crt"):
            (place / name).write_text(f"the stand-in's {name}\n")
    return f"--volume={place}:{target}:{mode}"


class Container:
    """A container by its name, from `start` to `remove`; what was begun is waited for before it is removed."""

    def __init__(self, podman: Podman, name: str, volumes: Path) -> None:
        self._podman = podman
        self.name = name
        self._log = volumes / "termination-log"
        # conmon writes a file `oom` into the directory that podman was started in, where podman 4.3 does not look
        self._folder = podman.folder / name
        self._pid_file = self._folder / "pid"
        self._starting: asyncio.Task[None] | None = None

    async def start(self, options: list[str]) -> None:
        self._starting = asyncio.create_task(self._start(options))
        await asyncio.shield(self._starting)

    async def _start(self, options: list[str]) -> None:
        fixed = ["--detach", f"--name={self.name}", f"--pidfile={self._pid_file}", *self._podman.labels]
        self._folder.mkdir()
        outcome = await self._podman.call("run", *fixed, *options, at=self._folder)
        if outcome.code:
            raise StartFailed(outcome.err.strip())

    async def settled(self) -> None:
        """Until a start that was begun is done, well or badly."""
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)

    async def gone(self) -> None:
        """Until its first process has ended."""
        try:
            watched = os.pidfd_open(int(self._pid_file.read_text()))
        except (OSError, ValueError):
            return
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(watched, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(watched)
            os.close(watched)

    async def ending(self) -> Ending:
        await self.gone()
        waited = await self._podman.call("wait", self.name)
        code, said = int(waited.out.strip() or 137), self._last_words()
        if code == 137 and await self._was_out_of_memory():
            return Ending(code, "OOMKilled", said)
        return Ending(code, "Error" if code else "Completed", said)

    def _last_words(self) -> str:
        """What commands wrote to the termination log."""
        try:
            return self._log.read_bytes()[-_TERMINATION_BYTES:].decode("utf-8", "replace")
        except OSError:
            return ""

    async def _was_out_of_memory(self) -> bool:
        if (self._folder / "oom").exists():
            return True
        state = await self._podman.call("inspect", "--format={{.State.OOMKilled}}", self.name)
        return state.out.strip() == "true"

    async def signal(self, name: str) -> None:
        await self._podman.call("kill", f"--signal={name}", self.name)

    async def remove(self) -> None:
        await self.settled()
        if self._starting is not None:
            await self._podman.call("rm", "-f", "-t", "0", self.name)
        shutil.rmtree(self._folder, ignore_errors=True)

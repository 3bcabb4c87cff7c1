"""The podman backend: a container that is started, used through `podman exec`, and removed whatever happens.

The function `run_arguments` says how a container is hardened. Process 1 of a container first reports what it finds
inside. A container that lacks what we need, has no limits or got a directory of the host is refused before any command
runs.
"""

import asyncio
import resource
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import uuid4
from weakref import WeakSet

import msgspec

from hummingbird.core.errors import SandboxBroken, SandboxUnavailable
from hummingbird.core.limits import (
    CONTAINER_REMOVALS,
    CONTAINER_START_S,
    ERROR_TEXT_CHARS,
    LEFTOVERS_S,
    PULL_S,
    SANDBOX_CPUS,
    SANDBOX_FILE_BYTES,
    SANDBOX_MEMORY_BYTES,
    SANDBOX_OPEN_FILES,
    SANDBOX_PROCESSES,
    SANDBOX_SHARED_BYTES,
    SANDBOX_SPACE_BYTES,
    SANDBOX_UID,
)
from hummingbird.core.text import shorten_line
from hummingbird.sandboxes.command_sandbox import RESTART_HINT
from hummingbird.sandboxes.local_process import (
    ProgramResult,
    run_program,
    run_to_completion,
    start_program,
    stop_process,
)
from hummingbird.sandboxes.podman_engine import (
    OWNER_LABEL,
    SANDBOX_LABEL,
    PodmanEngine,
    current_owner,
    filter_environment,
    remove_leftover_containers,
)
from hummingbird.sandboxes.runner.command import ENVIRONMENT
from hummingbird.sandboxes.runner_client import SubprocessLink, init_process_argv, open_subprocess_link

MINIMUM_PYTHON = (3, 8)
IMAGE_REQUIREMENTS = (
    "Sandboxes need python3 (3.8 or newer, with ctypes), sh and tar: run `hummingbird sandbox build`, or set another "
    "image."
)
_UNLIMITED = 2**60
MAX_PROCESSES = 32768  # podman lowers its own limit to the kernel's highest process id and cannot raise it again

# Process 1 prints this report on one line, then becomes the init process. It runs on any Python 3, so that an image
# with an old version gets a clear error.
_GREETING_SCRIPT = """\
import json, os, sys
def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
try:
    import ctypes
    lacking = []
except ImportError:
    lacking = ["ctypes in its python3"]
os.umask(0o022)
os.makedirs("/tmp/data", exist_ok=True)
folders = os.environ["PATH"].split(":")
print(json.dumps({
    "python": sys.version_info[:2],
    "missing": lacking + [n for n in ("sh", "tar") if not any(os.access(f + "/" + n, os.X_OK) for f in folders)],
    "memory": read("/sys/fs/cgroup/memory.max") or read("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    "processes": read("/sys/fs/cgroup/pids.max") or read("/sys/fs/cgroup/pids/pids.max"),
    "mounts": [line.split()[4] for line in read("/proc/self/mountinfo").splitlines()],
}), flush=True)
"""
_KERNEL_MOUNTS = ("/proc", "/sys", "/dev")
_PODMAN_MOUNTS = {  # podman's own small files; the last two exist where the machine is in FIPS mode
    "/",
    "/tmp",  # noqa: S108 - the sandbox's own
    "/etc/hostname",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/run/.containerenv",
    "/etc/system-fips",
    "/etc/crypto-policies/back-ends",
}


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """What a container is made of. `cpus` is None where the machine cannot limit them."""

    image: str
    owner: str = ""
    memory_bytes: int = SANDBOX_MEMORY_BYTES
    space_bytes: int = SANDBOX_SPACE_BYTES
    cpus: float | None = SANDBOX_CPUS
    processes: int = SANDBOX_PROCESSES
    max_processes: int = MAX_PROCESSES


RunArguments: TypeAlias = Callable[[ContainerSpec, str], list[str]]


def run_arguments(container: ContainerSpec, name: str) -> list[str]:
    """Return the `podman` arguments that start the container, attached.

    /tmp is memory and counts as such. With room for 2 GiB of files in 1 GiB of memory, a file of 1.5 GB would get every
    process of the container killed, process 1 included, instead of "no space left". So the container gets the sum of
    both; each process of a command has a memory limit of its own (`command_sandbox.PROCESS_LIMITS`).
    """
    memory = container.memory_bytes + container.space_bytes + SANDBOX_SHARED_BYTES
    return [
        "run",
        f"--name={name}",
        f"--label={SANDBOX_LABEL}",
        f"--label={OWNER_LABEL}={container.owner}",
        "--pull=never",
        "--sig-proxy=false",
        "--log-driver=none",
        "--network=none",
        "--no-hosts",
        "--hostname=sandbox",
        f"--user={SANDBOX_UID}:{SANDBOX_UID}",
        "--passwd=false",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--ipc=private",
        "--uts=private",
        "--cgroupns=private",
        "--read-only",
        "--read-only-tmpfs=false",
        f"--tmpfs=/tmp:rw,nosuid,nodev,size={container.space_bytes},mode=1777",
        f"--shm-size={SANDBOX_SHARED_BYTES}b",
        "--image-volume=ignore",
        "--systemd=false",
        "--sdnotify=ignore",
        "--no-healthcheck",
        f"--pids-limit={container.processes}",
        f"--memory={memory}b",
        f"--memory-swap={memory}b",
        *([] if container.cpus is None else [f"--cpus={container.cpus}"]),
        # With any --ulimit, podman asks for 1048576 files and processes unless these two are given as well; that is
        # more than an unprivileged podman gets. The kernel counts a user's processes over all containers, so the
        # effective bound is --pids-limit.
        f"--ulimit=nofile={SANDBOX_OPEN_FILES}:{SANDBOX_OPEN_FILES}",
        f"--ulimit=nproc={container.max_processes}:{container.max_processes}",
        f"--ulimit=fsize={SANDBOX_FILE_BYTES}:{SANDBOX_FILE_BYTES}",
        "--ulimit=core=0:0",
        "--env-host=false",
        "--http-proxy=false",
        "--unsetenv-all",
        f"--env=PATH={ENVIRONMENT['PATH']}",
        "--entrypoint=",
        "--workdir=/tmp",
        container.image,
        *_init_argv(),
    ]


def _init_argv() -> list[str]:
    *python, text = init_process_argv()
    return [*python, f"{_GREETING_SCRIPT}\n{text}"]


class ContainerGreeting(msgspec.Struct, frozen=True):
    """What process 1 reports about the inside of its container."""

    python: tuple[int, int]
    missing: tuple[str, ...]
    memory: str
    processes: str
    mounts: tuple[str, ...]

    @property
    def unexpected_mounts(self) -> list[str]:
        return [at for at in self.mounts if at not in _PODMAN_MOUNTS and not at.startswith(_KERNEL_MOUNTS)]


def parse_greeting(line: bytes, image: str) -> ContainerGreeting:
    """Parse the report of process 1. Raises SandboxUnavailable when the container may not be used."""
    try:
        found = msgspec.json.decode(line, type=ContainerGreeting)
    except msgspec.MsgspecError as error:
        raise SandboxUnavailable(
            f"The image {image} starts something else than its python3. {IMAGE_REQUIREMENTS}"
        ) from error
    if found.python < MINIMUM_PYTHON:
        raise SandboxUnavailable(
            f"The python3 of the image {image} is {found.python[0]}.{found.python[1]}. {IMAGE_REQUIREMENTS}"
        )
    if found.missing:
        raise SandboxUnavailable(f"The image {image} has no {' and no '.join(found.missing)}. {IMAGE_REQUIREMENTS}")
    if not (_is_limited(found.memory) and _is_limited(found.processes)):
        raise SandboxUnavailable(
            "Podman does not limit memory and processes here. An ordinary user's podman needs a machine with control "
            "groups of version 2 that systemd hands on to users; or use the bubblewrap sandbox."
        )
    if found.unexpected_mounts:
        raise SandboxUnavailable(
            f"Podman mounts {', '.join(found.unexpected_mounts)} into every container. Take that out of its "
            "containers.conf or mounts.conf, or set CONTAINERS_CONF to a file without it."
        )
    return found


def _is_limited(limit: str) -> bool:
    """Return whether a cgroup limit is set: without one, version 2 says `max` and version 1 a huge number."""
    return limit.strip().isdigit() and int(limit) < _UNLIMITED


_UNWRITABLE_FOLDER = (
    "/proc"  # podman's monitor writes a file `oom` to its working folder when memory ran out; here it cannot
)
_NOT_FOUND_EXIT_CODE = 127  # `podman run` returns it when the image does not have the program


_PULL_VARIABLES = (
    "REGISTRY_AUTH_FILE",
    *(name for pair in ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY") for name in (pair, pair.lower())),
)


class _ImageMissingError(SandboxUnavailable):
    """The image is not on this machine; it may be pulled."""


class PodmanBackend:
    """Runs the runner in a podman container.

    `environment` is the operator's; podman gets only what it needs of it. `arguments` says how a container is hardened.
    """

    name = "podman"

    def __init__(
        self,
        image: str,
        *,
        environment: Mapping[str, str],
        memory_bytes: int = SANDBOX_MEMORY_BYTES,
        space_bytes: int = SANDBOX_SPACE_BYTES,
        cpus: float = SANDBOX_CPUS,
        arguments: RunArguments = run_arguments,
    ) -> None:
        self.container = f"hummingbird-{uuid4().hex[:16]}"  # known before it exists, so that it can always be removed
        self._podman = PodmanEngine(environment)
        self._pull_environment = {**self._podman.environment, **filter_environment(environment, _PULL_VARIABLES)}
        self._pulling: asyncio.Task[ProgramResult] | None = None
        self._spec = ContainerSpec(
            image,
            memory_bytes=memory_bytes,
            space_bytes=space_bytes,
            cpus=cpus if self._podman.can_limit_cpus() else None,
            max_processes=_process_limit(),
        )
        self._arguments = arguments
        self._starting: asyncio.Task[None] | None = None
        self._reaping: asyncio.Task[None] | None = None
        self._is_removed = False
        self._links: WeakSet[SubprocessLink] = WeakSet()

    async def start(self) -> None:
        self._podman.build_argv()
        self._is_removed = False
        self._starting = asyncio.create_task(self._run_container())
        self._reaping = asyncio.create_task(self._remove_leftovers())  # in parallel, so that it costs no time
        try:
            await asyncio.shield(self._starting)
            if self._is_removed:
                raise SandboxBroken("The podman sandbox was removed while it started. Start a new one.")
        except BaseException:
            with suppress(SandboxBroken):  # report the first error only
                await self.remove()
            raise

    async def connect(self) -> SubprocessLink:
        if self._starting is None or self._is_removed:
            raise SandboxBroken(f"The podman sandbox is not running. {RESTART_HINT}")
        try:
            carrier = self._podman.build_argv("exec", "--interactive", self.container)
        except SandboxUnavailable as error:
            raise SandboxBroken(str(error)) from error
        link = await open_subprocess_link(carrier, self._podman.environment)
        self._links.add(link)
        return link

    async def remove(self) -> None:
        self._is_removed = True
        if self._pulling is not None:
            self._pulling.cancel()
        if self._starting is not None:
            await run_to_completion(self._remove_container(self._starting))

    async def linger(self, session_id: str) -> None:
        await self.remove()

    async def _run_container(self) -> None:
        """Run the container. An image of a registry that is not on this machine is pulled first."""
        try:
            await self._try_run_container()
        except _ImageMissingError:
            await self._pull_image()
            await self._try_run_container()

    async def _pull_image(self) -> None:
        """Pull the image. Raises SandboxUnavailable."""
        image = self._spec.image
        how = f"Try `podman pull {image}`, or set another image."
        if image.startswith("localhost/"):
            raise SandboxUnavailable(
                f"There is no image {image} on this machine. Run `hummingbird sandbox build`, or set another image."
            )
        argv = self._podman.build_argv("pull", "--quiet", image)
        self._pulling = asyncio.create_task(run_program(argv, self._pull_environment, PULL_S))
        what = f"The image {image} is not on this machine, and pulling it failed:"
        try:
            await asyncio.wait({self._pulling})
            pulled = self._pulling.result()
        except SandboxBroken as error:
            raise SandboxUnavailable(f"{what} {error} {how}") from error
        except asyncio.CancelledError:
            self._pulling.cancel()
            if self._is_removed:
                raise SandboxBroken("The podman sandbox was removed while it started. Start a new one.") from None
            raise
        if pulled.code:
            raise SandboxUnavailable(f"{what} {pulled.error_summary} {how}")

    async def _try_run_container(self) -> None:
        """Run the container, attached until process 1 has reported.

        Podman would not return earlier when told to detach, and a second call to look inside would take as long as the
        start. Ending the attached client leaves the container running.
        """
        wanted = replace(self._spec, owner=str(current_owner()))
        argv = self._podman.build_argv(*self._arguments(wanted, self.container))
        process = await start_program(argv, self._podman.environment, folder=_UNWRITABLE_FOLDER)
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(CONTAINER_START_S):
                line = await process.stdout.readline()
                words = b"" if line else await process.stderr.read()
                code = 0 if line else await process.wait()
        except (TimeoutError, ValueError) as error:
            raise SandboxUnavailable(
                f"Podman did not start a container of {wanted.image} within {CONTAINER_START_S:g} s. "
                f"Try `podman run --rm {wanted.image} true`."
            ) from error
        finally:
            await stop_process(process)
        if not line:
            raise await self._start_error(code, words.decode("utf-8", "replace"))
        parse_greeting(line, wanted.image)

    async def _start_error(self, code: int, words: str) -> SandboxUnavailable:
        image = self._spec.image
        if code == _NOT_FOUND_EXIT_CODE and "python3" in words:  # else a program that podman itself needs is missing
            return SandboxUnavailable(f"The image {image} has no python3. {IMAGE_REQUIREMENTS}")
        if (await self._podman.run("image", "exists", image)).code == 1:
            return _ImageMissingError(f"There is no image {image} on this machine.")
        said = shorten_line(words, ERROR_TEXT_CHARS) or f"exit code {code}"
        return SandboxUnavailable(f"Podman could not start a container: {said} Try `podman run --rm {image} true`.")

    async def _remove_leftovers(self) -> None:
        with suppress(SandboxBroken, SandboxUnavailable):  # another sandbox's leftovers must not stop this one
            await remove_leftover_containers(self._podman)

    async def _remove_container(self, starting: asyncio.Task[None]) -> None:
        """Remove the container, after its start has finished and all connections are closed.

        Podman leaves storage that it no longer knows when it is killed while it makes a container. `podman rm` waits
        for open connections, even for those that nobody listens to any more.
        """
        await _wait_or_cancel(starting)
        for link in list(self._links):
            link.kill()
        words = ""
        for _ in range(CONTAINER_REMOVALS):
            words = await self._try_remove()
            if not words:
                break
        if self._reaping is not None:
            await _wait_or_cancel(self._reaping, LEFTOVERS_S)
        if words:
            raise SandboxBroken(f"Podman could not remove a container: {words} Try `podman rm -f {self.container}`.")
        self._starting = None

    async def _try_remove(self) -> str:
        """Try to remove the container; return podman's complaint, or an empty string on success."""
        try:
            said = await self._podman.run("rm", "--force", "--time=0", "--ignore", self.container)
        except SandboxUnavailable as error:
            return str(error)
        return (said.error_summary or f"exit code {said.code}.") if said.code else ""


async def _wait_or_cancel(task: asyncio.Task[None], patience_s: float | None = None) -> None:
    """Wait until the task is done, whatever its outcome; cancel it after `patience_s` seconds."""
    if not task.done():
        await asyncio.wait({task}, timeout=patience_s)
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


def _process_limit() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return MAX_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, MAX_PROCESSES)

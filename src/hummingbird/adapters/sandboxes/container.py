"""What a container of ours is: how it is hardened (X4), and what its process 1 must find inside before it is used.

Pure: starts nothing. How a container is hardened stands in one function, `run_arguments`. Its process 1 begins by
saying what it finds; a container that lacks what we need, has no limits or got a directory of the host is refused
before any command runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from hummingbird.adapters.sandboxes.inside.command import ENVIRONMENT
from hummingbird.adapters.sandboxes.leftovers import MARK, OWNER
from hummingbird.adapters.sandboxes.source import keeper
from hummingbird.domain.errors import SandboxUnavailable
from hummingbird.domain.limits import (
    SANDBOX_CPUS,
    SANDBOX_FILE_BYTES,
    SANDBOX_MEMORY_BYTES,
    SANDBOX_OPEN_FILES,
    SANDBOX_PROCESSES,
    SANDBOX_SHARED_BYTES,
    SANDBOX_SPACE_BYTES,
    SANDBOX_UID,
)

OLDEST_PYTHON = (3, 8)
SUITABLE = (
    "Sandboxes need python3 (3.8 or newer, with ctypes), sh and tar: run `hummingbird sandbox build`, or set another "
    "image."
)
_NO_BOUND = 2**60
MOST_PROCESSES = 32768  # podman lowers its own limit to what the kernel numbers, and cannot go above it again

# Process 1 says this on one line, then becomes the keeper. Written for any Python 3, so that an old one can say so.
_GREETING = """\
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
_PODMAN_MOUNTS = {  # its own small files; the last two where the machine is in FIPS mode
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
class Container:
    """What a container is made of. `cpus` None: the machine cannot limit them."""

    image: str
    owner: str = ""
    memory_bytes: int = SANDBOX_MEMORY_BYTES
    space_bytes: int = SANDBOX_SPACE_BYTES
    cpus: float | None = SANDBOX_CPUS
    processes: int = SANDBOX_PROCESSES
    most_processes: int = MOST_PROCESSES


Arguments: TypeAlias = Callable[[Container, str], list[str]]


def run_arguments(container: Container, name: str) -> list[str]:
    """`podman …` that starts it, attached.

    /tmp is memory and counts as such: with room for 2 GiB of files in 1 GiB of memory, a file of 1.5 GB gets every
    process of the container killed, process 1 included, instead of "no space left". So the container may have both
    together; each process of a command is held to the memory alone by its own limit (`command.LIMITS`).
    """
    memory = container.memory_bytes + container.space_bytes + SANDBOX_SHARED_BYTES
    return [
        "run",
        f"--name={name}",
        f"--label={MARK}",
        f"--label={OWNER}={container.owner}",
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
        # Any --ulimit makes podman ask for 1048576 files and processes unless these two are given as well, more than
        # an unprivileged podman gets. Processes of one user are counted over all containers: --pids-limit is the bound.
        f"--ulimit=nofile={SANDBOX_OPEN_FILES}:{SANDBOX_OPEN_FILES}",
        f"--ulimit=nproc={container.most_processes}:{container.most_processes}",
        f"--ulimit=fsize={SANDBOX_FILE_BYTES}:{SANDBOX_FILE_BYTES}",
        "--ulimit=core=0:0",
        "--env-host=false",
        "--http-proxy=false",
        "--unsetenv-all",
        f"--env=PATH={ENVIRONMENT['PATH']}",
        "--entrypoint=",
        "--workdir=/tmp",
        container.image,
        *_process_one(),
    ]


def _process_one() -> list[str]:
    *python, text = keeper()
    return [*python, f"{_GREETING}\n{text}"]


class Greeting(msgspec.Struct, frozen=True):
    """What process 1 found inside."""

    python: tuple[int, int]
    missing: tuple[str, ...]
    memory: str
    processes: str
    mounts: tuple[str, ...]

    @property
    def strange_mounts(self) -> list[str]:
        return [at for at in self.mounts if at not in _PODMAN_MOUNTS and not at.startswith(_KERNEL_MOUNTS)]


def greeting_of(line: bytes, image: str) -> Greeting:
    """What process 1 said. Raises SandboxUnavailable when the container may not be used."""
    try:
        found = msgspec.json.decode(line, type=Greeting)
    except msgspec.MsgspecError as error:
        raise SandboxUnavailable(f"The image {image} starts something else than its python3. {SUITABLE}") from error
    if found.python < OLDEST_PYTHON:
        raise SandboxUnavailable(f"The python3 of the image {image} is {found.python[0]}.{found.python[1]}. {SUITABLE}")
    if found.missing:
        raise SandboxUnavailable(f"The image {image} has no {' and no '.join(found.missing)}. {SUITABLE}")
    if not (_is_bound(found.memory) and _is_bound(found.processes)):
        raise SandboxUnavailable(
            "Podman does not limit memory and processes here. An ordinary user's podman needs a machine with control "
            "groups of version 2 that systemd hands on to users; or use the bubblewrap sandbox."
        )
    if found.strange_mounts:
        raise SandboxUnavailable(
            f"Podman mounts {', '.join(found.strange_mounts)} into every container. Take that out of its "
            "containers.conf or mounts.conf, or set CONTAINERS_CONF to a file without it."
        )
    return found


def _is_bound(limit: str) -> bool:
    """Version 2 says `max` where there is none, version 1 a number that no machine has."""
    return limit.strip().isdigit() and int(limit) < _NO_BOUND

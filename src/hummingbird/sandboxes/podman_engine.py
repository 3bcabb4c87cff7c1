"""Calls podman on this machine, and removes containers whose owner was killed before it could remove them.

A container's label says which process owns it: the boot of the machine, the process namespace, the process id and its
start time. So a reused process id is not mistaken for the owner, and a container whose owner cannot be seen from here
is left alone, as is everything without our label.
"""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hummingbird.core.errors import SandboxBroken, SandboxUnavailable
from hummingbird.core.limits import PODMAN_CALL_S
from hummingbird.sandboxes.local_process import ProgramResult, run_program

CGROUPS = Path("/sys/fs/cgroup")
_PODMAN_VARIABLES = (
    "HOME",
    "LANG",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINERS_REGISTRIES_CONF",
)
_SYSTEM_PROGRAMS = "/usr/local/sbin:/usr/sbin:/sbin"  # often missing in a user's PATH, and podman needs some of them


def filter_environment(environment: Mapping[str, str], names: Iterable[str] = _PODMAN_VARIABLES) -> dict[str, str]:
    """Return PATH and those of the named variables that are set. Our tokens are not among them."""
    path = environment.get("PATH") or os.defpath
    kept = {name: environment[name] for name in names if environment.get(name)}
    return {"PATH": f"{path}:{_SYSTEM_PROGRAMS}", **kept}


class PodmanEngine:
    """The podman of this machine.

    Podman keeps the operator's own configuration, with two exceptions, given as flags:

    - `--default-mounts-file=/dev/null`: distributions with subscriptions use such a file to put the host's entitlement
      keys into every container, and a sandbox must hold no credential.
    - `--runtime=runc` where the control groups are a hybrid hierarchy (version 1 with version 2 beside it) and crun is
      installed as well: podman prefers crun, which refuses to work there ("cgroups in hybrid mode not supported").

    `cgroups` and `user` default to this machine's cgroup folder and to our user id.
    """

    def __init__(self, environment: Mapping[str, str], cgroups: Path = CGROUPS, user: int | None = None) -> None:
        self.environment = filter_environment(environment)
        self._cgroups = cgroups
        self._user = os.geteuid() if user is None else user

    def build_argv(self, *arguments: str) -> list[str]:
        """Return the command line for `podman ARGUMENTS`. Raises SandboxUnavailable when podman is not installed."""
        program = self._find_program("podman")
        if not program:
            raise SandboxUnavailable(
                "Podman is not installed. Install it (`apt install podman`, `dnf install podman`), "
                "or use the bubblewrap sandbox."
            )
        return [program, "--default-mounts-file=/dev/null", *self._runtime_options(), *arguments]

    async def run(self, *arguments: str) -> ProgramResult:
        """Run `podman ARGUMENTS`. Raises SandboxUnavailable without podman, SandboxBroken when it does not answer."""
        return await run_program(self.build_argv(*arguments), self.environment, PODMAN_CALL_S)

    def can_limit_cpus(self) -> bool:
        """Return whether podman can limit CPUs here.

        An ordinary user can only where systemd delegates the cpu controller; elsewhere podman fails with `--cpus`.
        """
        if self._user == 0:
            return True
        handed_on = self._cgroups / f"user.slice/user-{self._user}.slice/user@{self._user}.service/cgroup.controllers"
        return handed_on.is_file() and "cpu" in handed_on.read_text("ascii").split()

    def _runtime_options(self) -> Sequence[str]:
        hybrid = (self._cgroups / "unified").is_dir() and not (self._cgroups / "cgroup.controllers").exists()
        return ["--runtime=runc"] if hybrid and self._find_program("crun") and self._find_program("runc") else []

    def _find_program(self, program: str) -> str | None:
        return shutil.which(program, path=self.environment["PATH"])


SANDBOX_LABEL = "hummingbird.sandbox=1"
OWNER_LABEL = "hummingbird.owner"
_PROC = Path("/proc")
_DEAD_STATES = (b"Z", b"X")


@dataclass(frozen=True, slots=True)
class ContainerOwner:
    """The process that owns a container, as its label says."""

    boot: str
    namespace: str
    pid: int
    start_ticks: int  # in clock ticks since the boot

    def __str__(self) -> str:
        return f"{self.boot}/{self.namespace}/{self.pid}/{self.start_ticks}"


class _PodmanPsEntry(msgspec.Struct, rename="pascal"):
    """A container in the output of `podman ps`."""

    id: str
    names: list[str]
    state: str
    labels: dict[str, str] | None = None


def current_owner() -> ContainerOwner:
    boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
    namespace = (_PROC / "self/ns/pid").readlink().name
    pid = os.getpid()
    return ContainerOwner(boot, namespace, pid, _process_start_ticks(pid) or 0)


def is_owner_dead(owner: str, *, running: bool, me: ContainerOwner) -> bool:
    """Return whether the owner is known to be dead. An owner that cannot be judged from here counts as alive."""
    try:
        boot, namespace, pid, began = owner.split("/")
        its = ContainerOwner(boot, namespace, int(pid), int(began))
    except ValueError:
        return False
    if its.boot != me.boot:
        return not running  # no container survives a boot; a running one belongs to a machine that we do not know
    return its.namespace == me.namespace and _process_start_ticks(its.pid) != its.start_ticks


async def remove_leftover_containers(podman: PodmanEngine) -> list[str]:
    """Remove containers of dead owners and return their names. Raises SandboxUnavailable, SandboxBroken."""
    listed = await podman.run("ps", "--all", "--no-trunc", f"--filter=label={SANDBOX_LABEL}", "--format=json")
    if listed.code:
        raise SandboxBroken(f"Podman could not list its containers: {listed.error_summary} Try `podman ps --all`.")
    me = current_owner()
    found = [one for one in _parse_podman_ps(listed.out) if _is_leftover(one, me)]
    if found:
        removed = await podman.run("rm", "--force", "--time=0", "--ignore", *(one.id for one in found))
        if removed.code:
            raise SandboxBroken(f"Podman could not remove leftover containers: {removed.error_summary}")
    return [name for one in found for name in one.names]


def _is_leftover(listed: _PodmanPsEntry, me: ContainerOwner) -> bool:
    labels = listed.labels or {}
    return OWNER_LABEL in labels and is_owner_dead(labels[OWNER_LABEL], running=listed.state == "running", me=me)


def _parse_podman_ps(listing: bytes) -> list[_PodmanPsEntry]:
    try:
        return msgspec.json.decode(listing, type=list[_PodmanPsEntry])
    except msgspec.MsgspecError as error:
        raise SandboxBroken(
            "Podman listed its containers in a way that cannot be read. Is it a new version?"
        ) from error


def _process_start_ticks(pid: int) -> int | None:
    """Return when the process began, or None when it is dead (a zombie counts as dead)."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in _DEAD_STATES else int(fields[19])

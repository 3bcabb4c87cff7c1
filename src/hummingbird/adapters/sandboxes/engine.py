"""The podman of this machine: where it is, what of our environment it gets, and which of its defaults will not do.

The operator's own configuration of podman is left alone, with two exceptions, both flags and no file:

- `--default-mounts-file=/dev/null`: distributions with subscriptions put the host's entitlement keys into every
  container that way, and a sandbox holds no credential.
- `--runtime=runc` where the control groups are a hybrid hierarchy (version 1 with a version 2 beside it) and crun is
  installed as well: podman prefers it, and it refuses to work there ("cgroups in hybrid mode not supported").
"""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hummingbird.adapters.sandboxes.program import Said, said
from hummingbird.domain.errors import SandboxUnavailable
from hummingbird.domain.limits import PODMAN_CALL_S

CGROUPS = Path("/sys/fs/cgroup")
_NEEDED = (
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
_SYSTEM_PROGRAMS = "/usr/local/sbin:/usr/sbin:/sbin"  # often not in a user's PATH; newuidmap's neighbours live there


def reduced(environment: Mapping[str, str], names: Iterable[str] = _NEEDED) -> dict[str, str]:
    """PATH and those of the named variables that are set. Our tokens are not among them (I3)."""
    path = environment.get("PATH") or os.defpath
    kept = {name: environment[name] for name in names if environment.get(name)}
    return {"PATH": f"{path}:{_SYSTEM_PROGRAMS}", **kept}


class Podman:
    """`cgroups` and `user` are this machine's and ours."""

    def __init__(self, environment: Mapping[str, str], cgroups: Path = CGROUPS, user: int | None = None) -> None:
        self.environment = reduced(environment)
        self._cgroups = cgroups
        self._user = os.geteuid() if user is None else user

    def command(self, *arguments: str) -> list[str]:
        """What to run for `podman ARGUMENTS`. Raises SandboxUnavailable."""
        program = self._found("podman")
        if not program:
            raise SandboxUnavailable(
                "Podman is not installed. Install it (`apt install podman`, `dnf install podman`), "
                "or use the bubblewrap sandbox."
            )
        return [program, "--default-mounts-file=/dev/null", *self._runtime(), *arguments]

    async def call(self, *arguments: str) -> Said:
        """Raises SandboxUnavailable without podman, SandboxBroken when it does not answer."""
        return await said(self.command(*arguments), self.environment, PODMAN_CALL_S)

    def may_limit_cpus(self) -> bool:
        """An ordinary user may only where systemd hands the controller on; podman fails where it does not."""
        if self._user == 0:
            return True
        handed_on = self._cgroups / f"user.slice/user-{self._user}.slice/user@{self._user}.service/cgroup.controllers"
        return handed_on.is_file() and "cpu" in handed_on.read_text("ascii").split()

    def _runtime(self) -> Sequence[str]:
        hybrid = (self._cgroups / "unified").is_dir() and not (self._cgroups / "cgroup.controllers").exists()
        return ["--runtime=runc"] if hybrid and self._found("crun") and self._found("runc") else []

    def _found(self, program: str) -> str | None:
        return shutil.which(program, path=self.environment["PATH"])

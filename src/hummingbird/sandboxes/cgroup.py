"""Bounds the memory of one sandbox with a control group, where the owner of our own group has delegated it to us.

That files can be written is no permission: root can write everywhere, and whoever made our group (systemd, a container
engine, a job runner) counts on what is in it. So we use only a group that is marked as delegated, as systemd does for
`Delegate=`: the extended attribute `user.delegate` or `trusted.delegate` of its folder is 1.
"""

import os
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hummingbird.core.errors import SandboxBroken

_DELEGATION_MARKS = ("user.delegate", "trusted.delegate")
_OWN_LEAF = "hummingbird"
_REMOVAL_S = 5.0  # processes leave their group a moment after they have ended
_REMOVAL_PAUSE_S = 0.01
_preparing = threading.Lock()


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A control group that bounds the memory of the processes in it. All methods block, for a moment only."""

    folder: Path
    is_v2: bool

    def limit_memory(self, limit_bytes: int) -> None:
        """Bound memory, and allow no swap beyond it. Raises OSError."""
        if self.is_v2:
            _write(self.folder / "memory.max", limit_bytes)
            with suppress(OSError):  # there is no such file where the kernel does not account swap
                _write(self.folder / "memory.swap.max", 0)
        else:
            _write(self.folder / "memory.limit_in_bytes", limit_bytes)
            with suppress(OSError):  # as above
                _write(self.folder / "memory.memsw.limit_in_bytes", limit_bytes)

    def add_process_tree(self, pid: int, proc: Path = Path("/proc")) -> None:
        """Move a process and its descendants into the group. Raises OSError.

        A parent moves before its children are listed, so a child is either in that list or born in the group.
        """
        _write(self.folder / "cgroup.procs", pid)
        for thread in (proc / str(pid) / "task").iterdir():
            for child in (thread / "children").read_text().split():
                self.add_process_tree(int(child), proc)

    def count_oom_kills(self) -> int:
        """Return how many processes the kernel killed because the group's memory ran out."""
        with suppress(OSError, ValueError):
            text = (self.folder / ("memory.events" if self.is_v2 else "memory.oom_control")).read_text()
            for line in text.splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
        return 0

    def remove(self) -> None:
        """Remove the group, whose processes must have been told to end. Raises SandboxBroken."""
        if self.is_v2:
            with suppress(OSError):  # Linux before 5.14 does not have it
                _write(self.folder / "cgroup.kill", 1)
        until = time.monotonic() + _REMOVAL_S
        while True:
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError as error:
                if time.monotonic() > until:
                    raise SandboxBroken(
                        f"The control group {self.folder} could not be removed: {error.strerror}. Remove it with rmdir."
                    ) from error
                time.sleep(_REMOVAL_PAUSE_S)
            else:
                return


def enclose_process(
    pid: int, limit_bytes: int, mount: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")
) -> MemoryGroup | None:
    """Put a process and its descendants into a new group with this memory limit; return None where we may make none."""
    try:
        parent, is_v2 = _find_parent(mount, proc)
        group = MemoryGroup(parent / f"sandbox-{os.getpid()}-{secrets.token_hex(4)}", is_v2)
        group.folder.mkdir()
    except (OSError, LookupError):
        return None
    try:
        group.limit_memory(limit_bytes)
        group.add_process_tree(pid, proc)
    except OSError:
        with suppress(OSError):  # a process that has moved already keeps the group, and is bounded by it
            group.folder.rmdir()
            return None
    return group


def _find_parent(mount: Path, proc: Path) -> tuple[Path, bool]:
    """Return the group below which we may make groups, and whether it is of version 2. Raises LookupError, OSError."""
    for line in (proc / "self" / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            own = mount / "memory" / path.lstrip("/")
            # Without a hierarchy, a group below ours would escape the limit that ours has.
            if _is_delegated(own) and (own / "memory.use_hierarchy").read_text().strip() == "1":
                return own, False
        elif not controllers:
            own = mount / path.lstrip("/")
            with _preparing:
                if _is_delegated(own):
                    _move_into_leaf(own)
                    return own, True
                if own != mount and _is_delegated(own.parent):  # we moved before, or systemd did (DelegateSubgroup=)
                    _write(own.parent / "cgroup.subtree_control", "+memory")
                    return own.parent, True
    raise LookupError("no control group for memory is delegated to us")


def _is_delegated(group: Path) -> bool:
    for mark in _DELEGATION_MARKS:
        with suppress(OSError):
            if os.getxattr(group, mark) == b"1":
                return True
    return False


def _move_into_leaf(own: Path) -> None:
    """Move our process one group down, since a group with processes cannot bound groups below it. Raises OSError.

    Other processes in the group are not ours to move. With such, the kernel refuses the controller and we move back.
    """
    if "memory" not in (own / "cgroup.controllers").read_text().split():
        raise FileNotFoundError(own)
    leaf = own / _OWN_LEAF
    leaf.mkdir(exist_ok=True)
    _write(leaf / "cgroup.procs", os.getpid())
    try:
        _write(own / "cgroup.subtree_control", "+memory")
    except OSError:
        _write(own / "cgroup.procs", os.getpid())
        with suppress(OSError):
            leaf.rmdir()
        raise


def _write(file: Path, value: int | str) -> None:
    file.write_text(f"{value}\n")

"""Bubblewrap's options (X3), as a pure list: what a sandbox shows, hides and forbids."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hummingbird.domain.limits import (
    SANDBOX_INODES,
    SANDBOX_LOCKS,
    SANDBOX_MEMORY_BYTES,
    SANDBOX_PROCESSES,
    SANDBOX_SPACE_BYTES,
    SANDBOX_UID,
)

OWN_PYTHON = "/opt/python"
_SHARED_MEMORY_BYTES = 64 * 1024 * 1024
_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "magic", "magic.mime")
WRITTEN = {
    "passwd": f"sandbox:x:{SANDBOX_UID}:{SANDBOX_UID}::/tmp/data:/bin/sh\n",
    "group": f"sandbox:x:{SANDBOX_UID}:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost\n",
}


@dataclass(frozen=True, slots=True)
class Room:
    """What one sandbox may use, altogether."""

    memory_bytes: int = SANDBOX_MEMORY_BYTES
    space_bytes: int = SANDBOX_SPACE_BYTES
    processes: int = SANDBOX_PROCESSES
    inodes: int = SANDBOX_INODES
    locks: int = SANDBOX_LOCKS


def options(room: Room, seccomp: int, written: Mapping[str, int], own_python: int | None = None) -> list[str]:
    """`seccomp` and the files of /etc in `written` are descriptors to read from; `own_python` one of a directory, to
    bring an interpreter along where the system has none that would do."""
    found = ["--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--die-with-parent"]
    found += ["--as-pid-1", "--cap-drop", "ALL", "--clearenv", "--hostname", "sandbox"]
    found += ["--uid", str(SANDBOX_UID), "--gid", str(SANDBOX_UID), "--seccomp", str(seccomp)]
    found += ["--ro-bind", "/usr", "/usr", *_top_level(), "--ro-bind-try", "/nix/store", "/nix/store"]
    found += ["--dir", "/etc"]
    for name in _ETC:
        found += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name, fd in written.items():
        found += ["--ro-bind-data", str(fd), f"/etc/{name}"]
    if own_python is not None:
        found += ["--ro-bind-fd", str(own_python), OWN_PYTHON]
    # Memory behind a shared mapping of /dev/zero is counted nowhere once it is unmapped; /dev/full reads the same.
    found += ["--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/full", "/dev/zero"]
    found += ["--size", str(_SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
    found += ["--size", str(room.space_bytes), "--perms", "1777", "--tmpfs", "/tmp", "--chdir", "/tmp"]  # noqa: S108 - inside
    return [*found, "--remount-ro", "/", "--remount-ro", "/dev", "--remount-ro", "/proc"]


def _top_level() -> list[str]:
    """/bin and its like, as this system has them: links into /usr, or directories of their own."""
    found = []
    for name in _TOP:
        path = Path("/", name)
        if path.is_symlink():
            found += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            found += ["--ro-bind", str(path), str(path)]
    return found

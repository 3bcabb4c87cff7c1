"""Finds and ends every process that one of ours started, however it forked and whatever session it moved to."""

from __future__ import annotations

import contextlib
import os
import signal
import time

SUBREAPER, DUMPABLE, NO_NEW_PRIVS, SECCOMP = 36, 4, 38, 22  # options of prctl(2)


def prctl(option: int, value: int) -> None:
    """Set an option of this process, if the image has ctypes.

    Without it, orphans of a killed command become children of process 1, which ends them too.
    """
    try:
        import ctypes  # noqa: PLC0415 - an image may lack it

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def apply_seccomp_filter(filters: dict[str, str]) -> None:
    """Apply the seccomp filter for this architecture to this process and all its descendants.

    Raises OSError, or ImportError where the image has no ctypes; then no command may run.
    """
    import ctypes  # noqa: PLC0415 - as above

    class SeccompProgram(ctypes.Structure):
        _fields_ = (("steps", ctypes.c_ushort), ("first", ctypes.c_void_p))

    if os.uname().machine not in filters:
        raise OSError(f"there is no list of system calls for {os.uname().machine}")
    program = bytes.fromhex(filters[os.uname().machine])
    room = ctypes.create_string_buffer(program, len(program))
    wanted = ctypes.byref(SeccompProgram(len(program) // 8, ctypes.addressof(room)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(SECCOMP, 2, wanted, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter of system calls was not taken")


def parents_by_pid() -> dict[int, int]:
    """Return the parent of every process."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            status = f"/proc/{name}/stat"
            with contextlib.suppress(OSError, ValueError, IndexError), open(status, "rb") as file:
                found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return found


def descendants(root: int, spared: frozenset[int] = frozenset()) -> list[int]:
    known, found = parents_by_pid(), {root}
    while True:
        more = {pid for pid, parent in known.items() if parent in found} - found - spared
        if not more:
            return sorted(found - {root})
        found |= more


def reap_children() -> bool:
    """Reap dead children; return False when there is no child at all."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_descendants(spared: frozenset[int] = frozenset(), *, reap: bool = True) -> None:
    """Kill all descendants of this process.

    Stop them all first, so that none can fork while others die. This process is a subreaper, so orphans become its
    children and none gets away. With `reap` False, the caller reaps them and learns how they died. When this runs as
    process 1, `spared` holds its workers; they and their descendants stay.
    """
    me = os.getpid()
    for _ in range(1000):
        stopped: set[int] = set()
        while True:
            found = [pid for pid in descendants(me, spared) if pid not in stopped]
            if not found:
                break
            signal_all(found, signal.SIGSTOP)
            stopped.update(found)
        if not stopped:
            return
        signal_all(sorted(stopped), signal.SIGKILL)
        if not reap:
            return
        reap_children()
        time.sleep(0.001)

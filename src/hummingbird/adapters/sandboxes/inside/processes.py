"""Finding and ending every process that one of ours started, however it forked and whatever session it moved to."""

from __future__ import annotations

import contextlib
import os
import signal
import time

SUBREAPER, DUMPABLE, NO_NEW_PRIVS, SECCOMP = 36, 4, 38, 22  # of prctl(2)


def prctl(option: int, value: int) -> None:
    """Without ctypes in the image, orphans of a killed command go to process 1 instead, which ends them too."""
    try:
        import ctypes  # noqa: PLC0415 - an image may lack it

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def confine(filters: dict[str, str]) -> None:
    """From here on the kernel refuses this process, and all that come from it, what the filter for this kind of machine
    lists. Raises OSError; ImportError where the image has no ctypes, without which no command runs."""
    import ctypes  # noqa: PLC0415 - as above

    class Filter(ctypes.Structure):
        _fields_ = (("steps", ctypes.c_ushort), ("first", ctypes.c_void_p))

    if os.uname().machine not in filters:
        raise OSError(f"there is no list of system calls for {os.uname().machine}")
    program = bytes.fromhex(filters[os.uname().machine])
    room = ctypes.create_string_buffer(program, len(program))
    wanted = ctypes.byref(Filter(len(program) // 8, ctypes.addressof(room)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(SECCOMP, 2, wanted, 0, 0):
        raise OSError(ctypes.get_errno(), "the filter of system calls was not taken")


def parents() -> dict[int, int]:
    """Every process and its parent."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would cost as much as the rest of the program
        if name.isdigit():
            status = f"/proc/{name}/stat"
            with contextlib.suppress(OSError, ValueError, IndexError), open(status, "rb") as file:  # noqa: PTH123 - likewise
                found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return found


def descendants(root: int, spared: frozenset[int] = frozenset()) -> list[int]:
    known, found = parents(), {root}
    while True:
        more = {pid for pid, parent in known.items() if parent in found} - found - spared
        if not more:
            return sorted(found - {root})
        found |= more


def reaped() -> bool:
    """Collects what has died; False when there is no child at all."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def tell(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_descendants(spared: frozenset[int] = frozenset(), *, reap: bool = True) -> None:
    """Stops them all first, so that none can fork while others die; orphans come to us, so none gets away.

    `reap` False leaves the dead to whoever wants to know how they died. Process 1, as which this may run, spares its
    own workers and what belongs to them.
    """
    me = os.getpid()
    for _ in range(1000):
        stopped: set[int] = set()
        while True:
            found = [pid for pid in descendants(me, spared) if pid not in stopped]
            if not found:
                break
            tell(found, signal.SIGSTOP)
            stopped.update(found)
        if not stopped:
            return
        tell(sorted(stopped), signal.SIGKILL)
        if not reap:
            return
        reaped()
        time.sleep(0.001)

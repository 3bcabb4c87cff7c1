"""Run a command and say how much CPU time everything that it started took: `python -m tests.cpu_time COMMAND…`"""

import ctypes
import os
import resource
import subprocess
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36


def main(command: list[str]) -> int:
    """Run the command, print what it cost and return its exit code."""
    # Daemons come to us when their parents end, and not to init: podman's containers are counted as well.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    started = subprocess.Popen(command)
    try:
        returncode = _wait_for(started.pid)
    except KeyboardInterrupt:  # the terminal has sent it to the command as well
        returncode = _wait_for(started.pid)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(
        f"{used.ru_utime + used.ru_stime:.1f} CPU-seconds (user {used.ru_utime:.0f}, system {used.ru_stime:.0f}), "
        f"{time.monotonic() - began:.0f} s of wall clock\n"
    )
    return returncode


def _wait_for(wanted: int) -> int:
    while True:
        pid, status = os.wait()  # the orphans as well, as init would do
        if pid == wanted:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

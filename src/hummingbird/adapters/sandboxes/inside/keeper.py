"""Process 1 of a container: it waits, collects the dead, and ends what lost its parent.

Conversations come from outside and have no parent in here, so a child of this process is one whose worker was killed.
"""

import os
import signal
import time


def parent(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib takes longer to load than this to run
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError):
        return 0


try:
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: commands run as the same user and may not look into it
except (ImportError, OSError, AttributeError):
    pass
signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 gets no signal from inside that it has no handler for
os.umask(0o022)
os.makedirs("/tmp/data", exist_ok=True)  # noqa: PTH103, S108 - inside the sandbox, where it is private
while True:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - as above
            if parent(pid) == 1 == os.getpid():  # elsewhere, in a list of processes shared with others, it is not ours
                os.kill(int(pid), signal.SIGKILL)
    except (ChildProcessError, ProcessLookupError):
        pass
    time.sleep(0.2)

"""Process 1 of a container: it waits, reaps dead processes, and kills processes that lost their parent.

Connections come from outside and have no parent in the container, so a child of this process is one whose runner was
killed. It ends at once when SIGTERM comes from outside the container, as the kubelet sends it for a deleted pod; a
SIGTERM from inside does nothing.
"""

import os
import signal

LOG = "/dev/termination-log"


def parent_pid(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError):
        return 0


try:
    import ctypes

    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: commands run as the same user and must not inspect it
except (ImportError, OSError, AttributeError):
    pass
signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 ignores signals from inside unless it has a handler
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # a blocked signal is kept, and says who sent it
os.umask(0o022)
os.makedirs("/tmp/data", exist_ok=True)  # noqa: S108 - inside the sandbox, where it is private
while True:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if (
                parent_pid(pid) == 1 == os.getpid()
            ):  # if we are not process 1, the list of processes is shared, and the process is not ours
                os.kill(int(pid), signal.SIGKILL)
    except (ChildProcessError, ProcessLookupError):
        pass
    try:
        # Commands may write to this file, which is on the node's disk and counts for nobody; the kubelet reads 4 KiB.
        if os.stat(LOG).st_size > 4096:
            os.truncate(LOG, 0)
    except OSError:
        pass
    ended = signal.sigtimedwait({signal.SIGTERM}, 0.2)
    # A sender outside of our process namespace has no number here. Code 0 is that of kill(); others can be made up.
    if ended is not None and ended.si_code == 0 and ended.si_pid == 0:
        os._exit(0)

"""The kernel's larger doors: what has been used to break out of it before, or would change it for everybody.

Nothing here changes the host where it succeeds: calls with senseless arguments, which the kernel looks at only once it
has let the caller in, and files that are opened and not written.
"""

from tests.security.attempt import Attempt, Lack

_FILTERED = frozenset({Lack.FILTER})
_FREE_ROOT = frozenset({Lack.RIGHTS, Lack.FILTER})

ATTEMPTS = (
    Attempt(
        "files of the kernel",
        "to open for writing what would run a program on the host, restart it, or move a process to another group",
        """
import glob
doors = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
         "/proc/sys/kernel/ns_last_pid", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity",
         "/proc/sys/net/core/somaxconn", "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/ksm/run"]
for name in ("cgroup.procs", "release_agent", "tasks", "memory.limit_in_bytes", "memory.max", "pids.max"):
    doors += glob.glob(f"/sys/fs/cgroup/{name}") + glob.glob(f"/sys/fs/cgroup/*/{name}")
for path in doors:
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        continue
    got(path)
""",
        frozenset({Lack.RIGHTS, Lack.KERNEL_FILES}),
    ),
    Attempt(
        "the kernel's keys",
        "to put a key into a keyring, which no namespace separates everywhere",
        """
if reached("keyctl", 0, -3, 0, 0, 0):
    got("keyctl")
call("add_key", ctypes.c_char_p(b"user"), ctypes.c_char_p(b"attempt"), ctypes.c_char_p(b"x"), 1, -2)
got("add_key")
""",
        _FILTERED,
        host_decides=True,
    ),
    Attempt(
        "programs in the kernel",
        "bpf: to make a map, the smallest thing that it offers",
        """
call("bpf", 0, ctypes.create_string_buffer(struct.pack("<IIII", 2, 4, 4, 1), 72), 72)
got("a map")
""",
        _FREE_ROOT,
        host_decides=True,
    ),
    Attempt(
        "counting what others do",
        "perf_event_open, with the most modest of wishes",
        """
wish = struct.pack("<IIQQQQQ", 1, 112, 0, 0, 0, 0, 0x60)
call("perf_event_open", ctypes.create_string_buffer(wish, 112), 0, -1, -1, 0)
got("a counter")
""",
        _FILTERED,
        host_decides=True,
    ),
    Attempt(
        "handling page faults",
        "userfaultfd, with which races in the kernel are won",
        """
call("userfaultfd", 1)
got("userfaultfd")
""",
        _FILTERED,
        host_decides=True,
    ),
    Attempt(
        "io_uring",
        "system calls that no filter sees",
        """
call("io_uring_setup", 4, ctypes.create_string_buffer(120))
got("a ring")
""",
        _FILTERED,
        host_decides=True,
    ),
    Attempt(
        "secret memory",
        "memory that nobody can look into, the kernel included",
        """
call("memfd_secret", 0)
got("secret memory")
""",
        _FILTERED,
        backends=frozenset({"bubblewrap"}),
        host_decides=True,
    ),
    Attempt(
        "memory at known places",
        "to switch the shuffling of addresses off for the next program",
        """
call("personality", 0x0040000)
got("ADDR_NO_RANDOMIZE")
""",
        _FILTERED,
    ),
    Attempt(
        "system calls of the 32-bit kind",
        "the kernel's keys by int 0x80, whose numbers differ from those in a filter",
        """
if os.uname().machine != "x86_64":
    raise OSError(errno.ENOSYS, "no such machine")
code = bytes.fromhex("53 b820010000 bb00000000 b9fdffffff 31d2 cd80 5b 4898 c3")  # keyctl(0, -3)
at = libc.mmap(None, 4096, 7, 0x22, -1, 0)
ctypes.memmove(at, code, len(code))
pid = os.fork()
if not pid:
    os._exit(-ctypes.CFUNCTYPE(ctypes.c_long)(at)() in (errno.EPERM, errno.EACCES, errno.ENOSYS))
if os.waitpid(pid, 0)[1]:  # a kernel without such calls ends who makes them
    raise OSError(errno.ENOSYS, "no such calls")
got("keyctl")
""",
        _FILTERED,
        host_decides=True,
    ),
    Attempt(
        "system calls of the x32 kind",
        "the kernel's keys under a number with a bit that a filter may overlook",
        """
insist(0x40000000 | 250, 0, -3, 0, 0, 0)
got("keyctl")
""",
        _FILTERED,
        host_decides=True,
    ),
    Attempt(
        "words in a terminal",
        "TIOCSTI: to type into a terminal, as if somebody had",
        """
import fcntl, termios
_, end = os.openpty()
pid = os.fork()
if not pid:
    os.setsid()
    fcntl.ioctl(end, termios.TIOCSCTTY, 0)
    try:
        fcntl.ioctl(end, termios.TIOCSTI, b"x")
    except OSError as error:
        os._exit(error.errno)
    os._exit(0)
status = os.waitpid(pid, 0)[1]
if status:
    raise OSError(status >> 8, os.strerror(status >> 8))
got("a letter was typed")
""",
        _FREE_ROOT,
        host_decides=True,
    ),
    Attempt(
        "the clock",
        "to set it: with no time and no zone, which the kernel takes from whoever may",
        """
call("settimeofday", 0, 0)
got("the clock could be set")
""",
        _FREE_ROOT,
    ),
    Attempt(
        "the kernel's log",
        "to read what it says about the whole machine",
        """
call("syslog", 10, 0, 0)
got("the size of the log")
""",
        _FREE_ROOT,
    ),
    Attempt(
        "the machine itself",
        "to restart it with a wrong code word, to load a module from nowhere, to stop swapping to no file",
        """
for name, *arguments in (("reboot", 1, 2, 3, 0), ("finit_module", -1, ctypes.c_char_p(b""), 0),
                         ("swapoff", ctypes.c_char_p(b"/nowhere"))):
    if reached(name, *arguments):
        got(name)
""",
        _FREE_ROOT,
    ),
    Attempt(
        "the machine's name",
        "to change it, inside as it may be",
        """
call("sethostname", ctypes.c_char_p(b"attempt"), 7)
got("another name")
""",
        _FREE_ROOT,
    ),
)

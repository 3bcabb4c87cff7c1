"""What an attempt is, and the program inside a sandbox that makes several of them, one after the other.

An attempt is a Python program. It calls `got(…)` as soon as it has what it should not have; an OSError, the end of
the program or being killed by a limit means that it was refused. Anything else is a broken attempt, and so is one
that is refused where nothing is in its way: that is what the weakened sandboxes are for.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class Lack(Enum):
    """What a weakened sandbox lacks."""

    NETWORK = auto()  # a network of its own
    RESOLVER = auto()  # an /etc without one
    FILTER = auto()  # the filter of system calls
    RIGHTS = auto()  # an ordinary identity: it is root, with every capability
    CAPABILITIES = auto()  # empty sets of capabilities
    NO_NEW_RIGHTS = auto()  # the promise that no program gets more rights than it was started with
    LAST_NAMESPACE = auto()  # the ban on further user namespaces
    PROCESSES = auto()  # a list of processes of its own
    FOLDER = auto()  # distance: a folder of the host can be read and written
    PASSWD = auto()  # an /etc/passwd of its own
    READ_ONLY = auto()  # a file system that cannot be written
    DEVICES = auto()  # a short list of devices
    KERNEL_FILES = auto()  # read-only /proc/sys
    SECRECY = auto()  # a supervisor that lets nobody look into it
    CLEAN_START = auto()  # an empty environment
    ROOM = auto()  # bounds on memory, space, files and processes
    COMMAND_LIMITS = auto()  # the limits of each command
    FORGETTING = auto()  # closed descriptors: what it was started with stays open, a folder of the host included
    TIDINESS = auto()  # an end of what a command leaves running


class Verdict(Enum):
    GOT = "GOT"
    REFUSED = "REFUSED"
    BROKEN = "BROKEN"


@dataclass(frozen=True, slots=True)
class Attempt:
    """`lacking`: what a sandbox must lack for it to succeed. `backends`: where it makes sense; empty means everywhere.
    `host_decides`: harmless, and some machines have no such thing; when this one itself turns the attempt away, in so
    many words, nothing is proven by a weakened sandbox that does so too."""

    name: str
    tries: str
    program: str
    lacking: frozenset[Lack]
    backends: frozenset[str] = frozenset()
    host_decides: bool = False

    def is_for(self, backend: str) -> bool:
        return not self.backends or backend in self.backends


@dataclass(frozen=True, slots=True)
class Outcome:
    verdict: Verdict
    words: str


PRELUDE = '''
import ctypes, errno, json, mmap, os, signal, socket, struct, sys, time, traceback

CALLS = {  # on x86_64 and on aarch64
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "swapoff": (168, 225),
    "reboot": (169, 142), "sethostname": (170, 161), "finit_module": (313, 273), "ptrace": (101, 117),
    "bpf": (321, 280), "process_vm_readv": (310, 270), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "io_uring_setup": (425, 425), "add_key": (248, 217),
    "keyctl": (250, 219), "unshare": (272, 97), "setns": (308, 268), "clone": (56, 220), "clone3": (435, 435),
    "fsopen": (430, 430), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "open_tree": (428, 428),
    "move_mount": (429, 429), "settimeofday": (164, 170), "syslog": (103, 116), "personality": (135, 92),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "open_tree_attr": (467, 467), "close_range": (436, 436),
}
COLUMN = ["x86_64", "aarch64"].index(os.uname().machine)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
MIB = 1 << 20


def call(name, *arguments):
    """A system call by its name or number. Raises OSError."""
    number = name if isinstance(name, int) else CALLS[name][COLUMN]
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(name))
    return result


def insist(name, *arguments):
    """Senseless arguments, to see whether the kernel looks at them. Raises OSError when it turns the caller away."""
    try:
        call(name, *arguments)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            raise


def reached(name, *arguments):
    """Whether the kernel looked at senseless arguments."""
    try:
        insist(name, *arguments)
    except OSError:
        return False
    return True


def say(verdict, words):
    sys.stdout.flush()
    os.write(1, f"{verdict} {words}\\n".encode())
    os._exit(0)


def got(words=""):
    say("GOT", words)


def parent(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def processes():
    """Every process in sight, as its number and its command line; some end while we look."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            yield int(pid), content_of(f"/proc/{pid}/cmdline")
        except OSError:
            continue


def supervisors():
    """Process 1 and the program that looks after this command."""
    found = pid = os.getpid()
    while pid > 1:
        found, pid = pid, parent(pid)
    return [1, found]


def holds(content, halves):
    """Whether the two stand side by side; together they are nowhere in this program."""
    first, second = (half.encode() for half in halves)
    at = content.find(first)
    while at >= 0:
        if content[at + len(first) : at + len(first) + len(second)] == second:
            return True
        at = content.find(first, at + 1)
    return False


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


def everywhere(*spared):
    """Every directory in sight and the names in it, without the processes'."""
    for folder, folders, names in os.walk("/"):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in ("/proc", *spared)]
        yield folder, folders, names


def tried(told, program):
    signal.alarm(told["seconds"])
    try:
        exec(compile(program, "attempt", "exec"), {**globals(), "WORLD": told["world"]})
    except (OSError, MemoryError) as error:
        say("REFUSED", f"{type(error).__name__} {error}")
    except BaseException:
        say("BROKEN", traceback.format_exc())
    say("REFUSED", "nothing came of it")
'''

_MAKING = """
told = json.load(sys.stdin)
print(json.dumps(["", 0, "GOT " + os.readlink("/proc/self/ns/pid")]), flush=True)
for name, program in told["attempts"]:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.close(writing)
        tried(told, program)
    os.close(writing)
    words = b""
    while part := os.read(reading, 65536):
        words = (words + part)[-2000:]
    os.close(reading)
    print(json.dumps([name, os.waitpid(pid, 0)[1], words.decode("utf-8", "replace")]), flush=True)
"""

MAKER = PRELUDE + _MAKING
LIMITS_KILL = {9, 24, 25, 31}  # SIGKILL, SIGXCPU, SIGXFSZ, SIGSYS


def order(attempts: Iterable[Attempt], world: Mapping[str, Any], seconds: int = 60) -> bytes:
    """What the maker wants to hear on its stdin."""
    programs = [(each.name, each.program) for each in attempts]
    return json.dumps({"world": dict(world), "attempts": programs, "seconds": seconds}).encode()


def outcomes(said: bytes) -> dict[str, Outcome]:
    """By the names of the attempts; one that is missing here took the maker with it. Under no name at all: the process
    namespace in which they were made."""
    return {name: _outcome(status, words) for name, status, words in map(json.loads, said.splitlines())}


def _outcome(status: int, words: str) -> Outcome:
    if killed := status & 0x7F:
        return Outcome(Verdict.REFUSED if killed in LIMITS_KILL else Verdict.BROKEN, f"killed by signal {killed}")
    for line in words.splitlines():
        verdict, _, rest = line.partition(" ")
        if verdict in Verdict.__members__:
            return Outcome(Verdict(verdict), rest)
    return Outcome(Verdict.BROKEN, f"it said neither: {words!r}")

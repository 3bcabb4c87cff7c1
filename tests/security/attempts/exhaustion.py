"""Using up the machine: memory, space, processes, files. Bounded, and given back at once where they succeed.

`WORLD["memory"]` and `WORLD["space"]`, in MiB, and the other numbers are more than the sandbox may have and much less
than this machine has.
"""

from tests.security.attempt import Attempt, Lack

_ROOM = frozenset({Lack.ROOM})
_ROOM_AND_FILTER = frozenset({Lack.ROOM, Lack.FILTER})
_ROOM_AND_DEVICES = frozenset({Lack.ROOM, Lack.DEVICES})
_COMMAND = frozenset({Lack.COMMAND_LIMITS})
_BUBBLEWRAP = frozenset({"bubblewrap"})
_WAIT_S = "3"  # seconds for whoever counts, who ends the attempt meanwhile

# Memory behind a shared mapping stays when all but a page of it is unmapped, and then belongs to nobody.
_SHARED = """
import ctypes
step, kept = 8 * MIB, []
flags, fd = {mapping}
for _ in range(WORLD["memory"] // 8):
    at = libc.mmap(None, step, 3, flags, fd, 0)
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    ctypes.memset(at, 1, step)
    libc.munmap(ctypes.c_void_p(at + 4096), ctypes.c_size_t(step - 4096))
got(f"{{WORLD['memory']}} MiB of shared memory")
"""

_FILES = """
for number in range(WORLD["inodes"]):
    os.close(os.open(f"{folder}/{{number}}", os.O_CREAT | os.O_WRONLY))
time.sleep(0.3)  # for whoever counts
got(f"{{WORLD['inodes']}} files")
"""

_WRITTEN = """
file = os.open("{folder}/big", os.O_WRONLY | os.O_CREAT)
os.unlink("{folder}/big")
if all(os.write(file, b"x" * MIB) == MIB for _ in range(WORLD["space"])):
    got(f"{{WORLD['space']}} MiB in {folder}")
"""

ATTEMPTS = (
    Attempt(
        "memory of one process",
        "to have more than the sandbox may",
        """
kept = [b"x" * (8 * MIB) for _ in range(WORLD["memory"] // 8)]
got(f"{len(kept) * 8} MiB")
""",
        _ROOM,
    ),
    Attempt(
        "memory of many processes",
        "to have more altogether, each of them with little",
        """
children = {}
for _ in range(8):
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        kept = b"x" * (WORLD["memory"] // 8 * MIB)
        os.write(writing, b"x")
        time.sleep(60)
    os.close(writing)
    children[pid] = reading
ready = [os.read(end, 1) for end in children.values()]
time.sleep(0.3)  # for whoever counts, while all of it is in use
alive = [pid for pid in children if os.waitpid(pid, os.WNOHANG) == (0, 0)]
for pid in alive:
    os.kill(pid, signal.SIGKILL)
if all(ready) and len(alive) == 8:
    got(f"{WORLD['memory']} MiB in 8 processes")
""",
        _ROOM,
    ),
    Attempt(
        "shared memory without a name",
        "to have memory that no process seems to hold",
        _SHARED.format(mapping="0x21, -1"),
        _ROOM_AND_FILTER,
    ),
    Attempt(
        "shared memory of /dev/zero",
        "the same with a file that makes such memory",
        _SHARED.format(mapping="0x01, os.open('/dev/zero', os.O_RDWR)"),
        _ROOM_AND_DEVICES,
    ),
    Attempt(
        "shared memory with a key",
        "System V's kind, which stays when nobody uses it",
        """
number = call("shmget", 0, WORLD["memory"] * MIB, 0o1600)
try:
    libc.shmat.restype = ctypes.c_void_p
    ctypes.memset(libc.shmat(number, None, 0), 1, WORLD["memory"] * MIB)
    got(f"{WORLD['memory']} MiB of System V memory")
finally:
    call("shmctl", number, 0, 0)
""",
        _ROOM_AND_FILTER,
    ),
    Attempt(
        "a file that is only memory",
        "memfd: as large as one likes, counted as nobody's",
        """
file = call("memfd_create", ctypes.c_char_p(b"attempt"), 0)
for _ in range(WORLD["memory"]):
    os.write(file, b"x" * MIB)
got(f"{WORLD['memory']} MiB in a memfd")
""",
        _ROOM_AND_FILTER,
    ),
    Attempt(
        "memory for the maps of memory",
        "to map one small thing so often that the tables are large",
        """
file = os.open("/tmp/data/hollow", os.O_RDWR | os.O_CREAT)
os.ftruncate(file, 512 * MIB)
os.unlink("/tmp/data/hollow")
kept = []
for _ in range(WORLD["memory"]):
    kept.append(mmap.mmap(file, 512 * MIB, prot=mmap.PROT_READ))
    for at in range(0, 512 * MIB, 2 * MIB):
        kept[-1][at]
got(f"{WORLD['memory']} MiB of tables")
""",
        _ROOM,
    ),
    Attempt(
        "memory in sockets",
        "to leave words in sockets that nobody reads, in many processes",
        """
for _ in range(WORLD["memory"] // 150):  # what a thousand sockets hold
    if not os.fork():
        kept = []
        while len(kept) < 1000:
            kept += socket.socketpair()
            for end in kept[-2:]:
                end.setblocking(False)
                try:
                    while True:
                        end.send(b"x" * 65536)
                except BlockingIOError:
                    pass
        os._exit(0)
if not any([os.wait()[1] for _ in range(WORLD["memory"] // 150)]):
    got(f"about {WORLD['memory']} MiB in sockets")
""",
        _ROOM,
        backends=_BUBBLEWRAP,
    ),
    Attempt(
        "memory in one socket",
        "to have the kernel hold more for one socket than it usually does",
        """
one, other = socket.socketpair()
before = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MIB)
after = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
if after > before:
    got(f"{after} bytes")
""",
        frozenset({Lack.FILTER}),
    ),
    Attempt(
        "memory of a process whose main thread has ended",
        "to have more than the sandbox may where the list of processes shows a dead one",
        """
import threading
def fill():
    time.sleep(0.2)  # until the main thread is gone
    kept = [b"x" * (8 * MIB) for _ in range(WORLD["memory"] // 8)]
    time.sleep(WAIT_S)
    got(f"{len(kept) * 8} MiB")
threading.Thread(target=fill).start()
libc.syscall(ctypes.c_long((60, 93)[COLUMN]), ctypes.c_long(0))  # exit, of this thread alone
""".replace("WAIT_S", _WAIT_S),
        _ROOM,
        backends=_BUBBLEWRAP,
    ),
    Attempt(
        "memory in pipes",
        "to leave words in pipes that nobody reads, in many processes",
        """
children = {}
for _ in range(8):
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        kept = []
        for _ in range(WORLD["pipes"] // 8):
            end, other = os.pipe()
            os.set_blocking(other, False)
            os.write(other, b"x" * 65536)
            os.close(other)
            kept.append(end)
        os.write(writing, b"x")
        time.sleep(60)
    os.close(writing)
    children[pid] = reading
ready = [os.read(end, 1) for end in children.values()]
time.sleep(WAIT_S)
alive = [pid for pid in children if os.waitpid(pid, os.WNOHANG) == (0, 0)]
for pid in alive:
    os.kill(pid, signal.SIGKILL)
if all(ready) and len(alive) == 8:
    got(f"{WORLD['pipes']} pipes")
""".replace("WAIT_S", _WAIT_S),
        _ROOM,
        backends=_BUBBLEWRAP,
    ),
    Attempt(
        "memory in file locks",
        "to lock so many single bytes that the list of locks is large; no control group counts it",
        """
import fcntl
files = [os.open(f"/tmp/data/locked-{number}", os.O_RDWR | os.O_CREAT) for number in range(50)]
for number in range(WORLD["locks"]):
    fcntl.lockf(files[number % 50], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number * 2)
time.sleep(WAIT_S)
got(f"{WORLD['locks']} locks")
""".replace("WAIT_S", _WAIT_S),
        _ROOM,
        backends=_BUBBLEWRAP,
    ),
    Attempt(
        "locks that no process owns",
        "to make a lock that the list of locks shows without its process",
        """
import fcntl
file = os.open("/tmp/data/locked", os.O_RDWR | os.O_CREAT)
fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 1, 0))  # F_OFD_SETLK
got("an open file description's lock")
""",
        frozenset({Lack.FILTER}),
    ),
    Attempt(
        "a process that shares our open files",
        "to let it make locks and end: they stay, and the list of locks hides those of dead processes",
        """
pid = call("clone", 0x400 | signal.SIGCHLD, 0, 0, 0, 0)  # CLONE_FILES
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
got("a process with our open files")
""",
        frozenset({Lack.FILTER}),
    ),
    Attempt(
        "a thread with open files of its own",
        "to hold pipes that do not stand among those of its process",
        """
call("close_range", 1000, 1000, 2)  # CLOSE_RANGE_UNSHARE
got("a table of open files of its own")
""",
        frozenset({Lack.FILTER}),
    ),
    Attempt("space in /tmp", "to write more than there is", _WRITTEN.format(folder="/tmp/data"), _ROOM),
    Attempt("space in /dev/shm", "to write more than there is", _WRITTEN.format(folder="/dev/shm"), _ROOM),
    Attempt("files in /tmp", "to make more than one may", _FILES.format(folder="/tmp/data"), _ROOM, _BUBBLEWRAP),
    Attempt("files in /dev/shm", "to make more than one may", _FILES.format(folder="/dev/shm"), _ROOM, _BUBBLEWRAP),
    Attempt(
        "processes",
        "to start more than one may",
        """
started = []
try:
    while len(started) < WORLD["processes"]:
        pid = os.fork()
        if not pid:
            time.sleep(60)
        started.append(pid)
except OSError:
    pass
for pid in started:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
if len(started) == WORLD["processes"]:
    got(f"{len(started)} processes")
""",
        _ROOM,
    ),
    Attempt(
        "the size of a file",
        "to make a hollow file larger than one may be, which takes no space",
        """
file = os.open("/tmp/data/hollow", os.O_WRONLY | os.O_CREAT)
os.unlink("/tmp/data/hollow")
os.ftruncate(file, (1 << 30) + 1)
got("a file of more than 1 GiB")
""",
        _COMMAND,
    ),
    Attempt(
        "open files",
        "to open more than one may",
        """
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
got(f"{len(kept)} open files")
""",
        _COMMAND,
    ),
    Attempt(
        "time on the processor",
        "to be allowed more than a quarter of an hour of it",
        """
import resource
if not 0 < resource.getrlimit(resource.RLIMIT_CPU)[1] <= 900:
    got("no limit")
""",
        _COMMAND,
    ),
    Attempt(
        "memory of one process at the real limit",
        "to reserve 1.25 GiB at once, with the numbers that sandboxes have by default",
        """
at = libc.mmap(None, 1280 * MIB, 3, 0x22, -1, 0)
if at in (None, ctypes.c_void_p(-1).value):
    raise MemoryError
got("1.25 GiB")
""",
        _COMMAND,
    ),
    Attempt(
        "a core dump",
        "to die in such a way that the kernel writes the memory to a file",
        """
import resource
most = resource.getrlimit(resource.RLIMIT_CORE)[1]
resource.setrlimit(resource.RLIMIT_CORE, (most, most))
if not most:
    raise OSError(errno.EPERM, "there are no cores")
got(f"cores of {most} bytes are allowed")
""",
        _COMMAND,
        host_decides=True,
    ),
)

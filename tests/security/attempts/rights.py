"""More rights: capabilities, other identities, new namespaces, and everything that would follow from them."""

from tests.security.attempt import Attempt, Lack

_ROOT = frozenset({Lack.RIGHTS})
_FREE_ROOT = frozenset({Lack.RIGHTS, Lack.FILTER})
_NAMESPACES = frozenset({Lack.FILTER, Lack.LAST_NAMESPACE})

ATTEMPTS = (
    Attempt(
        "a capability",
        "to have any, in any of the five sets",
        """
for line in content_of("/proc/self/status").decode().splitlines():
    if line.startswith("Cap") and int(line.split()[1], 16):
        got(line)
""",
        frozenset({Lack.CAPABILITIES}),
    ),
    Attempt(
        "rights from a program",
        "to be allowed more rights by a program that has them, such as su",
        """
if "NoNewPrivs:\\t1" not in content_of("/proc/self/status").decode():
    got("no_new_privs is not set")
""",
        frozenset({Lack.NO_NEW_RIGHTS, Lack.FILTER}),  # which is set together with a promise of its own
    ),
    Attempt(
        "another identity",
        "setuid, setgid and setgroups",
        """
for change in (lambda: os.setgroups([4]), lambda: os.setgid(0), lambda: os.setuid(0)):
    try:
        change()
    except OSError:
        continue
    got("another identity")
""",
        _ROOT,
    ),
    Attempt(
        "a file of somebody else's",
        "to make a copy of a program that belongs to root and runs as its owner",
        """
import shutil
shutil.copy("/bin/sh", "/tmp/data/shell")
os.chown("/tmp/data/shell", 12345, 12345)
os.chmod("/tmp/data/shell", 0o6755)
os.unlink("/tmp/data/shell")
got("a program that would run as somebody else")
""",
        _ROOT,
    ),
    Attempt(
        "programs that act as root",
        "su, sudo, mount, newuidmap and pkexec, where they are there",
        """
import subprocess
os.makedirs("/tmp/data/place", exist_ok=True)
for command in ("su -c id", "sudo -n id", "pkexec id", f"newuidmap {os.getpid()} 0 0 1",
                "mount -t tmpfs none /tmp/data/place"):
    try:
        done = subprocess.run(command.split(), capture_output=True, stdin=subprocess.DEVNULL, timeout=3)
    except (OSError, subprocess.TimeoutExpired):
        continue
    if done.returncode == 0:
        got(command)
""",
        _FREE_ROOT,
        backends=frozenset({"bubblewrap"}),
    ),
    Attempt(
        "a new namespace by unshare",
        "any of the eight kinds",
        """
for flag in (0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x08000000, 0x04000000, 0x02000000, 0x00000080):
    try:
        call("unshare", flag)
    except OSError:
        continue
    got(hex(flag))
""",
        _NAMESPACES,
    ),
    Attempt(
        "a new namespace by clone",
        "a process in a user namespace of its own, by the bare system call",
        """
pid = call("clone", 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
got("a process in a new user namespace")
""",
        _NAMESPACES,
    ),
    Attempt(
        "a new namespace by clone3",
        "the same by the newer call, whose flags no filter can see",
        """
wanted = ctypes.create_string_buffer(struct.pack("<QQQQQ", 0x10000000, 0, 0, 0, signal.SIGCHLD), 64)
pid = call("clone3", wanted, 64)
if not pid:
    os._exit(0)
os.waitpid(pid, 0)
got("a process in a new user namespace")
""",
        _NAMESPACES,
    ),
    Attempt(
        "another's namespace",
        "to enter a namespace of process 1",
        """
for name in ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time"):
    try:
        call("setns", os.open(f"/proc/1/ns/{name}", os.O_RDONLY), 0)
    except OSError:
        continue
    got(name)
""",
        _FREE_ROOT,
    ),
    Attempt(
        "a mount",
        "to put a file system over a directory",
        """
os.makedirs("/tmp/data/place", exist_ok=True)
call("mount", ctypes.c_char_p(b"none"), ctypes.c_char_p(b"/tmp/data/place"), ctypes.c_char_p(b"tmpfs"), 0, 0)
got("a mount")
""",
        _FREE_ROOT,
    ),
    Attempt(
        "a mount by the newer calls",
        "fsopen, open_tree, open_tree_attr and move_mount",
        """
for name, *arguments in (("fsopen", ctypes.c_char_p(b"tmpfs"), 0), ("open_tree", -100, ctypes.c_char_p(b"/tmp"), 1),
                         ("open_tree_attr", -100, ctypes.c_char_p(b"/tmp"), 1, 0, 0),
                         ("move_mount", -1, ctypes.c_char_p(b""), -1, ctypes.c_char_p(b""), 4)):
    if reached(name, *arguments):
        got(name)
""",
        _FREE_ROOT,
    ),
    Attempt(
        "what a mount covers",
        "to take a mount away, and see what is below",
        """
call("umount2", ctypes.c_char_p(b"/dev/shm"), 2)
got("a mount is gone")
""",
        _FREE_ROOT,
    ),
    Attempt(
        "another root directory",
        "pivot_root with senseless arguments, and chroot, from which one could climb out",
        """
if reached("pivot_root", ctypes.c_char_p(b"/nowhere"), ctypes.c_char_p(b"/nowhere")):
    got("pivot_root")
call("chroot", ctypes.c_char_p(b"/tmp"))
got("chroot")
""",
        _FREE_ROOT,
    ),
)

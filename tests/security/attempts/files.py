"""Files of the host: to read one, to find one, to write one, or to learn where one is."""

from tests.security.attempt import Attempt, Lack

_FOLDER = frozenset({Lack.FOLDER})

ATTEMPTS = (
    Attempt(
        "the host's users",
        "to read /etc/shadow, the host's /etc/passwd, or anybody's home",
        """
import hashlib
if hashlib.sha256(content_of("/etc/passwd")).hexdigest() == WORLD["passwd"]:
    got("the host's /etc/passwd")
for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_ed25519_key"):
    if os.access(path, os.R_OK):
        got(path)
for home in ("/root", "/home"):
    if os.access(home, os.R_OK) and os.listdir(home):
        got(home)
""",
        frozenset({Lack.PASSWD}),
    ),
    Attempt(
        "a file of the host by its name",
        "to find, anywhere in sight, a file that was planted in several places of the host",
        """
for folder, folders, names in everywhere():
    if WORLD["planted"] in names + folders:
        got(folder)
""",
        _FOLDER,
    ),
    Attempt(
        "a file of the host by its path",
        "to open the planted files where they are, and by way of what other processes see",
        """
for path in WORLD["planted_paths"]:
    for root in ("", *(f"/proc/{pid}/root" for pid in [*supervisors(), "self"]), "/proc/1/cwd/../.."):
        if os.access(root + path, os.R_OK):
            got(root + path)
""",
        _FOLDER,
    ),
    Attempt(
        "a file of the host by its content",
        "to read every small file in sight, until one holds what was written to the planted ones",
        """
import stat
for folder, _, names in everywhere("/usr", "/sys", "/nix"):
    for name in names:
        path = os.path.join(folder, name)
        try:
            found = os.lstat(path)
            if stat.S_ISREG(found.st_mode) and found.st_size < MIB and holds(content_of(path), WORLD["secret"]):
                got(path)
        except OSError:
            continue
""",
        _FOLDER,
    ),
    Attempt(
        "a file outside /tmp",
        "to make a file in every directory in sight but those that are the sandbox's own",
        """
for folder, _, _ in everywhere("/tmp", "/dev/shm", "/dev/mqueue"):
    path = os.path.join(folder, ".attempt")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError:
        continue
    os.unlink(path)
    got(folder)
""",
        frozenset({Lack.READ_ONLY}),
    ),
    Attempt(
        "a mount that can be written",
        "to write to any mount but the sandbox's own two, whatever kind it is of",
        """
import stat
for line in content_of("/proc/self/mountinfo").decode().splitlines():
    at = line.split()[4]
    if at in ("/tmp", "/dev/shm") or at.startswith(("/proc", "/dev")):
        continue
    try:
        if stat.S_ISDIR(os.stat(at).st_mode):
            at = os.path.join(at, ".attempt")
            os.close(os.open(at, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(at)
        else:
            os.close(os.open(at, os.O_WRONLY))
    except OSError:
        continue
    got(at)
""",
        _FOLDER,
    ),
    Attempt(
        "where things are on the host",
        "to read paths of the project, of a home or of planted files in the list of mounts or processes",
        """
seen = content_of("/proc/self/mountinfo") + b"".join(words for _, words in processes())
for path in WORLD["private_paths"]:
    if path.encode() in seen:
        got(path)
""",
        _FOLDER,
    ),
    Attempt(
        "a strange device",
        "to find a device that is not one of the harmless ones: disks, memory, the hypervisor's, fuse",
        """
import stat
harmless = set("core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero mqueue console".split())
if stat.S_ISREG(os.lstat("/dev/termination-log").st_mode) if os.path.exists("/dev/termination-log") else False:
    harmless.add("termination-log")  # the kubelet's, in every pod; nobody reads what commands write there
strange = set(os.listdir("/dev")) - harmless
for folder, _, names in os.walk("/dev"):
    strange |= {name for name in names if stat.S_ISBLK(os.lstat(os.path.join(folder, name)).st_mode)}
if strange:
    got(sorted(strange))
""",
        frozenset({Lack.DEVICES}),
    ),
    Attempt(
        "a device of one's own",
        "to make a device node, of a disk or of a harmless kind",
        """
import stat
for kind, number in ((stat.S_IFBLK, os.makedev(254, 0)), (stat.S_IFCHR, os.makedev(1, 3))):
    try:
        os.mknod("/tmp/data/device", kind | 0o600, number)
    except PermissionError:
        continue
    os.unlink("/tmp/data/device")
    got("a device node")
""",
        frozenset({Lack.RIGHTS}),
    ),
    Attempt(
        "a file by its handle",
        "to open a file by a number that the file system knows it by, past every directory",
        """
handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0), 136)
number = ctypes.c_int()
call("name_to_handle_at", -100, ctypes.c_char_p(b"/tmp"), handle, ctypes.byref(number), 0)
os.close(call("open_by_handle_at", os.open("/tmp", os.O_RDONLY), handle, os.O_RDONLY))
got("/tmp by its handle")
""",
        frozenset({Lack.RIGHTS, Lack.FILTER}),
    ),
)

"""Other processes: the host's, and those inside that look after the commands. What they hold is what one would want."""

from tests.security.attempt import Attempt, Lack

_HIDDEN = frozenset({Lack.SECRECY})
_HIDDEN_AND_FILTERED = frozenset({Lack.SECRECY, Lack.FILTER})
_STARTED_CLEAN = frozenset({Lack.SECRECY, Lack.CLEAN_START})

_OPENED = """
for pid in supervisors():
    try:
        found = {what}
    except OSError:
        continue
    got(f"{{pid}}: {{found!r}}")
"""

ATTEMPTS = (
    Attempt(
        "a process of the host is seen",
        "to find, in the list of processes, one that the test has started outside",
        """
for pid, words in processes():
    if holds(words, WORLD["sleeper"]):
        got(pid)
""",
        frozenset({Lack.PROCESSES}),
    ),
    Attempt(
        "a process of the host is signalled",
        "to send a signal to that process",
        """
for pid, words in processes():
    if holds(words, WORLD["sleeper"]):
        os.kill(pid, 0)
        got(pid)
""",
        frozenset({Lack.PROCESSES}),
    ),
    Attempt(
        "a supervisor's memory by its file",
        "to open /proc/…/mem of process 1 or of the program that looks after this command",
        _OPENED.format(what="os.open(f'/proc/{pid}/mem', os.O_RDONLY)"),
        _HIDDEN,
    ),
    Attempt(
        "a supervisor's memory by a system call",
        "to read it with process_vm_readv",
        """
class Piece(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]
room = ctypes.create_string_buffer(8)
ours, theirs = Piece(ctypes.addressof(room), 8), Piece(0x400000, 8)
for pid in supervisors():
    if reached("process_vm_readv", pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0):
        got(pid)
""",
        _HIDDEN_AND_FILTERED,
    ),
    Attempt(
        "a supervisor is traced",
        "to become its debugger, without stopping it",
        """
for pid in supervisors():
    if reached("ptrace", 0x4206, pid, 0, 0):  # PTRACE_SEIZE
        got(pid)
""",
        _HIDDEN_AND_FILTERED,
    ),
    Attempt(
        "a supervisor's descriptors by their files",
        "to list and open what it holds open",
        _OPENED.format(what="[os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')]"),
        _HIDDEN,
    ),
    Attempt(
        "a supervisor's descriptors by a system call",
        "to have one of them duplicated with pidfd_getfd",
        """
for pid in supervisors():
    if reached("pidfd_getfd", call("pidfd_open", pid, 0), 0, 0):
        got(pid)
""",
        _HIDDEN_AND_FILTERED,
    ),
    Attempt(
        "a supervisor's environment",
        "to read what it was started with",
        _OPENED.format(what="content_of(f'/proc/{pid}/environ')"),
        _HIDDEN,
    ),
    Attempt(
        "a supervisor's directories",
        "to follow its root and its working directory",
        _OPENED.format(what="os.listdir(f'/proc/{pid}/root/'), os.listdir(f'/proc/{pid}/cwd/')"),
        _HIDDEN,
    ),
    Attempt(
        "a supervisor's chance to be spared",
        "to change whom the kernel ends first when memory runs out",
        """
os.close(os.open(f"/proc/{supervisors()[1]}/oom_score_adj", os.O_WRONLY))
got("it can be changed")
""",
        frozenset({Lack.SECRECY, Lack.READ_ONLY}),
    ),
    Attempt(
        "a token in an environment or a command line",
        "to find what stands in the orchestrator's environment in that of any process in sight",
        """
for pid, words in processes():
    if holds(words, WORLD["token"]):
        got(f"{pid} cmdline")
    try:
        if holds(content_of(f"/proc/{pid}/environ"), WORLD["token"]):
            got(f"{pid} environ")
    except OSError:
        continue
""",
        _STARTED_CLEAN,
    ),
    Attempt(
        "a token in memory",
        "to find it in the memory of any process that lets itself be read, this one included",
        """
for pid, _ in processes():
    try:
        maps, memory = content_of(f"/proc/{pid}/maps").decode(), open(f"/proc/{pid}/mem", "rb", buffering=0)
    except OSError:
        continue
    for line in maps.splitlines():
        start, _, end = line.split()[0].partition("-")
        if line.split()[1].startswith("r") and int(end, 16) - int(start, 16) < 64 * MIB and int(end, 16) < 1 << 63:
            try:
                memory.seek(int(start, 16))
                if holds(memory.read(int(end, 16) - int(start, 16)), WORLD["token"]):
                    got(f"{pid} {line}")
            except OSError:
                continue
""",
        _STARTED_CLEAN,
    ),
)

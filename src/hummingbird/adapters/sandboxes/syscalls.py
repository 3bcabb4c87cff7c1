"""Which system calls a command in a sandbox may not make, as the program the kernel wants it (seccomp, classic BPF).

Namespaces leave gaps that only this closes: sockets of families without a namespace (vsock reaches the hypervisor),
memory no limit counts (memfd, System V, shared mappings without a file), and the kernel's larger doors (bpf, io_uring,
keys, new user namespaces). It also refuses what would hide open files and locks from the watch in `inside`.
libseccomp would write the same program, but is a library of the system, and bubblewrap has to work without one.
"""

import errno
import json
import platform
import struct
from functools import cache

from hummingbird.domain.errors import SandboxUnavailable

# Numbers on x86_64 and on aarch64; None where there is no such call.
_DENIED = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "fanotify_init": (300, 262),
    "personality": (135, 92),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "memfd_secret": (447, 447),
    "vmsplice": (278, 75),  # pages in a pipe outlive the memory they were taken from
}
_ABSENT = {"clone3": (435, 435), "memfd_create": (319, 279)}  # callers know what to do on a kernel without them
_CLONE, _IOCTL, _MMAP, _SETSOCKOPT = (56, 220), (16, 29), (9, 222), (54, 208)
_FCNTL, _CLOSE_RANGE = (72, 25), (436, 436)
_SOCKETS = ((41, 198), (53, 199))  # socket and socketpair
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET and TIME
_SHARING_FILES, _THREAD = 0x400, 0x10000  # of clone's flags: both or neither
_UNSHARING_FILES = 0x2  # of close_range's flags
_OWNERLESS_LOCKS = (37, 38)  # F_OFD_SETLK and F_OFD_SETLKW; every sandbox would see those of the whole machine
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX put words into somebody's terminal
_AF_UNIX = 1
_KIND, _SHARED_NAMELESS = 0x2F, 0x21  # of mmap's flags; such memory stays when all but a page of it is unmapped
_PRETENDED = 0  # the caller believes that it was done
_SOL_SOCKET, _SO_SNDBUF = 1, 7  # how much the kernel holds for a socket, of memory that nobody is charged with
_X32 = 0x40000000
_NUMBER, _MACHINE = 0, 4  # offsets in struct seccomp_data
_FIRST, _SECOND, _THIRD, _FOURTH = 16, 24, 32, 40  # the low halves of arguments
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


@cache
def filters() -> str:
    """One for each kind of machine that a container may be on, for the program inside."""
    return json.dumps({machine: filter_program(machine).hex() for machine in _MACHINES})


def filter_program(machine: str = "") -> bytes:
    """Raises SandboxUnavailable for a machine whose numbers are not in the table."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        raise SandboxUnavailable(
            f"The bubblewrap sandbox has no list of system calls for {machine}; use the podman or kubernetes sandbox."
        )
    column, audit = _MACHINES[machine]
    steps = [_step(_LOAD, _MACHINE), _step(_EQUAL, audit, 1, 0), _step(_RETURN, _KILL), _step(_LOAD, _NUMBER)]
    if machine == "x86_64":  # the same calls under other numbers
        steps += [_step(_AT_LEAST, _X32, 0, 1), _refuse(errno.EPERM)]
    for table, reason in ((_DENIED, errno.EPERM), (_ABSENT, errno.ENOSYS)):
        for numbers in table.values():
            if (number := numbers[column]) is not None:
                steps += [_step(_EQUAL, number, 0, 1), _refuse(reason)]
    steps += [_step(_EQUAL, _CLONE[column], 0, 8), _step(_LOAD, _FIRST), _step(_ANY_BIT, _NEW_NAMESPACES, 0, 1)]
    steps += [_refuse(errno.EPERM), _step(_AND, _SHARING_FILES | _THREAD), _step(_EQUAL, 0, 2, 0)]
    steps += [_step(_EQUAL, _SHARING_FILES | _THREAD, 1, 0), _refuse(errno.EPERM), _step(_RETURN, _ALLOW)]
    steps += [_step(_EQUAL, _CLOSE_RANGE[column], 0, 4), _step(_LOAD, _THIRD), _step(_ANY_BIT, _UNSHARING_FILES, 0, 1)]
    steps += [_refuse(errno.EPERM), _step(_RETURN, _ALLOW)]
    steps += [_step(_EQUAL, _FCNTL[column], 0, 5), _step(_LOAD, _SECOND), _step(_EQUAL, _OWNERLESS_LOCKS[0], 1, 0)]
    steps += [_step(_EQUAL, _OWNERLESS_LOCKS[1], 0, 1), _refuse(errno.EINVAL), _step(_RETURN, _ALLOW)]
    for numbers in _SOCKETS:
        steps += [_step(_EQUAL, numbers[column], 0, 4), _step(_LOAD, _FIRST), _step(_EQUAL, _AF_UNIX, 1, 0)]
        steps += [_refuse(errno.EAFNOSUPPORT), _step(_RETURN, _ALLOW)]
    steps += [_step(_EQUAL, _MMAP[column], 0, 5), _step(_LOAD, _FOURTH), _step(_AND, _KIND)]
    steps += [_step(_EQUAL, _SHARED_NAMELESS, 0, 1), _refuse(errno.EPERM), _step(_RETURN, _ALLOW)]
    steps += [_step(_EQUAL, _SETSOCKOPT[column], 0, 6), _step(_LOAD, _SECOND), _step(_EQUAL, _SOL_SOCKET, 0, 3)]
    steps += [_step(_LOAD, _THIRD), _step(_EQUAL, _SO_SNDBUF, 0, 1), _refuse(_PRETENDED), _step(_RETURN, _ALLOW)]
    steps += [_step(_EQUAL, _IOCTL[column], 0, 4), _step(_LOAD, _SECOND), _step(_EQUAL, _TERMINAL[0], 1, 0)]
    steps += [_step(_EQUAL, _TERMINAL[1], 0, 1), _refuse(errno.EPERM), _step(_RETURN, _ALLOW)]
    return b"".join(steps)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)


def _refuse(reason: int) -> bytes:
    return _step(_RETURN, _REFUSE | reason)

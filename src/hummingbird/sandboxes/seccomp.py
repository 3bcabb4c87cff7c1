"""Builds the seccomp filter (classic BPF) that lists the system calls which a command in a sandbox may not make.

Namespaces leave gaps that only this filter closes: sockets of families without a namespace (vsock reaches the
hypervisor), memory that no limit counts (memfd, System V, shared anonymous mappings), and the kernel's larger attack
surfaces (bpf, io_uring, keys, new user namespaces). The filter also refuses what would hide open files and locks from
the runner's `resource_watch`. libseccomp could build the same program, but it is a system library, and bubblewrap has
to work without one.
"""

import errno
import json
import platform
import struct
from functools import cache

from hummingbird.core.errors import SandboxUnavailable

# System call numbers on x86_64 and on aarch64; None where the call does not exist.
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
    "vmsplice": (278, 75),  # pages in a pipe outlive the memory they came from
}
_ABSENT = {"clone3": (435, 435), "memfd_create": (319, 279)}  # ENOSYS: callers can cope with a kernel without them
_CLONE, _IOCTL, _MMAP, _SETSOCKOPT = (56, 220), (16, 29), (9, 222), (54, 208)
_FCNTL, _CLOSE_RANGE = (72, 25), (436, 436)
_SOCKETS = ((41, 198), (53, 199))  # socket and socketpair
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET and TIME
_SHARING_FILES, _THREAD = 0x400, 0x10000  # CLONE_FILES and CLONE_THREAD: clone may set both or neither
_UNSHARING_FILES = 0x2  # CLOSE_RANGE_UNSHARE
_OWNERLESS_LOCKS = (37, 38)  # F_OFD_SETLK, F_OFD_SETLKW; /proc/locks shows every sandbox those of the whole machine
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX write into somebody's terminal
_AF_UNIX = 1
_KIND, _SHARED_NAMELESS = 0x2F, 0x21  # mmap flags; shared anonymous memory stays when all but one page is unmapped
_PRETENDED = 0  # the call is not made, but the caller sees success
_SOL_SOCKET, _SO_SNDBUF = 1, 7  # a socket's send buffer is kernel memory that counts against no limit
_X32 = 0x40000000
_NUMBER, _MACHINE = 0, 4  # offsets in struct seccomp_data
_FIRST, _SECOND, _THIRD, _FOURTH = 16, 24, 32, 40  # offsets of the arguments' low halves
_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


@cache
def filters_json() -> str:
    """Return one filter for each architecture on which a container may run, for the runner."""
    return json.dumps({machine: build_filter(machine).hex() for machine in _MACHINES})


def build_filter(machine: str = "") -> bytes:
    """Return the filter for this or the given architecture. Raises SandboxUnavailable for an unknown one."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        raise SandboxUnavailable(
            f"The bubblewrap sandbox has no list of system calls for {machine}; use the podman or kubernetes sandbox."
        )
    column, audit = _MACHINES[machine]
    steps = [
        _instruction(_LOAD, _MACHINE),
        _instruction(_EQUAL, audit, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":  # refuse the x32 calls: the same calls under other numbers
        steps += [_instruction(_AT_LEAST, _X32, 0, 1), _return_errno(errno.EPERM)]
    for table, reason in ((_DENIED, errno.EPERM), (_ABSENT, errno.ENOSYS)):
        for numbers in table.values():
            if (number := numbers[column]) is not None:
                steps += [_instruction(_EQUAL, number, 0, 1), _return_errno(reason)]
    steps += [
        _instruction(_EQUAL, _CLONE[column], 0, 8),
        _instruction(_LOAD, _FIRST),
        _instruction(_ANY_BIT, _NEW_NAMESPACES, 0, 1),
    ]
    steps += [_return_errno(errno.EPERM), _instruction(_AND, _SHARING_FILES | _THREAD), _instruction(_EQUAL, 0, 2, 0)]
    steps += [
        _instruction(_EQUAL, _SHARING_FILES | _THREAD, 1, 0),
        _return_errno(errno.EPERM),
        _instruction(_RETURN, _ALLOW),
    ]
    steps += [
        _instruction(_EQUAL, _CLOSE_RANGE[column], 0, 4),
        _instruction(_LOAD, _THIRD),
        _instruction(_ANY_BIT, _UNSHARING_FILES, 0, 1),
    ]
    steps += [_return_errno(errno.EPERM), _instruction(_RETURN, _ALLOW)]
    steps += [
        _instruction(_EQUAL, _FCNTL[column], 0, 5),
        _instruction(_LOAD, _SECOND),
        _instruction(_EQUAL, _OWNERLESS_LOCKS[0], 1, 0),
    ]
    steps += [
        _instruction(_EQUAL, _OWNERLESS_LOCKS[1], 0, 1),
        _return_errno(errno.EINVAL),
        _instruction(_RETURN, _ALLOW),
    ]
    for numbers in _SOCKETS:
        steps += [
            _instruction(_EQUAL, numbers[column], 0, 4),
            _instruction(_LOAD, _FIRST),
            _instruction(_EQUAL, _AF_UNIX, 1, 0),
        ]
        steps += [_return_errno(errno.EAFNOSUPPORT), _instruction(_RETURN, _ALLOW)]
    steps += [_instruction(_EQUAL, _MMAP[column], 0, 5), _instruction(_LOAD, _FOURTH), _instruction(_AND, _KIND)]
    steps += [_instruction(_EQUAL, _SHARED_NAMELESS, 0, 1), _return_errno(errno.EPERM), _instruction(_RETURN, _ALLOW)]
    steps += [
        _instruction(_EQUAL, _SETSOCKOPT[column], 0, 6),
        _instruction(_LOAD, _SECOND),
        _instruction(_EQUAL, _SOL_SOCKET, 0, 3),
    ]
    steps += [
        _instruction(_LOAD, _THIRD),
        _instruction(_EQUAL, _SO_SNDBUF, 0, 1),
        _return_errno(_PRETENDED),
        _instruction(_RETURN, _ALLOW),
    ]
    steps += [
        _instruction(_EQUAL, _IOCTL[column], 0, 4),
        _instruction(_LOAD, _SECOND),
        _instruction(_EQUAL, _TERMINAL[0], 1, 0),
    ]
    steps += [_instruction(_EQUAL, _TERMINAL[1], 0, 1), _return_errno(errno.EPERM), _instruction(_RETURN, _ALLOW)]
    return b"".join(steps)


def _instruction(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("<HBBI", code, then, otherwise, value)


def _return_errno(reason: int) -> bytes:
    return _instruction(_RETURN, _REFUSE | reason)

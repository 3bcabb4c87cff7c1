"""Decide whether a single command would destroy a machine or a home directory as a whole.

Each command has its own rule, which returns a sentence or nothing. The rules know paths and options, but no shell
syntax.
"""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from types import MappingProxyType

from hummingbird.core.shell.parser import plain_word
from hummingbird.core.shell.values import HOME, UNKNOWN
from hummingbird.core.text import shorten_line

_SYSTEM = (
    "bin boot dev etc home lib lib32 lib64 libx32 opt proc root run sbin srv sys usr var Users System Library "
    "usr/bin usr/lib usr/lib32 usr/lib64 usr/libexec usr/local usr/sbin usr/share var/lib var/log"
)
_PROTECTED = tuple(tuple(path.split("/")) for path in _SYSTEM.split())
_HOMES = ("home", "Users")
_ACCOUNTS = frozenset(f"/etc/{name}" for name in ("passwd", "shadow", "group", "gshadow", "sudoers"))
_DISK = re.compile(
    r"/dev/(?:[sh]d[a-z*?\[]|x?vd[a-z*?\[]|nvme|mmcblk|md\d|dm-|mapper/|disk/|loop\d|nbd|rbd|zd\d|sr\d|pmem|bcache|"
    r"drbd|root\b|k?mem\b|port\b|[*?\[])"
)
_GLOB = re.compile(r"[*?\[]")
_EVERYTHING = re.compile(r"[*?.!^\[\]]*[*?\[][*?.!^\[\]]*")
_TO_THE_TOP = re.compile(r"(?:\.\./){3,}\.\.(?:/|$)")  # leads to the root from any likely folder
_NOT_KEPT = "--no-preserve-root"
_DOWN = "It ends or restarts this machine."
_DOWN_UNITS = re.compile(r"(?:poweroff|reboot|halt|kexec|rescue|emergency|shutdown|runlevel[016])(?:\.target)?")
_TELLING = ("--list", "--dump", "--print", "--info", "--verify", "--backup", "--show-size", "--show-geometry")
_ENDING_VERBS = frozenset(
    ("mklabel", "mktable", "rm", "luksErase", "erase", "luksFormat", "reencrypt", "format", "sanitize")
)
_ASKING = frozenset(("--help", "-h", "--version", "-V"))


def find_harm(name: str, arguments: Sequence[str], folder: str) -> str:
    """Return why this command is refused; empty if it is not.

    `folder` is where it runs, empty if unknown.
    """
    rule = _RULES.get(name)
    if rule is None and name.startswith("mkfs."):
        rule = _check_format
    return rule(arguments, folder) if rule else ""


def find_matching_commands(pattern: str) -> list[str]:
    """Return the commands with a rule whose name this glob could match."""
    return [name for name in _RULES if _matches_glob(pattern, name)]


def find_write_harm(target: str, folder: str) -> str:
    """Return why nothing may be written to this target; empty if it may."""
    path = _absolute_path(target, folder)
    if path is None:
        return ""
    if _DISK.match(path):
        return f"It writes over the device {_display_path(path)}."
    if path in _ACCOUNTS or (_GLOB.search(path) and any(_matches_glob(path, each) for each in _ACCOUNTS)):
        return f"It writes over {_display_path(path)}, which says who may use this machine."
    return _DOWN if path == "/proc/sysrq-trigger" else ""


def _system_target(target: str, folder: str) -> str:
    """Name the system or home directory that the target is, as a whole, for a sentence; else return nothing."""
    path = _absolute_path(target, folder)
    if path is None:
        return ""
    parts = [part for part in path.split("/") if part]
    while parts and _EVERYTHING.fullmatch(parts[-1]):
        parts.pop()
    if not parts:
        return "/"
    if len(parts) == 2 and parts[0] in _HOMES:
        return "the home directory" if path.startswith(HOME) else _display_path("/" + "/".join(parts))
    if any(len(each) == len(parts) and all(map(_matches_glob, parts, each)) for each in _PROTECTED):
        return _display_path("/" + "/".join(parts))
    return ""


def _absolute_path(word: str, folder: str) -> str | None:
    """Return the normalised absolute path, or None where it depends on something unknown."""
    if not word or word.startswith(UNKNOWN):
        return None
    if not word.startswith("/"):
        if not folder and not _TO_THE_TOP.match(posixpath.normpath(word)):
            return None
        word = posixpath.join(folder or "/", word)
    return re.sub(r"^/+", "/", posixpath.normpath(word))


def _matches_glob(pattern: str, name: str) -> bool:
    if not _GLOB.search(pattern):
        return plain_word(pattern) == name
    return len(pattern) <= 200 and fnmatchcase(name, re.sub(r"\*+", "*", pattern))


def _display_path(path: str) -> str:
    words = plain_word(path).replace(HOME, "~").replace(UNKNOWN, "…")
    return shorten_line("".join(c if c.isprintable() else "?" for c in words), 80)


def _split_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options, and everything else."""
    options: list[str] = []
    operands: list[str] = []
    for at, word in enumerate(arguments):
        text = plain_word(word)
        if text == "--":
            return options, [*operands, *arguments[at + 1 :]]
        (options if text.startswith("-") and len(text) > 1 else operands).append(text if text.startswith("-") else word)
    return options, operands


def _has_option(options: Sequence[str], letters: str, *longs: str) -> bool:
    """Tell whether there is a letter, alone or among others, or a long option or a beginning of it."""
    short = (word for word in options if not word.startswith("--"))
    return any(letter in word for word in short for letter in letters) or any(
        long.startswith(word.partition("=")[0])
        for word in options
        if len(word) > 3 and word[:2] == "--"
        for long in longs
    )


def _first_reason(reasons: Sequence[str]) -> str:
    return next(filter(None, reasons), "")


def _check_delete(arguments: Sequence[str], folder: str) -> str:
    options, operands = _split_options(arguments)
    if _NOT_KEPT in options:
        return f"It asks for {_NOT_KEPT}."
    if _has_option(options, "rR", "--recursive") and (
        what := _first_reason([_system_target(each, folder) for each in operands])
    ):
        return f"It deletes {what} with everything in it."
    return _first_reason([find_write_harm(each, folder) for each in operands])


def _check_mode(arguments: Sequence[str], folder: str) -> str:
    options, operands = _split_options(arguments)
    if _NOT_KEPT in options:
        return f"It asks for {_NOT_KEPT}."
    if _has_option(options, "R", "--recursive") and (
        what := _first_reason([_system_target(each, folder) for each in operands])
    ):
        return f"It changes the rights of everything in {what}."
    return ""


def _check_move(arguments: Sequence[str], folder: str) -> str:
    options, operands = _split_options(arguments)
    into = "-t" in options or _has_option(options, "", "--target-directory")
    sources, target = (operands, []) if into else (operands[:-1], operands[-1:])
    if what := _first_reason([_system_target(each, folder) for each in sources]):
        return f"It moves {what} away."
    return _first_reason([find_write_harm(each, folder) for each in [*sources, *target]])


def _check_copy(arguments: Sequence[str], folder: str) -> str:
    return _first_reason([find_write_harm(each, folder) for each in _split_options(arguments)[1][-1:]])


def _check_overwrite(arguments: Sequence[str], folder: str) -> str:
    return _first_reason([find_write_harm(each, folder) for each in _split_options(arguments)[1]])


def _check_edit(arguments: Sequence[str], folder: str) -> str:
    options, operands = _split_options(arguments)
    return _check_overwrite(operands, folder) if _has_option(options, "i", "--in-place") else ""


def _check_sync(arguments: Sequence[str], folder: str) -> str:
    options, operands = _split_options(arguments)
    if not any(word.startswith("--del") for word in options):
        return ""
    what = _first_reason([_system_target(each, folder) for each in operands[-1:]])
    return f"It deletes what is in {what} and not in its source." if what else ""


def _check_dump(arguments: Sequence[str], folder: str) -> str:
    return _first_reason(
        [find_write_harm(word.partition("=")[2], folder) for word in arguments if plain_word(word).startswith("of=")]
    )


def _check_archive(arguments: Sequence[str], folder: str) -> str:
    """Refuse an archive command that deletes the files it packs."""
    options, operands = _split_options(arguments)
    what = _first_reason([_system_target(each, folder) for each in operands])
    return f"It deletes {what} with everything in it." if what and _has_option(options, "", "--remove-files") else ""


def _check_partition(telling: str, arguments: Sequence[str], folder: str) -> str:
    """Allow options that only list partitions: the letters in `telling`, and some long options."""
    options = _split_options(arguments)[0]
    return (
        ""
        if _has_option(options, telling, *_TELLING) or _ASKING.intersection(options)
        else _check_format(arguments, folder)
    )


def _check_disk_tool(arguments: Sequence[str], folder: str) -> str:
    return _check_format(arguments, folder) if _ENDING_VERBS.intersection(map(plain_word, arguments)) else ""


def _check_format(arguments: Sequence[str], folder: str) -> str:
    """Refuse formatting a device; a file that is to hold a file system is not a disk."""
    for word in _split_options(arguments)[1]:
        path = _absolute_path(word, folder)
        if (path or "").startswith("/dev/") or UNKNOWN in word:
            return "It formats or erases a disk."
    return ""


def _check_wipe(arguments: Sequence[str], folder: str) -> str:
    """Refuse wiping; without these options the command only lists what is there."""
    options, _ = _split_options(arguments)
    wipes = _has_option(options, "ao", "--all", "--offset") and not _has_option(options, "n", "--no-act")
    return _check_format(arguments, folder) if wipes else ""


def _check_kill(arguments: Sequence[str], _: str) -> str:
    words = [plain_word(word) for word in arguments]
    if words[:1] and words[0] in ("-s", "-n", "--signal"):
        words = words[2:]
    elif words[:1] and words[0].startswith("-") and words[0] != "--" and len(words) > 1:
        words = words[1:]
    return "It ends every process of this user, or of this machine." if "-1" in words else ""


def _check_shutdown(arguments: Sequence[str], _: str) -> str:
    words = {plain_word(word) for word in arguments}
    return "" if words & {"--help", "--version", "-c", "-w", "--wtmp-only", "--show"} else _DOWN


def _check_init(arguments: Sequence[str], _: str) -> str:
    return _DOWN if any(plain_word(word) in ("0", "1", "6", "s", "S") for word in arguments) else ""


def _check_service(arguments: Sequence[str], _: str) -> str:
    options, operands = _split_options(arguments)
    words = [plain_word(word) for word in operands]
    if not words or _ASKING.intersection(options):
        return ""
    if words[0] in ("start", "isolate"):
        return _DOWN if any(_DOWN_UNITS.fullmatch(word) for word in words[1:]) else ""
    return _DOWN if words[0] in ("poweroff", "reboot", "halt", "kexec", "soft-reboot", "rescue", "emergency") else ""


def _check_kexec(arguments: Sequence[str], _: str) -> str:
    return _DOWN if _has_option(_split_options(arguments)[0], "e", "--exec") else ""


def _check_killall(*_: object) -> str:
    return "It ends every process of this user, or of this machine."


_RULES: Mapping[str, Callable[[Sequence[str], str], str]] = MappingProxyType(
    {
        "rm": _check_delete,
        **dict.fromkeys(("chmod", "chown", "chgrp"), _check_mode),
        "mv": _check_move,
        **dict.fromkeys(("cp", "install", "ln"), _check_copy),
        **dict.fromkeys(("tee", "truncate", "shred", "unlink"), _check_overwrite),
        "sed": _check_edit,
        "rsync": _check_sync,
        "dd": _check_dump,
        **dict.fromkeys(("mkfs", "mke2fs", "mkswap", "blkdiscard"), _check_format),
        "wipefs": _check_wipe,
        "tar": _check_archive,
        **dict.fromkeys(("sfdisk", "fdisk", "cfdisk"), partial(_check_partition, "ldsJV")),
        **dict.fromkeys(("sgdisk", "gdisk"), partial(_check_partition, "lpivbO")),
        **dict.fromkeys(("parted", "cryptsetup", "nvme"), _check_disk_tool),
        "kill": _check_kill,
        "killall5": _check_killall,
        **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff"), _check_shutdown),
        **dict.fromkeys(("init", "telinit"), _check_init),
        **dict.fromkeys(("systemctl", "loginctl"), _check_service),
        "kexec": _check_kexec,
    }
)

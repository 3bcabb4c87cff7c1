"""What single commands do to a machine as a whole (C6): each by its own rule, a sentence or nothing. Knows paths and
options, and no shell."""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from types import MappingProxyType

from hummingbird.domain.shell_parameters import HOME, UNKNOWN
from hummingbird.domain.shell_words import plain
from hummingbird.domain.text import shortened

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
_TO_THE_TOP = re.compile(r"(?:\.\./){3,}\.\.(?:/|$)")  # from wherever one is likely to be
_NOT_KEPT = "--no-preserve-root"
_DOWN = "It ends or restarts this machine."
_DOWN_UNITS = re.compile(r"(?:poweroff|reboot|halt|kexec|rescue|emergency|shutdown|runlevel[016])(?:\.target)?")
_TELLING = ("--list", "--dump", "--print", "--info", "--verify", "--backup", "--show-size", "--show-geometry")
_ENDING_VERBS = frozenset(
    ("mklabel", "mktable", "rm", "luksErase", "erase", "luksFormat", "reencrypt", "format", "sanitize")
)
_ASKING = frozenset(("--help", "-h", "--version", "-V"))


def harm(name: str, arguments: Sequence[str], folder: str) -> str:
    """Why this command, run in this folder (empty: not known), is refused; empty if it is not."""
    rule = _RULES.get(name)
    if rule is None and name.startswith("mkfs."):
        rule = _format
    return rule(arguments, folder) if rule else ""


def find_alike(pattern: str) -> list[str]:
    """Return the commands with a rule whose name this glob could stand for."""
    return [name for name in _RULES if _alike(pattern, name)]


def ruined(target: str, folder: str) -> str:
    """Why nothing may be written there."""
    path = _path(target, folder)
    if path is None:
        return ""
    if _DISK.match(path):
        return f"It writes over the device {_shown(path)}."
    if path in _ACCOUNTS or (_GLOB.search(path) and any(_alike(path, each) for each in _ACCOUNTS)):
        return f"It writes over {_shown(path)}, which says who may use this machine."
    return _DOWN if path == "/proc/sysrq-trigger" else ""


def _whole(target: str, folder: str) -> str:
    """What of a machine or of a person it is as a whole, for a sentence; empty if it is a part, or not known."""
    path = _path(target, folder)
    if path is None:
        return ""
    parts = [part for part in path.split("/") if part]
    while parts and _EVERYTHING.fullmatch(parts[-1]):
        parts.pop()
    if not parts:
        return "/"
    if len(parts) == 2 and parts[0] in _HOMES:
        return "the home directory" if path.startswith(HOME) else _shown("/" + "/".join(parts))
    if any(len(each) == len(parts) and all(map(_alike, parts, each)) for each in _PROTECTED):
        return _shown("/" + "/".join(parts))
    return ""


def _path(word: str, folder: str) -> str | None:
    """Absolute and without detours; None where that depends on what nobody knows."""
    if not word or word.startswith(UNKNOWN):
        return None
    if not word.startswith("/"):
        if not folder and not _TO_THE_TOP.match(posixpath.normpath(word)):
            return None
        word = posixpath.join(folder or "/", word)
    return re.sub(r"^/+", "/", posixpath.normpath(word))


def _alike(pattern: str, name: str) -> bool:
    if not _GLOB.search(pattern):
        return plain(pattern) == name
    return len(pattern) <= 200 and fnmatchcase(name, re.sub(r"\*+", "*", pattern))


def _shown(path: str) -> str:
    words = plain(path).replace(HOME, "~").replace(UNKNOWN, "…")
    return shortened("".join(c if c.isprintable() else "?" for c in words), 80)


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Options, and everything else."""
    options: list[str] = []
    operands: list[str] = []
    for at, word in enumerate(arguments):
        text = plain(word)
        if text == "--":
            return options, [*operands, *arguments[at + 1 :]]
        (options if text.startswith("-") and len(text) > 1 else operands).append(text if text.startswith("-") else word)
    return options, operands


def _has(options: Sequence[str], letters: str, *longs: str) -> bool:
    """A letter, alone or among others, or a long option or a beginning of it."""
    short = (word for word in options if not word.startswith("--"))
    return any(letter in word for word in short for letter in letters) or any(
        long.startswith(word.partition("=")[0])
        for word in options
        if len(word) > 3 and word[:2] == "--"
        for long in longs
    )


def _first(reasons: Sequence[str]) -> str:
    return next(filter(None, reasons), "")


def _delete(arguments: Sequence[str], folder: str) -> str:
    options, operands = _parted(arguments)
    if _NOT_KEPT in options:
        return f"It asks for {_NOT_KEPT}."
    if _has(options, "rR", "--recursive") and (what := _first([_whole(each, folder) for each in operands])):
        return f"It deletes {what} with everything in it."
    return _first([ruined(each, folder) for each in operands])


def _mode(arguments: Sequence[str], folder: str) -> str:
    options, operands = _parted(arguments)
    if _NOT_KEPT in options:
        return f"It asks for {_NOT_KEPT}."
    if _has(options, "R", "--recursive") and (what := _first([_whole(each, folder) for each in operands])):
        return f"It changes the rights of everything in {what}."
    return ""


def _move(arguments: Sequence[str], folder: str) -> str:
    options, operands = _parted(arguments)
    into = "-t" in options or _has(options, "", "--target-directory")
    sources, target = (operands, []) if into else (operands[:-1], operands[-1:])
    if what := _first([_whole(each, folder) for each in sources]):
        return f"It moves {what} away."
    return _first([ruined(each, folder) for each in [*sources, *target]])


def _copy(arguments: Sequence[str], folder: str) -> str:
    return _first([ruined(each, folder) for each in _parted(arguments)[1][-1:]])


def _overwrite(arguments: Sequence[str], folder: str) -> str:
    return _first([ruined(each, folder) for each in _parted(arguments)[1]])


def _edit(arguments: Sequence[str], folder: str) -> str:
    options, operands = _parted(arguments)
    return _overwrite(operands, folder) if _has(options, "i", "--in-place") else ""


def _sync(arguments: Sequence[str], folder: str) -> str:
    options, operands = _parted(arguments)
    if not any(word.startswith("--del") for word in options):
        return ""
    what = _first([_whole(each, folder) for each in operands[-1:]])
    return f"It deletes what is in {what} and not in its source." if what else ""


def _dump(arguments: Sequence[str], folder: str) -> str:
    return _first([ruined(word.partition("=")[2], folder) for word in arguments if plain(word).startswith("of=")])


def _pack(arguments: Sequence[str], folder: str) -> str:
    """An archive that takes its files away with it."""
    options, operands = _parted(arguments)
    what = _first([_whole(each, folder) for each in operands])
    return f"It deletes {what} with everything in it." if what and _has(options, "", "--remove-files") else ""


def _partition(telling: str, arguments: Sequence[str], folder: str) -> str:
    """With letters like these, and some long options, it only tells what is there."""
    options = _parted(arguments)[0]
    return "" if _has(options, telling, *_TELLING) or _ASKING.intersection(options) else _format(arguments, folder)


def _on_disk(arguments: Sequence[str], folder: str) -> str:
    return _format(arguments, folder) if _ENDING_VERBS.intersection(map(plain, arguments)) else ""


def _format(arguments: Sequence[str], folder: str) -> str:
    """A file that is to hold a file system is nobody's disk."""
    for word in _parted(arguments)[1]:
        path = _path(word, folder)
        if (path or "").startswith("/dev/") or UNKNOWN in word:
            return "It makes a new file system, or nothing, of a disk."
    return ""


def _wipe(arguments: Sequence[str], folder: str) -> str:
    """Without these options it only tells what is there."""
    options, _ = _parted(arguments)
    wipes = _has(options, "ao", "--all", "--offset") and not _has(options, "n", "--no-act")
    return _format(arguments, folder) if wipes else ""


def _kill(arguments: Sequence[str], _: str) -> str:
    words = [plain(word) for word in arguments]
    if words[:1] and words[0] in ("-s", "-n", "--signal"):
        words = words[2:]
    elif words[:1] and words[0].startswith("-") and words[0] != "--" and len(words) > 1:
        words = words[1:]
    return "It ends every process of this user, or of this machine." if "-1" in words else ""


def _down(arguments: Sequence[str], _: str) -> str:
    words = {plain(word) for word in arguments}
    return "" if words & {"--help", "--version", "-c", "-w", "--wtmp-only", "--show"} else _DOWN


def _init(arguments: Sequence[str], _: str) -> str:
    return _DOWN if any(plain(word) in ("0", "1", "6", "s", "S") for word in arguments) else ""


def _service(arguments: Sequence[str], _: str) -> str:
    options, operands = _parted(arguments)
    words = [plain(word) for word in operands]
    if not words or _ASKING.intersection(options):
        return ""
    if words[0] in ("start", "isolate"):
        return _DOWN if any(_DOWN_UNITS.fullmatch(word) for word in words[1:]) else ""
    return _DOWN if words[0] in ("poweroff", "reboot", "halt", "kexec", "soft-reboot", "rescue", "emergency") else ""


def _jump(arguments: Sequence[str], _: str) -> str:
    return _DOWN if _has(_parted(arguments)[0], "e", "--exec") else ""


def _everybody(*_: object) -> str:
    return "It ends every process of this user, or of this machine."


_RULES: Mapping[str, Callable[[Sequence[str], str], str]] = MappingProxyType(
    {
        "rm": _delete,
        **dict.fromkeys(("chmod", "chown", "chgrp"), _mode),
        "mv": _move,
        **dict.fromkeys(("cp", "install", "ln"), _copy),
        **dict.fromkeys(("tee", "truncate", "shred", "unlink"), _overwrite),
        "sed": _edit,
        "rsync": _sync,
        "dd": _dump,
        **dict.fromkeys(("mkfs", "mke2fs", "mkswap", "blkdiscard"), _format),
        "wipefs": _wipe,
        "tar": _pack,
        **dict.fromkeys(("sfdisk", "fdisk", "cfdisk"), partial(_partition, "ldsJV")),
        **dict.fromkeys(("sgdisk", "gdisk"), partial(_partition, "lpivbO")),
        **dict.fromkeys(("parted", "cryptsetup", "nvme"), _on_disk),
        "kill": _kill,
        "killall5": _everybody,
        **dict.fromkeys(("shutdown", "reboot", "halt", "poweroff"), _down),
        **dict.fromkeys(("init", "telinit"), _init),
        **dict.fromkeys(("systemctl", "loginctl"), _service),
        "kexec": _jump,
    }
)

"""Commands that run another command: which one that is. Knows their options as far as
one could be taken for the command."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from hummingbird.domain.host_limits import SHELL_STEPS
from hummingbird.domain.shell_parameters import UNKNOWN
from hummingbird.domain.shell_words import TooInvolved, plain

SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash"])

# Name → letters of options that take a value, words before the command itself
_WRAPPERS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "sudo": ("ughpCDRTrtU", 0),
        "doas": ("uC", 0),
        "pkexec": ("", 0),
        "env": ("uC", 0),
        "nohup": ("", 0),
        "setsid": ("", 0),
        "timeout": ("sk", 1),
        "nice": ("n", 0),
        "ionice": ("cnptPu", 0),
        "chrt": ("TPD", 1),
        "taskset": ("", 1),
        "stdbuf": ("ioe", 0),
        "unbuffer": ("", 0),
        "exec": ("a", 0),
        "command": ("", 0),
        "builtin": ("", 0),
        "time": ("fo", 0),
        "busybox": ("", 0),
        "toybox": ("", 0),
        "xargs": ("InPLdEsa", 0),
        "parallel": ("jPnNLISadCsE", 0),
        "strace": ("eopsuPaIOSX", 0),
        "flock": ("wE", 1),
        "systemd-run": ("pEMu", 0),
        "unshare": ("SGR", 0),
        "catchsegv": ("", 0),
        "chroot": ("", 1),
        "setpriv": ("", 0),
        "runuser": ("ugGscw", 0),
        "fakeroot": ("", 0),
        "ltrace": ("aAbDeFlnoOpsuwxX", 0),
        "valgrind": ("", 0),
        "xvfb-run": ("efnpsw", 0),
        "dbus-run-session": ("", 0),
        "prlimit": ("", 0),
        "numactl": ("CNimlp", 0),
        "nsenter": ("tSG", 0),
        "gtimeout": ("sk", 1),
    }
)
_LONG_WITH_VALUE = frozenset(
    [
        "--user",
        "--group",
        "--host",
        "--prompt",
        "--chdir",
        "--chroot",
        "--unset",
        "--signal",
        "--kill-after",
        "--adjustment",
        "--class",
        "--classdata",
        "--input",
        "--output",
        "--error",
        "--max-args",
        "--max-procs",
        "--delimiter",
        "--arg-file",
        "--timeout",
        "--property",
        "--jobs",
        "--colsep",
        "--delay",
        "--joblog",
        "--results",
        "--retries",
        "--halt",
        "--workdir",
        "--wd",
        "--sshlogin",
    ]
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SOURCES = frozenset((":::", ":::+", "::::", "::::+"))  # of arguments: words, or files if there are four
_FIELD = re.compile(r"\{(\d*)\.?\}")
_ACTIVE = re.compile(r"[\s\\'\"$`;&|<>()#~]")
_ASKS_ONLY = frozenset(("-v", "-V"))  # `command -v`


def unwrapped(words: list[str], piped: str | None) -> list[str]:
    """The command that is run in the end; empty if there is none."""
    while words:
        name = posixpath.basename(plain(words[0]))
        if name not in _WRAPPERS or name == "parallel":  # which makes scripts
            return words
        inner = _inner(name, words)
        if name == "xargs" and any(
            plain(word).startswith(("-a", "--arg-file")) for word in words[: len(words) - len(inner)]
        ):
            piped = UNKNOWN
        if name == "xargs" and piped:
            inner = _fed(inner, piped.split(), _placeholder(words[1 : len(words) - len(inner)]))
        words = inner
    return words


def _fed(words: Sequence[str], values: Sequence[str], placeholder: str) -> list[str]:
    """What `xargs` makes of its input: more words, or some in the place of others."""
    holding = [bool(placeholder) and placeholder in plain(word) for word in words]
    if not any(holding):
        return [*words, *values]
    joined = " ".join(values)
    _bound(len(joined) * sum(plain(word).count(placeholder) for word in words))
    fed: list[str] = []
    for word, holds in zip(words, holding, strict=True):
        whole = plain(word) == placeholder
        fed += values if whole else [plain(word).replace(placeholder, joined) if holds else word]
    return fed


def _placeholder(options: Sequence[str]) -> str:
    """`-I {}`, `-I{}`, `--replace=X`; `-i` and `--replace` alone mean braces."""
    words = [plain(word) for word in options]
    for at, word in enumerate(words):
        if word == "-I":
            return "".join(words[at + 1 : at + 2])
        for prefix in ("-I", "-i", "--replace="):
            if word.startswith(prefix):
                return word[len(prefix) :] or "{}"
        if word == "--replace":
            return "{}"
    return ""


def _bound(chars: int) -> None:
    """A small command can make a very long one."""
    if chars > SHELL_STEPS:
        raise TooInvolved


def _inner(name: str, words: Sequence[str]) -> list[str]:
    letters, operands = _WRAPPERS[name]
    at = 1
    while at < len(words):
        word = plain(words[at])
        if name == "env" and (split := _split_string(words, at)) is not None:
            return split
        if name == "command" and word in _ASKS_ONLY:
            return []
        if word.startswith("-") and len(word) > 1:
            at += 2 if _takes_value(word, letters) else 1
        elif _ASSIGNMENT.match(word):
            at += 1
        elif operands:
            operands -= 1
            at += 1
        else:
            break
    return list(words[at:])


def _takes_value(word: str, letters: str) -> bool:
    """Whether the next word belongs to it: `-u root`, `-nu root`; neither `-uroot` nor `--user=root`."""
    if word.startswith("--"):
        return word in _LONG_WITH_VALUE
    first = next((at for at, letter in enumerate(word[1:]) if letter in letters), None)
    return first is not None and first == len(word) - 2


def _split_string(words: Sequence[str], at: int) -> list[str] | None:
    """`env -S 'rm -rf /'`"""
    word = plain(words[at])
    if word in ("-S", "--split-string"):
        return [*" ".join(map(plain, words[at + 1 : at + 2])).split(), *words[at + 2 :]]
    for prefix in ("-S", "--split-string="):
        if word.startswith(prefix):
            return [*word[len(prefix) :].split(), *words[at + 1 :]]
    return None


def script_of(name: str, arguments: Sequence[str], given: str = "") -> tuple[str | None, list[str]]:
    """What the shell, or what is like one, is told to run, and its arguments from `$0` on. None: what it is given."""
    if name == "parallel":
        return _paralleled(_inner(name, [name, *arguments]), given), []
    words = [plain(word) for word in arguments]
    if name == "eval":
        return " ".join(words), []
    if name == "trap":
        return (words[0] if words and not words[0].startswith("-") else ""), []
    if name == "watch":
        return " ".join(_inner_of_watch(words)), []
    return _told(words)


def _paralleled(words: Sequence[str], given: str) -> str:
    """`parallel rm -rf {} ::: a b`: one command for each argument. Where there is none, the arguments are commands."""
    begins = next((at for at, word in enumerate(words) if plain(word) in _SOURCES), len(words))
    sources = [source for source in _sources(words[begins:]) or [given.splitlines()] if source]
    template = " ".join(map(plain, words[:begins]))
    if not template or not sources:
        return "\n".join([template, *(plain(word) for source in sources for word in source)])
    template = template if _FIELD.search(template) else f"{template} {{}}"
    _bound(_jobs_chars(template, sources))
    return "\n".join(f"({_filled(template, values)}\n)" for values in _combined(sources))


def _jobs_chars(template: str, sources: Sequence[Sequence[str]]) -> int:
    """How long all the commands together become, or a little less."""
    jobs, fields = sum(map(len, sources)), len(_FIELD.findall(template))
    others = sum(len(source[0]) + 1 for source in sources) if len(sources) > 1 else 0
    arguments = sum(len(word) + 1 for source in sources for word in source)
    return jobs * (len(template) + fields * others) + fields * arguments


def _combined(sources: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Every argument once, with the first ones of the other sources: not all there are, which may be very many."""
    firsts = [source[0] for source in sources]
    for at, source in enumerate(sources):
        yield from ([*firsts[:at], word, *firsts[at + 1 :]] for word in source)


def quote_word(word: str) -> str:
    """Escape a word so that a shell reads it as it is."""
    return _ACTIVE.sub(r"\\\g<0>", word).replace("\\\n", "'\n'") or "''"


def _filled(template: str, values: Sequence[str]) -> str:
    quoted = [_ACTIVE.sub(r"\\\g<0>", word) for word in values]
    joined = " ".join(quoted)

    def value(field: re.Match[str]) -> str:
        number = int(field[1][:4] or 0)
        return "".join(quoted[number - 1 : number]) if number else joined

    return _FIELD.sub(value, template)


def _sources(words: Sequence[str]) -> list[list[str]]:
    """What stands in files is not known."""
    sources: list[list[str]] = []
    from_files = False
    for word in words:
        if plain(word) in _SOURCES:
            from_files = plain(word).startswith("::::")
            sources.append([])
        elif not from_files:
            sources[-1].append(word)
    return sources


def _inner_of_watch(words: Sequence[str]) -> Sequence[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-n", "--interval") else 1
    return words[at:]


def _told(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """By `-c`, wherever it stands among the options; None where there is neither that nor a file."""
    at, told = 0, False
    while at < len(words) and words[at][:1] in ("-", "+") and words[at] not in ("-", "--"):
        if words[at].startswith("--command="):
            return words[at].partition("=")[2], list(words[at + 1 :])
        told = told or words[at] == "--command" or (not words[at].startswith("--") and "c" in words[at])
        at += 2 if words[at] in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") else 1
    rest = list(words[at:])
    if told:
        return (rest[0] if rest else ""), rest[1:]
    late = next((i for i, word in enumerate(rest) if word in ("-c", "--command")), None)
    if late is not None:  # `su root -c '…'`
        return (rest[late + 1] if late + 1 < len(rest) else ""), []
    if rest and rest[0] not in ("-", "--", "/dev/stdin"):
        return "", rest  # a file, which may be known
    return None, []

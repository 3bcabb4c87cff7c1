"""Find the command that a wrapper such as `sudo`, `env`, `xargs` or `sh -c` runs.

The tables know a wrapper's options as far as one could be mistaken for the command.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from hummingbird.core.shell.parser import CommandTooComplex, plain_word
from hummingbird.core.shell.values import SHELL_STEPS, UNKNOWN

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
        **dict.fromkeys(("setarch", "linux32", "linux64", "i386", "i686", "x86_64"), ("", 0)),
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
_SOURCES = frozenset((":::", ":::+", "::::", "::::+"))  # sources of arguments: words, or files with four colons
_STANDARD_INPUT = re.compile(r"/dev/stdin|(?:/dev|/proc/[^/]+)/fd/0")
_MACHINE = re.compile(r"uname26|linux(?:32|64)|i[3-6]86|x86_64|athlon|(?:aarch|arm|mips|parisc|ppc|s390|sparc)\w*")
_FIELD = re.compile(r"\{(\d*)\.?\}")
_ACTIVE = re.compile(r"[\s\\'\"$`;&|<>()#~]")
_ASKS_ONLY = frozenset(("-v", "-V"))  # `command -v`


def unwrap_command(words: list[str], piped: str | None) -> list[str]:
    """Return the command that is run in the end; empty if there is none."""
    while words:
        name = posixpath.basename(plain_word(words[0]))
        if name not in _WRAPPERS or name == "parallel":  # `parallel` makes scripts, see find_script
            return words
        inner = _inner_command(name, words)
        if name == "xargs" and any(
            plain_word(word).startswith(("-a", "--arg-file")) for word in words[: len(words) - len(inner)]
        ):
            piped = UNKNOWN
        if name == "xargs" and piped:
            options = words[1 : len(words) - len(inner)]
            inner = _apply_xargs(inner, split_input(piped, options), _placeholder(options))
        words = inner
    return words


def split_input(text: str, options: Sequence[str]) -> list[str]:
    """Return the arguments that `xargs` with these options makes of its input."""
    words = [plain_word(word) for word in options]
    if any(re.fullmatch(r"-[a-zA-Z]*0|--null", word) for word in words):
        return [value for value in text.split("\0") if value.strip()]
    for at, word in enumerate(words):
        if word.startswith(("-d", "--delimiter")):
            attached = word.removeprefix("-d").removeprefix("--delimiter").removeprefix("=")
            delimiter = attached or "".join(words[at + 1 : at + 2])
            return text.split(delimiter) if len(delimiter) == 1 else [UNKNOWN]
    try:
        return shlex.split(text) if re.search(r"[\\'\"]", text) else text.split()
    except ValueError:
        return [UNKNOWN]


def _apply_xargs(words: Sequence[str], values: Sequence[str], placeholder: str) -> list[str]:
    """Return the command with the input of `xargs` appended, or in place of its placeholder."""
    holding = [bool(placeholder) and placeholder in plain_word(word) for word in words]
    if not any(holding):
        return [*words, *values]
    joined = " ".join(values)
    _check_length(len(joined) * sum(plain_word(word).count(placeholder) for word in words))
    fed: list[str] = []
    for word, holds in zip(words, holding, strict=True):
        whole = plain_word(word) == placeholder
        fed += values if whole else [plain_word(word).replace(placeholder, joined) if holds else word]
    return fed


def _placeholder(options: Sequence[str]) -> str:
    """Return the placeholder of `-I {}`, `-I{}` or `--replace=X`; `-i` and `--replace` alone mean braces."""
    words = [plain_word(word) for word in options]
    for at, word in enumerate(words):
        if word == "-I":
            return "".join(words[at + 1 : at + 2])
        for prefix in ("-I", "-i", "--replace="):
            if word.startswith(prefix):
                return word[len(prefix) :] or "{}"
        if word == "--replace":
            return "{}"
    return ""


def _check_length(chars: int) -> None:
    """Raise CommandTooComplex if a small command would make a very long one."""
    if chars > SHELL_STEPS:
        raise CommandTooComplex


def _inner_command(name: str, words: Sequence[str]) -> list[str]:
    letters, operands = _WRAPPERS[name]
    at = 1
    while at < len(words):
        word = plain_word(words[at])
        if name == "env" and (split := _split_string(words, at)) is not None:
            return split
        if name == "command" and word in _ASKS_ONLY:
            return []
        if name == "flock" and word in ("-c", "--command") and not operands:
            return ["sh", "-c", *words[at + 1 :]]
        if name == "setarch" and at == 1 and _MACHINE.fullmatch(word):
            at += 1
            continue
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
    """Tell whether the next word belongs to the option: `-u root`, `-nu root`; not `-uroot`, `--user=root`."""
    if word.startswith("--"):
        return word in _LONG_WITH_VALUE
    first = next((at for at, letter in enumerate(word[1:]) if letter in letters), None)
    return first is not None and first == len(word) - 2


def _split_string(words: Sequence[str], at: int) -> list[str] | None:
    """Return the words of `env -S 'rm -rf /'`."""
    word = plain_word(words[at])
    if word in ("-S", "--split-string"):
        return [*" ".join(map(plain_word, words[at + 1 : at + 2])).split(), *words[at + 2 :]]
    for prefix in ("-S", "--split-string="):
        if word.startswith(prefix):
            return [*word[len(prefix) :].split(), *words[at + 1 :]]
    return None


def find_script(name: str, arguments: Sequence[str], given: str = "") -> tuple[str | None, list[str]]:
    """Return the script that a shell or a similar command runs, and its arguments from `$0` on.

    The script is None when the command reads it from its standard input.
    """
    if name == "parallel":
        return _parallel_script(_inner_command(name, [name, *arguments]), given), []
    words = [plain_word(word) for word in arguments]
    if name == "eval":
        return " ".join(words), []
    if name == "trap":
        words = words[1:] if words[:1] == ["--"] else words
        return (words[0] if words and not words[0].startswith("-") else ""), []
    if name == "watch":
        return " ".join(_watch_command(words)), []
    return _shell_script(words)


def _parallel_script(words: Sequence[str], given: str) -> str:
    """Return the commands of `parallel rm -rf {} ::: a b`, one per argument.

    Without a template the arguments themselves are the commands.
    """
    begins = next((at for at, word in enumerate(words) if plain_word(word) in _SOURCES), len(words))
    sources = [source for source in _argument_sources(words[begins:]) or [given.splitlines()] if source]
    template = " ".join(map(plain_word, words[:begins]))
    if not template or not sources:
        return "\n".join([template, *(plain_word(word) for source in sources for word in source)])
    template = template if _FIELD.search(template) else f"{template} {{}}"
    _check_length(_parallel_chars(template, sources))
    return "\n".join(f"({_fill_template(template, values)}\n)" for values in _combine_sources(sources))


def _parallel_chars(template: str, sources: Sequence[Sequence[str]]) -> int:
    """Return a lower bound for the length of all the commands together."""
    jobs, fields = sum(map(len, sources)), len(_FIELD.findall(template))
    others = sum(len(source[0]) + 1 for source in sources) if len(sources) > 1 else 0
    arguments = sum(len(word) + 1 for source in sources for word in source)
    return jobs * (len(template) + fields * others) + fields * arguments


def _combine_sources(sources: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield each argument once, with the first of each other source; all combinations could be very many."""
    firsts = [source[0] for source in sources]
    for at, source in enumerate(sources):
        yield from ([*firsts[:at], word, *firsts[at + 1 :]] for word in source)


def quote_word(word: str) -> str:
    """Escape a word so that a shell reads it as it is."""
    return _ACTIVE.sub(r"\\\g<0>", word).replace("\\\n", "'\n'") or "''"


def _fill_template(template: str, values: Sequence[str]) -> str:
    quoted = [_ACTIVE.sub(r"\\\g<0>", word) for word in values]
    joined = " ".join(quoted)

    def value(field: re.Match[str]) -> str:
        number = int(field[1][:4] or 0)
        return "".join(quoted[number - 1 : number]) if number else joined

    return _FIELD.sub(value, template)


def _argument_sources(words: Sequence[str]) -> list[list[str]]:
    """Return the arguments of each source; those in files are not known."""
    sources: list[list[str]] = []
    from_files = False
    for word in words:
        if plain_word(word) in _SOURCES:
            from_files = plain_word(word).startswith("::::")
            sources.append([])
        elif not from_files:
            sources[-1].append(word)
    return sources


def _watch_command(words: Sequence[str]) -> Sequence[str]:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-n", "--interval") else 1
    return words[at:]


def _shell_script(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Find the script of `-c`, wherever it stands among the options; None if there is neither that nor a file."""
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
    if rest and rest[0] not in ("-", "--") and not _STANDARD_INPUT.fullmatch(rest[0]):
        return "", rest  # a file, which may be known
    return None, []

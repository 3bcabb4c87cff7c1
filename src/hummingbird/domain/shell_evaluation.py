"""Follow a shell command without running it: which commands it would run, with which words, and what cannot be told.

`ShellEvaluation` keeps variables, functions, aliases, the folder and the files that the command itself writes. It reads
the command from top to bottom, both sides of every condition included, and takes no branch back; so a variable that is
set twice is followed in several readings (`evaluate_command`). Pure, total on any text, and bounded: what takes more
than `SHELL_STEPS` raises `TooInvolved`.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile

from hummingbird.domain.host_limits import SHELL_FILE_CHARS, SHELL_OPTIONS, SHELL_STEPS, SHELL_WORD_CHARS
from hummingbird.domain.ruinous import find_alike, harm, ruined
from hummingbird.domain.shell_builtins import decode_base64, print_words, read_names, split_line, split_printf
from hummingbird.domain.shell_parameters import HOME, SPLIT, UNKNOWN, join_values
from hummingbird.domain.shell_words import Reader, Simple, TooInvolved, plain
from hummingbird.domain.shell_wrappers import SHELLS, quote_word, script_of, unwrapped

FILE_NAME = "\ue003"  # some file's name, which nobody knows
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|.)?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]]*)\])?(\+?)=")
_GRAMMAR = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "while", "until", "esac", "coproc", "function", "!", "{", "}")
)
_SHELL_LIKE = frozenset(("eval", "su", "script", "watch", "trap", "source", ".", "parallel"))
_DECLARING = frozenset(("export", "declare", "typeset", "local", "readonly"))
_SETS_UNKNOWN = frozenset(("mapfile", "readarray", "getopts", "let"))
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
_FORKS = re.compile(r"\bfork\b[\s();]*(?:while|until)\b[\s();!]*fork\b|while\s*\(?1?\)?\s*\{?\s*fork\b")
_BOMB = "It is a fork bomb: it starts itself again and again until nothing else can run."
_BEFORE_A_COMMAND = frozenset(("{", "|", "|&", "&", ";", "&&", "||", "(", ")", "\n", "do", "then"))
_BOMB_TOKENS = 24  # of a function, within which it calls itself twice and does not wait
_NARROWING = re.compile(
    r"-(?:i?name|i?path|i?wholename|i?regex|[acm](?:min|time)|newer.*|size|user|uid|inum|samefile|empty)$"
)
_ENDING = frozenset(("rm", "shred", "truncate", "unlink"))  # with what is in a file
_VALUE_OPTIONS = {
    "git": frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix"))
}
_SHORT_OPTION = re.compile(r"-\w")  # of other programs: what follows it and is not known is taken for its value
_GLOB = re.compile(r"[*?\[]")
_GLOBBED_NAME = re.compile(r"(?=[\w/]).*[*?\[]|.*/.*[*?\[]")


def evaluate_command(command: str, folder: str = "") -> Iterator["ShellEvaluation"]:
    """Yield a reading of the command as it stands, one without its disguise, and more of each if variables change.

    Where a variable is set more than once, which value it has depends on what only running tells. Such variables are
    read with their last value, with their first, and as unknown. A reading is yielded before it begins, so that whoever
    meets TooInvolved has what was found until then.
    """
    for text in dict.fromkeys((command, _undisguise(command))):
        last = ShellEvaluation(folder)
        yield last
        last.read(text)
        for policy in ("first", "unknown") if last.changed else ():
            other = ShellEvaluation(folder, policy, frozenset(last.changed))
            yield other
            other.read(text)


def _undisguise(text: str) -> str:
    return _TERMINAL.sub("", text).translate(_Undisguising()) if not text.isascii() or not text.isprintable() else text


class _Undisguising(dict[int, str]):
    """Letter by letter: putting many combining marks in order takes the square of their number."""

    def __missing__(self, code: int) -> str:
        letters = unicodedata.normalize("NFKC", chr(code))
        self[code] = "".join(c for c in letters if c in "\n\t" or unicodedata.category(c)[0] not in "CM")
        return self[code]


class ShellEvaluation:
    """One reading of a command, and what was found in it.

    `commands`: each command that would run, as plain text with one space between two words, in several spellings if it
    has a path or options before its first argument. `uncertain`: those of them with `UNKNOWN` for each part that only
    running tells. `runs_unknown`: a command runs whose very name cannot be told. `sets_git`: a setting of git is given,
    and many of those are commands. `reason`: why the command is refused.
    """

    def __init__(self, folder: str = "", policy: str = "last", changing: frozenset[str] = frozenset()) -> None:
        self.commands: dict[str, None] = {}
        self.uncertain: dict[str, None] = {}
        self.runs_unknown = False
        self.sets_git = False
        self.reason = ""
        self.tokens: list[str] = []
        self.changed: set[str] = set()
        self.variables: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self._policy, self._changing = policy, changing
        self._functions: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._git_aliases: dict[str, str] = {}
        self._calling: list[str] = []
        self._folder = folder  # empty where it is not known
        self._folders: list[str] = []  # of the shells around this one
        self._steps = 0
        self._depth = 0
        self._listing = ""  # what a `find` that nothing narrows gives to others
        self._each = False  # what is run now is run for everything below its arguments
        self._running = True

    def read(self, text: str) -> None:
        """Raises TooInvolved."""
        if folder := self._folder:
            self.variables["PWD"] = folder
        Reader(text.replace("\\\n", ""), self).read()
        self.reason = self.reason or self._find_bomb()

    def spend(self, steps: int = 1) -> None:
        """Count the work; raises TooInvolved once it is too much."""
        self._steps += steps
        if self._steps > SHELL_STEPS:
            raise TooInvolved

    def assign(self, name: str, value: str) -> None:
        """Set a variable, as far as the policy of this reading lets it change."""
        if not self._running:
            return
        if name.startswith("GIT_CONFIG"):  # which can name aliases
            self.runs_unknown = True
        value = value if len(value) <= SHELL_WORD_CHARS else value[:SHELL_WORD_CHARS] + UNKNOWN
        if self.variables.get(name, value) != value:
            self.changed.add(name)
        if name in self._changing and self._policy == "unknown":
            self.variables[name] = UNKNOWN
        elif name not in self._changing or self._policy != "first" or name not in self.variables:
            self.variables[name] = value

    def define(self, name: str, body: str) -> None:
        """Keep a function for where it is called."""
        if self._functions.get(name, body) != body:
            self.runs_unknown = True  # which of them is called depends on the way there
        self._functions[name] = body

    def enter(self) -> None:
        """Begin a shell of its own."""
        self._folders.append(self._folder)

    def leave(self) -> None:
        """End the innermost shell."""
        if self._folders:
            self._folder = self._folders.pop()

    def run(self, command: Simple) -> str | None:
        """Follow one command; return what it prints, None if that is not known."""
        self.tokens += [*map(plain, command.words), command.after]
        for operator, target in command.redirects:
            if operator in _WRITES:
                self._note(ruined(target, self._folder))
        before, self._running = self._running, self._running and command.runs
        try:
            words = self._strip_grammar(list(command.words))
            printed = self._perform(words, command) if words else ""
            self._keep_files(command, printed)
        finally:
            self._running = before
        return printed

    def _keep_files(self, command: Simple, printed: str | None) -> None:
        for operator, target in command.redirects if self._running else ():
            if operator in (">", ">>", ">|", "&>", "&>>"):
                name = posixpath.normpath(plain(target))
                before = self.files.get(name, "") if operator.endswith(">>") else ""
                self._write_file(name, before + (UNKNOWN if printed is None else printed) + "\n")

    def _write_file(self, name: str, text: str) -> None:
        self.spend(1 + len(text) // 64)
        self.files[name] = text if len(text) <= SHELL_FILE_CHARS else UNKNOWN

    def _fed(self, command: Simple) -> str:
        """What the command reads from its standard input; empty if that is a terminal, or nothing."""
        for operator, target in command.redirects:
            if operator == "<":
                return self.files.get(posixpath.normpath(plain(target)), UNKNOWN)
        return command.given or command.piped or ""

    def _find_bomb(self) -> str:
        """A function that starts itself twice and does not wait."""
        for at, (name, following) in enumerate(pairwise(self.tokens)):
            defined = following == "(" or (at and self.tokens[at - 1] == "function")
            if name and defined and _multiplies(name, self.tokens[at + 2 : at + 2 + _BOMB_TOKENS]):
                return _BOMB
        return ""

    def _note(self, reason: str) -> None:
        self.reason = self.reason or reason

    def _strip_grammar(self, words: list[str]) -> list[str]:
        """Return the command without the grammar and the assignments before it."""
        while words:
            first = plain(words[0])
            if first in ("for", "select") and len(words) > 1:
                self._begin_loop(words)
                return []
            if assigned := _ASSIGNMENT.match(first):
                self._assign_word(words[0], assigned)
            elif first not in _GRAMMAR:
                break
            del words[: 2 if first == "function" else 1]
        return words

    def _begin_loop(self, words: Sequence[str]) -> None:
        name, values = plain(words[1]), words[3:]
        if not values:
            self.assign(name, UNKNOWN)
        elif self._policy == "first":
            self.assign(name, values[0])
        else:
            self.assign(name, join_values(values))
            if len(values) > 1:
                self.changed.add(name)

    def _assign_word(self, word: str, assigned: re.Match[str]) -> None:
        name, subscript, appends = assigned.groups()
        value = word.partition("=")[2]
        if subscript is not None:
            elements = self.variables.get(f"{name}[]", "").split(SPLIT)
            if subscript.isdecimal() and int(subscript[:4]) <= len(elements) and len(subscript) < 4:
                elements[int(subscript) : int(subscript) + 1] = [value]
                self.variables[f"{name}[]"] = join_values(elements)
                self.variables[name] = elements[0]
            else:
                self.variables[f"{name}[]"] = UNKNOWN
        else:
            self.assign(name, self.variables.get(name, "") + value if appends else value)

    def _perform(self, words: list[str], command: Simple) -> str | None:
        self._say(words)
        fed = bool(self._listing) and command.piped == self._listing and plain(words[0]) == "xargs"
        given = self._fed(command)
        inner = unwrapped(words, given)
        for word in words[: len(words) - len(inner)]:
            if assigned := _ASSIGNMENT.match(plain(word)):
                self._assign_word(word, assigned)
        if not inner:
            return ""
        if inner != words:
            self._say(inner)
        before, self._each = self._each, self._each or fed
        try:
            return self._follow(inner, command, given)
        finally:
            self._each = before

    def _say(self, words: Sequence[str]) -> None:
        """Write down a command as it stands, and as it is with its bare name and without the options before it."""
        self._write_down(words)
        name, arguments = posixpath.basename(plain(words[0])), words[1:]
        if name != plain(words[0]):
            self._write_down([name, *arguments])
        takes_value = _VALUE_OPTIONS.get(name)
        for at, (before, word) in enumerate(pairwise(["", *map(plain, arguments)])):
            if not word.startswith("-") and not (before.startswith("-") and "=" not in before):
                break
            if at >= SHELL_OPTIONS:
                self.runs_unknown = self.runs_unknown or self._running
                break
            following = "".join(arguments[at + 1 : at + 2])
            is_value = word in takes_value if takes_value else bool(_SHORT_OPTION.fullmatch(word))
            if not (UNKNOWN in following and is_value):
                self._write_down([name, *arguments[at + 1 :]])

    def _write_down(self, words: Sequence[str]) -> None:
        text = " ".join(map(plain, words)).replace(HOME, "~")
        self.spend(1 + len(text) // 64)
        self.commands[text] = None
        if not self._running:
            return
        if UNKNOWN in text or any(map(_GLOB.search, words)):
            self.uncertain[" ".join(map(_mark_globs, words)).replace(HOME, "~")] = None
        name = posixpath.basename(words[0])
        if UNKNOWN in name or (name not in ("[", "[[") and _GLOBBED_NAME.match(words[0])):
            self.runs_unknown = True

    def _follow(self, words: list[str], command: Simple, given: str) -> str | None:
        """Do what the command does to what is known."""
        written, name, arguments = plain(words[0]), posixpath.basename(plain(words[0])), words[1:]
        if written in self._functions and written not in self._calling:
            return self._call(written, arguments)
        if written in self._aliases and f"alias {written}" not in self._calling:
            return self._expand_alias(written, arguments)
        if (script := self.files.get(posixpath.normpath(written))) is not None:
            return self._read_apart(script, [written, *map(plain, arguments)])
        if self._set_variables(name, arguments, given):
            return ""
        if name in ("echo", "printf"):
            return self._print(name, [plain(word) for word in arguments])
        if name == "base64" and any(re.fullmatch(r"-[a-z]*[dD][a-z]*|--decode", plain(word)) for word in arguments):
            return decode_base64(given) if given else None
        if name in ("cat", "tee"):
            return self._copy(name, arguments, given)
        if name in ("cd", "pushd"):
            self._go(arguments)
        elif name == "popd":
            self._folder = ""
        elif name in SHELLS or name in _SHELL_LIKE or (UNKNOWN in name and "-c" in arguments):
            return self._read_script(name, arguments, given)
        elif name == "find":
            return self._find(arguments)
        elif name == "git":
            self._follow_git(arguments)
        elif name == "perl" and _FORKS.search(" ".join(map(plain, arguments))):
            self._note(_BOMB)
        elif self._each and name in _ENDING:
            self._note(harm("rm", ["-r", *arguments], self._folder))
        else:
            names = find_alike(posixpath.basename(words[0])) if _GLOBBED_NAME.match(words[0]) else (name,)
            for each in names:
                self._note(harm(each, arguments, self._folder))
        return None

    def _set_variables(self, name: str, arguments: Sequence[str], given: str) -> bool:
        """Do what a builtin does that sets variables; say whether it was one."""
        words = [plain(word) for word in arguments]
        if name in _DECLARING:
            refers = any(re.fullmatch(r"-\w*[n]\w*", word) for word in words)
            for word in arguments:
                if assigned := _ASSIGNMENT.match(plain(word)):
                    self._assign_word(f"{assigned[0]}{UNKNOWN}" if refers else word, assigned)
        elif name == "set":
            values = arguments[words.index("--") + 1 :] if "--" in words else arguments
            if "--" in words or (words and words[0][:1] not in "-+"):
                self._set_positional(["", *values])
        elif name == "shift":
            count = int(words[0]) if words and words[0].isdecimal() else 1
            values = self.variables.get("@", UNKNOWN).split(SPLIT)
            self._set_positional([self.variables.get("0", ""), *(values if values == [UNKNOWN] else values[count:])])
        elif name == "read":
            names, is_array = read_names(words)
            for each, value in split_line(given or UNKNOWN, names, self.variables.get("IFS", "")):
                self.assign(each, value.partition(" ")[0] if is_array else value)
                if is_array:
                    self.assign(f"{each}[]", value.replace(" ", SPLIT))
        elif name in _SETS_UNKNOWN:
            for word in words:
                each = word.partition("=")[0].rstrip("+-*/")
                self.assign(each, UNKNOWN)
                self.assign(f"{each}[]", UNKNOWN)
        elif name == "unset":
            for word in words:
                self.changed |= {word} & self.variables.keys()
        elif name == "alias":
            for word in words:
                alias, equals, text = word.partition("=")
                if equals and self._running:
                    self._aliases[alias] = text
                self._read(text)
        else:
            return False
        return True

    def _set_positional(self, values: Sequence[str]) -> None:
        """`values`: from `$0` on."""
        if not self._running:
            return
        for name in [name for name in self.variables if name.isdecimal()]:
            del self.variables[name]
        self.spend(1 + len(values))
        self.variables |= {str(at): value for at, value in enumerate(values)}
        everything = join_values(values[1:])
        if len(everything) > SHELL_WORD_CHARS:
            everything = everything[:SHELL_WORD_CHARS] + UNKNOWN
        self.variables |= {"@": everything, "*": everything, "#": str(max(len(values) - 1, 0))}

    def _print(self, name: str, words: list[str]) -> str:
        variable, rest = split_printf(words) if name == "printf" else ("", words)
        printed = print_words(name, rest)
        if not variable:
            return printed
        self.assign(variable, printed)
        return ""

    def _copy(self, name: str, arguments: Sequence[str], given: str) -> str | None:
        """`cat` and `tee`: what they are fed, or files that the command has written before."""
        operands = [posixpath.normpath(plain(word)) for word in arguments if not plain(word).startswith("-")]
        if name == "tee":
            self._note(harm(name, arguments, self._folder))
            for each in operands if self._running else ():
                self._write_file(each, given or UNKNOWN)
            return given or None
        if operands and len(operands) <= SHELL_OPTIONS and all(each in self.files for each in operands):
            return "".join(self.files[each] for each in operands)
        return given if given and not operands else None

    def _call(self, name: str, arguments: Sequence[str]) -> str | None:
        body = self._functions[name]
        if len(self._calling) >= SHELL_OPTIONS:
            raise TooInvolved
        before = {key: value for key, value in self.variables.items() if not key[0].isalpha() and key[0] != "_"}
        self._calling.append(name)
        self._set_positional([name, *arguments])
        printed = self._read(body)
        self._calling.pop()
        self._set_positional([])
        self.variables |= before
        return printed

    def _expand_alias(self, name: str, arguments: Sequence[str]) -> str | None:
        self._calling.append(f"alias {name}")
        text = " ".join([self._aliases[name], *(quote_word(plain(word)) for word in arguments)])
        self.spend(1 + len(text) // 64)
        printed = self._read(text)
        self._calling.pop()
        return printed

    def _go(self, arguments: Sequence[str]) -> None:
        where = [word for word in arguments if not plain(word).startswith("-") or plain(word) == "-"]
        target = plain(where[0]) if where else HOME
        if target.startswith(UNKNOWN) or target == "-":
            self._folder = ""
        elif target.startswith("/") or self._folder:
            self._folder = posixpath.normpath(posixpath.join(self._folder, target))
        self.variables["PWD"] = self._folder or UNKNOWN

    def _read_script(self, name: str, arguments: Sequence[str], given: str) -> str | None:
        """Read what another shell, or this one in another place, is told to run."""
        script, positional = script_of(name, arguments, given)
        if script is None:
            script = given
        elif not script and positional:
            script = self.files.get(posixpath.normpath(positional[0]), "")
        if name in ("eval", "trap", "watch", "parallel"):
            return self._read(script)
        if name in ("source", ".") and not positional:
            return self._read(script)
        return self._read_apart(script, positional, keeps=name in ("source", "."))

    def _read_apart(self, script: str, positional: Sequence[str], *, keeps: bool = False) -> str | None:
        """Read a script with arguments of its own; what it sets holds afterwards if it `keeps`."""
        before, folder = self.variables, self._folder
        self.spend(1 + len(before) // 16)
        self.variables = dict(before)
        if positional:
            self._set_positional(positional)
        printed = self._read(script)
        if not keeps:
            self.variables, self._folder = before, folder
        return printed

    def _read(self, script: str) -> str | None:
        self._depth += 1
        reader = Reader(script, self, depth=self._depth, runs=self._running)
        reader.read()
        self._depth -= 1
        return None if reader.output == UNKNOWN else reader.output

    def _follow_git(self, arguments: Sequence[str]) -> None:
        """Aliases are other commands, and some settings are commands too."""
        words = [plain(word) for word in arguments]
        at = 0
        while at < len(words) and words[at].startswith("-"):
            if words[at] == "-c" and at + 1 < len(words):
                self._set_git(*words[at + 1].partition("=")[::2])
            elif words[at].startswith("--config-env"):
                self.runs_unknown = self.runs_unknown or self._running
            at += 2 if words[at] in _VALUE_OPTIONS["git"] else 1
        verb, rest = "".join(words[at : at + 1]), words[at + 1 :]
        if verb == "config":
            operands = [word for word in rest if not word.startswith("-") and word not in ("set", "add")]
            self._set_git(*[*operands, "", ""][:2])
        elif verb in self._git_aliases and f"git {verb}" not in self._calling:
            self._calling.append(f"git {verb}")
            text = self._git_aliases[verb]
            self._read(
                " ".join([text[1:] if text.startswith("!") else f"git {text}", *(quote_word(each) for each in rest)])
            )
            self._calling.pop()
        elif (verb, *rest[:1]) in (("submodule", "foreach"), ("bisect", "run")):
            self._read(" ".join(word for word in rest[1:] if word != "--recursive"))
        for option, script in pairwise(rest):
            if verb == "rebase" and option in ("-x", "--exec"):
                self._read(script)

    def _set_git(self, key: str, value: str) -> None:
        if key.lower().startswith("alias.") and self._running:
            self._git_aliases[key[6:]] = value
            if UNKNOWN in value:
                self.runs_unknown = True
        self.sets_git = True
        before, self._running = self._running, False
        self._read(value.removeprefix("!"))
        self._running = before

    def _find(self, arguments: Sequence[str]) -> str | None:
        """`find` with nothing that narrows what it finds does to its start what it does to each file, and so does
        whoever takes its output."""
        flags = [plain(word) for word in arguments]
        first = next(
            (at for at, word in enumerate(flags) if word[:1] in "-(!" and word not in ("-H", "-L", "-P")), len(flags)
        )
        starts = [word for word in arguments[:first] if plain(word) not in ("-H", "-L", "-P")]
        narrowed = any(_NARROWING.match(word) for word in flags)
        if "-delete" in flags and not narrowed:
            self._note(harm("rm", ["-r", *starts], self._folder))
        for at, word in enumerate(flags):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                inner = [*arguments[at + 1 : _end_of_exec(flags, at)]]
                found = [UNKNOWN] if narrowed else starts
                self._perform_found([each for word in inner for each in (found if plain(word) == "{}" else [word])])
        self._listing = "" if narrowed else " ".join(starts)
        return None if narrowed else self._listing

    def _perform_found(self, words: list[str]) -> None:
        name = posixpath.basename(plain(words[0])) if words else ""
        recursive = ["-R"] if name in ("chmod", "chown", "chgrp") else []
        before, self._each = self._each, True
        if words:
            self._perform([*words[:1], *recursive, *words[1:]], Simple(()))
        self._each = before


def _mark_globs(word: str) -> str:
    """Put a mark in the place of globs: `FILE_NAME` at the beginning of a word, `UNKNOWN` elsewhere."""
    if not (found := _GLOB.search(word)):
        return plain(word)
    marked = _GLOB.sub(UNKNOWN, word)
    return plain(marked if found.start() else FILE_NAME + marked[1:])


def _end_of_exec(flags: Sequence[str], at: int) -> int:
    return next((i for i in range(at + 1, len(flags)) if flags[i] in (";", "+")), len(flags))


def _multiplies(name: str, body: Iterable[str]) -> bool:
    """Calls it as a command, not as some argument, at least twice."""
    inside = takewhile("}".__ne__, body)
    tokens = ["{", *(token.removeprefix("{") or "{" for token in inside)]
    calls = [token for before, token in pairwise(tokens) if token == name and before in _BEFORE_A_COMMAND]
    return len(calls) >= 2 and "&" in tokens

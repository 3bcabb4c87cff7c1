"""Evaluate a shell command without running it, and refuse commands that would destroy the machine.

`ShellEvaluation` tracks variables, functions, aliases, the folder and the files that the command itself writes. It
reads the command from top to bottom, including both sides of every condition, and never undoes a branch; so a variable
that is set twice is followed in several readings (`evaluate_command`). It terminates on any text: a command that takes
more than `SHELL_STEPS` raises CommandTooComplex.

`refusal_reason` is the short list of commands that are refused in every mode, whatever anybody approves. It catches
accidents and plain malice, but is not a security boundary: a command can be hidden in a file, in an unknown variable or
in another language, which is what rules, questions and sandboxes are for.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile

from hummingbird.core.shell.dangerous_commands import find_harm, find_matching_commands, find_write_harm
from hummingbird.core.shell.parser import (
    CLOSING_WORDS,
    CommandTooComplex,
    ShellParser,
    SimpleCommand,
    ends_line,
    plain_word,
)
from hummingbird.core.shell.values import (
    HOME,
    SHELL_BRACES,
    SHELL_FILE_CHARS,
    SHELL_OPTIONS,
    SHELL_STEPS,
    SHELL_WORD_CHARS,
    SPLIT,
    UNKNOWN,
    decode_base64,
    join_values,
    print_words,
    read_names,
    split_line,
    split_printf,
)
from hummingbird.core.shell.wrappers import SHELLS, find_script, quote_word, unwrap_command

FILE_NAME = "\ue003"  # the unknown name of some file
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|.)?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]]*)\])?(\+?)=")
_GRAMMAR = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "while", "until", "esac", "coproc", "function", "!", "{", "}")
)
_SHELL_LIKE = frozenset(("eval", "su", "script", "watch", "trap", "source", ".", "parallel"))
_DECLARING = frozenset(("export", "declare", "typeset", "local", "readonly"))
_SETS_UNKNOWN = frozenset(("mapfile", "readarray", "getopts", "let"))
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
_COPIES = frozenset(("cp", "mv", "ln", "install", "rsync", "scp"))
_CHANGES_FILES = frozenset(("dd", "sed", "perl", "patch", "ed", "ex", "sponge", "truncate", "split", "curl", "wget"))
_READS_FILES = SHELLS | frozenset(
    ("cat", "tee", "echo", "printf", "source", ".", "chmod", "chown", "ls", "test", "[", "[[", "grep", "rm", "cd")
)
_RUN_BY_SHELL = frozenset(("PS4", "BASH_ENV", "PROMPT_COMMAND"))  # variables that hold commands
_FORKS = re.compile(r"\bfork\b[\s();]*(?:while|until)\b[\s();!]*fork\b|while\s*\(?1?\)?\s*\{?\s*fork\b")
_FORK_BOMB = "It is a fork bomb: it starts itself again and again until nothing else can run."
_BEFORE_A_COMMAND = frozenset(("{", "|", "|&", "&", ";", "&&", "||", "(", ")", "\n", "do", "then"))
_BOMB_TOKENS = 24  # first tokens of a function in which it must call itself twice to be a fork bomb
_NARROWING = re.compile(
    r"-(?:i?name|i?path|i?wholename|i?regex|[acm](?:min|time)|newer.*|size|user|uid|inum|samefile|empty)$"
)
_MATCHES_ALL = re.compile(r"[*?]*\*[*?]*")
_ENDING = frozenset(("rm", "shred", "truncate", "unlink"))  # commands that destroy a file's content
_VALUE_OPTIONS = {
    "git": frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix"))
}
_SHORT_OPTION = re.compile(r"-\w")  # of other programs: an unknown word behind it is taken for its value
_GLOB = re.compile(r"[*?\[]")
_GLOBBED_NAME = re.compile(r"(?=[\w/]).*[*?\[]|.*/.*[*?\[]")


def evaluate_command(command: str, folder: str = "") -> Iterator["ShellEvaluation"]:
    """Yield a reading of the command as written, one without its disguise, and more if variables change.

    When a variable is set more than once, only running the command tells which value it has. Such variables are read
    with their last value, with their first, and as unknown. A reading is yielded before it starts, so that a caller
    that meets CommandTooComplex has what was found until then.
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
    return (
        _TERMINAL.sub("", text).translate(_UndisguiseTable()) if not text.isascii() or not text.isprintable() else text
    )


class _UndisguiseTable(dict[int, str]):
    """Normalise one character at a time: ordering many combining marks takes time quadratic in their number."""

    def __missing__(self, code: int) -> str:
        letters = unicodedata.normalize("NFKC", chr(code))
        self[code] = "".join(c for c in letters if c in "\n\t" or unicodedata.category(c)[0] not in "CM")
        return self[code]


class ShellEvaluation:
    """One reading of a command, and what was found in it.

    `commands`: each command that would run, as plain text with one space between two words, in several spellings if it
    has a path or options before its first argument. `uncertain`: those of them with `UNKNOWN` for each part that is
    only known at run time. `runs_unknown`: a command runs whose very name is not known. `sets_git`: the command changes
    a git setting, and many of these are commands. `reason`: why the command is refused.
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
        self._folder = folder  # empty if unknown
        self._folders: list[str] = []  # the folders of the surrounding shells
        self._steps = 0
        self._depth = 0
        self._input = ""  # standard input of the function or script that is being read
        self._listing = ""  # the output of a `find` without a narrowing test
        self._each = False  # the current command runs for everything below its arguments
        self._running = True

    def read(self, text: str) -> None:
        """Evaluate a command.

        Raises CommandTooComplex.
        """
        if folder := self._folder:
            self.variables["PWD"] = folder
        ShellParser(text.replace("\\\n", ""), self).parse()
        self.reason = self.reason or self._find_fork_bomb()

    def spend(self, steps: int = 1) -> None:
        """Count steps of work.

        Raises CommandTooComplex once there are too many.
        """
        self._steps += steps
        if self._steps > SHELL_STEPS:
            raise CommandTooComplex

    def assign(self, name: str, value: str) -> None:
        """Set a variable, as far as the policy of this reading lets it change."""
        if not self._running:
            return
        if name.startswith("GIT_CONFIG") or name in _RUN_BY_SHELL:  # the first can define aliases
            self.runs_unknown = True
        value = value if len(value) <= SHELL_WORD_CHARS else value[:SHELL_WORD_CHARS] + UNKNOWN
        if self.variables.get(name, value) != value:
            self.changed.add(name)
        if name in self._changing and self._policy == "unknown":
            self.variables[name] = UNKNOWN
        elif name not in self._changing or self._policy != "first" or name not in self.variables:
            self.variables[name] = value

    def define(self, name: str, body: str) -> None:
        """Store a function for when it is called."""
        if self._functions.get(name, body) != body or name == "command_not_found_handle":
            self.runs_unknown = True  # only running tells which definition is called
        self._functions[name] = body

    def enter_shell(self) -> None:
        """Enter a subshell."""
        self._folders.append(self._folder)

    def leave_shell(self) -> None:
        """Leave the innermost subshell."""
        if self._folders:
            self._folder = self._folders.pop()

    def run_command(self, command: SimpleCommand) -> str | None:
        """Evaluate one command; return what it prints, or None if that is not known."""
        self.tokens += [*map(plain_word, command.words), command.after]
        for operator, target in command.redirects:
            if operator in _WRITES:
                self._add_reason(find_write_harm(target, self._folder))
        before, self._running = self._running, self._running and command.runs
        try:
            words = self._strip_grammar(list(command.words))
            if words:
                printed = self._run_words(words, command)
            elif not command.words:
                printed = self._standard_input(command) or None  # `$(<file)`
            else:  # after a compound command, its output is the commands' inside
                printed = None if plain_word(command.words[0]) in CLOSING_WORDS else ""
            self._keep_files(command, printed)
        finally:
            self._running = before
        return printed

    def _keep_files(self, command: SimpleCommand, printed: str | None) -> None:
        for operator, target in command.redirects if self._running else ():
            if operator in _WRITES:
                before = self._find_file(target) or "" if operator.endswith(">>") else ""
                line_end = "\n" if ends_line(command.words) else ""
                self._write_file(target, before + (UNKNOWN if printed is None else printed) + line_end)

    def _write_file(self, name: str, text: str) -> None:
        self.spend(1 + len(text) // 64)
        self.files[posixpath.normpath(plain_word(name))] = text if len(text) <= SHELL_FILE_CHARS else UNKNOWN

    def _find_file(self, word: str) -> str | None:
        """Return the content of a file that the command wrote; None if it wrote none of this name.

        Folders are not followed: one of the same name in another folder counts.
        """
        path = posixpath.normpath(plain_word(word))
        if path in self.files:
            return self.files[path]
        self.spend(1 + len(self.files) // 16)
        name = posixpath.basename(path)
        return next((text for each, text in self.files.items() if posixpath.basename(each) == name), None)

    def _follow_files(self, name: str, arguments: Sequence[str]) -> None:
        """Note which files a command copies or changes."""
        operands = [plain_word(word) for word in arguments if not plain_word(word).startswith("-")]
        if not self._running or name in _READS_FILES:
            return
        if name in _COPIES and len(operands) > 1:
            *sources, target = operands
            for source in sources[:SHELL_OPTIONS]:
                content = self._find_file(source)
                if content is None and not (UNKNOWN in source or "/bin/" in source):
                    continue  # a file that was there before, which nobody looks into
                content = UNKNOWN if content is None or len(sources) > 1 else content
                self._write_file(target, content)
                self._write_file(posixpath.join(target, posixpath.basename(source)), content)
            return
        for word in operands[:SHELL_BRACES]:
            path = word.partition("=")[2] or word
            if name in _CHANGES_FILES or self._find_file(path) is not None:
                self._write_file(path, UNKNOWN)

    def _standard_input(self, command: SimpleCommand) -> str:
        """Return what the command reads from its standard input; empty for a terminal, or for nothing."""
        for operator, target in command.redirects:
            if operator == "<":
                content = self._find_file(target)
                return UNKNOWN if content is None else content
        return command.given or command.piped or self._input

    def _find_fork_bomb(self) -> str:
        """Return the reason if a function starts itself twice and does not wait."""
        for at, (name, following) in enumerate(pairwise(self.tokens)):
            defined = following == "(" or (at and self.tokens[at - 1] == "function")
            if name and defined and _calls_itself_twice(name, self.tokens[at + 2 : at + 2 + _BOMB_TOKENS]):
                return _FORK_BOMB
        return ""

    def _add_reason(self, reason: str) -> None:
        self.reason = self.reason or reason

    def _strip_grammar(self, words: list[str]) -> list[str]:
        """Return the command without the grammar and the assignments before it."""
        while words:
            first = plain_word(words[0])
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
        name, values = plain_word(words[1]), words[3:]
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

    def _run_words(self, words: list[str], command: SimpleCommand) -> str | None:
        self._record_command(words)
        fed = bool(self._listing) and command.piped == self._listing and plain_word(words[0]) == "xargs"
        given = self._standard_input(command)
        self.spend(1 + len(given) // 16)
        inner = unwrap_command(words, given)
        for word in words[: len(words) - len(inner)]:
            if assigned := _ASSIGNMENT.match(plain_word(word)):
                self._assign_word(word, assigned)
        if not inner:
            return None
        if inner != words:
            self._record_command(inner)
        if given and any(plain_word(word) == "xargs" for word in words):
            for value in inner[1 : SHELL_BRACES + 1]:  # it may run the command for each of them
                self._record_command([inner[0], value])
        before, self._each = self._each, self._each or fed
        outside, self._input = self._input, given
        try:
            return self._run_inner(inner, command, given, is_wrapped=inner != words)
        finally:
            self._each, self._input = before, outside

    def _record_command(self, words: Sequence[str]) -> None:
        """Record a command as written, with its bare name, and without the options before its first argument."""
        self._record_words(words)
        name, arguments = posixpath.basename(plain_word(words[0])), words[1:]
        if name != plain_word(words[0]):
            self._record_words([name, *arguments])
        takes_value = _VALUE_OPTIONS.get(name)
        for at, (before, word) in enumerate(pairwise(["", *map(plain_word, arguments)])):
            if not word.startswith("-") and not (before.startswith("-") and "=" not in before):
                break
            if at >= SHELL_OPTIONS:
                self.runs_unknown = self.runs_unknown or self._running
                break
            following = "".join(arguments[at + 1 : at + 2])
            is_value = word in takes_value if takes_value else bool(_SHORT_OPTION.fullmatch(word))
            if not (UNKNOWN in following and is_value):
                self._record_words([name, *arguments[at + 1 :]])

    def _record_words(self, words: Sequence[str]) -> None:
        text = " ".join(map(plain_word, words)).replace(HOME, "~")
        self.spend(1 + len(text) // 64)
        self.commands[text] = None
        if not self._running:
            return
        if UNKNOWN in text or any(map(_GLOB.search, words)):
            self.uncertain[" ".join(map(_mark_globs, words)).replace(HOME, "~")] = None
        name = posixpath.basename(words[0])
        if UNKNOWN in name or (name not in ("[", "[[") and _GLOBBED_NAME.match(words[0])):
            self.runs_unknown = True

    def _run_inner(self, words: list[str], command: SimpleCommand, given: str, *, is_wrapped: bool) -> str | None:
        """Apply the effects of a command to the known state."""
        written, name, arguments = plain_word(words[0]), posixpath.basename(plain_word(words[0])), words[1:]
        if self._is_shadowed(written):
            printed = self._run_shadow(written, arguments)
            # A function, an alias or a file of a command's name may not be what runs in the end: `command rm`.
            if "/" in written or not (arguments or is_wrapped):
                return printed
            self._run_program(name, words, command, given)
            return printed
        return self._run_program(name, words, command, given)

    def _is_shadowed(self, name: str) -> bool:
        return name in self._functions or name in self._aliases or self._find_file(name) is not None

    def _run_shadow(self, name: str, arguments: Sequence[str]) -> str | None:
        """Run a function, an alias or a script that the command itself has made."""
        if name in self._functions:
            return self._call_function(name, arguments)
        if name in self._aliases:
            return None if f"alias {name}" in self._calling else self._expand_alias(name, arguments)
        return self._read_apart(self._find_file(name) or "", [name, *map(plain_word, arguments)])

    def _run_program(self, name: str, words: list[str], command: SimpleCommand, given: str) -> str | None:
        arguments = words[1:]
        self._follow_files(name, arguments)
        if self._set_variables(name, arguments, given):
            return ""
        if name in ("echo", "printf"):
            return self._run_print(name, [plain_word(word) for word in arguments])
        if name == "base64" and any(
            re.fullmatch(r"-[a-z]*[dD][a-z]*|--decode", plain_word(word)) for word in arguments
        ):
            return decode_base64(given) if given else None
        if name in ("cat", "tee"):
            return self._run_cat_or_tee(name, arguments, given)
        if name in ("cd", "pushd"):
            self._change_folder(arguments)
        elif name == "popd":
            self._folder = ""
        elif name == "hash":
            self.runs_unknown = self.runs_unknown or (self._running and "-p" in map(plain_word, arguments))
        elif words[0].startswith("/proc/"):
            self.runs_unknown = self.runs_unknown or self._running
        elif name in SHELLS or name in _SHELL_LIKE or (UNKNOWN in name and "-c" in arguments):
            return self._read_script(name, arguments, given)
        elif name == "find":
            return self._run_find(arguments)
        elif name == "git":
            self._run_git(arguments)
        elif name == "perl" and _FORKS.search(" ".join(map(plain_word, arguments))):
            self._add_reason(_FORK_BOMB)
        elif self._each and name in _ENDING:
            self._add_reason(find_harm("rm", ["-r", *arguments], self._folder))
        else:
            names = find_matching_commands(posixpath.basename(words[0])) if _GLOBBED_NAME.match(words[0]) else (name,)
            for each in names:
                self._add_reason(find_harm(each, arguments, self._folder))
        return None

    def _set_variables(self, name: str, arguments: Sequence[str], given: str) -> bool:
        """Apply a built-in that sets variables; return whether it was one."""
        words = [plain_word(word) for word in arguments]
        if name in _DECLARING:
            refers = any(re.fullmatch(r"-\w*[n]\w*", word) for word in words)
            for word in arguments:
                if assigned := _ASSIGNMENT.match(plain_word(word)):
                    array = plain_word(word)[assigned.end() :].startswith("(")
                    self._assign_word(f"{assigned[0]}{UNKNOWN}" if refers or array else word, assigned)
        elif name == "set":
            values = arguments[words.index("--") + 1 :] if "--" in words else arguments
            if "--" in words or (words and words[0][:1] not in "-+"):
                self._set_positional(["", *values])
        elif name == "shift":
            count = int(words[0]) if words and words[0].isdecimal() else 1
            values = self.variables.get("@", UNKNOWN).split(SPLIT)
            self.changed.add("@")  # in a loop, the parameters have one value after the other
            self._set_positional([self.variables.get("0", ""), *(values if values == [UNKNOWN] else values[count:])])
        elif name == "read":
            names, is_array, whole = read_names(words)
            given = given if whole and "\n" not in given.strip("\n") else UNKNOWN
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
                self._read_text(text)
        else:
            return False
        return True

    def _set_positional(self, values: Sequence[str]) -> None:
        """Set the positional parameters; `values` begins with `$0`."""
        if not self._running:
            return
        if "@" in self._changing and self._policy == "unknown":
            values = [*values[:1], *(UNKNOWN for _ in values[1:])]
        for name in [name for name in self.variables if name.isdecimal()]:
            del self.variables[name]
        self.spend(1 + len(values))
        self.variables |= {str(at): value for at, value in enumerate(values)}
        everything = join_values(values[1:])
        if len(everything) > SHELL_WORD_CHARS:
            everything = everything[:SHELL_WORD_CHARS] + UNKNOWN
        self.variables |= {"@": everything, "*": everything, "#": str(max(len(values) - 1, 0))}

    def _run_print(self, name: str, words: list[str]) -> str:
        variable, rest = split_printf(words) if name == "printf" else ("", words)
        printed = print_words(name, rest)
        if not variable:
            return printed
        self.assign(variable, printed)
        return ""

    def _run_cat_or_tee(self, name: str, arguments: Sequence[str], given: str) -> str | None:
        """Return the input of `cat` or `tee`, or the content of files that the command wrote before."""
        operands = [word for word in arguments if not plain_word(word).startswith("-")]
        if name == "tee":
            self._add_reason(find_harm(name, arguments, self._folder))
            for each in operands if self._running else ():
                before = (self._find_file(each) or "") if len(operands) < len(arguments) else ""
                self._write_file(each, before + (given or UNKNOWN))
            return given or None
        contents = [self._find_file(each) for each in operands[:SHELL_OPTIONS]]
        if operands and len(contents) == len(operands) and None not in contents:
            return "".join(filter(None, contents))
        return given if given and not operands else None

    def _call_function(self, name: str, arguments: Sequence[str]) -> str | None:
        body = self._functions[name]
        if len(self._calling) >= SHELL_OPTIONS:
            raise CommandTooComplex
        if name in self._calling:  # it calls itself, once with other arguments
            if f"again {name}" in self._calling or not arguments:
                return None
            self._calling.append(f"again {name}")
            arguments = [UNKNOWN] * len(arguments)
        before = {key: value for key, value in self.variables.items() if not key[0].isalpha() and key[0] != "_"}
        self._calling.append(name)
        self._set_positional([name, *arguments])
        printed = self._read_text(body)
        self._calling.pop()
        if self._calling[-1:] == [f"again {name}"]:
            self._calling.pop()
        self._set_positional([])
        self.variables |= before
        return printed

    def _expand_alias(self, name: str, arguments: Sequence[str]) -> str | None:
        self._calling.append(f"alias {name}")
        text = " ".join([self._aliases[name], *(quote_word(plain_word(word)) for word in arguments)])
        self.spend(1 + len(text) // 64)
        printed = self._read_text(text)
        self._calling.pop()
        return printed

    def _change_folder(self, arguments: Sequence[str]) -> None:
        where = [word for word in arguments if not plain_word(word).startswith("-") or plain_word(word) == "-"]
        target = plain_word(where[0]) if where else HOME
        if target.startswith(UNKNOWN) or target == "-":
            self._folder = ""
        elif target.startswith("/") or self._folder:
            self._folder = posixpath.normpath(posixpath.join(self._folder, target))
        self.variables["PWD"] = self._folder or UNKNOWN

    def _read_script(self, name: str, arguments: Sequence[str], given: str) -> str | None:
        """Evaluate the script that another shell, `eval`, `source` or the like would run."""
        script, positional = find_script(name, arguments, given)
        if script is None:
            asks_only = {"--version", "--help"} & set(map(plain_word, arguments))
            script = given or ("" if asks_only or name not in SHELLS else UNKNOWN)  # it may be fed from further outside
        elif not script and positional:
            script = self._find_file(positional[0]) or ""
            is_open = self._each or UNKNOWN in positional[0] or _GLOB.search(positional[0])
            self.runs_unknown = self.runs_unknown or (self._running and not script and bool(self.files and is_open))
        if name in ("eval", "trap", "watch", "parallel"):
            return self._read_text(script)
        if name in ("source", ".") and not positional:
            return self._read_text(script)
        return self._read_apart(script, positional, keeps=name in ("source", "."))

    def _read_apart(self, script: str, positional: Sequence[str], *, keeps: bool = False) -> str | None:
        """Evaluate a script with its own arguments; its variables stay set afterwards if it `keeps`."""
        before, folder = self.variables, self._folder
        self.spend(1 + len(before) // 16)
        self.variables = dict(before)
        if positional:
            self._set_positional(positional)
        printed = self._read_text(script)
        if not keeps:
            self.variables, self._folder = before, folder
        return printed

    def _read_text(self, script: str) -> str | None:
        self._depth += 1
        reader = ShellParser(script, self, depth=self._depth, runs=self._running)
        reader.parse()
        self._depth -= 1
        return None if reader.output == UNKNOWN else reader.output

    def _run_git(self, arguments: Sequence[str]) -> None:
        """Follow git aliases and settings, which may be commands."""
        words = [plain_word(word) for word in arguments]
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
            self._read_text(
                " ".join([text[1:] if text.startswith("!") else f"git {text}", *(quote_word(each) for each in rest)])
            )
            self._calling.pop()
        elif (verb, *rest[:1]) in (("submodule", "foreach"), ("bisect", "run")):
            self._read_text(" ".join(word for word in rest[1:] if word != "--recursive"))
        for option, script in pairwise(rest):
            if verb == "rebase" and option in ("-x", "--exec"):
                self._read_text(script)

    def _set_git(self, key: str, value: str) -> None:
        if key.lower().startswith("alias.") and self._running:
            self._git_aliases[key[6:]] = value
            if UNKNOWN in value:
                self.runs_unknown = True
        self.sets_git = True
        before, self._running = self._running, False
        self._read_text(value.removeprefix("!"))
        self._running = before

    def _run_find(self, arguments: Sequence[str]) -> str | None:
        """Follow `find` with `-delete` and `-exec`.

        Without a test that narrows the search, `find` does to its start folder what it does to each file, and so does
        the command that reads its output.
        """
        flags = [plain_word(word) for word in arguments]
        first = next(
            (at for at, word in enumerate(flags) if word[:1] in "-(!" and word not in ("-H", "-L", "-P")), len(flags)
        )
        starts = [word for word in arguments[:first] if plain_word(word) not in ("-H", "-L", "-P")] or ["."]
        narrowed = any(
            _NARROWING.match(word) and before not in ("!", "-not") and not _MATCHES_ALL.fullmatch(after)
            for before, word, after in zip(["", *flags], flags, [*flags[1:], ""], strict=False)
        )
        if "-delete" in flags and not narrowed:
            self._add_reason(find_harm("rm", ["-r", *starts], self._folder))
        for at, word in enumerate(flags):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                inner = [*arguments[at + 1 : _find_exec_end(flags, at)]]
                found = [UNKNOWN] if narrowed else starts
                self._run_found([each for word in inner for each in (found if plain_word(word) == "{}" else [word])])
        self._listing = "" if narrowed else " ".join(starts)
        return None if narrowed else self._listing

    def _run_found(self, words: list[str]) -> None:
        name = posixpath.basename(plain_word(words[0])) if words else ""
        recursive = ["-R"] if name in ("chmod", "chown", "chgrp") else []
        before, self._each = self._each, True
        if words:
            self._run_words([*words[:1], *recursive, *words[1:]], SimpleCommand(()))
        self._each = before


def _mark_globs(word: str) -> str:
    """Replace globs by a mark: `FILE_NAME` at the beginning of a word, `UNKNOWN` elsewhere."""
    if not (found := _GLOB.search(word)):
        return plain_word(word)
    marked = _GLOB.sub(UNKNOWN, word)
    return plain_word(marked if found.start() else FILE_NAME + marked[1:])


def _find_exec_end(flags: Sequence[str], at: int) -> int:
    return next((i for i in range(at + 1, len(flags)) if flags[i] in (";", "+")), len(flags))


def _calls_itself_twice(name: str, body: Iterable[str]) -> bool:
    """Tell whether the body calls the name at least twice as a command, not as an argument."""
    inside = takewhile("}".__ne__, body)
    tokens = ["{", *(token.removeprefix("{") or "{" for token in inside)]
    calls = [token for before, token in pairwise(tokens) if token == name and before in _BEFORE_A_COMMAND]
    return len(calls) >= 2 and "&" in tokens


_TOO_COMPLEX = "It is too long or too complex to be checked; split it into several commands."


def refusal_reason(command: str, folder: str = "") -> str:
    """Return why this command is refused, as a sentence; empty if it is not.

    `folder` is where it runs, empty if unknown.
    """
    readings: list[ShellEvaluation] = []
    try:
        for reading in evaluate_command(command, folder):
            readings.append(reading)
            if len(readings) > 1 and readings[-2].reason:
                break
    except CommandTooComplex:
        return next((each.reason for each in readings if each.reason), _TOO_COMPLEX)
    return next((each.reason for each in readings if each.reason), "")

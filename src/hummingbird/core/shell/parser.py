"""Parse a shell command line the way a shell does, without running it.

The parser passes one simple command after the other to its scope: words without their quotes, with known variables
filled in. What cannot be known without running is `UNKNOWN`. It terminates on any text, in time linear in its length.
It is made for inspecting commands, and does not know what they do.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Protocol

from hummingbird.core.shell.values import (
    HOME,
    SHELL_BRACES,
    SHELL_DEPTH,
    SHELL_WORD_CHARS,
    SPLIT,
    UNKNOWN,
    join_values,
    modify_elements,
    modify_value,
    pick_element,
)

# Quoted special characters are replaced by private ones, to tell them from those that a shell would act on.
_QUOTED = {ord(c): chr(0xE010 + i) for i, c in enumerate("*?[]{},~")}
_PLAIN = {ord(there): chr(here) for here, there in _QUOTED.items()}

_ORDINARY = re.compile(r"[^\s\\'\"$`;&|<>()#]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_BLANK = re.compile(r"[^\S\n]+")
_OPERATOR = re.compile(r"&>>?|\|\||&&|;;&?|;&|\|&|[;&|]")
_REDIRECT = re.compile(r"<<<|<<-?|<>|<&|>&|>>|>\||[<>]")
_VARIABLE = re.compile(r"\$(?:(\d|[^\W\d]\w*)|[@*#?$!-])")
_BRACED = re.compile(r"\$\{([!#]?)(\w+|[@*#?$!-])(?:\[([^\[\]{}$]{0,80})\])?")
_OTHERWISE = re.compile(r":?[-=+?]")
_ANSI_C = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_USUAL = {"HOME": HOME, "IFS": " ", "SHELL": "/bin/sh", "BASH": "/bin/bash"}
_CHOICE = re.compile(r"\{([^{}]*,[^{}]*)\}")
_RANGE = re.compile(r"\{([^{},\s.]{1,12})\.\.([^{},\s.]{1,12})(\.\.[^{},\s]{1,12})?\}")
# Two words side by side make it a command in brackets, not an arithmetic expression.
_ARITHMETIC = re.compile(r"\(\((?:(?!\w\s+[\w$])(?:[^()`'\"$\n]|\$(?!\())|\((?:[^()`'\"$\n]|\$(?!\())*\))*\)\)")
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=")
CLOSING_WORDS = frozenset(("}", "fi", "done", "esac"))  # of a compound command
_OPENING_WORDS = frozenset(("{", "if", "then", "elif", "else", "while", "until", "do", "!", "time"))
_LEADING = 8  # words at the beginning of a command among which its name is looked for
_FUNCTION = re.compile(r"\([^\S\n]*\)\s*")
_BRACKETS = re.compile(
    r"""[{}()]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|(?<![^\s;&|(){}])#[^\n]*|<<-?\s*['"\\]?(\w+)""", re.DOTALL
)


class CommandTooComplex(Exception):
    """The command exceeds the limits of the analysis; a signal to the caller, not an error."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command.

    `redirects` are operators and their targets, `given` is the text of a here-document or here-string, `piped` the
    output of the command before it in a pipe (None: there is none), `after` the operator that ends it. `runs` is False
    for a command that does not run here: in the body of a function, between the brackets of an arithmetic expression,
    or as a pattern of `case`.
    """

    words: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...] = ()
    given: str = ""
    piped: str | None = None
    after: str = ""
    runs: bool = True


class ShellScope(Protocol):
    """The state that the parser reads and changes.

    `variables` are the known ones; a `SPLIT` in a value separates words, quoted or not. An array is stored twice:
    `name` is its first element, `name[]` all of them. `files` holds the known content of files.
    """

    variables: dict[str, str]
    files: dict[str, str]

    def spend(self, steps: int = 1) -> None:
        """Count steps of work.

        Raises CommandTooComplex once there are too many.
        """
        ...

    def run_command(self, command: SimpleCommand) -> str | None:
        """Return what the command prints, or None if that is not known."""
        ...

    def assign(self, name: str, value: str) -> None:
        """Set a variable; a variable with several different values is no longer certain."""
        ...

    def define(self, name: str, body: str) -> None:
        """Store a function."""
        ...

    def enter_shell(self) -> None:
        """Enter a subshell, as between brackets."""
        ...

    def leave_shell(self) -> None:
        """Leave a subshell; there may have been none."""
        ...


def ends_line(words: Sequence[str]) -> bool:
    """Tell whether what the command prints ends with a line break; `echo -n` and `printf` may leave it out."""
    plain = [plain_word(word) for word in words[:_LEADING]]
    name, option, *_ = [*dropwhile(_OPENING_WORDS.__contains__, plain), "", ""]
    return name != "printf" and not (name == "echo" and option.startswith("-"))


def plain_word(word: str) -> str:
    """Return a word as its command receives it."""
    return word.translate(_PLAIN)


@dataclass(slots=True)
class ShellParser:
    """Parse a text and pass each simple command to the scope.

    Commands within substitutions come before those around them.
    """

    text: str
    scope: ShellScope
    at: int = 0
    depth: int = 0
    runs: bool = True
    _words: list[str] = field(default_factory=list)
    _word: list[str] | None = None
    _redirects: list[tuple[str, str]] = field(default_factory=list)
    _operator: str = ""  # the redirect whose target comes next
    _given: str = ""
    _body_ends: int = 0  # where the here-documents of this line end
    _runs_from: int = 0  # the end of the function or arithmetic expression that is being read
    _open: int = 0  # open brackets
    _opened: list[int] = field(default_factory=list)  # how much was printed when each of them was opened
    _assigns: bool = True  # this command consists of assignments so far
    _output: str | None = None
    _piping: bool = False
    _printed: list[str | None] = field(default_factory=list)
    _runs_on: bool = False  # something was printed without the end of its line

    def __post_init__(self) -> None:
        if self.depth > SHELL_DEPTH:
            raise CommandTooComplex

    def parse(self, until: str = "") -> None:
        """Parse to the end, or to the bracket that closes the surrounding substitution."""
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == ")" and until and not self._open:
                break
            self._read_char(letter)
        self._end_command("")
        self.at += 1

    @property
    def output(self) -> str:
        """Return what all commands print, or `UNKNOWN`."""
        known = [text for text in self._printed if text is not None]
        if len(known) > 1 and self._runs_on:
            return UNKNOWN
        return " ".join(known)[:SHELL_WORD_CHARS] if known and len(known) == len(self._printed) else UNKNOWN

    def parse_quoted(self) -> str:
        """Read the rest as text within double quotes, as here-documents are read."""
        return self._read_double_quoted("")

    def _read_char(self, letter: str) -> None:
        self.scope.spend()
        if letter == "\n":
            self._end_command("\n")
            self.at, self._body_ends = max(self.at + 1, self._body_ends), 0
        elif letter.isspace():
            self._end_word()
            self.at = _match_end(_BLANK, self.text, self.at)
        elif letter == "#" and self._word is None:
            self.at = _find_or_end(self.text, "\n", self.at)
        elif letter in ";&|":
            self._read_operator()
        elif letter == "(" and self._is_in_glob():
            self._skip_glob()
        elif letter == "(":
            self._open_bracket()
        elif letter == ")":
            self._end_command(")", runs=self._open > 0)
            self._open = max(self._open - 1, 0)
            if self._opened and len(self._printed) - self._opened.pop() > 1:
                self._output = None  # what a pipe reads is that of all commands between the brackets
            self.scope.leave_shell()
            self.at += 1
        elif letter in "<>":
            self._read_redirect()
        else:
            self._add_piece(self._read_piece(letter))

    def _is_in_glob(self) -> bool:
        """Tell whether a bracket here belongs to a glob such as `@(a|b)`."""
        word = "".join(self._word or ())
        return word[-1:] in tuple("?*+@!") and (len(word) > 1 or bool(self._words))

    def _skip_glob(self) -> None:
        inner = ShellParser(self.text, self.scope, self.at + 1, self.depth + 1, self.runs)
        while inner.at < len(self.text) and self.text[inner.at] not in ")\n":
            self.scope.spend()
            inner._read_piece(self.text[inner.at])
        self.at = inner.at + 1
        self._word = ["".join(self._word or ())[:-1], UNKNOWN]

    def _add_piece(self, piece: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(piece)

    def _open_bracket(self) -> None:
        word = "".join(self._word or ())
        if _ARRAY.fullmatch(word) and not self._words:
            self._word = None
            self._read_array(word)
            return
        if found := _FUNCTION.match(self.text, self.at):
            self._begin_function(word or (self._words[-1] if self._words else ""), found.end())
        elif word == "" and (found := _ARITHMETIC.match(self.text, self.at)):
            self.scope.spend(1 + (found.end() - self.at) // 64)
            self._runs_from = max(self._runs_from, found.end())
        self._end_command("(")
        self._open += 1
        self._opened.append(len(self._printed))
        self.scope.enter_shell()
        self.at += 1

    def _begin_function(self, name: str, begins: int) -> None:
        """Store a function; its body is parsed here too, but runs where the function is called."""
        self.scope.spend(1 + (len(self.text) - begins) // 16)
        ends = _find_body_end(self.text, begins)
        self._runs_from = max(self._runs_from, ends)
        if self.runs:
            self.scope.define(plain_word(name), self.text[begins:ends])

    def _read_array(self, assignment: str) -> None:
        """Read `name=(one two)`, which contains no commands."""
        inner = ShellParser(self.text, self.scope, self.at + 1, self.depth + 1, self.runs)
        while inner.at < len(self.text) and self.text[inner.at] != ")":
            self.scope.spend()
            letter = self.text[inner.at]
            if letter.isspace():
                inner._end_word()
                inner.at += 1
            elif letter in ";&|<>(":
                inner.at += 1
            else:
                inner._add_piece(inner._read_piece(letter))
        inner._end_word()
        self.at = inner.at + 1
        if self._is_running():
            name, appended = assignment.removesuffix("=").removesuffix("+"), assignment.endswith("+=")
            before = [self.scope.variables[f"{name}[]"]] if appended and f"{name}[]" in self.scope.variables else []
            keyed = any(word.startswith("[") and "]=" in word for word in inner._words)
            self.scope.assign(f"{name}[]", UNKNOWN if keyed else join_values([*before, *inner._words]))
            self.scope.assign(name, (before or inner._words or [""])[0].split(SPLIT)[0])

    def _read_operator(self) -> None:
        found = _OPERATOR.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        if found[0].startswith("&>"):
            self._end_word()
            self._operator = found[0]
        else:
            self._end_command(found[0])

    def _read_redirect(self) -> None:
        if self.text.startswith(("<(", ">("), self.at):
            into = self.text[self.at] == ">"
            self.at += 2
            printed = self._read_substitution()
            name = f"/dev/fd/{63 + len(self.scope.files)}"
            self.scope.files[name] = UNKNOWN if into else printed
            self._add_piece(name)
            return
        found = _REDIRECT.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        if self._word is not None and "".join(self._word).isdigit():
            self._word = None  # the number of a descriptor
        self._end_word()
        self._operator = found[0]

    def _end_word(self) -> None:
        if self._word is None:
            return
        text, self._word = "".join(self._word), None
        operator, self._operator = self._operator, ""
        if operator in ("<<", "<<-"):
            self._given += self._read_here_document(text)
        elif operator == "<<<":
            self._given += plain_word(_expand_home(text.replace(SPLIT, " "))) + "\n"
        elif operator:
            self._redirects.append((operator, next(iter(_expand_word(text)), "")))
        else:
            before = len(self._words)
            self._words.extend(_expand_word(text))
            self.scope.spend((len(self._words) - before + len(text) // 16) // 4)
            self._assigns = self._assigns and _ARRAY.match(text) is not None
            if self._assigns and self._is_running() and "+" not in text.partition("=")[0]:
                self.scope.assign(*text.partition("=")[::2])  # the next word may use it
            if len(self._words) == 3 and self._words[0] == "function" and text == "{":
                self._begin_function(self._words[1], self.text.rfind("{", 0, self.at))

    def _end_command(self, operator: str, *, runs: bool = True) -> None:
        self._end_word()
        words, redirects, self._words, self._redirects = tuple(self._words), tuple(self._redirects), [], []
        given, self._given = self._given, ""
        piped = (UNKNOWN if self._output is None else self._output) if self._piping else None
        runs = runs and self._is_running()
        if words or redirects:
            self._output = self.scope.run_command(SimpleCommand(words, redirects, given, piped, operator, runs))
            if operator not in ("|", "|&") and not (words and words[0] in CLOSING_WORDS):
                self._printed.append(self._output)
                self._runs_on = self._runs_on or not ends_line(words)
        self._piping = operator in ("|", "|&") or (self._piping and not words and operator == "\n")
        self._operator, self._assigns = "", True

    def _read_here_document(self, delimiter: str) -> str:
        """Read the here-document that begins on the next line, and the substitutions in it."""
        begins = self._body_ends or _find_or_end(self.text, "\n", self.at) + 1
        self.scope.spend(1 + (len(self.text) - min(begins, len(self.text))) // 64)
        wanted = re.compile(rf"^\t*{re.escape(plain_word(delimiter))}$", re.MULTILINE)
        found = wanted.search(self.text, begins) if begins <= len(self.text) else None
        body = self.text[begins : found.start() if found else len(self.text)]
        self._body_ends = found.end() + 1 if found else len(self.text)
        if "$" in body or "`" in body:
            ShellParser(body, self.scope, depth=self.depth + 1, runs=self._is_running()).parse_quoted()
        return body

    def _is_running(self) -> bool:
        return self.runs and self.at >= self._runs_from

    def _read_piece(self, letter: str) -> str:
        """Read the next piece of a word."""
        if letter == "\\":
            self.at += 2
            escaped = self.text[self.at - 1 : self.at]
            return "" if escaped == "\n" else escaped.translate(_QUOTED)
        if letter == "'":
            return self._read_single_quoted()
        if letter == '"':
            self.at += 1
            return self._read_double_quoted('"')
        if letter == "$":
            return self._read_expansion(quoted=False)
        if letter == "`":
            return self._read_backticks(quoted=False)
        begun, self.at = self.at, max(self.at + 1, _match_end(_ORDINARY, self.text, self.at))
        return self.text[begun : self.at]

    def _read_single_quoted(self) -> str:
        begun, ends = self.at + 1, _find_or_end(self.text, "'", self.at + 1)
        self.at = ends + 1
        return self.text[begun:ends].translate(_QUOTED)

    def _read_double_quoted(self, until: str) -> str:
        parts: list[str] = []
        while self.at < len(self.text):
            self.scope.spend()
            letter = self.text[self.at]
            if letter == until:
                break
            if letter == "$":
                parts.append(self._read_expansion(quoted=True))
            elif letter == "`":
                parts.append(self._read_backticks(quoted=True))
            elif letter == "\\":
                parts.append(self._read_escape_in_quotes())
            else:
                begun, self.at = self.at, max(self.at + 1, _match_end(_IN_QUOTES, self.text, self.at))
                parts.append(self.text[begun : self.at].translate(_QUOTED))
        self.at += 1
        return "".join(parts)

    def _read_escape_in_quotes(self) -> str:
        escaped = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if escaped == "\n":
            return ""
        return escaped if escaped and escaped in '$`"\\' else "\\" + escaped.translate(_QUOTED)

    def _read_expansion(self, *, quoted: bool) -> str:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "(" and (found := _ARITHMETIC.match(self.text, self.at + 1)):
            self.scope.spend(1 + (found.end() - self.at) // 64)
            self.at = found.end()
            return UNKNOWN
        if following == "(":
            self.at += 2
            return self._splice(self._read_substitution(), quoted=quoted)
        if following == "{":
            return self._read_braced(quoted=quoted)
        if following == "'" and not quoted:
            return self._read_ansi_c()
        if following == '"' and not quoted:
            self.at += 2
            return self._read_double_quoted('"')
        variable = _VARIABLE.match(self.text, self.at)
        if variable is None:
            self.at += 1
            return "$"
        self.at = variable.end()
        value = self._variable_value(variable[1] or variable[0][1:])
        return self._splice(self._join_elements(value) if quoted and variable[0] == "$*" else value, quoted=quoted)

    def _read_substitution(self) -> str:
        """Return what the commands up to the closing bracket print."""
        inner = ShellParser(self.text, self.scope, self.at, self.depth + 1, self._is_running())
        self.scope.enter_shell()
        inner.parse(")")
        self.scope.leave_shell()
        self.at = inner.at
        return inner.output

    def _read_braced(self, *, quoted: bool) -> str:
        found = _BRACED.match(self.text, self.at)
        if found is None:
            self.at += 2
            self._read_to_brace()
            return UNKNOWN
        self.at = found.end()
        prefix, name, subscript = found.groups()
        modifier = self._read_to_brace()
        if subscript is not None:
            value = pick_element(
                self._variable_value(f"{name}[]" if f"{name}[]" in self.scope.variables else name), subscript
            )
        else:
            value = self._variable_value(name)
        if prefix == "#":
            return str(len(value)) if UNKNOWN not in value and SPLIT not in value else UNKNOWN
        if prefix == "!":
            value = self._variable_value(plain_word(value)) if UNKNOWN not in value and not modifier else UNKNOWN
        elif operator := _OTHERWISE.match(modifier):
            value = self._apply_default(name, value, operator[0], modifier[operator.end() :])
        elif modifier:
            self.scope.spend(len(value) // 4)
            if (subscript or name) in ("@", "*"):
                value = modify_elements(plain_word(value), plain_word(modifier), positional=subscript is None)
            else:
                value = modify_value(plain_word(value), plain_word(modifier))
        if quoted and (subscript or name) == "*":
            value = self._join_elements(value)
        return self._splice(value[:SHELL_WORD_CHARS], quoted=quoted)

    def _apply_default(self, name: str, value: str, operator: str, other: str) -> str:
        """Evaluate `${name:-other}` and the like."""
        missing = not self._is_known(name) or (value == "" and operator[0] == ":")
        if operator[-1] == "+":
            return other
        if missing and operator[-1] == "=" and self._is_running():
            self.scope.assign(name, other)
        return other if missing and operator[-1] in "-=" else value

    def _read_to_brace(self) -> str:
        inner = ShellParser(self.text, self.scope, self.at, self.depth + 1, self._is_running())
        parts: list[str] = []
        while inner.at < len(self.text) and self.text[inner.at] != "}":
            self.scope.spend()
            letter = self.text[inner.at]
            if letter in "\\'\"$`":
                parts.append(inner._read_piece(letter))
            else:
                parts.append(letter)
                inner.at += 1
        self.at = inner.at + 1
        return "".join(parts)

    def _read_ansi_c(self) -> str:
        begun = self.at = self.at + 2
        while self.at < len(self.text) and self.text[self.at] != "'":
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.scope.spend(1 + (self.at - begun) // 16)
        inside, self.at = self.text[begun : self.at], self.at + 1
        return _ANSI_C.sub(_decode_escape, inside).translate(_QUOTED)

    def _read_backticks(self, *, quoted: bool) -> str:
        begun = self.at = self.at + 1
        while self.at < len(self.text) and self.text[self.at] != "`":
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.scope.spend(1 + (self.at - begun) // 16)
        inside, self.at = self.text[begun : self.at], self.at + 1
        inner = ShellParser(
            re.sub(r"\\([$`\\])", r"\1", inside), self.scope, depth=self.depth + 1, runs=self._is_running()
        )
        inner.parse()
        return self._splice(inner.output, quoted=quoted)

    def _variable_value(self, name: str) -> str:
        if name in self.scope.variables:
            return self.scope.variables[name]
        return _USUAL.get(name, UNKNOWN)

    def _join_elements(self, value: str) -> str:
        """Join the elements of `"$*"` and the like by the first character of `IFS`."""
        between = self.scope.variables.get("IFS", " ")
        return UNKNOWN if UNKNOWN in between else value.replace(SPLIT, between[:1])

    def _is_known(self, name: str) -> bool:
        return name in self.scope.variables or name in _USUAL

    def _splice(self, value: str, *, quoted: bool) -> str:
        """Put a value into a word; outside quotes, its white space or the characters in `IFS` separate words."""
        self.scope.spend(len(value) // 64)
        if quoted:
            return value
        between = self.scope.variables.get("IFS", "")
        parted = value.translate(dict.fromkeys(map(ord, between), " ")) if between.strip() else value
        return SPLIT.join(re.split(r"\s", parted))


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _find_or_end(text: str, what: str, at: int) -> int:
    """Return the position of `what`, or the end of the text."""
    found = text.find(what, at)
    return len(text) if found < 0 else found


def _decode_escape(found: re.Match[str]) -> str:
    for digits, system in ((found[1] or found[2] or found[3], 16), (found[4], 8)):
        if digits:
            code = int(digits, system)
            return chr(code) if code < 0x110000 else "?"
    return _ANSI_LETTERS.get(found[5], found[5])


def _expand_word(word: str) -> Iterator[str]:
    """Yield the words that a word expands to."""
    for each in _expand_braces(word):
        parts = each.split(SPLIT)
        yield from (_expand_home(part) for part in parts if part or len(parts) == 1)


def _expand_braces(word: str) -> list[str]:
    if "{" not in word or len(word) > SHELL_WORD_CHARS:
        return [word]
    done: list[str] = []
    waiting = [_RANGE.sub(_expand_range, word)]
    while waiting:
        each = waiting.pop()
        found = _CHOICE.search(each)
        if found is None or len(waiting) + len(done) > SHELL_BRACES:
            done.append(each)
        else:
            choices = found[1].split(",")[:SHELL_BRACES]
            waiting.extend(each[: found.start()] + choice + each[found.end() :] for choice in reversed(choices))
    return done


def _expand_range(found: re.Match[str]) -> str:
    """Expand `{a..e}` to `{a,b,c,d,e}`; a range that is too long or makes no sense becomes a star."""
    first, last = found[1], found[2]
    letters = len(first) == len(last) == 1 and not found[3]
    if not letters and not all(re.fullmatch(r"-?\d{1,6}", each) for each in (first, last)):
        return "*"
    start, end = (ord(first), ord(last)) if letters else (int(first), int(last))
    if found[3] or abs(end - start) >= SHELL_BRACES:
        return "*"
    step = 1 if end >= start else -1
    counted = [chr(at) if letters else str(at) for at in range(start, end + step, step)]
    return "{" + ",".join(counted) + "}" if len(counted) > 1 else counted[0]


def _find_body_end(text: str, begins: int) -> int:
    """Return where the group that begins here ends, or the end of the text; quotes and comments are skipped."""
    depth = documents = 0
    at = begins
    while (found := _BRACKETS.search(text, at)) and documents < SHELL_BRACES:
        at = found.end()
        if found[1]:  # a here-document: brackets in its body do not count
            documents += 1
            ended = re.compile(rf"^\t*{found[1]}$", re.MULTILINE).search(text, at)
            at = ended.end() if ended else at
        elif found[0] in ("{", "("):
            depth += 1
        elif found[0] in ("}", ")"):
            depth -= 1
            if depth <= 0:
                return at
    return len(text)


def _expand_home(word: str) -> str:
    if not word.startswith("~"):
        return word
    name, slash, rest = word[1:].partition("/")
    if name in ("+", "-"):
        return UNKNOWN + slash + rest
    if not name:
        return HOME + slash + rest
    return f"/root{slash}{rest}" if name == "root" else f"/home/{name}{slash}{rest}"

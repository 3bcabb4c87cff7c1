"""A shell's command line, read the way a shell reads it: words without their quotes, one simple command after the
other, with what is known of variables put in.

Runs nothing and finishes on any text, in time that grows with it. Made for looking through commands, not for running
them: what cannot be known without running stands as `UNKNOWN`. Knows nothing of what commands do.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from hummingbird.domain.host_limits import SHELL_BRACES, SHELL_DEPTH, SHELL_WORD_CHARS
from hummingbird.domain.shell_parameters import HOME, SPLIT, UNKNOWN, join_values, modify_value, pick_element

# What a shell would act on is kept apart from the same characters in quotes
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
_ANSI_C = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,6})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_USUAL = {"HOME": HOME, "IFS": " ", "SHELL": "/bin/sh", "BASH": "/bin/bash"}
_CHOICE = re.compile(r"\{([^{}]*,[^{}]*)\}")
_RANGE = re.compile(r"\{([^{},\s.]{1,12})\.\.([^{},\s.]{1,12})(\.\.[^{},\s]{1,12})?\}")
# Two words side by side are a command in brackets, not a sum
_ARITHMETIC = re.compile(r"\(\((?:(?!\w\s+[\w$])(?:[^()`'\"$\n]|\$(?!\())|\((?:[^()`'\"$\n]|\$(?!\())*\))*\)\)")
_ARRAY = re.compile(r"[A-Za-z_]\w*\+?=")
_FUNCTION = re.compile(r"\([^\S\n]*\)\s*")
_BRACKETS = re.compile(
    r"""[{}()]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|(?<![^\s;&|(){}])#[^\n]*|<<-?\s*['"\\]?(\w+)""", re.DOTALL
)


class TooInvolved(Exception):
    """A signal to whoever reads: more than is looked through. Not an error."""


@dataclass(frozen=True, slots=True)
class Simple:
    """One command. `redirects` are operators and where they lead, `given` is what a here-document or -string
    says, `piped` what the command before it prints into it (None: there is none), `after` the operator that ends it.
    `runs`: it is run here; not what stands in a function, between the brackets of a sum or as a pattern of `case`."""

    words: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...] = ()
    given: str = ""
    piped: str | None = None
    after: str = ""
    runs: bool = True


class Scope(Protocol):
    """What a reader asks and tells. `variables`: known ones; a `SPLIT` in a value separates words, quoted or not. An
    array is there twice: `name` is its first element, `name[]` all of them. `files`: what is known of their content."""

    variables: dict[str, str]
    files: dict[str, str]

    def spend(self, steps: int = 1) -> None:
        """Raises TooInvolved once it is too much."""
        ...

    def run(self, command: Simple) -> str | None:
        """What it prints, None if that is not known."""
        ...

    def assign(self, name: str, value: str) -> None:
        """Set a variable; one that was something else before is not certain any more."""
        ...

    def define(self, name: str, body: str) -> None:
        """Keep a function."""
        ...

    def enter(self) -> None:
        """A shell of its own begins, as between brackets."""
        ...

    def leave(self) -> None:
        """It ends; there may have been none."""
        ...


def plain(word: str) -> str:
    """A word as its command gets it."""
    return word.translate(_PLAIN)


@dataclass(slots=True)
class Reader:
    """Tells its scope one command after the other, those within substitutions before those around them."""

    text: str
    scope: Scope
    at: int = 0
    depth: int = 0
    runs: bool = True
    _words: list[str] = field(default_factory=list)
    _word: list[str] | None = None
    _redirects: list[tuple[str, str]] = field(default_factory=list)
    _operator: str = ""  # whose target comes next
    _given: str = ""
    _body_ends: int = 0  # of the here-documents of this line
    _runs_from: int = 0  # behind a function or a sum
    _open: int = 0  # brackets
    _assigns: bool = True  # this command has assignments alone so far
    _output: str | None = None
    _piping: bool = False
    _printed: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.depth > SHELL_DEPTH:
            raise TooInvolved

    def read(self, until: str = "") -> None:
        """To the end, or to the bracket that closes the substitution it stands in."""
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == ")" and until and not self._open:
                break
            self._take(letter)
        self._end_command("")
        self.at += 1

    @property
    def output(self) -> str:
        """What all of it prints, as far as that is known."""
        known = [text for text in self._printed if text is not None]
        return " ".join(known)[:SHELL_WORD_CHARS] if known and len(known) == len(self._printed) else UNKNOWN

    def quoted(self) -> str:
        """What the rest is within double quotes, as which here-documents are read."""
        return self._double_quoted("")

    def _take(self, letter: str) -> None:
        self.scope.spend()
        if letter == "\n":
            self._end_command("\n")
            self.at, self._body_ends = max(self.at + 1, self._body_ends), 0
        elif letter.isspace():
            self._end_word()
            self.at = _end(_BLANK, self.text, self.at)
        elif letter == "#" and self._word is None:
            self.at = _found(self.text, "\n", self.at)
        elif letter in ";&|":
            self._operate()
        elif letter == "(":
            self._open_bracket()
        elif letter == ")":
            self._end_command(")", runs=self._open > 0)
            self._open = max(self._open - 1, 0)
            self.scope.leave()
            self.at += 1
        elif letter in "<>":
            self._redirect()
        else:
            self._add(self._piece(letter))

    def _add(self, piece: str) -> None:
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
        self.scope.enter()
        self.at += 1

    def _begin_function(self, name: str, begins: int) -> None:
        """What is in it is read here too, for what it says; it runs where it is called."""
        self.scope.spend(1 + (len(self.text) - begins) // 16)
        ends = _end_of_body(self.text, begins)
        self._runs_from = max(self._runs_from, ends)
        if self.runs:
            self.scope.define(plain(name), self.text[begins:ends])

    def _read_array(self, assignment: str) -> None:
        """`name=(one two)`; nothing in it is a command."""
        inner = Reader(self.text, self.scope, self.at + 1, self.depth + 1, self.runs)
        while inner.at < len(self.text) and self.text[inner.at] != ")":
            self.scope.spend()
            letter = self.text[inner.at]
            if letter.isspace():
                inner._end_word()
                inner.at += 1
            elif letter in ";&|<>(":
                inner.at += 1
            else:
                inner._add(inner._piece(letter))
        inner._end_word()
        self.at = inner.at + 1
        if self._is_running():
            name, appended = assignment.removesuffix("=").removesuffix("+"), assignment.endswith("+=")
            before = [self.scope.variables[f"{name}[]"]] if appended and f"{name}[]" in self.scope.variables else []
            keyed = any(word.startswith("[") and "]=" in word for word in inner._words)
            self.scope.assign(f"{name}[]", UNKNOWN if keyed else join_values([*before, *inner._words]))
            self.scope.assign(name, (before or inner._words or [""])[0].split(SPLIT)[0])

    def _operate(self) -> None:
        found = _OPERATOR.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        if found[0].startswith("&>"):
            self._end_word()
            self._operator = found[0]
        else:
            self._end_command(found[0])

    def _redirect(self) -> None:
        if self.text.startswith(("<(", ">("), self.at):
            into = self.text[self.at] == ">"
            self.at += 2
            printed = self._substituted()
            name = f"/dev/fd/{63 + len(self.scope.files)}"
            self.scope.files[name] = UNKNOWN if into else printed
            self._add(name)
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
            self._given += self._document(text)
        elif operator == "<<<":
            self._given += plain(_at_home(text.replace(SPLIT, " "))) + "\n"
        elif operator:
            self._redirects.append((operator, next(iter(_expanded(text)), "")))
        else:
            before = len(self._words)
            self._words.extend(_expanded(text))
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
            self._output = self.scope.run(Simple(words, redirects, given, piped, operator, runs))
            if operator not in ("|", "|&"):
                self._printed.append(self._output)
        self._piping = operator in ("|", "|&") or (self._piping and not words and operator == "\n")
        self._operator, self._assigns = "", True

    def _document(self, delimiter: str) -> str:
        """The here-document that begins on the next line; its substitutions are run unless the delimiter is quoted."""
        begins = self._body_ends or _found(self.text, "\n", self.at) + 1
        self.scope.spend(1 + (len(self.text) - min(begins, len(self.text))) // 64)
        wanted = re.compile(rf"^\t*{re.escape(plain(delimiter))}$", re.MULTILINE)
        found = wanted.search(self.text, begins) if begins <= len(self.text) else None
        body = self.text[begins : found.start() if found else len(self.text)]
        self._body_ends = found.end() + 1 if found else len(self.text)
        if "$" in body or "`" in body:
            Reader(body, self.scope, depth=self.depth + 1, runs=self._is_running()).quoted()
        return body

    def _is_running(self) -> bool:
        return self.runs and self.at >= self._runs_from

    def _piece(self, letter: str) -> str:
        """One piece of a word, from here on."""
        if letter == "\\":
            self.at += 2
            escaped = self.text[self.at - 1 : self.at]
            return "" if escaped == "\n" else escaped.translate(_QUOTED)
        if letter == "'":
            return self._single_quoted()
        if letter == '"':
            self.at += 1
            return self._double_quoted('"')
        if letter == "$":
            return self._expansion(quoted=False)
        if letter == "`":
            return self._backticks(quoted=False)
        begun, self.at = self.at, max(self.at + 1, _end(_ORDINARY, self.text, self.at))
        return self.text[begun : self.at]

    def _single_quoted(self) -> str:
        begun, ends = self.at + 1, _found(self.text, "'", self.at + 1)
        self.at = ends + 1
        return self.text[begun:ends].translate(_QUOTED)

    def _double_quoted(self, until: str) -> str:
        parts: list[str] = []
        while self.at < len(self.text):
            self.scope.spend()
            letter = self.text[self.at]
            if letter == until:
                break
            if letter == "$":
                parts.append(self._expansion(quoted=True))
            elif letter == "`":
                parts.append(self._backticks(quoted=True))
            elif letter == "\\":
                parts.append(self._escape_in_quotes())
            else:
                begun, self.at = self.at, max(self.at + 1, _end(_IN_QUOTES, self.text, self.at))
                parts.append(self.text[begun : self.at].translate(_QUOTED))
        self.at += 1
        return "".join(parts)

    def _escape_in_quotes(self) -> str:
        escaped = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if escaped == "\n":
            return ""
        return escaped if escaped and escaped in '$`"\\' else "\\" + escaped.translate(_QUOTED)

    def _expansion(self, *, quoted: bool) -> str:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "(" and (found := _ARITHMETIC.match(self.text, self.at + 1)):
            self.scope.spend(1 + (found.end() - self.at) // 64)
            self.at = found.end()
            return UNKNOWN
        if following == "(":
            self.at += 2
            return self._splice(self._substituted(), quoted=quoted)
        if following == "{":
            return self._braced(quoted=quoted)
        if following == "'" and not quoted:
            return self._ansi_c()
        if following == '"' and not quoted:
            self.at += 2
            return self._double_quoted('"')
        variable = _VARIABLE.match(self.text, self.at)
        if variable is None:
            self.at += 1
            return "$"
        self.at = variable.end()
        return self._splice(self._value(variable[1] or variable[0][1:]), quoted=quoted)

    def _substituted(self) -> str:
        """What the commands up to the closing bracket print."""
        inner = Reader(self.text, self.scope, self.at, self.depth + 1, self._is_running())
        self.scope.enter()
        inner.read(")")
        self.scope.leave()
        self.at = inner.at
        return inner.output

    def _braced(self, *, quoted: bool) -> str:
        found = _BRACED.match(self.text, self.at)
        if found is None:
            self.at += 2
            self._up_to_brace()
            return UNKNOWN
        self.at = found.end()
        prefix, name, subscript = found.groups()
        modifier = self._up_to_brace()
        if subscript is not None:
            value = pick_element(self._value(f"{name}[]" if f"{name}[]" in self.scope.variables else name), subscript)
        else:
            value = self._value(name)
        if prefix == "#":
            return str(len(value)) if UNKNOWN not in value and SPLIT not in value else UNKNOWN
        if prefix == "!":
            value = self._value(plain(value)) if UNKNOWN not in value and not modifier else UNKNOWN
        elif operator := _OTHERWISE.match(modifier):
            value = self._otherwise(name, value, operator[0], modifier[operator.end() :])
        elif modifier:
            self.scope.spend(len(value) // 4)
            value = modify_value(plain(value), plain(modifier))
        return self._splice(value[:SHELL_WORD_CHARS], quoted=quoted)

    def _otherwise(self, name: str, value: str, operator: str, other: str) -> str:
        """`${name:-other}` and the like."""
        missing = not self._is_known(name) or (value == "" and operator[0] == ":")
        if operator[-1] == "+":
            return other
        if missing and operator[-1] == "=" and self._is_running():
            self.scope.assign(name, other)
        return other if missing and operator[-1] in "-=" else value

    def _up_to_brace(self) -> str:
        inner = Reader(self.text, self.scope, self.at, self.depth + 1, self._is_running())
        parts: list[str] = []
        while inner.at < len(self.text) and self.text[inner.at] != "}":
            self.scope.spend()
            letter = self.text[inner.at]
            if letter in "\\'\"$`":
                parts.append(inner._piece(letter))
            else:
                parts.append(letter)
                inner.at += 1
        self.at = inner.at + 1
        return "".join(parts)

    def _ansi_c(self) -> str:
        begun = self.at = self.at + 2
        while self.at < len(self.text) and self.text[self.at] != "'":
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.scope.spend(1 + (self.at - begun) // 16)
        inside, self.at = self.text[begun : self.at], self.at + 1
        return _ANSI_C.sub(_letter, inside).translate(_QUOTED)

    def _backticks(self, *, quoted: bool) -> str:
        begun = self.at = self.at + 1
        while self.at < len(self.text) and self.text[self.at] != "`":
            self.at += 2 if self.text[self.at] == "\\" else 1
        self.scope.spend(1 + (self.at - begun) // 16)
        inside, self.at = self.text[begun : self.at], self.at + 1
        inner = Reader(re.sub(r"\\([$`\\])", r"\1", inside), self.scope, depth=self.depth + 1, runs=self._is_running())
        inner.read()
        return self._splice(inner.output, quoted=quoted)

    def _value(self, name: str) -> str:
        if name in self.scope.variables:
            return self.scope.variables[name]
        return _USUAL.get(name, UNKNOWN)

    def _is_known(self, name: str) -> bool:
        return name in self.scope.variables or name in _USUAL

    def _splice(self, value: str, *, quoted: bool) -> str:
        """Put a value into a word; out of quotes its spaces, or what `IFS` says, part words."""
        self.scope.spend(len(value) // 64)
        if quoted:
            return value
        between = self.scope.variables.get("IFS", "")
        parted = value.translate(dict.fromkeys(map(ord, between), " ")) if between.strip() else value
        return SPLIT.join(re.split(r"\s", parted))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _found(text: str, what: str, at: int) -> int:
    """Where it is, or the end."""
    found = text.find(what, at)
    return len(text) if found < 0 else found


def _letter(found: re.Match[str]) -> str:
    for digits, system in ((found[1] or found[2] or found[3], 16), (found[4], 8)):
        if digits:
            code = int(digits, system)
            return chr(code) if code < 0x110000 else "?"
    return _ANSI_LETTERS.get(found[5], found[5])


def _expanded(word: str) -> Iterator[str]:
    """The words that it stands for."""
    for each in _unbraced(word):
        parts = each.split(SPLIT)
        yield from (_at_home(part) for part in parts if part or len(parts) == 1)


def _unbraced(word: str) -> list[str]:
    if "{" not in word or len(word) > SHELL_WORD_CHARS:
        return [word]
    done: list[str] = []
    waiting = [_RANGE.sub(_count, word)]
    while waiting:
        each = waiting.pop()
        found = _CHOICE.search(each)
        if found is None or len(waiting) + len(done) > SHELL_BRACES:
            done.append(each)
        else:
            choices = found[1].split(",")[:SHELL_BRACES]
            waiting.extend(each[: found.start()] + choice + each[found.end() :] for choice in reversed(choices))
    return done


def _count(found: re.Match[str]) -> str:
    """`{a..e}` as `{a,b,c,d,e}`; a star for one that is too long or makes no sense."""
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


def _end_of_body(text: str, begins: int) -> int:
    """Where the group ends that begins here, quotes and comments passed over; the end of the text if it never does."""
    depth = documents = 0
    at = begins
    while (found := _BRACKETS.search(text, at)) and documents < SHELL_BRACES:
        at = found.end()
        if found[1]:  # a here-document: its body has brackets of its own
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


def _at_home(word: str) -> str:
    if not word.startswith("~"):
        return word
    name, slash, rest = word[1:].partition("/")
    if name in ("+", "-"):
        return UNKNOWN + slash + rest
    if not name:
        return HOME + slash + rest
    return f"/root{slash}{rest}" if name == "root" else f"/home/{name}{slash}{rest}"

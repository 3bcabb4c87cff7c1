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

HOME = "/home/\ue000"
UNKNOWN = "\ue001"
_SPLIT = "\ue002"
# What a shell would act on is kept apart from the same characters in quotes
_QUOTED = {ord(c): chr(0xE010 + i) for i, c in enumerate("*?[]{},~")}
_PLAIN = {ord(there): chr(here) for here, there in _QUOTED.items()}

_ORDINARY = re.compile(r"[^\s\\'\"$`;&|<>()#]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_BLANK = re.compile(r"[^\S\n]+")
_OPERATOR = re.compile(r"&>>?|\|\||&&|;;&?|;&|\|&|[;&|]")
_REDIRECT = re.compile(r"<<<|<<-?|<>|<&|>&|>>|>\||[<>]")
_VARIABLE = re.compile(r"\$(?:(\w+)|[@*#?$!-])")
_BRACED = re.compile(r"\$\{[!#]?(\w+|[@*#?$!-])(:?[-=+?])?")
_ANSI_C = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,6})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_CHOICE = re.compile(r"\{([^{}]*,[^{}]*)\}")
_RANGE = re.compile(r"\{[^{},\s]{1,12}\.\.[^{},\s]{1,12}\}")


class TooInvolved(Exception):
    """A signal to whoever reads: more than is looked through. Not an error."""


@dataclass(frozen=True, slots=True)
class Simple:
    """One command. `redirects` are operators and where they lead, `given` is what a here-document or -string
    says, `piped` what the command before it is known to print into it, `after` the operator that ends it."""

    words: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...]
    given: str
    piped: str | None
    after: str


class Scope(Protocol):
    """What a reader asks and tells. `variables`: known ones; a `_SPLIT` in a value separates words, quoted or not."""

    variables: dict[str, str]

    def spend(self, steps: int = 1) -> None:
        """Raises TooInvolved once it is too much."""
        ...

    def run(self, command: Simple) -> str | None:
        """What it prints, None if that is not known."""
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


def several(values: tuple[str, ...]) -> str:
    """The value of a variable that is each of them in turn."""
    return _SPLIT.join(values)


@dataclass(slots=True)
class Reader:
    """Tells its scope one command after the other, those within substitutions before those around them."""

    text: str
    scope: Scope
    at: int = 0
    depth: int = 0
    _words: list[str] = field(default_factory=list)
    _word: list[str] | None = None
    _redirects: list[tuple[str, str]] = field(default_factory=list)
    _operator: str = ""  # whose target comes next
    _given: str = ""
    _body_ends: int = 0  # of the here-documents of this line
    _output: str | None = None
    _piping: bool = False
    _printed: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.depth > SHELL_DEPTH:
            raise TooInvolved

    def read(self, until: str = "") -> None:
        """To the end, or to the bracket that closes the substitution it stands in."""
        open_brackets = 0
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == ")" and until and not open_brackets:
                break
            open_brackets += {"(": 1, ")": -1}.get(letter, 0)
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
        elif letter in "()":
            self._end_command(letter)
            self.scope.enter() if letter == "(" else self.scope.leave()
            self.at += 1
        elif letter in "<>":
            self._redirect()
        else:
            self._add(self._piece(letter))

    def _add(self, piece: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(piece)

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
            self.at += 2
            self._substituted()
            self._add(UNKNOWN)
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
            self._given += plain(_at_home(text.replace(_SPLIT, " "))) + "\n"
        elif operator:
            self._redirects.append((operator, next(iter(_expanded(text)), "")))
        else:
            self._words.extend(_expanded(text))

    def _end_command(self, operator: str) -> None:
        self._end_word()
        words, redirects, self._words, self._redirects = tuple(self._words), tuple(self._redirects), [], []
        given, self._given = self._given, ""
        piped = self._output if self._piping else None
        if words or redirects:
            self._output = self.scope.run(Simple(words, redirects, given, piped, operator))
            if operator not in ("|", "|&"):
                self._printed.append(self._output)
        self._piping = operator in ("|", "|&") or (self._piping and not words and operator == "\n")
        self._operator = ""

    def _document(self, delimiter: str) -> str:
        """The here-document that begins on the next line; its substitutions are run unless the delimiter is quoted."""
        begins = self._body_ends or _found(self.text, "\n", self.at) + 1
        self.scope.spend(1 + (len(self.text) - min(begins, len(self.text))) // 64)
        wanted = re.compile(rf"^\t*{re.escape(plain(delimiter))}$", re.MULTILINE)
        found = wanted.search(self.text, begins) if begins <= len(self.text) else None
        body = self.text[begins : found.start() if found else len(self.text)]
        self._body_ends = found.end() + 1 if found else len(self.text)
        if "$" in body or "`" in body:
            Reader(body, self.scope, depth=self.depth + 1).quoted()
        return body

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
        if following == "(":
            self.at += 2
            return _spliced(self._substituted(), quoted=quoted)
        if following == "{":
            return self._braced(quoted=quoted)
        if following == "'" and not quoted:
            return self._ansi_c()
        if following == '"' and not quoted:
            self.at += 2
            return self._double_quoted('"')
        found = _VARIABLE.match(self.text, self.at)
        if found is None:
            self.at += 1
            return "$"
        self.at = found.end()
        return _spliced(self._value(found[1] or ""), quoted=quoted)

    def _substituted(self) -> str:
        """What the commands up to the closing bracket print."""
        inner = Reader(self.text, self.scope, self.at, self.depth + 1)
        self.scope.enter()
        inner.read(")")
        self.scope.leave()
        self.at = inner.at
        return inner.output

    def _braced(self, *, quoted: bool) -> str:
        found = _BRACED.match(self.text, self.at)
        if found is None:
            self.at += 2
            return UNKNOWN
        self.at = found.end()
        otherwise = self._up_to_brace()
        value, operator = self._value(found[1]), found[2] or ""
        if operator.endswith("+") or (operator.endswith(("-", "=")) and value == UNKNOWN):
            value = otherwise
        return _spliced(value, quoted=quoted)

    def _up_to_brace(self) -> str:
        inner = Reader(self.text, self.scope, self.at, self.depth + 1)
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
        inner = Reader(re.sub(r"\\([$`\\])", r"\1", inside), self.scope, depth=self.depth + 1)
        inner.read()
        return _spliced(inner.output, quoted=quoted)

    def _value(self, name: str) -> str:
        if name in self.scope.variables:
            return self.scope.variables[name]
        return {"HOME": HOME, "IFS": " "}.get(name, UNKNOWN)


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


def _spliced(value: str, *, quoted: bool) -> str:
    """A value in a word; out of quotes its spaces part words."""
    return value if quoted else _SPLIT.join(re.split(r"\s", value))


def _expanded(word: str) -> Iterator[str]:
    """The words that it stands for."""
    for each in _unbraced(word):
        parts = each.split(_SPLIT)
        yield from (_at_home(part) for part in parts if part or len(parts) == 1)


def _unbraced(word: str) -> list[str]:
    if "{" not in word or len(word) > SHELL_WORD_CHARS:
        return [word]
    done: list[str] = []
    waiting = [_RANGE.sub("*", word)]
    while waiting:
        each = waiting.pop()
        found = _CHOICE.search(each)
        if found is None or len(waiting) + len(done) > SHELL_BRACES:
            done.append(each)
        else:
            choices = found[1].split(",")[:SHELL_BRACES]
            waiting.extend(each[: found.start()] + choice + each[found.end() :] for choice in reversed(choices))
    return done


def _at_home(word: str) -> str:
    if not word.startswith("~"):
        return word
    name, slash, rest = word[1:].partition("/")
    if name in ("+", "-"):
        return UNKNOWN + slash + rest
    if not name:
        return HOME + slash + rest
    return f"/root{slash}{rest}" if name == "root" else f"/home/{name}{slash}{rest}"

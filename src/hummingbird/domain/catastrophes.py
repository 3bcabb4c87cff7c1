"""The short list of commands that are refused in every mode, whatever anybody approves (C6): those after which there is
no machine, or no home, to take anything back on.

A net for accidents and for plain malice, not a border: a command can be hidden in a file, in base64 or in another
language, and rules, questions and sandboxes are there for that. It reads a command as a shell would (`shell_words`), so
it sees through spelling and does not mind such words where they are only talked about. Once as the text stands, and
once without its disguise. Pure, and total on any text.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile

from hummingbird.domain.host_limits import SHELL_STEPS, SHELL_WORD_CHARS
from hummingbird.domain.ruinous import harm, ruined
from hummingbird.domain.shell_words import HOME, UNKNOWN, Reader, Simple, TooInvolved, plain, several
from hummingbird.domain.shell_wrappers import SHELLS, script_of, unwrapped

_INVOLVED = "It is too long or too involved to be looked through; make several commands of it."
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|.)?")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")
_GRAMMAR = frozenset(
    ("if", "then", "else", "elif", "fi", "do", "done", "while", "until", "esac", "coproc", "function", "!", "{", "}")
)
_SHELL_LIKE = frozenset(("eval", "su", "script", "watch", "trap", "alias", "source", ".", "parallel"))
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>", ">&"))
_FORKS = re.compile(r"\bfork\b[\s();]*(?:while|until)\b[\s();!]*fork\b|while\s*\(?1?\)?\s*\{?\s*fork\b")
_BOMB = "It is a fork bomb: it starts itself again and again until nothing else can run."
_BEFORE_A_COMMAND = frozenset(("{", "|", "|&", "&", ";", "&&", "||", "(", ")", "\n", "do", "then"))
_BOMB_TOKENS = 24  # of a function, within which it calls itself twice and does not wait
_NARROWING = re.compile(
    r"-(?:i?name|i?path|i?wholename|i?regex|[acm](?:min|time)|newer.*|size|user|uid|inum|samefile|empty)$"
)
_ENDING = frozenset(("rm", "shred", "truncate", "unlink"))  # with what is in a file
_LONG_GAP = re.compile(r" {17,}")
_LONG_BREAK = re.compile(r"\n(?:[ ]*\n){2,}")


def catastrophe(command: str, folder: str = "") -> str:
    """Why this command, run in this folder (empty: not known), is refused, as a sentence; empty if it is not."""
    for text in _readings(command):
        looking = _Looking(folder)
        try:
            looking.look(text)
        except TooInvolved:
            looking.reason = looking.reason or _INVOLVED
        if reason := looking.reason or looking.bomb():
            return reason
    return ""


def spoken(command: str) -> list[str]:
    """What a shell would make of it: each command that it runs by itself, also within others, and all of it, with no
    quotes and one space between two words. Raises TooInvolved."""
    found: dict[str, None] = {}
    for text in _readings(command):
        looking = _Looking()
        looking.look(text)
        found |= dict.fromkeys([*looking.commands, " ".join(looking.tokens)])
    return [text.replace(HOME, "~") for text in found]


def _readings(command: str) -> Iterable[str]:
    return dict.fromkeys((command, _undisguised(command)))


def normalised(command: str) -> str:
    """For people who are asked about it: on as few lines as it has, and everything that a screen would not show, or
    show as something else, written as its escape."""
    joined = command.replace("\\\n", "")
    shown = "".join(c if c in " \n" or (c.isprintable() and not _poses(c)) else _escape(c) for c in joined)
    closer = _LONG_GAP.sub(lambda gap: f" [{len(gap[0])} spaces] ", shown)
    return _LONG_BREAK.sub("\n\n", closer).strip()


def _poses(letter: str) -> bool:
    """Whether it looks like one or several of ASCII, as full-width letters do, and is none."""
    return not letter.isascii() and unicodedata.normalize("NFKC", letter).isascii()


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def _undisguised(text: str) -> str:
    return _TERMINAL.sub("", text).translate(_Undisguising()) if not text.isascii() or not text.isprintable() else text


class _Undisguising(dict[int, str]):
    """Letter by letter: putting many combining marks in order takes the square of their number."""

    def __missing__(self, code: int) -> str:
        letters = unicodedata.normalize("NFKC", chr(code))
        self[code] = "".join(c for c in letters if c in "\n\t" or unicodedata.category(c)[0] not in "CM")
        return self[code]


class _Looking:
    """A `Scope` that runs nothing: it follows where the shell stands and what its variables are."""

    def __init__(self, folder: str = "") -> None:
        self.variables: dict[str, str] = {}
        self.reason = ""
        self.commands: list[str] = []
        self.tokens: list[str] = []
        self._folder = folder  # empty where it is not known
        self._folders: list[str] = []  # of the shells around this one
        self._steps = 0
        self._depth = 0
        self._listing = ""  # what a `find` that nothing narrows gives to others
        self._each = False  # what is run now is run for everything below its arguments

    def look(self, text: str) -> None:
        """Raises TooInvolved."""
        Reader(text.replace("\\\n", ""), self).read()

    def spend(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > SHELL_STEPS:
            raise TooInvolved

    def run(self, command: Simple) -> str | None:
        self.tokens += [*map(plain, command.words), command.after]
        for operator, target in command.redirects:
            if operator in _WRITES:
                self._note(ruined(target, self._folder))
        words = self._settled(list(command.words))
        return self._perform(words, command) if words else ""

    def enter(self) -> None:
        self._folders.append(self._folder)

    def leave(self) -> None:
        if self._folders:
            self._folder = self._folders.pop()

    def bomb(self) -> str:
        """A function that starts itself twice and does not wait."""
        for at, (name, following) in enumerate(pairwise(self.tokens)):
            defined = following == "(" or (at and self.tokens[at - 1] == "function")
            if name and defined and _multiplies(name, self.tokens[at + 2 : at + 2 + _BOMB_TOKENS]):
                return _BOMB
        return ""

    def _note(self, reason: str) -> None:
        self.reason = self.reason or reason

    def _settled(self, words: list[str]) -> list[str]:
        """The command, without the grammar and the assignments before it."""
        while words:
            first = plain(words[0])
            assigned = _ASSIGNMENT.match(first)
            if first in ("for", "select") and len(words) > 3:
                self.variables[plain(words[1])] = several(tuple(words[3:]))[:SHELL_WORD_CHARS]
                return []
            if assigned:
                self.variables[assigned[1]] = words[0].partition("=")[2][:SHELL_WORD_CHARS]
            elif first not in _GRAMMAR:
                break
            del words[: 2 if first == "function" else 1]
        return words

    def _perform(self, words: list[str], command: Simple) -> str | None:
        self._say(words)
        fed = bool(self._listing) and command.piped == self._listing and plain(words[0]) == "xargs"
        words = unwrapped(words, command.piped or command.given)
        if not words:
            return ""
        self._say(words)
        before, self._each = self._each, self._each or fed
        try:
            return self._done(words, command)
        finally:
            self._each = before

    def _say(self, words: Sequence[str]) -> None:
        text = " ".join(map(plain, words))
        self.spend(1 + len(text) // 64)
        self.commands.append(text)

    def _done(self, words: list[str], command: Simple) -> str | None:
        name, arguments = posixpath.basename(plain(words[0])), words[1:]
        if name in ("echo", "printf"):
            return _printed(name, arguments)
        if name in ("cat", "tee") and (command.given or command.piped):
            self._note(harm(name, arguments, self._folder))
            return command.given or command.piped
        if name in ("cd", "pushd"):
            self._go(arguments)
        elif name == "popd":
            self._folder = ""
        elif name in SHELLS or name in _SHELL_LIKE:
            self._within(name, arguments, command)
        elif name == "find":
            return self._find(arguments)
        elif name == "perl" and _FORKS.search(" ".join(map(plain, arguments))):
            self._note(_BOMB)
        elif self._each and name in _ENDING:
            self._note(harm("rm", ["-r", *arguments], self._folder))
        else:
            self._note(harm(name, arguments, self._folder))
        return None

    def _go(self, arguments: Sequence[str]) -> None:
        where = [word for word in arguments if not plain(word).startswith("-") or plain(word) == "-"]
        target = plain(where[0]) if where else HOME
        if target.startswith(UNKNOWN) or target == "-":
            self._folder = ""
        elif target.startswith("/") or self._folder:
            self._folder = posixpath.normpath(posixpath.join(self._folder, target))

    def _within(self, name: str, arguments: Sequence[str], command: Simple) -> None:
        """What another shell, or this one in another place, is told to run."""
        fed = command.given or command.piped or ""
        script, positional = script_of(name, arguments, fed)
        if script is None:
            script = fed
        before, folder = self.variables, self._folder
        self.variables = {**before, **{str(at): value for at, value in enumerate(positional)}}
        if positional:
            self.variables["@"] = self.variables["*"] = several(tuple(positional[1:]))[:SHELL_WORD_CHARS]
        self._read(script)
        if name not in ("eval", "source", "."):
            self.variables, self._folder = before, folder

    def _read(self, script: str) -> None:
        self._depth += 1
        Reader(script, self, depth=self._depth).read()
        self._depth -= 1

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
                found = [] if narrowed else starts
                self._perform_found([each for word in inner for each in (found if plain(word) == "{}" else [word])])
        self._listing = "" if narrowed else " ".join(starts)
        return None if narrowed else self._listing

    def _perform_found(self, words: list[str]) -> None:
        name = posixpath.basename(plain(words[0])) if words else ""
        recursive = ["-R"] if name in ("chmod", "chown", "chgrp") else []
        before, self._each = self._each, True
        if words:
            self._perform([*words[:1], *recursive, *words[1:]], Simple((), (), "", None, ""))
        self._each = before


def _end_of_exec(flags: Sequence[str], at: int) -> int:
    return next((i for i in range(at + 1, len(flags)) if flags[i] in (";", "+")), len(flags))


def _multiplies(name: str, body: Sequence[str]) -> bool:
    """Calls it as a command, not as some argument, at least twice."""
    inside = takewhile("}".__ne__, body)
    tokens = ["{", *(token.removeprefix("{") or "{" for token in inside)]
    calls = [token for before, token in pairwise(tokens) if token == name and before in _BEFORE_A_COMMAND]
    return len(calls) >= 2 and "&" in tokens


def _printed(name: str, arguments: Sequence[str]) -> str:
    words = [plain(word) for word in arguments]
    if name == "echo":
        while words and re.fullmatch(r"-[neE]+", words[0]):
            words.pop(0)
    elif len(words) > 1 and "%" in words[0]:
        words.pop(0)
    return " ".join(words).replace("\\n", "\n")

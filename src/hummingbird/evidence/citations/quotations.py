"""The quotations of an answer: which of its lines claim to be somebody else's words.

Code without a language, or with one that is no language, indented code, block quotes, and lines of prose that begin
with a number as our tools write it. Code with a language is a proposal, unless its lines carry numbers, and so are
commands alone. Alerts and steps that are counted from 1 are the model's own prose. Knows nothing of what was fetched.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hummingbird.evidence.citations.lines import ITEM, numbered, peeled_apart, says_nothing

_PLAIN = frozenset(
    {
        *("", "text", "txt", "plain", "plaintext", "none", "raw", "log", "logs", "logfile", "joblog"),
        *("console", "terminal", "tty", "ansi", "shell-session", "shellsession", "sh-session", "session"),
        *("output", "out", "result", "results", "stdout", "stderr", "error", "errors", "err", "warning", "failure"),
        *("trace", "traceback", "backtrace", "stacktrace", "stack-trace", "stack", "pytb", "py3tb", "tap"),
    }
)
_PREFIX = re.compile(r"[ \t>]*")
_QUOTING = re.compile(rf"[ \t]*(?:{ITEM}[ \t]+)*>[ \t>]*")
_PROSE_NUMBER = re.compile(r"((?: {0,3}>)* {0,3})(\d{1,9}): (?=\S)")
_STEP = re.compile(r"[A-Za-z]?[a-z]+ \S.*")
_ALERT = re.compile(
    r"\s*(?:\[!(?:note|tip|important|warning|caution)\].*"
    r"|\*\*(?:note|tip|hint|warning|important|caution|caveat)(?::\*\*|\*\*:).*)",
    re.IGNORECASE,
)
_PROGRAM = (
    r"pip3?|pipx|uv|poetry|tox|nox|pytest|ruff|mypy|python3?|npm|npx|yarn|pnpm|node|git|glab|gh|make|cmake|ninja|meson|bazel"
    r"|docker|podman|buildah|skopeo|kubectl|oc|helm|tkn|terraform|ansible|cargo|rustup|go|gofmt|mvn|gradle|\./gradlew|\./mvnw"
    r"|bundle|rake|gem|composer|dotnet|curl|wget|apt|apt-get|dnf|yum|apk|brew|sudo|cd|export|mkdir|rm|cp|mv|sed|grep|cat"
)
_COMMAND = re.compile(rf"\s*(?:\$ [\w./~-]+(?: .*)?|(?:{_PROGRAM})(?: .*)?)")
_OUTCOME = re.compile(
    r"\b(?:err(?:ors?)?|fail(?:ed|s|ure)?|fatal|panic(?:ked)?|exception"
    r"|warn(?:ings?)?|killed|exited|timed out|not found)\b|: ",
    re.IGNORECASE,
)


class Kind(Enum):
    FENCE = "fence"
    INDENTED = "indented"
    QUOTE = "quote"
    PROSE = "prose"


@dataclass(frozen=True, slots=True)
class Line:
    """`at`: which line of the answer, from 0. `prefix`: what stands before its text there."""

    at: int
    prefix: str
    text: str


@dataclass(frozen=True, slots=True)
class Quotation:
    """`first` up to `end`: its lines of the answer, fences included. `proposal`: code that somebody might write."""

    kind: Kind
    first: int
    end: int
    lines: tuple[Line, ...]
    proposal: bool = False

    @property
    def neighbours(self) -> Iterator[tuple[Line, Line]]:
        """Two lines, one below the other, that might be one which was wrapped."""
        return ((one, other) for one, other in pairwise(self.lines) if other.at == one.at + 1)

    @property
    def within(self) -> tuple[str, str] | None:
        """Its first line and its last without the marks around the whole block quote, if there are any."""
        if self.kind is not Kind.QUOTE or len(self.lines) < 2:
            return None
        return peeled_apart(self.lines[0].text, self.lines[-1].text)


def quotations(lines: Sequence[str]) -> tuple[Quotation, ...]:
    """In their order; none stands within another."""
    found: list[Quotation] = []
    tokens = _parser().parse("\n".join(lines))
    covered = 0
    for token in tokens:
        if token.map is None or token.map[0] < covered:
            continue
        if made := _made(token, lines):
            covered = made[-1].end
            found += made
    return tuple(found)


def _made(token: Token, lines: Sequence[str]) -> list[Quotation]:
    assert token.map is not None
    first, end = token.map[0], min(token.map[1], len(lines))
    if token.type == "fence":
        return [_fence(token, lines, first, end)]
    if token.type == "code_block":
        rows = _rows(token.content, lines, first)
        return [Quotation(Kind.INDENTED, first, end, rows)]
    if token.type == "blockquote_open":
        quote = _quote(lines, first, end)
        return [] if _is_alert(quote) else [quote]
    if token.type == "paragraph_open":
        return _counted(lines, first, end)
    return []


def _is_alert(quote: Quotation) -> bool:
    """Whether it is a box with the model's own words; what stands in that is looked at for itself."""
    return bool(quote.lines) and _ALERT.fullmatch(quote.lines[0].text) is not None


def _counted(lines: Sequence[str], first: int, end: int) -> list[Quotation]:
    """The lines of a paragraph that begin with a number, unless they are steps."""
    found = [(at, match) for at in range(first, end) if (match := _PROSE_NUMBER.match(lines[at]))]
    steps = (_STEP.fullmatch(lines[at], match.end()) is not None for at, match in found)
    if [int(match[2]) for _, match in found] == list(range(1, len(found) + 1)) and all(steps):
        return []
    rows = (Line(at, match[1], lines[at][match.end(1) :]) for at, match in found)
    return [Quotation(Kind.PROSE, row.at, row.at + 1, (row,)) for row in rows]


def _fence(token: Token, lines: Sequence[str], first: int, end: int) -> Quotation:
    rows = _rows(token.content, lines, first + 1)
    return Quotation(Kind.FENCE, first, end, rows, proposal=is_proposal(token.info, [row.text for row in rows]))


def is_proposal(info: str, lines: Sequence[str]) -> bool:
    """Whether a fence with these words behind it holds code that somebody might write."""
    words = info.split()
    language = words[0].casefold().strip("{}.") if words else ""
    telling = [line for line in lines if not says_nothing(line)]
    many = bool(telling) and sum(numbered(line) is not None for line in telling) * 2 > len(telling)
    return _are_commands(telling) if language in _PLAIN else not many


def _are_commands(lines: Sequence[str]) -> bool:
    """Each one is a command, with nothing that came of it, or what goes on behind a backslash."""
    goes_on = [False, *(line.rstrip().endswith("\\") for line in lines)]
    whole = [line for line, more in zip(lines, goes_on, strict=False) if not more]
    if any(_OUTCOME.search(line) for line in lines):
        return False
    return bool(whole) and all(_COMMAND.fullmatch(line) for line in whole)


def _rows(content: str, lines: Sequence[str], first: int) -> tuple[Line, ...]:
    """The content of code, line by line, with what its containers put before it."""
    texts = content.split("\n")
    texts = texts[:-1] if texts and not texts[-1] else texts
    return tuple(_row(text, lines[at], at) for at, text in enumerate(texts, first) if at < len(lines))


def _row(text: str, source: str, at: int) -> Line:
    if source.endswith(text):
        return Line(at, source[: len(source) - len(text)], text)
    found = _PREFIX.match(source)
    return Line(at, found[0] if found else "", text)


def _quote(lines: Sequence[str], first: int, end: int) -> Quotation:
    """All of its lines as one: what stands in it in fences too."""
    rows = []
    for at in range(first, end):
        found = _QUOTING.match(lines[at])
        prefix = found[0] if found else ""
        text = lines[at][len(prefix) :]
        if not text.lstrip().startswith(("```", "~~~")):
            rows.append(Line(at, prefix, text))
    return Quotation(Kind.QUOTE, first, end, tuple(rows))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Blocks alone: what stands within a line is looked at in other ways, and costs the most."""
    return MarkdownIt("commonmark", {"html": False}).disable(["inline", "text_join"]).enable("table")

"""Find the quotations of an answer: the lines that claim to be somebody else's words.

These are lines that begin with a number as our tools write it, blocks that are introduced as output of a job, a file
or a log, and blocks that nothing introduces but that look like one. What is proposed, commands alone, tables, and code
with a language are the model's own, unless their lines have numbers. Alerts and steps counted from 1 are its own prose.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hummingbird.evidence.bounds import CITED_LINE_CHARS, CUT_CHARS, TAIL_CHARS
from hummingbird.evidence.citations.claims import BlockClaim, looks_like_output, read_lead, says_what_a_file_has
from hummingbird.evidence.logs.log_reader import clean_log_line

# Comparing lines. Terminal sequences, invisible characters and the amount of white space do not count; everything else
# does.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?:]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+][A-Za-z0-9]|[=>78cDEHMNOZ])")
HIDDEN_CHARS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_NUMBERED = re.compile(r"\s*(\d{1,9})(?:: ?|\t)(.*)", re.DOTALL)
_LINE_NUMBER = r"(?:[Ll]|[Ll]ine )?(\d{1,9})"
_CITED_NUMBER = re.compile(
    rf"\s*(?:{_LINE_NUMBER}(?:: ?|\t| ?\| ?)|\*\*{_LINE_NUMBER}(?::\*\*|\*\*:) ?)(.*)", re.DOTALL
)
LIST_ITEM_SIGN = r"(?:[-+*]|\d{1,9}[.)])"  # that begins a list item in Markdown
_LIST_ITEM = re.compile(rf"{LIST_ITEM_SIGN}[ \t]+(?=\S)")
_PAIRS = frozenset({"``", '""', "''", "“”", "‘’", "«»"})
_ELLIPSIS = re.compile(r"…|\.{3,}|\[(?:…|\.\.\.)\]")
_SIGNS = r"[\s\[\](){}<>#*/|:-]*+"
_LEFT_OUT = re.compile(
    rf"{_SIGNS}(?:…|\.{{2,}}|--)?{_SIGNS}"
    rf"(?:(?:and |with )?(?:the )?(?:\d{{1,9}} )?(?:(?:more|other|further|similar) )?(?:lines?|frames?|rest)\b ?)?"
    rf"(?:(?:snip(?:ped)?|omitted|left out|skipped|truncated|elided)\b)?{_SIGNS}(?:…|\.{{2,}})?{_SIGNS}",
    re.IGNORECASE,
)
_POINTER = re.compile(r"(?<=\S)\s+(?:(?:#|//)\s*)?(?:<-+|<=+|←|⬅\ufe0f?|⟵|👈)(?:\s.{0,80})?")


def normalize_line(line: str) -> str:
    """Return the form by which lines are compared."""
    if not line.isprintable():
        line = HIDDEN_CHARS.sub("", _ESCAPES.sub("", line))
    return " ".join(line.split())


def line_variants(line: str) -> Iterator[str]:
    """Yield the normalized forms in which a reader may see an output line.

    These are the whole line, each text that was written over it, and the line without what a runner puts before it.
    """
    seen = set[str]()
    pieces = (line, *line.split("\r")) if "\r" in line else (line,)
    for piece in (*pieces, *_without_runner_prefix(line)):
        if (key := normalize_line(piece)) and key not in seen:
            seen.add(key)
            yield key


def _without_runner_prefix(line: str) -> list[str]:
    if len(line) > CITED_LINE_CHARS:
        return []
    return clean_log_line(line.encode("utf-8", "replace")).split("\n")


def split_line_number(line: str) -> tuple[int, str] | None:
    """Split a line into the number before it and the rest."""
    found = _NUMBERED.fullmatch(line)
    return (int(found[1]), found[2]) if found else None


def split_cited_number(line: str) -> tuple[int, str] | None:
    """Do the same for numbers as models write them: with an L before or a bar behind, and `**5:** ` too."""
    found = _CITED_NUMBER.fullmatch(line)
    return (int(found[1] or found[2]), found[3]) if found else None


def strip_quote_marks(line: str, *, listed: bool = False) -> str:
    """Remove the pair of marks around the line, or around the text behind its number; return "" if there is none.

    With `listed`, also remove the sign of a list item, for places where Markdown shows a list.
    """
    text = line.strip()
    item = _LIST_ITEM.match(text) if listed else None
    text = text[item.end() :] if item else text
    if inner := _inside_quote_marks(text):
        return inner
    found = split_cited_number(text)
    if found and (inner := _inside_quote_marks(found[1].strip())):
        return f"{found[0]}: {inner}"
    return text if item else ""


def strip_pointer(line: str) -> str:
    """Remove what an arrow at the end of the line says of it, as in `x = 1  <-- here`; return "" if there is none."""
    found = list(_POINTER.finditer(line))
    return line[: found[-1].start()] if found and found[-1].end() == len(line) else ""


def strip_outer_quote_marks(first: str, last: str) -> tuple[str, str] | None:
    """Remove a pair of marks that opens in the first line and closes in the last."""
    opening, closing = first.lstrip(), last.rstrip()
    return (opening[1:], closing[:-1]) if opening[:1] + closing[-1:] in _PAIRS else None


def _inside_quote_marks(text: str) -> str:
    return text[1:-1] if len(text) > 2 and text[0] + text[-1] in _PAIRS else ""


def tail_key(line: str) -> str:
    """Return the key by which a normalized line, or its tail, is looked up; "" if the line is too short."""
    return line[-TAIL_CHARS:] if len(line) >= TAIL_CHARS else ""


def has_tail(whole: str, tail: str) -> bool:
    """Tell whether a line ends with this tail; both are normalized.

    The part left out may end with a place, a time or a level with its sign, but not with a word, which might be `not`.
    """
    before = whole[: -len(tail)]
    return whole.endswith(tail) and before.endswith(" ") and not before[:-1][-1:].isalpha()


def is_filler_line(line: str) -> bool:
    """Tell whether the line is blank or only marks that something is left out."""
    return _LEFT_OUT.fullmatch(line) is not None


@dataclass(frozen=True, slots=True)
class TruncatedLine:
    """A line that shows where it was cut: the texts before, between and after the dots."""

    pieces: tuple[str, ...]

    @property
    def head(self) -> str:
        return self.pieces[0]

    @property
    def tail(self) -> str:
        return self.pieces[-1]

    def matches(self, whole: str) -> bool:
        """Tell whether the normalized line `whole` has these pieces in order."""
        if not whole.startswith(self.head) or not whole.endswith(self.tail):
            return False
        at = len(self.head)
        for piece in self.pieces[1:-1]:
            at = whole.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return at + len(self.tail) <= len(whole)


def parse_truncated_line(line: str) -> TruncatedLine | None:
    """Return None for a line that shows no cut, or too little besides it to tell it from others."""
    ends = [(0, 0), *(found.span() for found in _ELLIPSIS.finditer(line)), (len(line), len(line))]
    if len(ends) < 3 or len(ends) > 8:
        return None
    pieces = tuple(normalize_line(line[one[1] : other[0]]) for one, other in pairwise(ends))
    if len(pieces[0]) + len(pieces[-1]) < CUT_CHARS:
        return None
    return TruncatedLine(pieces)


_PLAIN_LANGUAGES = frozenset({"", "text", "txt", "plain", "plaintext", "none"})
_MACHINE_LANGUAGES = frozenset(
    {
        *("raw", "log", "logs", "logfile", "joblog"),
        *("console", "terminal", "tty", "ansi", "shell-session", "shellsession", "sh-session", "session"),
        *("output", "out", "result", "results", "stdout", "stderr", "error", "errors", "err", "warning", "failure"),
        *("trace", "traceback", "backtrace", "stacktrace", "stack-trace", "stack", "pytb", "py3tb", "tap"),
    }
)
_PREFIX = re.compile(r"[ \t>]*")
_QUOTE_PREFIX = re.compile(rf"[ \t]*(?:{LIST_ITEM_SIGN}[ \t]+)*>[ \t>]*")
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


class QuotationKind(Enum):
    """How an answer marks a quotation."""

    FENCE = "fence"
    INDENTED = "indented"
    QUOTE = "quote"
    PROSE = "prose"


@dataclass(frozen=True, slots=True)
class QuotationLine:
    """A line of a quotation: `at` is its index in the answer, `prefix` the text before it there."""

    at: int
    prefix: str
    text: str


@dataclass(frozen=True, slots=True)
class Quotation:
    """A quotation in the lines `first` up to `end` of the answer, fences included.

    `proposal` means that it is code which somebody might write, and not a quotation.
    """

    kind: QuotationKind
    first: int
    end: int
    lines: tuple[QuotationLine, ...]
    proposal: bool = False

    @property
    def neighbours(self) -> Iterator[tuple[QuotationLine, QuotationLine]]:
        """Pairs of adjacent lines, which might be one line that was wrapped."""
        return ((one, other) for one, other in pairwise(self.lines) if other.at == one.at + 1)

    @property
    def without_quote_marks(self) -> tuple[str, str] | None:
        """The first and the last line without the marks around the whole block quote, if there are any."""
        if self.kind is not QuotationKind.QUOTE or len(self.lines) < 2:
            return None
        return strip_outer_quote_marks(self.lines[0].text, self.lines[-1].text)


def find_quotations(lines: Sequence[str]) -> tuple[Quotation, ...]:
    """Return the quotations in order; none is inside another."""
    found: list[Quotation] = []
    tokens = _block_parser().parse("\n".join(lines))
    covered = 0
    for token in tokens:
        if token.map is None or token.map[0] < covered:
            continue
        if made := _quotations_from_token(token, lines):
            covered = made[-1].end
            found += made
    return tuple(found)


def _quotations_from_token(token: Token, lines: Sequence[str]) -> list[Quotation]:
    assert token.map is not None
    first, end = token.map[0], min(token.map[1], len(lines))
    if token.type == "fence":
        return [_fence_quotation(token, lines, first, end)]
    if token.type == "code_block":
        rows = _content_lines(token.content, lines, first)
        own = is_proposal("", [row.text for row in rows], lines, first)
        return [Quotation(QuotationKind.INDENTED, first, end, rows, proposal=own)]
    if token.type == "blockquote_open":
        quote = _block_quotation(lines, first, end)
        return [] if _is_alert(quote) or _is_own_words(quote, lines) else [quote]
    if token.type == "paragraph_open":
        return _prose_quotations(lines, first, end)
    return []


def _is_alert(quote: Quotation) -> bool:
    """Tell whether a block quote is a box with the model's own words; its contents are then checked on their own."""
    return bool(quote.lines) and _ALERT.fullmatch(quote.lines[0].text) is not None


def _is_own_words(quote: Quotation, lines: Sequence[str]) -> bool:
    """Tell whether a block quote sets off the model's own words; its contents are then checked on their own."""
    telling = [row.text for row in quote.lines if not is_filler_line(row.text)]
    if not telling or _are_numbered([strip_quote_marks(line, listed=True) or line for line in telling]):
        return False
    lead = read_lead(lines, quote.first)
    return lead is not BlockClaim.QUOTED and not looks_like_output(telling, in_quote=True)


def _prose_quotations(lines: Sequence[str], first: int, end: int) -> list[Quotation]:
    """Return the lines of a paragraph that begin with a number, unless they are numbered steps."""
    found = [(at, match) for at in range(first, end) if (match := _PROSE_NUMBER.match(lines[at]))]
    steps = (_STEP.fullmatch(lines[at], match.end()) is not None for at, match in found)
    if [int(match[2]) for _, match in found] == list(range(1, len(found) + 1)) and all(steps):
        return []
    rows = (QuotationLine(at, match[1], lines[at][match.end(1) :]) for at, match in found)
    return [Quotation(QuotationKind.PROSE, row.at, row.at + 1, (row,)) for row in rows]


def _fence_quotation(token: Token, lines: Sequence[str], first: int, end: int) -> Quotation:
    rows = _content_lines(token.content, lines, first + 1)
    own = is_proposal(token.info, [row.text for row in rows], lines, first)
    return Quotation(QuotationKind.FENCE, first, end, rows, proposal=own)


def is_proposal(info: str, content: Sequence[str], lines: Sequence[str] = (), first: int = 0) -> bool:
    """Tell whether a block is the model's own, and not a quotation.

    `info` is a fence's info string; the block begins at the line `first` of the answer's `lines`.
    """
    words = info.split()
    language = words[0].casefold().strip("{}.") if words else ""
    telling = [line for line in content if not is_filler_line(line)]
    if _are_numbered(telling):
        return False
    if language not in _MACHINE_LANGUAGES | _PLAIN_LANGUAGES:
        return not says_what_a_file_has(lines, first)
    if _are_commands(telling):
        return True
    lead = read_lead(lines, first)
    if lead is not BlockClaim.OPEN:
        return lead is BlockClaim.PROPOSED
    return language in _PLAIN_LANGUAGES and bool(telling) and not looks_like_output(telling, in_quote=False)


def _are_numbered(telling: Sequence[str]) -> bool:
    return bool(telling) and sum(map(_has_line_number, telling)) * 2 > len(telling)


def _has_line_number(line: str) -> bool:
    """Tell whether the line begins with its number; the first cell of a table is none."""
    return split_cited_number(line) is not None and line.count("|") < 2


def _are_commands(lines: Sequence[str]) -> bool:
    """Tell whether every line is a command or continues one after a backslash, and none shows an outcome."""
    goes_on = [False, *(line.rstrip().endswith("\\") for line in lines)]
    whole = [line for line, more in zip(lines, goes_on, strict=False) if not more]
    if any(_OUTCOME.search(line) for line in lines):
        return False
    return bool(whole) and all(_COMMAND.fullmatch(line) for line in whole)


def _content_lines(content: str, lines: Sequence[str], first: int) -> tuple[QuotationLine, ...]:
    """Return the lines of a code block with the prefixes of the containers around it."""
    texts = content.split("\n")
    texts = texts[:-1] if texts and not texts[-1] else texts
    return tuple(_content_line(text, lines[at], at) for at, text in enumerate(texts, first) if at < len(lines))


def _content_line(text: str, source: str, at: int) -> QuotationLine:
    if source.endswith(text):
        return QuotationLine(at, source[: len(source) - len(text)], text)
    found = _PREFIX.match(source)
    return QuotationLine(at, found[0] if found else "", text)


def _block_quotation(lines: Sequence[str], first: int, end: int) -> Quotation:
    """Return a block quote as one quotation, including what is in fences inside it."""
    rows = []
    for at in range(first, end):
        found = _QUOTE_PREFIX.match(lines[at])
        prefix = found[0] if found else ""
        text = lines[at][len(prefix) :]
        if not text.lstrip().startswith(("```", "~~~")):
            rows.append(QuotationLine(at, prefix, text))
    return Quotation(QuotationKind.QUOTE, first, end, tuple(rows))


@lru_cache(maxsize=1)
def _block_parser() -> MarkdownIt:
    """Parse blocks only: inline parsing costs the most and is not needed here."""
    return MarkdownIt("commonmark", {"html": False}).disable(["inline", "text_join"]).enable("table")

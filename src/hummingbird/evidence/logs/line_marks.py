"""Mark each line with its sorts, as a set of bits, from the table of cues and from the line's shape.

All literals are searched at once in all lines; a pattern is tried only where its literal occurs.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

from ahocorasick_rs import BytesAhoCorasick, Implementation

from hummingbird.evidence.logs.line_cues import CUES, LineCue, LineSort, sort_bits
from hummingbird.evidence.logs.log_reader import GREEN_CODE, RED_CODE

# Recognition by shape: how a line begins and what characters it has. This runs for every line that is scored, so the
# first character decides which patterns are tried.
_PLACE = re.compile(r"\.[A-Za-z+]{1,6}(?:: ?|\(|:\[)\d")
_LINE = re.compile(r"line \d")
_NUMBERED = re.compile(r"(\d{1,3})([.)]) \S")
_GUTTER = re.compile(r"\d* ?\| ")
_LINT = re.compile(
    r"\S+:\d+:(?:\d+:)? (?:\[\w\] )?[A-Z]{1,8}\d{2,5}\b|\S+:? ?\d+:? [A-Z]{2,8}\d{3,4}\b"
    r"|\S+\.\w+:? ?(?:line )?\d+(?::\d+)?:? .*\([\w/-]+\)$"
)
_FRAME = re.compile(r"\[C\]: in |\[string |\d+:\s+0x|#\d+\s+\S|\.\.\. \d+ more|from .+:\d+:in ")
_TAGGED_FRAME = re.compile(r"\[.{0,20}\](?:\t| {3})at |\[INFO\] \tat ")
_CARET = re.compile(r"(?:\[\w+\] ?)?\s*\|?\s*[-+~]*\^[-~^]*\s*$")
_DIFF = re.compile(r"(?:\d{3})?[-+](?![-+ ]).")
_SETTING = re.compile(r"\s*(?:export )?[A-Z][A-Z_0-9]+=\S*$")
LOUD_WORD = re.compile(r"\b(?:ERROR|FAIL|FAILED|FAILURE|FATAL|ERR)\b")
_RULES = frozenset(letter * 3 for letter in "=-*_#~.")
_COMMANDS = ("$ ", "+ ", "> ", "##[group]", "[command]", "travis_")
_ITEMS = ("- ", "* ", "• ")
_DIFFS = ("--- ", "+++ ", "@@ ")
_BEGINNINGS = frozenset(
    (
        "Get", "Hit", "Ign", "Fetched", "Fetching", "Reading", "Unpacking", "Setting", "Selecting",
        "Preparing", "Processing", "Downloading", "Downloaded", "Installing", "Collecting", "Cloning", "Adding",
        "Creating",
        "Created", "Copying", "Compiling", "Linking", "Using", "Resolving", "Extracting", "Checking", "Requirement",
        "remote:", "Receiving", "Removing", "Updating", "Syncing", "Cached", "Generating", "Running", "cp",
        "mv", "rm", "mkdir", "install", "[INFO]", "Get:1", "Hit:1",
    )
)  # fmt: skip
_BLANK, _INDENTED, _ITEM, _COMMAND = (
    sort_bits(LineSort.BLANK),
    sort_bits(LineSort.INDENTED),
    sort_bits(LineSort.ITEM),
    sort_bits(LineSort.COMMAND),
)
_PLACED, _REDDISH, _GREENISH, _DETAIL = (
    sort_bits(LineSort.PLACE),
    sort_bits(LineSort.RED),
    sort_bits(LineSort.GREEN),
    sort_bits(LineSort.DETAIL),
)
_RULED, _NOISE, _HEAD, _FRAMED = (
    sort_bits(LineSort.RULE),
    sort_bits(LineSort.NOISE),
    sort_bits(LineSort.HEAD),
    sort_bits(LineSort.FRAME),
)
_LINTED, _SET = sort_bits(LineSort.LINT), sort_bits(LineSort.SETTING)


def marks_from_shape(text: str, raw: bytes) -> int:
    """Return the sorts that the shape of a cleaned line shows; `raw` still has its colours."""
    body = text.lstrip()
    if not body:
        return _BLANK
    mark = _INDENTED if len(text) - len(body) > 1 or text[0] == "\t" else 0
    if b"\x1b" in raw or b"^[[" in raw:
        mark |= (_REDDISH if RED_CODE.search(raw) else 0) | (_GREENISH if GREEN_CODE.search(raw) else 0)
    if ((":" in text or "(" in text) and "." in text and _PLACE.search(text)) or (
        "line " in text and _LINE.search(text)
    ):
        mark |= _PLACED
        if not mark & _INDENTED and _LINT.match(text):
            mark |= _LINTED
    mark |= (
        _marks_from_digit(body)
        if body[0].isdigit()
        else _marks_from_letter(body)
        if body[0].isalpha()
        else _marks_from_symbol(text, body)
    )
    if "^" in body and _CARET.match(body):
        mark |= _DETAIL
    return mark | _NOISE if "%" in body and "0%" in body else mark


def _marks_from_digit(body: str) -> int:
    if _FRAME.match(body):
        return _FRAMED
    if found := _NUMBERED.match(body):
        return _HEAD if found[2] == ")" else _ITEM
    return _DETAIL if _GUTTER.match(body) or _DIFF.match(body) else 0


def _marks_from_letter(body: str) -> int:
    if body.startswith("at "):
        return _FRAMED
    first = body.split(None, 1)[0]
    if first in _BEGINNINGS:
        return _NOISE
    if first == "E" and body.startswith(("E  ", "E\t")):
        return _DETAIL
    if first in ("E:", "W:"):
        return _SET
    if first == "from" and _FRAME.match(body):
        return _FRAMED
    return _NOISE if "=" in first and _SETTING.match(body) else 0


def _marks_from_symbol(text: str, body: str) -> int:
    if text.startswith(_COMMANDS):
        return _COMMAND
    if body.startswith(_ITEMS):
        return _ITEM
    if body.startswith(_DIFFS):
        return _DETAIL
    if body[2:5] in _RULES:
        return _NOISE if body[2] == "." else _RULED
    if body[0] in "#.":
        return _FRAMED if _FRAME.match(body) else 0
    if body[0] in "-+":
        return _DETAIL if _DIFF.match(body) else 0
    if body[0] == "[":
        if _FRAME.match(body):
            return _FRAMED
        return _FRAMED if _TAGGED_FRAME.match(body) else _NOISE if body.startswith("[INFO]") else 0
    return _DETAIL if body[0] == "|" else 0


MARKED_CHARS = 200  # of a line; what follows is rarely what the line is about
_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_")


@dataclass(slots=True)
class _LiteralCues:
    """What a literal says of its line: sorts that it gives, that it gives as a whole word, and that a test confirms."""

    given: int = 0
    as_word: int = 0
    tests: list[tuple[int, Callable[[str], object]]] = field(default_factory=list)


class _CueIndex:
    """The automaton over all literals, and the cues of each literal."""

    def __init__(self, cues: Sequence[LineCue]) -> None:
        entries: dict[bytes, _LiteralCues] = {}
        for cue in cues:
            entry = entries.setdefault(cue.literal.encode(), _LiteralCues())
            if cue.pattern is not None:
                entry.tests.append((1 << cue.sort, cue.pattern.match if cue.is_anchored else cue.pattern.search))
            elif cue.word:
                entry.as_word |= 1 << cue.sort
            else:
                entry.given |= 1 << cue.sort
        self.entries = [(entry.given, entry.as_word, entry.tests) for entry in entries.values()]
        self.automaton = BytesAhoCorasick(list(entries), implementation=Implementation.DFA)


@cache
def _cue_index() -> _CueIndex:
    return _CueIndex(CUES)


def mark_lines(texts: Sequence[str], raws: Sequence[bytes]) -> list[int]:
    """Return the sorts of each line as bits; `raws` are the same lines before cleaning."""
    beginnings = [text[:MARKED_CHARS] for text in texts]
    found = [marks_from_shape(text, raw) for text, raw in zip(beginnings, raws, strict=True)]
    lowered = [text.lower().encode("utf-8", "replace") for text in beginnings]
    ends = list(accumulate(len(line) + 1 for line in lowered))
    whole = b"\n".join(lowered)
    book = _cue_index()
    entries = book.entries
    at, end = 0, ends[0] if ends else 0
    for which, start, stop in book.automaton.find_matches_as_indexes(whole, overlapping=True):
        while stop > end:
            at += 1
            end = ends[at]
        given, as_word, tests = entries[which]
        mark = found[at] | given
        if as_word & ~mark and _is_whole_word(whole, start, stop):
            mark |= as_word
        for sort, test in tests:
            if not mark & sort and test(beginnings[at]):
                mark |= sort
        found[at] = mark
    return [
        _settle_marks(mark, text) if mark & _UNSETTLED else mark for mark, text in zip(found, beginnings, strict=True)
    ]


_CALM = sort_bits(LineSort.SKIPPED, LineSort.ZERO, LineSort.PASSED, LineSort.WARNING)
_WORDS = sort_bits(LineSort.ERROR, LineSort.FAIL, LineSort.ABORT)
_UNSETTLED = _CALM | _WORDS
_SIGNS = sort_bits(
    LineSort.HEAD, LineSort.COMPILER, LineSort.LINT, LineSort.SETTING, LineSort.THROWN, LineSort.ERROR,
    LineSort.FAIL, LineSort.NEGATION, LineSort.ABORT,
    LineSort.LOUD, LineSort.DETAIL, LineSort.SUMMARY, LineSort.TIMEOUT, LineSort.NETWORK, LineSort.MEMORY,
)  # fmt: skip
_WARNED = sort_bits(LineSort.COMPILER, LineSort.THROWN, LineSort.NEGATION, LineSort.HEAD)
_LOUD = sort_bits(LineSort.RED, LineSort.LOUD, LineSort.ERROR, LineSort.FAIL)
_NAMED = sort_bits(LineSort.SURE)
_SHAPES = sort_bits(
    LineSort.HEAD,
    LineSort.COMPILER,
    LineSort.LINT,
    LineSort.SETTING,
    LineSort.THROWN,
    LineSort.NETWORK,
    LineSort.MEMORY,
    LineSort.TIMEOUT,
)
_RESULTS = sort_bits(LineSort.SKIPPED, LineSort.PASSED)
_RESULT = re.compile(
    r"TEST-(?:PASS|OK|KNOWN-FAIL)\b|JavaScript (?:error|warning):|console\.(?:error|warn):|PROBE_DEFER"
    r"|deferring probe|using dummy regulator|tainting kernel|^\s*warnings\.warn\("
    r"|^\s*(?:ok\b|PASS(?:ED)?\b|SKIP(?:PED)?\b|XFAIL\b|[✓✔√])|\.\.\. ?(?:ok|OK|done|passed|skipped|ignored)\b"
    r"|(?<!['\"`])\b(?:SKIPPED|PASSED|XFAIL|OK)\b(?!['\"`])|: (?:ok|yes|passed|skipped)$"
)
_ECHO = sort_bits(LineSort.COMPILER)
_SOME = re.compile(r"(?i)\b[1-9]\d* (?:\w+ )?(?:fail|error|broken)|(?:failures?|errors?|failed|failing)[:=] ?[1-9]")


def _settle_marks(mark: int, text: str) -> int:
    if mark & _WORDS and LOUD_WORD.search(text):
        mark |= sort_bits(LineSort.LOUD)
    if mark & _ECHO and " previous error" in text:
        mark &= ~_ECHO
    return _drop_false_alarms(mark, text) if mark & _CALM else mark


def _drop_false_alarms(mark: int, text: str) -> int:
    """Remove signs of failure from lines that report success, skipped tests or "0 errors".

    Where no result is reported, "done" and "skip" are ordinary words, and an error line with them stays an error.
    """
    if mark & sort_bits(LineSort.SUMMARY) and (not mark & sort_bits(LineSort.ZERO) or _SOME.search(text)):
        return mark
    if mark & sort_bits(LineSort.ZERO) or (mark & _RESULTS and _RESULT.search(text)):
        return mark & ~_SIGNS
    if mark & _RESULTS:
        mark = mark & ~_RESULTS if mark & (_SHAPES | _LOUD) else mark & ~_SIGNS
    if mark & sort_bits(LineSort.WARNING) and not mark & (_LOUD | _NAMED):
        return mark & ~(_WARNED | _LINTED) if "[-W" in text and "[-Werror" not in text else mark & ~_WARNED
    return mark


def _is_whole_word(whole: bytes, start: int, stop: int) -> bool:
    return (start == 0 or whole[start - 1] not in _LETTERS) and (stop == len(whole) or whole[stop] not in _LETTERS)

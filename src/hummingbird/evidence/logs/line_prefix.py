"""Learn what most lines of a log begin with, so that the text behind it can be recognised.

Runners, loggers and wrappers put stamps, levels, names and numbers before what a tool prints, such as
`[task 2031-04-05T10:11:12Z] 10:11:12 INFO - `, `web_1  | ` or `#12 3.456 `. No list knows all of them. A prefix is
learned as a sequence of parts (stamp, level, dash) that a good share of the log's lines have in common.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_LEAST_LINES = 12
_CHARS = 160  # of a line; no prefix is longer
_LEAST_SHARE = 0.3  # of the lines, that must begin with the prefix
_GOES_ON = 0.6  # of the lines that have the parts so far, for one more part
_MOST_PARTS = 8
_PART = re.compile(
    r"(?P<B>\[[^\[\]]{1,60}\]|<[\d.]{1,20}>)"
    r"|(?P<C>\d{1,7}(?=\s+(?:\d{1,2}:\d\d:\d\d|\d{4}-\d\d-\d\d|\[[ \d.:]+\])))"  # a line's number before a stamp
    r"|(?P<D>#?\d{1,4}[-/.]\d\d[-/.]\d\d(?:\d\d)?(?:[T_]\d[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?)?(?=[\s\]|:]|$)"
    r"|\d{1,2}:\d\d:\d\d(?:[.,:]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?=[\s\]|:]|$)|\d+\.\d{2,}s?(?=\s)|#\d+(?=\s)"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d(?=\s)|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b,?(?=\s))"
    r"|(?P<L>(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE)\b:?"
    r"|(?:trace|debug|info|notice|warn|warning|error|fatal|critical)(?=\s+[-|:]))"
    r"|(?P<N>[A-Za-z][\w./-]{0,40}(?=\s{0,30}\|\s))"
    r"|(?P<W>[A-Za-z_$][\w$]*(?:\.[\w$*]+)+(?=\s+-\s|\s*:\s))"
    r"|(?P<S>--?|\||:|=>)(?=\s|$)"
)
_BLANKS = re.compile(r" *")
_NAMED_FIRST = frozenset(("", "D", "B", "C", "CD"))  # a name before a bar is a prefix only at the beginning
_LEVEL_WORDS = re.compile(r"(?i)\b(?:error|fatal|critical|severe)\b")
_WARNING_WORDS = re.compile(r"(?i)\bwarn(?:ing)?\b")


@dataclass(frozen=True, slots=True)
class LinePrefix:
    """The parts that many lines of a log begin with, one letter each, and the usual blanks behind them."""

    parts: str
    blanks: int

    def split(self, text: str) -> tuple[str, str]:
        """Return the prefix of a line, as much of it as the line has, and the text behind it."""
        at = _end_of_parts(text, self.parts)
        if at == 0:
            return "", text
        end = at
        while end < len(text) and end - at < self.blanks and text[end] == " ":
            end += 1
        return text[:end], text[end:]

    def body(self, text: str) -> str:
        return self.split(text)[1]


def learn_prefix(texts: Sequence[str]) -> LinePrefix | None:
    """Learn the prefix of a log from some of its cleaned lines; None if they have none in common."""
    said = [text[:_CHARS] for text in texts if text.strip()]
    if len(said) < _LEAST_LINES:
        return None
    found = [_read_parts(text) for text in said]
    shapes = Counter(shape[:end] for shape, _ in found for end in range(1, len(shape) + 1))
    parts, lines = "", _LEAST_SHARE * len(said) / _GOES_ON
    for _ in range(_MOST_PARTS):
        more = [(count, shape) for shape, count in shapes.items() if shape[:-1] == parts]
        count, shape = max(more, default=(0, ""))
        if count < _GOES_ON * lines:
            break
        parts, lines = shape, count
    if not _is_telling(parts):
        return None
    rests = [
        text[ends[len(parts) - 1] :] for (shape, ends), text in zip(found, said, strict=True) if shape.startswith(parts)
    ]
    blanks = Counter(len(rest) - len(rest.lstrip(" ")) for rest in rests if rest.strip())
    return LinePrefix(parts, blanks.most_common(1)[0][0] if blanks else 1)


def is_error_level(prefix: str) -> bool:
    return _LEVEL_WORDS.search(prefix) is not None


def is_warning_level(prefix: str) -> bool:
    return _WARNING_WORDS.search(prefix) is not None


def _is_telling(parts: str) -> bool:
    """Tell whether the parts can be a prefix: a level or a bracket alone may be the tool's own words."""
    return "D" in parts or "N" in parts or (len(parts) > 1 and "B" in parts)


def _read_parts(text: str) -> tuple[str, list[int]]:
    """Return the letters of the parts that a line begins with, and where each ends."""
    shape, ends, at = "", [], _end_of_blanks(text, 0)
    while len(shape) < _MOST_PARTS and (found := _PART.match(text, at)) is not None:
        if found.lastgroup == "N" and shape not in _NAMED_FIRST:
            break
        shape += found.lastgroup or ""
        ends.append(found.end())
        at = _end_of_blanks(text, found.end())
    return shape, ends


def _end_of_parts(text: str, parts: str) -> int:
    """Return where the parts end that the line has in this order, or 0."""
    at, end = _end_of_blanks(text, 0), 0
    for part in parts:
        found = _PART.match(text, at)
        if found is None or found.lastgroup != part:
            break
        end = found.end()
        at = _end_of_blanks(text, end)
    return end


def _end_of_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return at if found is None else found.end()

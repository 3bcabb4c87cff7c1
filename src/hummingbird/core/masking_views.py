"""Read a text in other ways that reveal secrets: without colours or line breaks, unescaped, or undumped.

A view consists of parts of a text and remembers where each of its bytes came from. The rules for the text search the
view too, and a match in the view is masked in the text. Matches depend only on the `CONTEXT_BYTES` before them, which a
stream keeps, so a stream and a whole text are masked alike. A view is made only where the text contains what it undoes;
time is linear in the length of the text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple, Protocol

CONTEXT_BYTES = 256  # already shown bytes that a stream keeps
DUMPED_BYTES = 512  # longest value that is searched in a dump; longer ones are searched in pieces
_WRAPPED_BYTES = 32  # letters that must precede a line break inside an encoded value

# Sequences inside a word; elsewhere they split nothing.
_COLOUR = re.compile(
    rb"\x1b(?<=\S\x1b)(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]{0,200}+(?:\x07|\x1b\\))"
    rb"(?:\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]{0,200}+(?:\x07|\x1b\\)))*+(?=\S|\Z)"
)
_OPEN_COLOUR = re.compile(rb"\x1b(?:\[[0-?]{0,32}+[ -/]{0,4}+|\][^\x07\x1b\n]{0,200}+\x1b?)?\Z")
_LETTERS = rb"[A-Za-z0-9+/_-]{%d}" % (_WRAPPED_BYTES - 1)
_BREAKS = (
    re.compile(rb"\n(?<=%b[A-Za-z0-9+/_\r-]\n)" % _LETTERS),
    re.compile(rb"\\n(?:(?<=%b[A-Za-z0-9+/_-]\\n)|(?<=%b\\r\\n))" % (_LETTERS, _LETTERS)),  # in JSON
)
_STAMP = (
    rb"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]{2,12}Z(?: [0-9a-f]{2}[OE][+ ]?)? ?)?"  # a runner's timestamp before each line
)
_OPEN_STAMP = re.compile(rb"\r?\n\d{1,4}(?:-[-\dT:.]{0,25}(?:Z(?: [0-9a-f]{0,2}[OE]?[+ ]?)?)?)?\Z")
_STAMP_BYTES = 48
_INDENT = re.compile(_STAMP + rb"[ \t]*+")
_ESCAPES = (
    (b"%", re.compile(rb"%[0-9A-Fa-f]{2}")),
    (
        b"\\",
        re.compile(rb"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2})"),
    ),
    (b"&", re.compile(rb"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);")),
)
_OPEN_ESCAPE = re.compile(
    rb"(?:%[0-9A-Fa-f]?|\\(?:x[0-9A-Fa-f]?|u[0-9A-Fa-f]{0,3}|u\{[0-9A-Fa-f]{0,6}|U[0-9A-Fa-f]{0,7}|[0-3][0-7]?)?|"
    rb"&(?:#\d{0,7}|#[xX][0-9A-Fa-f]{0,6}|[a-z]{0,4}))\Z"
)
_OPEN_BYTES = 12
_GROUP = rb"(?:0x)?[0-9A-Fa-f]{2,8}(?![0-9A-Za-z])"
_DUMPED = (
    # xxd: an offset with a colon, groups, two spaces, the text
    rb"(?P<first>[0-9A-Fa-f]{4,16}:[ \t]{1,2}(?P<groups>%b(?:[ ]%b)*+)(?:[ ]{2}[^\n]*)?)" % (_GROUP, _GROUP),
    # hexdump, od: an offset or none, groups with one or two spaces or other signs between them, the text in lines
    rb"(?P<second>(?:[0-9A-Fa-f]{5,16}[ \t]+)?(?P<others>%b(?:(?:[ \t]{1,2}|,[ \t]?)%b)*+),?[ \t]*(?:[|>][^\n]*)?)"
    % (_GROUP, _GROUP),
    rb"(?P<third>[0-7]{7}(?P<cells>(?:[ ](?:[ ]{2}[ -~]|[ ]\\[0-7a-z\\]|[0-7]{3}))++))[ \t]*",  # od -c
)
_DUMP = re.compile(rb"[ \t]*+" + _STAMP + rb"[ \t]*+(?:" + b"|".join(_DUMPED) + rb")\r?(?=\n|\Z)")
_OPEN_DUMP = re.compile(
    rb"[ \t]*+(?:%b|\d{1,4}[-\dT:.Z]{0,28})[ \t]*+(?:[0-9A-Fa-fx,: \t-]*+|[0-9A-Fa-f]{4,16}:?[ \t][^\n]*)\r?\Z" % _STAMP
)
_DUMP_BYTES = 240  # longest line of a dump
# A line with a single number may end a dump but not begin one: logs are full of them, and parsing each one is slow.
_SINGLE_GROUP = re.compile(rb"[ \t]*+(?:0x)?[0-9A-Fa-f]{2,8}+[ \t]*+\r?(?=\n|\Z)")
# Fast prefilters: most lines begin differently.
_BEFORE_DUMP = re.compile(rb"\n(?=[ \t]*+(?:0x)?[0-9A-Fa-f]{2,16}+[: \t,\r\n])")
_STAMP_BEFORE_DUMP = re.compile(rb"Z (?=(?:[0-9a-f]{2}[OE][+ ]? ?)?[ \t]*+(?:0x)?[0-9A-Fa-f]{2,16}+[: \t,\r\n])")
_OD_LETTERS = {b"0": 0, b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b"\\": 92}


class SpellingFinder(Protocol):
    """Finds known spellings in a view."""

    def iter_matches(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each match, in order and without overlaps."""
        ...

    def find_open(self, text: bytes) -> int:
        """Return the first place where a spelling may begin without ending within the text; or the text's end."""
        ...


class ViewPart(NamedTuple):
    """Some bytes of a view and where they came from.

    If the lengths in view and text differ, the part cannot be divided.
    """

    start: int
    end: int
    content: bytes


@dataclass(slots=True)
class TextView:
    """The text of a view, and the positions of its bytes in the original text."""

    parts: list[ViewPart]
    text: bytes = field(init=False)
    _starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.text = b"".join([part.content for part in self.parts])
        self._starts = []
        at = 0
        for part in self.parts:
            self._starts.append(at)
            at += len(part.content)

    def text_start(self, place: int) -> int:
        """Return where the byte at this place of the view begins in the text."""
        return self._text_offset(place, at_end=False)

    def text_end(self, place: int) -> int:
        """Return where the byte before this place of the view ends in the text."""
        return self._text_offset(place - 1, at_end=True)

    def _text_offset(self, place: int, *, at_end: bool) -> int:
        number = bisect_right(self._starts, place) - 1
        part = self.parts[number]
        if part.end - part.start == len(part.content):
            return part.start + place - self._starts[number] + at_end
        return part.end if at_end else part.start


class ViewReader:
    """Find known spellings in one kind of view.

    `window` is how many bytes before the end of a text a match may begin, `longest` the length of the longest spelling.
    """

    def __init__(self, forms: SpellingFinder, window: int, longest: int) -> None:
        self._forms = forms
        self._window = window
        self._longest = longest

    def iter_spans(self, text: bytes, at: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of the secrets from `at` on that only another spelling of the text shows."""
        for view in self._iter_views(text, at):
            for start, end in self._forms.iter_matches(view.text):
                begins, ends = view.text_start(start), view.text_end(end)
                if ends - begins != end - start:
                    yield begins, ends

    def find_open(self, text: bytes, at: int) -> int:
        """Return the first place from `at` on that needs more text to decide; or the text's end."""
        at = max(at, len(text) - self._window)
        open_at = self._find_cut(text, at)
        complete = text[:open_at] if open_at < len(text) else text
        views = list(self._iter_views(complete, at))
        if open_at < len(text):  # the text before it may be the beginning of a match
            begins = max(at, complete.rfind(b"\n") + 1)
            views.append(TextView([ViewPart(begins, open_at, complete[begins:])]))
        for view in views:
            place = self._forms.find_open(view.text)
            if place < len(view.text):
                open_at = min(open_at, view.text_start(place))
        return open_at

    def _iter_views(self, text: bytes, at: int) -> Iterator[TextView]:
        raise NotImplementedError

    def _find_cut(self, text: bytes, at: int) -> int:
        """Return where something begins that the view undoes and that is incomplete; or the text's end."""
        return len(text)


def _make_view_around(replaced: Iterable[tuple[int, int, bytes]], text: bytes, at: int, longest: int) -> TextView:
    """Make a view of the surroundings of the replaced spans, with their replacements."""
    parts: list[ViewPart] = []
    last = at
    for start, end, letters in replaced:
        if start - last > 2 * longest:
            parts.append(ViewPart(last, last + longest, text[last : last + longest]))
            parts.append(ViewPart(start, start, b"\n"))  # no match reaches across this gap
            last = start - longest
        if start > last:
            parts.append(ViewPart(last, start, text[last:start]))
        parts.append(ViewPart(start, end, letters))
        last = end
    end = min(len(text), last + longest)
    return TextView([*parts, ViewPart(last, end, text[last:end])])


class ColourViewReader(ViewReader):
    """Read a text without terminal sequences for colours and the like."""

    def _iter_views(self, text: bytes, at: int) -> Iterator[TextView]:
        if text.find(b"\x1b", at) >= 0:
            found = [(*colour.span(), b"") for colour in _COLOUR.finditer(text, at)]
            if found:
                yield _make_view_around(found, text, at, self._longest)

    def _find_cut(self, text: bytes, at: int) -> int:
        place = text.rfind(b"\x1b", max(at, len(text) - CONTEXT_BYTES))
        return place if place >= 0 and _OPEN_COLOUR.match(text, place) else len(text)


class LineWrapViewReader(ViewReader):
    """Join lines where a long word ends at a line break, as in Base64 and plain hexadecimal."""

    def _iter_views(self, text: bytes, at: int) -> Iterator[TextView]:
        breaks = [found.span() for found in _BREAKS[0].finditer(text, at)]
        if text.find(b"\\n", at) >= 0:
            breaks = sorted(breaks + [found.span() for found in _BREAKS[1].finditer(text, at)])
        parts: list[ViewPart] = []
        behind = -1  # end of the line that continues the previous one
        for start, end in breaks:
            if start > behind:
                if parts:
                    parts[-1] = _extend_part(parts[-1], text, behind)
                begins = max(at, text.rfind(b"\n", at, start) + 1)
                parts += [ViewPart(begins, begins, b"\n"), _extend_part(ViewPart(begins, begins, b""), text, start)]
            else:
                parts[-1] = _extend_part(parts[-1], text, start)
            indent = _INDENT.match(text, end)
            begins = indent.end() if indent else end
            behind = text.find(b"\n", begins)
            behind = len(text) if behind < 0 else behind
            parts.append(ViewPart(begins, begins, b""))
        if parts:
            parts[-1] = _extend_part(parts[-1], text, behind)
            yield TextView(parts)

    def _find_cut(self, text: bytes, at: int) -> int:
        """Find an incomplete line break, or an incomplete timestamp that a runner writes before each line."""
        if stamp := _OPEN_STAMP.search(text, max(at, len(text) - _STAMP_BYTES)):
            return stamp.start()
        for cut in (b"\\", b"\\r", b"\\r\\", b"\r"):
            if text.endswith(cut) and len(text) - len(cut) > at:
                return len(text) - len(cut)
        return len(text)


def _extend_part(part: ViewPart, text: bytes, end: int) -> ViewPart:
    shown = text[part.start : max(end, part.start)].removesuffix(b"\r").removesuffix(b"\\r")
    return ViewPart(part.start, part.start + len(shown), shown)


class EscapeViewReader(ViewReader):
    r"""Read `%41`, `\x41`, `\u0041`, `\101` and `&#65;` as the letter that they stand for."""

    def _iter_views(self, text: bytes, at: int) -> Iterator[TextView]:
        found = [
            escape for sign, pattern in _ESCAPES if text.find(sign, at) >= 0 for escape in pattern.finditer(text, at)
        ]
        if not found:
            return
        decoded = _decode_escapes(sorted(found, key=lambda escape: escape.start()))
        yield _make_view_around(decoded, text, at, self._longest)

    def _find_cut(self, text: bytes, at: int) -> int:
        cut = _OPEN_ESCAPE.search(text, max(at, len(text) - _OPEN_BYTES))
        return cut.start() if cut else len(text)


def _decode_escapes(found: Iterable[re.Match[bytes]]) -> Iterator[tuple[int, int, bytes]]:
    high: re.Match[bytes] | None = None  # the first half of a pair of escapes
    for escape in found:
        written = escape[0]
        if written[:1] == b"&":
            yield (*escape.span(), unescape(written.decode()).encode("utf-8", "surrogatepass"))
        elif written[:1] == b"%" or written[1:2] == b"x":
            yield (*escape.span(), bytes([int(written[-2:], 16)]))
        elif written[1:2] not in b"uU":
            yield (*escape.span(), bytes([int(written[1:], 8)]))
        else:
            digits = written[2:].strip(b"{}")
            code = int(digits, 16)
            if high and high.end() == escape.start() and 0xDC00 <= code < 0xE000:
                first = high[0].decode().strip("\\uU{}")
                code += 0x10000 - 0xDC00 + ((int(first, 16) - 0xD800) << 10)
                yield high.start(), escape.end(), chr(code).encode()
            elif 0xD800 <= code < 0xDC00:
                high = escape
                continue
            else:
                yield (*escape.span(), chr(min(code, 0x10FFFF)).encode("utf-8", "surrogatepass"))
        high = None


class _DumpLine(NamedTuple):
    start: int
    end: int
    bytes_at: Sequence[int]  # the position of each byte in the text
    readings: Sequence[bytes]  # one per byte order within a word


class HexDumpViewReader(ViewReader):
    """Read the bytes that `xxd`, `hexdump` and `od` write in lines.

    A secret is masked up to the end of its last line, where the same bytes may stand as text.
    """

    def iter_spans(self, text: bytes, at: int) -> Iterator[tuple[int, int]]:
        for block in _find_dump_blocks(text, at):
            for reading in range(len(block[0].readings)):
                view = TextView([ViewPart(each.start, each.end, each.readings[reading]) for each in block])
                starts = [place for each in block for place in each.bytes_at]
                for start, end in self._forms.iter_matches(view.text):
                    if starts[start] >= at:
                        yield starts[start], view.text_end(end)

    def find_open(self, text: bytes, at: int) -> int:
        """Return where an unfinished dump begins, so that its rest can be waited for; or the end of the text."""
        line = text.rfind(b"\n") + 1
        open_at = len(text)
        if line < len(text):
            if len(text) - line > _DUMP_BYTES or not (_OPEN_DUMP.match(text, line) or _DUMP.match(text, line)):
                return len(text)
            open_at = line
        blocks = _find_dump_blocks(text, max(at, len(text) - self._window))
        kept = 0
        for each in reversed(blocks[-1]) if blocks and blocks[-1][-1].end + 2 >= line else ():
            open_at = min(open_at, each.start)
            kept += len(each.bytes_at)
            if kept >= 2 * DUMPED_BYTES:
                break
        return max(open_at, at)


def _find_dump_blocks(text: bytes, at: int) -> list[list[_DumpLine]]:
    """Return the lines of each dump, beginning with the line that contains `at`."""
    begins = text.rfind(b"\n", 0, at) + 1
    starts = [found.end() for found in _BEFORE_DUMP.finditer(text, max(begins - 1, 0))]
    if text.find(b"Z ", begins) >= 0:
        stamped = (text.rfind(b"\n", 0, found.start()) + 1 for found in _STAMP_BEFORE_DUMP.finditer(text, begins))
        starts = sorted({*starts, *stamped})
    if begins == 0 and at < CONTEXT_BYTES and starts[:1] != [0]:
        starts.insert(0, 0)
    blocks: list[list[_DumpLine]] = []
    goes_on_at = -1  # a line that begins here belongs to the last block
    for start in starts:
        is_single = _SINGLE_GROUP.match(text, start) is not None
        if (is_single and start != goes_on_at) or (start == 0 and at >= CONTEXT_BYTES):
            continue
        if not (line := _parse_dump_line(text, start)):
            continue
        if start == goes_on_at and len(blocks[-1][-1].readings) == len(line.readings):
            blocks[-1].append(line)
        elif is_single:
            continue
        else:
            blocks.append([line])
        goes_on_at = -1 if is_single else line.end + 1
    return blocks


def _parse_dump_line(text: bytes, start: int) -> _DumpLine | None:
    found = _DUMP.match(text, start)
    if not found or found.end() - start > _DUMP_BYTES:
        return None
    if found["cells"] is not None:
        begins = found.start("cells")
        cells = [found["cells"][at : at + 4] for at in range(0, len(found["cells"]), 4)]
        return _DumpLine(
            start, found.end(), [begins + 4 * n for n in range(len(cells))], [bytes(map(_parse_od_byte, cells))]
        )
    name = "groups" if found["groups"] is not None else "others"
    groups = list(re.finditer(_GROUP, found[name]))
    digits = [group[0].removeprefix(b"0x") for group in groups]
    begins = found.start(name)
    if all(len(each) in (3, 6) and not each.strip(b"01234567") for each in digits):
        size = len(digits[0]) // 3
        words = [int(each, 8) & 0xFFFF for each in digits]
        readings = [b"".join((word & (0xFF if size == 1 else 0xFFFF)).to_bytes(size, "little") for word in words)]
    elif any(len(each) % 2 for each in digits):
        return None
    else:
        size = len(digits[0]) // 2
        raw = [bytes.fromhex(each.decode()) for each in digits]
        readings = [b"".join(raw), b"".join(each[::-1] for each in raw)]
        places = [begins + group.start() for group, each in zip(groups, raw, strict=True) for _ in each]
        return _DumpLine(start, found.end(), places, readings)
    places = [begins + group.start() for group in groups for _ in range(size)]
    return _DumpLine(start, found.end(), places, [*readings, readings[0]])


def _parse_od_byte(cell: bytes) -> int:
    written = cell.strip()
    if len(written) == 3:
        return int(written, 8) & 0xFF
    if len(written) == 2:
        return _OD_LETTERS.get(written[1:], 0)
    return written[0] if written else 32

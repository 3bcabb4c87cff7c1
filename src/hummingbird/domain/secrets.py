"""Credentials, masked before anybody sees them (T7): the values that are known, and the shapes of the usual ones.

Knows neither where a text comes from nor where it goes, and never shows what it hides.
"""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import quote, quote_plus

from hummingbird.domain.limits import ADDRESS_BYTES, MASKING_HELD_BYTES, SECRET_CHARS, SECRET_SPREAD_BYTES
from hummingbird.domain.masking import HEAD_BYTES, MASK_BYTES, NEAR, Found, KnownText, Lookout, Mark, MaskedStream, Rule
from hummingbird.domain.masking_views import (
    CONTEXT_BYTES,
    DUMPED_BYTES,
    UncolouredReader,
    UndumpedReader,
    UnescapedReader,
    UnwrappedReader,
    ViewReader,
)

MASK = MASK_BYTES.decode()
SHORTEST = 6  # a shorter value is found in innocent words


@dataclass(frozen=True, slots=True)
class Secrets:
    """`values` that are too short to be told from words are left out; surrounding white space is no part of one.

    A value is masked as it is, and as tools write it: in Base64, in hexadecimal, in an address, in JSON, and in what
    the views of `masking_views` undo: colours, line breaks in an encoding, escapes, dumps. A whole
    text and a stream are masked alike, always, for the bounds are those of both:

    - a value of more than `SECRET_CHARS` characters is masked in pieces, each of them a secret of its own;
    - a value of several words between which more than `SECRET_SPREAD_BYTES` of white space were added is masked as far
      as it goes, white space included, even if only its beginning is there;
    - `://` with at least `ADDRESS_BYTES` behind it that could be user, password and host is masked with all of that;
    - a private key without an end is masked up to the end of the text.
    """

    values: Iterable[str] = field(default=(), repr=False)
    _rules: "_Rules" = field(init=False, repr=False, compare=False)
    _values_alone: "_Rules" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = {stripped for value in self.values if len(stripped := value.strip()) >= SHORTEST}
        longest_first = tuple(sorted(values, key=lambda value: (-len(value), value)))
        object.__setattr__(self, "values", longest_first)
        pieces = {piece for value in longest_first for piece in _pieces(value)}
        known = _KnownForms(spelling for piece in pieces for spelling in _spellings(piece))
        views = _make_views(pieces, known)
        object.__setattr__(self, "_rules", _Rules(known, views, _SHAPES))
        object.__setattr__(self, "_values_alone", _Rules(known, views, ()))

    def mask(self, text: str) -> str:
        """The text without them. Masking a masked text changes nothing."""
        return _whole(text, self.stream())

    def mask_known(self, text: str) -> str:
        """The text without the values alone: for what people and models say, who may well write `user:password@` of
        their own, and mean it."""
        return _whole(text, MaskedStream(self._values_alone))

    def stream_known(self) -> MaskedStream:
        """`mask_known` for a text that comes in chunks."""
        return MaskedStream(self._values_alone)

    def stream(self) -> MaskedStream:
        """For a text that comes in chunks. What is no text does not belong into it: some of it would look secret."""
        return MaskedStream(self._rules)


def _whole(text: str, stream: MaskedStream) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    masked = stream.end(raw)
    return text if masked == raw else masked.decode("utf-8", "surrogatepass")


async def masked(chunks: AsyncIterable[bytes], secrets: Secrets) -> AsyncIterator[bytes]:
    """The same text without secrets. If it breaks off with an error, what was held back is never shown."""
    stream = secrets.stream()
    async for chunk in chunks:
        if shown := stream.feed(chunk):
            yield shown
    if shown := stream.end():
        yield shown


def _pieces(value: str) -> Iterator[str]:
    """Equally long ones, so that none is too short to be told from words."""
    pieces = (value[start:end].strip() for start, end in pairwise(_cuts(len(value), SECRET_CHARS)))
    return (piece for piece in pieces if len(piece) >= SHORTEST)


def _spellings(value: str) -> Iterator[bytes]:
    written = (value, *_in_json(value), *_in_address(value))
    yield from {text.encode("utf-8", "surrogatepass") for text in written}
    yield from _encodings(value.encode("utf-8", "surrogatepass"))


def _encodings(raw: bytes) -> Iterator[bytes]:
    """As plain letters, between which tools break lines."""
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    yield from _in_base64(raw)


def _make_views(pieces: Collection[str], known: "_KnownForms") -> tuple[ViewReader, ...]:
    if not pieces:
        return ()
    raw = [piece.encode("utf-8", "surrogatepass") for piece in pieces]
    dumped = (value[start:end] for value in raw for start, end in pairwise(_cuts(len(value), DUMPED_BYTES)))
    longest = max(map(len, raw))
    window = min(16 * longest + SECRET_SPREAD_BYTES, MASKING_HELD_BYTES - CONTEXT_BYTES)
    return (
        UncolouredReader(known, window, known.longest),
        UnwrappedReader(_KnownForms(encoded for value in raw for encoded in _encodings(value)), window, longest),
        UnescapedReader(_KnownForms(raw), window, longest),
        UndumpedReader(_KnownForms(value for value in dumped if len(value) >= SHORTEST), 16 * DUMPED_BYTES, longest),
    )


def _cuts(length: int, most: int) -> list[int]:
    """Where something is cut into equally long pieces, its two ends included."""
    count = -(-length // most)
    return [length * number // count for number in range(count + 1)]


def _in_json(value: str) -> Iterator[str]:
    """With and without characters beyond ASCII, as those write it who fear for their HTML (Go, Rails; PHP escapes
    slashes), and in JSON that is a text in JSON."""
    for beyond in (True, False):
        plain = json.dumps(value, ensure_ascii=not beyond)[1:-1]
        yield plain
        yield plain.replace("/", "\\/")
        yield re.sub("[<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", plain)
        yield json.dumps(plain, ensure_ascii=not beyond)[1:-1]


def _in_address(value: str) -> Iterator[str]:
    """In a path or in a query, by what Python, curl and browsers think need not be escaped."""
    raw = value.encode("utf-8", "surrogatepass")
    for written in (quote(raw, safe=""), quote(raw), quote(raw, safe="!'()*"), quote_plus(raw)):
        yield written
        yield re.sub("%..", lambda escape: escape[0].lower(), written)


def _in_base64(value: bytes) -> Iterator[bytes]:
    """Alone, and as a part of something longer (`user:password`), where it may begin at each of three places."""
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(value)
        for before in range(3):
            whole = (before + len(value)) * 8 // 6  # the letter behind these holds bits of what follows
            yield encode(bytes(before) + value)[(before * 8 + 5) // 6 : whole]


_IN_WORDS = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_SHORT_BYTES = 512


class _Unmarked(Rule):
    def places(self, text: bytes, at: int) -> Iterable[int]:
        """Where it may find something that has none of its marks."""
        raise NotImplementedError


class _Masked(Rule):
    """A mask that is there already: it stays, and nothing but a private key reaches across it."""

    marks = (MASK_BYTES,)

    def found(self, text: bytes, start: int, *, fresh: bool) -> Found | None:
        return Found(start + len(MASK_BYTES), MASK_BYTES) if text.startswith(MASK_BYTES, start) else None


class _Run:
    """Goes on for as long as there are such letters."""

    def __init__(self, letters: bytes) -> None:
        self._pattern = re.compile(b"[" + letters + b"]*")

    def passed(self, text: bytes, at: int) -> tuple[int, bool]:
        run = self._pattern.match(text, at)
        assert run is not None
        return run.end(), run.end() < len(text)


class _Token(Rule):
    """One of some beginnings, not in the middle of a word, and at least so many letters behind it."""

    def __init__(self, heads: str, letters: bytes, least: int) -> None:
        self.marks = tuple(head.encode() for head in heads.split())
        self.behind = b"[%b]{%d}" % (letters, least)
        self.cut = b"[%b]{0,%d}" % (letters, least - 1)
        self._pattern = re.compile(b"(?:%b)%b" % (b"|".join(map(re.escape, self.marks)), self.behind))
        self._run = _Run(letters)

    def found(self, text: bytes, start: int, *, fresh: bool) -> Found | None:
        if not fresh and start and text[start - 1] in _IN_WORDS:
            return None
        token = self._pattern.match(text, start)
        return Found(token.end(), MASK_BYTES, self._run) if token else None


class _Bearer(Rule):
    """The word stays: it says that there was something."""

    marks = (b"Bearer", b"bearer")
    behind = rb"\s{1,4}[A-Za-z0-9._~+/=-]{20}"
    cut = rb"(?:\s{1,4}[A-Za-z0-9._~+/=-]{0,19})?"
    _pattern = re.compile(rb"([Bb]earer)" + behind)
    _run = _Run(rb"A-Za-z0-9._~+/=-")

    def found(self, text: bytes, start: int, *, fresh: bool) -> Found | None:
        token = self._pattern.match(text, start)
        return Found(token.end(), token[1] + b" " + MASK_BYTES, self._run) if token else None


class _PrivateKey(Rule):
    """Up to its end, or to that of the text; a mask inside does not end it."""

    marks = (b"-----BEGIN ",)
    behind = rb"[A-Z0-9 ]{0,40}PRIVATE KEY-----"
    cut = rb"[A-Z0-9 ]{0,51}-{0,4}"
    _pattern = re.compile(rb"-----BEGIN " + behind)
    _end = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
    _end_bytes = 9 + 40 + 16

    def found(self, text: bytes, start: int, *, fresh: bool) -> Found | None:
        begin = self._pattern.match(text, start)
        return Found(begin.end(), MASK_BYTES, self) if begin else None

    def passed(self, text: bytes, at: int) -> tuple[int, bool]:
        end = self._end.search(text, at)
        return (end.end(), True) if end else (max(at, len(text) - self._end_bytes + 1), False)


class _Address(_Unmarked):
    """User and password before a host. They end at the last `@`: people forget to escape those in a password."""

    _without_mark = re.compile(rb"://(?=[^\s/?#@]{0,%d}+(?:@|(?<=://[^/]{%d})))" % (ADDRESS_BYTES, ADDRESS_BYTES))
    _authority = re.compile(rb"[^\s/?#\[]*(?:\[(?!masked\])[^\s/?#\[]*)*")
    _run = _Run(rb"^\s/?#")

    def places(self, text: bytes, at: int) -> Iterable[int]:
        """It takes an `@` or a very long word: to see that there is none is quicker than to look at all addresses."""
        if text.find(b"@", at) < 0 and not self._has_long_word(text, at):
            return ()
        return (hit.start() for hit in self._without_mark.finditer(text, at))

    def _has_long_word(self, text: bytes, at: int) -> bool:
        while at + ADDRESS_BYTES < len(text):
            end = max(text.rfind(b" ", at, at + ADDRESS_BYTES), text.rfind(b"\n", at, at + ADDRESS_BYTES))
            if end < 0:
                return True
            at = end + 1
        return False

    def found(self, text: bytes, start: int, *, fresh: bool) -> Found | None:
        start += 3
        end = self._end(text, start)
        if end == start + ADDRESS_BYTES:
            return Found(end, b"://" + MASK_BYTES, self._run)
        sign = text.rfind(b"@", start, end)
        return Found(sign, b"://" + MASK_BYTES) if -1 < text.find(b":", start, end) < sign else None

    def begun(self, text: bytes, at: int) -> int:
        """Only the last one can be open: each of the others has the slashes of the next behind it."""
        start = text.rfind(b"://", max(at, len(text) - ADDRESS_BYTES - 2))
        if start >= 0 and self._end(text, start + 3) == len(text):
            return start
        colon = len(text) - 1 - text.endswith(b":/")
        return colon if colon >= at and text[colon] == ord(":") else len(text)

    def _end(self, text: bytes, start: int) -> int:
        authority = self._authority.match(text, start, start + ADDRESS_BYTES)
        assert authority is not None
        return authority.end()


_TOKENS = (
    _Token("sk-", rb"A-Za-z0-9_-", 16),
    _Token("glpat- glptt- glcbt- gldt- glrt- glft- glsoat- glagent- glimt- glffct-", rb"A-Za-z0-9_.-", 16),
    _Token("gho_ ghp_ ghu_ ghs_ ghr_", rb"A-Za-z0-9", 16),
    _Token("github_pat_", rb"A-Za-z0-9_", 16),
    _Token("AKIA ASIA", rb"0-9A-Z", 16),
    _Token("AIza", rb"A-Za-z0-9_-", 30),
    _Token("ya29.", rb"A-Za-z0-9_.-", 10),
    _Token("xoxa- xoxb- xoxe- xoxp- xoxr- xoxs-", rb"A-Za-z0-9-", 10),
)
_ADDRESS = _Address()
_SHAPES = (*_TOKENS, _PrivateKey(), _Bearer(), _ADDRESS)


def _cut(head: bytes, cut: bytes = b"", not_within: bytes = b"") -> bytes:
    """`head` and `cut`, or any beginning of `head`; a plain letter first, by which `re` skips what cannot match."""
    for letter in reversed(head[1:]):
        cut = b"(?:" + re.escape(bytes([letter])) + cut + b")?"
    return re.escape(head[:1]) + not_within + cut


def _at_end(cuts: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"(?:" + b"|".join(cuts) + rb")\Z")


# how a text ends that ends in the middle of a shape; and in the middle of a token that stands right behind a mask
_OPEN = _at_end(
    [
        *(_cut(head, token.cut, rb"(?<![A-Za-z0-9].)") for token in _TOKENS for head in token.marks),
        *(_cut(head, _Bearer.cut) for head in (b"Bearer", b"bearer")),
        _cut(b"-----BEGIN ", _PrivateKey.cut),
        _cut(MASK_BYTES[:-1]),
    ]
)
_OPEN_FRESH = _at_end(_cut(head, token.cut) for token in _TOKENS for head in token.marks)


class _KnownForms:
    """Spellings of known values, the longest first."""

    def __init__(self, spelt: Iterable[bytes]) -> None:
        spellings = {text for text in spelt if MASK_BYTES not in text}
        self.values = [KnownText(text) for text in sorted(spellings, key=lambda text: (-len(text), text))]
        self.longest = max(map(len, spellings), default=0)
        self._lookout = Lookout(Mark(mark, number) for number, value in enumerate(self.values) for mark in value.marks)
        self._long = [value for value in self.values if value.reach > _SHORT_BYTES]
        self._short: dict[bytes, list[KnownText]] = {}  # by how they begin, and by the beginnings of that
        for value in (value for value in self.values if value.reach <= _SHORT_BYTES):
            for length in range(1, HEAD_BYTES + 1):
                self._short.setdefault(value.marks[0][:length], []).append(value)

    def cover(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield where a value begins and ends, in order and apart from each other."""
        last = 0
        for start, number in sorted(self._lookout.places(text, 0)):
            if start >= last and (found := self.values[number].found(text, start, fresh=False)):
                last = found.end
                yield start, last

    def find_open(self, text: bytes, at: int = 0) -> int:
        """Return the first place from `at` on where a value may have begun that does not end here; or the end."""
        return min([self._find_open_short(text, at), *(value.first_begun(text, at) for value in self._long)])

    def _find_open_short(self, text: bytes, at: int) -> int:
        """None of them has white space inside."""
        at = max(at, len(text) - _SHORT_BYTES)
        for place in range(max(at, text.rfind(b" ", at) + 1, text.rfind(b"\n", at) + 1), len(text)):
            values = self._short.get(text[place : place + HEAD_BYTES])
            if values and (place + HEAD_BYTES > len(text) or any(value.begun(text, place) for value in values)):
                return place
        return len(text)


class _Rules:
    """Mask, values, values in other views, shapes: in this order, the longest value first."""

    def __init__(self, known: _KnownForms, views: Sequence[ViewReader], shapes: Iterable[Rule]) -> None:
        self._known = known
        self._views = views
        self._all: tuple[Rule, ...] = (_Masked(), *known.values, *shapes)
        self._in_views = len(known.values)  # the number of what views show
        numbered = list(enumerate(self._all))
        self._lookout = Lookout(Mark(mark, number) for number, rule in numbered for mark in rule.marks)
        self._unmarked = [(number, rule) for number, rule in numbered if isinstance(rule, _Unmarked)]

    def starts(self, text: bytes, at: int) -> list[tuple[int, int, int]]:
        places = [(start, number, 0) for number, rule in self._unmarked for start in rule.places(text, at)]
        places += [(start, number, 0) for start, number in self._lookout.places(text, at)]
        places += [(start, self._in_views, end) for view in self._views for start, end in view.spans(text, at)]
        return sorted(places)

    def found(self, number: int, text: bytes, start: int, *, fresh: bool) -> Found | None:
        return self._all[number].found(text, start, fresh=fresh)

    def begun(self, text: bytes, at: int, *, fresh: bool) -> int:
        address = _ADDRESS.begun(text, at)
        if address == at or (fresh and _OPEN_FRESH.match(text, at)):
            return at
        shape = _OPEN.search(text, max(at, len(text) - NEAR))
        firsts = [shape.start() if shape else len(text), address, self._known.find_open(text, at)]
        return min(firsts + [view.find_open(text, at) for view in self._views])

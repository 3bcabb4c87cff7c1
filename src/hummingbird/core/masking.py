"""Mask credentials in texts and streams: known values, and the usual shapes of tokens and keys.

The masked text does not depend on how a stream was cut into chunks. A stream emits bytes that cannot belong to a secret
any more and holds the rest back until more arrives; of a recognised secret it remembers only how it continues.
Everything here works on bytes: UTF-8 that is cut anywhere, and bytes that are not text, pass unchanged.
"""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Protocol
from urllib.parse import quote, quote_plus

from hummingbird.core.limits import ADDRESS_BYTES, MASKING_HELD_BYTES, SECRET_CHARS, SECRET_SPREAD_BYTES
from hummingbird.core.masking_views import (
    CONTEXT_BYTES,
    DUMPED_BYTES,
    ColourViewReader,
    EscapeViewReader,
    HexDumpViewReader,
    LineWrapViewReader,
    ViewReader,
)

MASK_BYTES = b"[masked]"
HEAD_BYTES = 4  # first bytes of known values, which serve as the index
_BLOCK = 64 * 1024  # bytes processed at once, to bound memory however long a chunk is
NEAR_BYTES = 128  # whether a place is fresh matters only for beginnings shorter than this

_MARK_BYTES = 16  # bytes of a value that the automaton searches; the automaton grows with it
_GAP = re.compile(rb"\s+")


class SecretTail(Protocol):
    """Recognises the rest of a secret whose beginning has been found."""

    def consume(self, text: bytes, at: int) -> tuple[int, bool]:
        """Return up to where to hide the text, and whether the secret ends there.

        If it does not, the caller passes the text behind that point again, with more bytes.
        """
        ...


class MaskMatch(NamedTuple):
    """A secret that a rule found."""

    end: int
    replacement: bytes
    tail: SecretTail | None = None


class MaskRule:
    """Recognise one kind of secret."""

    marks: tuple[bytes, ...] = ()  # every match begins with one of them

    def match(self, text: bytes, start: int, *, fresh: bool) -> MaskMatch | None:
        """Return the secret that begins at `start`, or None.

        `fresh` says that nothing before `start` can be part of it: that text has been masked, or there is none.
        """
        raise NotImplementedError


class MaskRules(Protocol):
    """All rules together: what is a secret, and what could become one with more text.

    Rules have numbers; of two matches at one place the rule with the lower number counts.
    """

    def find_candidates(self, text: bytes, at: int) -> Sequence[tuple[int, int, int]]:
        """Return, sorted, every place from `at` on where a rule may match.

        Each is a start, the number of the rule, and the end if the match is certain already, else 0.
        """
        ...

    def match(self, number: int, text: bytes, start: int, *, fresh: bool) -> MaskMatch | None:
        """Return the secret that the rule with this number finds at `start`, or None."""
        ...

    def find_open(self, text: bytes, at: int, *, fresh: bool) -> int:
        """Return the first place from `at` on where a secret may begin that needs more text to tell; or the end."""
        ...


class MaskedStream:
    """Mask one text that arrives in chunks.

    The joined output is the same as if the text was masked in one piece.
    """

    def __init__(self, rules: MaskRules) -> None:
        self._rules = rules
        self._kept = b""  # the last bytes that were shown, then those held back from `_at` on
        self._at = 0
        self._fresh = True
        self._rest: SecretTail | None = None

    @property
    def pending_bytes(self) -> int:
        """Return how many bytes are held back."""
        return len(self._kept) - self._at

    def feed(self, chunk: bytes) -> bytes:
        """Take the next chunk, and return the bytes that are safe to show."""
        return b"".join(
            self._mask_block(chunk[start : start + _BLOCK], last=False) for start in range(0, len(chunk), _BLOCK)
        )

    def end(self, chunk: bytes = b"") -> bytes:
        """Return what was held back, after an optional last chunk; feed nothing afterwards."""
        whole = len(chunk) // _BLOCK * _BLOCK
        return self.feed(chunk[:whole]) + self._mask_block(chunk[whole:], last=True)

    def _mask_block(self, block: bytes, *, last: bool) -> bytes:
        text = self._kept + block
        if self._rest is None:
            return self._mask_text(text, self._at, last=last)
        at, over = self._rest.consume(text, self._at)
        if not over:
            return self._hold_back(text, at, fresh=True)
        self._rest, self._fresh = None, True
        return self._mask_text(text, at, last=last)

    def _mask_text(self, text: bytes, at: int, *, last: bool) -> bytes:
        """Mask one secret after the other; stop where one may have begun whose end has not arrived."""
        shown: list[bytes] = []
        fresh = self._fresh
        begun = len(text) if last else self._rules.find_open(text, at, fresh=fresh)
        for start, number, end in self._rules.find_candidates(text, at) if begun > at else ():
            if start >= begun:
                break
            if start < at:
                continue
            found = MaskMatch(end, MASK_BYTES) if end else None
            found = found or self._rules.match(number, text, start, fresh=fresh and start == at)
            if found is None:
                continue
            shown += (text[at:start], found.replacement)
            at, over = found.tail.consume(text, found.end) if found.tail else (found.end, True)
            if not over:
                self._rest = found.tail
                return b"".join(shown) + self._hold_back(text, at, fresh=True)
            fresh = True
            if not last and (begun < at or len(text) - at < NEAR_BYTES):
                begun = self._rules.find_open(text, at, fresh=True)
        shown.append(text[at:begun])
        return b"".join(shown) + self._hold_back(text, begun, fresh=fresh and begun == at)

    def _hold_back(self, text: bytes, at: int, *, fresh: bool) -> bytes:
        self._kept, self._at, self._fresh = text[max(at - CONTEXT_BYTES, 0) :], min(at, CONTEXT_BYTES), fresh
        return b""


class KnownSpelling(MaskRule):
    """Recognise one spelling of a known value.

    White space inside it may have changed: sentences fold it in what they quote, other tools indent it.
    """

    def __init__(self, known: bytes) -> None:
        self._words = known.split()
        self.marks = (self._words[0][:_MARK_BYTES],)
        self._squeezed = b" ".join(self._words)
        opening = known[known.rfind(b"[") :]  # a value that ends like the beginning of a mask must not reach into one
        self._unless = MASK_BYTES[len(opening) :] if MASK_BYTES.startswith(opening) else b""
        self.reach = len(known) + (SECRET_SPREAD_BYTES if len(self._words) > 1 else 0)

    def match(self, text: bytes, start: int, *, fresh: bool) -> MaskMatch | None:
        """Return the value if it begins at `start`, even if it is spread too far to be held back."""
        end, whole = self._match_words(text, start)
        if end <= start + self.reach:
            whole = whole and not (self._unless and text.startswith(self._unless, end))
            return MaskMatch(end, MASK_BYTES) if whole else None
        beginning = text[start : start + self.reach + 1]
        missing = self._remaining_text(beginning, self._squeezed) if len(beginning) > self.reach else b""
        return MaskMatch(start + len(beginning), MASK_BYTES, _SplitValueTail(missing)) if missing else None

    def may_begin(self, text: bytes, start: int) -> bool:
        """Tell whether the text from `start` to its end may be the beginning of this value."""
        beginning = text[start:]
        at_most = self.reach + len(self._unless)
        return len(beginning) <= at_most and self._remaining_text(beginning, self._squeezed + self._unless) != b""

    def find_open(self, text: bytes, at: int) -> int:
        """Return the first place from `at` on where this value may begin without ending; or the end."""
        at = max(at, len(text) - self.reach - len(self._unless))
        head = self.marks[0][:HEAD_BYTES]
        place = text.find(head, at)
        while place >= 0 and not self.may_begin(text, place):
            place = text.find(head, place + 1)
        if place >= 0:
            return place
        cut = (len(text) - length for length in range(len(head) - 1, 0, -1) if text.endswith(head[:length]))
        return next((place for place in cut if place >= at), len(text))

    def _match_words(self, text: bytes, at: int) -> tuple[int, bool]:
        """Return the value's end and True; or a place before which text and value differ, and False."""
        for number, word in enumerate(self._words):
            gap = _GAP.match(text, at) if number else None
            if number and not gap:
                return at + 1, False
            at = (gap.end() if gap else at) + len(word)
            if not text.startswith(word, at - len(word)):
                return at, False
        return at, True

    def _remaining_text(self, beginning: bytes, squeezed: bytes) -> bytes:
        """Return what must follow if the value begins like this."""
        if not squeezed.startswith(_GAP.sub(b" ", beginning[:NEAR_BYTES])):
            return b""
        beginning = _GAP.sub(b" ", beginning)
        return squeezed[len(beginning) :] if squeezed.startswith(beginning) else b""


class _SplitValueTail:
    """The rest of a value that is spread too far to be held back: its other words, and white space."""

    def __init__(self, missing: bytes) -> None:
        self._words = missing.split()

    def consume(self, text: bytes, at: int) -> tuple[int, bool]:
        while self._words:
            gap = _GAP.match(text, at)
            at = gap.end() if gap else at
            word = self._words[0]
            if len(text) - at < len(word) and word.startswith(text[at:]):
                return at, False
            if not text.startswith(word, at):
                break
            at += len(self._words.pop(0))
        return at, True


class RuleMark(NamedTuple):
    """Letters that every match of a rule must contain, and the number of the rule."""

    letters: bytes
    number: int


class MarkFinder:
    """Find all places where marks stand, in one pass."""

    def __init__(self, marks: Iterable[RuleMark]) -> None:
        from ahocorasick_rs import BytesAhoCorasick  # noqa: PLC0415 - a compiled library, loaded with the first secrets

        self._numbers: dict[bytes, list[int]] = {}
        for mark in marks:
            self._numbers.setdefault(mark.letters, []).append(mark.number)
        self._letters = list(self._numbers)
        self._automaton = BytesAhoCorasick(self._letters)

    def find_marks(self, text: bytes, at: int) -> Iterator[tuple[int, int]]:
        """Yield the position and the rule number of each mark from `at` on, in the order in which they end."""
        found = self._automaton.find_matches_as_indexes(memoryview(text)[at:], overlapping=True)
        for which, start, _ in found:
            for number in self._numbers[self._letters[which]]:
                yield at + start, number


MASK = MASK_BYTES.decode()
SHORTEST_SECRET_CHARS = 6  # a shorter value occurs in ordinary words


@dataclass(frozen=True, slots=True)
class Secrets:
    """The known secrets, and the masking of texts and streams.

    Surrounding white space is not part of a value, and values that are too short to be told from words are left out.

    A value is masked as it is, and as tools write it: in Base64, in hexadecimal, in a URL, in JSON, and in what the
    views of `masking_views` undo: colours, line breaks in an encoding, escapes, dumps. A whole text and a stream are
    always masked alike, because the same limits apply to both:

    - a value of more than `SECRET_CHARS` characters is masked in pieces, each of them a secret of its own;
    - a value of several words between which more than `SECRET_SPREAD_BYTES` of white space were added is masked as far
      as it goes, white space included, even if only its beginning is there;
    - `://` followed by at least `ADDRESS_BYTES` that could be user, password and host is masked with all of that;
    - a private key without an end is masked up to the end of the text.
    """

    values: Iterable[str] = field(default=(), repr=False)
    _rules: "_AllMaskRules" = field(init=False, repr=False, compare=False)
    _values_alone: "_AllMaskRules" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        values = {stripped for value in self.values if len(stripped := value.strip()) >= SHORTEST_SECRET_CHARS}
        longest_first = tuple(sorted(values, key=lambda value: (-len(value), value)))
        object.__setattr__(self, "values", longest_first)
        pieces = {piece for value in longest_first for piece in _split_value(value)}
        known = _KnownSpellings(spelling for piece in pieces for spelling in _iter_spellings(piece))
        views = _make_views(pieces, known)
        object.__setattr__(self, "_rules", _AllMaskRules(known, views, _SHAPES))
        object.__setattr__(self, "_values_alone", _AllMaskRules(known, views, ()))

    def mask(self, text: str) -> str:
        """Return the text with all secrets masked. Masking a masked text changes nothing."""
        return _mask_whole(text, self.open_stream())

    def mask_known(self, text: str) -> str:
        """Return the text with only the known values masked.

        For what people and models say: they may well write a `user:password@` example on purpose.
        """
        return _mask_whole(text, MaskedStream(self._values_alone))

    def open_known_stream(self) -> MaskedStream:
        """Return a stream that masks like `mask_known`."""
        return MaskedStream(self._values_alone)

    def open_stream(self) -> MaskedStream:
        """Return a stream that masks like `mask`.

        Feed it only text: some binary data would look secret.
        """
        return MaskedStream(self._rules)


def _mask_whole(text: str, stream: MaskedStream) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    masked = stream.end(raw)
    return text if masked == raw else masked.decode("utf-8", "surrogatepass")


def _split_value(value: str) -> Iterator[str]:
    """Split a value into equally long pieces, so that none is too short to be told from words."""
    pieces = (value[start:end].strip() for start, end in pairwise(_cut_positions(len(value), SECRET_CHARS)))
    return (piece for piece in pieces if len(piece) >= SHORTEST_SECRET_CHARS)


def _iter_spellings(value: str) -> Iterator[bytes]:
    written = (value, *_json_spellings(value), *_url_spellings(value))
    yield from {text.encode("utf-8", "surrogatepass") for text in written}
    yield from _iter_encodings(value.encode("utf-8", "surrogatepass"))


def _iter_encodings(raw: bytes) -> Iterator[bytes]:
    """Yield encodings in plain letters, between which tools break lines."""
    yield from (raw.hex().encode(), raw.hex().upper().encode())
    yield from _base64_spellings(raw)


def _make_views(pieces: Collection[str], known: "_KnownSpellings") -> tuple[ViewReader, ...]:
    if not pieces:
        return ()
    raw = [piece.encode("utf-8", "surrogatepass") for piece in pieces]
    dumped = (value[start:end] for value in raw for start, end in pairwise(_cut_positions(len(value), DUMPED_BYTES)))
    longest = max(map(len, raw))
    window = min(16 * longest + SECRET_SPREAD_BYTES, MASKING_HELD_BYTES - CONTEXT_BYTES)
    return (
        ColourViewReader(known, window, known.longest),
        LineWrapViewReader(
            _KnownSpellings(encoded for value in raw for encoded in _iter_encodings(value)), window, longest
        ),
        EscapeViewReader(_KnownSpellings(raw), window, longest),
        HexDumpViewReader(
            _KnownSpellings(value for value in dumped if len(value) >= SHORTEST_SECRET_CHARS),
            16 * DUMPED_BYTES,
            longest,
        ),
    )


def _cut_positions(length: int, most: int) -> list[int]:
    """Return where to cut something into equally long pieces, including both ends."""
    count = -(-length // most)
    return [length * number // count for number in range(count + 1)]


def _json_spellings(value: str) -> Iterator[str]:
    """Yield the value as JSON writes it.

    With and without characters beyond ASCII; with `<>&` escaped for HTML (Go, Rails) or slashes escaped (PHP); and as
    JSON inside a JSON string.
    """
    for beyond in (True, False):
        plain = json.dumps(value, ensure_ascii=not beyond)[1:-1]
        yield plain
        yield plain.replace("/", "\\/")
        yield re.sub("[<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", plain)
        yield json.dumps(plain, ensure_ascii=not beyond)[1:-1]


def _url_spellings(value: str) -> Iterator[str]:
    """Yield the value in a path or query; Python, curl and browsers leave different characters unescaped."""
    raw = value.encode("utf-8", "surrogatepass")
    for written in (quote(raw, safe=""), quote(raw), quote(raw, safe="!'()*"), quote_plus(raw)):
        yield written
        yield re.sub("%..", lambda escape: escape[0].lower(), written)


def _base64_spellings(value: bytes) -> Iterator[bytes]:
    """Yield the value alone, and as part of something longer (`user:password`), at each of three offsets."""
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(value)
        for before in range(3):
            whole = (before + len(value)) * 8 // 6  # the next letter contains bits of what follows
            yield encode(bytes(before) + value)[(before * 8 + 5) // 6 : whole]


_IN_WORDS = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_SHORT_BYTES = 512


class _UnmarkedRule(MaskRule):
    """A rule some of whose matches contain no fixed mark."""

    def find_starts(self, text: bytes, at: int) -> Iterable[int]:
        """Return places where the rule may match without any of its marks."""
        raise NotImplementedError


class _ExistingMaskRule(MaskRule):
    """An existing mask stays, and only a private key may reach across it."""

    marks = (MASK_BYTES,)

    def match(self, text: bytes, start: int, *, fresh: bool) -> MaskMatch | None:
        return MaskMatch(start + len(MASK_BYTES), MASK_BYTES) if text.startswith(MASK_BYTES, start) else None


class _LetterRun:
    """The rest of a secret that continues as long as there are letters of a kind."""

    def __init__(self, letters: bytes) -> None:
        self._pattern = re.compile(b"[" + letters + b"]*")

    def consume(self, text: bytes, at: int) -> tuple[int, bool]:
        run = self._pattern.match(text, at)
        assert run is not None
        return run.end(), run.end() < len(text)


class _TokenRule(MaskRule):
    """One of several prefixes, not in the middle of a word, followed by a minimum number of letters."""

    def __init__(self, heads: str, letters: bytes, least: int) -> None:
        self.marks = tuple(head.encode() for head in heads.split())
        self.behind = b"[%b]{%d}" % (letters, least)
        self.cut = b"[%b]{0,%d}" % (letters, least - 1)
        self._pattern = re.compile(b"(?:%b)%b" % (b"|".join(map(re.escape, self.marks)), self.behind))
        self._run = _LetterRun(letters)

    def match(self, text: bytes, start: int, *, fresh: bool) -> MaskMatch | None:
        if not fresh and start and text[start - 1] in _IN_WORDS:
            return None
        token = self._pattern.match(text, start)
        return MaskMatch(token.end(), MASK_BYTES, self._run) if token else None


class _BearerRule(MaskRule):
    """A bearer token; the word itself stays, to show that there was one."""

    marks = (b"Bearer", b"bearer")
    behind = rb"\s{1,4}[A-Za-z0-9._~+/=-]{20}"
    cut = rb"(?:\s{1,4}[A-Za-z0-9._~+/=-]{0,19})?"
    _pattern = re.compile(rb"([Bb]earer)" + behind)
    _run = _LetterRun(rb"A-Za-z0-9._~+/=-")

    def match(self, text: bytes, start: int, *, fresh: bool) -> MaskMatch | None:
        token = self._pattern.match(text, start)
        return MaskMatch(token.end(), token[1] + b" " + MASK_BYTES, self._run) if token else None


class _PrivateKeyRule(MaskRule):
    """A private key up to its end or the end of the text; a mask inside does not end it."""

    marks = (b"-----BEGIN ",)
    behind = rb"[A-Z0-9 ]{0,40}PRIVATE KEY-----"
    cut = rb"[A-Z0-9 ]{0,51}-{0,4}"
    _pattern = re.compile(rb"-----BEGIN " + behind)
    _end = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
    _end_bytes = 9 + 40 + 16

    def match(self, text: bytes, start: int, *, fresh: bool) -> MaskMatch | None:
        begin = self._pattern.match(text, start)
        return MaskMatch(begin.end(), MASK_BYTES, self) if begin else None

    def consume(self, text: bytes, at: int) -> tuple[int, bool]:
        end = self._end.search(text, at)
        return (end.end(), True) if end else (max(at, len(text) - self._end_bytes + 1), False)


class _UrlCredentialRule(_UnmarkedRule):
    """User and password before a host; they end at the last `@`, because people forget to escape it in passwords."""

    _without_mark = re.compile(rb"://(?=[^\s/?#@]{0,%d}+(?:@|(?<=://[^/]{%d})))" % (ADDRESS_BYTES, ADDRESS_BYTES))
    _authority = re.compile(rb"[^\s/?#\[]*(?:\[(?!masked\])[^\s/?#\[]*)*")
    _run = _LetterRun(rb"^\s/?#")

    def find_starts(self, text: bytes, at: int) -> Iterable[int]:
        """Return the addresses that may contain a password.

        It takes an `@` or a very long word: checking for these first is faster than looking at all addresses.
        """
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

    def match(self, text: bytes, start: int, *, fresh: bool) -> MaskMatch | None:
        start += 3
        end = self._authority_end(text, start)
        if end == start + ADDRESS_BYTES:
            return MaskMatch(end, b"://" + MASK_BYTES, self._run)
        sign = text.rfind(b"@", start, end)
        return MaskMatch(sign, b"://" + MASK_BYTES) if -1 < text.find(b":", start, end) < sign else None

    def find_open(self, text: bytes, at: int) -> int:
        """Return where an incomplete address begins; only the last one can be incomplete."""
        start = text.rfind(b"://", max(at, len(text) - ADDRESS_BYTES - 2))
        if start >= 0 and self._authority_end(text, start + 3) == len(text):
            return start
        colon = len(text) - 1 - text.endswith(b":/")
        return colon if colon >= at and text[colon] == ord(":") else len(text)

    def _authority_end(self, text: bytes, start: int) -> int:
        authority = self._authority.match(text, start, start + ADDRESS_BYTES)
        assert authority is not None
        return authority.end()


_TOKENS = (
    _TokenRule("sk-", rb"A-Za-z0-9_-", 16),
    _TokenRule("glpat- glptt- glcbt- gldt- glrt- glft- glsoat- glagent- glimt- glffct-", rb"A-Za-z0-9_.-", 16),
    _TokenRule("gho_ ghp_ ghu_ ghs_ ghr_", rb"A-Za-z0-9", 16),
    _TokenRule("github_pat_", rb"A-Za-z0-9_", 16),
    _TokenRule("AKIA ASIA", rb"0-9A-Z", 16),
    _TokenRule("AIza", rb"A-Za-z0-9_-", 30),
    _TokenRule("ya29.", rb"A-Za-z0-9_.-", 10),
    _TokenRule("xoxa- xoxb- xoxe- xoxp- xoxr- xoxs-", rb"A-Za-z0-9-", 10),
)
_ADDRESS = _UrlCredentialRule()
_SHAPES = (*_TOKENS, _PrivateKeyRule(), _BearerRule(), _ADDRESS)


def _open_pattern(head: bytes, cut: bytes = b"", not_within: bytes = b"") -> bytes:
    """Return a pattern for `head` and `cut`, or any beginning of `head`.

    It begins with a plain letter, by which `re` quickly skips what cannot match.
    """
    for letter in reversed(head[1:]):
        cut = b"(?:" + re.escape(bytes([letter])) + cut + b")?"
    return re.escape(head[:1]) + not_within + cut


def _compile_at_end(cuts: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"(?:" + b"|".join(cuts) + rb")\Z")


# The end of a text that stops in the middle of a shape; and of one that stops in a token right behind a mask.
_OPEN = _compile_at_end(
    [
        *(_open_pattern(head, token.cut, rb"(?<![A-Za-z0-9].)") for token in _TOKENS for head in token.marks),
        *(_open_pattern(head, _BearerRule.cut) for head in (b"Bearer", b"bearer")),
        _open_pattern(b"-----BEGIN ", _PrivateKeyRule.cut),
        _open_pattern(MASK_BYTES[:-1]),
    ]
)
_OPEN_FRESH = _compile_at_end(_open_pattern(head, token.cut) for token in _TOKENS for head in token.marks)


class _KnownSpellings:
    """All spellings of the known values, the longest first."""

    def __init__(self, spelt: Iterable[bytes]) -> None:
        spellings = {text for text in spelt if MASK_BYTES not in text}
        self.values = [KnownSpelling(text) for text in sorted(spellings, key=lambda text: (-len(text), text))]
        self.longest = max(map(len, spellings), default=0)
        self._lookout = MarkFinder(
            RuleMark(mark, number) for number, value in enumerate(self.values) for mark in value.marks
        )
        self._long = [value for value in self.values if value.reach > _SHORT_BYTES]
        self._short: dict[
            bytes, list[KnownSpelling]
        ] = {}  # by their first HEAD_BYTES bytes, and by each prefix of these
        for value in (value for value in self.values if value.reach <= _SHORT_BYTES):
            for length in range(1, HEAD_BYTES + 1):
                self._short.setdefault(value.marks[0][:length], []).append(value)

    def iter_matches(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each value, in order and without overlaps."""
        last = 0
        for start, number in sorted(self._lookout.find_marks(text, 0)):
            if start >= last and (found := self.values[number].match(text, start, fresh=False)):
                last = found.end
                yield start, last

    def find_open(self, text: bytes, at: int = 0) -> int:
        """Return the first place from `at` on where a value may begin without ending; or the end."""
        return min([self._find_open_short(text, at), *(value.find_open(text, at) for value in self._long)])

    def _find_open_short(self, text: bytes, at: int) -> int:
        """Search the short values, none of which has white space inside."""
        at = max(at, len(text) - _SHORT_BYTES)
        for place in range(max(at, text.rfind(b" ", at) + 1, text.rfind(b"\n", at) + 1), len(text)):
            values = self._short.get(text[place : place + HEAD_BYTES])
            if values and (place + HEAD_BYTES > len(text) or any(value.may_begin(text, place) for value in values)):
                return place
        return len(text)


class _AllMaskRules:
    """Existing masks, values, values in other views, shapes: in this order, the longest value first."""

    def __init__(self, known: _KnownSpellings, views: Sequence[ViewReader], shapes: Iterable[MaskRule]) -> None:
        self._known = known
        self._views = views
        self._all: tuple[MaskRule, ...] = (_ExistingMaskRule(), *known.values, *shapes)
        self._in_views = len(known.values)  # the rule number of matches in views
        numbered = list(enumerate(self._all))
        self._lookout = MarkFinder(RuleMark(mark, number) for number, rule in numbered for mark in rule.marks)
        self._unmarked = [(number, rule) for number, rule in numbered if isinstance(rule, _UnmarkedRule)]

    def find_candidates(self, text: bytes, at: int) -> list[tuple[int, int, int]]:
        places = [(start, number, 0) for number, rule in self._unmarked for start in rule.find_starts(text, at)]
        places += [(start, number, 0) for start, number in self._lookout.find_marks(text, at)]
        places += [(start, self._in_views, end) for view in self._views for start, end in view.iter_spans(text, at)]
        return sorted(places)

    def match(self, number: int, text: bytes, start: int, *, fresh: bool) -> MaskMatch | None:
        return self._all[number].match(text, start, fresh=fresh)

    def find_open(self, text: bytes, at: int, *, fresh: bool) -> int:
        address = _ADDRESS.find_open(text, at)
        if address == at or (fresh and _OPEN_FRESH.match(text, at)):
            return at
        shape = _OPEN.search(text, max(at, len(text) - NEAR_BYTES))
        firsts = [shape.start() if shape else len(text), address, self._known.find_open(text, at)]
        return min(firsts + [view.find_open(text, at) for view in self._views])

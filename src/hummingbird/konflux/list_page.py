"""Parses one page of a Kubernetes list while it arrives, with one item in memory and in any order of the keys.

KubeArchive writes the items before the metadata; a cluster may do either. An event-based parser would be slower: the
standard scanner builds an item in C, and scanning an item again that came in two parts costs less than a callback for
every token.
"""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum, auto
from typing import Any, TypeAlias

from hummingbird.core.errors import SourceResponseInvalid
from hummingbird.core.limits import KONFLUX_GATHERED_CHARS, KONFLUX_ITEM_CHARS

_MARKS = re.compile(r'["{}\[\]]')
_IN_TEXT = re.compile(r'["\\]')


class ObjectSkipper:
    """Finds the end of a JSON object without parsing it, so that a broken item does not spoil those after it.

    It takes one object, from its first brace on, in any number of parts, and keeps nothing of them.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._escaped = False

    def find_end(self, text: str, place: int) -> int | None:
        """Return the position after the object, or None if `text` ends before the object does."""
        if self._escaped and place < len(text):
            self._escaped, place = False, place + 1
        while (mark := (_IN_TEXT if self._in_text else _MARKS).search(text, place)) is not None:
            place = mark.end()
            if mark[0] == "\\":
                self._escaped = place == len(text)
                place += 1
            elif mark[0] == '"':
                self._in_text = not self._in_text
            else:
                self._depth += 1 if mark[0] in "{[" else -1
                if self._depth <= 0:
                    return place
        return None


JsonObject: TypeAlias = dict[str, Any]
_SPACE = re.compile(r"[ \t\r\n]*")
_LONGEST_WORD = 12  # an escaped surrogate pair: this close to the end of a cut text, an error may be due to the cut


class _IncompleteJson(Exception):
    """The text so far is valid, but incomplete."""


class _PageParserState(Enum):
    START = auto()
    KEY = auto()
    VALUE = auto()
    AFTER = auto()
    ITEMS = auto()
    SKIPPING = auto()
    END = auto()


class KubernetesListPage:
    """One page. Call `feed` with chunks of any size, then `end`; items are yielded one by one.

    Both methods raise SourceResponseInvalid for what is not a list; `end` also for a page that was cut off.

    Attributes:
        continue_token: The token of the next page; empty if there is none or it has not come yet.
        skipped: Number of items that were too long, too deep or not valid objects; those after them are still yielded.
    """

    def __init__(self, gathered_chars: int = KONFLUX_GATHERED_CHARS, item_chars: int = KONFLUX_ITEM_CHARS) -> None:
        self.continue_token = ""
        self.kind = ""
        self.skipped = 0
        self._gathered_chars = gathered_chars
        self._item_chars = item_chars
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._scan = json.JSONDecoder(parse_constant=_constant_as_none).raw_decode
        self._parts: list[str] = []
        self._waiting_chars = 0
        self._wanted_chars = 0
        self._text = ""
        self._position = 0
        self._key = ""
        self._has_items = False
        self._skipper = ObjectSkipper()
        self._state = _PageParserState.START

    def feed(self, chunk: bytes) -> Iterator[JsonObject]:
        self._buffer(chunk)
        if self._waiting_chars >= self._wanted_chars:
            yield from self._parse_buffer()

    def end(self) -> Iterator[JsonObject]:
        self._buffer(b"", final=True)
        yield from self._parse_buffer()
        if self._state is not _PageParserState.END:
            raise SourceResponseInvalid("A page of the list was cut off before its end.")
        if not self._has_items:
            raise SourceResponseInvalid("A page of the list is no list: it has no items.")

    def remaining_items(self) -> Iterator[JsonObject]:
        """Yield the complete items of a page whose end will not come. Raises nothing."""
        with suppress(SourceResponseInvalid):
            yield from self._parse_buffer()

    def _buffer(self, chunk: bytes, *, final: bool = False) -> None:
        part = self._decoder.decode(chunk, final)
        self._parts.append(part)
        self._waiting_chars += len(part)

    def _parse_buffer(self) -> Iterator[JsonObject]:
        self._text = self._text[self._position :] + "".join(self._parts)
        self._parts, self._position, self._waiting_chars = [], 0, 0
        while self._state is not _PageParserState.END:
            try:
                found = self._step()
            except _IncompleteJson:
                if not self._is_too_long():
                    return
                self._start_skip()
                continue
            if found is not None:
                yield found
                del found

    def _is_too_long(self) -> bool:
        """Return whether the item is too long; if not, decide how much more text to wait for.

        Waiting for as much as is there already avoids scanning an item once for each of its many parts. The wait never
        exceeds the length that an item may have.
        """
        unread = len(self._text) - self._position
        wanted = min(max(unread, self._gathered_chars), self._item_chars + 1 - unread)
        self._wanted_chars = max(0, wanted) if unread else 0
        return unread > self._item_chars

    def _start_skip(self) -> None:
        if self._state is not _PageParserState.ITEMS or not self._text.startswith("{", self._position):
            raise SourceResponseInvalid(
                "A page of the list holds what no Kubernetes list holds, and cannot be read on."
            )
        self._skipper = ObjectSkipper()
        self._state = _PageParserState.SKIPPING

    def _step(self) -> JsonObject | None:
        letter = self._next_character()
        match self._state:
            case _PageParserState.START:
                self._expect(letter, "{", _PageParserState.KEY)
            case _PageParserState.KEY if letter == "}":
                self._state = _PageParserState.END
            case _PageParserState.KEY:
                self._read_key()
            case _PageParserState.VALUE if self._key == "items" and letter == "[":
                self._expect(letter, "[", _PageParserState.ITEMS)
            case _PageParserState.VALUE:
                self._store_field(self._key, self._parse_value())
                self._state = _PageParserState.AFTER
            case _PageParserState.AFTER if letter == ",":
                self._expect(letter, ",", _PageParserState.KEY)
            case _PageParserState.AFTER:
                self._expect(letter, "}", _PageParserState.END)
            case _PageParserState.ITEMS if letter in ",]":
                self._expect(letter, letter, _PageParserState.ITEMS if letter == "," else _PageParserState.AFTER)
            case _PageParserState.ITEMS:
                return self._parse_item()
            case _PageParserState.SKIPPING:
                self._skip_object()
        return None

    def _next_character(self) -> str:
        space = _SPACE.match(self._text, self._position)
        assert space is not None
        self._position = space.end()
        if self._position == len(self._text):
            raise _IncompleteJson
        return self._text[self._position]

    def _expect(self, letter: str, wanted: str, onward: _PageParserState) -> None:
        if letter != wanted:
            raise SourceResponseInvalid(f"A page of the list is no list: {wanted!r} was expected and {letter!r} came.")
        self._position += 1
        self._state = onward

    def _read_key(self) -> None:
        begun = self._position
        key = self._parse_value()
        try:
            letter = self._next_character()
        except _IncompleteJson:
            self._position = begun
            raise
        self._key = str(key)
        self._has_items = self._has_items or self._key == "items"
        self._expect(letter, ":", _PageParserState.VALUE)

    def _parse_item(self) -> JsonObject | None:
        try:
            item = self._parse_value()
        except SourceResponseInvalid:
            self._start_skip()
            return None
        if isinstance(item, dict):
            return item
        self.skipped += 1
        return None

    def _skip_object(self) -> None:
        after = self._skipper.find_end(self._text, self._position)
        if after is None:
            self._position = len(self._text)
            raise _IncompleteJson
        self._position = after
        self._state = _PageParserState.ITEMS
        self.skipped += 1

    def _parse_value(self) -> Any:
        try:
            value, after = self._scan(self._text, self._position)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _LONGEST_WORD:
                raise _IncompleteJson from None
            raise SourceResponseInvalid(f"A page of the list is no valid JSON ({error.msg}).") from error
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits, hostile nesting
            raise SourceResponseInvalid("A page of the list holds what no Kubernetes object holds.") from error
        if after == len(self._text) and not isinstance(value, dict | list | str):
            raise _IncompleteJson  # a number may continue in the next chunk
        self._position = after
        return value

    def _store_field(self, key: str, value: Any) -> None:
        if key == "metadata" and isinstance(value, dict):
            self.continue_token = str(value.get("continue") or "")
        elif key == "kind" and isinstance(value, str):
            self.kind = value
        elif key == "items" and value is not None:
            raise SourceResponseInvalid("A page of the list has items that are no list.")


def _constant_as_none(_constant: str) -> None:
    """Replace NaN and Infinity, which are not JSON although the parser accepts them, by None."""

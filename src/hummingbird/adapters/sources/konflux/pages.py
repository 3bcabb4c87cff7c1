"""One page of a Kubernetes list, read as it comes: one item in memory, whatever the order of the keys.

KubeArchive writes the items before the metadata, a cluster may do either. Nothing here knows what an item is.
Chosen over a parser of events: the standard scanner builds an item in C, and reading it again when it came in two parts
costs less than calling back for every token.
"""

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum, auto
from typing import Any, TypeAlias

from hummingbird.adapters.sources.konflux.skipping import Skipping
from hummingbird.domain.errors import AnswerUnusable
from hummingbird.domain.limits import KONFLUX_GATHERED_CHARS, KONFLUX_ITEM_CHARS

Raw: TypeAlias = dict[str, Any]
_SPACE = re.compile(r"[ \t\r\n]*")
_LONGEST_WORD = 12  # an escaped pair of surrogates: how far before the end of a text that was cut it may seem wrong


class _Cut(Exception):
    """What is there is sound, but not whole yet."""


class _At(Enum):
    START = auto()
    KEY = auto()
    VALUE = auto()
    AFTER = auto()
    ITEMS = auto()
    SKIPPING = auto()
    END = auto()


class Page:
    """Feed it chunks of any size, then end it. Items are handed out while they are asked for, so that there is never
    more than one. Both raise AnswerUnusable for what is no list; `end` also for one that was cut off.

    `more` is the token of the next page, empty if there is none or it has not come yet. `skipped` items were too long,
    too deep or no valid objects; those behind them are handed out all the same."""

    def __init__(self, gathered_chars: int = KONFLUX_GATHERED_CHARS, item_chars: int = KONFLUX_ITEM_CHARS) -> None:
        self.more = ""
        self.kind = ""
        self.skipped = 0
        self._gathered_chars = gathered_chars
        self._item_chars = item_chars
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._scan = json.JSONDecoder(parse_constant=_nothing).raw_decode
        self._parts: list[str] = []
        self._waiting_chars = 0
        self._wanted_chars = 0
        self._text = ""
        self._place = 0
        self._key = ""
        self._listed = False
        self._skipping = Skipping()
        self._at = _At.START

    def feed(self, chunk: bytes) -> Iterator[Raw]:
        self._gather(chunk)
        if self._waiting_chars >= self._wanted_chars:
            yield from self._advanced()

    def end(self) -> Iterator[Raw]:
        self._gather(b"", final=True)
        yield from self._advanced()
        if self._at is not _At.END:
            raise AnswerUnusable("A page of the list was cut off before its end.")
        if not self._listed:
            raise AnswerUnusable("A page of the list is no list: it has no items.")

    def rest(self) -> Iterator[Raw]:
        """What is whole of a page whose end will not come; raises nothing."""
        with suppress(AnswerUnusable):
            yield from self._advanced()

    def _gather(self, chunk: bytes, *, final: bool = False) -> None:
        part = self._decoder.decode(chunk, final)
        self._parts.append(part)
        self._waiting_chars += len(part)

    def _advanced(self) -> Iterator[Raw]:
        self._text = self._text[self._place :] + "".join(self._parts)
        self._parts, self._place, self._waiting_chars = [], 0, 0
        while self._at is not _At.END:
            try:
                found = self._step()
            except _Cut:
                if not self._is_too_long():
                    return
                self._skip()
                continue
            if found is not None:
                yield found
                del found

    def _is_too_long(self) -> bool:
        """If not, waits for as much again as there is: an item that comes in many parts is not read once for each of
        them. But never for more than an item may have."""
        unread = len(self._text) - self._place
        wanted = min(max(unread, self._gathered_chars), self._item_chars + 1 - unread)
        self._wanted_chars = max(0, wanted) if unread else 0
        return unread > self._item_chars

    def _skip(self) -> None:
        if self._at is not _At.ITEMS or not self._text.startswith("{", self._place):
            raise AnswerUnusable("A page of the list holds what no Kubernetes list holds, and cannot be read on.")
        self._skipping = Skipping()
        self._at = _At.SKIPPING

    def _step(self) -> Raw | None:
        letter = self._letter()
        match self._at:
            case _At.START:
                self._pass(letter, "{", _At.KEY)
            case _At.KEY if letter == "}":
                self._at = _At.END
            case _At.KEY:
                self._read_key()
            case _At.VALUE if self._key == "items" and letter == "[":
                self._pass(letter, "[", _At.ITEMS)
            case _At.VALUE:
                self._keep(self._key, self._value())
                self._at = _At.AFTER
            case _At.AFTER if letter == ",":
                self._pass(letter, ",", _At.KEY)
            case _At.AFTER:
                self._pass(letter, "}", _At.END)
            case _At.ITEMS if letter in ",]":
                self._pass(letter, letter, _At.ITEMS if letter == "," else _At.AFTER)
            case _At.ITEMS:
                return self._item()
            case _At.SKIPPING:
                self._pass_by()
        return None

    def _letter(self) -> str:
        space = _SPACE.match(self._text, self._place)
        assert space is not None
        self._place = space.end()
        if self._place == len(self._text):
            raise _Cut
        return self._text[self._place]

    def _pass(self, letter: str, wanted: str, onward: _At) -> None:
        if letter != wanted:
            raise AnswerUnusable(f"A page of the list is no list: {wanted!r} was expected and {letter!r} came.")
        self._place += 1
        self._at = onward

    def _read_key(self) -> None:
        begun = self._place
        key = self._value()
        try:
            letter = self._letter()
        except _Cut:
            self._place = begun
            raise
        self._key = str(key)
        self._listed = self._listed or self._key == "items"
        self._pass(letter, ":", _At.VALUE)

    def _item(self) -> Raw | None:
        try:
            item = self._value()
        except AnswerUnusable:
            self._skip()
            return None
        if isinstance(item, dict):
            return item
        self.skipped += 1
        return None

    def _pass_by(self) -> None:
        after = self._skipping.passed(self._text, self._place)
        if after is None:
            self._place = len(self._text)
            raise _Cut
        self._place = after
        self._at = _At.ITEMS
        self.skipped += 1

    def _value(self) -> Any:
        try:
            value, after = self._scan(self._text, self._place)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _LONGEST_WORD:
                raise _Cut from None
            raise AnswerUnusable(f"A page of the list is no valid JSON ({error.msg}).") from error
        except (ValueError, RecursionError) as error:  # numbers of thousands of digits, hostile nesting
            raise AnswerUnusable("A page of the list holds what no Kubernetes object holds.") from error
        if after == len(self._text) and not isinstance(value, dict | list | str):
            raise _Cut  # a number may go on
        self._place = after
        return value

    def _keep(self, key: str, value: Any) -> None:
        if key == "metadata" and isinstance(value, dict):
            self.more = str(value.get("continue") or "")
        elif key == "kind" and isinstance(value, str):
            self.kind = value
        elif key == "items" and value is not None:
            raise AnswerUnusable("A page of the list has items that are no list.")


def _nothing(_constant: str) -> None:
    """NaN and Infinity, which are no JSON, though this parser takes them."""

"""Finds the end of an object of JSON without reading it, so that one which cannot be read does not take those behind it
along. Pure; holds nothing of what it passes."""

import re

_MARKS = re.compile(r'["{}\[\]]')
_IN_TEXT = re.compile(r'["\\]')


class Skipping:
    """One object, from its first brace on, in as many parts as it comes."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._escaped = False

    def passed(self, text: str, place: int) -> int | None:
        """The place behind the object; None if `text` ends before it does."""
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

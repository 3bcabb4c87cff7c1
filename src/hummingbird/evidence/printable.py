"""Make text from outside safe to display: show what a terminal or browser would act upon.

Escape sequences, marks that change the direction of writing, invisible characters and stacks of accents become
backslash notation.
"""

import re
from unicodedata import category

_ACCENTS = 3  # marks on one letter; no language needs more, and a stack of them covers the lines above
_TOWER = re.compile(r"[^\x00-\u02ff]+")


def make_printable(text: str) -> str:
    """Return the line with escaped control characters; tabs and unusual spaces become plain spaces."""
    text = text.expandtabs(4)
    if text.isascii() and text.isprintable():
        return text
    return _limit_accents("".join(map(_printable_char, text)))


def _printable_char(letter: str) -> str:
    if letter.isprintable():
        return letter
    if category(letter) == "Zs":
        return " "
    return _escape_char(letter)


def _escape_char(letter: str) -> str:
    code = ord(letter)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _limit_accents(text: str) -> str:
    return text if text.isascii() else _TOWER.sub(_limit_accents_in_match, text)


def _limit_accents_in_match(found: re.Match[str]) -> str:
    marks, kept = 0, []
    for letter in found[0]:
        marks = marks + 1 if category(letter) in {"Mn", "Me"} else 0
        kept.append(_escape_char(letter) if marks > _ACCENTS else letter)
    return "".join(kept)

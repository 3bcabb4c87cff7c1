"""Text from outside, made safe to look at: what a terminal or a browser would act upon is shown instead of done.

Escape sequences, marks that turn the direction of writing, invisible characters and towers of accents all become
backslash notation. Knows nothing of colours or of where the text is shown.
"""

import re
from unicodedata import category

_ACCENTS = 3  # marks on one letter; no language needs more, and a tower of them covers the lines above
_TOWER = re.compile(r"[^\x00-\u02ff]+")


def visible(text: str) -> str:
    """One line, as many characters as it takes; tabs and unusual spaces become plain ones."""
    text = text.expandtabs(4)
    if text.isascii() and text.isprintable():
        return text
    return _towers_cut("".join(map(_shown, text)))


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    if category(letter) == "Zs":
        return " "
    return _escaped(letter)


def _escaped(letter: str) -> str:
    code = ord(letter)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _towers_cut(text: str) -> str:
    return text if text.isascii() else _TOWER.sub(_tower_cut, text)


def _tower_cut(found: re.Match[str]) -> str:
    marks, kept = 0, []
    for letter in found[0]:
        marks = marks + 1 if category(letter) in {"Mn", "Me"} else 0
        kept.append(_escaped(letter) if marks > _ACCENTS else letter)
    return "".join(kept)

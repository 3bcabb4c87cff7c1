"""Compute what a few harmless commands print or set, from their words alone: `echo`, `printf`, `base64 -d`, `read`.

Pure functions over plain words. What they cannot tell is `UNKNOWN`.
"""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Sequence

from hummingbird.domain.host_limits import SHELL_WORD_CHARS
from hummingbird.domain.shell_parameters import SPLIT, UNKNOWN

_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,6})|0?([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v", "\\": "\\"}
_FORMAT = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?([a-zA-Z]))")
_READ_WITH_VALUE = "adinNptu"


def print_words(name: str, words: Sequence[str]) -> str:
    """Return what `echo` or `printf` prints."""
    words = list(words)
    if name == "printf":
        return _format_words(words)
    escapes = True  # dash's echo always reads them
    while words and re.fullmatch(r"-[neE]+", words[0]):
        escapes = "E" not in words.pop(0)
    text = " ".join(words)
    return _unescape(text) if escapes and "\\" in text else text


def split_printf(words: Sequence[str]) -> tuple[str, list[str]]:
    """Part `printf -v name format words` into the name, empty if there is none, and the rest."""
    if words[:1] == ["-v"]:
        return "".join(words[1:2]), list(words[2:])
    if words and words[0].startswith("-v"):
        return words[0][2:], list(words[1:])
    return "", list(words)


def decode_base64(text: str) -> str:
    """Return what `base64 -d` makes of a text."""
    if UNKNOWN in text:
        return UNKNOWN
    try:
        return b64decode("".join(text.split()) + "==").decode("utf-8", "replace")
    except (Error, ValueError):
        return UNKNOWN


def read_names(words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the variables that `read` sets, and whether the last one is an array."""
    at, is_array = 0, False
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        if words[at].endswith("a"):
            is_array = True
            at += 1
        else:
            at += 2 if words[at][-1] in _READ_WITH_VALUE else 1
    names = [word for word in words[at:] if word != "--"]
    return names or ["REPLY"], is_array


def split_line(text: str, names: Sequence[str], separators: str) -> Iterator[tuple[str, str]]:
    """Yield each variable with its part of the first line, as `read` gives them out; the last one has all the rest."""
    line = text.split("\n", 1)[0].replace(SPLIT, " ")
    if separators.strip():
        line = line.translate(dict.fromkeys(map(ord, separators), " "))
    rest = line.strip()
    for number, name in enumerate(names):
        if UNKNOWN in line:
            yield name, UNKNOWN
        elif number == len(names) - 1:
            yield name, rest
        else:
            first, _, rest = rest.partition(" ")
            rest = rest.strip()
            yield name, first


def _format_words(words: list[str]) -> str:
    if not words:
        return ""
    template, values = words[0], words[1:]
    if template == "--":
        return _format_words(values)
    fields = [found for found in _FORMAT.finditer(template) if found[1]]
    if not fields:
        return _unescape(template).replace("%%", "%")
    printed, length = [], 0
    for start in range(0, max(len(values), 1), len(fields)):
        part = _fill(template, values[start : start + len(fields)])
        length += len(part)
        printed.append(part)
        if length > SHELL_WORD_CHARS:
            break
    return "".join(printed)


def _fill(template: str, values: Sequence[str]) -> str:
    remaining = iter(values)

    def value(field: re.Match[str]) -> str:
        if not field[1]:
            return "%"
        text = next(remaining, "")
        if field[1] in "sqd" or UNKNOWN in text:
            return text
        return _unescape(text) if field[1] == "b" else UNKNOWN

    parts, at = [], 0
    for found in _FORMAT.finditer(template):
        parts += [_unescape(template[at : found.start()]), value(found)]
        at = found.end()
    return "".join([*parts, _unescape(template[at:])])


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_letter, text) if "\\" in text else text


def _letter(found: re.Match[str]) -> str:
    digits, base = (found[4], 8) if found[4] else (found[1] or found[2] or found[3], 16)
    if digits:
        code = int(digits, base)
        return chr(code) if code < 0x110000 else "?"
    return _LETTERS.get(found[5], "\\" + found[5])

"""Compute what `${name…}` stands for in a shell, from a known value and the text behind the name.

Pure functions over strings. What cannot be computed without running the command becomes `UNKNOWN`.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

HOME = "/home/\ue000"
UNKNOWN = "\ue001"
SPLIT = "\ue002"  # separates the words of a value that stands for several

_SLICE = re.compile(r":\s*(-?\d{1,6})\s*(?::\s*(-?\d{1,6})\s*)?")
_GLOB = re.compile(r"[*?\[]")
_GLOBBED_CHARS = 256  # of a value that is compared with a glob at each of its places


def modify_value(value: str, modifier: str) -> str:
    """Return the value after `modifier`, the text between the name and the closing brace."""
    if not modifier:
        return value
    if UNKNOWN in value or UNKNOWN in modifier:
        return UNKNOWN
    if found := _SLICE.fullmatch(modifier):
        return _slice(value, int(found[1]), None if found[2] is None else int(found[2]))
    if modifier[0] in "#%":
        return _trim(value, modifier)
    if modifier[0] == "/":
        return _replace(value, modifier[1:])
    changed = {
        "^^": value.upper(),
        ",,": value.lower(),
        "^": value[:1].upper() + value[1:],
        ",": value[:1].lower() + value[1:],
        "@U": value.upper(),
        "@u": value[:1].upper() + value[1:],
        "@L": value.lower(),
        "@Q": value,
    }
    return changed.get(modifier, UNKNOWN)


def pick_element(values: str, subscript: str) -> str:
    """Return one element of an array, or all of them for `@` and `*`."""
    if subscript in ("@", "*"):
        return values
    if not re.fullmatch(r"-?\d{1,4}", subscript) or UNKNOWN in values:
        return UNKNOWN
    elements = values.split(SPLIT)
    at = int(subscript)
    return elements[at] if -len(elements) <= at < len(elements) else ""


def join_values(values: Sequence[str]) -> str:
    """Return the value of a variable that stands for several words."""
    return SPLIT.join(values)


def _slice(value: str, start: int, length: int | None) -> str:
    if SPLIT in value:
        elements = value.split(SPLIT)
        return SPLIT.join(elements[start : None if length is None else start + length])
    start = max(start + len(value), 0) if start < 0 else start
    if length is None:
        return value[start:]
    return value[start : length if length < 0 else start + length]


def _trim(value: str, modifier: str) -> str:
    at_start, greedy = modifier[0] == "#", modifier[:2] in ("##", "%%")
    pattern = modifier[2 if greedy else 1 :]
    if not _GLOB.search(pattern):
        return value.removeprefix(pattern) if at_start else value.removesuffix(pattern)
    if len(value) > _GLOBBED_CHARS or len(pattern) > _GLOBBED_CHARS or pattern.count("*") > 2:
        return UNKNOWN
    places = range(len(value) + 1)
    if at_start:
        found = [value[at:] for at in places if fnmatchcase(value[:at], pattern)]
    else:
        found = [value[:at] for at in reversed(places) if fnmatchcase(value[at:], pattern)]
    return value if not found else found[-1] if greedy else found[0]


def _replace(value: str, modifier: str) -> str:
    everywhere = modifier.startswith("/")
    pattern, _, replacement = modifier.removeprefix("/").partition("/")
    if _GLOB.search(pattern) or not pattern or len(value) * (len(replacement) + 1) > 1_000_000:
        return UNKNOWN
    if pattern[0] == "#" and not everywhere:
        rest = value.removeprefix(pattern[1:])
        return replacement + rest if rest != value else value
    if pattern[0] == "%" and not everywhere:
        rest = value.removesuffix(pattern[1:])
        return rest + replacement if rest != value else value
    return value.replace(pattern, replacement, -1 if everywhere else 1)

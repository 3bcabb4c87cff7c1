"""Sorts of lines that are known by their shape, not by a word: how they begin, and what they are made of.

Called for every line that gets a closer look, so the first letter decides what is tried.
"""

import re

from hummingbird.evidence.logs.bits import bit
from hummingbird.evidence.logs.cleaning import GREEN, RED
from hummingbird.evidence.logs.cues import Sort

_PLACE = re.compile(r"\.[A-Za-z+]{1,6}(?:: ?|\(|:\[)\d")
_LINE = re.compile(r"line \d")
_NUMBERED = re.compile(r"(\d{1,3})([.)]) \S")
_GUTTER = re.compile(r"\d* ?\| ")
_LINT = re.compile(
    r"\S+:\d+:(?:\d+:)? (?:\[\w\] )?[A-Z]{1,8}\d{2,5}\b|\S+:? ?\d+:? [A-Z]{2,8}\d{3,4}\b"
    r"|\S+\.\w+:? ?(?:line )?\d+(?::\d+)?:? .*\([\w/-]+\)$"
)
_FRAME = re.compile(r"\[C\]: in |\[string |\d+:\s+0x|#\d+\s+\S|\.\.\. \d+ more|from .+:\d+:in ")
_CARET = re.compile(r"(?:\[\w+\] ?)?\s*\|?\s*[-+~]*\^[-~^]*\s*$")
_DIFF = re.compile(r"(?:\d{3})?[-+](?![-+ ]).")
_SETTING = re.compile(r"\s*(?:export )?[A-Z][A-Z_0-9]+=\S*$")
LOUD = re.compile(r"\b(?:ERROR|FAIL|FAILED|FAILURE|FATAL|ERR)\b")
_RULES = frozenset(letter * 3 for letter in "=-*_#~.")
_COMMANDS = ("$ ", "+ ", "> ", "##[group]", "[command]", "travis_")
_ITEMS = ("- ", "* ", "• ")
_DIFFS = ("--- ", "+++ ", "@@ ")
_BEGINNINGS = frozenset(
    (
        "Get", "Hit", "Ign", "Fetched", "Fetching", "Reading", "Unpacking", "Setting", "Selecting",
        "Preparing", "Processing", "Downloading", "Downloaded", "Installing", "Collecting", "Cloning", "Adding",
        "Creating",
        "Created", "Copying", "Compiling", "Linking", "Using", "Resolving", "Extracting", "Checking", "Requirement",
        "remote:", "Receiving", "Removing", "Updating", "Syncing", "Cached", "Generating", "Running", "cp",
        "mv", "rm", "mkdir", "install", "[INFO]", "Get:1", "Hit:1",
    )
)  # fmt: skip
_BLANK, _INDENTED, _ITEM, _COMMAND = bit(Sort.BLANK), bit(Sort.INDENTED), bit(Sort.ITEM), bit(Sort.COMMAND)
_PLACED, _REDDISH, _GREENISH, _DETAIL = bit(Sort.PLACE), bit(Sort.RED), bit(Sort.GREEN), bit(Sort.DETAIL)
_RULED, _NOISE, _HEAD, _FRAMED = bit(Sort.RULE), bit(Sort.NOISE), bit(Sort.HEAD), bit(Sort.FRAME)
_LINTED, _SET = bit(Sort.LINT), bit(Sort.SETTING)


def by_shape(text: str, raw: bytes) -> int:
    body = text.lstrip()
    if not body:
        return _BLANK
    mark = _INDENTED if len(text) - len(body) > 1 or text[0] == "\t" else 0
    if b"\x1b" in raw:
        mark |= (_REDDISH if RED.search(raw) else 0) | (_GREENISH if GREEN.search(raw) else 0)
    if ("." in text and _PLACE.search(text)) or ("line " in text and _LINE.search(text)):
        mark |= _PLACED
        if not mark & _INDENTED and _LINT.match(text):
            mark |= _LINTED
    mark |= _digits(body) if body[0].isdigit() else _letters(body) if body[0].isalpha() else _others(text, body)
    if "^" in body and _CARET.match(body):
        mark |= _DETAIL
    return mark | _NOISE if "%" in body and "0%" in body else mark


def _digits(body: str) -> int:
    if _FRAME.match(body):
        return _FRAMED
    if found := _NUMBERED.match(body):
        return _HEAD if found[2] == ")" else _ITEM
    return _DETAIL if _GUTTER.match(body) or _DIFF.match(body) else 0


def _letters(body: str) -> int:
    if body.startswith("at "):
        return _FRAMED
    first = body.split(None, 1)[0]
    if first in _BEGINNINGS:
        return _NOISE
    if first == "E" and body.startswith(("E  ", "E\t")):
        return _DETAIL
    if first in ("E:", "W:"):
        return _SET
    if first == "from" and _FRAME.match(body):
        return _FRAMED
    return _NOISE if "=" in first and _SETTING.match(body) else 0


def _others(text: str, body: str) -> int:
    if text.startswith(_COMMANDS):
        return _COMMAND
    if body.startswith(_ITEMS):
        return _ITEM
    if body.startswith(_DIFFS):
        return _DETAIL
    if body[2:5] in _RULES:
        return _NOISE if body[2] == "." else _RULED
    if body[0] in "#.":
        return _FRAMED if _FRAME.match(body) else 0
    if body[0] in "-+":
        return _DETAIL if _DIFF.match(body) else 0
    if body[0] == "[":
        if _FRAME.match(body):
            return _FRAMED
        return (
            _FRAMED if "]\tat " in body[:24] or "]   at " in body[:24] else _NOISE if body.startswith("[INFO]") else 0
        )
    return _DETAIL if body[0] == "|" else 0

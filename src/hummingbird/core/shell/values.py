"""Compute values of a shell without running it: `${name…}`, and the output of a few harmless built-ins.

The built-ins are `echo`, `printf`, `base64 -d` and `read`. What these functions cannot compute is `UNKNOWN`. The module
also holds the limits of the tools that work on an engineer's own machine.
"""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

# Files of the workspace
READ_LINES = 2_000  # lines per read, unless fewer are asked for
READ_LINE_CHARS = 2_000  # characters shown of one line; the rest is counted
READ_BYTES = 64 * 1024 * 1024  # largest file that is read line by line
SHOWN_BYTES = 256 * 1024  # longest answer
EDIT_BYTES = 8 * 1024 * 1024  # largest file that is edited, before and after
LISTED_NAMES = 1_000  # names listed per folder
PATH_CHARS = 4_096
UNDO_CHANGES = 100
UNDO_BYTES = 64 * 1024 * 1024  # earlier contents of all changed files together
DIFF_LINES = 400  # lines shown of one change
DIFF_COMPARED_LINES = 2_000  # per side; comparing takes quadratic time, so longer ones are shown as one block

# Searching files
SEARCH_S = 10.0  # a pattern may backtrack practically for ever
SEARCH_MATCHES = 200
SEARCH_MATCHES_PER_FILE = 50  # so that one file does not hide the others
SEARCH_LINE_CHARS = 300
SEARCH_FILE_BYTES = 16 * 1024 * 1024
SEARCH_FILES = 200_000
SEARCH_JUDGED = 500  # file names judged by permission rules at a time
SEARCH_PATTERN_CHARS = 2_000
SEARCH_MEMORY_BYTES = 1024 * 1024 * 1024
SEARCH_ANSWER_BYTES = 512 * 1024
SEARCH_GIT_S = 5.0  # for git to list its files

# Commands on the host
COMMAND_TIMEOUT_S = 180.0
COMMAND_TIMEOUT_CAP_S = 600.0
COMMAND_SLACK_S = 30.0  # how much later than the command's own timeout the call around it times out
COMMAND_BYTES = 120 * 1024  # Linux takes 128 KiB in one argument
COMMAND_KEPT_BYTES = 1024 * 1024  # beginning and end of a foreground command's output
BACKGROUND_KEPT_BYTES = 200 * 1024
BACKGROUND_RUNNING = 64
BACKGROUND_FINISHED = 32  # finished commands whose output can still be read
BACKGROUND_GLANCE_S = 0.3  # how long a new background command is watched, to report one that fails at once
PROCESS_READ_BYTES = 32 * 1024  # bytes per read
LEFT_RUNNING_S = 0.2  # grace for a command's child processes before they are reported as left running
TERM_GRACE_S = 0.05  # between SIGTERM and SIGKILL: everything is gone 0.2 s after a stop is requested
ENDING_S = 2.0  # for all processes to end before the guardian itself is killed
PROGRESS_S = 0.5  # between two lines of progress
OUTPUT_CHUNK_BYTES = 64 * 1024
OUTPUT_UNHURRIED_BYTES = 8 * 1024 * 1024  # after this much, output is read with pauses that leave time for others
OUTPUT_PAUSE_S = 0.005
STANDING_CHARS = 80  # of a command in a line about it

# Analysis of a command
SHELL_STEPS = 100_000
SHELL_DEPTH = 24  # nested substitutions, and commands within the words of commands
SHELL_BRACES = 128  # words that one word with braces may expand to
SHELL_WORD_CHARS = 4_096  # longest word whose braces are expanded, and longest value that is stored
SHELL_OPTIONS = 16  # options before the first argument of a command; also nested function calls
SHELL_FILE_CHARS = 64 * 1024  # largest file that the command itself writes

HOME = "/home/\ue000"
UNKNOWN = "\ue001"
SPLIT = "\ue002"  # separates the words of a value that stands for several

_SLICE = re.compile(r":\s*(-?\d{1,6})\s*(?::\s*(-?\d{1,6})\s*)?")
_GLOB = re.compile(r"[*?\[]")
_EXTENDED_GLOB = re.compile(r"[?*+@!]\(")
_GLOBBED_CHARS = 256  # longest value that is compared with a glob at each of its positions


def modify_value(value: str, modifier: str) -> str:
    """Return the value after `modifier`, the text between the name and the closing brace."""
    if not modifier:
        return value
    if UNKNOWN in value or UNKNOWN in modifier:
        return UNKNOWN
    if found := _SLICE.fullmatch(modifier):
        return _slice_value(value, int(found[1]), None if found[2] is None else int(found[2]))
    if modifier[0] in "#%":
        return _trim_value(value, modifier)
    if modifier[0] == "/":
        return _replace_in_value(value, modifier[1:])
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


def modify_elements(values: str, modifier: str, *, positional: bool) -> str:
    """Return the elements of an array after `modifier`; `positional` parameters are counted from 1."""
    if not modifier or UNKNOWN in values or UNKNOWN in modifier:
        return values if not modifier else UNKNOWN
    elements = values.split(SPLIT)
    found = _SLICE.fullmatch(modifier)
    if found is None:
        return join_values([modify_value(element, modifier) for element in elements])
    start, length = int(found[1]), None if found[2] is None else int(found[2])
    if (positional and start == 0) or (length or 0) < 0:
        return UNKNOWN
    start -= positional and start > 0
    return join_values(elements[start:][:length])


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


def _slice_value(value: str, start: int, length: int | None) -> str:
    start = max(start + len(value), 0) if start < 0 else start
    if length is None:
        return value[start:]
    return value[start : length if length < 0 else start + length]


def _trim_value(value: str, modifier: str) -> str:
    at_start, greedy = modifier[0] == "#", modifier[:2] in ("##", "%%")
    pattern = modifier[2 if greedy else 1 :]
    if _EXTENDED_GLOB.search(pattern):
        return UNKNOWN
    if not _GLOB.search(pattern):
        return value.removeprefix(pattern) if at_start else value.removesuffix(pattern)
    if len(value) > _GLOBBED_CHARS or len(pattern) > _GLOBBED_CHARS or pattern.count("*") > 2 or "[:" in pattern:
        return UNKNOWN
    pattern = pattern.replace("[^", "[!")
    places = range(len(value) + 1)
    if at_start:
        found = [value[at:] for at in places if fnmatchcase(value[:at], pattern)]
    else:
        found = [value[:at] for at in reversed(places) if fnmatchcase(value[at:], pattern)]
    return value if not found else found[-1] if greedy else found[0]


def _replace_in_value(value: str, modifier: str) -> str:
    everywhere = modifier.startswith("/")
    pattern, _, replacement = modifier.removeprefix("/").partition("/")
    is_glob = _GLOB.search(pattern) or _EXTENDED_GLOB.search(pattern)
    if is_glob or not pattern or len(value) * (len(replacement) + 1) > 1_000_000:
        return UNKNOWN
    if pattern[0] == "#" and not everywhere:
        rest = value.removeprefix(pattern[1:])
        return replacement + rest if rest != value else value
    if pattern[0] == "%" and not everywhere:
        rest = value.removesuffix(pattern[1:])
        return rest + replacement if rest != value else value
    return value.replace(pattern, replacement, -1 if everywhere else 1)


_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|0?([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v", "\\": "\\"}
_FORMAT = re.compile(r"%(?:%|[-+ #0]*\d*([a-zA-Z]))")
_ODD_FORMAT = re.compile(r"%[-+ #0']*\d*[^-+ #0'\da-zA-Z%]")  # a precision, a width among the values, a time
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
    """Split `printf -v name format words` into the name, empty if there is none, and the rest."""
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


def read_names(words: Sequence[str]) -> tuple[list[str], bool, bool]:
    """Return the variables that `read` sets, whether the last one is an array, and whether it reads one whole line."""
    at, is_array, whole = 0, False, True
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        whole = whole and not re.search("[dnNu]", words[at])
        if words[at].endswith("a"):
            is_array = True
            at += 1
        else:
            at += 2 if words[at][-1] in _READ_WITH_VALUE else 1
    names = [word for word in words[at:] if word != "--"]
    return names or ["REPLY"], is_array, whole


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
    if _ODD_FORMAT.search(template.replace("%%", "")):
        return UNKNOWN
    fields = [found for found in _FORMAT.finditer(template) if found[1]]
    if not fields:
        return _unescape(template).replace("%%", "%")
    printed, length = [], 0
    for start in range(0, max(len(values), 1), len(fields)):
        part = _fill_template(template, values[start : start + len(fields)])
        length += len(part)
        printed.append(part)
        if length > SHELL_WORD_CHARS:
            break
    return "".join(printed)


def _fill_template(template: str, values: Sequence[str]) -> str:
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
    return _ESCAPE.sub(_decode_escape, text) if "\\" in text else text


def _decode_escape(found: re.Match[str]) -> str:
    digits, base = (found[4], 8) if found[4] else (found[1] or found[2] or found[3], 16)
    if digits:
        code = int(digits, base)
        return chr(code) if code < 0x110000 else "?"
    return _LETTERS.get(found[5], "\\" + found[5])

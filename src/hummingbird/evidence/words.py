"""What a line says without what its next run says differently: times, sizes, numbers, hashes, addresses, where the
checkout lies (V6). Knows nothing of failures.

Digits go where they count something and stay where they are part of a name: `utf8`, `E0308`, `test_case_2`, `HTTP 404`.
What stands before a digit decides. Sets of letters are written out, for `\\w` grows with every version of Unicode.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from hummingbird.domain.limits import FINGERPRINT_LINE_CHARS, FINGERPRINT_WORDS

# Only whole colour codes are taken without their escape character: `[C]` and `[19s]` are somebody's text.
_COLOUR = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b.?|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,5}m|\[0?K"
)
_PATH = re.compile(
    r"""(?:(?<![\w./\\~-])|(?<=\s-[A-Za-z]))(?:file://)?(?:[A-Za-z]:)?(?=[\\/][^\\/\s])
    (?:[\\/](?:(?:                                            # where a checkout or a temporary file lies
        builds[\\/](?:[\w-]{6,12}[\\/][0-9]+[\\/])?[^\\/\s:]+[\\/][^\\/\s:]+
      | (?:home|Users)[\\/][^\\/\s:]+[\\/](?:work|builds?)[\\/][^\\/\s:]+[\\/][^\\/\s:]+
      | (?:home|Users)[\\/][^\\/\s:]+(?:[\\/]AppData[\\/]Local[\\/]Temp[\\/][^\\/\s:]+)?
      | (?:a|__w)[\\/][^\\/\s:]+[\\/][^\\/\s:]+
      | github[\\/]workspace | workspace[\\/]source | root
      | (?:private[\\/])?(?:var[\\/])?tmp[\\/][^\\/\s:]+
      | (?:private[\\/])?var[\\/]folders[\\/][^\\/\s:]+[\\/][^\\/\s:]+[\\/]T[\\/][^\\/\s:]+
    )(?=[\\/])
      | (?:var[\\/])?tmp[\\/]tmp\.?\w{8,10}(?![\w.])            # as `mktemp` and Python name them
    ))?
    (?P<rest>(?:[\\/]+[^\s\\/:;,"'`()<>|*?\[\]{}]*)*)""",
    re.VERBOSE,
)
# With `-` and `:` in them, so that no word alone gives them away: UUIDs, IPv6, hardware addresses.
_ADDRESS = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:{1,2}){3,7}[0-9a-fA-F]{1,4}(?![\w:])"
)
_LETTER = "A-Za-z\u00c0-\u1fff\u2c00-\u2fff\u3040-\ud7ff\uf900-\U0010ffff"
_WORD = re.compile(f"[0-9_{_LETTER}]+")
_RUN = re.compile(f"[0-9]+|[{_LETTER}]+")
_HEX = re.compile(r"[0-9a-f]{7,}|[0-9A-F]{7,}|[0-9][0-9a-f]{3,}")
_WINDOWS_STATUS = re.compile(r"0x(?:80|[cC]0)[0-9a-fA-F]{6}")  # 0x80070005: access denied, and no address
_LONG_NUMBER = re.compile(r"[0-9]{6,}")


def _set(words_of_it: str) -> frozenset[str]:
    return frozenset(words_of_it.split())


_UNITS = _set(
    "ns us μs ms s sec secs second seconds m min mins minute minutes h hr hrs hour hours d day days week weeks ago "
    "b kb mb gb tb kib mib gib tib bytes byte k g t e w x z am pm st nd rd th "
    "utc gmt cet cest est edt pst pdt cst cdt mst mdt bst ist jst"
)
_CALENDAR = _set(
    "mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday jan feb mar apr may jun jul "
    "aug sep sept oct nov dec january february march april june july august september october november december"
)
_NUMBERED = _set(
    "thread worker gw pid tid port runner node fork executor proc process run job build shard cpu slot "
    "proxy generatedmethodaccessor generatedconstructoraccessor"
)
_STATUS = _set("exit exited status code signal errno http")
_KEPT_DIGITS = 5  # `bug60120` is a name; six digits and more are a time or a count
_WORDS_CACHED = 8192


def cleaned(line: str) -> str:
    """A line of bounded length, without colours."""
    line = line[:FINGERPRINT_LINE_CHARS]
    return _COLOUR.sub("", line) if "\x1b" in line or "[" in line else line


def words(line: str) -> list[str]:
    """The first words of a cleaned line that its next run has too."""
    if "/" in line or "\\" in line:
        line = _PATH.sub(_tail, line)
    if line.count("-") > 3 or line.count(":") > 2:
        line = _ADDRESS.sub(" 0 ", line)
    return list(islice(_said(_WORD.findall(line)), FINGERPRINT_WORDS))


def _tail(path: re.Match[str]) -> str:
    """Two names tell a file from others; of a directory, which may be the checkout itself, the last one is safe."""
    names = [name for name in path["rest"].replace("\\", "/").split("/") if name]
    return " " + "/".join(names[-2:] if names and "." in names[-1] else names[-1:])


def _said(tokens: list[str]) -> Iterator[str]:
    last = before = ""
    counted = False  # a number stands right before
    for at, token in enumerate(tokens):
        word = token if token.isalpha() else _named(token)
        if not word:
            if _is_status(token, last, before):
                yield token
            counted = True
            continue
        low = word.lower()
        if low in _CALENDAR and (counted or _is_dated(tokens, at)):
            counted = True
        elif not (counted and low in _UNITS):
            yield _one(word) if counted else word
            before, last, counted = last, low, False


def _is_dated(tokens: list[str], at: int) -> bool:
    following = tokens[at + 1] if at + 1 < len(tokens) else ""
    return following[:1].isdigit() or following.lower() in _CALENDAR


def _is_status(token: str, last: str, before: str) -> bool:
    """`exit code 137` and `HTTP 404` say what happened; other numbers say how often or where."""
    if len(token) > 3 or not token.isdigit():
        return False
    return (
        last in _STATUS
        or (last == "with" and before in _STATUS)
        or (last == "error" and token[0] in "45" and len(token) == 3)
    )


def _one(word: str) -> str:
    """`1 error` and `2 errors` differ in how many."""
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


@lru_cache(maxsize=_WORDS_CACHED)
def _named(token: str) -> str:
    """What of a word with digits or underscores is a name; nothing if it is a number, a hash or a random id."""
    parts = token.split("_")
    if not any(part and not part.isdigit() for part in parts):
        return ""
    return "_".join(kept for part in parts if part and (kept := _part(part)))


def _part(part: str) -> str:
    if part.isalpha():
        return part
    if part.isdigit():
        return part if len(part) <= _KEPT_DIGITS else ""
    if _WINDOWS_STATUS.fullmatch(part):
        return part
    runs = _RUN.findall(part)
    numbers = [run for run in runs if run.isdigit()]
    if _is_quantity(part, runs) or _is_random(part, numbers):
        return ""
    if runs[0].lower() in _NUMBERED and len(runs) == 2:
        return str(runs[0])
    return _LONG_NUMBER.sub("", part)


def _is_quantity(part: str, runs: list[str]) -> bool:
    """`30s`, `5m32s`, `10MiB`, `27T19`, `0x7f00`."""
    return part[0].isdigit() and (
        part[:2] in ("0x", "0X") or all(run.isdigit() or run.lower() in _UNITS for run in runs)
    )


def _is_random(part: str, numbers: list[str]) -> bool:
    """A hash, or letters and digits so mixed that nobody chose them: `dIBV1K0J1d`, but not `Utf8ToUtf16Test`."""
    if _HEX.fullmatch(part):
        return True
    return len(part) >= 8 and len(numbers) >= 2 and sum(map(len, numbers)) * 10 >= len(part) * 3

"""Places and jobs that an answer names: `path:line`, `job 4711`, the job `lint`. Each has to stand in what was fetched.

What does not is marked where it stands; nothing is taken out. Knows nothing of links.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hummingbird.domain.citation_limits import MENTIONS
from hummingbird.evidence.citations.diffed import Stretch
from hummingbird.evidence.citations.record import Record

MARK = " (not found in what was fetched)"
_PATH = (
    r"(?:[\w.+@~-]+/)*[\w.+@-]*\.[A-Za-z][A-Za-z0-9_]{0,9}|(?:[\w.+@~-]+/)*(?:Docker|Make|Container|Jenkins|Just)file"
)
_PLACE = re.compile(
    rf"(?<![\w/.:@+~-])(/?(?:{_PATH}))(?::|`?,? lines? )(\d{{1,7}})(?:(?:[-–]|,? to )(\d{{1,7}}))?"
    r"(?::\d{1,5})?(?![\w/])"
)
_NUMBER = re.compile(r"\b(?:job|pipeline)s? #?`?(\d{3,18})(?!\w)", re.IGNORECASE)
_NAME = re.compile(r"\bjobs? (?:called |named )?`([^`\n]{2,200})`|`([^`\n]{2,200})` jobs?\b", re.IGNORECASE)
_CLOSING = re.compile(r"[`*_]*")
_BETWEEN = r"[\"'`)\]]*(?::|, line | line |\()\s?"


@dataclass(frozen=True, slots=True)
class Mention:
    """`words`: patterns of which all of one group have to stand in something fetched. `path` with its lines, if it is a
    place."""

    start: int
    end: int
    words: tuple[tuple[str, ...], ...]
    path: str = ""
    first: int = 0
    last: int = 0


def mentions(text: str) -> list[Mention]:
    """In their order."""
    found = [*_places(text), *_jobs(text)]
    found.sort(key=lambda one: (one.start, -one.end))
    return found[:MENTIONS]


def _places(text: str) -> Iterator[Mention]:
    for found in _PLACE.finditer(text):
        if _in_address(text, found.start()):
            continue
        path, first, last = found[1].lstrip("/").removeprefix("./"), int(found[2]), int(found[3] or found[2])
        yield Mention(found.start(), found.end(), tuple(_written(path, first, last)), path, first, last)


def _in_address(text: str, at: int) -> bool:
    start = max(text.rfind(sign, 0, at) for sign in " \n(<[`")
    return "://" in text[start + 1 : at]


def _written(path: str, first: int, last: int) -> Iterator[tuple[str, ...]]:
    """As logs and traces write it. With the file's name alone only if its whole path stands somewhere too."""
    ends = (first,) if first == last else (first, last)
    yield tuple(_line_of(path, number) for number in ends)
    if "/" in path:
        name = path.rsplit("/", 1)[-1]
        yield (*(_line_of(name, number, alone=True) for number in ends), rf"(?<![\w.-]){re.escape(path)}(?![\w-])")


def _line_of(path: str, number: int, *, alone: bool = False) -> str:
    """`alone`: with no folder before it, which would be another file's."""
    return rf"(?<![\w.{'/' if alone else ''}-]){re.escape(path)}{_BETWEEN}{number}(?!\d)"


def _jobs(text: str) -> Iterator[Mention]:
    for found in _NUMBER.finditer(text):
        yield Mention(found.start(), found.end(), ((rf"(?<![\w.]){found[1]}(?![\w])",),))
    for found in _NAME.finditer(text):
        name = (found[1] or found[2]).strip()
        if name and not name.isdigit():
            yield Mention(found.start(), found.end(), ((rf"(?<!\w){re.escape(name)}(?!\w)",),))


def stands(mention: Mention, record: Record, numbers: Mapping[str, int]) -> bool:
    """`numbers`: of each pattern in the record."""
    if mention.path and any(_within(mention, stretch) for stretch in record.stretches):
        return True
    return any(all(numbers[word] in record.words for word in group) for group in mention.words)


def _within(mention: Mention, stretch: Stretch) -> bool:
    same = stretch.path == mention.path or stretch.path.endswith(f"/{mention.path}")
    return same and stretch.first <= mention.first <= mention.last <= stretch.last


def marked(text: str, missing: Sequence[Mention]) -> str:
    """With a mark behind each, unless one is there."""
    pieces, at = [], 0
    for one in missing:
        if one.end < at:
            continue
        closing = _CLOSING.match(text, one.end)
        end = closing.end() if closing else one.end
        if text.startswith(MARK, end) or text.startswith(MARK, one.end):
            continue
        pieces += [text[at:end], MARK]
        at = end
    return "".join([*pieces, text[at:]])

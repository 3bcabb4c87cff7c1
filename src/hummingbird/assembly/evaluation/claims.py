"""Claims of an answer that stand in nothing that was fetched: the seam to whoever checks notes.

`claims_of(answer, entries)` is all that the scores ask for. Here: lines in code blocks, links and `path:line`, each
looked for in what tools gave back and in the task, also as it reads once JSON is taken apart. A line counts as found if
it stands there word for word, signs aside that nobody can see; a link, if its address does; a place, if its path does.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hummingbird.assembly.evaluation.stated import blocks, places, prose
from hummingbird.domain.eval_limits import CLAIM_LEAST_CHARS, CLAIM_WITHIN_CHARS, CLAIMS, CLAIMS_TOLD
from hummingbird.domain.journal import Delegated, Entry, ToolFinished, UserSaid

_NUMBER = re.compile(r"^\s*\d+: ")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_ESCAPED = re.compile(r'\\(["\\/nrt]|u[0-9a-fA-F]{4})')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_SIGNS = {"n": "\n", "r": "\r", "t": "\t"}
_LINK = re.compile(r"https?://[^\s)>\]\"'`]+")
_LEFT_OUT = frozenset("…. ")  # of lines that say that others are left out


@dataclass(frozen=True, slots=True)
class Claims:
    """`unfounded`: the first of them by name; `wrong` is how many there are."""

    made: int = 0
    wrong: int = 0
    unfounded: tuple[str, ...] = ()


def claims_of(answer: str, entries: Iterable[Entry]) -> Claims:
    plain = "\n".join(_fetched(entries))
    fetched = "\n".join([plain, *(_ESCAPED.sub(_meant, text) for text in (plain, *_STRING.findall(plain)))])
    lines = {_bare(part) for line in fetched.split("\n") for part in (line, *line.split("\r"))}
    within = "\n".join(lines)
    quoted = [line for line in dict.fromkeys(map(_bare, blocks(answer))) if _worth(line)]
    links = list(dict.fromkeys(found.rstrip(".,;:") for line in prose(answer) for found in _LINK.findall(line)))
    named = [f"{path}:{line}" for path, line in places(answer)]
    wrong = [line for line in quoted[:CLAIMS] if not _stands(line, lines, within)]
    wrong += [link for link in links[:CLAIMS] if link.split("#", 1)[0].rstrip("…") not in fetched]
    wrong += [place for place in named[:CLAIMS] if place.rsplit(":", 1)[0] not in fetched]
    made = sum(len(some[:CLAIMS]) for some in (quoted, links, named))
    return Claims(made, len(wrong), tuple(wrong[:CLAIMS_TOLD]))


def _fetched(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        own = entry.entry if isinstance(entry, Delegated) else entry
        if isinstance(own, ToolFinished | UserSaid):
            yield own.text


def _meant(escape: re.Match[str]) -> str:
    sign = escape[1]
    return chr(int(sign[1:], 16)) if len(sign) > 1 else _SIGNS.get(sign, sign)


def _stands(line: str, lines: set[str], within: str) -> bool:
    """A long one may be a part of a line: a field of a record begins wherever its name ends."""
    return line in lines or (len(line) >= CLAIM_WITHIN_CHARS and line in within)


def _worth(line: str) -> bool:
    return len(line) >= CLAIM_LEAST_CHARS and not _LEFT_OUT.issuperset(line)


def _bare(line: str) -> str:
    """Without the numbers that we put before lines."""
    return _NUMBER.sub("", _UNSEEN.sub("", line.expandtabs(4))).strip()

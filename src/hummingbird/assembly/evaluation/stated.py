"""What an answer states: verdicts, whether the merge request did it, which places it names.

Read from Markdown as our prompts ask for it and as `digest` writes it. What stands in code blocks was said by others,
and states nothing. Pure; a sentence that cannot be read states nothing, which counts as an abstention.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hummingbird.evidence.regions import Class

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6} ")
_CLASSES = "|".join(one.value for one in Class)
_VERDICT = re.compile(rf"verdict[\s:*_`]{{1,6}}({_CLASSES})\b", re.IGNORECASE)
_HEADED = re.compile(rf"^#{{1,6}} .*:\s*({_CLASSES})\s*$", re.IGNORECASE | re.MULTILINE)
_MERGE_REQUEST = r"(?:this|the) (?:merge request|change|mr|branch)"
_CAUSED = re.compile(
    rf"(?P<before>[^.\n]{{0,60}})\bcaused by {_MERGE_REQUEST}\b(?P<after>[^.\n]{{0,60}})", re.IGNORECASE
)
_UNRELATED = re.compile(
    rf"\b(?:unrelated to|not related to|independent of|nothing to do with|not due to) {_MERGE_REQUEST}\b", re.IGNORECASE
)
_OPEN = re.compile(
    r"\bcan(?:no|'|’)t (?:be |really )?(?:tell|told|known?|say)|\bunclear|\bunknown|\bnot clear|\bwhether\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\bno\b|\bnot\b|n['’]t\b|\bnever\b|\bunlikely\b|\bdoubtful\b|\bneither\b", re.IGNORECASE)
_PLACE = re.compile(r"(?<![\w/.:-])((?:[\w@+-][\w.@+-]*/)*[\w@+-][\w@+.-]*\.\w{1,8}):(\d{1,7})\b")


@dataclass(frozen=True, slots=True)
class Stated:
    """`caused` None: the answer leaves it open."""

    verdict: Class | None
    caused: bool | None


def stated(answer: str, names: Sequence[str], evidence: Sequence[str] = ()) -> Stated:
    """Of one failure: what the entry with its evidence says, or that with its job, else what the answer says first."""
    parts = entries(answer)[1:]
    own = [part for part in parts if any(line.strip() in part for line in evidence)]
    own = own or [part for part in parts if any(name in part for name in names)]
    spoken = ["\n".join(prose(part)) for part in (*own, answer)]
    return Stated(next((found for part in spoken if (found := _verdict(part)) is not None), None), _caused(spoken))


def entries(answer: str) -> list[str]:
    """What stands before the first heading, then one part for each heading."""
    parts: list[list[str]] = [[]]
    for line, fenced in _lines(answer):
        if not fenced and _HEADING.match(line):
            parts.append([])
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]


def prose(answer: str) -> list[str]:
    return [line for line, fenced in _lines(answer) if not fenced]


def places(answer: str) -> Sequence[tuple[str, int]]:
    """Every `path:line` that it speaks of in its own words."""
    found = (match for line in prose(answer) for match in _PLACE.finditer(_without_addresses(line)))
    return tuple(dict.fromkeys((match[1], int(match[2])) for match in found))


def _without_addresses(line: str) -> str:
    return re.sub(r"https?://\S+", " ", line)


def _lines(answer: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is in a code block or its fence. One that is never closed goes on to the end."""
    fence = ""
    for line in answer.splitlines():
        mark = _FENCE.match(line)
        if fence:
            yield line, True
            closes = mark is not None and mark[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
        else:
            fence = mark[1] if mark else ""
            yield line, bool(mark)


def _verdict(text: str) -> Class | None:
    found = _VERDICT.search(text) or _HEADED.search(text)
    return Class(found[1].lower()) if found else None


def _caused(parts: Sequence[str]) -> bool | None:
    for part in parts:
        if (found := _CAUSED.search(part)) is not None:
            return _read(found["before"], found["after"])
        if _UNRELATED.search(part):
            return False
        if (at := _VERDICT.search(part)) is not None and _OPEN.search(part[at.end() :].split("\n", 1)[0]):
            return None
    return None


def _read(before: str, after: str) -> bool | None:
    """`not caused by it`, or `caused by it: no sign of that`."""
    said = after if after.startswith(":") else _last_clause(before)
    if _OPEN.search(said):
        return None
    return not _DENIED.search(said)


def _last_clause(words: str) -> str:
    return re.split(r"[,;:(]", words)[-1]

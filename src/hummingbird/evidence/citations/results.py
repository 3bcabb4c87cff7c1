"""The calls of a session and what came of each, taken apart the way results are put together: what the program says of
an output stands outside the fence, the output inside. Only the outside can say what a line's number is.

Knows no record and no answer. Of a tool it knows whether it reads a source, runs commands, or gives back the model's
own words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from hummingbird.domain.journal import (
    Delegated,
    Entry,
    HistoryImported,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)

COMMANDS = frozenset({"sandbox_exec", "terminal", "process", "file_read", "file_search"})
OWN_WORDS = frozenset({"delegate", "todo", "memory", "clarify", "skill", "recall", "report_finding", "file_edit"})
FETCHES = frozenset({"fetch_to_sandbox", "fetch_batch_to_sandbox"})
_OPENING = re.compile(r'<untrusted tool="[^"]{0,200}" id="([0-9a-f]{1,64})">')
_LEFT_OUT = re.compile(r"\[… .{0,80}left out.{0,80}…\]")
_MEASURED = re.compile(r"\b(\d+) bytes(?:, (\d+) lines)?")


class Grade(Enum):
    """`FETCHED`: a source said it, or the person who asked. `PRINTED`: a command printed it, who could have made the
    command print anything."""

    FETCHED = "fetched"
    PRINTED = "printed"


@dataclass(frozen=True, slots=True)
class Part:
    """One output. `preview`: lines of it with their numbers. `lines`: how many it has in all, 0 if nobody says. `row`:
    how many lines of the result stand before it."""

    text: str
    preview: bool = False
    lines: int = 0
    row: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """`entry`: its number in the journal, from 1. `task`: of a sub-agent, 0 if it is none's. A fetch on the model's
    behalf is a call of its own, of which nothing was shown."""

    entry: int
    name: str
    grade: Grade
    arguments: Mapping[str, Any]
    text: str
    good: bool = True
    task: int = 0

    def parts(self) -> Iterator[Part]:
        return _parts(self.text.split("\n"), commands=self.grade is Grade.PRINTED)

    def echoed(self) -> frozenset[str]:
        """What the model itself put into the call, line by line: no evidence if it comes back."""
        found = _strings(self.arguments)
        return frozenset(" ".join(line.split()) for text in found for line in text.split("\n"))


def calls(entries: Sequence[Entry]) -> Iterator[Call]:
    """What tools brought and what people said, in order. Results of tools that give back the model's own words are not
    among them."""
    begun: dict[tuple[str, int], str] = {}
    for number, entry in enumerate(entries, 1):
        task, own = (entry.task + 1, entry.entry) if isinstance(entry, Delegated) else (0, entry)
        if isinstance(own, ToolStarted):
            begun[own.call_id, task] = own.arguments
        elif isinstance(own, ToolFinished) and own.name not in OWN_WORDS:
            yield from _finished(number, own, begun.get((own.call_id, task), ""), task)
        elif isinstance(own, UserSaid):
            yield Call(number, "", Grade.FETCHED, {}, own.text)
        elif isinstance(own, HistoryImported):
            said = (one.get("content") for one in own.messages if one.get("role") in ("user", "tool"))
            yield from (Call(number, "", Grade.FETCHED, {}, text) for text in said if isinstance(text, str))


def _finished(number: int, own: ToolFinished, arguments: str, task: int) -> Iterator[Call]:
    given, good = parsed(arguments), own.outcome is ToolOutcome.OK
    grade = Grade.PRINTED if own.name in COMMANDS else Grade.FETCHED
    if own.name not in FETCHES:
        yield Call(number, own.name, grade, given, own.text, good, task)
        return
    yield Call(number, own.name, Grade.FETCHED, given, own.text, good, task)
    several = given.get("fetches")
    for order in several if isinstance(several, list) else [given]:
        if isinstance(order, dict) and isinstance(order.get("tool"), str) and isinstance(order.get("arguments"), dict):
            said = _said_of(order.get("path"), own.text) if good else ""
            yield Call(number, order["tool"], Grade.FETCHED, order["arguments"], f"[{said}]", bool(said), task)


def _said_of(path: object, text: str) -> str:
    """The line of a fetch's result that tells of this one, if it came to something."""
    name = str(path).rsplit("/", 1)[-1]
    lines = (line for line in text.split("\n") if (name and f"{name}:" in line) or f"{name}.part" in line)
    return next((line for line in lines if _MEASURED.search(line)), "")


def parsed(arguments: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def size_of(text: str) -> int:
    """How many lines an output has by what the program says before it; 0 where it does not."""
    before = text.split("<untrusted ", 1)[0] if "<untrusted " in text else text[:1000]
    found = _MEASURED.search(before)
    return int(found[2]) if found and found[2] else 0


def _parts(lines: Sequence[str], *, commands: bool) -> Iterator[Part]:
    """Fenced ones with what is said before each. What stands outside is a part too: our own words can be quoted."""
    at = 0
    while at < len(lines):
        end = next((row for row in range(at, len(lines)) if _OPENING.fullmatch(lines[row])), len(lines))
        said = lines[at:end]
        if said:
            yield Part("\n".join(said), row=at)
        if end < len(lines) and (opening := _OPENING.fullmatch(lines[end])):
            at, end = end + 1, _closing(lines, end + 1, opening[1])
            yield _part(lines[at:end], " ".join(said), at, commands=commands)
        at = end + 1


def _closing(lines: Sequence[str], start: int, mark: str) -> int:
    closing = f'</untrusted id="{mark}">'
    return next((at for at in range(start, len(lines)) if lines[at] == closing), len(lines))


def _part(body: Sequence[str], said: str, row: int, *, commands: bool) -> Part:
    text = "\n".join(body)
    found = _MEASURED.search(said)
    preview = "preview" in said
    whole = not preview and not commands and _LEFT_OUT.search(text) is None
    size = int(found[2]) if found and found[2] else len(body) if whole else 0
    return Part(text, preview, size, row)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)

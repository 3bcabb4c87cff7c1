"""What a conversation holds so far: the calls that were made, by whichever model, and what came of each.

Takes results apart the way they are put together: what the program says of an output stands outside the fence, the
output inside. Only the outside can name a file. Knows no tool by name and no failure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hummingbird.domain.limits import DIGEST_RESULT_CHARS
from hummingbird.domain.messages import AssistantMessage, Message, ToolCall, ToolMessage
from hummingbird.domain.text import shortened
from hummingbird.evidence.regions import Line
from hummingbird.ports.sandbox import ROOT

NO_OUTPUT = "[no output]"
UNKNOWN = 0  # the number of a line whose place nobody knows
_OPENING = re.compile(r'<untrusted tool="[^"]{0,200}" id="([0-9a-f]{1,64})">')
_PATH = re.compile(rf"(?:{re.escape(ROOT)})/[\w./-]*\w", re.ASCII)
_SAVED = re.compile(r"(?i)\b(?:all of it|what came, not the whole,|what could be kept of it) is in ")
_MEASURED = re.compile(r"\d+ bytes\b")
_NUMBERED = re.compile(r"(\d{1,9}):(?: (.*))?")
_LEFT_OUT = re.compile(r"\[… .{0,80}left out.{0,80}…\]")
_SHOWN_ERROR = 300


@dataclass(frozen=True, slots=True)
class Shown:
    """One output of a call. `path`: the file in the sandbox that has all of it. `whole`: what stands here is all."""

    text: str
    path: str = ""
    whole: bool = True

    def lines(self) -> tuple[Line, ...]:
        """Its lines with their numbers in the output, as far as they can be known."""
        lines = self.text.split("\n")
        if self.whole or _LEFT_OUT.search(self.text):
            return _with_own_numbers(lines) or _counted(lines)
        return _picked(lines) or tuple(Line(UNKNOWN, line) for line in lines)


@dataclass(frozen=True, slots=True)
class Result:
    """`error`: a sentence, when the call failed. `outside`: what the program said around the parts."""

    parts: tuple[Shown, ...] = ()
    outside: str = ""
    error: str = ""

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)

    @property
    def paths(self) -> list[str]:
        return [part.path for part in self.parts if part.path]


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made and its result; what a fetch called on its behalf is a call of its own."""

    name: str
    arguments: Mapping[str, Any]
    result: Result = field(default_factory=Result)

    @property
    def key(self) -> str:
        return key_of(self.name, self.arguments)


def key_of(name: str, arguments: Mapping[str, Any]) -> str:
    """The same for the same call, whatever order its arguments stand in."""
    return f"{name} {msgspec.json.encode(arguments, order='deterministic').decode()}"


def calls_made(messages: Sequence[Message]) -> list[Made]:
    """In their order. Results that belong to no call, and calls without a result, are none of our business."""
    results = {message.call_id: message for message in messages if isinstance(message, ToolMessage)}
    made: list[Made] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            answered = [(call, results[call.id]) for call in message.calls if call.id in results]
            made += [each for call, result in answered for each in _with_fetched(call, result)]
    return made


def parsed(arguments: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(arguments or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _with_fetched(call: ToolCall, message: ToolMessage) -> Iterable[Made]:
    arguments, result = parsed(call.arguments), read(message)
    yield Made(call.name, arguments, result)
    orders = arguments.get("fetches") if isinstance(arguments.get("fetches"), list) else [arguments]
    for order in orders or ():
        if isinstance(order, dict) and isinstance(order.get("tool"), str) and isinstance(order.get("arguments"), dict):
            yield Made(order["tool"], order["arguments"], _fetched(order.get("path"), result))


def _fetched(path: object, result: Result) -> Result:
    """A fetch shows nothing of what it saved: only where."""
    if result.error or not isinstance(path, str):
        return result
    wanted = path if path.startswith(f"{ROOT}/") else f"{ROOT}/{path}"
    for line in (result.outside or result.text).split("\n"):
        found = _PATH.match(line)
        if found and found[0] in {wanted, f"{wanted}.part"} and _MEASURED.search(line):
            return Result((Shown("", found[0], whole=False),))
    return Result(error="nothing was saved")


def read(message: ToolMessage) -> Result:
    text = message.text[:DIGEST_RESULT_CHARS]
    parts, outside = _taken_apart(text.split("\n"))
    if message.is_error:
        said = "\n".join([outside, *(part.text for part in parts)])
        return Result(error=shortened(said, _SHOWN_ERROR) or "it failed without a word")
    return Result(tuple(parts), outside)


def _taken_apart(lines: Sequence[str]) -> tuple[list[Shown], str]:
    """Fenced parts with what is said before each; without any fence all of it is one part."""
    parts: list[Shown] = []
    said: list[str] = []
    outside: list[str] = []
    at = 0
    while at < len(lines):
        if opening := _OPENING.fullmatch(lines[at]):
            end = _closing(lines, at + 1, opening[1])
            parts.append(_part(lines[at + 1 : end], said))
            said, at = [], end + 1
        else:
            said.append(lines[at])
            outside.append(lines[at])
            at += 1
    return (parts, "\n".join(outside)) if parts else _unfenced(lines)


def _closing(lines: Sequence[str], start: int, mark: str) -> int:
    """The first line that ends the fence; where it was cut off, the end of everything."""
    closing = f'</untrusted id="{mark}">'
    return next((at for at in range(start, len(lines)) if lines[at] == closing), len(lines))


def _unfenced(lines: Sequence[str]) -> tuple[list[Shown], str]:
    """Our own tools' words. What is said of a long one is its first line."""
    first, rest = lines[0], lines[1:]
    if first.startswith("[") and ("preview" in first or _SAVED.search(first)):
        return [_part(rest, [first])], first
    return [_part(lines, [])], ""


def _part(body: Sequence[str], said: Sequence[str]) -> Shown:
    about = "\n".join(said)
    text = "\n".join(body)
    text = "" if text == NO_OUTPUT else text
    path = ""
    if saved := list(_SAVED.finditer(about)):
        found = _PATH.match(about, saved[-1].end())
        path = found[0] if found else ""
    shortened_somewhere = bool(path) or "preview" in about or _LEFT_OUT.search(text) is not None
    return Shown(text, path, whole=not shortened_somewhere)


def _with_own_numbers(lines: Sequence[str]) -> tuple[Line, ...]:
    """Lines that carry their numbers, as previews, `grep -n` and log tools write them; none if they do not."""
    found: list[Line] = []
    others = 0
    for line in lines:
        match = _NUMBERED.fullmatch(line)
        if match and (not found or int(match[1]) > found[-1].number):
            found.append(Line(int(match[1]), match[2] or ""))
        elif line.strip() and not _is_mark(line):
            others += 1
    return tuple(found) if len(found) > 2 * others else ()


def _picked(lines: Sequence[str]) -> tuple[Line, ...]:
    """The lines of a preview, which may show the best first, in the order of the log."""
    found = [(int(match[1]), match[2] or "") for line in lines if (match := _NUMBERED.fullmatch(line))]
    others = sum(bool(line.strip()) and not _is_mark(line) for line in lines) - len(found)
    return tuple(Line(number, text) for number, text in sorted(dict(found).items())) if len(found) > others else ()


def _is_mark(line: str) -> bool:
    return line == "--" or (line.startswith("[") and line.endswith("]"))


def _counted(lines: Sequence[str]) -> tuple[Line, ...]:
    """Counted from the first; after a piece that was left out nobody can count any more."""
    found: list[Line] = []
    known = True
    for number, line in enumerate(lines, 1):
        if _LEFT_OUT.fullmatch(line):
            known = False
        else:
            found.append(Line(number if known else UNKNOWN, line))
    return tuple(found)

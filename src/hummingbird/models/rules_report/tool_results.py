"""Parse the completed tool calls of a conversation, whichever model made them, and assemble logs from their output.

A result consists of fenced output and of the program's own text outside the fence. Only the text outside can name a
file, because the output is untrusted.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import msgspec

from hummingbird.core.json_codec import decode_json_object
from hummingbird.core.limits import DIGEST_RESULT_CHARS
from hummingbird.core.messages import AssistantMessage, Message, ToolCall, ToolMessage
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT
from hummingbird.core.text import shorten_line
from hummingbird.evidence.regions import Blame, EvidenceAnalysis, EvidenceLine, FailureClass, Region
from hummingbird.evidence.reports import junit, report_cases
from hummingbird.evidence.reports.report_cases import BAD_OUTCOMES

NO_OUTPUT = "[no output]"
UNKNOWN_LINE = 0  # the number of a line whose position is unknown
_OPENING = re.compile(r'<untrusted tool="[^"]{0,200}" id="([0-9a-f]{1,64})">')
_PATH = re.compile(rf"(?:{re.escape(SANDBOX_ROOT)})/[\w./-]*\w", re.ASCII)
_SAVED = re.compile(r"(?i)\b(?:all of it|what came, not the whole,|what could be kept of it) is in ")
_MEASURED = re.compile(r"\d+ bytes\b")
_NUMBERED = re.compile(r"(\d{1,9}):(?: (.*))?")
_LEFT_OUT = re.compile(r"\[… .{0,80}left out.{0,80}…\]")
_SHOWN_ERROR = 300


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """One output of a call. `path` is the sandbox file with all of it; `whole` means that `text` is complete."""

    text: str
    path: str = ""
    whole: bool = True

    def lines(self) -> tuple[EvidenceLine, ...]:
        """Return the lines with their numbers in the original output, as far as they are known."""
        lines = self.text.split("\n")
        if self.whole or _LEFT_OUT.search(self.text):
            return _parse_numbered_lines(lines) or _count_lines(lines)
        return _parse_preview_lines(lines) or tuple(EvidenceLine(UNKNOWN_LINE, line) for line in lines)


@dataclass(frozen=True, slots=True)
class ParsedToolResult:
    """A parsed result. `error` says why the call failed; `outside` is the program's text around the parts."""

    parts: tuple[ShownOutput, ...] = ()
    outside: str = ""
    error: str = ""

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)

    @property
    def paths(self) -> list[str]:
        return [part.path for part in self.parts if part.path]


@dataclass(frozen=True, slots=True)
class CompletedCall:
    """A call and its result. Each call that a fetch made counts as a separate call."""

    name: str
    arguments: Mapping[str, Any]
    result: ParsedToolResult = field(default_factory=ParsedToolResult)

    @property
    def key(self) -> str:
        return call_key(self.name, self.arguments)


def call_key(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a key that is the same for equal calls, whatever the order of their arguments."""
    return f"{name} {msgspec.json.encode(arguments, order='deterministic').decode()}"


def find_completed_calls(messages: Sequence[Message]) -> list[CompletedCall]:
    """Return the completed calls in order. Skip calls without a result, and results without a call."""
    results = {message.call_id: message for message in messages if isinstance(message, ToolMessage)}
    made: list[CompletedCall] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            answered = [(call, results[call.id]) for call in message.calls if call.id in results]
            made += [each for call, result in answered for each in _expand_fetches(call, result)]
    return made


def _expand_fetches(call: ToolCall, message: ToolMessage) -> Iterable[CompletedCall]:
    arguments, result = decode_json_object(call.arguments) or {}, parse_result(message)
    yield CompletedCall(call.name, arguments, result)
    several = arguments.get("fetches", arguments.get("requests"))  # the second is the name in older prompts
    for order in several if isinstance(several, list) else [arguments]:
        if isinstance(order, dict) and isinstance(order.get("tool"), str) and isinstance(order.get("arguments"), dict):
            yield CompletedCall(order["tool"], order["arguments"], _fetch_result(order.get("path"), result))


def _fetch_result(path: object, result: ParsedToolResult) -> ParsedToolResult:
    """Return the result of one fetched call: a fetch shows only where it saved the output."""
    if result.error or not isinstance(path, str):
        return result
    wanted = path if path.startswith(f"{SANDBOX_ROOT}/") else f"{SANDBOX_ROOT}/{path}"
    for line in (result.outside or result.text).split("\n"):
        found = _PATH.match(line)
        if found and found[0] in {wanted, f"{wanted}.part"} and _MEASURED.search(line):
            return ParsedToolResult((ShownOutput("", found[0], whole=False),))
    return ParsedToolResult(error="nothing was saved")


def parse_result(message: ToolMessage) -> ParsedToolResult:
    """Parse the message with a tool result."""
    text = message.text[:DIGEST_RESULT_CHARS]
    parts, outside = _split_parts(text.split("\n"))
    if message.is_error:
        said = "\n".join([outside, *(part.text for part in parts)])
        return ParsedToolResult(error=shorten_line(said, _SHOWN_ERROR) or "it failed without a message")
    return ParsedToolResult(tuple(parts), outside)


def _split_parts(lines: Sequence[str]) -> tuple[list[ShownOutput], str]:
    """Split a result into fenced parts and the text outside; without a fence, all of it is one part."""
    parts: list[ShownOutput] = []
    said: list[str] = []
    outside: list[str] = []
    at = 0
    while at < len(lines):
        if opening := _OPENING.fullmatch(lines[at]):
            end = _find_fence_end(lines, at + 1, opening[1])
            parts.append(_build_part(lines[at + 1 : end], said))
            said, at = [], end + 1
        else:
            said.append(lines[at])
            outside.append(lines[at])
            at += 1
    return (parts, "\n".join(outside)) if parts else _split_unfenced(lines)


def _find_fence_end(lines: Sequence[str], start: int, mark: str) -> int:
    """Return the index of the line that ends the fence; the end of the text if that line was cut off."""
    closing = f'</untrusted id="{mark}">'
    return next((at for at in range(start, len(lines)) if lines[at] == closing), len(lines))


def _split_unfenced(lines: Sequence[str]) -> tuple[list[ShownOutput], str]:
    """Split a result of our own tools, which has no fence.

    The first line of a shortened result says that it is shortened.
    """
    first, rest = lines[0], lines[1:]
    if first.startswith("[") and ("preview" in first or _SAVED.search(first)):
        return [_build_part(rest, [first])], first
    return [_build_part(lines, [])], ""


def _build_part(body: Sequence[str], said: Sequence[str]) -> ShownOutput:
    about = "\n".join(said)
    text = "\n".join(body)
    text = "" if text == NO_OUTPUT else text
    path = ""
    if saved := list(_SAVED.finditer(about)):
        found = _PATH.match(about, saved[-1].end())
        path = found[0] if found else ""
    shortened_somewhere = bool(path) or "preview" in about or _LEFT_OUT.search(text) is not None
    return ShownOutput(text, path, whole=not shortened_somewhere)


def _parse_numbered_lines(lines: Sequence[str]) -> tuple[EvidenceLine, ...]:
    """Parse lines with numbers, as previews, `grep -n` and log tools print them; return none if there are too few."""
    found: list[EvidenceLine] = []
    others = 0
    for line in lines:
        match = _NUMBERED.fullmatch(line)
        if match and (not found or int(match[1]) > found[-1].number):
            found.append(EvidenceLine(int(match[1]), match[2] or ""))
        elif line.strip() and not _is_mark(line):
            others += 1
    return tuple(found) if len(found) > 2 * others else ()


def _parse_preview_lines(lines: Sequence[str]) -> tuple[EvidenceLine, ...]:
    """Return the lines of a preview in the order of the log; a preview may show the best ones first."""
    found = [(int(match[1]), match[2] or "") for line in lines if (match := _NUMBERED.fullmatch(line))]
    others = sum(bool(line.strip()) and not _is_mark(line) for line in lines) - len(found)
    return (
        tuple(EvidenceLine(number, text) for number, text in sorted(dict(found).items())) if len(found) > others else ()
    )


def _is_mark(line: str) -> bool:
    return line == "--" or (line.startswith("[") and line.endswith("]"))


def _count_lines(lines: Sequence[str]) -> tuple[EvidenceLine, ...]:
    """Number the lines from 1. After a piece that was left out the numbers are unknown."""
    found: list[EvidenceLine] = []
    known = True
    for number, line in enumerate(lines, 1):
        if _LEFT_OUT.fullmatch(line):
            known = False
        else:
            found.append(EvidenceLine(number if known else UNKNOWN_LINE, line))
    return tuple(found)


AnalyseText: TypeAlias = Callable[[str], EvidenceAnalysis]

GAP_LINE = EvidenceLine(UNKNOWN_LINE, "[…]")
NO_ANALYSIS = EvidenceAnalysis(
    (), Blame(FailureClass.UNKNOWN, "nothing read", 0.0, "No part of it could be read."), 0, 0
)


@dataclass
class PartialLog:
    """A log as far as the conversation has shown it, assembled from pieces with line numbers.

    `key` is the id in the call, empty where there is only one log. `search_count` counts closer looks into it. `errors`
    say why parts could not be read.
    """

    key: str
    kind: str = "job"
    numbered: dict[int, str] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    whole: bool = True
    search_count: int = 0
    was_read: bool = False

    def add_output(self, part: ShownOutput) -> None:
        self.was_read = True
        self.whole = self.whole and part.whole
        if part.path and part.path not in self.paths:
            self.paths.append(part.path)
        self.add_lines(part.lines())

    def add_lines(self, lines: Iterable[EvidenceLine]) -> None:
        for line in lines:
            if line.number == UNKNOWN_LINE:
                self.loose.append(line.text)
            elif len(line.text) >= len(self.numbered.get(line.number, "")):
                self.numbered[line.number] = line.text

    def lines(self) -> list[EvidenceLine]:
        """Return the lines in order, with an empty line for each gap."""
        found: list[EvidenceLine] = []
        for number in sorted(self.numbered):
            if found and number > found[-1].number + 1:
                found.append(EvidenceLine(UNKNOWN_LINE, ""))
            found.append(EvidenceLine(number, self.numbered[number]))
        return [*found, *(EvidenceLine(UNKNOWN_LINE, text) for text in self.loose)]

    def run_analysis(self, analyse: AnalyseText) -> EvidenceAnalysis:
        """Analyse the known lines; the regions have the line numbers of the original log."""
        lines = self.lines()
        if not any(line.text.strip() for line in lines):
            return NO_ANALYSIS
        text = "\n".join(line.text for line in lines)
        analysis = _analyse_test_report(text) if text.lstrip().startswith("<") else None
        analysis = analysis or analyse(text)
        return replace(analysis, regions=tuple(_renumber_region(region, lines) for region in analysis.regions))


def find_failed_test_logs(log: PartialLog) -> list[str]:
    """Return the addresses of the failed tests' logs, if the log is a test report."""
    text = "\n".join(line.text for line in log.lines())
    if not text.lstrip().startswith("<"):
        return []
    bad = (case for case in junit.read_report([text.encode("utf-8", "replace")]).cases if case.outcome in BAD_OUTCOMES)
    return [link.href for case in bad for link in case.logs]


def _analyse_test_report(text: str) -> EvidenceAnalysis | None:
    """Analyse an XML test report; return None if the text is none or nothing failed."""
    report = junit.read_report([text.encode("utf-8", "replace")])
    regions = report_cases.regions_from_report(report) if report.recognised else ()
    return EvidenceAnalysis(regions, regions[0].blame, text.count("\n") + 1, len(text)) if regions else None


def first_line_number(region: Region) -> int:
    """Return the first known line number of a region."""
    return next((line.number for line in region.lines if line.number != UNKNOWN_LINE), UNKNOWN_LINE)


def _renumber_region(region: Region, lines: list[EvidenceLine]) -> Region:
    """Give the region's lines their original numbers; cut gaps at its ends, and mark gaps between its lines."""
    moved = [EvidenceLine(_original_number(line.number, lines), line.text) for line in region.lines]
    solid = [at for at, line in enumerate(moved) if line.number != UNKNOWN_LINE or line.text.strip()]
    kept = moved[solid[0] : solid[-1] + 1] if solid else moved
    return replace(region, lines=tuple(line if line.number or line.text.strip() else GAP_LINE for line in kept))


def _original_number(seen: int, lines: list[EvidenceLine]) -> int:
    return lines[seen - 1].number if 0 < seen <= len(lines) else UNKNOWN_LINE

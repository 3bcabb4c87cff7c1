"""Record what a session fetched, as far as an answer needs it.

The record is told first what is wanted and keeps nothing else, so it stays small whatever a session holds. Lines that
only commands printed are kept apart. What streamed into the sandbox is known only by its digests
(`FetchedLineDigests`), and only in the process that fetched it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import msgspec

from hummingbird.core.journal import (
    Delegated,
    HistoryImported,
    JournalEntry,
    ToolFinished,
    ToolOutcome,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.json_codec import decode_json_object
from hummingbird.evidence.bounds import CITED_LINE_CHARS, RECORD_ADDRESSES, RECORD_CHARS
from hummingbird.evidence.citations.diffs import (
    FileLineRange,
    diff_line_ranges,
    diff_lines,
    file_diffs_from_json,
    is_diff,
)
from hummingbird.evidence.citations.quotations import (
    TruncatedLine,
    has_tail,
    line_variants,
    split_line_number,
    tail_key,
)
from hummingbird.evidence.reports import junit, report_cases

# Splitting results. A tool result has the program's own words outside of the `<untrusted>` fence and the output inside.
# Only the words outside can tell the numbers of lines.
COMMAND_TOOLS = frozenset({"sandbox_exec", "terminal", "process", "file_read", "file_search"})
OWN_WORDS_TOOLS = frozenset({"delegate", "todo", "memory", "clarify", "skill", "recall", "report_finding", "file_edit"})
FETCH_TOOLS = frozenset({"fetch_to_sandbox", "fetch_batch_to_sandbox"})
_OPENING = re.compile(r'<untrusted tool="[^"]{0,200}" id="([0-9a-f]{1,64})">')
_LEFT_OUT = re.compile(r"\[… .{0,80}left out.{0,80}…\]")
_MEASURED = re.compile(r"\b(\d+) bytes(?:, (\d+) lines)?")


class EvidenceGrade(Enum):
    """How far a result can be trusted.

    `FETCHED`: a source said it, or the person who asked. `PRINTED`: a command in the sandbox printed it, and the model
    could have made the command print anything.
    """

    FETCHED = "fetched"
    PRINTED = "printed"


@dataclass(frozen=True, slots=True)
class ResultPart:
    """One output within a result.

    `preview` means that its lines have their numbers before them. `lines` is the total number of lines, 0 if not known.
    `row` is the number of lines in the result before it.
    """

    text: str
    preview: bool = False
    lines: int = 0
    row: int = 0


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call, or what a person said, with its result.

    `entry` is the number in the journal, from 1. `task` is the sub-agent's task, 0 without a sub-agent. A fetch into
    the sandbox also gives a call of the tool that it used; the model did not see that output.
    """

    entry: int
    name: str
    grade: EvidenceGrade
    arguments: Mapping[str, Any]
    text: str
    succeeded: bool = True
    task: int = 0

    def parts(self) -> Iterator[ResultPart]:
        """Split the result into its outputs."""
        return _split_parts(self.text.split("\n"), commands=self.grade is EvidenceGrade.PRINTED)

    def argument_lines(self) -> frozenset[str]:
        """Return the lines that the model itself put into the call, which are not evidence if they come back."""
        found = _all_strings(self.arguments)
        return frozenset(" ".join(line.split()) for text in found for line in text.split("\n"))


def calls_from_entries(entries: Sequence[JournalEntry]) -> Iterator[RecordedCall]:
    """Yield what tools brought and what people said, in order.

    Skips results of tools that only give back the model's own words.
    """
    begun: dict[tuple[str, int], str] = {}
    for number, entry in enumerate(entries, 1):
        task, own = (entry.task + 1, entry.entry) if isinstance(entry, Delegated) else (0, entry)
        if isinstance(own, ToolStarted):
            begun[own.call_id, task] = own.arguments
        elif isinstance(own, ToolFinished) and own.name not in OWN_WORDS_TOOLS:
            yield from _calls_from_result(number, own, begun.get((own.call_id, task), ""), task)
        elif isinstance(own, UserSaid):
            yield RecordedCall(number, "", EvidenceGrade.FETCHED, {}, own.text)
        elif isinstance(own, HistoryImported):
            said = (one.get("content") for one in own.messages if one.get("role") in ("user", "tool"))
            yield from (
                RecordedCall(number, "", EvidenceGrade.FETCHED, {}, text) for text in said if isinstance(text, str)
            )


def _calls_from_result(number: int, own: ToolFinished, arguments: str, task: int) -> Iterator[RecordedCall]:
    given, good = parse_arguments(arguments), own.outcome is ToolOutcome.OK
    grade = EvidenceGrade.PRINTED if own.name in COMMAND_TOOLS else EvidenceGrade.FETCHED
    if own.name not in FETCH_TOOLS:
        yield RecordedCall(number, own.name, grade, given, own.text, good, task)
        return
    yield RecordedCall(number, own.name, EvidenceGrade.FETCHED, given, own.text, good, task)
    several = given.get("fetches")
    for order in several if isinstance(several, list) else [given]:
        if isinstance(order, dict) and isinstance(order.get("tool"), str) and isinstance(order.get("arguments"), dict):
            said = _fetch_summary_line(order.get("path"), own.text) if good else ""
            yield RecordedCall(
                number, order["tool"], EvidenceGrade.FETCHED, order["arguments"], f"[{said}]", bool(said), task
            )


def _fetch_summary_line(path: object, text: str) -> str:
    """Return the line of a fetch's result about this file, or "" if the fetch brought nothing."""
    name = str(path).rsplit("/", 1)[-1]
    lines = (line for line in text.split("\n") if (name and f"{name}:" in line) or f"{name}.part" in line)
    return next((line for line in lines if _MEASURED.search(line)), "")


def parse_arguments(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call, or an empty dict if they are not a JSON object."""
    return decode_json_object(arguments) or {}


def line_count_in_header(text: str) -> int:
    """Return how many lines an output has according to the program's words before it, or 0."""
    before = text.split("<untrusted ", 1)[0] if "<untrusted " in text else text[:1000]
    found = _MEASURED.search(before)
    return int(found[2]) if found and found[2] else 0


def _split_parts(lines: Sequence[str], *, commands: bool) -> Iterator[ResultPart]:
    """Yield the fenced outputs, and the words outside of them: an answer may quote those, too."""
    at = 0
    while at < len(lines):
        end = next((row for row in range(at, len(lines)) if _OPENING.fullmatch(lines[row])), len(lines))
        said = lines[at:end]
        if said:
            yield ResultPart("\n".join(said), row=at)
        if end < len(lines) and (opening := _OPENING.fullmatch(lines[end])):
            at, end = end + 1, _find_closing(lines, end + 1, opening[1])
            yield _make_part(lines[at:end], " ".join(said), at, commands=commands)
        at = end + 1


def _find_closing(lines: Sequence[str], start: int, mark: str) -> int:
    closing = f'</untrusted id="{mark}">'
    return next((at for at in range(start, len(lines)) if lines[at] == closing), len(lines))


def _make_part(body: Sequence[str], said: str, row: int, *, commands: bool) -> ResultPart:
    text = "\n".join(body)
    found = _MEASURED.search(said)
    preview = "preview" in said
    whole = not preview and not commands and _LEFT_OUT.search(text) is None
    size = int(found[2]) if found and found[2] else len(body) if whole else 0
    return ResultPart(text, preview, size, row)


def _all_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _all_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _all_strings(inner)


_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*+)"')
_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\\x00-\x20\x7f\]\[{}|^]+", re.IGNORECASE)
_PAIR = re.compile(
    r'"(iid|mr_iid|job_id|pipeline_id|sha|[a-z]+_sha|ref|target_branch|source_branch|path|new_path|old_path)"'
    r':\s?(?:"([^"\\]{1,400})"|(\d{1,18}))'
)
_GREP_FILE_NAME = re.compile(r"(?!\d+[:-])[\w./+@-]{1,300}[:-]")  # `grep -H`
_LINE_WITH_NUMBER = re.compile(r"\s*(\d{1,9})(?:[:-]|\t| )(.*)", re.DOTALL)  # `grep -n`, `cat -n`, `nl`, `uniq -c`
TRAILING_PUNCTUATION = ".,;:!?*_)'\""


class FetchedLineDigests(Protocol):
    """Digests of the lines that streamed into the sandbox; they tell which printed lines had been fetched."""

    def find_lines(self, lines: Iterable[str]) -> Mapping[str, frozenset[int]]:
        """Return those of the lines that were fetched, with their numbers. Lines must be equal to the last letter."""
        ...

    @property
    def line_ranges(self) -> Sequence[FileLineRange]:
        """Ranges of lines in the fetched diffs."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether more was fetched than the digests can hold."""
        ...


class _NoLineDigests:
    line_ranges: Sequence[FileLineRange] = ()
    is_full = False

    def find_lines(self, lines: Iterable[str]) -> Mapping[str, frozenset[int]]:
        return {}


NO_DIGESTS: FetchedLineDigests = _NoLineDigests()


@dataclass(frozen=True, slots=True)
class ResultLocation:
    """A line of a result: the numbers of the journal entry and of the line, both from 1."""

    entry: int
    line: int


@dataclass(slots=True)
class LineSighting:
    """Where and how a wanted line was seen."""

    fetched: bool = False
    printed: bool = False
    numbers: set[int] = field(default_factory=set)  # of fetched ones
    printed_numbers: set[int] = field(default_factory=set)
    location: ResultLocation | None = None

    def add(self, grade: EvidenceGrade, numbers: Iterable[int]) -> None:
        if grade is EvidenceGrade.FETCHED:
            self.fetched = True
            self.numbers.update(numbers)
        else:
            self.printed = True
            self.printed_numbers.update(numbers)


@dataclass(frozen=True, slots=True)
class WantedLines:
    """What an answer needs from the record.

    `lines` and `cuts` are compared with whole lines, `tails` with the ends of lines; `patterns` (names and places) may
    match anywhere.
    """

    lines: frozenset[str] = frozenset()
    cuts: tuple[TruncatedLine, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    tails: frozenset[str] = frozenset()


@dataclass(slots=True)
class FetchedRecord:
    """What was found in the results of a session.

    Attributes:
        found_patterns: indexes of the wanted patterns that occur in something fetched.
        ids: values with their names, such as ("job_id", "12").
        log_line_counts: lines of a job's log, by job id.
        is_complete: False if there was more than is searched.
        is_full: True if not every line that streamed by could be remembered.
    """

    lines: dict[str, LineSighting] = field(default_factory=dict)
    cuts: dict[TruncatedLine, LineSighting] = field(default_factory=dict)
    tails: dict[str, LineSighting] = field(default_factory=dict)
    found_patterns: set[int] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)
    ids: set[tuple[str, str]] = field(default_factory=set)
    line_ranges: list[FileLineRange] = field(default_factory=list)
    log_line_counts: dict[str, int] = field(default_factory=dict)
    is_complete: bool = True
    is_full: bool = False


def build_record(
    entries: Sequence[JournalEntry], wanted: WantedLines, digested: FetchedLineDigests = NO_DIGESTS
) -> FetchedRecord:
    """Search the results of a session for what is wanted, newest first, up to `RECORD_CHARS`."""
    made = _RecordBuilder(wanted)
    room = RECORD_CHARS
    for call in reversed(list(calls_from_entries(entries))):
        room -= len(call.text)
        if room < 0:
            made.record.is_complete = False
            break
        made.add_call(call)
    made.apply_digests(digested)
    return made.record


class _RecordBuilder:
    def __init__(self, wanted: WantedLines) -> None:
        self.record = FetchedRecord()
        self._wanted = wanted
        self._heads = tuple({cut.head for cut in wanted.cuts if cut.head})
        self._tails = tuple({cut.tail for cut in wanted.cuts if cut.tail and not cut.head})
        self._endings: dict[str, list[str]] = {}
        for tail in wanted.tails:
            self._endings.setdefault(tail_key(tail), []).append(tail)
        # What each printed line would prove, if the digests show that it had been fetched.
        self._words_of: dict[str, set[int]] = {}
        self._seen_of: dict[str, list[LineSighting]] = {}

    def add_call(self, call: RecordedCall) -> None:
        echoed = call.argument_lines() if call.grade is EvidenceGrade.FETCHED else frozenset[str]()
        for part in call.parts():
            lines = list(_result_lines(call, part))
            for line in lines:
                self._add_line(call, line, echoed)
            if call.succeeded:
                self._add_pattern_matches(call, lines, echoed)
            if call.grade is EvidenceGrade.FETCHED and call.succeeded:
                self._add_facts(part, echoed)
        self._add_line_count(call)

    def _add_line(self, call: RecordedCall, line: "_ResultLine", echoed: frozenset[str]) -> None:
        for key in line_variants(line.text[:CITED_LINE_CHARS]):
            if key in echoed:
                continue
            if key in self._wanted.lines:
                self._add_exact_match(call, key, line)
            if (self._heads and key.startswith(self._heads)) or (self._tails and key.endswith(self._tails)):
                self._add_truncated_matches(call, key, line)
            if tails := self._endings.get(tail_key(key)):
                self._add_tail_matches(call, key, line, [one for one in tails if not any(one in own for own in echoed)])

    def _add_exact_match(self, call: RecordedCall, key: str, line: "_ResultLine") -> None:
        seen = self.record.lines.setdefault(key, LineSighting())
        seen.add(call.grade, line.numbers)
        self._remember_printed(call, line, seen)
        if line.row and (seen.location is None or seen.location.entry != call.entry):
            seen.location = ResultLocation(call.entry, line.row)  # newest calls come first, so the oldest one stays

    def _add_truncated_matches(self, call: RecordedCall, key: str, line: "_ResultLine") -> None:
        for cut in self._wanted.cuts:
            if cut.matches(key):
                seen = self.record.cuts.setdefault(cut, LineSighting())
                seen.add(call.grade, line.numbers)
                self._remember_printed(call, line, seen)

    def _add_tail_matches(self, call: RecordedCall, key: str, line: "_ResultLine", tails: Iterable[str]) -> None:
        for tail in tails:
            if has_tail(key, tail):
                seen = self.record.tails.setdefault(tail, LineSighting())
                seen.add(call.grade, line.numbers)
                self._remember_printed(call, line, seen)

    def _remember_printed(self, call: RecordedCall, line: "_ResultLine", seen: LineSighting) -> None:
        if call.grade is EvidenceGrade.PRINTED:
            self._seen_of.setdefault(line.raw or line.text, []).append(seen)

    def _add_pattern_matches(self, call: RecordedCall, lines: Sequence["_ResultLine"], echoed: frozenset[str]) -> None:
        """Search each pattern in all lines at once, because most of them do not occur."""
        text = "\n".join(line.text for line in lines)
        for number, pattern in enumerate(self._wanted.patterns):
            if number in self.record.found_patterns or not pattern.search(text):
                continue
            for line in lines:
                if found := pattern.search(line.text):
                    self._add_pattern_match(call, line, number, told=not any(found[0] in one for one in echoed))

    def _add_pattern_match(self, call: RecordedCall, line: "_ResultLine", number: int, *, told: bool) -> None:
        if call.grade is EvidenceGrade.PRINTED:
            self._words_of.setdefault(line.raw or line.text, set()).add(number)
        elif told:
            self.record.found_patterns.add(number)

    def _add_facts(self, part: ResultPart, echoed: frozenset[str]) -> None:
        record = self.record
        text = part.text.replace("\\/", "/")
        for found in _ADDRESS.finditer(text):
            address = found[0].rstrip(TRAILING_PUNCTUATION)
            if len(record.addresses) < RECORD_ADDRESSES and not any(address in one for one in echoed):
                record.addresses.add(address)
        for pair in _PAIR.finditer(text):
            record.ids.add((pair[1], pair[2] or pair[3]))
        if is_diff(part.text):
            record.line_ranges += diff_line_ranges(part.text.split("\n"))
        record.line_ranges += (
            stretch for one in file_diffs_from_json(_without_line_numbers(part)) for stretch in one.line_ranges
        )

    def _add_line_count(self, call: RecordedCall) -> None:
        """Record the number of lines of a file or a log that was fetched completely."""
        path, job = call.arguments.get("path") or call.arguments.get("file_path"), call.arguments.get("job_id")
        if not call.succeeded or call.grade is EvidenceGrade.PRINTED or not (path or job):
            return
        size = line_count_in_header(call.text) or max((part.lines for part in call.parts()), default=0)
        if isinstance(path, str) and size and "file" in call.name:
            self.record.line_ranges.append(FileLineRange(path, 1, size))
        if job is not None and size and call.name.endswith("job_log"):
            self.record.log_line_counts[str(job)] = size

    def apply_digests(self, digested: FetchedLineDigests) -> None:
        """Count printed lines as fetched if they had streamed into the sandbox before."""
        held = digested.find_lines({*self._seen_of, *self._words_of})
        for line, numbers in held.items():
            self.record.found_patterns |= self._words_of.get(line, set())
            for seen in self._seen_of.get(line, ()):
                seen.add(EvidenceGrade.FETCHED, numbers)
        self.record.line_ranges += digested.line_ranges
        self.record.is_full = digested.is_full


@dataclass(frozen=True, slots=True)
class _ResultLine:
    """A line of a result.

    `row` is its number in the result, from 1, or 0 if it was derived from another line. `raw` is the original line of a
    file, where that differs from the text.
    """

    text: str
    numbers: tuple[int, ...] = ()
    row: int = 0
    raw: str = ""


def _result_lines(call: RecordedCall, part: ResultPart) -> Iterator[_ResultLine]:
    lines = part.text.split("\n")
    if call.grade is EvidenceGrade.PRINTED:
        yield from _command_lines(lines, part.row)
        return
    for row, line in enumerate(lines, 1):
        found = split_line_number(line) if part.preview else None
        if found is None:
            yield _ResultLine(line, () if part.preview or row > part.lines else (row,), part.row + row)
            continue
        yield _ResultLine(found[1], (found[0],), part.row + row)
        if "diff" in call.name and found[1].startswith(("+", "-")):
            yield _ResultLine(found[1][1:])
    unnumbered = _without_line_numbers(part)
    yield from (_ResultLine(text) for text in _lines_in_json_strings("\n".join(unnumbered)))
    yield from _json_diff_lines(unnumbered)
    if is_diff(part.text):
        yield from (_ResultLine(one.text, one.numbers) for one in diff_lines(lines))
    if not part.preview and part.text.lstrip().startswith("<"):
        yield from _report_lines(part.text)


def _without_line_numbers(part: ResultPart) -> list[str]:
    """Return the lines of a part without the numbers of a preview."""
    lines = part.text.split("\n")
    return [found[1] if (found := split_line_number(line)) else line for line in lines] if part.preview else lines


def _json_diff_lines(lines: Sequence[str]) -> Iterator[_ResultLine]:
    """Yield the diffs within JSON: the headers of a unified diff, and the lines with their numbers in the files."""
    for one in file_diffs_from_json(lines):
        yield from map(_ResultLine, (*one.headers, *one.lines))
        yield from (_ResultLine(each.text, each.numbers) for each in diff_lines(one.lines))


def _report_lines(text: str) -> Iterator[_ResultLine]:
    """Yield the lines of a test report as previews show them."""
    report = junit.read_report([text.encode("utf-8", "replace")])
    for region in report_cases.regions_from_report(report) if report.recognised else ():
        yield from (_ResultLine(line.text, (line.number,) if line.number else ()) for line in region.lines)


def _command_lines(lines: Sequence[str], before: int) -> Iterator[_ResultLine]:
    """Yield what commands print when they search files: with a file name, a number, both or neither."""
    for row, line in enumerate(lines, before + 1):
        yield _ResultLine(line, (), row)
        rest = line
        if named := _GREP_FILE_NAME.match(line):
            rest = line[named.end() :]
            yield _ResultLine(rest, (), row)
        if found := _LINE_WITH_NUMBER.fullmatch(rest):
            yield _ResultLine(found[2], (int(found[1]),), row)
            if found[2][:1] == " ":  # our own `812: text`, or a line that begins with a space
                yield _ResultLine(found[2][1:], (int(found[1]),), row)
        if line.startswith(("+", "-")):
            yield _ResultLine(line[1:], (), row, raw=line)


def _lines_in_json_strings(text: str) -> Iterator[str]:
    """Yield the lines within the strings of JSON."""
    if not text.lstrip().startswith(("{", "[")):
        return
    for found in _STRING.finditer(text):
        inner = found[1]
        if "\\" in inner:
            try:
                inner = msgspec.json.decode(f'"{inner}"'.encode("utf-8", "replace"), type=str)
            except (msgspec.DecodeError, UnicodeError):
                continue
        lines = inner.split("\n")
        yield from lines
        if is_diff(inner):
            yield from (one.text for one in diff_lines(lines))

"""Preview test reports and Tekton objects within a byte budget: the totals, then the failures.

Each preview class has `feed`, `text` and `recognised`. A caller falls back to `LogPreview` when the input is not
recognised.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.limits import (
    CASE_BODY_CHARS,
    CASE_FIELD_CHARS,
    CASES_KEPT,
    OBJECT_BYTES,
    PREVIEW_BYTES,
    RECORDS_KEPT,
    STATUS_CHARS,
)
from hummingbird.evidence.loose_json import JsonObject, object_at, text_at
from hummingbird.evidence.regions import Blame, EvidenceLine, FailureClass, Region, RegionKind
from hummingbird.evidence.reports import report_cases
from hummingbird.evidence.reports.junit import ReportReader
from hummingbird.evidence.reports.report_cases import BAD_OUTCOMES, CaseOutcome, ParsedReport, ReportedCase
from hummingbird.evidence.tekton import run_regions
from hummingbird.evidence.tekton.object_reader import combine_runs, read_objects
from hummingbird.evidence.tekton.run_regions import failing_test_output
from hummingbird.evidence.tekton.runs import TektonObjects, TektonRun, TektonState

LINE_BYTES = 320
MIN_LINE_BYTES = 24
MIN_SHARE_BYTES = 240
GAP_MARK = "[…]"
CUT_MARK = "…"
TELLING_LINE = re.compile(r"E\s|.*(?:Error\b|Exception\b|\bexpected\b|\bFAIL)|log (?:testout|output|tmt-log|step)")


class PreviewText:
    """Collects lines of text up to a budget of bytes."""

    def __init__(self, budget: int) -> None:
        self._room = max(0, min(budget, PREVIEW_BYTES))
        self._lines: list[str] = []

    @property
    def room(self) -> int:
        return self._room

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def add(self, line: str) -> bool:
        """Add the line, cut with a mark if it is too long; return False when hardly any room is left."""
        newline = 1 if self._lines else 0
        shown = cut_line(line, min(LINE_BYTES, self._room - newline))
        if not shown:
            return False
        self._lines.append(shown)
        self._room -= byte_size(shown) + newline
        return True


def cut_line(line: str, most: int) -> str:
    """Return the line in at most `most` bytes, with a mark where it is cut, or "" when that is too few to be useful."""
    # JSON may hold halves of surrogate pairs, which cannot be encoded in UTF-8.
    line = " ".join(line.splitlines()).encode("utf-8", "replace").decode()
    if byte_size(line) <= most:
        return line
    if most < MIN_LINE_BYTES:
        return ""
    return line.encode()[: most - byte_size(CUT_MARK)].decode("utf-8", "ignore") + CUT_MARK


def byte_size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def preview_regions(head: Sequence[str], regions: Sequence[Region], budget: int, unkept: int = 0) -> str:
    """Show the head, then as many regions as fit: each distinct failure once before any of them twice.

    The last line counts the regions that are not shown, including `unkept` ones that the caller dropped.
    """
    sheet = PreviewText(budget)
    for line in head:
        sheet.add(line)
    groups = _group_by_fingerprint(regions)
    order = [group[turn] for turn in range(max(map(len, groups), default=0)) for group in groups if turn < len(group)]
    shown = 0
    for place, region in enumerate(order):
        distinct = len(groups) - place
        alike = len(groups[place]) - 1 if distinct > 0 else 0
        note = f" (and {alike} more like it)" if alike else ""
        reserve = byte_size(_missing_note(len(order) + unkept)) + 1
        share = max(MIN_SHARE_BYTES, (sheet.room - reserve) // distinct) if distinct > 0 else MIN_SHARE_BYTES
        if not _add_region(sheet, region, note, min(share, sheet.room - reserve)):
            break
        shown += 1
    if rest := len(order) - shown + unkept:
        sheet.add(_missing_note(rest))
    return sheet.text


def _missing_note(count: int) -> str:
    return f"[… not shown: {count} more {'failure' if count == 1 else 'failures'} …]"


def _group_by_fingerprint(regions: Sequence[Region]) -> list[list[Region]]:
    found: dict[str, list[Region]] = {}
    for place, region in enumerate(regions):
        found.setdefault(region.fingerprint or f"#{place}", []).append(region)
    return list(found.values())


def _add_region(sheet: PreviewText, region: Region, note: str, share: int) -> bool:
    first = cut_line(with_line_number(region.lines[0]) + note, min(LINE_BYTES, share - 1))
    if not first or not sheet.add(first):
        return False
    before = 1
    for place in _choose_lines(region.lines, share - byte_size(first) - 1):
        if place > before:
            sheet.add(GAP_MARK)
        sheet.add(with_line_number(region.lines[place]))
        before = place + 1
    return True


def _choose_lines(lines: Sequence[EvidenceLine], room: int) -> list[int]:
    """Return the indexes of the lines that fit besides the first, the most telling ones first. Each may need a gap."""
    order = sorted(range(1, len(lines)), key=lambda place: (not TELLING_LINE.match(lines[place].text), place))
    chosen = []
    for place in order:
        cost = byte_size(cut_line(with_line_number(lines[place]), LINE_BYTES)) + byte_size(GAP_MARK) + 2
        if cost <= room:
            chosen.append(place)
            room -= cost
    return sorted(chosen)


def with_line_number(line: EvidenceLine) -> str:
    """Prefix the line with its number; lines with number 0 come from something that has no lines."""
    return f"{line.number}: {line.text}" if line.number else line.text


INCOMPLETE_KEY = "incomplete"  # key of the line with which a source says what is missing from its list
FAILED_STATUSES = frozenset({"failed", "failure", "error"})
_LISTED_AS_FAILED = Blame(
    FailureClass.UNKNOWN, "listed-as-failed", 0.0, "The list says that it failed; its log says why."
)


class JsonLineReader:
    """Reads a JSON list with one object per line, as the sources write it; keeps what failed and counts the rest.

    Keeps Tekton objects as runs. Of records with a status (jobs, commit statuses, pipelines) it keeps the failed ones
    with the number of their line.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False
        self._number = 0
        self._runs: list[TektonRun] = []
        self._passed = 0
        self._states: Counter[str] = Counter()
        self._bad: list[Region] = []
        self._unkept = 0
        self._gaps: list[str] = []

    def feed(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._append(first)
        for piece in others:
            self._finish_line()
            self._append(piece)

    def _append(self, piece: bytes) -> None:
        self._skipping = self._skipping or len(self._rest) + len(piece) > OBJECT_BYTES
        if self._skipping:
            self._rest.clear()
        else:
            self._rest += piece

    def _finish_line(self) -> None:
        self._number += 1
        line, self._rest = bytes(self._rest), bytearray()
        if self._skipping:
            self._skipping = False
            self._states["too long to be read"] += 1
        elif line.strip():
            self._record_line(line, parse_object(line))

    def _record_line(self, line: bytes, said: JsonObject | None) -> None:
        if said is None:
            return
        if found := read_objects(said).runs:
            for run in found:
                self._record_run(run)
        elif gap := text_at(said, INCOMPLETE_KEY):
            self._gaps.append(gap[:STATUS_CHARS])
        elif status := text_at(said, "status"):
            self._record_status(line, status[:40])

    def _record_run(self, run: TektonRun) -> None:
        """Count a run that passed, unless a test result in it reports failures; keep any other run."""
        good = run.state in {TektonState.PASSED, TektonState.SKIPPED}
        tasks = any(task.state is TektonState.FAILED or failing_test_output(task.results) for task in run.tasks)
        if good and not tasks and not failing_test_output(run.results):
            self._passed += 1
        elif len(self._runs) < RECORDS_KEPT:
            self._runs.append(run)
        else:
            self._unkept += 1

    def _record_status(self, line: bytes, status: str) -> None:
        self._states[status] += 1
        if status in FAILED_STATUSES:
            if len(self._bad) < RECORDS_KEPT:
                lines = (EvidenceLine(self._number, line.decode("utf-8", "replace")[:STATUS_CHARS]),)
                self._bad.append(
                    Region(lines, RegionKind.OTHER, _LISTED_AS_FAILED, f"#{self._number}", 1.0, _LISTED_AS_FAILED.rule)
                )
            else:
                self._unkept += 1

    def end(self) -> None:
        """Accept a last line without a line feed if it is complete JSON."""
        if self._rest and parse_object(bytes(self._rest)) is not None:
            self._finish_line()

    @property
    def recognised(self) -> bool:
        return bool(self._runs or self._passed or self._states)

    @property
    def tekton_objects(self) -> TektonObjects:
        """The Tekton runs that did not pass, or in which a test failed."""
        return TektonObjects(recognised=bool(self._runs or self._passed), runs=combine_runs(self._runs))

    @property
    def records(self) -> tuple[Region, ...]:
        return tuple(self._bad)

    @property
    def dropped(self) -> int:
        return self._unkept

    @property
    def summary_lines(self) -> list[str]:
        counted = ", ".join(f"{count} {status}" for status, count in self._states.most_common(12))
        lines = [f"A list of {self._number} lines: {counted}"] if counted else []
        if self._passed:
            lines.append(f"{self._passed} more Tekton {'run' if self._passed == 1 else 'runs'} passed")
        return [*(f"Incomplete: {gap}" for gap in self._gaps[:5]), *lines]


def parse_object(line: bytes) -> JsonObject | None:
    """Return None if the line is not a JSON object."""
    try:
        said = decode_lenient_json(line)
    except InvalidJson:
        return None
    return object_at(said) if isinstance(said, dict) else None


_OUTCOME_BY_STATUS = {str(outcome): outcome for outcome in BAD_OUTCOMES}


class JsonSuiteReader:
    """Collects the failed tests of a test report in JSON with one suite per line, as the GitLab source writes it.

    Holds one line and at most `CASES_KEPT` failures at a time.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skipping = False
        self._number = 0
        self._recognised = False
        self._cases: list[ReportedCase] = []

    def feed(self, chunk: bytes) -> None:
        first, *others = chunk.split(b"\n")
        self._append(first)
        for piece in others:
            self._finish_line()
            self._append(piece)

    def end(self) -> None:
        """Accept a last line without a line feed."""
        if self._rest:
            self._finish_line()

    @property
    def recognised(self) -> bool:
        return self._recognised

    @property
    def cases(self) -> tuple[ReportedCase, ...]:
        return tuple(self._cases)

    def _append(self, piece: bytes) -> None:
        """Append to the current line; skip a suite that is longer than `OBJECT_BYTES`."""
        self._skipping = self._skipping or len(self._rest) + len(piece) > OBJECT_BYTES
        if self._skipping:
            self._rest.clear()
        else:
            self._rest += piece

    def _finish_line(self) -> None:
        self._number += 1
        line, self._rest, skipped, self._skipping = bytes(self._rest), bytearray(), self._skipping, False
        suite = None if skipped or b'"test_cases"' not in line else parse_object(line)
        listed = suite.get("test_cases") if suite is not None else None
        if suite is None or not isinstance(listed, list):
            return
        self._recognised = True
        self._cases += list(_find_failed_cases(_field_text(suite, "name"), listed, self._number))[
            : CASES_KEPT - len(self._cases)
        ]


def _find_failed_cases(suite: str, listed: list[Any], number: int) -> Iterator[ReportedCase]:
    for raw in listed:
        outcome = _OUTCOME_BY_STATUS.get(_field_text(raw, "status")) if isinstance(raw, dict) else None
        if outcome is not None:
            yield _make_case(suite, raw, outcome, number)


def _make_case(suite: str, raw: dict[str, Any], outcome: CaseOutcome, number: int) -> ReportedCase:
    said = (
        _field_text(raw, "system_output", CASE_BODY_CHARS) or _field_text(raw, "stack_trace", CASE_BODY_CHARS)
    ).splitlines()
    return ReportedCase(
        suite=suite,
        name=_field_text(raw, "name"),
        outcome=outcome,
        at=number,
        classname=_field_text(raw, "classname"),
        file=_field_text(raw, "file"),
        body=tuple(EvidenceLine(number, line) for line in said if line.strip()),
    )


def _field_text(raw: Any, name: str, most: int = CASE_FIELD_CHARS) -> str:
    value = raw.get(name)
    return value[:most] if isinstance(value, str) else ""


class ReportPreview:
    """Preview of a test report in XML. Its memory is bounded however long the report is."""

    def __init__(self) -> None:
        self._reader = ReportReader()

    def feed(self, chunk: bytes) -> None:
        self._reader.feed(chunk)

    @property
    def recognised(self) -> bool:
        return self._reader.report.recognised

    def text(self, budget_bytes: int) -> str:
        report = self._reader.report
        if not report.recognised:
            return ""
        return preview_regions(
            summarize_report(report), report_cases.regions_from_report(report), budget_bytes, report.dropped
        )


class ObjectPreview:
    """Preview of Tekton objects in JSON.

    Either one document (a PipelineRun, a TaskRun, a Pod or a list of them), held whole and so limited in size, or a
    list with one object per line, of any length.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._too_long = False
        self._found: TektonObjects | None = None
        self._lines: JsonLineReader | None = None
        self._first_seen = False

    def feed(self, chunk: bytes) -> None:
        if self._lines is not None:
            self._lines.feed(chunk)
            return
        self._found = None
        self._too_long = self._too_long or len(self._held) + len(chunk) > OBJECT_BYTES
        if not self._first_seen and b"\n" in chunk and not self._too_long:
            self._first_seen = True
            self._lines = _start_json_lines(bytes(self._held) + chunk)
        if self._too_long or self._lines is not None:
            self._held.clear()
        else:
            self._held += chunk

    @property
    def recognised(self) -> bool:
        if self._lines is not None:
            self._lines.end()
            return self._lines.recognised
        return self._parse_objects().recognised

    def text(self, budget_bytes: int) -> str:
        if not self.recognised:
            return ""
        if (lines := self._lines) is None:
            return _preview_runs([], self._parse_objects(), budget_bytes)
        if lines.tekton_objects.recognised:
            return _preview_runs(lines.summary_lines, lines.tekton_objects, budget_bytes, lines.dropped)
        return preview_regions(lines.summary_lines, lines.records, budget_bytes, lines.dropped)

    @property
    def failures(self) -> tuple[Region, ...]:
        """Failures of Tekton runs only. A record that a list merely calls failed has no text to fingerprint."""
        found = self._parse_objects() if self._lines is None else self._lines.tekton_objects
        return run_regions.regions_from_runs(found)

    def _parse_objects(self) -> TektonObjects:
        if self._found is None:
            self._found = read_objects(parse_json(bytes(self._held)))
        return self._found


def _start_json_lines(text: bytes) -> JsonLineReader | None:
    """Return a reader if the first line alone is a JSON object, which means one object per line."""
    if parse_object(text[: text.index(b"\n")].removeprefix(b"\xef\xbb\xbf")) is None:
        return None
    lines = JsonLineReader()
    lines.feed(text)
    return lines


def _preview_runs(before: list[str], found: TektonObjects, budget: int, unkept: int = 0) -> str:
    head = [*before, *run_regions.summarize_runs(found)] if found.runs or not before else before
    return preview_regions(head, run_regions.regions_from_runs(found), budget, unkept)


def parse_json(content: bytes) -> object:
    """Return None for what is not JSON, or nested deeper than Python can parse."""
    try:
        return decode_lenient_json(content.decode("utf-8-sig", "replace"))
    except InvalidJson:
        return None


def summarize_report(report: ParsedReport) -> list[str]:
    """Return the totals of the report, and what could not be read of it, as lines for people."""
    totals = report.totals
    parts = {
        "failed": totals.failed,
        "with errors": totals.errors,
        "flaky": totals.flaky,
        "passed": totals.passed,
        "skipped": totals.skipped,
        "other": totals.other,
    }
    counts = ", ".join(f"{count} {word}" for word, count in parts.items() if count)
    counts = counts or ("none named" if report.unnamed_failures else "none ran")
    said = f"; overall result: {report.overall_result}" if report.overall_result else ""
    lines = [f"Test report, {totals.cases} {'test' if totals.cases == 1 else 'tests'}: {counts}{said}"]
    if report.unnamed_failures:
        lines.append(describe_claimed_failures(report))
    if report.read_error:
        declared = f" It declares {report.declared} tests." if report.declared is not None else ""
        lines.append(f"Not all of the report could be read. {report.read_error}{declared}")
    return lines


def describe_claimed_failures(report: ParsedReport) -> str:
    """Return a sentence for a report that declares more failures than it names."""
    parts = {"failure": report.claim.failures, "error": report.claim.errors}
    told = " and ".join(f"{count} {word}{'' if count == 1 else 's'}" for word, count in parts.items() if count)
    if not report.totals.bad:
        return f"The report declares {told} without naming {'it' if report.claim.bad == 1 else 'them'}."
    return f"The report declares {told} and names only {report.totals.bad} of them."

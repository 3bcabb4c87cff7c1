"""Previews of test reports and of Tekton objects (T5, V7): the totals, then the failures.

They have the two verbs of a preview and one answer besides: whether this is such a thing at all. Whoever asks falls
back to the log engine when it is not. Knows nothing of files or of the model that reads it.
"""

import json

from hummingbird.domain.limits import OBJECT_BYTES
from hummingbird.evidence.json_lines import JsonLines, whole_object
from hummingbird.evidence.regions import Region
from hummingbird.evidence.reports import case_regions
from hummingbird.evidence.reports.junit import ReportReader
from hummingbird.evidence.reports.testcases import Report
from hummingbird.evidence.sheet import sheet_of
from hummingbird.evidence.tekton import run_regions
from hummingbird.evidence.tekton.objects import read
from hummingbird.evidence.tekton.runs import Found


class ReportPreview:
    """Of XML; holds a few failures, however long it is."""

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
        return sheet_of(summary(report), case_regions.regions_of(report), budget_bytes, report.unkept)


class ObjectPreview:
    """Of JSON that may be a PipelineRun, a TaskRun, a Pod or a list of them, held whole, so only up to a size; or of
    a list with one object a line, of any length."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._too_long = False
        self._found: Found | None = None
        self._lines: JsonLines | None = None
        self._first_seen = False

    def feed(self, chunk: bytes) -> None:
        if self._lines is not None:
            self._lines.feed(chunk)
            return
        self._found = None
        self._too_long = self._too_long or len(self._held) + len(chunk) > OBJECT_BYTES
        if not self._first_seen and b"\n" in chunk and not self._too_long:
            self._first_seen = True
            self._lines = _begun(bytes(self._held) + chunk)
        if self._too_long or self._lines is not None:
            self._held.clear()
        else:
            self._held += chunk

    @property
    def recognised(self) -> bool:
        if self._lines is not None:
            self._lines.end()
            return self._lines.recognised
        return self._read().recognised

    def text(self, budget_bytes: int) -> str:
        if not self.recognised:
            return ""
        if (lines := self._lines) is None:
            return _of_runs([], self._read(), budget_bytes)
        if lines.found.recognised:
            return _of_runs(lines.summary, lines.found, budget_bytes, lines.unkept)
        return sheet_of(lines.summary, lines.records, budget_bytes, lines.unkept)

    @property
    def failures(self) -> tuple[Region, ...]:
        """Of Tekton's runs alone: what a list merely calls failed says nothing by which it is known again."""
        found = self._read() if self._lines is None else self._lines.found
        return run_regions.regions_of(found)

    def _read(self) -> Found:
        if self._found is None:
            self._found = read(parsed(bytes(self._held)))
        return self._found


def _begun(text: bytes) -> JsonLines | None:
    """A list with one object a line is told by its first line."""
    if whole_object(text[: text.index(b"\n")].removeprefix(b"\xef\xbb\xbf")) is None:
        return None
    lines = JsonLines()
    lines.feed(text)
    return lines


def _of_runs(before: list[str], found: Found, budget: int, unkept: int = 0) -> str:
    head = [*before, *run_regions.summary(found)] if found.runs or not before else before
    return sheet_of(head, run_regions.regions_of(found), budget, unkept)


def parsed(content: bytes) -> object:
    """JSON, or nothing: what is not JSON, or nested deeper than Python likes, is not an object we know."""
    try:
        found: object = json.loads(content.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
    return found


def summary(report: Report) -> list[str]:
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
    counts = counts or ("none named" if report.unnamed else "none ran")
    said = f"; overall result: {report.finding}" if report.finding else ""
    lines = [f"Test report, {totals.cases} {'test' if totals.cases == 1 else 'tests'}: {counts}{said}"]
    if report.unnamed:
        lines.append(claimed(report))
    if report.broke:
        declared = f" It declares {report.declared} tests." if report.declared is not None else ""
        lines.append(f"Not all of the report could be read. {report.broke}{declared}")
    return lines


def claimed(report: Report) -> str:
    """For a report that has more failures than it names."""
    parts = {"failure": report.claim.failures, "error": report.claim.errors}
    told = " and ".join(f"{count} {word}{'' if count == 1 else 's'}" for word, count in parts.items() if count)
    if not report.totals.bad:
        return f"The report declares {told} without naming {'it' if report.claim.bad == 1 else 'them'}."
    return f"The report declares {told} and names only {report.totals.bad} of them."

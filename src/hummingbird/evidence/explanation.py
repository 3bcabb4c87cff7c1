"""Explain the output of a job in one pass, whether it is a log, a test report or Tekton objects.

The content decides which of the three it is. The answer has the same shape for all: an analysis with the best region
first, and for each region the lines that matter most.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hummingbird.core.limits import OBJECT_BYTES
from hummingbird.evidence.fingerprints import compute_fingerprint, has_telling_line
from hummingbird.evidence.logs.log_analysis import analyse_scored
from hummingbird.evidence.logs.log_preview import Baseline, LogPreview, ScoredLog
from hummingbird.evidence.regions import Blame, EvidenceAnalysis, EvidenceLine, FailureClass, Region, RegionKind
from hummingbird.evidence.report_preview import (
    TELLING_LINE,
    JsonSuiteReader,
    ObjectPreview,
    describe_claimed_failures,
    parse_json,
    summarize_report,
)
from hummingbird.evidence.reports import report_cases
from hummingbird.evidence.reports.junit import ReportReader
from hummingbird.evidence.reports.report_cases import ParsedReport, region_from_case
from hummingbird.evidence.tekton import object_reader, run_regions

_BLANK = b"\xef\xbb\xbf \t\r\n"
_TELLING_LINES = 6
_NOTHING_FAILED = Blame(FailureClass.UNKNOWN, "nothing-failed", 0.0, "It reports no failure.")
_FAILURES_UNNAMED = Blame(
    FailureClass.UNKNOWN, "failures-unnamed", 0.5,
    "The report counts failures and does not name the tests; the log of the job may.",
)  # fmt: skip


class JobOutputForm(StrEnum):
    """What kind of output was read."""

    LOG = "log"
    REPORT = "test report"
    TEKTON = "Tekton objects"


@dataclass(frozen=True, slots=True)
class OutputExplanation:
    """The analysis of one job's output."""

    form: JobOutputForm
    analysis: EvidenceAnalysis
    lead_lines: tuple[frozenset[int], ...]  # for each region, the indexes of its lines that matter most
    summary: tuple[str, ...] = ()  # what a report or an object says about itself
    used_baseline: bool = False  # whether the log was compared with the log of a green run


class OutputExplainer:
    """Feed it the whole output, then call `explain`."""

    def __init__(self, baseline: Baseline | None = None) -> None:
        self._compared = baseline is not None
        self._log = LogPreview(baseline)
        self._report: ReportReader | None = None
        self._objects: bytearray | None = None
        self._begun = False
        self._newlines = 0
        self._size = 0
        self._ended = True  # the last byte was a line feed

    @property
    def size(self) -> int:
        return self._size

    def feed(self, chunk: bytes) -> None:
        if not chunk:
            return
        if not self._begun:
            self._detect_form(chunk)
        self._size += len(chunk)
        self._newlines += chunk.count(b"\n")
        self._ended = chunk.endswith(b"\n")
        self._log.feed(chunk)
        if self._report:
            self._report.feed(chunk)
        if self._objects is not None:
            self._hold_objects(chunk)

    def explain(self) -> OutputExplanation:
        return self._explain_report() or self._explain_objects() or self._explain_log()

    def _detect_form(self, chunk: bytes) -> None:
        start = chunk.lstrip(_BLANK)[:1]
        self._begun = bool(start)
        if start in {b"<", b"\0"}:
            self._report = ReportReader()
        elif start in {b"{", b"["}:
            self._objects = bytearray()

    def _hold_objects(self, chunk: bytes) -> None:
        assert self._objects is not None
        if len(self._objects) + len(chunk) > OBJECT_BYTES:
            self._objects = None
        else:
            self._objects += chunk

    def _explain_report(self) -> OutputExplanation | None:
        report = self._report.report if self._report else None
        if report is None or not report.recognised:
            return None
        regions = (*_region_for_unnamed_failures(report), *report_cases.regions_from_report(report))
        return self._explain_regions(JobOutputForm.REPORT, regions, summarize_report(report))

    def _explain_objects(self) -> OutputExplanation | None:
        found = object_reader.read_objects(parse_json(bytes(self._objects))) if self._objects else None
        if found is None or not found.recognised:
            return None
        return self._explain_regions(
            JobOutputForm.TEKTON, run_regions.regions_from_runs(found), run_regions.summarize_runs(found)
        )

    def _explain_regions(
        self, form: JobOutputForm, regions: tuple[Region, ...], said: Sequence[str]
    ) -> OutputExplanation:
        lines = self._newlines + (not self._ended)
        analysis = EvidenceAnalysis(regions, _overall_blame(regions), lines, self._size)
        return OutputExplanation(form, analysis, tuple(map(_telling_lines, regions)), tuple(said))

    def _explain_log(self) -> OutputExplanation:
        looked = self._log.score()
        analysis = analyse_scored(looked)
        leads = tuple(_lead_lines(looked, region) for region in analysis.regions)
        return OutputExplanation(JobOutputForm.LOG, analysis, leads, used_baseline=self._compared)


def _region_for_unnamed_failures(report: ParsedReport) -> tuple[Region, ...]:
    """Make one region from the declared number of failures when the report names no failed test."""
    if report.totals.bad or not report.unnamed_failures:
        return ()
    said = describe_claimed_failures(report)
    line = EvidenceLine(report.claim.at, said)
    score = report_cases.BROKEN_SCORE
    return (
        Region((line,), RegionKind.TEST, _FAILURES_UNNAMED, compute_fingerprint([said]), score, _FAILURES_UNNAMED.rule),
    )


def _overall_blame(regions: Sequence[Region]) -> Blame:
    """Return the most confident blame of the commonest class among the regions with the top score."""
    if not regions:
        return _NOTHING_FAILED
    best = [region.blame for region in regions if region.score == regions[0].score]
    class_, _ = Counter(blame.class_ for blame in best).most_common(1)[0]
    return max((blame for blame in best if blame.class_ is class_), key=lambda blame: blame.confidence)


def _telling_lines(region: Region) -> frozenset[int]:
    """Return the index of the first line, which names what failed, and of the lines that say why."""
    telling = [place for place, line in enumerate(region.lines) if place and TELLING_LINE.match(line.text)]
    return frozenset([0, *telling[:_TELLING_LINES]])


def _lead_lines(looked: ScoredLog, region: Region) -> frozenset[int]:
    """Return the indexes of the lines from which the region grew: those whose score is the region's score."""
    worth = dict(zip(looked.rows.numbers, looked.standing.lead, strict=True))
    found = [place for place, line in enumerate(region.lines) if round(worth[line.number], 2) == region.score]
    return frozenset(found or [0])


# `FailureDetector` is stricter than a preview. A preview shows the best lines there are; the detector returns only what
# certainly is a failure, because others remember failures by their fingerprints.

# Minimum score of a test or task. Those that failed only because of others, or passed in the end, have less.
_MIN_SCORE = 0.75
_TAIL_BYTES = 2_000
_JOB_SUCCEEDED = re.compile(rb"(?:^|[\r\n\x1b\x20Km;0-9\[])Job succeeded(?:\x1b\[[0-9;]*[mK]|\s)*\Z")
_LINES_ABOVE = 3
_ERROR_WORDS = re.compile(r"(?i)error|fatal|exception|panick|failed|cannot|could not|unable|not found")


@dataclass(frozen=True, slots=True)
class CertainFailure:
    """A region that certainly is a failure; `title` is the line that says most about it."""

    region: Region
    title: str


class FailureDetector:
    """Feed it the whole output of a job, then call `find_failures` once."""

    def __init__(self) -> None:
        self._explaining = OutputExplainer()
        self._objects = ObjectPreview()
        self._suites = JsonSuiteReader()
        self._first = b""
        self._tail = b""
        self._explained: OutputExplanation | None = None

    def feed(self, chunk: bytes) -> None:
        self._first = self._first or chunk.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
        self._explaining.feed(chunk)
        if self._first in (b"{", b"["):
            self._objects.feed(chunk)
            self._suites.feed(chunk)

    def find_failures(self) -> tuple[CertainFailure, ...]:
        """Return the failures that have a fingerprint, best first."""
        found = self._find_in_lists() if self._first in (b"{", b"[") else None
        return tuple(one for one in (self._find_in_explanation() if found is None else found) if one.region.fingerprint)

    @property
    def analysis(self) -> EvidenceAnalysis:
        """Everything that stands out, whether it certainly is a failure or not."""
        return self._explanation().analysis

    def _explanation(self) -> OutputExplanation:
        if self._explained is None:
            self._explained = self._explaining.explain()
        return self._explained

    def _find_in_lists(self) -> list[CertainFailure] | None:
        """Return None if the input is neither a list of test suites nor of Tekton objects."""
        self._suites.end()
        if self._suites.recognised:
            return [_failure_from_first_line(region_from_case(case)) for case in self._suites.cases]
        if not self._objects.recognised:
            return None
        return [_failure_from_first_line(region) for region in self._objects.failures if region.score >= _MIN_SCORE]

    def _find_in_explanation(self) -> Iterator[CertainFailure]:
        if _JOB_SUCCEEDED.search(self._tail):
            return
        explained = self._explanation()
        regions = explained.analysis.regions
        if explained.form is not JobOutputForm.LOG:
            yield from (_failure_from_first_line(region) for region in regions if region.score >= _MIN_SCORE)
            return
        sure = [place for place, region in enumerate(regions) if _is_failure(region)]
        telling = [place for place in sure if regions[place].kind is not RegionKind.SUMMARY]
        for place in telling or sure[:1]:
            yield CertainFailure(
                regions[place], _failure_title(regions[place], min(explained.lead_lines[place], default=0))
            )


def _is_failure(region: Region) -> bool:
    """Tell whether the region looks like a failure or has something to blame; any other region only stood out.

    An exit status or an empty summary is no failure of its own: all failed jobs have one, so it identifies none.
    """
    if region.kind is RegionKind.EXIT or (region.kind is RegionKind.SUMMARY and region.score <= 0):
        return False
    if not has_telling_line([line.text for line in region.lines]):
        return False
    return region.kind is not RegionKind.OTHER or region.blame.class_ is not FailureClass.UNKNOWN


def _failure_title(region: Region, lead: int) -> str:
    """Return the lead line, or one just above it if only that one says what went wrong."""
    texts = [line.text.strip() for line in region.lines]
    above = [
        text
        for text in (texts[lead], *reversed(texts[max(0, lead - _LINES_ABOVE) : lead]))
        if _ERROR_WORDS.search(text)
    ]
    return above[0] if above else texts[lead]


def _failure_from_first_line(region: Region) -> CertainFailure:
    return CertainFailure(region, region.lines[0].text)

"""Whatever came out of a job, explained in one pass: a log, a test report or Tekton objects, told apart by content.

Gives the same answer for all of them: an analysis, best region first, and which lines of each region lead. Knows
nothing of files, nor of how the answer is shown.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hummingbird.domain.limits import OBJECT_BYTES
from hummingbird.evidence.fingerprint import fingerprint
from hummingbird.evidence.logs.analysing import analysed
from hummingbird.evidence.logs.baseline import Baseline
from hummingbird.evidence.logs.looked import Looked
from hummingbird.evidence.logs.preview import LogPreview
from hummingbird.evidence.regions import Analysis, Blame, Class, Kind, Line, Region
from hummingbird.evidence.reports import case_regions
from hummingbird.evidence.reports.junit import ReportReader
from hummingbird.evidence.reports.testcases import Report
from hummingbird.evidence.sheet import TELLING
from hummingbird.evidence.structured import claimed, parsed, summary
from hummingbird.evidence.tekton import objects, run_regions

_BLANK = b"\xef\xbb\xbf \t\r\n"
_TELLING_LINES = 6
_NOTHING_FAILED = Blame(Class.UNKNOWN, "nothing-failed", 0.0, "It reports no failure.")
_UNNAMED = Blame(
    Class.UNKNOWN, "failures-unnamed", 0.5,
    "The report counts failures and does not name the tests; the log of the job may.",
)  # fmt: skip


class Form(StrEnum):
    """What it is that was read."""

    LOG = "log"
    REPORT = "test report"
    TEKTON = "Tekton objects"


@dataclass(frozen=True, slots=True)
class Explained:
    form: Form
    analysis: Analysis
    leads: tuple[frozenset[int], ...]  # for each region, the places of those of its lines that matter most
    summary: tuple[str, ...] = ()  # what a report or an object says of itself
    compared: bool = False  # with a baseline


class Explaining:
    """Feed it everything, then ask."""

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
            self._begin(chunk)
        self._size += len(chunk)
        self._newlines += chunk.count(b"\n")
        self._ended = chunk.endswith(b"\n")
        self._log.feed(chunk)
        if self._report:
            self._report.feed(chunk)
        if self._objects is not None:
            self._hold(chunk)

    def explained(self) -> Explained:
        return self._as_report() or self._as_objects() or self._as_log()

    def _begin(self, chunk: bytes) -> None:
        start = chunk.lstrip(_BLANK)[:1]
        self._begun = bool(start)
        if start in {b"<", b"\0"}:
            self._report = ReportReader()
        elif start in {b"{", b"["}:
            self._objects = bytearray()

    def _hold(self, chunk: bytes) -> None:
        assert self._objects is not None
        if len(self._objects) + len(chunk) > OBJECT_BYTES:
            self._objects = None
        else:
            self._objects += chunk

    def _as_report(self) -> Explained | None:
        report = self._report.report if self._report else None
        if report is None or not report.recognised:
            return None
        regions = (*_unnamed(report), *case_regions.regions_of(report))
        return self._structured(Form.REPORT, regions, summary(report))

    def _as_objects(self) -> Explained | None:
        found = objects.read(parsed(bytes(self._objects))) if self._objects else None
        if found is None or not found.recognised:
            return None
        return self._structured(Form.TEKTON, run_regions.regions_of(found), run_regions.summary(found))

    def _structured(self, form: Form, regions: tuple[Region, ...], said: Sequence[str]) -> Explained:
        lines = self._newlines + (not self._ended)
        analysis = Analysis(regions, _spokesman(regions), lines, self._size)
        return Explained(form, analysis, tuple(map(_telling, regions)), tuple(said))

    def _as_log(self) -> Explained:
        looked = self._log.looked()
        analysis = analysed(looked)
        leads = tuple(_leads(looked, region) for region in analysis.regions)
        return Explained(Form.LOG, analysis, leads, compared=self._compared)


def _unnamed(report: Report) -> tuple[Region, ...]:
    """Where no failure is named at all, the number alone has to stand for them."""
    if report.totals.bad or not report.unnamed:
        return ()
    said = claimed(report)
    line = Line(report.claim.at, said)
    score = case_regions.BROKEN_SCORE
    return (Region((line,), Kind.TEST, _UNNAMED, fingerprint([said]), score, _UNNAMED.rule),)


def _spokesman(regions: Sequence[Region]) -> Blame:
    """Of the regions that count most, the class that most of them are of, as sure as the surest of those."""
    if not regions:
        return _NOTHING_FAILED
    best = [region.blame for region in regions if region.score == regions[0].score]
    class_, _ = Counter(blame.class_ for blame in best).most_common(1)[0]
    return max((blame for blame in best if blame.class_ is class_), key=lambda blame: blame.sure)


def _telling(region: Region) -> frozenset[int]:
    """What failed, and the lines that say why."""
    telling = [place for place, line in enumerate(region.lines) if place and TELLING.match(line.text)]
    return frozenset([0, *telling[:_TELLING_LINES]])


def _leads(looked: Looked, region: Region) -> frozenset[int]:
    """A region has the score of the line that it grew from."""
    worth = dict(zip(looked.rows.numbers, looked.standing.lead, strict=True))
    found = [place for place, line in enumerate(region.lines) if round(worth[line.number], 2) == region.score]
    return frozenset(found or [0])

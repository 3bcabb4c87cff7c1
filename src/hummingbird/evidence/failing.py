"""What a job's output says that failed, and by what that is known again (V6): for those who remember failures.

Stricter than a preview: where a preview shows the best there is, this gives only what is a failure for sure. Takes
logs, test reports and Tekton's objects as they stream by, told apart by content. Knows nothing of tools, nor of who
remembers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hummingbird.evidence.explaining import Explained, Explaining, Form
from hummingbird.evidence.fingerprint import tells
from hummingbird.evidence.regions import Analysis, Class, Kind, Region
from hummingbird.evidence.reports.case_regions import region_of
from hummingbird.evidence.reports.listed import ListedSuites
from hummingbird.evidence.structured import ObjectPreview

_LEAST_SCORE = 0.75  # of a test or a task: less have those that others dragged along, or that passed in the end
_TAIL_BYTES = 2_000
_WENT_WELL = re.compile(rb"(?:^|[\r\n\x1b\x20Km;0-9\[])Job succeeded(?:\x1b\[[0-9;]*[mK]|\s)*\Z")
_ABOVE = 3  # lines
_WRONG = re.compile(r"(?i)error|fatal|exception|panick|failed|cannot|could not|unable|not found")


@dataclass(frozen=True, slots=True)
class Failed:
    """`title` is the one line that tells most."""

    region: Region
    title: str


class Failing:
    """Feed it everything, then ask once."""

    def __init__(self) -> None:
        self._explaining = Explaining()
        self._objects = ObjectPreview()
        self._suites = ListedSuites()
        self._first = b""
        self._tail = b""
        self._explained: Explained | None = None

    def feed(self, chunk: bytes) -> None:
        self._first = self._first or chunk.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
        self._explaining.feed(chunk)
        if self._first in (b"{", b"["):
            self._objects.feed(chunk)
            self._suites.feed(chunk)

    def failed(self) -> tuple[Failed, ...]:
        """The best first; each has a fingerprint."""
        found = self._listed() if self._first in (b"{", b"[") else None
        return tuple(one for one in (self._told() if found is None else found) if one.region.fingerprint)

    @property
    def analysis(self) -> Analysis:
        """All that stands out, sure or not."""
        return self._whole().analysis

    def _whole(self) -> Explained:
        if self._explained is None:
            self._explained = self._explaining.explained()
        return self._explained

    def _listed(self) -> list[Failed] | None:
        """None: it is neither a list of suites nor one of Tekton's objects."""
        self._suites.end()
        if self._suites.recognised:
            return [_first_line(region_of(case)) for case in self._suites.cases]
        if not self._objects.recognised:
            return None
        return [_first_line(region) for region in self._objects.failures if region.score >= _LEAST_SCORE]

    def _told(self) -> Iterator[Failed]:
        if _WENT_WELL.search(self._tail):
            return
        explained = self._whole()
        regions = explained.analysis.regions
        if explained.form is not Form.LOG:
            yield from (_first_line(region) for region in regions if region.score >= _LEAST_SCORE)
            return
        sure = [place for place, region in enumerate(regions) if _is_failure(region)]
        telling = [place for place in sure if regions[place].kind is not Kind.SUMMARY]
        for place in telling or sure[:1]:
            yield Failed(regions[place], _title(regions[place], min(explained.leads[place], default=0)))


def _is_failure(region: Region) -> bool:
    """It looks like one, or somebody is to blame for it; what does neither only stood out. That a job failed, and with
    which status, is true of all of them: by that none is known again."""
    if region.kind is Kind.EXIT or (region.kind is Kind.SUMMARY and region.score <= 0):
        return False
    if not tells([line.text for line in region.lines]):
        return False
    return region.kind is not Kind.OTHER or region.blame.class_ is not Class.UNKNOWN


def _title(region: Region, lead: int) -> str:
    """The line that it grew from; or one just above, if that says what went wrong and this does not."""
    texts = [line.text.strip() for line in region.lines]
    above = [text for text in (texts[lead], *reversed(texts[max(0, lead - _ABOVE) : lead])) if _WRONG.search(text)]
    return above[0] if above else texts[lead]


def _first_line(region: Region) -> Failed:
    return Failed(region, region.lines[0].text)

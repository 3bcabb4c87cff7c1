"""A log as far as the conversation has shown it: pieces with their line numbers put together, and what the evidence
engine makes of them. Knows no tool."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from hummingbird.adapters.models.digest.reading import UNKNOWN, Shown
from hummingbird.evidence.regions import Analysis, Blame, Class, Line, Region
from hummingbird.evidence.reports import case_regions, junit
from hummingbird.evidence.reports.testcases import BAD

Analyse: TypeAlias = Callable[[str], Analysis]

GAP = Line(UNKNOWN, "[…]")
NOTHING = Analysis((), Blame(Class.UNKNOWN, "nothing read", 0.0, "Nothing of it could be read."), 0, 0)


@dataclass
class Log:
    """`key` is the id that it was asked for by, empty where there is only one. `looks`: how often a file of it was
    searched. `errors`: why something of it could not be read."""

    key: str
    kind: str = "job"
    numbered: dict[int, str] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    whole: bool = True
    looks: int = 0
    read: bool = False

    def add(self, part: Shown) -> None:
        self.read = True
        self.whole = self.whole and part.whole
        if part.path and part.path not in self.paths:
            self.paths.append(part.path)
        self.learn(part.lines())

    def learn(self, lines: Iterable[Line]) -> None:
        for line in lines:
            if line.number == UNKNOWN:
                self.loose.append(line.text)
            elif len(line.text) >= len(self.numbered.get(line.number, "")):
                self.numbered[line.number] = line.text

    def lines(self) -> list[Line]:
        """In their order; an empty line stands for what was left out."""
        found: list[Line] = []
        for number in sorted(self.numbered):
            if found and number > found[-1].number + 1:
                found.append(Line(UNKNOWN, ""))
            found.append(Line(number, self.numbered[number]))
        return [*found, *(Line(UNKNOWN, text) for text in self.loose)]

    def analysed(self, analyse: Analyse) -> Analysis:
        """With the numbers that the lines have in the log, not in the pieces of it."""
        lines = self.lines()
        if not any(line.text.strip() for line in lines):
            return NOTHING
        text = "\n".join(line.text for line in lines)
        analysis = _of_report(text) if text.lstrip().startswith("<") else None
        analysis = analysis or analyse(text)
        return replace(analysis, regions=tuple(_placed(region, lines) for region in analysis.regions))


def failed_test_logs(log: Log) -> list[str]:
    """Where a test report says that the output of its failed tests is."""
    text = "\n".join(line.text for line in log.lines())
    if not text.lstrip().startswith("<"):
        return []
    bad = (case for case in junit.read([text.encode("utf-8", "replace")]).cases if case.outcome in BAD)
    return [link.href for case in bad for link in case.logs]


def _of_report(text: str) -> Analysis | None:
    """A test report of XML says in its own way what failed."""
    report = junit.read([text.encode("utf-8", "replace")])
    regions = case_regions.regions_of(report) if report.recognised else ()
    return Analysis(regions, regions[0].blame, text.count("\n") + 1, len(text)) if regions else None


def place_of(region: Region) -> int:
    """The first of its lines whose number is known."""
    return next((line.number for line in region.lines if line.number != UNKNOWN), UNKNOWN)


def _placed(region: Region, lines: list[Line]) -> Region:
    """What was left out at its ends is no part of it; between its lines it is marked."""
    moved = [Line(_number(line.number, lines), line.text) for line in region.lines]
    solid = [at for at, line in enumerate(moved) if line.number != UNKNOWN or line.text.strip()]
    kept = moved[solid[0] : solid[-1] + 1] if solid else moved
    return replace(region, lines=tuple(line if line.number or line.text.strip() else GAP for line in kept))


def _number(seen: int, lines: list[Line]) -> int:
    return lines[seen - 1].number if 0 < seen <= len(lines) else UNKNOWN

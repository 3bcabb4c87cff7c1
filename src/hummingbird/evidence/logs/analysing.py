"""From a log to ranked regions: what each looks like, what is to blame, and what it will be recognised by (V3–V6)."""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from hummingbird.evidence.blame.classify import classify, judge
from hummingbird.evidence.blame.rules import PASSING_RULES
from hummingbird.evidence.fingerprint import fingerprint
from hummingbird.evidence.logs.baseline import Baseline
from hummingbird.evidence.logs.bits import bit
from hummingbird.evidence.logs.choosing import Chooser
from hummingbird.evidence.logs.cues import Sort
from hummingbird.evidence.logs.looked import TROUBLE, Looked
from hummingbird.evidence.logs.preview import LogPreview
from hummingbird.evidence.regions import INTERMITTENT, PASSING_KINDS, SURE, Analysis, Blame, Class, Kind, Line, Region

MOST_REGIONS = 12
_BYTES = 24 * 1024
_SHARE = 0.12
_LEAST = -1.5  # below this a region is a guess
_TAIL = 12
_NEAR = 12
_BELOW = 200  # lines of one file at most that are looked over for its name
_KINDS = (
    (Sort.MEMORY, Kind.MEMORY), (Sort.SPACE, Kind.QUOTA), (Sort.RUNNER, Kind.RUNNER), (Sort.NETWORK, Kind.NETWORK),
    (Sort.TIMEOUT, Kind.TIMEOUT), (Sort.HEAD, Kind.TEST), (Sort.LINT, Kind.LINT), (Sort.COMPILER, Kind.COMPILER),
    (Sort.SETTING, Kind.DEPENDENCY), (Sort.THROWN, Kind.TRACE), (Sort.FRAME, Kind.TRACE),
    (Sort.SUMMARY, Kind.SUMMARY), (Sort.CASCADE, Kind.EXIT),
)  # fmt: skip
_Kinds: TypeAlias = tuple[tuple[Sort, Kind], ...]
_LASTING_KINDS = tuple((sort, kind) for sort, kind in _KINDS if kind not in PASSING_KINDS)
_REFUSED = bit(Sort.COMPILER, Sort.PLACE)  # a place in the code: what its words mean is the compiler's affair
_UNDER_A_FILE = re.compile(r"\s+\d+:\d+\s+\S")  # `  12:5  error  ...`, as eslint lists what is wrong in a file
_FILE = re.compile(r"(?:[A-Za-z]:)?[\w@.+-]*(?:[/\\][\w@.+ ()\[\]-]+)+\.\w{1,8}\Z")
_NOTHING = Blame(Class.UNKNOWN, "nothing-found", 0.0, "Nothing in this log looks like a failure.")


def analyse(text: str, *, baseline: str | None = None, most_regions: int = MOST_REGIONS) -> Analysis:
    """Best region first. With the same job's green log, what is new counts for more."""
    reading = LogPreview(None if baseline is None else Baseline.of(baseline))
    reading.feed(text.encode("utf-8", "replace"))
    return analysed(reading.looked(), most_regions)


def analysed(looked: Looked, most_regions: int = MOST_REGIONS) -> Analysis:
    if not looked.stands_out:
        return Analysis((), _NOTHING, looked.total, looked.size)
    chooser = Chooser(looked.rows, looked.standing, _BYTES, share=_SHARE, apart=True)
    chosen = chooser.choose(most_regions)
    found = [rows for rows in chosen if looked.standing.lead[rows[0]] >= _LEAST and _troubled(looked, rows)]
    found = found or chosen[:1]
    regions = tuple(_region(looked, rows) for rows in found)
    relevant = [line for region in regions for line in region.lines]
    tail = _tail(looked)
    blame = judge(relevant, tail)
    doubtful = blame.class_ in INTERMITTENT or blame.sure < SURE
    lasting = judge(relevant, tail, without=PASSING_RULES) if doubtful else None
    return Analysis(regions, blame, looked.total, looked.size, lasting)


def _troubled(looked: Looked, rows: Sequence[int]) -> bool:
    return _union(looked.rows.marks, rows) & TROUBLE > 0


def _region(looked: Looked, rows: Sequence[int]) -> Region:
    lead = rows[0]
    numbers, texts = looked.rows.numbers, looked.rows.texts
    files = _files(texts, rows)
    lines = tuple(Line(numbers[at], texts[at]) for at in sorted({*rows, *files.values()}))
    said = [line.text for line in lines]
    kind, rule = _kind(looked, rows)
    beside = _kind_of(_union(looked.rows.marks, rows[1:]), _LASTING_KINDS) if kind in PASSING_KINDS else None
    score = round(looked.standing.lead[lead], 2)
    return Region(
        lines,
        kind,
        classify(said, kind=kind),
        _fingerprint(texts, rows, files),
        score,
        rule,
        beside[0] if beside is not None else None,
    )


def _fingerprint(texts: Sequence[str], rows: Sequence[int], files: Mapping[int, int]) -> str:
    """Of the lines next to its lead: how far a region grew may differ in another run, what it grew from does not. Each
    with its file, where a tool names that once for all that is below it."""
    near = sorted(at for at in rows if abs(at - rows[0]) <= _NEAR)
    return fingerprint([f"{texts[files[at]]}:{texts[at].strip()}" if at in files else texts[at] for at in near])


def _files(texts: Sequence[str], rows: Sequence[int]) -> dict[int, int]:
    """Rows that stand below the name of a file, and where that stands."""
    found: dict[int, int] = {}
    for at in sorted(row for row in rows if _UNDER_A_FILE.match(texts[row])):
        above = at - 1
        while above >= max(0, at - _BELOW) and above not in found and _UNDER_A_FILE.match(texts[above]):
            above -= 1
        if above in found:
            found[at] = found[above]
        elif above >= 0 and _FILE.match(texts[above].strip()):
            found[at] = above
    return found


def _kind(looked: Looked, rows: Sequence[int]) -> tuple[Kind, str]:
    """By its lead line; where that says nothing, by what else is in it."""
    marks = looked.rows.marks
    lead, whole = marks[rows[0]], _union(marks, rows)
    return _kind_of(lead, _KINDS) or _kind_of(whole, _KINDS) or (Kind.OTHER, "context")


def _kind_of(mark: int, kinds: _Kinds) -> tuple[Kind, str] | None:
    if mark & _REFUSED == _REFUSED:
        return Kind.COMPILER, Sort.COMPILER.name.lower()
    return next(((kind, sort.name.lower()) for sort, kind in kinds if mark >> sort & 1), None)


def _union(marks: Sequence[int], rows: Sequence[int]) -> int:
    union = 0
    for at in rows:
        union |= marks[at]
    return union


def _tail(looked: Looked) -> list[Line]:
    """The last lines of the step that failed first."""
    end = looked.steps.ends(looked.total)[0]
    lines = [
        Line(number, text)
        for number, text in zip(looked.rows.numbers, looked.rows.texts, strict=True)
        if number <= end and text
    ]
    return lines[-_TAIL:]

"""Turn a log into ranked regions, each with its kind, its blame and its fingerprint."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TypeAlias

from hummingbird.evidence.classification.classifier import TRANSIENT_RULES, classify_job, classify_region
from hummingbird.evidence.fingerprints import compute_fingerprint
from hummingbird.evidence.logs.job_ending import estimate_failure
from hummingbird.evidence.logs.line_cues import LineSort, sort_bits
from hummingbird.evidence.logs.log_preview import TROUBLE_MARKS, Baseline, LineChooser, LogPreview, ScoredLog
from hummingbird.evidence.regions import (
    CONFIDENT,
    TRANSIENT_CLASSES,
    TRANSIENT_KINDS,
    Blame,
    EvidenceAnalysis,
    EvidenceLine,
    FailureClass,
    Region,
    RegionKind,
)

MAX_REGIONS = 12
_BYTES = 24 * 1024
_SHARE = 0.12
_MIN_SCORE = -1.5  # below this a region is a guess
_TAIL = 12
_NEAR = 12
_MAX_LINES_BELOW_FILE = 200  # how far above a line the name of its file is searched
_KINDS = (
    (LineSort.MEMORY, RegionKind.MEMORY), (LineSort.SPACE, RegionKind.QUOTA),
    (LineSort.RUNNER, RegionKind.RUNNER), (LineSort.NETWORK, RegionKind.NETWORK),
    (LineSort.TIMEOUT, RegionKind.TIMEOUT), (LineSort.HEAD, RegionKind.TEST),
    (LineSort.LINT, RegionKind.LINT), (LineSort.COMPILER, RegionKind.COMPILER),
    (LineSort.SETTING, RegionKind.DEPENDENCY), (LineSort.THROWN, RegionKind.TRACE), (LineSort.FRAME, RegionKind.TRACE),
    (LineSort.SUMMARY, RegionKind.SUMMARY), (LineSort.CASCADE, RegionKind.EXIT),
)  # fmt: skip
_FAILED_KINDS = frozenset(
    (RegionKind.TEST, RegionKind.COMPILER, RegionKind.LINT, RegionKind.TRACE, RegionKind.DEPENDENCY)
)
_KindTable: TypeAlias = tuple[tuple[LineSort, RegionKind], ...]
_LASTING_KINDS = tuple((sort, kind) for sort, kind in _KINDS if kind not in TRANSIENT_KINDS)
# An error with a place in the code is the compiler's, whatever other words the line has.
_COMPILER_AT_PLACE = sort_bits(LineSort.COMPILER, LineSort.PLACE)
_UNDER_A_FILE = re.compile(r"\s+\d+:\d+\s+\S")  # `  12:5  error  ...`, as eslint lists the problems of a file
_FILE = re.compile(r"(?:[A-Za-z]:)?[\w@.+-]*(?:[/\\][\w@.+ ()\[\]-]+)+\.\w{1,8}\Z")
# What GitLab's runner prints between the output of a script and the line that says how the job ended.
_AFTER_SCRIPT = re.compile(
    r"(?:Running after_script|Uploading artifacts for (?:failed|successful) job|Cleaning up project directory)"
)
_COMMAND, _GREEN = sort_bits(LineSort.COMMAND), sort_bits(LineSort.GREEN)
_RUNNER_ECHO = re.compile(r"##\[group\]Run |\[Pipeline\] (?:sh|bat|powershell)$")
# A command as shells echo it, but for those that clean up or look around after another one failed.
_ECHO = re.compile(
    r"(?:\$|\+{1,3}) (?!(?:exit|return|rm|echo|cat|kill|popd|pushd|cd|true|false|set|test|trap|local"
    r"|export|wait|sleep|ls|cp|mv"
    r"|printf|tail|head|find|df|ps|docker (?:logs|rm|stop|ps|kill|compose (?:down|logs)))\b)[A-Za-z./~][\w./~-]*(?: |$)"
)
_NOTHING_FOUND = Blame(FailureClass.UNKNOWN, "nothing-found", 0.0, "Nothing in this log looks like a failure.")


def analyse(text: str, *, baseline: str | None = None, most_regions: int = MAX_REGIONS) -> EvidenceAnalysis:
    """Analyse a whole log. With the green log of the same job as `baseline`, new lines count for more."""
    reading = LogPreview(None if baseline is None else Baseline.from_text(baseline))
    reading.feed(text.encode("utf-8", "replace"))
    return analyse_scored(reading.score(), most_regions)


def analyse_scored(looked: ScoredLog, most_regions: int = MAX_REGIONS) -> EvidenceAnalysis:
    """Choose the regions of a scored log, best first, and classify them."""
    if not looked.stands_out:
        return EvidenceAnalysis((), _NOTHING_FOUND, looked.total, looked.size)
    chooser = LineChooser(looked.rows, looked.standing, _BYTES, share=_SHARE, apart=True)
    chosen = chooser.choose(most_regions)
    found = [rows for rows in chosen if looked.standing.lead[rows[0]] >= _MIN_SCORE and _has_trouble(looked, rows)]
    found = found or chosen[:1]
    likely = estimate_failure(looked)
    regions = _put_telling_first([_doubt_region(_make_region(looked, rows), likely) for rows in found])
    bodies = dict(zip(looked.rows.numbers, looked.rows.bodies, strict=True))
    relevant = [EvidenceLine(line.number, bodies[line.number]) for region in regions for line in region.lines]
    begun = _find_last_command(looked)
    best = max((region.score for region in regions if region.last >= begun), default=regions[0].score)
    behind = {line.number: best - region.score for region in reversed(regions) for line in region.lines}
    tail = _tail_of_failed_step(looked)
    classify = partial(
        classify_job, relevant, tail, behind=behind, begun=begun, ended=looked.steps.ends(looked.total)[0]
    )
    blame = _doubt(classify(), likely)
    doubtful = blame.class_ in TRANSIENT_CLASSES or blame.confidence < CONFIDENT
    lasting = classify(without=TRANSIENT_RULES) if doubtful else None
    return EvidenceAnalysis(
        regions, blame, looked.total, looked.size, None if lasting is None else _doubt(lasting, likely)
    )


def _put_telling_first(regions: list[Region]) -> tuple[Region, ...]:
    """Put a first region that only says that something failed behind the best one that says what."""
    if not regions or regions[0].fingerprint:
        return tuple(regions)
    at = next((at for at, region in enumerate(regions) if region.fingerprint and region.kind in _FAILED_KINDS), 0)
    return (regions[at], *regions[:at], *regions[at + 1 :])


def _doubt_region(region: Region, likely: float) -> Region:
    return region if likely == 1 else replace(region, blame=_doubt(region.blame, likely))


def _doubt(blame: Blame, likely: float) -> Blame:
    """Nothing caused a failure that did not happen: be less confident where the log may be that of a passed job."""
    return blame if likely == 1 else replace(blame, confidence=round(blame.confidence * likely, 2))


def _has_trouble(looked: ScoredLog, rows: Sequence[int]) -> bool:
    return _union_of_marks(looked.rows.marks, rows) & TROUBLE_MARKS > 0


def _make_region(looked: ScoredLog, rows: Sequence[int]) -> Region:
    lead = rows[0]
    numbers, texts, bodies = looked.rows.numbers, looked.rows.texts, looked.rows.bodies
    files = _file_headings(bodies, rows)
    shown = sorted({*rows, *files.values()})
    lines = tuple(EvidenceLine(numbers[at], texts[at]) for at in shown)
    said = [bodies[at] for at in shown]
    kind, rule = _region_kind(looked, rows)
    beside = (
        _kind_from_mark(_union_of_marks(looked.rows.marks, rows[1:]), _LASTING_KINDS)
        if kind in TRANSIENT_KINDS
        else None
    )
    score = round(looked.standing.lead[lead], 2)
    return Region(
        lines,
        kind,
        classify_region(said, kind=kind),
        _region_fingerprint(bodies, rows, files),
        score,
        rule,
        beside[0] if beside is not None else None,
    )


def _region_fingerprint(texts: Sequence[str], rows: Sequence[int], files: Mapping[int, int]) -> str:
    """Compute the fingerprint from the lines near the lead line, each with its file where the tool prints that once.

    How far a region grows may differ in another run; its lead line does not.
    """
    near = sorted(at for at in rows if abs(at - rows[0]) <= _NEAR)
    return compute_fingerprint([f"{texts[files[at]]}:{texts[at].strip()}" if at in files else texts[at] for at in near])


def _file_headings(texts: Sequence[str], rows: Sequence[int]) -> dict[int, int]:
    """Map the rows below the name of a file to the row of that name."""
    found: dict[int, int] = {}
    for at in sorted(row for row in rows if _UNDER_A_FILE.match(texts[row])):
        above = at - 1
        while above >= max(0, at - _MAX_LINES_BELOW_FILE) and above not in found and _UNDER_A_FILE.match(texts[above]):
            above -= 1
        if above in found:
            found[at] = found[above]
        elif above >= 0 and _FILE.match(texts[above].strip()):
            found[at] = above
    return found


def _region_kind(looked: ScoredLog, rows: Sequence[int]) -> tuple[RegionKind, str]:
    """Return the kind of the lead line, or of the other lines if the lead has none, and the signal that gave it."""
    marks = looked.rows.marks
    lead, whole = marks[rows[0]], _union_of_marks(marks, rows)
    return _kind_from_mark(lead, _KINDS) or _kind_from_mark(whole, _KINDS) or (RegionKind.OTHER, "context")


def _kind_from_mark(mark: int, kinds: _KindTable) -> tuple[RegionKind, str] | None:
    if mark & _COMPILER_AT_PLACE == _COMPILER_AT_PLACE:
        return RegionKind.COMPILER, LineSort.COMPILER.name.lower()
    return next(((kind, sort.name.lower()) for sort, kind in kinds if mark >> sort & 1), None)


def _union_of_marks(marks: Sequence[int], rows: Sequence[int]) -> int:
    union = 0
    for at in rows:
        union |= marks[at]
    return union


def _tail_of_failed_step(looked: ScoredLog) -> list[EvidenceLine]:
    """Return the last lines of the step that failed first, and those before what a runner prints behind its output."""
    end = looked.steps.ends(looked.total)[0]
    lines = [
        EvidenceLine(number, text)
        for number, text in zip(looked.rows.numbers, looked.rows.bodies, strict=True)
        if number <= end and text
    ]
    script_end = next((at for at in range(len(lines) - 1, -1, -1) if _AFTER_SCRIPT.match(lines[at].text)), len(lines))
    while script_end > 0 and _AFTER_SCRIPT.match(lines[script_end - 1].text):
        script_end -= 1
    tail = lines[-_TAIL:]
    return tail if script_end == len(lines) else [*lines[max(0, script_end - _TAIL) : script_end], *tail]


def _find_last_command(looked: ScoredLog) -> int:
    """Return the number of the line that echoes the command which failed, or 0 if the log echoes none.

    A runner's own echoes count alone where there are any: what looks like one within the output may be a test's. If
    the echo itself was not kept, an earlier one is found, behind which the failed command's output stands as well.
    """
    end = looked.steps.ends(looked.total)[0]
    rows = [
        (number, text, mark)
        for number, text, mark in zip(looked.rows.numbers, looked.rows.texts, looked.rows.marks, strict=True)
        if number < end
    ]
    ended = next((at for at, (_, text, _) in enumerate(rows) if text.startswith("Running after_script")), len(rows))
    rows = rows[:ended]
    of_runner = [
        number for number, text, mark in rows if _RUNNER_ECHO.match(text) or (mark & _GREEN and text[:2] == "$ ")
    ]
    if of_runner:
        return of_runner[-1]
    echoed = [
        number
        for (_, before, _), (number, text, mark) in pairwise([(0, "", 0), *rows])
        if mark & _COMMAND and _ECHO.match(text) and not before.startswith(("-", "+", "@@"))
    ]
    return echoed[-1] if echoed else 0

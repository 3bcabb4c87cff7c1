"""Scores an answer against what its case expects.

Each part is between 0 and 1, or None if the case expects nothing of it. An abstention scores half: more than a wrong
answer, less than a right one. An answer that contains what it must not contain scores 0.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

from hummingbird.app.evaluation.cases import ExpectedAnswer, ExpectedFailure, ExpectedFinding
from hummingbird.core.verdicts import FailureOrigin, FailureVerdict
from hummingbird.evidence.citations.checker import CitationCounts, describe_citations
from hummingbird.evidence.regions import FailureClass

# Claims of an answer are checked as before posting: quoted lines and their numbers, files, jobs, links.


@dataclass(frozen=True, slots=True)
class AnswerClaims:
    """The claims of an answer that were checked; `fared` has a sentence if any is wrong or could not be checked."""

    made: int = 0
    wrong: int = 0
    fared: tuple[str, ...] = ()


def count_claims(tallies: CitationCounts) -> AnswerClaims:
    wrong = tallies.removed + tallies.unfound + tallies.renumbered + tallies.marked + tallies.links_removed
    made = tallies.quoted + tallies.mentioned + tallies.links
    return AnswerClaims(made, wrong, () if tallies.is_clean else tuple(describe_citations(tallies)))


# What an answer states is read from Markdown of the form that our prompts ask for and `digest` writes. Code blocks are
# quotations and state nothing. A sentence that cannot be read counts as an abstention.


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6} ")
_CLASSES = "|".join(one.value for one in FailureClass)
_VERDICT = re.compile(rf"verdict[\s:*_`]{{1,6}}({_CLASSES})\b", re.IGNORECASE)
_VERDICT_IN_HEADING = re.compile(rf"^#{{1,6}} .*:\s*({_CLASSES})\s*$", re.IGNORECASE | re.MULTILINE)
_MERGE_REQUEST = r"(?:this|the) (?:merge request|change|mr|branch)"
_CAUSED = re.compile(
    rf"(?P<before>[^.\n]{{0,60}})\bcaused by {_MERGE_REQUEST}\b(?P<after>[^.\n]{{0,60}})", re.IGNORECASE
)
_UNRELATED = re.compile(
    rf"\b(?:unrelated to|not related to|independent of|nothing to do with|not due to) {_MERGE_REQUEST}\b", re.IGNORECASE
)
_OPEN = re.compile(
    r"\bcan(?:no|'|’)t (?:be |really )?(?:tell|told|known?|say)|\bunclear|\bunknown|\bnot clear|\bwhether\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\bno\b|\bnot\b|n['’]t\b|\bnever\b|\bunlikely\b|\bdoubtful\b|\bneither\b", re.IGNORECASE)
_PLACE = re.compile(r"(?<![\w/.:-])((?:[\w@+-][\w.@+-]*/)*[\w@+-][\w@+.-]*\.\w{1,8}):(\d{1,7})\b")


@dataclass(frozen=True, slots=True)
class StatedVerdict:
    """The verdict that an answer states; `caused` is None if the answer leaves it open."""

    verdict: FailureClass | None
    caused: bool | None


def find_statement(answer: str, names: Sequence[str], evidence: Sequence[str] = ()) -> StatedVerdict:
    """Return what the answer states about one failure.

    The entry with its evidence decides, else the one with its job, else the first statement of the answer.
    """
    parts = split_sections(answer)[1:]
    own = [part for part in parts if any(line.strip() in part for line in evidence)]
    own = own or [part for part in parts if any(name in part for name in names)]
    spoken = ["\n".join(prose_lines(part)) for part in (*own, answer)]
    return StatedVerdict(
        next((found for part in spoken if (found := _find_verdict(part)) is not None), None), _find_caused(spoken)
    )


def split_sections(answer: str) -> list[str]:
    """Split the answer into the text before the first heading, and one part per heading."""
    parts: list[list[str]] = [[]]
    for line, fenced in _lines_with_fences(answer):
        if not fenced and _HEADING.match(line):
            parts.append([])
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]


def prose_lines(answer: str) -> list[str]:
    return [line for line, fenced in _lines_with_fences(answer) if not fenced]


def find_places(answer: str) -> Sequence[tuple[str, int]]:
    """Return every `path:line` that the answer mentions outside code blocks."""
    found = (match for line in prose_lines(answer) for match in _PLACE.finditer(_without_addresses(line)))
    return tuple(dict.fromkeys((match[1], int(match[2])) for match in found))


def _without_addresses(line: str) -> str:
    return re.sub(r"https?://\S+", " ", line)


def _lines_with_fences(answer: str) -> Iterator[tuple[str, bool]]:
    """Yield each line and whether it belongs to a code block; a block without an end runs to the end of the answer."""
    fence = ""
    for line in answer.splitlines():
        mark = _FENCE.match(line)
        if fence:
            yield line, True
            closes = mark is not None and mark[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
        else:
            fence = mark[1] if mark else ""
            yield line, bool(mark)


def _find_verdict(text: str) -> FailureClass | None:
    found = _VERDICT.search(text) or _VERDICT_IN_HEADING.search(text)
    return FailureClass(found[1].lower()) if found else None


def _find_caused(parts: Sequence[str]) -> bool | None:
    for part in parts:
        if (found := _CAUSED.search(part)) is not None:
            return _read_clause(found["before"], found["after"])
        if _UNRELATED.search(part):
            return False
        if (at := _VERDICT.search(part)) is not None and _OPEN.search(part[at.end() :].split("\n", 1)[0]):
            return None
    return None


def _read_clause(before: str, after: str) -> bool | None:
    """Return what a clause says: `not caused by it`, or `caused by it: no sign of that`."""
    said = after if after.startswith(":") else _last_clause(before)
    if _OPEN.search(said):
        return None
    return not _DENIED.search(said)


def _last_clause(words: str) -> str:
    return re.split(r"[,;:(]", words)[-1]


class VerdictGrade(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    ABSTAINED = "abstained"


GRADE_WORTH = {VerdictGrade.RIGHT: 1.0, VerdictGrade.ABSTAINED: 0.5, VerdictGrade.WRONG: 0.0}
# the prompts have four classes and count the configuration of CI as infrastructure
_EQUAL_CLASSES = frozenset({FailureClass.CONFIGURATION, FailureClass.INFRASTRUCTURE})


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialScores:
    """The scores of one answer.

    `verdicts` and `caused` have one grade for each failure for which the case gives the right answer; `stated` is what
    the answer said. `cause`, `evidence` and `found` are shares. `extra` counts findings that the case does not know,
    which may be right. `broken` counts what the answer contains of the `forbidden`. `rules` grades the rules' verdict
    from before the model.
    """

    verdicts: tuple[VerdictGrade, ...] = ()
    caused: tuple[VerdictGrade, ...] = ()
    said: tuple[StatedVerdict, ...] = ()
    cause: float | None = None
    evidence: float | None = None
    found: float | None = None
    extra: int = 0
    claims: AnswerClaims = field(default_factory=AnswerClaims)
    broken: tuple[str, ...] = ()
    forbidden: int = 0
    rules: VerdictGrade | None = None

    @property
    def true_share(self) -> float | None:
        """Return the share of claims that were found in what the run fetched."""
        return 1 - self.claims.wrong / self.claims.made if self.claims.made else None

    @property
    def total(self) -> float | None:
        """Return the mean of all parts that apply; None if nothing was expected."""
        if self.broken:
            return 0.0
        graded = (mean_worth(grades) for grades in (self.verdicts, self.caused))
        parts = [part for part in (*graded, self.cause, self.evidence, self.found, self.true_share) if part is not None]
        return fmean(parts) if parts else 1.0 if self.forbidden else None


def score_answer(
    expected: ExpectedAnswer,
    answer: str,
    reported: Sequence[tuple[str, int]] = (),
    *,
    claims: AnswerClaims | None = None,
    verdict: FailureVerdict | None = None,
) -> TrialScores:
    """Score an answer.

    `reported` has path and line of each finding; without any, those that the answer names count. `verdict` is the
    rules' verdict, if there is one.
    """
    said = tuple(find_statement(answer, failure.names, failure.evidence) for failure in expected.failures)
    both = list(zip(expected.failures, said, strict=True))
    findings = (reported or find_places(answer)) if expected.findings else reported
    lines = [line.strip() for failure in expected.failures for line in failure.evidence]
    return TrialScores(
        verdicts=tuple(_grade_class(one.verdict, own.verdict) for one, own in both if one.verdict is not None),
        caused=tuple(_grade_caused(one.caused, own.caused) for one, own in both if one.caused is not None),
        said=said,
        cause=_share([_has_found_cause(one, answer) for one in expected.failures if one.evidence]),
        evidence=_share([line in answer for line in lines]),
        found=_share([any(_is_near(place, one) for one in findings) for place in expected.findings]),
        extra=sum(not any(_is_near(place, one) for place in expected.findings) for one in findings),
        claims=claims or AnswerClaims(),
        broken=tuple(words for words in expected.must_not if words in f"\n{answer}"),
        forbidden=len(expected.must_not),
        rules=_grade_rules(expected, verdict),
    )


def mean_worth(grades: Sequence[VerdictGrade]) -> float | None:
    return fmean(GRADE_WORTH[grade] for grade in grades) if grades else None


def _grade_class(wanted: FailureClass, got: FailureClass | None) -> VerdictGrade:
    if got is None or got is FailureClass.UNKNOWN:
        return VerdictGrade.RIGHT if wanted is FailureClass.UNKNOWN else VerdictGrade.ABSTAINED
    return VerdictGrade.RIGHT if got is wanted or _EQUAL_CLASSES.issuperset((wanted, got)) else VerdictGrade.WRONG


def _grade_caused(wanted: bool, got: bool | None) -> VerdictGrade:
    if got is None:
        return VerdictGrade.ABSTAINED
    return VerdictGrade.RIGHT if got is wanted else VerdictGrade.WRONG


def _has_found_cause(failure: ExpectedFailure, answer: str) -> bool:
    """Return whether the answer names the job and quotes a line that proves the cause."""
    named = not failure.names or any(name in answer for name in failure.names)
    return named and any(line.strip() in answer for line in failure.evidence)


def _is_near(place: ExpectedFinding, found: tuple[str, int]) -> bool:
    return found[0] == place.path and abs(found[1] - place.line) <= place.within


def _grade_rules(expected: ExpectedAnswer, verdict: FailureVerdict | None) -> VerdictGrade | None:
    if verdict is None or not expected.origins:
        return None
    if verdict.origin is FailureOrigin.UNKNOWN:
        return VerdictGrade.ABSTAINED
    return VerdictGrade.RIGHT if verdict.origin in expected.origins else VerdictGrade.WRONG


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None

"""What an answer is worth, measured against what its case expects. Pure: the same answer has the same scores.

Each part is 0 to 1, or None where the case expects nothing of it. An abstention counts half: worth more than a wrong
word, less than a right one. An answer that holds what it must not is worth nothing at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

from hummingbird.assembly.evaluation.claims import Claims
from hummingbird.assembly.evaluation.expected import Expected, Failure, Place
from hummingbird.assembly.evaluation.stated import Stated, places, stated
from hummingbird.domain.verdicts import Origin, Verdict
from hummingbird.evidence.regions import Class


class Grade(StrEnum):
    RIGHT = "right"
    WRONG = "wrong"
    ABSTAINED = "abstained"


WORTH = {Grade.RIGHT: 1.0, Grade.ABSTAINED: 0.5, Grade.WRONG: 0.0}
# the prompts know four classes, and put the configuration of CI to infrastructure
_ALIKE = frozenset({Class.CONFIGURATION, Class.INFRASTRUCTURE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """`verdicts` and `caused`: one grade for each failure of which the case says it. `said`: what the answer states of
    each failure. `cause` and `evidence`, `found`: shares. `extra`: findings that the case does not know; they may be
    right. `broken`: what the answer holds and must not, of so many `forbidden`. `rules`: the grade of what code judged
    before the model."""

    verdicts: tuple[Grade, ...] = ()
    caused: tuple[Grade, ...] = ()
    said: tuple[Stated, ...] = ()
    cause: float | None = None
    evidence: float | None = None
    found: float | None = None
    extra: int = 0
    claims: Claims = field(default_factory=Claims)
    broken: tuple[str, ...] = ()
    forbidden: int = 0
    rules: Grade | None = None

    @property
    def true(self) -> float | None:
        """Share of its claims that stand in what was fetched."""
        return 1 - self.claims.wrong / self.claims.made if self.claims.made else None

    @property
    def total(self) -> float | None:
        """The mean of all parts that apply. None where nothing was expected: whoever says anything would be right."""
        if self.broken:
            return 0.0
        graded = (worth(grades) for grades in (self.verdicts, self.caused))
        parts = [part for part in (*graded, self.cause, self.evidence, self.found, self.true) if part is not None]
        return fmean(parts) if parts else 1.0 if self.forbidden else None


def scores(
    expected: Expected,
    answer: str,
    reported: Sequence[tuple[str, int]] = (),
    *,
    claims: Claims | None = None,
    verdict: Verdict | None = None,
) -> Scores:
    """`reported`: path and line of each finding; where there is none, those that the answer names count. `verdict`:
    what rules judged, if they did."""
    said = tuple(stated(answer, failure.names, failure.evidence) for failure in expected.failures)
    both = list(zip(expected.failures, said, strict=True))
    findings = (reported or places(answer)) if expected.findings else reported
    lines = [line.strip() for failure in expected.failures for line in failure.evidence]
    return Scores(
        verdicts=tuple(_class(one.verdict, own.verdict) for one, own in both if one.verdict is not None),
        caused=tuple(_caused(one.caused, own.caused) for one, own in both if one.caused is not None),
        said=said,
        cause=_share([_cause_found(one, answer) for one in expected.failures if one.evidence]),
        evidence=_share([line in answer for line in lines]),
        found=_share([any(_near(place, one) for one in findings) for place in expected.findings]),
        extra=sum(not any(_near(place, one) for place in expected.findings) for one in findings),
        claims=claims or Claims(),
        broken=tuple(words for words in expected.must_not if words in f"\n{answer}"),
        forbidden=len(expected.must_not),
        rules=_rules(expected, verdict),
    )


def worth(grades: Sequence[Grade]) -> float | None:
    return fmean(WORTH[grade] for grade in grades) if grades else None


def _class(wanted: Class, got: Class | None) -> Grade:
    if got is None or got is Class.UNKNOWN:
        return Grade.RIGHT if wanted is Class.UNKNOWN else Grade.ABSTAINED
    return Grade.RIGHT if got is wanted or _ALIKE.issuperset((wanted, got)) else Grade.WRONG


def _caused(wanted: bool, got: bool | None) -> Grade:
    if got is None:
        return Grade.ABSTAINED
    return Grade.RIGHT if got is wanted else Grade.WRONG


def _cause_found(failure: Failure, answer: str) -> bool:
    """Its job by name, and a line that proves it, word for word."""
    named = not failure.names or any(name in answer for name in failure.names)
    return named and any(line.strip() in answer for line in failure.evidence)


def _near(place: Place, found: tuple[str, int]) -> bool:
    return found[0] == place.path and abs(found[1] - place.line) <= place.within


def _rules(expected: Expected, verdict: Verdict | None) -> Grade | None:
    if verdict is None or not expected.origins:
        return None
    if verdict.origin is Origin.UNKNOWN:
        return Grade.ABSTAINED
    return Grade.RIGHT if verdict.origin in expected.origins else Grade.WRONG


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None

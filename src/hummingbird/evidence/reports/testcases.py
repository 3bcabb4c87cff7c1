"""What a test report says: how many, and every failure with what explains it.

The nouns alone. Knows nothing of XML or of how failures are shown.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from hummingbird.evidence.regions import Line


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    OTHER = "other"  # pending, undefined, a warning: neither good nor bad


BAD = frozenset({Outcome.FAILED, Outcome.ERROR})


def is_of_job(suite: str, job: str) -> bool:
    """GitLab names suites after jobs; parallel jobs share the name before their numbers."""
    return bool(suite) and (job == suite or job.startswith((f"{suite} ", f"{suite}: [")))


@dataclass(frozen=True, slots=True)
class Link:
    name: str
    href: str
    at: int = 0  # its line in the report


@dataclass(frozen=True, slots=True)
class Case:
    """One test that failed, or that passed only when it was tried again."""

    suite: str
    name: str
    outcome: Outcome
    at: int  # its line in the report
    classname: str = ""
    file: str = ""
    line: int | None = None  # in `file`
    type: str = ""
    message: str = ""
    body: tuple[Line, ...] = ()
    stdout: tuple[Line, ...] = ()
    stderr: tuple[Line, ...] = ()
    logs: tuple[Link, ...] = ()
    seconds: float | None = None
    failed_tries: int = 0  # besides the one that counts
    flaky: bool = False
    result: str = ""  # the report's own word, when it has one
    place: str = ""  # guest, architecture, distribution

    @property
    def title(self) -> str:
        owner = self.classname if self.classname and self.classname not in self.name else ""
        named = f"{owner}.{self.name}" if owner and self.name else owner or self.name or self.suite or "(no name)"
        return f"{self.suite} > {named}" if self.suite and self.suite not in named else named


@dataclass(frozen=True, slots=True)
class Totals:
    """Counted, not believed: what the report declares may be wrong, and it may end early."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    other: int = 0
    flaky: int = 0  # of all of the above

    @property
    def cases(self) -> int:
        return self.passed + self.failed + self.errors + self.skipped + self.other

    @property
    def bad(self) -> int:
        return self.failed + self.errors


@dataclass(frozen=True, slots=True)
class Claim:
    """How many tests went wrong, in the report's own attributes; it may name fewer of them, or none."""

    failures: int = 0
    errors: int = 0
    at: int = 1  # the line that claims it first

    @property
    def bad(self) -> int:
        return self.failures + self.errors


@dataclass(frozen=True, slots=True)
class Report:
    recognised: bool  # a test report at all
    totals: Totals = field(default_factory=Totals)
    cases: tuple[Case, ...] = ()  # bad and flaky ones, as many as are kept
    declared: int | None = None  # tests, as the report says of itself
    broke: str = ""  # a sentence, when not everything could be read
    finding: str = ""  # the overall result, as Testing Farm says it
    claim: Claim = field(default_factory=Claim)

    @property
    def unkept(self) -> int:
        return self.totals.bad - sum(case.outcome in BAD for case in self.cases)

    @property
    def unnamed(self) -> int:
        """Failures that the report claims and does not name. One sum: tools differ in what they call an error."""
        return max(0, self.claim.bad - self.totals.bad)

"""Data types of a parsed test report, and the conversion of failed tests into regions.

The report's word is taken for what failed; the blame follows from outcome and message.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum

from hummingbird.evidence.fingerprints import compute_fingerprint
from hummingbird.evidence.regions import Blame, EvidenceLine, FailureClass, Region, RegionKind


class CaseOutcome(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    OTHER = "other"  # pending, undefined, a warning: neither good nor bad


BAD_OUTCOMES = frozenset({CaseOutcome.FAILED, CaseOutcome.ERROR})


def is_suite_of_job(suite: str, job: str) -> bool:
    """Tell whether a suite belongs to a job. GitLab names suites after jobs; parallel jobs share the base name."""
    return bool(suite) and (job == suite or job.startswith((f"{suite} ", f"{suite}: [")))


@dataclass(frozen=True, slots=True)
class ReportLink:
    """A link from a report to a log."""

    name: str
    href: str
    at: int = 0  # its line in the report


@dataclass(frozen=True, slots=True)
class ReportedCase:
    """A test that failed, or that passed only when it was retried."""

    suite: str
    name: str
    outcome: CaseOutcome
    at: int  # its line in the report
    classname: str = ""
    file: str = ""
    line: int | None = None  # in `file`
    type: str = ""
    message: str = ""
    body: tuple[EvidenceLine, ...] = ()
    stdout: tuple[EvidenceLine, ...] = ()
    stderr: tuple[EvidenceLine, ...] = ()
    logs: tuple[ReportLink, ...] = ()
    seconds: float | None = None
    failed_tries: int = 0  # besides the final one
    flaky: bool = False
    result: str = ""  # the report's own word, when it has one
    place: str = ""  # guest, architecture, distribution

    @property
    def title(self) -> str:
        """Suite, class and name, each only once."""
        owner = self.classname if self.classname and self.classname not in self.name else ""
        named = f"{owner}.{self.name}" if owner and self.name else owner or self.name or self.suite or "(no name)"
        return f"{self.suite} > {named}" if self.suite and self.suite not in named else named


@dataclass(frozen=True, slots=True)
class ReportTotals:
    """Totals as counted, because the numbers that a report declares may be wrong, and it may end early."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    other: int = 0
    flaky: int = 0  # included in the above

    @property
    def cases(self) -> int:
        return self.passed + self.failed + self.errors + self.skipped + self.other

    @property
    def bad(self) -> int:
        return self.failed + self.errors


@dataclass(frozen=True, slots=True)
class ReportClaim:
    """How many tests failed according to the report's own attributes; it may name fewer of them, or none."""

    failures: int = 0
    errors: int = 0
    at: int = 1  # the first line with such an attribute

    @property
    def bad(self) -> int:
        return self.failures + self.errors


@dataclass(frozen=True, slots=True)
class ParsedReport:
    """Everything that is kept of a test report."""

    recognised: bool  # whether it is a test report at all
    totals: ReportTotals = field(default_factory=ReportTotals)
    cases: tuple[ReportedCase, ...] = ()  # failed and flaky ones, as many as are kept
    declared: int | None = None  # number of tests that the report declares
    read_error: str = ""  # a sentence, when not everything could be read
    overall_result: str = ""  # as Testing Farm reports it
    claim: ReportClaim = field(default_factory=ReportClaim)

    @property
    def dropped(self) -> int:
        """Failures that were counted but not kept."""
        return self.totals.bad - sum(case.outcome in BAD_OUTCOMES for case in self.cases)

    @property
    def unnamed_failures(self) -> int:
        """Failures that the report declares but does not name. Summed up, because tools differ on what an error is."""
        return max(0, self.claim.bad - self.totals.bad)


BROKEN_SCORE, FLAKY_SCORE = 1.0, 0.3


@dataclass(frozen=True, slots=True)
class _MessageSignal:
    """Words in a message that mean more than a failed assertion."""

    pattern: re.Pattern[str]
    kind: RegionKind
    blame: Blame


def _signal(pattern: str, kind: RegionKind, blame: Blame) -> _MessageSignal:
    return _MessageSignal(re.compile(pattern, re.IGNORECASE), kind, blame)


MESSAGE_SIGNALS = (
    _signal(
        r"OutOfMemory|\bMemoryError\b|bad_alloc|Cannot allocate memory",
        RegionKind.MEMORY,
        Blame(
            FailureClass.INFRASTRUCTURE, "test-out-of-memory", 0.6,
            "The test ran out of memory: the machine may be too small, or the code may take too much.",
        ),
    ),
    _signal(
        r"No space left on device|Disk quota exceeded",
        RegionKind.QUOTA,
        Blame(
            FailureClass.INFRASTRUCTURE, "test-disk-full", 0.9, "The disk of the machine that ran the test was full."
        ),
    ),
    _signal(
        r"Connection (?:refused|reset|timed out|aborted)|name resolution|UnknownHostException|NoRouteToHost|ECONNRE",
        RegionKind.NETWORK,
        Blame(
            FailureClass.INFRASTRUCTURE, "test-network", 0.65, "The test could not reach another machine or service."
        ),
    ),
    _signal(
        r"\btimed? ?out\b|\bTimeout\w*\b|deadline exceeded",
        RegionKind.TIMEOUT,
        Blame(
            FailureClass.UNKNOWN, "test-timeout", 0.5,
            "The test took too long, which a slow machine can cause as well as the code.",
        ),
    ),
    _signal(
        r"ModuleNotFoundError|\bImportError\b|NoClassDefFoundError|ClassNotFoundException|Cannot find module",
        RegionKind.DEPENDENCY,
        Blame(FailureClass.CODE, "test-import", 0.6, "The test needs something that is not there to be imported."),
    ),
)  # fmt: skip

FLAKY_BLAME = Blame(
    FailureClass.FLAKY, "test-flaky", 0.95, "The test failed and then passed when the same job tried it again."
)
PASSED_AGAIN_BLAME = Blame(
    FailureClass.FLAKY, "test-passed-again", 0.7, "The report has this test twice: it failed first and passed later."
)
FAILED_BLAME = Blame(FailureClass.TEST, "test-failed", 0.8, "A test ran and what it expected did not happen.")
ERROR_BLAME = Blame(FailureClass.TEST, "test-error", 0.6, "A test could not run to its end because of an error.")
UNFINISHED_BLAME = Blame(
    FailureClass.INFRASTRUCTURE, "testing-farm-error", 0.6,
    "Testing Farm could not bring the test to a result: a machine, a preparation or the test's own set-up failed.",
)  # fmt: skip


def regions_from_report(report: ParsedReport) -> tuple[Region, ...]:
    """Make a region of each kept case, failures before flaky tests, in the report's order."""
    found = [region_from_case(case) for case in report.cases]
    return tuple(sorted(found, key=lambda region: -region.score))


def region_from_case(case: ReportedCase) -> Region:
    """Make a region of one case.

    Tests that fail on what they check are different failures. Those that fail because of one thing around them, such as
    a server that is down, are the same one.
    """
    kind, blame = classify_case(case)
    lines = _case_lines(case)
    said = [f"{case.type}: {case.message}" if case.message else case.type, *_telling_lines(case), case.title]
    checked = blame is FAILED_BLAME
    return Region(
        lines=lines,
        kind=kind,
        blame=blame,
        fingerprint=compute_fingerprint(said, title=case.title if checked else "")
        or compute_fingerprint(said, title=case.title),
        score=BROKEN_SCORE if case.outcome in BAD_OUTCOMES and not case.flaky else FLAKY_SCORE,
        rule=blame.rule,
    )


def classify_case(case: ReportedCase) -> tuple[RegionKind, Blame]:
    """Return the kind and the blame of a failed or flaky test."""
    if case.flaky:
        return RegionKind.TEST, PASSED_AGAIN_BLAME if case.outcome in BAD_OUTCOMES else FLAKY_BLAME
    said = "\n".join((case.type, case.message, *_telling_lines(case)))
    for sign in MESSAGE_SIGNALS:
        if sign.pattern.search(said):
            return sign.kind, sign.blame
    if case.outcome is CaseOutcome.FAILED:
        return RegionKind.TEST, FAILED_BLAME
    return RegionKind.TEST, UNFINISHED_BLAME if case.result and not case.type else ERROR_BLAME


def _telling_lines(case: ReportedCase) -> list[str]:
    """Return the lines of the body that say what went wrong, if there is no message."""
    marked = [line.text for line in case.body if line.text.startswith("E  ")]  # pytest's marker
    return [] if case.message else (marked or [line.text for line in case.body])[:3]


def _case_lines(case: ReportedCase) -> tuple[EvidenceLine, ...]:
    message = [text for text in case.message.split("\n") if text.strip()]
    said = {line.text.strip() for line in case.body}
    found = [
        EvidenceLine(case.at, case_headline(case)),
        *(EvidenceLine(case.at, f"  {text}") for text in message if text.strip() not in said),
        *case.body,
        *(EvidenceLine(link.at, f"log {link.name}: {link.href}") for link in case.logs if link.href),
        *case.stderr,
        *case.stdout,
    ]
    return tuple(sorted(found, key=lambda line: line.number))


def case_headline(case: ReportedCase) -> str:
    """Return one line: what happened to which test, and where."""
    state = "FLAKY" if case.flaky else case.outcome.upper()
    source = f" at {case.file}:{case.line}" if case.file and case.line else f" in {case.file}" if case.file else ""
    tries = f" ({case.failed_tries} more failed tries)" if case.failed_tries and not case.flaky else ""
    place = f" on {case.place}" if case.place else ""
    kind = f" [{case.type}]" if case.type else ""
    return " ".join(f"{state} {case.title}{source}{place}{kind}{tries}".split())

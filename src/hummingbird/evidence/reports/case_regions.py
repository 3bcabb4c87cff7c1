"""Failed tests as regions: what they look like, who is to blame and by which rule (V3, V5, V7).

Takes the report's word for what failed and judges by outcome and message. Knows nothing of XML or of budgets.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hummingbird.evidence.fingerprint import fingerprint
from hummingbird.evidence.regions import Blame, Class, Kind, Line, Region
from hummingbird.evidence.reports.testcases import BAD, Case, Outcome, Report

Fingerprint = Callable[[Sequence[str]], str]
BROKEN_SCORE, FLAKY_SCORE = 1.0, 0.3


@dataclass(frozen=True, slots=True)
class _Sign:
    """Words of a message that mean more than that an assertion failed."""

    pattern: re.Pattern[str]
    kind: Kind
    blame: Blame


def _sign(pattern: str, kind: Kind, blame: Blame) -> _Sign:
    return _Sign(re.compile(pattern, re.IGNORECASE), kind, blame)


SIGNS = (
    _sign(
        r"OutOfMemory|\bMemoryError\b|bad_alloc|Cannot allocate memory",
        Kind.MEMORY,
        Blame(
            Class.INFRASTRUCTURE, "test-out-of-memory", 0.6,
            "The test ran out of memory: the machine may be too small, or the code may take too much.",
        ),
    ),
    _sign(
        r"No space left on device|Disk quota exceeded",
        Kind.QUOTA,
        Blame(Class.INFRASTRUCTURE, "test-disk-full", 0.9, "The disk of the machine that ran the test was full."),
    ),
    _sign(
        r"Connection (?:refused|reset|timed out|aborted)|name resolution|UnknownHostException|NoRouteToHost|ECONNRE",
        Kind.NETWORK,
        Blame(Class.INFRASTRUCTURE, "test-network", 0.65, "The test could not reach another machine or service."),
    ),
    _sign(
        r"\btimed? ?out\b|\bTimeout\w*\b|deadline exceeded",
        Kind.TIMEOUT,
        Blame(
            Class.UNKNOWN, "test-timeout", 0.5,
            "The test took too long, which a slow machine can cause as well as the code.",
        ),
    ),
    _sign(
        r"ModuleNotFoundError|\bImportError\b|NoClassDefFoundError|ClassNotFoundException|Cannot find module",
        Kind.DEPENDENCY,
        Blame(Class.CODE, "test-import", 0.6, "The test needs something that is not there to be imported."),
    ),
)  # fmt: skip

FLAKED = Blame(Class.FLAKY, "test-flaky", 0.95, "The test failed and then passed when the same job tried it again.")
PASSED_AGAIN = Blame(
    Class.FLAKY, "test-passed-again", 0.7, "The report has this test twice: it failed first and passed later."
)
FAILED = Blame(Class.TEST, "test-failed", 0.8, "A test ran and what it expected did not happen.")
ERRED = Blame(Class.TEST, "test-error", 0.6, "A test could not run to its end because of an error.")
UNFINISHED = Blame(
    Class.INFRASTRUCTURE, "testing-farm-error", 0.6,
    "Testing Farm could not bring the test to a result: a machine, a preparation or the test's own set-up failed.",
)  # fmt: skip


def regions_of(report: Report, name: Fingerprint = fingerprint) -> tuple[Region, ...]:
    """One for each case that was kept, failures before flaky tests, in the report's order."""
    found = [region_of(case, name) for case in report.cases]
    return tuple(sorted(found, key=lambda region: -region.score))


def region_of(case: Case, name: Fingerprint = fingerprint) -> Region:
    kind, blame = judged(case)
    lines = _lines(case)
    return Region(
        lines=lines,
        kind=kind,
        blame=blame,
        fingerprint=name([f"{case.type}: {case.message}" if case.message else case.type, *_telling(case), case.title]),
        score=BROKEN_SCORE if case.outcome in BAD and not case.flaky else FLAKY_SCORE,
        rule=blame.rule,
    )


def judged(case: Case) -> tuple[Kind, Blame]:
    if case.flaky:
        return Kind.TEST, PASSED_AGAIN if case.outcome in BAD else FLAKED
    said = "\n".join((case.type, case.message, *_telling(case)))
    for sign in SIGNS:
        if sign.pattern.search(said):
            return sign.kind, sign.blame
    if case.outcome is Outcome.FAILED:
        return Kind.TEST, FAILED
    return Kind.TEST, UNFINISHED if case.result and not case.type else ERRED


def _telling(case: Case) -> list[str]:
    """The lines of the body that say what went wrong when there is no message that does."""
    marked = [line.text for line in case.body if line.text.startswith("E  ")]  # pytest's mark
    return [] if case.message else (marked or [line.text for line in case.body])[:3]


def _lines(case: Case) -> tuple[Line, ...]:
    message = [text for text in case.message.split("\n") if text.strip()]
    said = {line.text.strip() for line in case.body}
    found = [
        Line(case.at, headline(case)),
        *(Line(case.at, f"  {text}") for text in message if text.strip() not in said),
        *case.body,
        *(Line(link.at, f"log {link.name}: {link.href}") for link in case.logs if link.href),
        *case.stderr,
        *case.stdout,
    ]
    return tuple(sorted(found, key=lambda line: line.number))


def headline(case: Case) -> str:
    """What happened to which test, and where."""
    state = "FLAKY" if case.flaky else case.outcome.upper()
    source = f" at {case.file}:{case.line}" if case.file and case.line else f" in {case.file}" if case.file else ""
    tries = f" ({case.failed_tries} more failed tries)" if case.failed_tries and not case.flaky else ""
    place = f" on {case.place}" if case.place else ""
    kind = f" [{case.type}]" if case.type else ""
    return " ".join(f"{state} {case.title}{source}{place}{kind}{tries}".split())

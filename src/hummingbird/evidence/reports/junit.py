"""Reads test reports as they come by: JUnit and Surefire, pytest, gtest, xUnit.net, NUnit and Testing Farm (V7).

Counts every test and keeps the failures that differ, so that a report of any size costs the same. Nothing that a report
contains makes it raise: what could be read is kept, and `broke` says why there is no more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hummingbird.domain.limits import CASE_LINKS, CASES_ALIKE, CASES_KEPT
from hummingbird.evidence.clip import Clip
from hummingbird.evidence.reports.open_case import OpenCase, link, short, whole, word
from hummingbird.evidence.reports.testcases import BAD, Case, Claim, Link, Outcome, Report, Totals
from hummingbird.evidence.reports.xml_stream import XmlStream

ROOTS = frozenset({"testsuites", "testsuite", "testcase", "test-run", "test-results"})
ROOTS_OF_XUNIT_NET = frozenset({"assemblies", "assembly"})  # other files begin like this too
SUITES = frozenset({"testsuite", "test-suite", "assembly", "collection"})
CASES = frozenset({"testcase", "test-case"})
TRUNCATED = "It is truncated: it ends before its last element is closed."


@dataclass(slots=True)
class _Suite:
    name: str
    at: int
    result: str = ""
    bad: int = 0
    links: list[Link] = field(default_factory=list)


class ReportReader:
    """Fed with bytes; tells at any time what it has read so far."""

    def __init__(self) -> None:
        self._stream = XmlStream(self)
        self._root = ""
        self._tests_seen = False
        self._declared: int | None = None
        self._finding = ""
        self._claim = Claim()
        self._claim_depth = 0  # of the open element whose claim speaks for all within it
        self._path: list[str] = []
        self._suites: list[_Suite] = []
        self._case: OpenCase | None = None
        self._case_depth = 0
        self._sinks: list[tuple[int, Clip | None]] = []
        self._counts: Counter[Outcome] = Counter()
        self._flaky = 0
        self._cases: list[Case] = []
        self._alike: Counter[tuple[str, str]] = Counter()
        self._failed: dict[tuple[str, str, str], int] = {}

    def feed(self, chunk: bytes) -> None:
        self._stream.feed(chunk)

    @property
    def report(self) -> Report:
        self._stream.settle()
        left = self._left_open
        counts = self._counts + Counter(case.outcome for case in left)
        return Report(
            recognised=self._recognised,
            totals=Totals(
                passed=counts[Outcome.PASSED],
                failed=counts[Outcome.FAILED],
                errors=counts[Outcome.ERROR],
                skipped=counts[Outcome.SKIPPED],
                other=counts[Outcome.OTHER],
                flaky=self._flaky,
            ),
            cases=(*self._cases, *(case.closed() for case in left if self._has_room(case))),
            declared=self._declared,
            broke=self._stream.broke or ("" if self._stream.closed else TRUNCATED),
            finding=self._finding,
            claim=self._claim,
        )

    @property
    def _left_open(self) -> list[OpenCase]:
        """The test whose element has no end yet, if it has failed by then; whether another one passed is not known."""
        return [self._case] if self._case and self._case.outcome in BAD else []

    @property
    def _recognised(self) -> bool:
        return self._root in ROOTS or (self._root in ROOTS_OF_XUNIT_NET and self._tests_seen)

    # what the stream tells

    def start(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        self._path.append(name)
        if len(self._path) == 1:
            self._begin(name, attributes, line)
        if self._case:
            self._sinks.append((len(self._path), self._case.child(name, attributes, line)))
        elif name in CASES or (name == "test" and self._root in ROOTS_OF_XUNIT_NET):
            self._open(OpenCase(self._suite_name, attributes, line))
        elif name in SUITES:
            self._suites.append(_Suite(short(attributes.get("name", "")), line, _result(attributes)))
            self._tests_seen = self._tests_seen or "total" in attributes
            self._claims(attributes, line)
        elif name in {"failure", "error"} and len(self._path) > 1 and self._path[-2] in {"testsuite", "errors"}:
            self._open(OpenCase(self._suite_name, {"name": "(the suite itself)"}, line))
            self._sinks.append((len(self._path), self._case.child(name, attributes, line) if self._case else None))
        elif name == "log" and self._suites and len(self._suites[-1].links) < CASE_LINKS:
            self._suites[-1].links.append(link(attributes, line))

    def text(self, text: str, line: int) -> None:
        if self._sinks and (sink := self._sinks[-1][1]):
            sink.add(text, line)

    def end(self, name: str) -> None:
        depth = len(self._path)
        while self._sinks and self._sinks[-1][0] >= depth:
            self._sinks.pop()
        if self._case and self._case_depth == depth:
            self._close(self._case)
        elif not self._case and name in SUITES and self._suites:
            self._leave(self._suites.pop())
        if self._claim_depth == depth:
            self._claim_depth = 0
        self._path.pop()

    def _begin(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        self._root = name
        self._declared = whole(attributes.get("tests") or attributes.get("total"))
        self._finding = short(attributes.get("overall-result", ""))
        self._claims(attributes, line)

    def _claims(self, attributes: Mapping[str, str], line: int) -> None:
        """The outermost element that has the numbers counts: those within it are part of them."""
        failures = whole(attributes.get("failures") or attributes.get("failed"))
        errors = whole(attributes.get("errors"))
        if self._claim_depth or (failures is None and errors is None):
            return
        self._claim_depth, before = len(self._path), self._claim
        at = before.at if before.bad else line
        self._claim = Claim(before.failures + (failures or 0), before.errors + (errors or 0), at)

    @property
    def _suite_name(self) -> str:
        return next((suite.name for suite in reversed(self._suites) if suite.name), "")

    def _open(self, case: OpenCase) -> None:
        self._case, self._case_depth, self._tests_seen = case, len(self._path), True

    def _close(self, case: OpenCase) -> None:
        self._case = None
        outcome = case.outcome
        self._counts[outcome] += 1
        self._flaky += case.flaky
        if outcome in BAD:
            for suite in self._suites:
                suite.bad += 1
        if outcome in BAD or case.flaky:
            self._keep(case)
        elif outcome is Outcome.PASSED and case.key in self._failed:
            self._passed_again(case.key)

    def _has_room(self, case: OpenCase) -> bool:
        return len(self._cases) < CASES_KEPT and self._alike[case.alike] < CASES_ALIKE

    def _keep(self, case: OpenCase) -> None:
        if self._has_room(case):
            self._alike[case.alike] += 1
            kept = case.closed()
            if not kept.result:  # Testing Farm gives many tests one name: one a guest, one a plan
                self._failed[case.key] = len(self._cases)
            self._cases.append(kept)

    def _passed_again(self, key: tuple[str, str, str]) -> None:
        place = self._failed.pop(key)
        self._cases[place] = replace(self._cases[place], flaky=True, failed_tries=self._cases[place].failed_tries + 1)
        self._flaky += 1

    def _leave(self, suite: _Suite) -> None:
        """A suite that failed although none of its tests did: it never got to them."""
        outcome = word(suite.result) if suite.result else Outcome.PASSED
        if outcome in BAD and not suite.bad:
            for around in self._suites:
                around.bad += 1
            self._counts[outcome] += 1
            name = suite.name or "(a suite without a name)"
            if len(self._cases) < CASES_KEPT:
                self._cases.append(
                    Case(
                        self._suite_name, name, outcome, suite.at, logs=tuple(suite.links), result=suite.result,
                        message="The suite failed, and none of its tests did.",
                    )
                )  # fmt: skip


def _result(attributes: Mapping[str, str]) -> str:
    return short(attributes.get("result") or attributes.get("overall-result") or "")


def read(chunks: Iterable[bytes]) -> Report:
    """A whole report at once."""
    reader = ReportReader()
    for chunk in chunks:
        reader.feed(chunk)
    return reader.report

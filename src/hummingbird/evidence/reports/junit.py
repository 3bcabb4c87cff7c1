"""Read test reports as they stream by: JUnit and Surefire, pytest, gtest, xUnit.net, NUnit and Testing Farm.

Counts every test and keeps failures that differ, so memory does not grow with the report. No content of a report makes
the reader raise: it keeps what it could read, and `ParsedReport.read_error` says why there is no more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hummingbird.core.limits import (
    CASE_BODY_CHARS,
    CASE_FIELD_CHARS,
    CASE_LINKS,
    CASE_OUTPUT_CHARS,
    CASES_ALIKE,
    CASES_KEPT,
)
from hummingbird.evidence.regions import EvidenceLine
from hummingbird.evidence.reports.report_cases import (
    BAD_OUTCOMES,
    CaseOutcome,
    ParsedReport,
    ReportClaim,
    ReportedCase,
    ReportLink,
    ReportTotals,
)
from hummingbird.evidence.reports.xml_stream import XmlStream, strip_colours

CUT_MARK = "…"


class TextClip:
    """Keeps the beginning and the end of a text that comes in pieces, with the numbers of its lines."""

    def __init__(self, head: int, tail: int) -> None:
        self._head_room, self._tail_room = head, tail
        self._head = ""
        self._tail = ""
        self._left_out = 0
        self._lines_left_out = 0
        self._first = 0

    def add(self, text: str, line: int) -> None:
        self._first = self._first or line
        taken, rest = text[: self._head_room - len(self._head)], text[max(0, self._head_room - len(self._head)) :]
        self._head += taken
        if rest:
            kept = (self._tail + rest)[-self._tail_room :] if self._tail_room else ""
            gone = len(self._tail) + len(rest) - len(kept)
            self._lines_left_out += self._tail.count("\n") + rest.count("\n") - kept.count("\n")
            self._left_out += gone
            self._tail = kept

    def lines(self) -> tuple[EvidenceLine, ...]:
        """Return the lines without colours and blank lines; a line that was cut has a mark."""
        return tuple(line for line in self._number_lines() if line.text.strip())

    def _number_lines(self) -> list[EvidenceLine]:
        if not self._left_out:
            return _split_lines(self._head + self._tail, self._first)
        head, tail = self._head.split("\n"), self._tail.split("\n")
        after = self._first + len(head) - 1 + self._lines_left_out
        head[-1] = head[-1] + CUT_MARK if head[-1] else ""
        tail[0] = CUT_MARK + tail[0] if tail[0] else ""
        return [*_split_lines("\n".join(head), self._first), *_split_lines("\n".join(tail), after)]


def _split_lines(text: str, first: int) -> list[EvidenceLine]:
    return [EvidenceLine(number, strip_colours(line).rstrip()) for number, line in enumerate(text.split("\n"), first)]


OUTCOME_WORDS = {
    **dict.fromkeys(("passed", "pass", "success", "completed", "info", "ok"), CaseOutcome.PASSED),
    **dict.fromkeys(("failed", "fail", "failure", "bad"), CaseOutcome.FAILED),
    **dict.fromkeys(("error", "errored", "infra_error", "aborted"), CaseOutcome.ERROR),
    **dict.fromkeys(("skipped", "skip", "notrun", "suppressed", "ignored", "disabled"), CaseOutcome.SKIPPED),
}
FINAL_TAGS = {"failure": CaseOutcome.FAILED, "error": CaseOutcome.ERROR, "skipped": CaseOutcome.SKIPPED}
RETRY_TAGS = frozenset({"flakyFailure", "flakyError", "rerunFailure", "rerunError"})
OUTPUT_TAGS = {"system-out": "stdout", "output": "stdout", "system-err": "stderr"}
PLACE_PROPERTIES = ("arch", "compose", "distro", "baseosci.arch", "baseosci.distro")


class OpenCase:
    """A test whose element is still open: collects what its child elements say, in every dialect."""

    def __init__(self, suite: str, attributes: Mapping[str, str], at: int) -> None:
        # Most tests of a report pass, so create nothing here that a passed test does not need.
        self.suite, self.at = suite, at
        self._given = attributes
        self._said: CaseOutcome | None = None
        self._type = ""
        self._messages: list[str] = []
        self._clips: dict[str, TextClip] = {}
        self._bodies: list[TextClip] = []
        self._phases: list[EvidenceLine] = []
        self._links: list[ReportLink] = []
        self._places: dict[str, str] = {}
        self._flaky = False
        self._tries = 0

    def start_child(self, name: str, attributes: Mapping[str, str], line: int) -> TextClip | None:
        """Handle the start of a child element; return where its text goes."""
        if name in FINAL_TAGS or name in RETRY_TAGS:
            return self._set_outcome(name, attributes)
        if name in {"log", "phase", "property", "guest"}:
            self._add_detail(name, attributes, line)
            return None
        if name in {"stack-trace", "stackTrace"}:
            return self._new_body()
        if name == "message":
            return self._clips.setdefault(name, TextClip(CASE_FIELD_CHARS, 0))
        return (
            self._clips.setdefault(OUTPUT_TAGS[name], TextClip(0, CASE_OUTPUT_CHARS)) if name in OUTPUT_TAGS else None
        )

    def _set_outcome(self, name: str, attributes: Mapping[str, str]) -> TextClip | None:
        if name in RETRY_TAGS:
            self._tries += 1
        elif self._said not in BAD_OUTCOMES:
            self._said = FINAL_TAGS[name]
        if name == "skipped":
            return None
        self._flaky = self._flaky or name.startswith("flaky")
        self._type = self._type or shorten_field(attributes.get("type") or attributes.get("exception-type") or "")
        message = strip_colours(shorten_field(attributes.get("message", "")))
        if message and message not in self._messages and len(self._messages) < CASE_LINKS:
            self._messages.append(message)
        return self._new_body()

    def _new_body(self) -> TextClip | None:
        """Return a new clip for each text, because each has its own line numbers; the first ones get most room."""
        if len(self._bodies) == CASE_LINKS:
            return None
        room = CASE_BODY_CHARS // (2 if len(self._bodies) < 2 else 8)
        self._bodies.append(TextClip(room, room))
        return self._bodies[-1]

    def _add_detail(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        if name == "log" and len(self._links) < CASE_LINKS:
            self._links.append(log_link(attributes, line))
        elif (
            name == "phase"
            and outcome_from_word(attributes.get("result", "")) in BAD_OUTCOMES
            and len(self._phases) < CASE_LINKS
        ):
            text = f"phase {shorten_field(attributes.get('name', ''))}: {shorten_field(attributes['result'])}"
            self._phases.append(EvidenceLine(line, text))
        elif name == "guest" and attributes.get("name"):
            self._places.setdefault("guest", shorten_field(attributes["name"]))
        elif name == "property" and attributes.get("name") in PLACE_PROPERTIES:
            self._places.setdefault(attributes["name"].rpartition(".")[2], shorten_field(attributes.get("value", "")))

    @property
    def outcome(self) -> CaseOutcome:
        found = self._said or self._outcome_attribute
        return (
            CaseOutcome.ERROR if found is CaseOutcome.FAILED and self._given.get("label") == "Error" else found
        )  # NUnit

    @property
    def _outcome_attribute(self) -> CaseOutcome:
        given = self._given.get("result")
        if given is None:
            return CaseOutcome.SKIPPED if self._given.get("status") == "notrun" else CaseOutcome.PASSED
        return outcome_from_word(given)

    @property
    def flaky(self) -> bool:
        """Whether it failed and passed. Surefire's `rerunFailure` beside a `failure` means that every try failed."""
        return self._flaky or bool(self._tries and self.outcome is CaseOutcome.PASSED)

    @property
    def identity(self) -> tuple[str, str, str]:
        """Suite, class and name, by which a repeated test is recognised."""
        given = self._given
        return self.suite, given.get("classname") or given.get("type", ""), given.get("name", "")

    @property
    def similarity_key(self) -> tuple[str, str]:
        """A key that is roughly equal for the same failure, used only to keep some cases of each."""
        message = self._first_message
        if not message and not self._type:
            return "", shorten_field(self._given.get("name", ""))
        return self._type, "".join(letter for letter in message[:200] if not letter.isdigit())

    @property
    def _first_message(self) -> str:
        return self._messages[0] if self._messages else "\n".join(line.text for line in self._clip_lines("message"))

    def _clip_lines(self, name: str) -> tuple[EvidenceLine, ...]:
        return self._clips[name].lines() if name in self._clips else ()

    def to_case(self) -> ReportedCase:
        """Return the test as it stands now."""
        given = {name: shorten_field(value) for name, value in self._given.items()}
        return ReportedCase(
            suite=self.suite,
            name=given.get("name", ""),
            outcome=self.outcome,
            at=self.at,
            classname=given.get("classname") or given.get("type", ""),
            file=given.get("file") or given.get("source-file", ""),
            line=parse_count(given.get("line") or given.get("source-line")),
            type=self._type,
            message="\n".join(self._messages) or self._first_message,
            body=(*self._phases, *(line for body in self._bodies for line in body.lines())),
            stdout=self._clip_lines("stdout"),
            stderr=self._clip_lines("stderr"),
            logs=tuple(self._links),
            seconds=parse_seconds(given.get("time") or given.get("duration")),
            failed_tries=self._tries,
            flaky=self.flaky,
            result=given.get("result", ""),
            place=", ".join(self._places.values()),
        )


def log_link(attributes: Mapping[str, str], line: int) -> ReportLink:
    """Make a link from the attributes of a `log` element."""
    return ReportLink(shorten_field(attributes.get("name", "")), shorten_field(attributes.get("href", "")), line)


def outcome_from_word(given: str) -> CaseOutcome:
    """Translate the outcome words of all dialects; unknown words give OTHER."""
    return OUTCOME_WORDS.get(given.strip().lower(), CaseOutcome.OTHER)


def shorten_field(text: str) -> str:
    return text if len(text) <= CASE_FIELD_CHARS else text[: CASE_FIELD_CHARS - 1] + CUT_MARK


def parse_count(text: str | None) -> int | None:
    """Return a number of fewer than ten digits, or None."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def parse_seconds(text: str | None) -> float | None:
    """Return a duration, or None if it is not a sensible number."""
    try:
        found = float((text or "").replace(",", ""))  # Surefire writes 1,234.5
    except ValueError:
        return None
    return found if 0 <= found < 1e9 else None


ROOT_TAGS = frozenset({"testsuites", "testsuite", "testcase", "test-run", "test-results"})
XUNIT_NET_ROOT_TAGS = frozenset({"assemblies", "assembly"})  # files that are not reports have these roots, too
SUITE_TAGS = frozenset({"testsuite", "test-suite", "assembly", "collection"})
CASE_TAGS = frozenset({"testcase", "test-case"})
TRUNCATED = "It is truncated: it ends before its last element is closed."


@dataclass(slots=True)
class _OpenSuite:
    name: str
    at: int
    result: str = ""
    bad: int = 0
    links: list[ReportLink] = field(default_factory=list)


class ReportReader:
    """Reads a report from bytes; `report` is available at any time and covers what was fed so far."""

    def __init__(self) -> None:
        self._stream = XmlStream(self)
        self._root = ""
        self._tests_seen = False
        self._declared: int | None = None
        self._finding = ""
        self._claim = ReportClaim()
        self._claim_depth = 0  # depth of the open element whose numbers include everything within it
        self._path: list[str] = []
        self._suites: list[_OpenSuite] = []
        self._case: OpenCase | None = None
        self._case_depth = 0
        self._sinks: list[tuple[int, TextClip | None]] = []
        self._counts: Counter[CaseOutcome] = Counter()
        self._flaky = 0
        self._cases: list[ReportedCase] = []
        self._alike: Counter[tuple[str, str]] = Counter()
        self._failed: dict[tuple[str, str, str], int] = {}

    def feed(self, chunk: bytes) -> None:
        self._stream.feed(chunk)

    @property
    def report(self) -> ParsedReport:
        """Everything read so far, including a failed test whose element is still open."""
        self._stream.flush()
        left = self._left_open
        counts = self._counts + Counter(case.outcome for case in left)
        return ParsedReport(
            recognised=self._recognised,
            totals=ReportTotals(
                passed=counts[CaseOutcome.PASSED],
                failed=counts[CaseOutcome.FAILED],
                errors=counts[CaseOutcome.ERROR],
                skipped=counts[CaseOutcome.SKIPPED],
                other=counts[CaseOutcome.OTHER],
                flaky=self._flaky,
            ),
            cases=(*self._cases, *(case.to_case() for case in left if self._has_room(case))),
            declared=self._declared,
            read_error=self._stream.error_text or ("" if self._stream.closed else TRUNCATED),
            overall_result=self._finding,
            claim=self._claim,
        )

    @property
    def _left_open(self) -> list[OpenCase]:
        """The open test, if it has failed already; whether any other open test passes is not known yet."""
        return [self._case] if self._case and self._case.outcome in BAD_OUTCOMES else []

    @property
    def _recognised(self) -> bool:
        return self._root in ROOT_TAGS or (self._root in XUNIT_NET_ROOT_TAGS and self._tests_seen)

    # Called by `XmlStream`.

    def start(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        self._path.append(name)
        if len(self._path) == 1:
            self._read_root(name, attributes, line)
        if self._case:
            self._sinks.append((len(self._path), self._case.start_child(name, attributes, line)))
        elif name in CASE_TAGS or (name == "test" and self._root in XUNIT_NET_ROOT_TAGS):
            self._open_case(OpenCase(self._suite_name, attributes, line))
        elif name in SUITE_TAGS:
            self._suites.append(_OpenSuite(shorten_field(attributes.get("name", "")), line, _suite_result(attributes)))
            self._tests_seen = self._tests_seen or "total" in attributes
            self._add_claim(attributes, line)
        elif name in {"failure", "error"} and len(self._path) > 1 and self._path[-2] in {"testsuite", "errors"}:
            self._open_case(OpenCase(self._suite_name, {"name": "(the suite itself)"}, line))
            self._sinks.append(
                (len(self._path), self._case.start_child(name, attributes, line) if self._case else None)
            )
        elif name == "log" and self._suites and len(self._suites[-1].links) < CASE_LINKS:
            self._suites[-1].links.append(log_link(attributes, line))

    def text(self, text: str, line: int) -> None:
        if self._sinks and (sink := self._sinks[-1][1]):
            sink.add(text, line)

    def end(self, name: str) -> None:
        depth = len(self._path)
        while self._sinks and self._sinks[-1][0] >= depth:
            self._sinks.pop()
        if self._case and self._case_depth == depth:
            self._close_case(self._case)
        elif not self._case and name in SUITE_TAGS and self._suites:
            self._close_suite(self._suites.pop())
        if self._claim_depth == depth:
            self._claim_depth = 0
        self._path.pop()

    def _read_root(self, name: str, attributes: Mapping[str, str], line: int) -> None:
        self._root = name
        self._declared = parse_count(attributes.get("tests") or attributes.get("total"))
        self._finding = shorten_field(attributes.get("overall-result", ""))
        self._add_claim(attributes, line)

    def _add_claim(self, attributes: Mapping[str, str], line: int) -> None:
        """Add the declared failures of an outermost element; the numbers of elements within it are part of them."""
        failures = parse_count(attributes.get("failures") or attributes.get("failed"))
        errors = parse_count(attributes.get("errors"))
        if self._claim_depth or (failures is None and errors is None):
            return
        self._claim_depth, before = len(self._path), self._claim
        at = before.at if before.bad else line
        self._claim = ReportClaim(before.failures + (failures or 0), before.errors + (errors or 0), at)

    @property
    def _suite_name(self) -> str:
        return next((suite.name for suite in reversed(self._suites) if suite.name), "")

    def _open_case(self, case: OpenCase) -> None:
        self._case, self._case_depth, self._tests_seen = case, len(self._path), True

    def _close_case(self, case: OpenCase) -> None:
        self._case = None
        outcome = case.outcome
        self._counts[outcome] += 1
        self._flaky += case.flaky
        if outcome in BAD_OUTCOMES:
            for suite in self._suites:
                suite.bad += 1
        if outcome in BAD_OUTCOMES or case.flaky:
            self._keep_case(case)
        elif outcome is CaseOutcome.PASSED and case.identity in self._failed:
            self._mark_flaky(case.identity)

    def _has_room(self, case: OpenCase) -> bool:
        return len(self._cases) < CASES_KEPT and self._alike[case.similarity_key] < CASES_ALIKE

    def _keep_case(self, case: OpenCase) -> None:
        if self._has_room(case):
            self._alike[case.similarity_key] += 1
            kept = case.to_case()
            if not kept.result:  # Testing Farm reports several tests by one name: one per guest or plan
                self._failed[case.identity] = len(self._cases)
            self._cases.append(kept)

    def _mark_flaky(self, key: tuple[str, str, str]) -> None:
        place = self._failed.pop(key)
        self._cases[place] = replace(self._cases[place], flaky=True, failed_tries=self._cases[place].failed_tries + 1)
        self._flaky += 1

    def _close_suite(self, suite: _OpenSuite) -> None:
        """Report a suite that failed although none of its tests did, because it never ran them."""
        outcome = outcome_from_word(suite.result) if suite.result else CaseOutcome.PASSED
        if outcome in BAD_OUTCOMES and not suite.bad:
            for around in self._suites:
                around.bad += 1
            self._counts[outcome] += 1
            name = suite.name or "(a suite without a name)"
            if len(self._cases) < CASES_KEPT:
                self._cases.append(
                    ReportedCase(
                        self._suite_name, name, outcome, suite.at, logs=tuple(suite.links), result=suite.result,
                        message="The suite failed, and none of its tests did.",
                    )
                )  # fmt: skip


def _suite_result(attributes: Mapping[str, str]) -> str:
    return shorten_field(attributes.get("result") or attributes.get("overall-result") or "")


def read_report(chunks: Iterable[bytes]) -> ParsedReport:
    """Read a whole report."""
    reader = ReportReader()
    for chunk in chunks:
        reader.feed(chunk)
    return reader.report

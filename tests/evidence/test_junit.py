"""Reading test reports in every dialect."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.limits import CASE_BODY_CHARS, CASE_FIELD_CHARS, CASE_OUTPUT_CHARS, CASES_ALIKE, CASES_KEPT
from hummingbird.evidence.regions import CONFIDENT, FailureClass, RegionKind
from hummingbird.evidence.reports.junit import ReportReader, read_report
from hummingbird.evidence.reports.report_cases import (
    CaseOutcome,
    ParsedReport,
    ReportClaim,
    ReportedCase,
    ReportTotals,
    region_from_case,
    regions_from_report,
)
from tests.evidence import sample_reports

FIXTURES = Path(__file__).parents[1] / "fixtures" / "evidence" / "testing_farm"


def only(report: ParsedReport, name: str) -> ReportedCase:
    return next(case for case in report.cases if case.name == name)


def test_surefire_s_failures_errors_and_skips_are_counted_and_told() -> None:
    report = read_report([sample_reports.SUREFIRE])
    assert report.totals == ReportTotals(passed=2, failed=1, errors=1, skipped=1, flaky=1)
    assert not report.read_error
    case = only(report, "totals")
    assert (case.suite, case.classname, case.type) == (
        "org.example.CartTest",
        "org.example.CartTest",
        "org.opentest4j.AssertionFailedError",
    )
    assert case.message == "expected: <3> but was: <2>"
    assert "\tat org.example.CartTest.totals(CartTest.java:42)" in [line.text for line in case.body]
    assert [line.text for line in case.stdout] == ["cart has 2 items"]
    assert [line.text for line in case.stderr] == ["oops"]
    assert case.seconds == 0.02


def test_lines_of_a_failure_carry_their_numbers_in_the_report() -> None:
    lines = sample_reports.SUREFIRE.decode().split("\n")
    case = only(read_report([sample_reports.SUREFIRE]), "totals")
    for line in (*case.body, *case.stdout, *case.stderr):
        assert line.text.strip() in lines[line.number - 1]
    assert '<testcase name="totals"' in lines[case.at - 1]


def test_a_test_that_passed_when_tried_again_is_flaky_and_one_that_never_did_is_not() -> None:
    report = read_report([sample_reports.SUREFIRE])
    races, totals = only(report, "races"), only(report, "totals")
    assert races.outcome is CaseOutcome.PASSED
    assert races.flaky
    assert region_from_case(races).blame.class_ is FailureClass.FLAKY
    assert region_from_case(races).blame.confidence >= CONFIDENT
    assert totals.failed_tries == 1
    assert region_from_case(totals).blame.class_ is FailureClass.TEST


def test_a_test_that_is_there_twice_and_passed_later_is_called_flaky_without_certainty() -> None:
    twice = b"""<testsuite name="s"><testcase classname="c" name="t"><failure message="m"/></testcase>
    <testcase classname="c" name="other"/><testcase classname="c" name="t"/></testsuite>"""
    report = read_report([twice])
    assert report.totals == ReportTotals(passed=2, failed=1, flaky=1)
    blame = region_from_case(report.cases[0]).blame
    assert blame.class_ is FailureClass.FLAKY
    assert blame.confidence < CONFIDENT


def test_pytest_s_source_place_and_marked_lines_are_kept() -> None:
    report = read_report([sample_reports.PYTEST])
    assert report.totals == ReportTotals(passed=1, failed=1, errors=1)
    bad = only(report, "test_bad")
    assert (bad.file, bad.line) == ("tests/test_sum.py", 4)
    assert "E       assert 1 == 2" in [line.text for line in bad.body]
    assert region_from_case(only(report, "tests.test_gone")).rule == "test-error"


def test_every_failure_of_a_gtest_case_is_kept_and_completed_is_no_failure() -> None:
    report = read_report([sample_reports.GTEST])
    assert report.totals == ReportTotals(passed=1, failed=1, skipped=1)
    assert report.declared == 3
    assert "q.size()" in report.cases[0].message
    assert "Expected: true" in report.cases[0].message
    assert (report.cases[0].file, report.cases[0].line) == ("queue_test.cc", 12)


def test_xunit_net_is_read_with_its_messages_and_the_errors_of_an_assembly() -> None:
    report = read_report([sample_reports.XUNIT_NET])
    assert report.recognised
    assert report.totals == ReportTotals(passed=1, failed=1, errors=1, skipped=1)
    bad = only(report, "Math.Divides")
    assert (bad.type, bad.message, bad.classname) == ("Xunit.Sdk.EqualException", "Assert.Equal() Failure", "Math")
    assert [line.text for line in bad.body] == ["   at Math.Divides() in Math.cs:line 9"]
    assert [line.text for line in bad.stdout] == ["dividing"]
    assert "file is locked" in next(case for case in report.cases if case.outcome is CaseOutcome.ERROR).message


def test_nunit_is_read_and_its_suites_do_not_count_as_failures() -> None:
    report = read_report([sample_reports.NUNIT])
    assert report.totals == ReportTotals(passed=1, failed=1, errors=1)
    assert [case.message for case in report.cases] == ["Expected: 1", "boom"]


def test_testing_farm_s_words_logs_phases_and_guests_are_read() -> None:
    report = read_report([sample_reports.TESTING_FARM])
    assert report.totals == ReportTotals(passed=1, failed=1, errors=2, other=1)
    assert report.overall_result == "failed"
    failed = only(report, "/tests/a")
    assert [link.href for link in failed.logs] == ["https://artifacts.example.org/1/a/output.txt"]
    assert [line.text for line in failed.body] == ["phase Test: FAIL"]
    assert failed.place == "client, aarch64, Fedora-44"
    assert not failed.flaky, "the same name on another guest is another test"


def test_a_testing_farm_suite_that_never_got_to_its_tests_is_a_failure_with_its_logs() -> None:
    suite = only(read_report([sample_reports.TESTING_FARM]), "/plans/two")
    assert suite.outcome is CaseOutcome.ERROR
    assert [link.href for link in suite.logs] == ["https://artifacts.example.org/2/tmt-run.log"]
    assert region_from_case(suite).blame.class_ is FailureClass.INFRASTRUCTURE


@pytest.mark.parametrize(("name", "passed"), [("results_xunit_2020.xml", 6), ("results_multihost_2026.xml", 5)])
def test_real_reports_of_testing_farm_are_read_to_the_end(name: str, passed: int) -> None:
    report = read_report([(FIXTURES / name).read_bytes()])
    assert report.totals == ReportTotals(passed=passed)
    assert (report.recognised, report.read_error, report.overall_result) == (True, "", "passed")


def test_a_failure_on_one_guest_of_a_real_multihost_report_names_the_guest_and_its_log() -> None:
    content = (FIXTURES / "results_multihost_2026.xml").read_bytes()
    broken = content.replace(b'multihost/C" result="passed"', b'multihost/C" result="failed"', 1)
    (case,) = read_report([broken]).cases
    assert case.place == "server, x86_64, Fedora-Rawhide"
    assert any(link.name == "testout.log" and link.href.endswith("C-3/output.txt") for link in case.logs)


def test_a_suite_that_fails_outside_of_its_tests_is_told() -> None:
    report = read_report(
        [b'<testsuites><testsuite name="s"><error message="no set-up"/><testcase name="t"/></testsuite></testsuites>']
    )
    assert report.totals == ReportTotals(passed=1, errors=1)
    assert report.cases[0].message == "no set-up"


@pytest.mark.parametrize("end", [b"", b"<<"])
def test_a_test_that_failed_before_the_report_breaks_off_is_kept_with_its_text(end: bytes) -> None:
    cut = b'<testsuite><testcase name="t1"/>\n<testcase name="t2"><failure message="boom">\nAssertionError: 1 != 2\n'
    report = read_report([cut + end])
    assert report.totals == ReportTotals(passed=1, failed=1)
    assert report.read_error
    (case,) = report.cases
    assert (case.name, case.message, case.at) == ("t2", "boom", 2)
    assert [(line.number, line.text) for line in case.body] == [(3, "AssertionError: 1 != 2")]


def test_a_test_that_broke_off_before_it_failed_is_not_counted() -> None:
    assert read_report(
        [b'<testsuite><testcase name="t1"/><testcase name="t2"><system-out>so far']
    ).totals == ReportTotals(passed=1)


def test_asking_before_a_failed_test_has_ended_does_not_count_it_twice() -> None:
    reader = ReportReader()
    reader.feed(b'<testsuite><testcase name="t"><failure message="m">')
    assert reader.report.totals == ReportTotals(failed=1)
    reader.feed(b"</failure></testcase></testsuite>")
    assert reader.report.totals == ReportTotals(failed=1)
    assert len(reader.report.cases) == 1


@pytest.mark.parametrize(
    ("content", "claim"),
    [
        (
            b'<testsuites failures="3"><testsuite failures="2"/><testsuite failures="1"/></testsuites>',
            ReportClaim(3, 0, 1),
        ),
        (b'<testsuites>\n<testsuite failures="2"/>\n<testsuite errors="1"/></testsuites>', ReportClaim(2, 1, 2)),
        (b'<testsuite><testsuite errors="1"><testsuite errors="1"/></testsuite></testsuite>', ReportClaim(0, 1, 1)),
        (b'<test-run failed="4"><test-suite failed="4"/></test-run>', ReportClaim(4, 0, 1)),
        (b'<testsuite failures="many" errors="-1"/>', ReportClaim()),
    ],
)
def test_the_outermost_numbers_of_failures_are_what_a_report_claims(content: bytes, claim: ReportClaim) -> None:
    assert read_report([content]).claim == claim


@pytest.mark.parametrize("name", sorted(sample_reports.ALL))
def test_a_report_that_names_its_failures_claims_no_others(name: str) -> None:
    assert read_report([sample_reports.ALL[name]]).unnamed_failures == 0


def test_the_same_failure_many_times_does_not_crowd_out_another() -> None:
    same = b"".join(b'<testcase name="t%d"><failure message="down %d"/></testcase>' % (n, n) for n in range(5_000))
    report = read_report(
        [b"<testsuite>", same, b'<testcase name="x"><failure message="differs"/></testcase></testsuite>']
    )
    assert report.totals.failed == 5_001
    assert [case.message for case in report.cases][-1] == "differs"
    assert len(report.cases) == CASES_ALIKE + 1
    assert report.dropped == 5_001 - len(report.cases)


def test_failures_without_a_message_are_told_apart_by_their_names() -> None:
    tests = b"".join(b'<testcase name="/t/%d" result="failed"/>' % number for number in range(50))
    assert len(read_report([b"<testsuites><testsuite>", tests, b"</testsuite></testsuites>"]).cases) == 50


def test_distinct_failures_without_end_are_counted_and_a_bounded_number_is_kept() -> None:
    many = b"".join(b'<testcase name="t"><failure message="%s"/></testcase>' % (b"x" * n) for n in range(1, 800))
    report = read_report([b"<testsuite>", many, b"</testsuite>"])
    assert report.totals.failed == 799
    assert len(report.cases) <= CASES_KEPT


def test_what_is_kept_of_a_case_is_bounded_and_what_is_cut_carries_a_mark() -> None:
    long = b"first\n" + b"line of a trace\n" * 100_000 + b"the last word\n"
    content = (
        b'<testsuite><testcase name="%s"><failure message="%s">' % (b"n" * 90_000, b"m" * 90_000)
        + long + b"</failure><system-out>" + long + b"</system-out></testcase></testsuite>"
    )  # fmt: skip
    (case,) = read_report([content]).cases
    body = [line.text for line in case.body]
    assert (body[0], body[-1]) == ("first", "the last word")
    assert sum(map(len, body)) <= CASE_BODY_CHARS + 2
    assert any(text.endswith("…") for text in body)
    assert any(text.startswith("…") for text in body)
    assert sum(len(line.text) for line in case.stdout) <= CASE_OUTPUT_CHARS + 1
    assert len(case.name) == len(case.message) == CASE_FIELD_CHARS
    assert case.name.endswith("…")
    assert case.body[-1].number == 100_002


def test_colours_and_forbidden_characters_do_not_end_the_reading() -> None:
    attribute = b'<failure message="&#27;[31mred&#x1B;[0m &#0;#x1B[1mbold">'
    body = b"\x1b[31mE  red\x1b[0m\x00\x08</failure>"
    (case,) = read_report([b'<testsuite><testcase name="t">', attribute, body, b"</testcase></testsuite>"]).cases
    assert case.message == "red bold"
    assert [line.text for line in case.body] == ["E  red"]


@pytest.mark.parametrize(
    ("message", "kind", "class_"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", RegionKind.MEMORY, FailureClass.INFRASTRUCTURE),
        ("OSError: [Errno 28] No space left on device", RegionKind.QUOTA, FailureClass.INFRASTRUCTURE),
        ("Connection refused", RegionKind.NETWORK, FailureClass.INFRASTRUCTURE),
        ("Timeout >120.0s", RegionKind.TIMEOUT, FailureClass.UNKNOWN),
        ("No class: java.lang.NoClassDefFoundError", RegionKind.DEPENDENCY, FailureClass.CODE),
        ("expected 1 to be 2", RegionKind.TEST, FailureClass.TEST),
    ],
)
def test_a_message_that_says_more_than_an_assertion_is_judged_by_it(
    message: str, kind: RegionKind, class_: FailureClass
) -> None:
    region = region_from_case(ReportedCase("s", "t", CaseOutcome.FAILED, 1, message=message))
    assert (region.kind, region.blame.class_) == (kind, class_)
    assert region.rule == region.blame.rule
    assert region.blame.why.endswith(".")


def test_one_failure_in_many_tests_has_one_fingerprint_and_another_has_another() -> None:
    def named(name: str, message: str) -> str:
        return region_from_case(
            ReportedCase("s", name, CaseOutcome.FAILED, 1, type="DbError", message=message)
        ).fingerprint

    refused = "could not connect to database orders at 10.0.0.{}: connection refused"
    assert named("adds", refused.format(7)) == named("removes", refused.format(93))
    assert named("adds", refused.format(7)) != named("adds", "unique constraint customer_email violated")


def test_regions_put_failures_before_flaky_tests_and_have_real_line_numbers() -> None:
    flaky = b'<testcase name="f"><flakyFailure message="late"/></testcase>'
    regions = regions_from_report(
        read_report([b"<testsuite>", flaky, b'<testcase name="b"><failure message="m"/></testcase></testsuite>'])
    )
    assert [region.blame.class_ for region in regions] == [FailureClass.TEST, FailureClass.FLAKY]
    assert all(region.first <= region.last for region in regions)
    assert all(region.first > 0 for region in regions)


@pytest.mark.thorough
@given(name=st.sampled_from(sorted(sample_reports.ALL)), cuts=st.lists(st.integers(0, 4_000), max_size=12))
def test_any_chunking_gives_the_same_report(name: str, cuts: list[int]) -> None:
    content = sample_reports.ALL[name]
    edges = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    pieces = [content[a:b] for a, b in pairwise(edges)]
    assert read_report(pieces) == read_report([content])

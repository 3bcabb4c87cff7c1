"""What a note says of its own evidence."""

from dataclasses import replace

from hummingbird.core.orders import OrderCause
from hummingbird.core.verdicts import FailureOrigin, FailureVerdict, JobJudgement
from hummingbird.evidence.citations.checker import CitationCounts
from hummingbird.evidence.citations.coverage import Coverage
from hummingbird.service.coverage import coverage_lines, evidence_paragraph, has_read_no_log
from tests.service.publication.stage import conducted, ordered


def test_nothing_is_said_where_there_is_nothing_to_say() -> None:
    assert evidence_paragraph(conducted()) == ()


def test_what_was_looked_at_and_what_was_not_stands_in_one_paragraph_with_names_as_code() -> None:
    coverage = Coverage(
        logs=("unit", "a`b*"),
        unread=tuple(f"job {number}" for number in range(7)),
        elsewhere=2,
        report=True,
        diff=True,
        files=3,
        without_text=("big.json",),
        failed=("gitlab_get_mr_commits",),
        broken_off=("tf_get_test_log",),
        previewed=1,
    )
    tallies = CitationCounts(
        found=13, removed=1, printed=2, renumbered=1, proposals=1, marked=1, links_removed=2, unchecked="So."
    )
    lines = coverage_lines(replace(conducted(), coverage=coverage, tallies=tallies))
    assert lines == (
        "Looked at: the logs of `unit`, `a'b*`; 2 logs and results of other systems; the test report; the diff "
        "(3 files); 1 long result through previews and searches.",
        "Not looked at: the logs of `job 0`, `job 1`, `job 2`, `job 3`, `job 4` and 2 more, failed; `big.json`, which "
        "GitLab leaves out of the diff for size; the rest of what `tf_get_test_log` broke off; what "
        "`gitlab_get_mr_commits` could not get.",
        "Quoted lines: 16 checked, 13 found, 2 printed by commands alone, 1 removed, 1 given another number or none, "
        "1 block of code not checked, as proposals.",
        "1 place or job marked as not found and 2 links taken out.",
        "So.",
    )
    (paragraph,) = evidence_paragraph(replace(conducted(), coverage=coverage, tallies=tallies))
    assert paragraph.count("<sub>") == 5


def test_an_answer_without_a_look_at_any_log_is_no_result() -> None:
    judged = FailureVerdict(
        origin=FailureOrigin.UNKNOWN, jobs=(JobJudgement(job="build", origin=FailureOrigin.UNKNOWN),)
    )
    blind = replace(conducted("All is well."), verdict=judged)
    assert has_read_no_log(ordered(), blind)
    assert has_read_no_log(ordered(), replace(blind, verdict=None, coverage=Coverage(unread=("build",))))
    assert not has_read_no_log(ordered(OrderCause.REPLY), blind)
    assert not has_read_no_log(ordered(), replace(blind, coverage=Coverage(logs=("build",))))
    assert not has_read_no_log(ordered(), replace(blind, model="digest"))

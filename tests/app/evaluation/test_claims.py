"""Claims that stand in nothing that was fetched, counted as the check of notes finds them."""

from hummingbird.app.evaluation.scores import count_claims
from hummingbird.core.journal import JournalEntry, ToolFinished
from hummingbird.evidence.citations.checker import CitationCounts, check_answer

LOG = "make: *** [all] Error 2\nerror: no such file\nsrc/main.c:3: oops\nsee http://gitlab/jobs/1\n"
FETCHED: list[JournalEntry] = [ToolFinished(at=0.0, call_id="1", name="gitlab_get_job_log", text=LOG)]


def fared(answer: str) -> CitationCounts:
    return check_answer(answer, FETCHED).tallies


def test_what_was_fetched_is_no_false_claim() -> None:
    answer = "[job](http://gitlab/jobs/1) breaks in `src/main.c:3`\n\n```\nerror: no such file\n```"
    found = count_claims(fared(answer))
    assert (found.made, found.wrong, found.fared) == (3, 0, ())


def test_each_kind_of_claim_is_counted() -> None:
    answer = "[job](http://gitlab/jobs/2) breaks in `src/other.c:3`\n\n```\nerror: no such file\nerror: made up\n```"
    found = count_claims(fared(answer))
    assert (found.made, found.wrong) == (4, 3)
    assert found.fared


def test_an_answer_that_could_not_be_checked_says_so() -> None:
    assert count_claims(CitationCounts(unchecked="It was too long.")).fared == ("It was too long.",)

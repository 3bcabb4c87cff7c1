"""Claims that stand in nothing that was fetched, counted as the check of notes finds them."""

from hummingbird.assembly.evaluation.claims import claims_of
from hummingbird.domain.journal import Entry, ToolFinished
from hummingbird.evidence.citations.checking import Tallies, checked

LOG = "make: *** [all] Error 2\nerror: no such file\nsrc/main.c:3: oops\nsee http://gitlab/jobs/1\n"
FETCHED: list[Entry] = [ToolFinished(at=0.0, call_id="1", name="gitlab_get_job_log", text=LOG)]


def fared(answer: str) -> Tallies:
    return checked(answer, FETCHED).tallies


def test_what_was_fetched_is_no_false_claim() -> None:
    answer = "[job](http://gitlab/jobs/1) breaks in `src/main.c:3`\n\n```\nerror: no such file\n```"
    found = claims_of(fared(answer))
    assert (found.made, found.wrong, found.fared) == (3, 0, ())


def test_each_kind_of_claim_is_counted() -> None:
    answer = "[job](http://gitlab/jobs/2) breaks in `src/other.c:3`\n\n```\nerror: no such file\nerror: made up\n```"
    found = claims_of(fared(answer))
    assert (found.made, found.wrong) == (4, 3)
    assert found.fared


def test_an_answer_that_could_not_be_checked_says_so() -> None:
    assert claims_of(Tallies(unchecked="It was too long.")).fared == ("It was too long.",)

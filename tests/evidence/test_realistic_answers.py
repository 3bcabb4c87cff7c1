"""Answers as models write them: nothing valid is lost, and every invented line is caught.

An invented line ends in ‡ in the file; everything else was fetched, or is the model's own.
"""

from pathlib import Path

import pytest

from hummingbird.core.journal import JournalEntry
from hummingbird.evidence.bounds import CITED_CHARS
from hummingbird.evidence.citations.checker import CheckedAnswer, CitationMode, check_answer
from hummingbird.evidence.citations.claims import REMOVED_QUOTATION
from hummingbird.evidence.citations.quote_checks import REMOVED_LINE, UNFOUND_LABEL, UNFOUND_MARK
from tests.evidence.cited import ORDER, URL, jobs, log, whole

FILE = Path(__file__).parents[1] / "fixtures" / "evidence" / "answers" / "answers.md"
INVENTED = " ‡"
TESTS = """\
$ pytest -q
..........F.....
=================================== FAILURES ===================================
____________________________ test_last_page_is_kept ____________________________
    def test_last_page_is_kept():
>       assert len(pages(list(range(25)), 10)) == 3
E       assert 2 == 3
E        +  where 2 = len([[0, 1], [2, 3]])
tests/test_statements.py:12: AssertionError
=========================== short test summary info ============================
FAILED tests/test_statements.py::test_last_page_is_kept - assert 2 == 3
1 failed, 16 passed in 0.42s
ERROR: Job failed: exit code 1"""
BUILD = """\
STEP 4/9: RUN dnf install -y gcc
Error: Failed to download metadata for repo 'fedora': Cannot prepare internal mirrorlist: Curl error (6)
error: build error: building at STEP "RUN dnf install -y gcc": exit status 1"""
DIFF = '''\
--- a/src/ledger/statements.py
+++ b/src/ledger/statements.py
@@ -20,7 +20,7 @@ def pages(entries, size):
     """Split entries into pages."""
     # the caller sorts
     if size < 1:
         raise ValueError("size must be positive")
-    for number in range(-(-len(entries) // size)):
+    for number in range(len(entries) // size):
         start = number * size
         yield entries[start : start + size]
'''
CONFIG = """\
unit tests:
  image: python:3.12
  script:
    - pip install -e .[test]
    - pytest -q
  timeout: 10m"""
TALK = '{"notes":[{"author":"ann","body":"Why not use itertools.batched here?"}]}'
ENTRIES: list[JournalEntry] = [
    ORDER,
    *jobs((70011, "unit tests", "failed"), (70012, "build image", "failed")),
    *log(TESTS.splitlines()),
    *log(BUILD.splitlines(), job_id=70012),
    *whole("gitlab_get_mr_unified_diff", DIFF),
    *whole("gitlab_get_file_at_ref", CONFIG, file_path=".gitlab-ci.yml", ref="main"),
    *whole("gitlab_get_mr_discussions", TALK),
]


def read_answers() -> dict[str, str]:
    parts = FILE.read_text(encoding="utf-8").split("===== ")[1:]
    return {title: body.strip("\n") for title, _, body in (part.partition("\n") for part in parts)}


ANSWERS = read_answers()


def checked(answer: str, mode: CitationMode) -> CheckedAnswer:
    done = check_answer(answer, ENTRIES, known=[URL], mode=mode)
    assert check_answer(done.text, ENTRIES, known=[URL], mode=mode).text == done.text
    return done


def without_marks(text: str) -> str:
    """Take out what the check has added; a label may stand in the place of a blank line."""
    lines = [line.removesuffix(UNFOUND_MARK) for line in text.split("\n") if UNFOUND_LABEL not in line]
    return "\n".join(line for line in lines if line.strip())


def test_there_are_many() -> None:
    assert len(ANSWERS) >= 73
    assert sum(INVENTED in body for body in ANSWERS.values()) >= 17


@pytest.mark.every_case
@pytest.mark.parametrize("title", ANSWERS)
def test_nothing_valid_is_lost_and_every_invented_line_is_caught(title: str) -> None:
    lines = ANSWERS[title].split("\n")
    invented = [line.removesuffix(INVENTED) for line in lines if line.endswith(INVENTED)]
    answer = "\n".join(line.removesuffix(INVENTED) for line in lines)

    marked = checked(answer, CitationMode.MARK)
    assert without_marks(marked.text) == "\n".join(line for line in answer.split("\n") if line.strip())
    assert marked.tallies.unfound == len(invented)
    assert marked.tallies.removed == marked.tallies.links_removed == marked.tallies.marked == 0
    labelled = UNFOUND_LABEL in marked.text
    assert labelled or all(f"{line}{UNFOUND_MARK}" in marked.text for line in invented)

    strict = checked(answer, CitationMode.STRICT)
    assert strict.tallies.removed == len(invented)
    assert not any(line in strict.text.split("\n") for line in invented)
    kept = [line for line in answer.split("\n") if line not in invented and not line.strip().startswith("```")]
    assert all(line in strict.text for line in kept)
    if not invented:
        assert strict.text == answer
        assert REMOVED_LINE not in strict.text
        assert REMOVED_QUOTATION not in strict.text

    assert checked(answer, CitationMode.OFF).text == answer


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("lead", "quotes"),
    [
        ("The same job shows in its log, while using the cache:", True),
        ("The error occurs when running the tests:", True),
        ("Output when running `npm ci`:", True),
        ("What the job says when it tries to add the package:", True),
        ("As seen in the log of `add users` (line 40):", True),
        ("To see why, look at the log:", True),
        ("To see the log yourself:", False),
        ("To silence the error:", False),
        ("This fixes the error:", False),
        ("To reproduce the error, run:", False),
        ("Minimal test that shows the failure:", False),
        ("Here's the corrected code:", False),
        ("Let the log show the host:", False),
    ],
)
def test_the_sentence_before_a_block_says_whose_words_it_holds(lead: str, quotes: bool) -> None:
    text = f"The page is lost.\n\n{lead}\n\n```\nthe mirror was gone for good\n```"
    assert (checked(text, CitationMode.STRICT).text == text) is not quotes


@pytest.mark.parametrize("piece", ["[", " when a", "<a ", "a <- "])
def test_a_heading_made_to_be_slow_is_read_in_time(piece: str) -> None:
    heading = "# " + piece * ((CITED_CHARS - 100) // len(piece))
    text = f"{heading}\n\n```\nx = total(1)\n```"
    assert check_answer(text, ENTRIES, mode=CitationMode.STRICT).text == text

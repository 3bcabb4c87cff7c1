"""Digests of what streams into the sandbox: lines are known again with their numbers, whatever cuts the chunks."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hummingbird.agent.tools.spill import LineDigests
from hummingbird.core.journal import JournalEntry
from hummingbird.evidence.bounds import DIGESTED_LINE_BYTES
from hummingbird.evidence.citations.checker import check_answer
from hummingbird.evidence.citations.diffs import FileLineRange
from hummingbird.evidence.citations.quote_checks import PRINTED_LABEL
from hummingbird.evidence.citations.references import NOT_FOUND_MARK
from tests.evidence.cited import block, printed


def fed(*chunks: bytes, most: int = 1000) -> LineDigests:
    made = LineDigests(most)
    output = made.new_output()
    for chunk in chunks:
        output.feed(chunk)
    output.end()
    return made


@given(st.lists(st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"])), max_size=8), st.data())
def test_every_line_is_held_with_its_number_however_its_bytes_were_cut(lines: list[str], data: st.DataObject) -> None:
    content = "\n".join(lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=4)))
    ends = [0, *cuts, len(content)]
    made = fed(*(content[first:last] for first, last in pairwise(ends)))
    held = made.find_lines([line for line in lines if line])
    for line in filter(None, lines):
        assert held[line] == {number for number, each in enumerate(lines, 1) if each == line}
    assert made.find_lines(["a line that is not among them"]) == {}


def test_a_line_that_is_too_long_is_not_known_and_those_behind_it_keep_their_numbers() -> None:
    long = b"x" * DIGESTED_LINE_BYTES
    made = fed(b"one\n", long, long, b"\nthree\n", long + long)
    assert made.find_lines(["one", "three", "x" * 2 * DIGESTED_LINE_BYTES]) == {"one": {1}, "three": {3}}


def test_what_does_not_fit_is_not_known_and_that_is_said() -> None:
    made = fed(b"one\ntwo\n", b"three\n", most=2)
    assert made.find_lines(["one", "three"]) == {"one": {1}}
    assert made.is_full


def test_a_diff_tells_which_lines_of_which_files_it_has() -> None:
    made = fed(b"diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,3 @@\n a\n+b\n c\n")
    assert made.line_ranges == [FileLineRange("x.py", 1, 2), FileLineRange("x.py", 1, 3)]


def test_what_a_command_printed_counts_as_fetched_only_if_it_streamed_by() -> None:
    made = fed(b"first\n  E  it broke in src/a.py:12\n")
    entries: list[JournalEntry] = [*printed("2:  E  it broke in src/a.py:12\n3:E  it melted in src/b.py:9")]
    answer = f"{block('2:   E  it broke in src/a.py:12')}\n\nSo src/a.py:12 is wrong."
    assert check_answer(answer, entries, digested=made).text == answer
    assert PRINTED_LABEL in check_answer(answer, entries).text
    lie = check_answer(f"{block('E  it melted in src/b.py:9')}\n\nSo src/b.py:9 is wrong.", entries, digested=made).text
    assert PRINTED_LABEL in lie
    assert f"src/b.py:9{NOT_FOUND_MARK}" in lie
    wrong = check_answer(block("7: E  it broke in src/a.py:12"), entries, digested=made).text
    assert wrong == block("2: E  it broke in src/a.py:12")


def test_a_digest_alone_proves_nothing_that_nobody_was_shown() -> None:
    made = fed(b"nobody was shown this line\n")
    assert check_answer(block("nobody was shown this line"), [], digested=made).tallies.found == 0

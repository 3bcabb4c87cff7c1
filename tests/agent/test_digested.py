"""Digests of what streams into the sandbox (N6): lines are known again with their numbers, whatever cuts the chunks."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hummingbird.agent.tools.digested import DigestedLines
from hummingbird.domain.citation_limits import DIGESTED_LINE_BYTES
from hummingbird.domain.journal import Entry
from hummingbird.evidence.citations.checking import checked
from hummingbird.evidence.citations.diffed import Stretch
from hummingbird.evidence.citations.judging import PRINTED
from hummingbird.evidence.citations.mentions import MARK
from tests.evidence.cited import block, printed


def fed(*chunks: bytes, most: int = 1000) -> DigestedLines:
    made = DigestedLines(most)
    output = made.output()
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
    held = made.held([line for line in lines if line])
    for line in filter(None, lines):
        assert held[line] == {number for number, each in enumerate(lines, 1) if each == line}
    assert made.held(["a line that is not among them"]) == {}


def test_a_line_that_is_too_long_is_not_known_and_those_behind_it_keep_their_numbers() -> None:
    long = b"x" * DIGESTED_LINE_BYTES
    made = fed(b"one\n", long, long, b"\nthree\n", long + long)
    assert made.held(["one", "three", "x" * 2 * DIGESTED_LINE_BYTES]) == {"one": {1}, "three": {3}}


def test_what_does_not_fit_is_not_known_and_that_is_said() -> None:
    made = fed(b"one\ntwo\n", b"three\n", most=2)
    assert made.held(["one", "three"]) == {"one": {1}}
    assert made.full


def test_a_diff_tells_which_lines_of_which_files_it_has() -> None:
    made = fed(b"diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,3 @@\n a\n+b\n c\n")
    assert made.stretches == [Stretch("x.py", 1, 2), Stretch("x.py", 1, 3)]


def test_what_a_command_printed_counts_as_fetched_only_if_it_streamed_by() -> None:
    made = fed(b"first\n  E  it broke in src/a.py:12\n")
    entries: list[Entry] = [*printed("2:  E  it broke in src/a.py:12\n3:E  it melted in src/b.py:9")]
    answer = f"{block('2:   E  it broke in src/a.py:12')}\n\nSo src/a.py:12 is wrong."
    assert checked(answer, entries, digested=made).text == answer
    assert PRINTED in checked(answer, entries).text
    lie = checked(f"{block('E  it melted in src/b.py:9')}\n\nSo src/b.py:9 is wrong.", entries, digested=made).text
    assert PRINTED in lie
    assert f"src/b.py:9{MARK}" in lie
    wrong = checked(block("7: E  it broke in src/a.py:12"), entries, digested=made).text
    assert wrong == block("2: E  it broke in src/a.py:12")


def test_a_digest_alone_proves_nothing_that_nobody_was_shown() -> None:
    made = fed(b"nobody was shown this line\n")
    assert checked(block("nobody was shown this line"), [], digested=made).tallies.found == 0

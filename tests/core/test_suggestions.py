"""What becomes of a file by a suggestion: as GitLab does it, or said to be impossible."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hummingbird.core.findings import SuggestedEdit, apply_edits, build_patch, edit_problem, file_problem, split_lines
from tests.core.clicking import clicked
from tests.thoroughly import tries

WORDS = st.text(st.sampled_from("ab\t é`\\+-@"), max_size=6)
ENDS = st.sampled_from(["\n", "\n", "\r\n"])
FILES = st.builds(
    lambda rows, last: "".join(map("".join, rows)) + last, st.lists(st.tuples(WORDS, ENDS), max_size=8), WORDS
)


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, SuggestedEdit]:
    content = draw(FILES)
    most = len(split_lines(content.encode()))
    assume(most)
    first = draw(st.integers(1, most))
    text = "\n".join(draw(st.lists(WORDS, max_size=4)))
    return content, SuggestedEdit(first, draw(st.integers(first, most)), text)


@settings(max_examples=tries(500))
@given(changes())
def test_what_is_taken_gives_the_file_that_a_click_gives(case: tuple[str, SuggestedEdit]) -> None:
    content, change = case
    assume(not edit_problem(content.encode(), change))
    block = f"{change.text}\n" if change.text else ""
    assert apply_edits(content.encode(), [change]).decode() == clicked(
        content, change.last, change.last - change.first, block
    )


@pytest.mark.thorough
@settings(max_examples=tries(300))
@given(changes())
def test_no_line_besides_is_touched_and_the_new_ones_end_as_the_old_ones_did(
    case: tuple[str, SuggestedEdit],
) -> None:
    content, change = case
    raw = content.encode()
    assume(not edit_problem(raw, change))
    before, after = split_lines(raw), split_lines(apply_edits(raw, [change]))
    new = change.text.split("\n") if change.text else []
    assert after[: change.first - 1] == before[: change.first - 1]
    assert after[change.first - 1 + len(new) :] == before[change.last :]
    ends = {line[len(line.rstrip(b"\r\n")) :] for line in after[change.first - 1 :][: len(new)]}
    assert ends <= {line[len(line.rstrip(b"\r\n")) :] for line in before} | {b"\n"}


@pytest.mark.parametrize(
    ("content", "change", "why"),
    [
        (b"a\nb\n", SuggestedEdit(3, 3, "c"), "has 2 lines"),
        (b"a\r\nb\r\n", SuggestedEdit(1, 1, "c\nd"), "CR LF"),
        (b"a\rb\n", SuggestedEdit(1, 1, "c"), "carriage returns"),
        (b"a\n", SuggestedEdit(1, 1, "c\rd"), "carriage returns"),
        (b"a\n", SuggestedEdit(1, 1, "   "), "empty line"),
        (b"a\n", SuggestedEdit(1, 1, "c\n"), "empty line"),
        (b"a\n", SuggestedEdit(1, 1, "\nc"), "empty line"),
        (b"a\nb", SuggestedEdit(2, 2, "b"), "changes nothing"),
    ],
)
def test_what_a_click_would_do_otherwise_is_said(content: bytes, change: SuggestedEdit, why: str) -> None:
    assert why in edit_problem(content, change)


@pytest.mark.parametrize(
    ("content", "change", "after"),
    [
        (b"a\r\nb\r\n", SuggestedEdit(1, 1, "c"), b"c\r\nb\r\n"),
        (b"a\nb", SuggestedEdit(2, 2, "c\nd"), b"a\nc\nd"),
        (b"a\nb", SuggestedEdit(2, 2, ""), b"a\n"),
        (b"a\n", SuggestedEdit(1, 1, ""), b""),
        (b"\ta\nb\nc\n", SuggestedEdit(1, 2, "\t\td"), b"\t\td\nc\n"),
        (b"a\r\nb\r\n", SuggestedEdit(1, 2, ""), b""),
    ],
)
def test_line_ends_stay_what_they_are(content: bytes, change: SuggestedEdit, after: bytes) -> None:
    assert edit_problem(content, change) == ""
    assert apply_edits(content, [change]) == after


@pytest.mark.parametrize(("content", "why"), [(b"a\0b", "not text"), ("ä".encode("latin-1"), "UTF-8"), (b"a", "")])
def test_a_file_that_is_no_text_of_ours_is_left_alone(content: bytes, why: str) -> None:
    assert why in file_problem(content)
    assert bool(why) == bool(file_problem(content))


def test_a_patch_names_the_whole_file_so_that_it_fits_nowhere_else() -> None:
    made = build_patch(b"x\ny\nx", [SuggestedEdit(3, 3, "z"), SuggestedEdit(1, 1, "")], "f").decode().split("\n")
    end = "\\ No newline at end of file"
    assert made == ["--- a/f", "+++ b/f", "@@ -1,3 +1,2 @@", "-x", " y", "-x", end, "+z", end, ""]

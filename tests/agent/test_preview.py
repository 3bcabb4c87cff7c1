"""Head and tail of an output, within any budget, fed in any pieces."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.agent.tools.preview import HeadTailPreview, clip_bytes
from hummingbird.core.limits import PREVIEW_BYTES

LOG = b"".join(b"line number %d says something\n" % n for n in range(1, 5_001))


def of(content: bytes, budget: int = PREVIEW_BYTES, size: int = 4_096) -> str:
    preview = HeadTailPreview()
    for at in range(0, len(content), size):
        preview.feed(content[at : at + size])
    return preview.text(budget)


def test_what_fits_is_shown_whole_with_its_line_numbers() -> None:
    assert of(b"one\ntwo\n\nfour") == "1: one\n2: two\n3: \n4: four"
    assert of(b"") == ""
    assert of(b"\n") == "1: "


def test_the_first_and_the_last_lines_are_shown_and_which_ones_are_not() -> None:
    shown = of(LOG).splitlines()
    left_out = next(line for line in shown if line.startswith("[…"))
    before, after = shown[: shown.index(left_out)], shown[shown.index(left_out) + 1 :]
    assert before[0] == "1: line number 1 says something"
    assert after[-1] == "5000: line number 5000 says something"
    assert len(before) > 20
    assert len(after) > 20
    whole_before = [line for line in before if not line.endswith("…")]
    whole_after = [line for line in after if "…" not in line]
    first, last = len(whole_before) + 1, 5_000 - len(whole_after)
    assert left_out == f"[… left out: lines {first} to {last} of 5000 …]"
    for line in (*whole_before, *whole_after):
        number, _, text = line.partition(": ")
        assert text == f"line number {number} says something"


@pytest.mark.parametrize("size", [1, 7, 100_000, 10_000_000])
def test_the_size_of_the_chunks_does_not_matter(size: int) -> None:
    assert of(LOG[:20_000], size=size) == of(LOG[:20_000])


def test_one_endless_line_shows_its_beginning_and_its_end() -> None:
    head, left_out, tail = of(b"BEGIN" + b"x" * 1_000_000 + b"END").splitlines()
    assert head.startswith("1: BEGINxxx")
    assert head.endswith("x…")
    assert left_out == "[… left out: lines 1 to 1 of 1 …]"
    assert tail.startswith("1: …xxx")
    assert tail.endswith("xEND")


@given(
    st.lists(st.binary(max_size=400) | st.text(max_size=200).map(str.encode), max_size=40),
    st.integers(0, PREVIEW_BYTES + 1_000),
    st.integers(1, 30),
)
def test_a_preview_is_never_over_its_budget_and_always_text(parts: list[bytes], budget: int, times: int) -> None:
    preview = HeadTailPreview()
    for part in parts * times:
        preview.feed(part)
    shown = preview.text(budget).encode()  # strictly: half a character would raise
    assert len(shown) <= min(budget, PREVIEW_BYTES)


@pytest.mark.thorough
@given(st.text(alphabet="aé😀\n", max_size=3_000), st.integers(60, 600))
def test_valid_text_never_shows_half_a_character(text: str, budget: int) -> None:
    assert "\N{REPLACEMENT CHARACTER}" not in of(text.encode(), budget, size=3)


@pytest.mark.thorough
@given(st.lists(st.text(alphabet="ab ", max_size=60), min_size=1, max_size=400), st.integers(120, 3_000))
def test_every_line_that_is_shown_whole_is_the_line_with_that_number(lines: list[str], budget: int) -> None:
    shown = of("\n".join(lines).encode(), budget).split("\n")
    numbered = [line.partition(": ") for line in shown if line and not line.startswith("[…") and "…" not in line]
    for number, _, text in numbered:
        assert lines[int(number) - 1] == text


def test_memory_does_not_grow_with_the_output() -> None:
    preview = HeadTailPreview()
    chunk = b"x" * 65_535 + b"\n"
    tracemalloc.start()
    try:
        for _ in range(1_000):
            preview.feed(chunk)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert preview.lines == 1_000
    assert most < 200_000


@pytest.mark.thorough
@given(st.text(alphabet=st.characters(), max_size=50), st.integers(0, 60))
def test_clipping_keeps_a_beginning_that_fits(text: str, most: int) -> None:
    kept = clip_bytes(text, most)
    assert len(kept.encode()) <= most
    assert text.encode("utf-8", "replace").decode().startswith(kept)

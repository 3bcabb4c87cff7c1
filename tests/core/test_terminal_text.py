"""Text without terminal codes: whatever the chunks, whatever the bytes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.limits import TERMINAL_SEQUENCE_BYTES
from hummingbird.core.text import TerminalTextCleaner

FIXTURES = Path(__file__).parents[1] / "fixtures"
PIECES = st.sampled_from(
    [
        b"\x1b", b"\x1b[", b"\x1b]", b"\x1b[0K", b"\x1b[31;1m", b"\x1b[1;32m", b"\x1b\\", b"\x07", b"\\", b"[",
        b"]8;;", b"m", b"\n", b"\r", b"text", b"\x1bP", b"\x1b(B", b"(", b" ", b"31", b";", b"\xff", b"\xe2", b"\x82",
        b"\xf0\x9f", b"\x00", "é".encode(), "✓".encode(), "🙂".encode(),
    ]
)  # fmt: skip
BYTES = st.lists(PIECES | st.binary(max_size=4), max_size=40).map(b"".join)


def plain(*chunks: bytes) -> bytes:
    text = TerminalTextCleaner()
    return b"".join([*map(text.feed, chunks), text.end()])


def cut(content: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(content) + 1) for place in places})
    return [content[start:end] for start, end in zip([0, *ends], [*ends, len(content)], strict=True)]


@given(BYTES, st.lists(st.integers(min_value=0), max_size=12))
def test_the_result_does_not_depend_on_where_chunks_are_cut(content: bytes, places: list[int]) -> None:
    """Facts 7.4: sequences and characters are split at the borders of chunks."""
    assert plain(*cut(content, places)) == plain(content)


@pytest.mark.thorough
@given(BYTES)
def test_no_line_is_lost_and_what_remains_is_text(content: bytes) -> None:
    text = plain(content)
    assert text.count(b"\n") == content.count(b"\n")
    assert b"\x1b" not in text
    text.decode()


@pytest.mark.thorough
@given(st.text(alphabet=st.characters(exclude_characters="\x1b", exclude_categories=["Cs"])))
def test_what_holds_no_sequence_stays_as_it_is(text: str) -> None:
    assert plain(text.encode()) == text.encode()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[32;1m$ make\x1b[0;m", b"$ make"),
        (b"\x1b[0Ksection_start:1:a\r\x1b[0K$ make", b"section_start:1:a\r$ make"),
        (b"\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x07 end", b"link end"),
        (b"\x1b]0;title\x07text", b"text"),
        (b"\x1b(Btext\x1b=\x1b>\x1b7", b"text"),
        (b"\x1b[?25l\x1b[2J\x1b[38;5;9mred", b"red"),
        (b"\x1bP1$r0m\x1b\\after", b"after"),
        (b"\x1b", b""),
        (b"a\x1b\nb", b"a\nb"),
        (b"\x1b[31\nnext", b"31\nnext"),
        (b"\x1b]never ended\nnext\x07", b"never ended\nnext\x07"),
        (b"\xe2\x82", "\ufffd".encode()),
        (b"a\xffb\n", "a\ufffdb\n".encode()),
    ],
)
def test_each_kind_of_sequence_goes_and_its_surroundings_stay(raw: bytes, text: bytes) -> None:
    assert plain(raw) == text
    assert plain(*(bytes([byte]) for byte in raw)) == text


def test_no_more_than_one_sequence_is_held_back() -> None:
    text = TerminalTextCleaner()
    out = text.feed(b"\x1b]" + b"x" * (TERMINAL_SEQUENCE_BYTES + 100))
    assert len(out) == TERMINAL_SEQUENCE_BYTES + 100
    text = TerminalTextCleaner()
    assert text.feed(b"\x1b]" + b"x" * 100) == b""
    assert text.end() == b"x" * 100


@pytest.mark.parametrize("name", ["job_trace_ansi_unicode.log", "job_trace_sections.log"])
def test_captured_logs_are_cleaned_byte_by_byte_as_a_whole(name: str) -> None:
    raw = (FIXTURES / "gitlab/api" / name).read_bytes()
    text = plain(raw)
    assert plain(*(bytes([byte]) for byte in raw)) == text
    assert b"\x1b" not in text
    assert text.count(b"\n") == raw.count(b"\n")

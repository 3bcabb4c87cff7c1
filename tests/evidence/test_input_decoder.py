"""Bytes as somebody saved them, made into the bytes of a text."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hummingbird.core.errors import InputUnreadable
from hummingbird.core.limits import UNPACKED_PIECE_BYTES
from hummingbird.evidence.input_decoder import InputDecoder
from tests.thoroughly import ALL

PACKERS: list[Callable[[bytes], bytes]] = [gzip.compress, lzma.compress, bz2.compress]
LOG = b"".join(b"line %d of a log\n" % number for number in range(20_000 if ALL else 2_000))


def pieces_of(content: bytes, size: int = 1000) -> tuple[list[bytes], str]:
    unpacking = InputDecoder("It")
    chunks = [content[at : at + size] for at in range(0, len(content), size)]
    pieces = [piece for chunk in chunks for piece in unpacking.feed(chunk)]
    return [*pieces, *unpacking.close()], unpacking.note


def read(content: bytes, size: int = 1000) -> tuple[bytes, str]:
    pieces, note = pieces_of(content, size)
    return b"".join(pieces), note


@pytest.mark.parametrize("size", [1, 1000, 10**7])
@pytest.mark.parametrize("pack", PACKERS)
def test_what_was_packed_comes_out_whole_however_it_is_cut(pack: Callable[[bytes], bytes], size: int) -> None:
    assert read(pack(LOG), size) == (LOG, "")


@pytest.mark.parametrize("size", [1, 1000, 10**7])
@pytest.mark.parametrize("pack", PACKERS)
def test_packed_files_in_a_row_are_one(pack: Callable[[bytes], bytes], size: int) -> None:
    """As `cat a.gz b.gz` makes them."""
    assert read(pack(b"first\n") + pack(LOG) + b"\0\0\0\0" + pack(b"last\n"), size) == (
        b"first\n" + LOG + b"last\n",
        "",
    )


def test_what_follows_a_packed_file_and_is_not_packed_is_ignored() -> None:
    assert read(gzip.compress(LOG) + b"signature" * 1000) == (LOG, "")


@pytest.mark.parametrize("pack", PACKERS)
def test_little_that_unpacks_to_much_comes_in_small_pieces(pack: Callable[[bytes], bytes]) -> None:
    much = 20_000_000 if ALL else 4 * UNPACKED_PIECE_BYTES
    pieces, _ = pieces_of(pack(b"x" * much), 10**7)
    assert sum(map(len, pieces)) == much
    assert max(map(len, pieces)) <= UNPACKED_PIECE_BYTES


def test_damage_in_the_middle_keeps_what_stands_before_it() -> None:
    first = gzip.compress(LOG)
    content, note = read(first + b"\x1f\x8b\x08broken from here on" * 20)
    assert content == LOG
    assert note.startswith("It is damaged (")


@pytest.mark.thorough
def test_a_window_that_needs_too_much_memory_is_refused() -> None:
    """A hostile xz may ask for gigabytes before its first byte."""
    greedy = lzma.compress(LOG, filters=[{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 256 * 1024 * 1024}])
    with pytest.raises(
        InputUnreadable, match=r"It begins like xz and cannot be unpacked \(Memory usage limit exceeded\)"
    ):
        read(greedy)


@pytest.mark.parametrize("codec", ["utf-16", "utf-32", "utf-16-be"])
def test_text_as_windows_saves_it_becomes_utf_8(codec: str) -> None:
    text = "Füße: error\n" * 9000
    mark = b"\xfe\xff" if codec == "utf-16-be" else b""
    assert read(mark + text.encode(codec)) == (text.encode(), "")
    assert read(gzip.compress(mark + text.encode(codec))) == (text.encode(), "")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (bytes(range(256)) * 4, "It is not text"),
        (gzip.compress(bytes(range(256)) * 4), "It is not text"),
        (b"\0" * 100_000, "It is not text"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 50, "It is packed with zstd. Unpack it first: zstd -dc FILE"),
        (b"job.log" + b"x" * 250 + b"ustar\x0000" + b"text\n" * 9000, "It is a tar archive."),
        (gzip.compress(b"job.log" + b"x" * 250 + b"ustar\x0000" + b"text\n" * 9000), "It is a tar archive."),
        (b"\x7fELF" + b"x" * 50, "It is a program, not a log."),
        (b"\x1f\x8b\x08nonsense", "It begins like gzip and cannot be unpacked"),
    ],
)
def test_what_is_no_text_is_refused_with_what_it_is(content: bytes, sentence: str) -> None:
    with pytest.raises(InputUnreadable) as refused:
        read(content)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"BZ", LOG[:900] + b"\0" * 20 + LOG, "\x1b[31mré\x1b[0m\a\n".encode("latin-1") * 50]
)
def test_a_log_with_a_few_odd_bytes_is_a_log(content: bytes) -> None:
    assert read(content) == (content, "")


@pytest.mark.parametrize("cut", [2, 9, 300])
def test_a_packed_file_that_ends_too_soon_says_so(cut: int) -> None:
    content, note = read(gzip.compress(LOG)[:cut])
    assert LOG.startswith(content)
    assert note == "It ends in the middle of what gzip packed; the rest is missing."


def outcome(content: bytes, size: int) -> bytes | str:
    try:
        return read(content, size)[0]
    except InputUnreadable as refused:
        return str(refused)


@given(some.binary(max_size=3000), some.integers(1, 700))
def test_whatever_comes_in_it_is_text_or_a_sentence_however_it_is_cut(content: bytes, size: int) -> None:
    found = outcome(content, size)
    assert found == outcome(content, 5000)
    assert isinstance(found, bytes) or found.startswith("It ")

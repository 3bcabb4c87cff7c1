"""L17, T1: a tool's output as text that cannot flood a conversation."""

import tracemalloc
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.agent.tools.results import bounded, inline
from hummingbird.domain.limits import INLINE_RESULT_BYTES
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import ByteStream

SPEC = ToolSpec("it", "Does it.", {"type": "object"})
ROOM = INLINE_RESULT_BYTES


async def stream(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def streamed(*chunks: bytes, **given: Any) -> str:
    return await inline(SPEC, ByteStream(stream(chunks), **given))


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ({"a": [1, None, True]}, '{"a":[1,null,true]}'),
        ([], "[]"),
        (0, "0"),
        (1.5, "1.5"),
        (False, "false"),
        (None, "null"),
        ("lone \udcff half", "lone ? half"),
    ],
)
async def test_text_stays_text_and_json_becomes_json(output: Any, text: str) -> None:
    """T1"""
    assert await inline(SPEC, output) == text


@pytest.mark.parametrize("size", [ROOM - 1, ROOM])
async def test_what_fits_is_left_alone(size: int) -> None:
    """T1"""
    assert await inline(SPEC, "x" * size) == "x" * size
    assert await streamed(b"x" * size) == "x" * size


@pytest.mark.parametrize("piece", ["x", "é", "😀", "\ud800"])
async def test_what_does_not_fit_keeps_head_and_tail_and_says_what_is_missing(piece: str) -> None:
    """T1"""
    text = await inline(SPEC, "HEAD" + piece * ROOM + "TAIL")
    assert text.startswith("HEAD")
    assert text.endswith("TAIL")
    assert "bytes left out here" in text
    assert len(text.encode()) < ROOM + 200


async def test_json_that_does_not_fit_is_cut_like_text() -> None:
    """T1"""
    assert "left out" in await inline(SPEC, {"log": "x" * ROOM})


@pytest.mark.parametrize("size", [1, 1_000, 1_000_000])
async def test_a_stream_is_cut_like_the_text_it_holds(size: int) -> None:
    """T1: whatever the size of its chunks."""
    content = b"".join(b"line %d\n" % n for n in range(20_000))
    chunks = (
        [content[at : at + size] for at in range(0, len(content), size)] if size > 1 else [content[:9], content[9:]]
    )
    assert await streamed(*chunks) == await inline(SPEC, content.decode())


async def test_a_stream_is_read_without_being_held() -> None:
    """T1: 64 MB come by, a few hundred kilobytes are kept."""

    async def flood() -> AsyncIterator[bytes]:
        for _ in range(1_024):
            yield bytes(64 * 1024)

    tracemalloc.start()
    try:
        text = await inline(SPEC, ByteStream(flood()))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert f"of {64 * 1024 * 1024} bytes" in text
    assert most < 2_000_000


async def test_a_binary_stream_is_counted_and_not_shown() -> None:
    """T1"""
    text = await streamed(b"\x00\xff" * 50, b"x", suffix="tar.gz", binary=True)
    assert text == "[101 bytes of binary tar.gz from it; not shown]"


async def test_an_empty_stream_is_an_empty_text() -> None:
    """T1"""
    assert await streamed() == ""


async def test_bytes_that_are_no_text_do_not_break_the_result() -> None:
    """T1"""
    assert (await streamed(b"\xff\xfe ok")).endswith(" ok")


async def test_a_stream_that_breaks_off_or_brings_no_bytes_raises() -> None:
    """L17: the batch makes an error result of it."""

    async def breaking() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    async def wrong() -> AsyncIterator[Any]:
        yield "text, not bytes"

    with pytest.raises(ConnectionResetError):
        await inline(SPEC, ByteStream(breaking()))
    with pytest.raises(TypeError):
        await inline(SPEC, ByteStream(wrong()))


@given(st.text(alphabet=st.characters(), max_size=200), st.integers(1, 2_000))
def test_a_bounded_text_can_be_sent_and_is_bounded(text: str, times: int) -> None:
    """L17"""
    assert len(bounded(text * times).encode()) <= ROOM + 200

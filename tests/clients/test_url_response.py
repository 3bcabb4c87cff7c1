"""Bodies are bounded, unpacked in pieces, and never taken for whole when they are not."""

import asyncio
import gzip
import tracemalloc
import zlib
from contextlib import AsyncExitStack

import pytest

from hummingbird.clients.network_guard import create_guarded_client
from hummingbird.clients.url_fetch import OpenResponseStream, UrlFetcher
from hummingbird.core.errors import SourceResponseInvalid, SourceUnavailable
from hummingbird.core.limits import HTTP_PIECE_BYTES, HTTP_WORTHWHILE_BYTES
from tests.clients.speaking import HUSH, speaking, told

MUCH = 64 * 1024 * 1024


async def pieces_of(answer: bytes, most_bytes: int = MUCH) -> tuple[list[bytes], Exception | None]:
    """What came, and what then went wrong."""
    pieces: list[bytes] = []
    async with speaking(answer) as server, create_guarded_client(private=True) as client:
        try:
            async with UrlFetcher(client).open(server.url, most_bytes=most_bytes) as opened:
                async for piece in opened.chunks():
                    pieces.append(piece)  # noqa: PERF401 — what came before trouble counts
        except (SourceResponseInvalid, SourceUnavailable) as error:
            return pieces, error
    return pieces, None


def in_chunks(body: bytes, size: int) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


async def test_many_small_chunks_are_gathered_and_large_ones_are_cut() -> None:
    body = bytes(range(256)) * 4096
    pieces, trouble = await pieces_of(in_chunks(body, 700))
    assert (b"".join(pieces), trouble) == (body, None)
    assert all(len(piece) <= HTTP_PIECE_BYTES for piece in pieces)
    assert len(pieces) <= len(body) // HTTP_WORTHWHILE_BYTES + 4


async def test_more_than_the_caller_takes_is_cut_off_and_said() -> None:
    pieces, trouble = await pieces_of(told(200, b"x" * 5000), most_bytes=1234)
    assert b"".join(pieces) == b"x" * 1234
    assert isinstance(trouble, SourceResponseInvalid)
    assert "larger than 1234 bytes" in str(trouble)


async def test_exactly_as_much_as_the_caller_takes_is_whole() -> None:
    pieces, trouble = await pieces_of(told(200, b"x" * 1234), most_bytes=1234)
    assert (b"".join(pieces), trouble) == (b"x" * 1234, None)


PACKED = gzip.compress(b"line\n" * 1000)


@pytest.mark.parametrize(
    ("answer", "came"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this", b"only this"),
        (in_chunks(b"only this", 9)[:-5], b"only this"),
        (told(200, PACKED[:-4], ["Content-Encoding: gzip"]), b"line\n" * 1000),
        (told(200, b"no gzip at all", ["Content-Encoding: gzip"]), b""),
        (told(200, b"?", ["Content-Encoding: br"]), b""),
    ],
    ids=["length", "chunked", "gzip end", "no gzip", "unknown packing"],
)
async def test_a_body_that_breaks_off_gives_what_came_and_says_so(answer: bytes, came: bytes) -> None:
    pieces, trouble = await pieces_of(answer)
    assert b"".join(pieces) == came
    assert isinstance(trouble, SourceResponseInvalid)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"one, ") + gzip.compress(b"two")),
        ("X-GZIP", gzip.compress(b"one, two") + b"\0\0\0"),
        ("deflate", zlib.compress(b"one, two")),
        ("deflate", zlib.compress(b"one, two")[2:-4]),
        ("identity", b"one, two"),
        ("gzip", b""),
    ],
    ids=["several members", "trailing zeros", "zlib", "bare deflate", "not packed", "empty"],
)
async def test_packed_bodies_are_unpacked(encoding: str, body: bytes) -> None:
    pieces, trouble = await pieces_of(told(200, body, [f"Content-Encoding: {encoding}"]))
    assert (b"".join(pieces), trouble) == (b"one, two" if body else b"", None)


@pytest.mark.thorough
async def test_a_bomb_does_not_go_off_in_memory() -> None:
    bomb = gzip.compress(bytes(10 * 1024 * 1024), 9) * 30  # 300 MB unpacked
    answer = told(200, bomb, ["Content-Encoding: gzip"])
    most, came = 100 * 1024 * 1024, 0
    async with speaking(answer) as server, create_guarded_client(private=True) as client:
        tracemalloc.start()
        try:
            with pytest.raises(SourceResponseInvalid, match="larger than"):  # noqa: PT012 - reading is what raises
                async with UrlFetcher(client).open(server.url, most_bytes=most) as opened:
                    async for piece in opened.chunks():
                        came += len(piece)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert came == most
    assert peak < 8 * 1024 * 1024


@pytest.mark.thorough
async def test_others_have_their_turn_while_a_bomb_is_unpacked() -> None:
    """A chunk of 64 KB may unpack to 64 MB, and no read from the network is between its pieces."""
    answer = told(200, gzip.compress(bytes(16 * 1024 * 1024), 9), ["Content-Encoding: gzip"])
    turns, pieces = 0, 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with (
        speaking(answer) as server,
        create_guarded_client(private=True) as client,
        UrlFetcher(client).open(server.url, most_bytes=MUCH) as opened,
    ):
        waiting = asyncio.create_task(others())
        seen: set[int] = set()
        async for _ in opened.chunks():
            pieces += 1
            seen.add(turns)
        waiting.cancel()
    assert pieces == 16 * 1024 * 1024 // HTTP_PIECE_BYTES
    assert len(seen) >= pieces - 2


async def test_what_unpacks_to_nothing_ends_too() -> None:
    pieces, trouble = await pieces_of(told(200, gzip.compress(b"") * 5000, ["Content-Encoding: gzip"]), 10_000)
    assert (pieces, isinstance(trouble, SourceResponseInvalid)) == ([], True)


async def test_a_body_that_falls_silent_gives_what_came_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2

    from hummingbird.clients import url_fetch

    monkeypatch.setattr(url_fetch, "_TIMEOUT", httpx2.Timeout(0.05))
    pieces, trouble = await pieces_of(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this" + HUSH)
    assert b"".join(pieces) == b"only this"
    assert isinstance(trouble, SourceUnavailable)


async def test_an_answer_can_outlive_the_call_that_opened_it() -> None:
    async with speaking(told(200, b"here")) as server, create_guarded_client(private=True) as client:
        stack = AsyncExitStack()
        closed: list[bool] = []
        stack.callback(closed.append, True)
        answer = await stack.enter_async_context(UrlFetcher(client).open(server.url, most_bytes=MUCH))
        assert [chunk async for chunk in OpenResponseStream(stack, answer.chunks())] == [b"here"]
    assert closed == [True]


async def test_an_answer_that_nobody_begins_to_read_can_be_closed() -> None:
    async with speaking(told(200, b"here")) as server, create_guarded_client(private=True) as client:
        stack = AsyncExitStack()
        closed: list[bool] = []
        stack.callback(closed.append, True)
        answer = await stack.enter_async_context(UrlFetcher(client).open(server.url, most_bytes=MUCH))
        held = OpenResponseStream(stack, answer.chunks())
        await held.aclose()
        await held.aclose()
    assert closed == [True]

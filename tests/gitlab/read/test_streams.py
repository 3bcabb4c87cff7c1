"""Bodies and lists as async streams: as they come, and closed when they are left."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator

import pytest

from hummingbird.core.errors import SourceError, SourceUnavailable
from hummingbird.core.limits import HTTP_WORTHWHILE_BYTES
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.gitlab.read.client import encode_lines
from tests.gitlab.read.stage import Answer, Stage, source_at

PIECE = b"x" * HTTP_WORTHWHILE_BYTES


async def test_a_list_whose_time_is_over_says_so_in_its_last_line() -> None:
    async def slow() -> AsyncGenerator[dict[str, int], None]:
        yield {"id": 1}
        raise SourceUnavailable("It took too long.")

    first, last = b"".join([chunk async for chunk in encode_lines(slow())]).splitlines()
    assert first == b'{"id":1}'
    assert b"breaks off here, after 1. It took too long." in last


async def test_lines_are_gathered() -> None:
    async def many() -> AsyncGenerator[dict[str, int], None]:
        for number in range(HTTP_WORTHWHILE_BYTES):
            yield {"id": number}

    found = [chunk async for chunk in encode_lines(many())]
    assert b"".join(found).count(b"\n") == HTTP_WORTHWHILE_BYTES
    assert all(len(chunk) >= HTTP_WORTHWHILE_BYTES for chunk in found[:-1])


async def test_a_log_that_trickles_is_gathered(stage: Stage) -> None:
    stage.answers = [Answer(body=lambda: (b"ab" for _ in range(10_000)), kind="text/plain")]
    with source_at(stage.url) as ask:
        output = await ask.output("get_job_log", job_id=1)
        assert isinstance(output, ByteStream)
        found = [chunk async for chunk in output.chunks]
    assert b"".join(found) == b"ab" * 10_000
    assert len(found) < 1_000


async def test_streams_really_stream(stage: Stage) -> None:
    """The body never ends here."""
    going_on = threading.Event()

    def body() -> Iterator[bytes]:
        yield PIECE
        going_on.wait()
        yield b"last"

    stage.answers = [Answer(body=body, kind="text/plain")]
    with source_at(stage.url) as ask:
        output = await ask.output("get_job_log", job_id=1)
        assert isinstance(output, ByteStream)
        assert await anext(output.chunks) == PIECE
        going_on.set()
        assert await anext(output.chunks) == b"last"


async def test_leaving_in_the_middle_closes_the_connection(stage: Stage) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield PIECE

    stage.answers = [Answer(body=endless, kind="text/plain")]
    with source_at(stage.url) as ask:
        output = await ask.output("get_job_log", job_id=1)
        assert isinstance(output, ByteStream)
        await anext(output.chunks)
        close = getattr(output.chunks, "aclose")  # noqa: B009 - part of what streams may have
        await close()
    assert await asyncio.to_thread(stage.left.wait)


async def test_a_call_that_is_cancelled_while_it_reads_hangs_up(stage: Stage) -> None:
    silent, begun = threading.Event(), threading.Event()

    def body() -> Iterator[bytes]:
        yield b"a little"
        begun.set()
        silent.wait()

    stage.answers = [Answer(body=body, kind="text/plain")]
    with source_at(stage.url) as ask:
        task = asyncio.create_task(ask.output("get_job_log", job_id=1))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        silent.set()


async def test_a_call_that_is_cancelled_before_its_answer_begins_ends(stage: Stage) -> None:
    """GitLab may think for long before it sends a first byte."""
    begun, silent = threading.Event(), threading.Event()

    def thinks(_asked: object) -> Answer:
        begun.set()
        silent.wait()
        return Answer()

    stage.answer = thinks  # type: ignore[method-assign,assignment]  # a stage plays one answer
    with source_at(stage.url) as ask:
        task = asyncio.create_task(ask.output("get_mr_details", mr_iid=1))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    silent.set()


async def test_a_source_that_is_closed_ends_what_nobody_reads(stage: Stage) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield PIECE

    stage.answers = [Answer(body=endless, kind="text/plain")]
    with source_at(stage.url) as ask:
        output = await ask.output("get_job_log", job_id=1)
        assert isinstance(output, ByteStream)
        await ask.source.close()
        assert await asyncio.to_thread(stage.left.wait, 60)
        with pytest.raises(SourceError):
            [chunk async for chunk in output.chunks]

"""Blocking reads as async streams: few pieces at a time, and no thread left behind."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from hummingbird.core.errors import SourceResponseInvalid, SourceUnavailable
from hummingbird.core.limits import GITLAB_CHUNKS_AHEAD, HTTP_WORTHWHILE_BYTES, SOURCE_STALL_S
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.gitlab.read.client import encode_lines
from hummingbird.gitlab.read.worker_thread import InterruptibleCall, ThreadByteStream, merge_small_chunks, run_in_thread
from tests.gitlab.read.stage import Answer, Stage, source_at

PIECE = b"x" * HTTP_WORTHWHILE_BYTES


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "gitlab"]


async def ended() -> None:
    """Until no thread of ours is left; the test's own timeout is the bound."""
    for thread in ours():
        await asyncio.to_thread(thread.join)


async def test_an_answer_and_an_error_come_back() -> None:
    assert await run_in_thread(lambda: 7, InterruptibleCall(), 60) == 7

    def fails() -> int:
        raise SourceResponseInvalid("No.")

    with pytest.raises(SourceResponseInvalid, match="No"):
        await run_in_thread(fails, InterruptibleCall(), 60)
    await ended()


async def test_a_cancelled_call_stops_its_thread() -> None:
    effort, begun = InterruptibleCall(), threading.Event()

    def rests() -> None:
        begun.set()
        effort.sleep(600)

    task = asyncio.create_task(run_in_thread(rests, effort, 600))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert effort.is_stopped
    await ended()


async def test_a_call_has_an_end_in_time() -> None:
    effort = InterruptibleCall()
    with pytest.raises(SourceUnavailable, match="longer than 0 seconds"):
        await run_in_thread(lambda: effort.sleep(600), effort, 0.01)
    await ended()


async def test_a_thread_reads_only_a_few_pieces_ahead() -> None:
    made = 0
    waits = threading.Event()

    def pieces() -> Iterator[bytes]:
        nonlocal made
        for made in range(1, 100):
            if made == GITLAB_CHUNKS_AHEAD + 1:
                waits.set()
            yield PIECE

    handover = ThreadByteStream(pieces, InterruptibleCall(), 60)
    assert await handover.read_first() == PIECE
    await asyncio.to_thread(waits.wait)
    assert made <= GITLAB_CHUNKS_AHEAD + 2  # what waits, what was taken, what is in the thread's hand
    assert sum([len(chunk) async for chunk in handover]) == 99 * len(PIECE)
    await ended()


async def test_the_end_stays_the_end() -> None:
    handover = ThreadByteStream(lambda: iter([b"a"]), InterruptibleCall(), 60)
    assert [chunk async for chunk in handover] == [b"a"]
    assert [chunk async for chunk in handover] == []


async def test_nothing_is_nothing() -> None:
    assert await ThreadByteStream(lambda: iter([b"", b""]), InterruptibleCall(), 60).read_first() == b""


async def test_what_came_before_trouble_is_handed_over() -> None:
    def breaks() -> Iterator[bytes]:
        yield b"little"
        raise SourceResponseInvalid("It broke.")

    handover = ThreadByteStream(breaks, InterruptibleCall(), 60)
    assert await anext(handover) == b"little"
    with pytest.raises(SourceResponseInvalid, match="It broke"):
        await anext(handover)


async def test_what_came_before_the_time_was_over_is_handed_over() -> None:
    """Partial over nothing, also where a source is slow."""
    effort = InterruptibleCall()

    def slow() -> Iterator[bytes]:
        yield b"little"
        effort.expire("It took too long.")
        effort.raise_if_stopped()

    handover = ThreadByteStream(slow, effort, 60)
    assert await anext(handover) == b"little"
    with pytest.raises(SourceUnavailable, match="It took too long"):
        await anext(handover)


async def test_a_list_whose_time_is_over_says_so_in_its_last_line() -> None:
    effort = InterruptibleCall()

    def slow() -> Iterator[dict[str, int]]:
        yield {"id": 1}
        effort.expire("It took too long.")
        effort.raise_if_stopped()

    handover = ThreadByteStream(lambda: encode_lines("The list", slow()), effort, 60)
    first, last = b"".join([chunk async for chunk in handover]).splitlines()
    assert first == b'{"id":1}'
    assert b"breaks off here, after 1. It took too long." in last


async def test_a_stream_whose_source_is_closed_is_not_taken_for_a_whole_one() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield PIECE

    effort = InterruptibleCall()
    handover = ThreadByteStream(endless, effort, 600)
    await anext(handover)
    effort.stop()
    with pytest.raises(SourceUnavailable, match="cancelled"):
        [chunk async for chunk in handover]
    await ended()


async def test_who_leaves_after_the_time_was_over_ends_the_thread() -> None:
    effort, full = InterruptibleCall(), threading.Event()

    def pieces() -> Iterator[bytes]:
        for _ in range(GITLAB_CHUNKS_AHEAD):
            yield PIECE
        full.set()
        yield PIECE

    handover = ThreadByteStream(pieces, effort, 600)
    await asyncio.to_thread(full.wait)
    effort.expire("It took too long.")
    await handover.aclose()
    await ended()


@pytest.mark.parametrize("taken", [0, 1])
async def test_a_consumer_who_leaves_ends_the_thread(taken: int) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield PIECE

    handover = ThreadByteStream(endless, InterruptibleCall(), 600)
    for _ in range(taken):
        await anext(handover)
    await handover.aclose()
    await handover.aclose()
    await ended()


def test_small_chunks_are_gathered_and_large_ones_passed_on() -> None:
    small = [b"ab"] * HTTP_WORTHWHILE_BYTES
    found = list(merge_small_chunks(iter([*small, PIECE, b"end"])))
    assert b"".join(found) == b"".join(small) + PIECE + b"end"
    assert all(len(each) >= HTTP_WORTHWHILE_BYTES for each in found[:-1])
    assert list(merge_small_chunks(iter([b"", b""]))) == []


async def test_streams_really_stream(stage: Stage) -> None:
    """Facts 7.4: iterator=True alone would wait for the whole body, which never ends here."""
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
    await ended()


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
    await ended()
    assert await asyncio.to_thread(stage.left.wait)


async def test_a_call_that_is_cancelled_while_it_reads_leaves_no_thread(stage: Stage) -> None:
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
        await ended()
    silent.set()


async def test_a_call_that_is_cancelled_before_its_answer_begins_leaves_no_thread(stage: Stage) -> None:
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
        for thread in ours():
            await asyncio.to_thread(thread.join, SOURCE_STALL_S / 3)
        assert ours() == []
    silent.set()


async def test_a_source_that_is_closed_ends_what_nobody_reads(stage: Stage) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield PIECE

    stage.answers = [Answer(body=endless, kind="text/plain")]
    with source_at(stage.url) as ask:
        output = await ask.output("get_job_log", job_id=1)
        assert isinstance(output, ByteStream)
        assert ours()
        await ask.source.close()
    await ended()

"""Large things in pieces: whole once all is there, and as before until then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from hummingbird.core.errors import ObjectStoreUnusable
from tests.contracts.storage.stage import Stage, Unusual, broken, chunks, flowed

_PIECE = bytes(range(256)) * 4096 * 3  # 3 MiB
_FORMER = b"what was there before"


async def what_flows_in_flows_out(stage: Stage) -> None:
    objects = stage.objects()
    pieces = [_PIECE, b"", b"x", _PIECE[7:], b"y" * 3, _PIECE, _PIECE]
    assert await objects.put_stream("a/b", chunks(*pieces)) == sum(map(len, pieces))
    assert await objects.get("a/b") == await flowed(objects, "a/b") == b"".join(pieces)


async def an_empty_flow_is_an_empty_object(stage: Stage) -> None:
    objects = stage.objects()
    for name, pieces in (("none", ()), ("empty-ones", (b"", b""))):
        await objects.put(name, _FORMER)
        assert await objects.put_stream(name, chunks(*pieces)) == 0
        assert await objects.get(name) == await flowed(objects, name) == b""
    assert [one.size for one in await objects.list_objects("")] == [0, 0]


async def a_flow_replaces_what_was_there_once_all_is_there(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a", _FORMER)
    seen = []

    async def watching() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield _PIECE
            seen.append(await objects.get("a"))

    await objects.put_stream("a", watching())
    assert seen == [_FORMER] * 4
    assert await objects.get("a") == _PIECE * 4


async def a_flow_that_breaks_leaves_what_was_there(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a", _FORMER)
    before = await objects.get_versioned("a")
    for pieces in ((), (b"small",), (_PIECE,) * 5):
        for name in ("a", "new"):
            with pytest.raises(Unusual, match="broke off"):
                await objects.put_stream(name, broken(*pieces, error=Unusual("broke off")))
    assert await objects.get_versioned("a") == before
    assert await objects.get_versioned("new") is None
    assert await objects.list_names("") == ["a"]


async def what_the_chunks_raise_is_raised_whatever_it_is(stage: Stage) -> None:
    objects = stage.objects()
    for error in (
        OSError("a disk"),
        FileNotFoundError("a file"),
        ValueError("a value"),
        ObjectStoreUnusable("another."),
    ):
        with pytest.raises(type(error)) as caught:
            await objects.put_stream("a", broken(b"1", error=error))
        assert caught.value is error
    assert await objects.list_names("") == []


async def a_cancelled_flow_ends_its_chunks_and_leaves_what_was_there(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a", _FORMER)
    under_way, ended = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            yield _PIECE * 2
            under_way.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    before = asyncio.all_tasks()
    flowing = asyncio.create_task(objects.put_stream("a", endless()))
    await under_way.wait()
    flowing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flowing
    assert ended.is_set()
    assert asyncio.all_tasks() == before
    assert await objects.get("a") == _FORMER


async def a_flow_tells_its_size_and_time_before_it_is_read(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a", _PIECE)
    flow = await objects.open_stream("a")
    (listed,) = await objects.list_objects("")
    assert flow is not None
    async with aclosing(flow.chunks):
        assert flow.size == listed.size == len(_PIECE)
        assert abs(flow.changed_at - listed.changed_at) <= 1.0  # some tell it in whole seconds in one place only


async def a_flow_comes_in_pieces_and_can_be_left_early(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put_stream("a", chunks(*(_PIECE,) * 6))
    for _ in range(20):
        flow = await objects.open_stream("a")
        assert flow is not None
        async with aclosing(flow.chunks) as pieces:
            first = await anext(pieces)
            assert 0 < len(first) < len(_PIECE)
            assert _PIECE.startswith(first)
    flow = await objects.open_stream("a")
    assert flow is not None
    await flow.chunks.aclose()
    assert await objects.list_names("") == ["a"]


async def one_flow_feeds_another(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put_stream("a", chunks(*(_PIECE,) * 4))
    flow = await objects.open_stream("a")
    assert flow is not None
    async with aclosing(flow.chunks) as pieces:
        assert await objects.put_stream("b", pieces) == len(_PIECE) * 4
    assert await objects.get("b") == _PIECE * 4

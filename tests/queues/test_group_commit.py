"""Those who write at the same time share one commit, and each is told how it ended."""

import asyncio
from collections.abc import Sequence

import pytest

from hummingbird.queues.sqlite_queue import WriteBatcher


class Writer:
    def __init__(self, fault: Exception | None = None) -> None:
        self.batches: list[list[int]] = []
        self.fault = fault

    def __call__(self, items: Sequence[int]) -> list[str]:
        self.batches.append(list(items))
        if self.fault:
            raise self.fault
        return [f"<{item}>" for item in items]


async def test_all_that_come_at_once_are_written_at_once_and_in_order() -> None:
    writer = Writer()
    together = WriteBatcher(writer)
    assert await asyncio.gather(*map(together.write, range(5))) == [f"<{item}>" for item in range(5)]
    assert writer.batches == [[0, 1, 2, 3, 4]]
    assert await together.write(5) == "<5>"


async def test_one_commit_does_not_grow_without_end() -> None:
    writer = Writer()
    together = WriteBatcher(writer)
    assert len(await asyncio.gather(*map(together.write, range(150)))) == 150
    assert [len(batch) for batch in writer.batches] == [64, 64, 22]


async def test_a_fault_is_told_to_each_of_them_and_the_next_ones_are_tried() -> None:
    writer = Writer(OSError("full"))
    together = WriteBatcher(writer)
    ends = await asyncio.gather(*map(together.write, range(3)), return_exceptions=True)
    assert [str(end) for end in ends] == ["full"] * 3
    writer.fault = None
    assert await together.write(7) == "<7>"


async def test_whoever_leaves_harms_nobody_and_its_message_is_written() -> None:
    writer = Writer()
    together = WriteBatcher(writer)
    leaving, staying = (asyncio.create_task(together.write(item)) for item in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == "<1>"
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await together.wait_until_idle()
    assert writer.batches == [[0, 1]]

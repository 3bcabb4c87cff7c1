"""Never more runs than slots, none of them empty while somebody stands in line, and nobody for ever."""

import asyncio

import pytest

from hummingbird.service.worker import RunSlots

LONG_S = 3600.0


async def in_line(slots: RunSlots, number: int) -> list[asyncio.Task[bool]]:
    tasks = [asyncio.create_task(slots.take()) for _ in range(number)]
    await asyncio.sleep(0)
    return tasks


async def test_whoever_stands_first_in_line_gets_the_slot_that_becomes_free() -> None:
    slots = RunSlots(lambda: 2, LONG_S)
    assert [await slots.take(), await slots.take()] == [True, True]
    first, second = await in_line(slots, 2)
    slots.free()
    assert await first
    assert not second.done()
    assert slots.taken == 2
    slots.free()
    assert await second


async def test_the_line_is_no_longer_than_there_are_slots() -> None:
    slots = RunSlots(lambda: 1, LONG_S)
    assert await slots.take()
    (waiting,) = await in_line(slots, 1)
    assert not await slots.take(), "at once"
    slots.free()
    assert await waiting


async def test_nobody_stands_in_line_for_ever() -> None:
    slots = RunSlots(lambda: 1, 0.0)
    assert await slots.take()
    assert not await slots.take()
    slots.free()
    assert await slots.take(), "whoever has left the line is not called"


async def test_who_is_cancelled_when_the_slot_was_just_given_gives_it_back() -> None:
    slots = RunSlots(lambda: 1, LONG_S)
    assert await slots.take()
    (waiting,) = await in_line(slots, 1)
    slots.free()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert slots.taken == 0
    assert await slots.take()


async def test_who_is_cancelled_in_line_is_not_called() -> None:
    slots = RunSlots(lambda: 2, LONG_S)
    assert [await slots.take(), await slots.take()] == [True, True]
    first, second = await in_line(slots, 2)
    first.cancel()
    await asyncio.wait((first,))
    slots.free()
    assert await second
    assert slots.taken == 2


async def test_more_slots_are_given_to_those_who_came_first() -> None:
    most = [1]
    slots = RunSlots(lambda: most[0], LONG_S)
    assert await slots.take()
    (waiting,) = await in_line(slots, 1)
    most[0] = 3
    assert await slots.take()
    assert await waiting
    assert slots.taken == 3


async def test_once_it_is_closed_nobody_gets_one() -> None:
    slots = RunSlots(lambda: 1, LONG_S)
    assert await slots.take()
    (waiting,) = await in_line(slots, 1)
    slots.close()
    assert not await waiting
    slots.free()
    assert not await slots.take()


async def test_the_patient_stay_however_long_the_line_is() -> None:
    slots = RunSlots(lambda: 1, 0.0)
    assert await slots.take()
    tasks = [asyncio.create_task(slots.take(patient=True)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not await slots.take()
    assert slots.waiting == 3
    for task in tasks:
        slots.free()
        assert await task
    assert slots.waiting == 0

"""Who was first is told apart, and whoever was not has written nothing."""

import asyncio

from hummingbird.core.protocols.storage import ObjectVersion
from tests.contracts.storage.stage import Stage, chunks


async def the_first_to_create_is_told_so_and_the_second_too(stage: Stage) -> None:
    objects = stage.objects()
    version = await objects.compare_and_swap("a/b", b"first", None)
    assert version is not None
    assert await objects.compare_and_swap("a/b", b"second", None) is None
    assert await objects.compare_and_swap("a/b", b"first", None) is None
    looked = await objects.get_versioned("a/b")
    assert looked is not None
    assert (looked.content, looked.version) == (b"first", version)


async def each_swap_gives_what_the_next_one_needs(stage: Stage) -> None:
    objects = stage.objects()
    known: ObjectVersion | None = None
    for number in range(5):
        known = await objects.compare_and_swap("a", str(number).encode(), known)
        assert known is not None
    assert await objects.get("a") == b"4"


async def what_a_look_saw_can_be_swapped_once(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a", b"1")
    looked = await objects.get_versioned("a")
    assert looked is not None
    assert await objects.compare_and_swap("a", b"2", looked.version) is not None
    assert await objects.compare_and_swap("a", b"3", looked.version) is None
    assert await objects.get("a") == b"2"


async def what_was_put_between_is_not_written_over(stage: Stage) -> None:
    objects = stage.objects()
    known = await objects.compare_and_swap("a", b"1", None)
    assert known is not None
    await objects.put("a", b"2")
    assert await objects.compare_and_swap("a", b"3", known) is None
    assert await objects.get("a") == b"2"


async def what_was_deleted_is_not_brought_back_by_a_swap(stage: Stage) -> None:
    objects = stage.objects()
    known = await objects.compare_and_swap("a", b"1", None)
    assert known is not None
    await objects.delete("a")
    assert await objects.compare_and_swap("a", b"2", known) is None
    assert await objects.get_versioned("a") is None
    assert await objects.compare_and_swap("a", b"3", None) is not None
    assert await objects.compare_and_swap("a", b"4", known) is None
    assert await objects.get("a") == b"3"


async def large_contents_are_swapped_under_the_same_conditions(stage: Stage) -> None:
    """Larger than what goes up in one piece."""
    objects = stage.objects()
    known = await objects.compare_and_swap("a", b"1" * 6_000_000, None)
    assert known is not None
    assert await objects.compare_and_swap("a", b"2" * 6_000_000, None) is None
    assert await objects.compare_and_swap("a", b"3" * 6_000_000, known) is not None
    assert await objects.compare_and_swap("a", b"4" * 6_000_000, known) is None
    assert await objects.get("a") == b"3" * 6_000_000


async def an_object_that_flowed_in_can_be_swapped(stage: Stage) -> None:
    objects = stage.objects()
    await objects.compare_and_swap("a", b"1", None)
    await objects.put_stream("a", chunks(b"flowed"))
    looked = await objects.get_versioned("a")
    assert looked is not None
    assert await objects.compare_and_swap("a", b"2", looked.version) is not None


async def of_many_at_once_one_is_first(stage: Stage) -> None:
    objects = stage.objects()
    known: ObjectVersion | None = None
    for lap in range(5):
        tries = [objects.compare_and_swap("a", f"{lap} {number}".encode(), known) for number in range(16)]
        told = await asyncio.gather(*tries)
        ((winner, known),) = [(number, version) for number, version in enumerate(told) if version is not None]
        assert await objects.get("a") == f"{lap} {winner}".encode()

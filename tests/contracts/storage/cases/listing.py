"""What is below a name, with sizes and times."""

import asyncio
import time

from tests.contracts.storage.stage import Stage, chunks

_CLOCKS_S = 5.0  # that the store's clock and ours may differ by; some stores tell whole seconds
_MORE_THAN_A_PAGE = 1010  # S3 and Google give a thousand at a time


async def what_is_listed_has_sizes_and_times(stage: Stage) -> None:
    objects = stage.objects()
    before = time.time()
    await objects.put("s/a", b"12345")
    await objects.put("s/empty", b"")
    await objects.put_stream("s/flowed", chunks(b"123", b"4"))
    found = await objects.list_objects("s")
    assert [(one.name, one.size) for one in found] == [("s/a", 5), ("s/empty", 0), ("s/flowed", 4)]
    for one in found:
        assert before - _CLOCKS_S < one.changed_at < time.time() + _CLOCKS_S


async def what_is_written_again_is_newer_in_the_list(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a", b"1")
    (first,) = await objects.list_objects("")
    await asyncio.sleep(1.1)  # some stores tell whole seconds
    await objects.put("a", b"2")
    (second,) = await objects.list_objects("")
    assert second.changed_at > first.changed_at


async def only_what_is_below_is_listed_in_its_order(stage: Stage) -> None:
    objects = stage.objects()
    for name in ("s/2/b.json", "s/10", "s/2/a", "sx/1", "t"):
        await objects.put(name, b"1")
    assert await objects.list_names("") == ["s/10", "s/2/a", "s/2/b.json", "sx/1", "t"]
    assert await objects.list_names("s") == await objects.list_names("s/") == ["s/10", "s/2/a", "s/2/b.json"]
    assert [one.name for one in await objects.list_objects("s/2")] == ["s/2/a", "s/2/b.json"]
    assert await objects.list_objects("nothing") == []
    assert await objects.list_names("nothing") == []


async def more_than_a_page_is_listed_whole(stage: Stage) -> None:
    objects = stage.objects()
    names = [f"many/{number:04}" for number in range(_MORE_THAN_A_PAGE)]
    for start in range(0, len(names), 50):
        await asyncio.gather(*(objects.put(name, b"1") for name in names[start : start + 50]))
    assert await objects.list_names("many") == names

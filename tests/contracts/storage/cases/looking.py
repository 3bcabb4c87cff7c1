"""What was written is what is seen, and one look sees no more than it may."""

import pytest

from hummingbird.core.errors import ObjectStoreUnusable
from tests.contracts.storage.stage import Stage


async def a_look_sees_what_was_put_and_its_version(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a/b", b"\x00\xff")
    looked = await objects.get_versioned("a/b")
    assert looked is not None
    assert looked.content == await objects.get("a/b") == b"\x00\xff"
    assert looked.version.e_tag or looked.version.number
    again = await objects.get_versioned("a/b")
    assert again == looked


async def another_content_has_another_version(stage: Stage) -> None:
    objects = stage.objects()
    versions = set()
    for content in (b"1", b"2", b"3"):
        await objects.put("a", content)
        looked = await objects.get_versioned("a")
        assert looked is not None
        versions.add(looked.version)
    assert len(versions) == 3


async def nothing_is_seen_where_nothing_is(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a/b", b"1")
    for name in ("a", "a/b/c", "b", "NoSuchBucket", "ContainerNotFound"):
        assert await objects.get_versioned(name) is None
        assert await objects.get(name) is None
        assert await objects.open_stream(name) is None


async def a_look_at_more_than_it_may_see_is_a_sentence(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a", b"x" * 1000)
    looked = await objects.get_versioned("a", most_bytes=1000)
    assert looked is not None
    assert len(looked.content) == 1000
    with pytest.raises(
        ObjectStoreUnusable, match=r"a in .* has 1000 bytes, more than the allowed 999; check what was written"
    ):
        await objects.get_versioned("a", most_bytes=999)


async def an_empty_object_is_seen_whatever_may_be_seen(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a", b"")
    for most_bytes in (None, 0, 1):
        looked = await objects.get_versioned("a", most_bytes)
        assert looked is not None
        assert looked.content == b""


async def what_is_deleted_is_gone_and_deleting_it_again_is_done(stage: Stage) -> None:
    objects = stage.objects()
    await objects.put("a/b", b"1")
    for _ in range(2):
        await objects.delete("a/b")
        assert await objects.get_versioned("a/b") is None
    await objects.delete("never/there")


async def two_who_opened_the_same_place_see_the_same(stage: Stage) -> None:
    address = stage.backend.address()
    one, other = stage.opened(address), stage.opened(f"{address}/")
    await one.put("a", b"1")
    looked = await other.get_versioned("a")
    assert looked == await one.get_versioned("a")

"""What cannot be done is a sentence, and never somebody else's being first."""

from collections.abc import Awaitable

import pytest

from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.core.protocols.storage import VersionedObjectStore
from tests.contracts.storage.stage import Stage, chunks


async def a_bucket_that_is_not_there_is_a_sentence_from_every_verb(stage: Stage) -> None:
    elsewhere = stage.objects()
    known = await elsewhere.compare_and_swap("a", b"1", None)
    assert known is not None
    objects = stage.opened(stage.backend.nowhere())
    for verb in (*_verbs(objects, "a"), objects.compare_and_swap("a", b"1", known)):
        with pytest.raises(ObjectStoreUnusable, match=r"There is no bucket at .*no-such-.*; create it\.$"):
            await verb


async def no_name_leaves_the_store_by_any_verb(stage: Stage) -> None:
    objects = stage.objects()
    for name in ("", "/a", "a/", "a//b", "..", "a/../b", "ü", "a b", "x" * 600):
        for verb in _verbs(objects, name):
            with pytest.raises(ObjectStoreUnusable, match=r"An object's name is .* use a hash of it\.$"):
                await verb


def _verbs(objects: VersionedObjectStore, name: str) -> list[Awaitable[object]]:
    return [
        objects.put(name, b"1"),
        objects.get(name),
        objects.delete(name),
        objects.list_names(f"{name}/"),
        objects.get_versioned(name),
        objects.compare_and_swap(name, b"1", None),
        objects.list_objects(f"{name}/"),
        objects.put_stream(name, chunks(b"1")),
        objects.open_stream(name),
    ]

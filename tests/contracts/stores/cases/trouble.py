"""What cannot be done is a sentence, and never somebody else's being first (S1)."""

from collections.abc import Awaitable

import pytest

from hummingbird.domain.errors import ObjectsUnusable
from hummingbird.ports.objects import VersionedObjects
from tests.contracts.stores.stage import Stage, chunks


async def a_bucket_that_is_not_there_is_a_sentence_from_every_verb(stage: Stage) -> None:
    elsewhere = stage.objects()
    known = await elsewhere.swap("a", b"1", None)
    assert known is not None
    objects = stage.opened(stage.backend.nowhere())
    for verb in (*_verbs(objects, "a"), objects.swap("a", b"1", known)):
        with pytest.raises(ObjectsUnusable, match=r"There is no bucket at .*no-such-.*; create it\.$"):
            await verb


async def no_name_leaves_the_store_by_any_verb(stage: Stage) -> None:
    objects = stage.objects()
    for name in ("", "/a", "a/", "a//b", "..", "a/../b", "ü", "a b", "x" * 600):
        for verb in _verbs(objects, name):
            with pytest.raises(ObjectsUnusable, match=r"An object's name is .* use a hash of it\.$"):
                await verb


def _verbs(objects: VersionedObjects, name: str) -> list[Awaitable[object]]:
    return [
        objects.put(name, b"1"),
        objects.get(name),
        objects.delete(name),
        objects.names(f"{name}/"),
        objects.look(name),
        objects.swap(name, b"1", None),
        objects.listed(f"{name}/"),
        objects.put_flow(name, chunks(b"1")),
        objects.flow(name),
    ]

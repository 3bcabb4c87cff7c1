"""The contract on Google's Cloud Storage, as our stand-in serves its XML API; and what it alone can do."""

from collections.abc import AsyncIterator

import pytest

from hummingbird.core.errors import ObjectStoreUnusable
from hummingbird.storage.object_store import BucketObjectStore
from tests.contracts.storage.backends.google import Google
from tests.contracts.storage.stage import Case, Stage, Unusual
from tests.contracts.storage.suite import CASES
from tests.thoroughly import one_per_topic


@pytest.mark.parametrize(
    "case", one_per_topic(CASES, "looking", "swapping", "listing", "flows", "trouble"), ids=lambda case: case.__name__
)
async def test_google_keeps_the_contract(google: Google, case: Case) -> None:
    await Stage(google).play(case)


async def test_a_swap_whose_answer_was_lost_is_told_apart_by_a_look(google: Google) -> None:
    objects = BucketObjectStore(google.address())
    google.lose_the_next_answer()
    assert await objects.compare_and_swap("a", b"ours", None) is None
    looked = await objects.get_versioned("a")
    assert looked is not None
    assert looked.content == b"ours"
    google.lose_the_next_answer()
    assert await objects.compare_and_swap("a", b"ours again", looked.version) is None
    assert await objects.get("a") == b"ours again"


async def test_the_same_content_is_not_the_same_version_at_google(google: Google) -> None:
    objects = BucketObjectStore(google.address())
    first = await objects.compare_and_swap("a", b"1", None)
    assert first is not None
    second = await objects.compare_and_swap("a", b"1", first)
    assert second is not None
    assert second.e_tag == first.e_tag
    assert second.number != first.number
    assert await objects.compare_and_swap("a", b"2", first) is None


async def test_the_parts_of_a_flow_that_broke_are_taken_back(google: Google) -> None:
    address = google.address()
    objects = BucketObjectStore(address)
    seen = []

    async def breaking() -> AsyncIterator[bytes]:
        yield b"x" * 12_000_000
        seen.append(google.unfinished(address))
        raise Unusual

    with pytest.raises(Unusual):
        await objects.put_stream("half", breaking())
    assert "some/place/half" in seen[0]
    assert "half" not in google.unfinished(address)


async def test_a_token_that_is_refused_is_a_sentence_without_it(
    google: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_BEARER_TOKEN", "canary-token")
    objects = BucketObjectStore(google.address())
    for verb in (objects.compare_and_swap("a", b"1", None), objects.get_versioned("a"), objects.list_objects("")):
        with pytest.raises(ObjectStoreUnusable, match=r"cannot be used: .*401.*credentials") as caught:
            await verb
        assert "canary" not in str(caught.value)

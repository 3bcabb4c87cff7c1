"""What is made once for all who ask for it."""

import asyncio

import pytest

from hummingbird.dashboard.application import SingleFlightCache


class Making:
    """Counts; ends when it is let."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()
        self.failure: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        await self.may_end.wait()
        if self.failure:
            raise self.failure
        return number


async def test_all_who_ask_meanwhile_and_afterwards_have_the_same() -> None:
    once, making = SingleFlightCache[int](2), Making()
    asking = [asyncio.ensure_future(once.get("a", making)) for _ in range(5)]
    await asyncio.sleep(0)
    making.may_end.set()
    assert await asyncio.gather(*asking) == [1] * 5
    assert await once.get("a", making) == 1
    assert await once.get("b", making) == 2


async def test_whoever_leaves_takes_it_from_nobody() -> None:
    once, making = SingleFlightCache[int](2), Making()
    first, second = [asyncio.ensure_future(once.get("a", making)) for _ in range(2)]
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    making.may_end.set()
    assert await second == 1


async def test_what_fails_fails_for_those_who_wait_and_is_made_anew_for_the_next() -> None:
    once, making = SingleFlightCache[int](2), Making()
    making.failure = ValueError("no")
    asking = [asyncio.ensure_future(once.get("a", making)) for _ in range(2)]
    await asyncio.sleep(0)
    making.may_end.set()
    assert [type(one) for one in await asyncio.gather(*asking, return_exceptions=True)] == [ValueError] * 2
    making.failure = None
    assert await once.get("a", making) == 2


@pytest.mark.parametrize(("asked", "begun"), [("aba", 2), ("abca", 4), ("abaca", 3)])
async def test_so_many_are_kept_those_asked_for_last(asked: str, begun: int) -> None:
    once, making = SingleFlightCache[int](2), Making()
    making.may_end.set()
    for key in asked:
        await once.get(key, making)
    assert making.begun == begun

"""What a project spent today, shared by all processes of a machine or of many."""

import asyncio
from decimal import Decimal

import pytest

from tests.contracts.shared.sites import NOON, Site
from tests.contracts.shared.starting import done, start


async def test_money_adds_up_per_project_and_day(site: Site) -> None:
    now = NOON
    spending = site.spending(lambda: now)
    assert await spending.usd_today("one") == 0
    await spending.add("one", Decimal("0.25"))
    await spending.add("one", Decimal("0.000001"))
    await spending.add("two", Decimal(3))
    assert await spending.usd_today("one") == Decimal("0.250001")
    now += 86_400
    assert await spending.usd_today("one") == 0
    await spending.add("one", Decimal(1))
    assert await spending.usd_today("one") == 1


async def test_less_than_a_millionth_is_not_lost(site: Site) -> None:
    """Rounded up, so that many small calls cannot pass a ceiling unseen."""
    spending = site.spending()
    for _ in range(5):
        await spending.add("one", Decimal("0.0000001"))
    assert await spending.usd_today("one") == Decimal("0.000005")


async def test_any_project_has_its_own_reckoning(site: Site) -> None:
    spending, names = site.spending(), ["a", "A", "a/b", "../a", "ü 🐦", "\0", "x" * 5_000, ""]
    for number, name in enumerate(names, 1):
        await spending.add(name, Decimal(number))
    assert [await site.spending().usd_today(name) for name in names] == list(range(1, len(names) + 1))


async def test_two_who_opened_the_same_place_see_what_both_spent(site: Site) -> None:
    one, other = site.spending(), site.spending()
    for spending in (one, other, one, other):
        await spending.add("one", Decimal("0.5"))
        assert await one.usd_today("one") == await other.usd_today("one")
    assert await one.usd_today("one") == 2


async def test_many_at_once_lose_nothing_and_count_nothing_twice(site: Site) -> None:
    """Fifty runs of one process, and as many of another one's."""
    one, other = site.spending(), site.spending()
    adding = [spending.add("one", Decimal("0.01")) for spending in (one, other) for _ in range(50)]
    await asyncio.gather(*adding)
    assert await one.usd_today("one") == await site.spending().usd_today("one") == 1


@pytest.mark.thorough
async def test_processes_that_add_at_once_lose_nothing(shared: Site) -> None:
    """Real processes."""
    others = [await start(shared, "spend", "one", 20) for _ in range(3)]
    assert await done(*others) == [20] * 3
    assert await shared.spending().usd_today("one") == Decimal("0.60")


@pytest.mark.thorough
async def test_what_a_killed_process_told_is_there_and_at_most_one_more(shared: Site) -> None:
    """Kill -9, at some moments."""
    told = 0
    for attempt in range(3):
        other = await start(shared, "spend", "one", 1_000_000)
        assert other.stdout is not None
        for _ in range(2 + 3 * attempt):
            await other.stdout.readline()
        other.kill()
        rest = (await other.communicate())[0]
        told += 2 + 3 * attempt + rest.count(b"\n")
        cents = await shared.spending().usd_today("one") * 100
        assert told <= cents <= told + attempt + 1

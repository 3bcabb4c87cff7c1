"""What a project spent today, shared by all processes of a machine (L6)."""

import asyncio
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from hummingbird.adapters.stores.spending import SqliteSpending
from hummingbird.domain.errors import JournalUnwritable

NOON = 1_794_744_000.0  # 2026-11-15 12:00 UTC


async def test_money_adds_up_per_project_and_day(tmp_path: Path) -> None:
    """L6"""
    now = NOON
    spending = SqliteSpending(tmp_path / "a" / "spending.sqlite", lambda: now)
    assert await spending.spent_today("one") == 0
    await spending.add("one", Decimal("0.25"))
    await spending.add("one", Decimal("0.000001"))
    await spending.add("two", Decimal(3))
    assert await spending.spent_today("one") == Decimal("0.250001")
    now += 86_400
    assert await spending.spent_today("one") == 0


async def test_less_than_a_millionth_is_not_lost(tmp_path: Path) -> None:
    """L6: rounded up, so that many small calls cannot pass a ceiling unseen."""
    spending = SqliteSpending(tmp_path / "spending.sqlite", lambda: NOON)
    for _ in range(5):
        await spending.add("one", Decimal("0.0000001"))
    assert await spending.spent_today("one") == Decimal("0.000005")


async def test_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    """L6: real processes."""
    path = tmp_path / "spending.sqlite"
    code = (
        "import asyncio, sys; from decimal import Decimal; from pathlib import Path;"
        "from hummingbird.adapters.stores.spending import SqliteSpending;"
        f"s = SqliteSpending(Path(sys.argv[1]), lambda: {NOON});"
        "[asyncio.run(s.add('one', Decimal('0.01'))) for _ in range(20)]"
    )
    others = [await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(path)) for _ in range(3)]
    assert [await other.wait() for other in others] == [0, 0, 0]
    assert await SqliteSpending(path, lambda: NOON).spent_today("one") == Decimal("0.60")


async def test_a_record_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "spending.sqlite").write_text("this is no database, and long enough to be read as one" * 20)
    with pytest.raises(JournalUnwritable, match=r"spending\.sqlite cannot be used"):
        await SqliteSpending(tmp_path / "spending.sqlite", lambda: NOON).spent_today("one")

"""The record of spending as a file. What every one does is in tests/contracts/shared."""

from pathlib import Path

import pytest

from hummingbird.core.errors import JournalUnwritable
from hummingbird.storage.spending_store import SqliteSpendingStore
from tests.contracts.shared.sites import noon


async def test_a_record_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "spending.sqlite").write_text("this is no database, and long enough to be read as one" * 20)
    with pytest.raises(JournalUnwritable, match=r"spending\.sqlite cannot be used"):
        await SqliteSpendingStore(tmp_path / "spending.sqlite", noon).usd_today("one")

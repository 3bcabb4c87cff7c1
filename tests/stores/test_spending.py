"""The record of spending as a file (L6). What every one does is in tests/contracts/shared."""

from pathlib import Path

import pytest

from hummingbird.adapters.stores.spending import SqliteSpending
from hummingbird.domain.errors import JournalUnwritable
from tests.contracts.shared.sites import noon


async def test_a_record_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "spending.sqlite").write_text("this is no database, and long enough to be read as one" * 20)
    with pytest.raises(JournalUnwritable, match=r"spending\.sqlite cannot be used"):
        await SqliteSpending(tmp_path / "spending.sqlite", noon).spent_today("one")

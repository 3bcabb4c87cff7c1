"""What a project has spent today, over all its runs (L6)."""

from decimal import Decimal
from typing import Protocol


class Spending(Protocol):
    """Raises JournalUnwritable: a ceiling that cannot be checked must not be passed silently."""

    async def spent_today(self, project: str) -> Decimal: ...

    async def add(self, project: str, usd: Decimal) -> None:
        """Do not add it again when this raises: what could not be recorded now may be later."""
        ...

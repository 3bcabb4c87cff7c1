"""Time, so that tests own it."""

from typing import Protocol


class Clock(Protocol):
    """Raises nothing."""

    def now(self) -> float:
        """Seconds since the epoch, as people count them; goes into the journal."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Can be cancelled at any time (L13, L19)."""
        ...

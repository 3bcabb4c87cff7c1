"""Where a sandbox's checkpoints go (X7): one archive a session, bytes that nobody on this side ever unpacks."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Archive:
    """`saved_at` in seconds since the epoch: what was written later is not in it. `chunks` can be read once."""

    chunks: AsyncGenerator[bytes, None]
    saved_at: float


class Archives(Protocol):
    async def put(self, session_id: str, chunks: AsyncIterator[bytes]) -> int:
        """The number of bytes. Replaces the session's archive once all of the new one is there; until then, and when
        `chunks` raises, the earlier one stays. Raises ArchiveTooLarge, ArchiveUnusable, and what `chunks` raises."""
        ...

    async def get(self, session_id: str) -> Archive | None:
        """The session's archive, None when it has none. Raises ArchiveUnusable, reading its chunks too."""
        ...

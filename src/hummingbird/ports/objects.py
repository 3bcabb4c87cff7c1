"""What we ask of a store of large things by name: bodies of events that no queue carries, whole sessions."""

from collections.abc import Sequence
from typing import Protocol


class Objects(Protocol):
    """Names are parts of letters, digits, `-`, `_` and `.`, with `/` between them. Every verb raises ObjectsUnusable
    when the store cannot be reached or does not do it."""

    async def put(self, name: str, content: bytes) -> None:
        """Whole or not at all; replaces what was there."""
        ...

    async def get(self, name: str) -> bytes | None:
        """None if there is nothing of that name."""
        ...

    async def names(self, prefix: str) -> Sequence[str]:
        """Those below it, in their order."""
        ...

    async def delete(self, name: str) -> None:
        """Done also if there is nothing of that name."""
        ...

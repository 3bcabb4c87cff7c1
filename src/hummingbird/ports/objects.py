"""What we ask of a store of large things by name: bodies of events that no queue carries, whole sessions."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Version:
    """Tells one state of an object from another; what the words are, its store alone knows. A store may give two
    states with the same content the same one: whoever swaps puts something into the content that never comes again."""

    e_tag: str = ""
    number: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    content: bytes
    version: Version


@dataclass(frozen=True, slots=True)
class Listed:
    """`changed_at` in seconds since the epoch, by the store's clock."""

    name: str
    size: int
    changed_at: float


@dataclass(frozen=True, slots=True)
class Flow:
    """An object that is read piece by piece, once. Close `chunks` (`aclosing`) when you stop early."""

    chunks: AsyncGenerator[bytes, None]
    size: int
    changed_at: float


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


class VersionedObjects(Objects, Protocol):
    """A store that several hosts share: it can tell who was first, list with times, and take large things in pieces."""

    async def look(self, name: str, most_bytes: int | None = None) -> Looked | None:
        """None if there is nothing of that name. Raises ObjectsUnusable for one of more than `most_bytes` too."""
        ...

    async def swap(self, name: str, content: bytes, known: Version | None) -> Version | None:
        """Writes if what is there is still `known`, or if nothing is there and `known` is None; the new version then.
        None if somebody else was first: nothing was written. Whoever gets ObjectsUnusable does not know whether it was
        written; a look at the content tells."""
        ...

    async def listed(self, prefix: str) -> Sequence[Listed]:
        """As `names`, with sizes and times."""
        ...

    async def put_flow(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        """The number of bytes. Replaces what was there once all is there; until then, and when `chunks` raises, what
        was there before stays. Raises what `chunks` raises."""
        ...

    async def flow(self, name: str) -> Flow | None:
        """None if there is nothing of that name. Reading its chunks raises ObjectsUnusable too."""
        ...

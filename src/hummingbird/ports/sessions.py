"""What we ask of a store of sessions (S1): the same of a directory and of a bucket. One process has a session at a
time; whoever lost it to another one is told so before it does anything more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hummingbird.domain.journal import Entry
from hummingbird.ports.archives import Archive, Archives
from hummingbird.ports.journal import Journal


@dataclass(frozen=True, slots=True)
class Kept:
    """A session as a list shows it. `stamp` is another one whenever its journal is. `size` in bytes, of all its files;
    `changed_at` in seconds since the epoch."""

    session_id: str
    stamp: str
    size: int
    changed_at: float


class Session(Protocol):
    """One that this process has, until it is released. Its journal raises JournalTaken once somebody else has it."""

    @property
    def id(self) -> str: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def archives(self) -> Archives: ...

    async def keep(self, files: Mapping[str, bytes]) -> None:
        """Files beside the journal, by name; replaces those that there are. Raises ObjectsUnusable, and JournalTaken
        where somebody else has the session by now."""
        ...

    async def catch_up(self) -> None:
        """Tries once more to store what a store that was away has not taken. Raises JournalBehind, JournalTaken."""
        ...

    async def release(self) -> None:
        """Others may have it. Never raises; may be called more than once."""
        ...


class Sessions(Protocol):
    """Every verb raises UsageFault for an id that is none, and ObjectsUnusable when the store cannot be used."""

    @property
    def address(self) -> str:
        """As people write it."""
        ...

    async def open(self, session_id: str) -> Session:
        """A new one if there is none. One of an older format is brought up to date. Raises JournalTaken while somebody
        else has it, JournalDamaged, SessionUnreadable, and JournalUnwritable where nothing can be written."""
        ...

    async def entries(self, session_id: str) -> Sequence[Entry]:
        """What its journal holds by now, whoever has it; nothing if there is no such session. Changes nothing. Raises
        JournalDamaged, SessionUnreadable."""
        ...

    async def file(self, session_id: str, name: str) -> bytes | None:
        """None if there is none of that name."""
        ...

    async def archive(self, session_id: str) -> Archive | None:
        """The last checkpoint of its sandbox, whoever has it. Raises ArchiveUnusable, reading its chunks too."""
        ...

    async def listed(self) -> Sequence[Kept]:
        """The last changed first."""
        ...

    async def remove(self, session_id: str, stamp: str = "") -> bool:
        """With everything it has; False if there was nothing, or if it has another `stamp` by now. Raises JournalTaken
        while somebody has it. Half of one that could not be removed whole is no session any more, and is removed the
        next time."""
        ...

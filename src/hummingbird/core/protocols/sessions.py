"""Define the protocols of journals, session stores and the session index.

A session store may be a directory or a bucket. One process holds a session at a time; a process that lost its session
to another one gets SessionTaken before it can do anything more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from hummingbird.core.journal import JournalEntry
from hummingbird.core.protocols.run_figures import RunFiguresSource
from hummingbird.core.protocols.sandbox import ArchiveStore, SandboxArchive
from hummingbird.core.sessions import SEARCH_HITS, SessionSummary, Speaker


class Journal(Protocol):
    """The append-only list of a session's entries.

    Raises JournalUnwritable when an entry cannot be stored or another process has it open.
    """

    def entries(self) -> Sequence[JournalEntry]:
        """Return all entries in order, including those of earlier processes."""
        ...

    def append(self, entry: JournalEntry) -> None:
        """Add an entry, without waiting until it is stored."""
        ...

    async def flush(self) -> None:
        """Return once all entries survive the end of this process.

        The loop calls it after each answer of a model, because answers cost money.
        """
        ...

    async def commit(self) -> None:
        """Return once all entries survive a crash of the machine, such as a power cut.

        The loop calls it before each effect, and at the end.
        """
        ...

    def close(self) -> None:
        """Close the journal."""
        ...


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as a list shows it.

    `stamp` changes whenever the journal changes. `size` is in bytes, over all its files; `changed_at` is in seconds
    since the epoch.
    """

    session_id: str
    stamp: str
    size: int
    changed_at: float


class Session(Protocol):
    """A session that this process holds until it releases it.

    Its journal raises SessionTaken once another process holds it.
    """

    @property
    def id(self) -> str: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def archives(self) -> ArchiveStore: ...

    async def write_files(self, files: Mapping[str, bytes]) -> None:
        """Write files beside the journal, by name, replacing existing ones.

        Raises ObjectStoreUnusable, and SessionTaken when another process holds the session by now.
        """
        ...

    async def catch_up(self) -> None:
        """Try once more to store entries that the store could not take earlier.

        Raises JournalWriteDelayed, SessionTaken.
        """
        ...

    async def release(self) -> None:
        """Let other processes have the session. Never raises; may be called more than once."""
        ...


class SessionStore(Protocol):
    """All sessions of an installation.

    Every method raises UsageError for an invalid session id, and ObjectStoreUnusable when the store cannot be used.
    """

    @property
    def address(self) -> str:
        """Return the store's address as people write it."""
        ...

    async def open(self, session_id: str) -> Session:
        """Open a session, or create it, and migrate one of an older format.

        Raises SessionTaken while another process holds it, JournalDamaged, SessionUnreadable, and JournalUnwritable
        where nothing can be written.
        """
        ...

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        """Return the current entries of a session without opening it; none if it does not exist.

        Raises JournalDamaged, SessionUnreadable.
        """
        ...

    async def read_file(self, session_id: str, name: str) -> bytes | None:
        """Return a file of the session, or None if it does not exist."""
        ...

    async def load_archive(self, session_id: str) -> SandboxArchive | None:
        """Return the last checkpoint of the session's sandbox, whoever holds the session.

        Raises ArchiveUnusable, also while its chunks are read.
        """
        ...

    async def list_sessions(self) -> Sequence[StoredSession]:
        """Return all sessions, the last changed first."""
        ...

    async def remove(self, session_id: str, stamp: str = "") -> bool:
        """Remove a session with all its files.

        Returns False if there was none, or if its `stamp` has changed. Raises SessionTaken while another process holds
        it. A session that could be removed only in part is no longer listed, and the next call removes the rest.
        """
        ...


# These two characters surround each matched word of a snippet; no indexed text contains them. Escape the snippet for
# the medium it is shown in, then replace them.
MATCH_BEGINS = "\ue000"
MATCH_ENDS = "\ue001"


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A text that matches a search.

    `number` is the entry's position in its journal, counted from 1; `part` is not 0 only in an imported history of
    several messages. `snippet` contains MATCH_BEGINS and MATCH_ENDS.
    """

    summary: SessionSummary
    number: int
    part: int
    at: float
    who: Speaker
    snippet: str


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text as the index holds it: masked, and without its middle if it is very long."""

    number: int
    part: int
    at: float
    who: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class DailyCost:
    """The cost so far of the sessions that began on a day.

    `tokens` counts input tokens, `cached` those of them that came from a cache.
    """

    day: date
    sessions: int
    usd: float
    unpriced: int
    tokens: int
    cached: int


class SessionIndex(RunFiguresSource, Protocol):
    """Find what was said in sessions by words.

    The index is built from journals and can be rebuilt at any time; its methods answer without opening a journal. A
    damaged index starts empty again, so `stamps` may know fewer sessions than before: call it before a search, and
    `put` sessions that are missing or have another stamp, the oldest first, because a word that occurs everywhere is
    searched in the sessions that were put last.

    Raises UsageError for an invalid session id, JournalUnwritable when the index cannot be used now, SessionUnreadable
    when a newer version made it.
    """

    async def stamps(self) -> Mapping[str, str]:
        """Return the stamp of each indexed session."""
        ...

    async def put(self, session_id: str, stamp: str, summary: SessionSummary, entries: Sequence[JournalEntry]) -> None:
        """Index all entries of a session; entries that are indexed already are not read again.

        A session that started again under the same id replaces the old one. A list with fewer entries than the index
        has is an outdated view and changes nothing.
        """
        ...

    async def forget(self, session_id: str) -> None:
        """Remove a session from the index."""
        ...

    async def list_sessions(self, limit: int, project: str = "", text: str = "") -> Sequence[SessionSummary]:
        """Return sessions, the last changed first.

        With `text`, only those that contain it in their id, title, project or model, or in the title and branch of
        their merge request or the names and titles of what failed.
        """
        ...

    async def daily_costs(self, since: date) -> Sequence[DailyCost]:
        """Return the costs of each UTC day on which a session began, over all sessions, oldest day first."""
        ...

    async def search(self, query: str, limit: int = SEARCH_HITS, project: str = "") -> Sequence[SearchHit]:
        """Return the best hits first, at most SEARCH_HITS.

        Any query works: words, "several words in this order", the beginning of the last word. When no text has all
        words, texts that have some of them are found.
        """
        ...

    async def texts_around(
        self, session_id: str, number: int, before: int, after: int, part: int = 0
    ) -> Sequence[IndexedText]:
        """Return a text with `before` texts before and `after` texts after it, in journal order."""
        ...

    async def clear(self) -> None:
        """Remove all sessions; needed when new secrets are known that must be masked."""
        ...

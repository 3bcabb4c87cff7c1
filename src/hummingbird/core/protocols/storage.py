"""Define the protocols of stores that outlive a run: objects, known failures, votes and spending.

Times are seconds since the epoch, days are UTC.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Protocol

from hummingbird.core.votes import VoteCount


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """Distinguish one state of an object from another; only its store understands the fields.

    A store may give two states with the same content the same version, so whoever swaps puts something unique into the
    content.
    """

    e_tag: str = ""
    number: str = ""


@dataclass(frozen=True, slots=True)
class VersionedContent:
    """An object's content together with its version."""

    content: bytes
    version: ObjectVersion


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as a listing shows it; `changed_at` is by the store's clock."""

    name: str
    size: int
    changed_at: float


@dataclass(frozen=True, slots=True)
class ObjectStream:
    """An object that is read in chunks, once. Close `chunks` (`aclosing`) to stop early."""

    chunks: AsyncGenerator[bytes, None]
    size: int
    changed_at: float


class ObjectStore(Protocol):
    """Store large objects by name: event bodies that are too large for a queue, whole sessions.

    A name consists of parts of letters, digits, `-`, `_` and `.`, with `/` between them. Every method raises
    ObjectStoreUnusable when the store cannot be reached or refuses.
    """

    async def put(self, name: str, content: bytes) -> None:
        """Store an object completely or not at all, replacing what was there."""
        ...

    async def get(self, name: str) -> bytes | None:
        """Return the object, or None if there is none of that name."""
        ...

    async def list_names(self, prefix: str) -> Sequence[str]:
        """Return the names below the prefix, sorted."""
        ...

    async def delete(self, name: str) -> None:
        """Delete an object; succeeds also if there is none of that name."""
        ...


class VersionedObjectStore(ObjectStore, Protocol):
    """A store that several hosts share: it supports conditional writes, listings with times, and streaming."""

    async def get_versioned(self, name: str, most_bytes: int | None = None) -> VersionedContent | None:
        """Return the object with its version, or None if there is none of that name.

        Raises ObjectStoreUnusable also when it is larger than `most_bytes`.
        """
        ...

    async def compare_and_swap(self, name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        """Write if the object is still at version `known`, or if it does not exist and `known` is None.

        Returns the new version, or None if another writer was first and nothing was written. After ObjectStoreUnusable
        it is unknown whether the write happened; read the content to find out.
        """
        ...

    async def list_objects(self, prefix: str) -> Sequence[ObjectInfo]:
        """Return what `list_names` returns, with sizes and times."""
        ...

    async def put_stream(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Store an object from chunks and return the number of bytes.

        The new content replaces the old only when it is complete; until then, and when `chunks` raises, the old content
        stays. Raises whatever `chunks` raises.
        """
        ...

    async def open_stream(self, name: str) -> ObjectStream | None:
        """Open an object for reading in chunks, or return None if there is none of that name.

        Reading its chunks raises ObjectStoreUnusable too.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSighting:
    """A failure occurred in a job.

    `occurrence` names the job by its id or link: an event that is delivered twice names the same occurrence and counts
    once. `author` is a pseudonym of the merge request's author, always the same for the same person, and empty if
    unknown. The caller has masked the texts; the store truncates long ones. `kind` and `class_` are plain words here,
    so that older versions can read values they do not know. `merge_request` and `branch` may be empty.
    """

    project: str
    fingerprint: str
    occurrence: str
    at: float
    kind: str
    class_: str
    title: str
    excerpt: str = ""
    merge_request: str = ""
    branch: str = ""
    link: str = ""  # to the analysis
    author: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisLink:
    """Where a failure was explained: the merge request, and a link to the note."""

    at: float
    merge_request: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """What the store remembers of a failure.

    Kind, class, title and excerpt are those of the newest sighting; lists are bounded, newest first. `count` stays 1 as
    long as the failure was seen in one job only, however often that job is reported: then it is new. `authors` holds
    the author's pseudonym for each merge request, empty if unknown, because earlier versions recorded none.
    `authors_total` counts the different authors; all unknown ones together count as one.
    """

    project: str
    fingerprint: str
    kind: str
    class_: str
    title: str
    excerpt: str
    first_seen: float
    last_seen: float
    count: int
    merge_requests: tuple[str, ...]
    merge_requests_total: int
    branches: tuple[str, ...]
    links: tuple[str, ...]
    analysis: AnalysisLink | None = None  # the first recent one
    authors: tuple[str, ...] = ()
    authors_total: int = 0


@dataclass(frozen=True, slots=True)
class FailureDay:
    """The number of sightings, and of different failures, on one day."""

    day: date
    sightings: int
    failures: int


class KnownFailureStore(Protocol):
    """Remember the failures that each project has had before.

    Raises UsageError for a project or fingerprint that is empty or too long, JournalUnwritable when the store cannot be
    used now, JournalDamaged when it is broken, SessionUnreadable when a newer version made it or it is not a failure
    store. Do not look up a log region that has no fingerprint.
    """

    async def record_sighting(self, sighting: FailureSighting) -> KnownFailure:
        """Record a sighting and return everything known about the failure, including this sighting."""
        ...

    async def record_analysis(self, project: str, fingerprint: str, analysis: AnalysisLink, since: float) -> None:
        """Record where a known failure was explained.

        The first explanation counts: an existing one that is not older than `since` stays. A failure that nobody has
        seen is ignored.
        """
        ...

    async def find_failure(self, project: str, fingerprint: str) -> KnownFailure | None:
        """Return what is known about a failure, or None."""
        ...

    async def find_failures(self, project: str, fingerprints: Sequence[str]) -> Mapping[str, KnownFailure]:
        """Return those of the fingerprints that are known."""
        ...

    async def list_projects(self, limit: int) -> Sequence[str]:
        """Return the projects that have known failures, the one with the latest sighting first."""
        ...

    async def list_recent(self, project: str, limit: int) -> Sequence[KnownFailure]:
        """Return a project's failures, last seen first."""
        ...

    async def trend(self, project: str, since: date, fingerprint: str | None = None) -> Sequence[FailureDay]:
        """Return the days with sightings, oldest first; with `fingerprint`, only those of that failure."""
        ...

    async def trends(
        self, project: str, since: date, fingerprints: Sequence[str]
    ) -> Mapping[str, Sequence[FailureDay]]:
        """Return what `trend` returns for each fingerprint, with a single read of the store."""
        ...

    async def delete_unseen_since(self, before: float) -> int:
        """Delete the failures of all projects that were not seen since `before`, and return how many.

        Also deletes older traces of the remaining failures.
        """
        ...


NO_VOTES = VoteCount()


@dataclass(frozen=True, slots=True, kw_only=True)
class VotableNote:
    """A result that was posted on a merge request, and what produced it.

    The store truncates long names of workflows, models and sessions.
    """

    project: str
    iid: int
    note_id: int
    workflow: str
    model: str
    session_id: str
    posted_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedNote:
    """A posted note with its votes; `looked_at` is when they were last counted, 0 if never."""

    note: VotableNote
    votes: VoteCount = NO_VOTES
    looked_at: float = 0.0


class VoteStore(Protocol):
    """Remember posted notes and how many people voted on them; it stores nothing about the people.

    The caller has asked GitLab, and has counted only people who may vote. The store keeps about VOTES_KEPT notes, of
    the last VOTES_KEPT_S.

    Raises UsageError for a project whose name is empty or too long, JournalUnwritable when the store cannot be used
    now, JournalDamaged when it is broken, SessionUnreadable when a newer version made it or it is not a vote store.
    """

    async def record_note(self, note: VotableNote) -> None:
        """Record a posted note; recording the same note again changes nothing."""
        ...

    async def claim_due_notes(self, now: float, limit: int) -> Sequence[VotableNote]:
        """Return notes that are due to be counted, for this caller alone.

        The next caller, in any process, gets other notes; these come again when they are due again
        (`hummingbird.core.votes.next_look_at`).
        """
        ...

    async def record_votes(self, note: VotableNote, votes: VoteCount, at: float) -> None:
        """Record the votes of a note, unless the note is no longer known or was counted later than `at`."""
        ...

    async def schedule_count(self, note: VotableNote, at: float) -> None:
        """Make the note due at that time, unless it is due earlier."""
        ...

    async def find_note(self, project: str, note_id: int) -> RatedNote | None:
        """Return a note with its votes, or None if it is not known."""
        ...

    async def list_recent(self, since: float, limit: int) -> Sequence[RatedNote]:
        """Return the notes posted since then, newest first."""
        ...


class SpendingStore(Protocol):
    """Add up what each project has spent today, over all its runs.

    Raises JournalUnwritable: a spending limit that cannot be checked must not be passed silently.
    """

    async def usd_today(self, project: str) -> Decimal:
        """Return what the project has spent today, in USD."""
        ...

    async def add(self, project: str, usd: Decimal) -> None:
        """Add an amount to today's spending.

        Do not call it again when it raises: the store may record the amount later.
        """
        ...

"""The failures that each project has had before (V6). Whoever tells of one has masked its texts.

Times are seconds since the epoch, days are UTC. Kinds and classes are words to this ledger, so that it can be read by
versions that know fewer of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A failure was there. `occurrence` names the job it happened in, by its id or its link: an event that is delivered
    twice tells of the same one, and counts once. `author`: a mark of the merge request's author, the same one for the
    same person; empty if nobody knows. Longer texts are cut; `merge_request` and `branch` may be empty."""

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
class Analysed:
    """Where a failure was explained: in which merge request, and a link to the note that does."""

    at: float
    merge_request: str
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFailure:
    """What is remembered. Kind, class, title and excerpt are those of the newest sighting; lists are bounded, newest
    first. `count` is one as long as it was seen in one job only: then it is new, however often that job is told of.
    `authors`: for each of the merge requests the mark of its author, empty if nobody knows: earlier versions remembered
    none. `authors_total`: how many different ones, all unknown ones together being one."""

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
    analysis: Analysed | None = None  # the first of late
    authors: tuple[str, ...] = ()
    authors_total: int = 0


@dataclass(frozen=True, slots=True)
class FailureDay:
    """`sightings` of how many different `failures` there were on a day."""

    day: date
    sightings: int
    failures: int


class KnownFailures(Protocol):
    """Raises UsageFault for a project or fingerprint that is empty or too long, JournalUnwritable when the ledger
    cannot be used now, JournalDamaged when it is broken, SessionUnreadable when it is a newer version's or no ledger.
    A region without a fingerprint is nothing that can be known: do not ask for it."""

    async def seen(self, sighting: Sighting) -> KnownFailure:
        """Remembers it, and says what is known with it."""
        ...

    async def analysed(self, project: str, fingerprint: str, analysis: Analysed, since: float) -> None:
        """Remembers where a known failure was explained. The first explanation counts: one that is there already and
        not older than `since` stays. Nothing happens for a failure that nobody has seen."""
        ...

    async def known(self, project: str, fingerprint: str) -> KnownFailure | None: ...

    async def known_many(self, project: str, fingerprints: Sequence[str]) -> Mapping[str, KnownFailure]:
        """Those of them that are known."""
        ...

    async def projects(self, limit: int) -> Sequence[str]:
        """That have any; where one was seen last comes first."""
        ...

    async def recent(self, project: str, limit: int) -> Sequence[KnownFailure]:
        """Last seen first."""
        ...

    async def trend(self, project: str, since: date, fingerprint: str | None = None) -> Sequence[FailureDay]:
        """The days that had any, oldest first; of one failure when it is named."""
        ...

    async def trends(
        self, project: str, since: date, fingerprints: Sequence[str]
    ) -> Mapping[str, Sequence[FailureDay]]:
        """As `trend` of each of them, with one look at the ledger."""
        ...

    async def forget(self, before: float) -> int:
        """How many failures of all projects were not seen since and are gone now, with every trace that is older."""
        ...

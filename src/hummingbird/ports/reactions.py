"""Notes that were posted, and how people voted on them. Of people nothing is kept but how many they were.

Times are seconds since the epoch. Whoever tells of votes has asked GitLab, and has counted those alone who may vote.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hummingbird.domain.votes import Votes

NONE = Votes()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePosted:
    """A result on a merge request, and what made it. Longer names of workflows, models and sessions are cut."""

    project: str
    iid: int
    note_id: int
    workflow: str
    model: str
    session_id: str
    posted_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """`looked_at`: when its votes were counted last, 0 if nobody did yet."""

    note: NotePosted
    votes: Votes = NONE
    looked_at: float = 0.0


class Reactions(Protocol):
    """Bounded: the newest VOTES_KEPT notes or so, of the last VOTES_KEPT_S. Raises UsageFault for a project whose name
    is empty or too long, JournalUnwritable when the store cannot be used now, JournalDamaged when it is broken,
    SessionUnreadable when it is a newer version's or none of ours."""

    async def posted(self, note: NotePosted) -> None:
        """The same note twice is the same note: the first telling counts."""
        ...

    async def due(self, now: float, limit: int) -> Sequence[NotePosted]:
        """Notes whose turn it is, for the caller alone: whoever asks next, in whatever process, gets others, and these
        again only when it is their turn again (`domain.votes.next_look`)."""
        ...

    async def counted(self, note: NotePosted, votes: Votes, at: float) -> None:
        """Nothing if the note is not known any more, or was looked at later than that."""
        ...

    async def wanted(self, note: NotePosted, at: float) -> None:
        """It is its turn at that time, if it is not earlier."""
        ...

    async def known(self, project: str, note_id: int) -> Rated | None: ...

    async def recent(self, since: float, limit: int) -> Sequence[Rated]:
        """Posted since then, newest first."""
        ...

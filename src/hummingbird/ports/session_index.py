"""What we ask of an index over sessions (S4): who said what, found by its words. All of it is made from journals and
can be made again, so nobody has to keep it; what is asked of it here is answered without opening one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from hummingbird.domain.journal import Entry
from hummingbird.domain.session_limits import SEARCH_HITS
from hummingbird.domain.session_words import Who
from hummingbird.domain.sessions import Summary

# Around each word of a snippet that was looked for; no indexed text holds them. Escape a snippet for where it is shown,
# then replace these two.
MATCH_BEGINS = "\ue000"
MATCH_ENDS = "\ue001"


@dataclass(frozen=True, slots=True)
class Hit:
    """`number` of the entry in its journal, which begins with 1; `part` of it, not 0 only in a history of several
    messages. `snippet` holds MATCH_BEGINS and MATCH_ENDS."""

    summary: Summary
    number: int
    part: int
    at: float
    who: Who
    snippet: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """A text as the index has it: masked, and without its middle if it is very long."""

    number: int
    part: int
    at: float
    who: Who
    text: str


@dataclass(frozen=True, slots=True)
class Day:
    """What the sessions that began on a day have cost so far. `tokens` went in, of them `cached`."""

    day: date
    sessions: int
    usd: float
    unpriced: int
    tokens: int
    cached: int


class SessionIndex(Protocol):
    """Raises UsageFault for a session id that is none, JournalUnwritable when the index cannot be used now,
    SessionUnreadable when it is a newer version's. One that is damaged is begun anew, so `stamps` may know fewer
    sessions than before: ask for them before a search, and put what is missing or has another stamp, the oldest
    session first: a word that is everywhere is looked for in those that came last."""

    async def stamps(self) -> Mapping[str, str]:
        """Of all sessions it has: the stamp that each was put with."""
        ...

    async def put(self, session_id: str, stamp: str, summary: Summary, entries: Sequence[Entry]) -> None:
        """All entries of a session; those that it has are not read again. One that was begun anew under the same id
        takes the place of the old one. Fewer entries than it has are what somebody saw earlier, and change nothing."""
        ...

    async def forget(self, session_id: str) -> None: ...

    async def listed(self, limit: int, project: str = "", text: str = "") -> Sequence[Summary]:
        """Last changed first; with `text`, those that have it in their id, title, project or model."""
        ...

    async def days(self, since: date) -> Sequence[Day]:
        """UTC days on which any session began, oldest first, over all there are."""
        ...

    async def search(self, query: str, limit: int = SEARCH_HITS, project: str = "") -> Sequence[Hit]:
        """Best first, at most SEARCH_HITS. Any query will do: words, "several words in this order", beginnings of the
        last one. Where no text has all of the words, those that have some of them are found."""
        ...

    async def around(self, session_id: str, number: int, before: int, after: int, part: int = 0) -> Sequence[Spoken]:
        """That text, as many before and as many after it, in the order of the journal."""
        ...

    async def clear(self) -> None:
        """Forgets all sessions. Do so when there are secrets to mask that were not known before."""
        ...

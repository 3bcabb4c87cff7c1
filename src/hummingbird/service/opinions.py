"""Thumbs that people put on our results: which notes there are, and how they were voted on.

Those alone count who could make us work (I7): on a public project anybody may put a thumb on anything, and a figure
that strangers can push tells nothing. Who votes is asked of GitLab, and never believed from an event. Nothing here can
hurt a run or a note: what cannot be kept is a line in the log.
"""

import logging
from dataclasses import dataclass

from hummingbird.domain.errors import (
    HummingbirdError,
    JournalDamaged,
    JournalUnwritable,
    SessionUnreadable,
    UsageFault,
)
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.vote_limits import VOTERS_ASKED, VOTES_EVENT_PAUSE_S
from hummingbird.domain.votes import Votes, opinions, votes_of
from hummingbird.ports.clock import Clock
from hummingbird.ports.forge import DEVELOPER, Forge
from hummingbird.ports.reactions import NotePosted, Reactions

_log = logging.getLogger("hummingbird.service")
STORE_ERRORS = (UsageFault, JournalUnwritable, JournalDamaged, SessionUnreadable)


async def counted(forge: Forge, note: NotePosted) -> Votes:
    """The votes on a note as they are now. Raises ForgeError, CredentialRefused."""
    found = opinions(await forge.reactions(note.iid, note.note_id), await forge.bot_ids())
    asked = list(found.items())[:VOTERS_ASKED]
    return votes_of({person: way for person, way in asked if await forge.access(person) >= DEVELOPER})


@dataclass(frozen=True, slots=True)
class Opinions:
    """`store` None: nothing is remembered here."""

    store: Reactions | None
    clock: Clock

    async def posted(self, order: WorkOrder, note_id: int, model: str) -> None:
        """Remembers a result. Raises nothing."""
        if self.store is None:
            return
        note = NotePosted(
            project=order.project,
            iid=order.mr_iid,
            note_id=note_id,
            workflow=order.workflow,
            model=model,
            session_id=order.session_id,
            posted_at=self.clock.now(),
        )
        try:
            await self.store.posted(note)
        except HummingbirdError as error:
            _log.warning(
                "Order %s, session %s: votes on its note will not be counted. %s", order.id, note.session_id, error
            )

    async def changed(self, forge: Forge, project: str, note_id: int) -> str:
        """Somebody says that there is another emoji on a note: what was made of it. Which notes are ours, we know
        ourselves; what is on them, GitLab is asked. Raises ForgeError, CredentialRefused."""
        try:
            known = None if self.store is None else await self.store.known(project, note_id)
            if self.store is None or known is None:
                return "the emoji is not on a result of ours"
            now = self.clock.now()
            if 0 <= now - known.looked_at < VOTES_EVENT_PAUSE_S:
                await self.store.wanted(known.note, now)
                return "the note was looked at a moment ago, and will be again soon"
            votes = await counted(forge, known.note)
            await self.store.counted(known.note, votes, now)
        except STORE_ERRORS as error:
            return f"votes cannot be kept: {error}"
        return f"the note has {votes.up} thumbs up and {votes.down} down"

"""Count the thumbs that people put on our results.

Only votes of Developers count: on a public project anybody may put a thumb on anything, and a figure that strangers can
move means nothing. Who voted is always asked of GitLab, never taken from an event. Nothing here can harm a run or a
note: what cannot be stored is only logged.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hummingbird.config.configuration import Configuration
from hummingbird.core.errors import (
    GitLabUnavailable,
    HummingbirdError,
    JournalDamaged,
    JournalUnwritable,
    SessionUnreadable,
    UsageError,
)
from hummingbird.core.orders import WorkOrder
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.storage import VotableNote, VoteStore
from hummingbird.core.votes import (
    HARVEST_BATCH,
    HARVEST_CAP_S,
    HARVEST_NOTES,
    HARVEST_PAUSE_S,
    HARVEST_S,
    VOTERS_ASKED,
    VOTES_EVENT_PAUSE_S,
    VOTES_KEPT,
    VOTES_KEPT_S,
    VoteCount,
    count_votes,
    opinions_by_user,
)
from hummingbird.gitlab.write.protocol import DEVELOPER, GitLabWriter, GitLabWriters

_log = logging.getLogger("hummingbird.service")
STORE_ERRORS = (UsageError, JournalUnwritable, JournalDamaged, SessionUnreadable)


async def read_votes(forge: GitLabWriter, note: VotableNote) -> VoteCount:
    """Return the current votes on a note.

    Raises GitLabWriteError and CredentialRefused.
    """
    found = opinions_by_user(await forge.reactions(note.iid, note.note_id), await forge.bot_ids())
    asked = list(found.items())[:VOTERS_ASKED]
    return count_votes({person: way for person, way in asked if await forge.access_level(person) >= DEVELOPER})


@dataclass(frozen=True, slots=True)
class VoteTracker:
    """Remember our results and recount their votes; without a `store`, nothing is remembered."""

    store: VoteStore | None
    clock: Clock

    async def remember_note(self, order: WorkOrder, note_id: int, model: str) -> None:
        """Remember a result for counting; an error is only logged."""
        if self.store is None:
            return
        note = VotableNote(
            project=order.project,
            iid=order.mr_iid,
            note_id=note_id,
            workflow=order.workflow,
            model=model,
            session_id=order.session_id,
            posted_at=self.clock.now(),
        )
        try:
            await self.store.record_note(note)
        except HummingbirdError as error:
            _log.warning(
                "Order %s, session %s: votes on its note will not be counted: %s", order.id, note.session_id, error
            )

    async def recount(self, forge: GitLabWriter, project: str, note_id: int) -> str:
        """Count the votes on a note after an emoji event, and return a sentence about the outcome.

        Our store says which notes are ours, and GitLab says which votes they have. Raises GitLabWriteError and
        CredentialRefused.
        """
        try:
            known = None if self.store is None else await self.store.find_note(project, note_id)
            if self.store is None or known is None:
                return "the emoji is not on a result of ours"
            now = self.clock.now()
            if 0 <= now - known.looked_at < VOTES_EVENT_PAUSE_S:
                await self.store.schedule_count(known.note, now)
                return "the votes were counted a moment ago, and will be counted again soon"
            votes = await read_votes(forge, known.note)
            await self.store.record_votes(known.note, votes, now)
        except STORE_ERRORS as error:
            return f"votes cannot be stored: {error}"
        return f"the note has {votes.up} thumbs up and {votes.down} down"


@dataclass(frozen=True, slots=True)
class VotePoller:
    """Recount the votes on our notes in rounds, with few requests to GitLab.

    A round looks at a limited number of notes, with a pause between two, and skips those that another process looks at.
    After GitLab was unavailable, the next round comes later. The store knows when a note is due; what fails is tried
    again when the note is due next. `report` gets the votes on all remembered notes, by workflow, after each round.
    """

    configuration: Callable[[], Configuration]
    forges: Callable[[Configuration], GitLabWriters]
    store: VoteStore
    clock: Clock
    report: Callable[[Mapping[str, VoteCount]], None]

    async def poll_forever(self) -> None:
        """Poll in rounds, without end."""
        rest = HARVEST_S
        while True:
            rest = HARVEST_S if await self._try_poll() else min(rest * 2, HARVEST_CAP_S)
            await self.clock.sleep(rest)

    async def _try_poll(self) -> bool:
        try:
            return await self.poll_once()
        except HummingbirdError as error:
            _log.warning("Could not count votes: %s", error)
            return False

    async def poll_once(self) -> bool:
        """Do one round; return False if GitLab was unavailable.

        Raises what the store raises.
        """
        asked = 0
        while asked < HARVEST_NOTES and (notes := await self.store.claim_due_notes(self.clock.now(), HARVEST_BATCH)):
            for note in notes:
                if not await self._poll_note(note):
                    return False
                asked += 1
                await self.clock.sleep(HARVEST_PAUSE_S)
        self.report(await self._sum_by_workflow())
        return True

    async def _poll_note(self, note: VotableNote) -> bool:
        configuration = self.configuration()
        if not configuration.resolve_project(note.project):
            return True  # the project is no longer configured
        at = self.clock.now()
        try:
            votes = await read_votes(self.forges(configuration).writer_for(note.project), note)
        except GitLabUnavailable as error:
            _log.info("Votes will be counted later: %s", error)
            return False
        except HummingbirdError as error:  # the note is gone or we may not read it: its last votes stay
            _log.info("Could not count the votes on note %d of %s!%d: %s", note.note_id, note.project, note.iid, error)
            return True
        await self.store.record_votes(note, votes, at)
        return True

    async def _sum_by_workflow(self) -> Mapping[str, VoteCount]:
        figures: dict[str, VoteCount] = {}
        for one in await self.store.list_recent(self.clock.now() - VOTES_KEPT_S, VOTES_KEPT):
            figures[one.note.workflow] = figures.get(one.note.workflow, VoteCount()) + one.votes
        return figures

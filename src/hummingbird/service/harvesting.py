"""Looking at the thumbs on our notes, gently and all the time: some notes a round, a pause between them, none that
another process looks at, and a longer rest whenever GitLab has no time for us.

When it is a note's turn, the store knows. Nobody waits for this: what fails is tried in the note's next turn.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hummingbird.config.configuration import Configuration
from hummingbird.domain.errors import ForgeDown, HummingbirdError
from hummingbird.domain.vote_limits import (
    HARVEST_BATCH,
    HARVEST_CAP_S,
    HARVEST_NOTES,
    HARVEST_PAUSE_S,
    HARVEST_S,
    VOTES_KEPT,
    VOTES_KEPT_S,
)
from hummingbird.domain.votes import Votes
from hummingbird.ports.clock import Clock
from hummingbird.ports.forge import Forges
from hummingbird.ports.reactions import NotePosted, Reactions
from hummingbird.service.opinions import counted

_log = logging.getLogger("hummingbird.service")


@dataclass(frozen=True, slots=True)
class Harvest:
    """`told` hears the votes on all notes that are kept, by workflow, after each round."""

    configuration: Callable[[], Configuration]
    forges: Callable[[Configuration], Forges]
    store: Reactions
    clock: Clock
    told: Callable[[Mapping[str, Votes]], None]

    async def keep_looking(self) -> None:
        """Without end."""
        rest = HARVEST_S
        while True:
            rest = HARVEST_S if await self._went_well() else min(rest * 2, HARVEST_CAP_S)
            await self.clock.sleep(rest)

    async def _went_well(self) -> bool:
        try:
            return await self.round()
        except HummingbirdError as error:
            _log.warning("Votes on notes are not counted now. %s", error)
            return False

    async def round(self) -> bool:
        """Whether GitLab had time for us. Raises what the store raises."""
        asked = 0
        while asked < HARVEST_NOTES and (notes := await self.store.due(self.clock.now(), HARVEST_BATCH)):
            for note in notes:
                if not await self._looked(note):
                    return False
                asked += 1
                await self.clock.sleep(HARVEST_PAUSE_S)
        self.told(await self._figures())
        return True

    async def _looked(self, note: NotePosted) -> bool:
        configuration = self.configuration()
        if not configuration.on(note.project):
            return True  # nobody wants anything of that project any more
        at = self.clock.now()
        try:
            votes = await counted(self.forges(configuration).of(note.project), note)
        except ForgeDown as error:
            _log.info("Votes on notes are counted later. %s", error)
            return False
        except HummingbirdError as error:  # gone, or not for us: the votes that it had stay
            _log.info("Votes on note %d of %s!%d are not counted. %s", note.note_id, note.project, note.iid, error)
            return True
        await self.store.counted(note, votes, at)
        return True

    async def _figures(self) -> Mapping[str, Votes]:
        figures: dict[str, Votes] = {}
        for one in await self.store.recent(self.clock.now() - VOTES_KEPT_S, VOTES_KEPT):
            figures[one.note.workflow] = figures.get(one.note.workflow, Votes()) + one.votes
        return figures

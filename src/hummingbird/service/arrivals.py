"""The first stage: from an event to the work that is to be done about it (E2, R1–R6).

Routing decides; this asks GitLab what a decision depends on: which merge request, whose thread, which access. Nothing
is written but answers and resolved threads, each of which is looked up first: an event may be worked off twice.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from hummingbird.config.configuration import Configuration
from hummingbird.domain.errors import EventUnreadable
from hummingbird.domain.incoming import EmojiChanged, Ignored, NoteWritten
from hummingbird.domain.orders import Arrived, WorkOrder
from hummingbird.ports.forge import Forge, Forges
from hummingbird.service.automatic import Started
from hummingbird.service.decisions import Automatic, Ignore, Recount
from hummingbird.service.intake import read
from hummingbird.service.noted import Asked
from hummingbird.service.opinions import Opinions
from hummingbird.service.publication import Publication
from hummingbird.service.routing import route

_log = logging.getLogger("hummingbird.service")
NOTHING_DONE = "nothing is done, for"

BodyOf: TypeAlias = Callable[[Arrived], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """`configuration` gives the one that holds now; an event is judged by one alone. `publication` speaks in the name
    of that one."""

    configuration: Callable[[], Configuration]
    forges: Callable[[Configuration], Forges]
    publication: Callable[[Forge, Configuration], Publication]
    body_of: BodyOf
    now: Callable[[], float]
    opinions: Opinions | None = None

    async def arrived(self, event: Arrived) -> tuple[WorkOrder, ...]:
        """Raises ForgeError, MissingSetting, CredentialRefused, ObjectsUnusable."""
        configuration = self.configuration()
        try:
            incoming = read(await self.body_of(event))
        except EventUnreadable as error:
            return _nothing(event, str(error))
        if isinstance(incoming, Ignored):
            return _nothing(event, incoming.reason)
        early = route(incoming, configuration, frozenset(), forced=event.forced)
        if isinstance(early, Ignore):  # most events, and nothing of GitLab is needed to say so
            return _nothing(event, early.reason)
        forge = self.forges(configuration).of(incoming.project.path)
        decision = route(incoming, configuration, await forge.bot_ids(), forced=event.forced)
        if isinstance(decision, Ignore):
            return _nothing(event, decision.reason)
        _log.info("Event %s of %s: %s.", event.identity, incoming.project.path, decision.reason)
        if isinstance(incoming, EmojiChanged):
            return await self._recounted(event, forge, incoming)
        assert not isinstance(decision, Recount), "only an emoji leads to it"
        publication = self.publication(forge, configuration)
        if isinstance(decision, Automatic):
            return await Started(event, incoming, configuration, forge, publication, self.now()).orders(decision)
        assert isinstance(incoming, NoteWritten), "only a note leads to the others"
        return await Asked(event, incoming, configuration, forge, publication, self.now()).orders(decision)

    async def _recounted(self, event: Arrived, forge: Forge, emoji: EmojiChanged) -> tuple[WorkOrder, ...]:
        if self.opinions is None:
            return _nothing(event, "votes are not kept here")
        return _nothing(event, await self.opinions.changed(forge, emoji.project.path, emoji.note_id))


def _nothing(event: Arrived, reason: str) -> tuple[WorkOrder, ...]:
    _log.info("Event %s: %s %s.", event.identity, NOTHING_DONE, reason.rstrip("."))
    return ()

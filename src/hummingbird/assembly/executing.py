"""A run that posts (`hummingbird run --execute`): the stages of `serve` without its queue, with sessions where `serve`
keeps them."""

from collections.abc import Sequence
from uuid import uuid4

import msgspec

from hummingbird.adapters.models.registry import Models
from hummingbird.adapters.stores.exchanging import Patience
from hummingbird.assembly.asking import Asked, Nothing
from hummingbird.assembly.forges import ForgesOf
from hummingbird.assembly.investigating import Investigating
from hummingbird.assembly.overheard import overheard
from hummingbird.assembly.places import places
from hummingbird.assembly.run_parts import Parts, Ran
from hummingbird.assembly.secrets import for_runs
from hummingbird.assembly.session_stores import sessions_of
from hummingbird.assembly.shared_stores import known_failures_of, reactions_of, spending_of
from hummingbird.assembly.watching import everything
from hummingbird.config.configuration import Applied, Configuration
from hummingbird.domain.errors import ForgeError, HummingbirdError
from hummingbird.domain.orders import Arrived, Cause, Overrides, WorkOrder
from hummingbird.ports.forge import Forge, Thread
from hummingbird.ports.tool import Tool
from hummingbird.service.arrivals import Arrivals
from hummingbird.service.intake import read
from hummingbird.service.investigating import NO_OPINION, Conducted, Investigator, Looked, Opinion
from hummingbird.service.known import Known
from hummingbird.service.opinions import Opinions
from hummingbird.service.publication import Publication
from hummingbird.service.runs import Runs
from hummingbird.service.stages import Later
from hummingbird.service.wording import merge_request_url


async def check_model(name: str, parts: Parts) -> None:
    """A name that somebody typed just now, before anything is posted. Raises UnknownModel, MissingSetting."""
    settings, (given, _) = parts.configuration.settings, for_runs(parts.environment)
    models = Models(given, model_regions=settings.model_regions, ca_bundle=settings.ca_bundle or None)
    try:
        models.resolve(name)
    finally:
        await models.close()


class Executing:
    """Raises UsageFault when it is made: for folders that cannot be made."""

    def __init__(self, parts: Parts, forges: ForgesOf) -> None:
        settings = parts.configuration.settings
        self._parts, self._forges = parts, forges
        self._places, self._patience = places(settings, parts.environment).made(), Patience()
        self.sessions = sessions_of(self._places, settings, parts.clock.now)
        self._watched = _Watched(
            Investigating(
                self.sessions,
                parts.environment,
                spending=spending_of(self._places, settings, parts.clock.now, self._patience),
                chosen=parts.chosen,
                clock=parts.clock,
                watchers=everything(parts.on_event),
                memory=self._places.state,
            )
        )

    async def begun(self, body: bytes, model: str) -> Sequence[Asked] | Nothing:
        """What a webhook starts; what it resolves and answers is done. A replay is an event of its own. Raises
        EventUnreadable, ForgeError, MissingSetting, CredentialRefused."""

        async def body_of(_: Arrived) -> bytes:
            return body

        read(body)  # or it would be a reason in the log alone
        now = self._parts.clock.now
        arrivals = Arrivals(lambda: self._parts.configuration, self._forges, self._publication, body_of, now)
        with overheard() as said:
            orders = await arrivals.arrived(Arrived(identity=uuid4().hex, at=now(), forced=True))
        wanted = Overrides(model=model)
        # The operator's own choice of a model is not bound to what people may choose in notes.
        replayed = [msgspec.structs.replace(one, overrides=wanted.over(one.overrides), forced=True) for one in orders]
        made = [Asked(one) for one in replayed]
        return made or Nothing(said.reason)

    async def carried_out(self, asked: Asked) -> Ran | Nothing:
        """Raises what the run could not begin with, once that is told on the merge request too, ForgeError,
        MissingSetting and CredentialRefused. An answer that could not be posted is given back nevertheless."""
        forge = self._forges(self._parts.configuration).of(asked.order.project)
        order = await self._completed(asked.order, forge)
        failure: HummingbirdError | None = None
        with overheard() as said:
            try:
                later = await self._runs().ordered(order, last_try=True)
                failure = _unfinished(later) if later else None
            except HummingbirdError as error:
                failure = error
        if self._watched.conducted is None:
            if failure := failure or self._watched.failure:
                raise failure
            return Nothing(said.reason)
        url = merge_request_url(self._parts.configuration.settings, order.project, order.mr_iid)
        return Ran(order, self._watched.conducted, posted="" if failure else url, failure=failure)

    async def _completed(self, order: WorkOrder, forge: Forge) -> WorkOrder:
        """With what only GitLab knows: the head, and for a reply the thread of its session."""
        if order.cause is Cause.REPLY:
            return order if order.discussion_id else _placed(order, await forge.threads(order.mr_iid))
        if order.sha:
            return order
        return msgspec.structs.replace(order, sha=(await forge.merge_request(order.mr_iid)).change.head)

    def _runs(self) -> Runs:
        clock = self._parts.clock
        self._watched.forget()
        there = (self._places, self._parts.configuration.settings, self._patience)
        known, opinions = Known(known_failures_of(*there), clock), Opinions(reactions_of(*there), clock)
        return Runs(
            lambda: self._parts.configuration,
            self._forges,
            self._publication,
            self._watched,
            known,
            clock.now,
            opinions=opinions,
        )

    def _publication(self, forge: Forge, configuration: Configuration) -> Publication:
        return Publication(forge, configuration, self._parts.clock)


def _unfinished(later: Later) -> ForgeError:
    """Nobody is there who would look again."""
    return ForgeError(f"It could not be brought to its end: {later.reason}. Try again later.")


def _placed(order: WorkOrder, threads: Sequence[Thread]) -> WorkOrder:
    for thread in threads:
        if thread.marker is not None and thread.marker.id == order.session_id:
            note_id = thread.notes[0].id
            return msgspec.structs.replace(order, discussion_id=thread.id, note_id=note_id, internal=thread.internal)
    return order


class _Watched:
    """Fulfils service.investigating.Investigator, and remembers what came of the last order."""

    def __init__(self, investigator: Investigator) -> None:
        self._investigator = investigator
        self.conducted: Conducted | None = None
        self.failure: HummingbirdError | None = None

    def forget(self) -> None:
        self.conducted = self.failure = None

    async def known(self, order: WorkOrder) -> bool:
        return await self._investigator.known(order)

    async def look(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: Applied,
        target_branch: str,
        *,
        bot_ids: frozenset[int] = frozenset(),
    ) -> Looked:
        return await self._investigator.look(order, configuration, applied, target_branch, bot_ids=bot_ids)

    async def conduct(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: Applied,
        text: str,
        *,
        tools: Sequence[Tool] = (),
        bot_ids: frozenset[int] = frozenset(),
        opinion: Opinion = NO_OPINION,
    ) -> Conducted:
        try:
            self.conducted = await self._investigator.conduct(
                order, configuration, applied, text, tools=tools, bot_ids=bot_ids, opinion=opinion
            )
        except HummingbirdError as error:
            self.failure = error
            raise
        return self.conducted

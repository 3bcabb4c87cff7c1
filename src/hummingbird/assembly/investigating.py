"""Conducting an order (E2, N3): one run in one session, however often it is asked for and wherever it goes on.

The order's id is the run's: what its journal says decides whether there is nothing left to do, something to go on with,
or everything. Neither the forge nor its token is known here (I1).
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hummingbird.adapters.models.stated import StatedModel
from hummingbird.adapters.sources.registry import sources
from hummingbird.agent.chat_prompt import project_memory
from hummingbird.agent.loop import Loop
from hummingbird.agent.outcomes import upto_end
from hummingbird.agent.state import RunState
from hummingbird.agent.tools.digested import DigestedLines
from hummingbird.agent.tools.seen_failures import SeenFailures
from hummingbird.assembly.chat_mind import remembered_of
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.conducted import conducted
from hummingbird.assembly.declaring import declared
from hummingbird.assembly.first_look import first_look, has_begun, is_worth_a_look, judged_in
from hummingbird.assembly.held_session import HeldSession, held
from hummingbird.assembly.keeping import HeldKeeping
from hummingbird.assembly.library import Agent
from hummingbird.assembly.models import chain, price_overrides
from hummingbird.assembly.sandboxes import Chosen, wanted_sandbox
from hummingbird.assembly.secrets import for_runs, secrets_of, tool_secrets
from hummingbird.assembly.watching import watched
from hummingbird.config.configuration import Applied, Configuration
from hummingbird.config.settings import Settings
from hummingbird.domain.errors import HummingbirdError, JournalDamaged, SessionUnreadable, UsageFault
from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.journal import Entry, RunEnded, RunStarted, Source, UserSaid
from hummingbird.domain.limits import CONDUCTED_REMEMBERED
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.runs import Outcome
from hummingbird.domain.sessions import about
from hummingbird.ports.clock import Clock
from hummingbird.ports.journal import Journal
from hummingbird.ports.observer import RunWatcher
from hummingbird.ports.sessions import Sessions
from hummingbird.ports.spending import Spending
from hummingbird.ports.tool import Tool
from hummingbird.service.investigating import KNOWN_FAILURE, NO_OPINION, NOT_LOOKED, Conducted, Looked, Opinion

_log = logging.getLogger("hummingbird")
Kept = TypeVar("Kept")


class Investigating:
    """Fulfils service.investigating.Investigator. `environment` is the whole one; runs are given less. `watchers`
    see every journal entry of every run as it happens. `memory`: our own folder, in which what chats remember of
    projects is; runs are told it and never write it (C7)."""

    def __init__(
        self,
        sessions: Sessions,
        environment: Mapping[str, str],
        *,
        spending: Spending | None = None,
        chosen: Chosen | None = None,
        clock: Clock | None = None,
        watchers: Sequence[RunWatcher] = (),
        memory: Path | None = None,
    ) -> None:
        self._sessions, self._chosen = sessions, chosen or Chosen()
        self._memory = memory
        self._environment, self._held_back = for_runs(environment)
        self._clock, self._watchers = clock or SystemClock(), tuple(watchers)
        self._spending = spending
        # for results that could not be told at once: what stands in no journal (N8), and whole runs that are in none
        self._seen: OrderedDict[str, tuple[FailureSeen, ...]] = OrderedDict()
        self._unkept: OrderedDict[str, Conducted] = OrderedDict()

    async def known(self, order: WorkOrder) -> bool:
        try:
            begun = about(await self._sessions.entries(order.session_id))
        except UsageFault:
            return False
        except (JournalDamaged, SessionUnreadable):
            return True  # whoever conducts it cannot read it either, and says why
        return begun.is_of(order.project, order.mr_iid)

    async def look(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: Applied,
        target_branch: str,
        *,
        bot_ids: frozenset[int] = frozenset(),
    ) -> Looked:
        if not is_worth_a_look(order, applied) or order.id in self._unkept:
            return NOT_LOOKED
        try:
            entries = await self._sessions.entries(order.session_id)
        except HummingbirdError:  # whoever conducts it says why
            entries = ()
        if has_begun(entries, order.id) or _done(entries, order):
            return Looked(verdict=judged_in(entries, order.id))
        secret = [*self._held_back, *tool_secrets(configuration, self._environment)]
        where = (configuration.settings, applied, target_branch, self._environment)
        return await first_look(order, *where, bot_ids=bot_ids, secrets=secret)

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
        if order.id in self._unkept:
            return self._unkept[order.id]
        trouble, digested = _Trouble(order), DigestedLines()
        session = await held(self._sessions, order.session_id, trouble, needed=order.cause.goes_on)
        outcome: Outcome | None = None
        try:
            entries = _done(session.journal.entries(), order)
            if not entries:
                parts: dict[str, Any] = {"session": session, "trouble": trouble, "tools": tools, "bot_ids": bot_ids}
                parts |= {"opinion": opinion, "digested": digested}
                outcome = await self._run(order, configuration, applied, text, **parts)
                entries = tuple(session.journal.entries())
        finally:
            await session.put_away()
        made = partial(conducted, entries, outcome, failures=self._seen.get(order.id, ()), trouble=trouble)
        known = _addresses(configuration.settings)
        done = await asyncio.to_thread(made, known=known, digested=digested)  # a second, where much was fetched
        if not session.journal.whole:
            _remember(self._unkept, order.id, done)
        return done

    async def _run(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: Applied,
        text: str,
        *,
        session: HeldSession,
        trouble: "_Trouble",
        tools: Sequence[Tool],
        bot_ids: frozenset[int],
        opinion: Opinion,
        digested: DigestedLines,
    ) -> Outcome:
        secret = [*self._held_back, *tool_secrets(configuration, self._environment)]
        read = sources(declared(configuration.settings, applied, self._environment, bot_ids), self._environment)
        known = (value for source in read for value in source.secrets)
        seen = SeenFailures(secrets_of(self._environment, [*secret, *known]))
        with watched(self._watchers, order) as observer:
            agent = self._agent(
                order,
                configuration,
                applied,
                keeping=HeldKeeping(session.journal, session.archives, self._spending),
                tools=tools,
                sources=[seen.source(one) for one in read],
                secrets=secret,
                on_trouble=trouble,
                on_event=observer,
                judged=opinion.verdict,
                digested=digested,
            )
            try:
                if opinion.instead:
                    return await _stated(agent, session.journal, order, text, opinion.instead)
                return await _ended(agent, order, text)
            finally:
                await agent.aclose()
                _remember(self._seen, order.id, seen.found)

    def _agent(self, order: WorkOrder, configuration: Configuration, applied: Applied, **parts: Any) -> Agent:
        settings, environment = configuration.settings, self._environment
        primary, *others = chain(order.overrides.model or applied.model, applied.fallback_models, environment)
        return Agent(
            primary,
            fallback_models=others,
            instructions=self._instructions(order.project, applied.prompt, parts["secrets"]),
            session_id=order.session_id,
            project=order.project,
            max_iterations=order.overrides.max_iterations or applied.max_iterations,
            context_limit=applied.context_limit,
            max_usd=applied.usd_per_run,
            max_usd_per_day=applied.usd_per_day,
            max_seconds=applied.seconds_per_run,
            warns=True,
            context=applied.declared.context,
            sandbox=wanted_sandbox(settings, self._chosen),
            max_inline_bytes=applied.max_inline_size,
            exec_timeout_s=settings.sandbox.exec_timeout_seconds,
            model_regions=settings.model_regions,
            prices=price_overrides(settings.prices),
            ca_bundle=settings.ca_bundle,
            environment=environment,
            clock=self._clock,
            **parts,
        )

    def _instructions(self, project: str, prompt: str, secrets: Sequence[str]) -> str:
        if self._memory is None:
            return prompt
        known = remembered_of(self._memory, project, secrets_of(self._environment, secrets))
        return f"{prompt}\n\n{project_memory(known)}" if known else prompt


def _addresses(settings: Settings) -> tuple[str, ...]:
    """Those of the configuration, which an answer may link to (N6)."""
    known = (settings.gitlab_url, settings.docs_url, settings.source_url, settings.slack_url)
    return tuple(filter(None, known))


class _Trouble(list[str]):
    """What could not be kept; the operator hears it in the log, everybody else in the note."""

    def __init__(self, order: WorkOrder) -> None:
        super().__init__()
        self._about = f"order {order.id}, session {order.session_id}"

    def __call__(self, sentence: str) -> None:
        _log.warning("%s: %s", self._about, sentence)
        if sentence not in self:
            self.append(sentence)


def _remember(known: OrderedDict[str, Kept], order_id: str, made: Kept) -> None:
    known[order_id] = made
    while len(known) > CONDUCTED_REMEMBERED:
        known.popitem(last=False)


def _done(entries: Sequence[Entry], order: WorkOrder) -> Sequence[Entry]:
    """The session up to the end of the order's run; nothing if there is none. What begins by itself is about one commit
    (R7): an answer to an earlier order is the answer to this one, also where silence was the answer (N6)."""
    if done := upto_end(entries, order.id):
        return done
    return upto_end(entries, _answered(entries)) if order.checked else ()


def _answered(entries: Sequence[Entry]) -> str:
    """The first run of an order, not of a person's reply, that has an answer."""
    run_id, ordered = "", set[str]()
    for entry in entries:
        if isinstance(entry, RunStarted):
            run_id = entry.run_id
        elif isinstance(entry, UserSaid) and entry.source is Source.ORDER:
            ordered.add(run_id)
        elif isinstance(entry, RunEnded) and entry.answered and entry.run_id in ordered:
            return entry.run_id
    return ""


async def _stated(agent: Agent, journal: Journal, order: WorkOrder, text: str, answer: str) -> Outcome:
    """A run without a model's thought: a reply goes on in its session as in any other."""
    setup = replace(await agent.equipped(), models=[StatedModel(KNOWN_FAILURE, answer)])
    loop = Loop(journal, setup, order.session_id)
    if loop.state.active and loop.state.run.run_id == order.id:
        return await loop.go_on()
    return await loop.run(text, run_id=order.id, source=Source.ORDER)


async def _ended(agent: Agent, order: WorkOrder, text: str) -> Outcome:
    state = RunState.of(agent.entries())
    if state.active and state.run.run_id == order.id:
        return await agent.ago_on()
    source = Source.USER if order.cause.goes_on else Source.ORDER
    return await agent.arun(text, run_id=order.id, source=source)

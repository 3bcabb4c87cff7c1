"""Run an order as one agent run in one session, however often and wherever the order is delivered.

The order's id is the run's id, so its journal says whether the run is finished, has to be resumed, or has to start.
Nothing here can reach the write token.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from hummingbird.agent.failed_logs import ToolReader
from hummingbird.agent.failure_facts import FailureSubject, add_readings, gather_facts
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.prompts import project_memory_section
from hummingbird.agent.run_state import RunState, build_outcome, entries_until_end
from hummingbird.agent.tools.failure_watcher import FailureWatcher
from hummingbird.agent.tools.finding_report import findings_from_entries
from hummingbird.agent.tools.spill import LineDigests
from hummingbird.app.agent_config import AgentConfig
from hummingbird.app.chat_memory import project_memory_text
from hummingbird.app.console import SystemClock
from hummingbird.app.environment_secrets import environment_secrets, split_environment, tool_secret_values
from hummingbird.app.library import Agent
from hummingbird.app.model_choice import model_chain, price_overrides
from hummingbird.app.sandboxes import SandboxChoice, resolve_sandbox
from hummingbird.app.session_holder import OpenSession, OpenSessionHolder, SessionHolder, open_session
from hummingbird.app.source_registry import build_source_settings, create_sources
from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.config.settings import Settings
from hummingbird.core.errors import HummingbirdError, JournalDamaged, SessionUnreadable, UsageError
from hummingbird.core.events import RunDetached, RunEvent, RunOutcome
from hummingbird.core.journal import (
    TURN,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    RunEnded,
    RunStarted,
    UserSaid,
    VerdictRecorded,
)
from hummingbird.core.limits import CONDUCTED_REMEMBERED
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.projections import render_transcript
from hummingbird.core.protocols.observer import Clock, RunObserver, RunWatcher
from hummingbird.core.protocols.sessions import Journal, SessionStore
from hummingbird.core.protocols.storage import SpendingStore
from hummingbird.core.protocols.tools import DataSource
from hummingbird.core.sessions import find_subject
from hummingbird.core.verdicts import FailureVerdict, ObservedFailure
from hummingbird.evidence.citations.checker import CheckedAnswer, CitationMode, check_answers
from hummingbird.evidence.citations.coverage import coverage_from_entries
from hummingbird.evidence.citations.source_record import NO_DIGESTS, FetchedLineDigests
from hummingbird.evidence.verdict_rules import judge_failures, note_later_reading
from hummingbird.models.local_models import FixedReplyModel
from hummingbird.models.model_names import DIGEST
from hummingbird.service.protocols import (
    KNOWN_FAILURE,
    NO_RULE_INPUT,
    InvestigationRequest,
    InvestigationResult,
    RuleInput,
)

_log = logging.getLogger("hummingbird")
Remembered = TypeVar("Remembered")


def watch_every_run(observer: RunObserver | None) -> tuple[RunWatcher, ...]:
    """Return a watcher that observes all runs with the same observer."""
    return () if observer is None else (lambda _: observer,)


@contextmanager
def observe_run(watchers: Sequence[RunWatcher], order: WorkOrder) -> Iterator[RunObserver | None]:
    """Give the run's events to all watchers, and tell them at the end that it is over, even if it never started.

    A watcher that fails sees no more of the run and disturbs neither the run nor the others.
    """
    observer = _ObserverGroup(list(_start_watchers(watchers, order))) if watchers else None
    try:
        yield observer
    finally:
        if observer is not None:
            observer(RunDetached())


def _start_watchers(watchers: Sequence[RunWatcher], order: WorkOrder) -> Iterator[RunObserver]:
    for begin in watchers:
        try:
            yield begin(order)
        except Exception:  # noqa: BLE001 - a border: a failing watcher must not end a run
            _log.exception("A watcher failed at the start of a run and will not observe it.")


class _ObserverGroup:
    def __init__(self, observers: Sequence[RunObserver]) -> None:
        self._observers = list(observers)

    def __call__(self, event: RunEvent) -> None:
        for observer in tuple(self._observers):
            try:
                observer(event)
            except Exception:  # noqa: BLE001 - a border: a failing watcher must not end a run
                _log.exception("A watcher failed and will observe no more of this run.")
                self._observers.remove(observer)


READ_BEFORE = frozenset({"gitlab", "konflux", "testing_farm"})  # sources that are read before the run
_STARTING_CAUSES = (OrderCause.PIPELINE, OrderCause.COMMAND)


def should_gather_facts(order: WorkOrder, applied: ResolvedWorkflow) -> bool:
    """Return whether the order is about a failure: a review is about code, and a reply continues with known facts."""
    readable = applied.declared.data_sources.gitlab is not None
    return order.cause in _STARTING_CAUSES and applied.explains_failures and readable


def find_verdict(entries: Sequence[JournalEntry], run_id: str) -> FailureVerdict | None:
    """Return the last verdict of the run, which is computed from all that the run had seen."""
    found = (one.verdict for one in reversed(entries) if isinstance(one, VerdictRecorded) and one.run_id == run_id)
    return next(found, None)


def has_started(entries: Sequence[JournalEntry], run_id: str) -> bool:
    return any(isinstance(one, RunStarted) and one.run_id == run_id for one in entries)


def failure_subject(order: WorkOrder, target_branch: str = "") -> FailureSubject:
    return FailureSubject(
        mr_iid=order.mr_iid,
        sha=order.sha,
        pipeline_id=order.pipeline_id,
        target_branch=target_branch,
        project=order.project,
    )


async def gather_failure_facts(
    order: WorkOrder,
    settings: Settings,
    applied: ResolvedWorkflow,
    target_branch: str,
    environment: Mapping[str, str],
    *,
    bot_ids: frozenset[int],
    secrets: Sequence[str],
) -> RuleInput:
    """Read what failed, with what the workflow's own sources may read: GitLab, Konflux and Testing Farm.

    All sources are created, because a log may contain what only another source knows to be secret; creating one sends
    no request. Wrong settings give no facts here: the run itself reports them.
    """
    try:
        found = create_sources(build_source_settings(settings, applied, environment, bot_ids), environment)
    except HummingbirdError:
        return NO_RULE_INPUT
    try:
        known = (value for source in found for value in source.secrets)
        masked = environment_secrets(environment, [*secrets, *known])
        tools = [tool for source in found if source.name in READ_BEFORE for tool in source.tools]
        subject = failure_subject(order, target_branch)
        seen = await gather_facts(ToolReader(tools, masked, order.session_id), subject)
    finally:
        for source in found:
            await source.close()
    return RuleInput(facts=seen.facts, failures=seen.failures, pipelines=seen.pipelines)


def result_from_journal(
    entries: Sequence[JournalEntry],
    outcome: RunOutcome | None = None,
    *,
    failures: Sequence[ObservedFailure] = (),
    trouble: Sequence[str] = (),
    known: Iterable[str] = (),
    digested: FetchedLineDigests = NO_DIGESTS,
    citations: CitationMode = CitationMode.STRICT,
) -> InvestigationResult:
    """Build the result of a run from its journal, also of a run that ended in another process.

    `entries` is the session up to the end of the run. `outcome` is what the run returned if it has just ended, because
    the journal may lack its end. `known` are addresses that an answer may link to. `digested` are the lines that the
    run brought into its sandbox, if it ran in this process. `citations` says what to do with quotations that were not
    found.
    """
    state = RunState.from_entries(entries)
    outcome = outcome or build_outcome(state)
    reported = findings_from_entries(entries, outcome.run_id)
    shown_texts = (outcome.text, *(finding.text for finding in reported))
    model = _last_answering_model(entries, outcome.run_id) or state.model
    ours = model == KNOWN_FAILURE
    checked: Iterable[CheckedAnswer] = map(CheckedAnswer, shown_texts)
    if not ours:
        checked = check_answers(shown_texts, entries, known=known, digested=digested, mode=citations)
    answer, *texts = checked
    verdict, coverage = find_verdict(entries, outcome.run_id), coverage_from_entries(entries)
    findings = tuple(replace(one, posted_text=text.text) for one, text in zip(reported, texts, strict=True))
    began = next((one.at for one in entries if isinstance(one, RunStarted) and one.run_id == outcome.run_id), 0.0)
    return InvestigationResult(
        outcome=replace(outcome, text=answer.text),
        model=model,
        seconds=max(0.0, _end_time(entries, outcome.run_id) - began),
        transcript=_replace_answer(render_transcript(entries, outcome.run_id), outcome.text, answer.text),
        failures=tuple(failures),
        findings=findings,
        trouble=tuple(trouble),
        no_model_because=_no_model_reason(state),
        verdict=verdict and note_later_reading(verdict, coverage.logs, coverage.elsewhere),
        tallies=sum((text.tallies for text in texts), answer.tallies),
        coverage=coverage,
    )


def _replace_answer(text: str, given: str, checked: str) -> str:
    """Put the checked answer into the transcript, which is posted; the journal keeps the answer as it was given."""
    return text.replace(given.strip(), checked.strip()) if given.strip() and given != checked else text


def _end_time(entries: Sequence[JournalEntry], run_id: str) -> float:
    ended = next((one.at for one in entries if isinstance(one, RunEnded) and one.run_id == run_id), 0.0)
    return ended or entries[-1].at


def _last_answering_model(entries: Sequence[JournalEntry], run_id: str) -> str:
    """Return the model that gave the last answer of the run."""
    name, within = "", False
    for entry in entries:
        if isinstance(entry, RunStarted):
            within = entry.run_id == run_id
        elif within and isinstance(entry, ModelAnswered) and entry.purpose == TURN:
            name = entry.model
    return name


def _no_model_reason(state: RunState) -> str:
    """Return which models failed and why, if rules answered in their place."""
    return state.describe_failed_models() if state.model == DIGEST else ""


def _judge_with_readings(run: InvestigationRequest, seen: FailureWatcher) -> FailureVerdict | None:
    """Judge again by the same rules, from the facts gathered before the run and from what its tools have read since."""
    if run.opinion.facts is None or run.opinion.instead:
        return None
    facts = add_readings(run.opinion.facts, failure_subject(run.order), seen.readings)
    return judge_failures(facts) if facts.jobs else None


class AgentInvestigator:
    """Implements `service.protocols.Investigator` with an `Agent` per order.

    `environment` is complete; runs get it without the variables of the service. `watchers` observe every run. `memory`
    is the state folder, from which runs read what chats remember about the project; they never write it.
    """

    def __init__(
        self,
        sessions: SessionStore,
        environment: Mapping[str, str],
        *,
        spending: SpendingStore | None = None,
        chosen: SandboxChoice | None = None,
        clock: Clock | None = None,
        watchers: Sequence[RunWatcher] = (),
        memory: Path | None = None,
    ) -> None:
        self._sessions, self._chosen = sessions, chosen or SandboxChoice()
        self._memory = memory
        self._environment, self._held_back = split_environment(environment)
        self._clock, self._watchers = clock or SystemClock(), tuple(watchers)
        self._spending = spending
        # For orders that are delivered again, as when GitLab could not take the result: failures are in no journal, and
        # the store of journals may be away by then.
        self._failures_by_order: OrderedDict[str, tuple[ObservedFailure, ...]] = OrderedDict()
        self._results: OrderedDict[str, InvestigationResult] = OrderedDict()

    async def has_session(self, order: WorkOrder) -> bool:
        try:
            begun = find_subject(await self._sessions.load_entries(order.session_id))
        except UsageError:
            return False
        except (JournalDamaged, SessionUnreadable):
            return True  # the run cannot read it either, and reports why
        return begun.is_for(order.project, order.mr_iid)

    async def gather_facts(
        self,
        order: WorkOrder,
        configuration: Configuration,
        applied: ResolvedWorkflow,
        target_branch: str,
        *,
        bot_ids: frozenset[int] = frozenset(),
    ) -> RuleInput:
        if not should_gather_facts(order, applied) or order.id in self._results:
            return NO_RULE_INPUT
        try:
            entries = await self._sessions.load_entries(order.session_id)
        except HummingbirdError:  # the run reports why
            entries = ()
        if has_started(entries, order.id) or _entries_of_finished_run(entries, order):
            return RuleInput(verdict=find_verdict(entries, order.id))
        secret = [*self._held_back, *tool_secret_values(configuration, self._environment)]
        where = (configuration.settings, applied, target_branch, self._environment)
        return await gather_failure_facts(order, *where, bot_ids=bot_ids, secrets=secret)

    async def investigate(self, request: InvestigationRequest) -> InvestigationResult:
        order = request.order
        if order.id in self._results:
            return self._results[order.id]
        trouble, digested = _OrderTroubleLog(order), LineDigests()
        session = await open_session(self._sessions, order.session_id, trouble, needed=order.cause.continues_session)
        outcome: RunOutcome | None = None
        try:
            entries = _entries_of_finished_run(session.journal.entries(), order)
            if not entries:
                outcome = await self._run_agent(request, session, trouble, digested)
                entries = tuple(session.journal.entries())
        finally:
            await session.store_and_release()
        made = partial(
            result_from_journal, entries, outcome, failures=self._failures_by_order.get(order.id, ()), trouble=trouble
        )
        known, mode = link_addresses(request.configuration.settings), CitationMode(request.applied.declared.citations)
        # in a thread: it may take a second if the run fetched much
        done = await asyncio.to_thread(made, known=known, digested=digested, citations=mode)
        _remember_bounded(self._results, order.id, done)
        return done

    async def _run_agent(
        self, run: InvestigationRequest, session: OpenSession, trouble: "_OrderTroubleLog", digested: LineDigests
    ) -> RunOutcome:
        order, configuration, environment = run.order, run.configuration, self._environment
        secrets = [*self._held_back, *tool_secret_values(configuration, environment)]
        settings = build_source_settings(configuration.settings, run.applied, environment, run.bot_ids)
        sources = create_sources(settings, environment)
        source_secrets = (value for source in sources for value in source.secrets)
        seen = FailureWatcher(environment_secrets(environment, [*secrets, *source_secrets]))
        with observe_run(self._watchers, order) as observer:
            agent = self._create_agent(
                run,
                [seen.watch_source(source) for source in sources],
                OpenSessionHolder(session.journal, session.archives, self._spending),
                secrets=secrets,
                on_trouble=trouble,
                on_event=observer,
                line_digests=digested,
                judge_again=partial(_judge_with_readings, run, seen),
            )
            try:
                if run.opinion.instead:
                    return await _run_fixed_reply(agent, session.journal, order, run.text, run.opinion.instead)
                return await _run_or_resume(agent, order, run.text)
            finally:
                await agent.aclose()
                _remember_bounded(self._failures_by_order, order.id, (*run.opinion.failures, *seen.failures))

    def _create_agent(
        self,
        run: InvestigationRequest,
        sources: Sequence[DataSource],
        session_holder: SessionHolder,
        *,
        secrets: Sequence[str],
        on_trouble: Callable[[str], None],
        on_event: RunObserver | None,
        line_digests: LineDigests,
        judge_again: Callable[[], FailureVerdict | None],
    ) -> Agent:
        order, applied, settings = run.order, run.applied, run.configuration.settings
        wanted = order.overrides.model or applied.model
        primary, *others = model_chain(
            wanted, applied.fallback_models, self._environment, explains_failures=applied.explains_failures
        )
        return Agent(
            primary,
            fallback_models=others,
            tools=run.tools,
            sources=sources,
            sandbox=resolve_sandbox(settings, self._chosen),
            instructions=self._build_instructions(order.project, applied.prompt, secrets),
            session_id=order.session_id,
            config=AgentConfig(
                max_iterations=order.overrides.max_iterations or applied.max_iterations,
                context_limit=applied.context_limit,
                max_usd=applied.usd_per_run,
                max_usd_per_day=applied.usd_per_day,
                max_seconds=applied.seconds_per_run,
                warns=True,
                model_regions=settings.model_regions,
                prices=price_overrides(settings.prices),
                ca_bundle=settings.ca_bundle,
                context=applied.declared.context,
                max_inline_bytes=applied.max_inline_size,
                exec_timeout_s=settings.sandbox.exec_timeout_seconds,
                on_event=on_event,
                on_trouble=on_trouble,
                environment=self._environment,
                secrets=secrets,
                clock=self._clock,
                project=order.project,
                session_holder=session_holder,
                background=run.opinion.background,
                verdict=run.opinion.verdict,
                judge_again=judge_again,
                line_digests=line_digests,
            ),
        )

    def _build_instructions(self, project: str, prompt: str, secrets: Sequence[str]) -> str:
        if self._memory is None:
            return prompt
        known = project_memory_text(self._memory, project, environment_secrets(self._environment, secrets))
        return f"{prompt}\n\n{project_memory_section(known)}" if known else prompt


def link_addresses(settings: Settings) -> tuple[str, ...]:
    """Return the addresses of the configuration, which an answer may link to."""
    known = (settings.gitlab_url, settings.docs_url, settings.source_url, settings.slack_url)
    return tuple(filter(None, known))


class _OrderTroubleLog(list[str]):
    """Collects what could not be saved: it is logged for the operator and goes into the note."""

    def __init__(self, order: WorkOrder) -> None:
        super().__init__()
        self._about = f"order {order.id}, session {order.session_id}"

    def __call__(self, sentence: str) -> None:
        _log.warning("%s: %s", self._about, sentence)
        if sentence not in self:
            self.append(sentence)


def _remember_bounded(known: OrderedDict[str, Remembered], order_id: str, made: Remembered) -> None:
    known[order_id] = made
    while len(known) > CONDUCTED_REMEMBERED:
        known.popitem(last=False)


def _entries_of_finished_run(entries: Sequence[JournalEntry], order: WorkOrder) -> Sequence[JournalEntry]:
    """Return the session up to the end of the order's run, or nothing if that run has not ended.

    Automatic orders of a session are about the same commit, so the answer to an earlier one answers this one too.
    """
    if done := entries_until_end(entries, order.id):
        return done
    return entries_until_end(entries, _find_answered_run(entries)) if order.needs_check else ()


def _find_answered_run(entries: Sequence[JournalEntry]) -> str:
    """Return the id of the first run with an answer that an order started, not a person's reply."""
    run_id, ordered = "", set[str]()
    for entry in entries:
        if isinstance(entry, RunStarted):
            run_id = entry.run_id
        elif isinstance(entry, UserSaid) and entry.source is MessageSource.ORDER:
            ordered.add(run_id)
        elif isinstance(entry, RunEnded) and entry.answered and entry.run_id in ordered:
            return entry.run_id
    return ""


async def _run_fixed_reply(agent: Agent, journal: Journal, order: WorkOrder, text: str, answer: str) -> RunOutcome:
    """Record a fixed answer as a run, so that people can reply to it as to any other; no model is asked."""
    setup = replace(await agent.prepare_setup(), models=[FixedReplyModel(KNOWN_FAILURE, answer)])
    loop = AgentLoop(journal, setup, order.session_id)
    if loop.state.active and loop.state.run.run_id == order.id:
        return await loop.resume()
    return await loop.run(text, run_id=order.id, source=MessageSource.ORDER)


async def _run_or_resume(agent: Agent, order: WorkOrder, text: str) -> RunOutcome:
    state = RunState.from_entries(agent.entries())
    if state.active and state.run.run_id == order.id:
        return await agent.ago_on()
    source = MessageSource.USER if order.cause.continues_session else MessageSource.ORDER
    return await agent.arun(text, run_id=order.id, source=source)

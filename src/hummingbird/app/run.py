"""`hummingbird run`: turns what was typed into orders and runs them one after the other, without a queue.

A dry run posts nothing and needs no write token. With `--execute` an order goes through the same stages as in `serve`.
The agent's side is the same in both.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import click
import msgspec

from hummingbird.app.console import RunProgress, log_to_terminal, print_markdown
from hummingbird.app.environment_secrets import split_environment
from hummingbird.app.gitlab_write import ForgeCache
from hummingbird.app.investigation import AgentInvestigator, watch_every_run
from hummingbird.app.model_choice import model_check
from hummingbird.app.run_request import (
    FinishedRun,
    NothingToRun,
    OptionalForge,
    OrderRequest,
    RunEnvironment,
    RunRequest,
    RunSubject,
    create_order,
    create_reply_order,
    orders_from_webhook,
    parse_event_option,
    project_from_webhook,
    resolve_workflow,
    subject_from_webhook,
)
from hummingbird.app.sandboxes import SandboxChoice, check_sandbox_choice
from hummingbird.app.session_catalog import (
    SavedSession,
    copy_session,
    find_saved_session,
    prepare_folder,
    temporary_sessions,
)
from hummingbird.app.session_holder import session_folder
from hummingbird.app.stores import (
    failure_ledger,
    session_store,
    spending_ledger,
    state_folder,
    state_paths,
    vote_ledger,
)
from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.config.loader import find_config, load_config
from hummingbird.core.errors import EventUnreadable, GitLabWriteError, HummingbirdError, InputUnreadable, UsageError
from hummingbird.core.json_codec import decode_json_object
from hummingbird.core.limits import EVENT_BYTES
from hummingbird.core.orders import EventEnvelope, OrderCause, RunOverrides, WorkOrder
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.core.protocols.storage import SpendingStore
from hummingbird.gitlab.write.protocol import GitLabWriter, MergeRequestThread
from hummingbird.models.registry import ModelRegistry
from hummingbird.service.event_parser import parse_event
from hummingbird.service.event_stage import EventStage
from hummingbird.service.failure_history import KnownFailureTracker
from hummingbird.service.note_text import merge_request_url
from hummingbird.service.protocols import (
    FailedOrder,
    InvestigationRequest,
    InvestigationResult,
    RetryLater,
    Skipped,
)
from hummingbird.service.publisher import ResultPublisher
from hummingbird.service.run_stage import RunStage, describe_background, task_text
from hummingbird.service.verdicts import form_opinion
from hummingbird.service.votes import VoteTracker
from hummingbird.storage.compare_and_swap import BucketCircuitBreaker
from hummingbird.storage.folder_sessions import FolderSessionStore


async def check_model(name: str, parts: RunEnvironment) -> None:
    """Check a model's name that somebody typed, before anything is posted.

    Raises UnknownModel and MissingSetting.
    """
    settings, (given, _) = parts.configuration.settings, split_environment(parts.environment)
    models = ModelRegistry(given, model_regions=settings.model_regions, ca_bundle=settings.ca_bundle or None)
    try:
        models.resolve(name)
    finally:
        await models.close()


class PostingRunner:
    """Runs orders and posts their results: the stages of `serve` without its queue, on the same session store.

    The constructor raises UsageError for folders that cannot be created.
    """

    def __init__(self, parts: RunEnvironment, forges: ForgeCache) -> None:
        settings = parts.configuration.settings
        self._parts, self._forges = parts, forges
        self._places, self._patience = state_paths(settings, parts.environment).create_folders(), BucketCircuitBreaker()
        self.sessions = session_store(self._places, settings, parts.clock.now)
        self._investigator = _RecordingInvestigator(
            self.sessions,
            parts.environment,
            spending=spending_ledger(self._places, settings, parts.clock.now, self._patience),
            chosen=parts.chosen,
            clock=parts.clock,
            watchers=watch_every_run(parts.on_event),
            memory=self._places.state,
        )

    async def orders_from_webhook(self, body: bytes, model: str) -> Sequence[OrderRequest] | NothingToRun:
        """Return the orders that a webhook starts; threads that it resolves or answers are handled at once.

        A replay counts as an event of its own. Raises EventUnreadable, GitLabWriteError, MissingSetting and
        CredentialRefused.
        """

        async def body_of(_: EventEnvelope) -> bytes:
            return body

        parse_event(body)  # raise here: the stage would only ignore a body that it cannot read
        now = self._parts.clock.now
        parts, publisher = self._parts, self._create_publisher
        can_ask = model_check(lambda: parts.configuration, parts.environment)
        arrivals = EventStage(lambda: parts.configuration, self._forges, publisher, body_of, now, can_ask=can_ask)
        orders = await arrivals.process(EventEnvelope(identity=uuid4().hex, at=now(), forced=True))
        if isinstance(orders, Skipped):
            return NothingToRun(orders.reason)
        wanted = RunOverrides(model=model)
        # The operator may choose any model; `models_allowed` only binds people who write notes.
        replayed = [
            msgspec.structs.replace(one, overrides=wanted.merge_over(one.overrides), forced=True) for one in orders
        ]
        return [OrderRequest(one) for one in replayed]

    async def run_order(self, asked: OrderRequest) -> FinishedRun | NothingToRun:
        """Run the order and post its result; return the answer even if it could not be posted.

        Raises the error that kept the run from starting, once it is posted on the merge request too, and
        GitLabWriteError, MissingSetting and CredentialRefused.
        """
        forge = self._forges(self._parts.configuration).writer_for(asked.order.project)
        order = await self._complete_order(asked.order, forge)
        failure: HummingbirdError | None = None
        try:
            done = await self._create_run_stage().process(order, last_try=True)
        except HummingbirdError as error:
            failure = error
        else:
            if isinstance(done, Skipped):
                return NothingToRun(done.reason)
            if done is not None:
                failure = done.error if isinstance(done, FailedOrder) else _retry_later_error(done)
        if self._investigator.result is None:
            assert failure is not None, "an order runs, fails or is skipped"
            raise failure
        url = merge_request_url(self._parts.configuration.settings, order.project, order.mr_iid)
        settings = self._parts.configuration.settings
        return FinishedRun(order, self._investigator.result, settings, posted="" if failure else url, failure=failure)

    async def _complete_order(self, order: WorkOrder, forge: GitLabWriter) -> WorkOrder:
        """Fill in what only GitLab knows: the head, and for a reply the thread of its session."""
        if order.cause is OrderCause.REPLY:
            return order if order.discussion_id else _add_thread(order, await forge.threads(order.mr_iid))
        if order.sha:
            return order
        return msgspec.structs.replace(order, sha=(await forge.merge_request(order.mr_iid)).change.head)

    def _create_run_stage(self) -> RunStage:
        clock = self._parts.clock
        self._investigator.result = None
        there = (self._places, self._parts.configuration.settings, self._patience)
        known, opinions = KnownFailureTracker(failure_ledger(*there), clock), VoteTracker(vote_ledger(*there), clock)
        return RunStage(
            lambda: self._parts.configuration,
            self._forges,
            self._create_publisher,
            self._investigator,
            known,
            clock.now,
            votes=opinions,
            can_ask=model_check(lambda: self._parts.configuration, self._parts.environment),
        )

    def _create_publisher(self, forge: GitLabWriter, configuration: Configuration) -> ResultPublisher:
        return ResultPublisher(forge, configuration, self._parts.clock)


def _retry_later_error(later: RetryLater) -> GitLabWriteError:
    """Return an error for an order that would have to wait: without a queue nobody retries it."""
    return GitLabWriteError(f"It could not be finished: {later.reason}. Try again later.")


def _add_thread(order: WorkOrder, threads: Sequence[MergeRequestThread]) -> WorkOrder:
    for thread in threads:
        if thread.marker is not None and thread.marker.id == order.session_id:
            note_id = thread.notes[0].id
            return msgspec.structs.replace(order, discussion_id=thread.id, note_id=note_id, internal=thread.internal)
    return order


class _RecordingInvestigator(AgentInvestigator):
    """An investigator that remembers the result of the last order."""

    result: InvestigationResult | None = None

    async def investigate(self, request: InvestigationRequest) -> InvestigationResult:
        self.result = await super().investigate(request)
        return self.result


RunReporter: TypeAlias = Callable[[FinishedRun | NothingToRun], None]


async def run_orders(parts: RunEnvironment, request: RunRequest, body: bytes | None, report: RunReporter) -> None:
    """Run what was asked for and report each order when it has ended.

    `body` is the content of the event file, None if there is none. After a cancellation, a session that is saved can be
    resumed. Raises OperatorError, GitLabWriteError and PlatformError.
    """
    forges = ForgeCache(parts.environment)
    try:
        earlier = await find_saved_session(request.resume, _open_session_store(parts)) if request.resume else None
        await _RunCommand(parts, request, body, forges, earlier).execute(report)
    finally:
        await forges.close()


@dataclass(frozen=True, slots=True)
class _RunCommand:
    """One call of `hummingbird run`; `earlier` is the session to resume."""

    parts: RunEnvironment
    request: RunRequest
    body: bytes | None
    forges: ForgeCache
    earlier: SavedSession | None

    async def execute(self, report: RunReporter) -> None:
        if self.request.execute and self.request.model:
            await check_model(self.request.model, self.parts)
        executing = PostingRunner(self.parts, self.forges) if self.request.execute else None
        found = await self._find_orders(executing)
        if isinstance(found, NothingToRun):
            report(found)
            return
        for asked in found:
            folder = await asyncio.to_thread(self._prepare_session_folder, asked, several=len(found) > 1)
            report(await (self._run_posting(executing, asked, folder) if executing else self._run_dry(asked, folder)))

    async def _find_orders(self, executing: PostingRunner | None) -> Sequence[OrderRequest] | NothingToRun:
        request, configuration = self.request, self.parts.configuration
        if self.earlier is not None:
            return (await self._create_reply(self.earlier),)
        if request.workflow:
            resolve_workflow(configuration, request.workflow, request.project)
            made = RunOverrides(model=request.model)
            return (create_order(request.workflow, request.project, await self._read_subject(), overrides=made),)
        assert self.body is not None, "the command line asks for one or the other"
        _check_webhook(self.body)
        if executing is not None:
            return await executing.orders_from_webhook(self.body, request.model)
        can_ask = model_check(lambda: configuration, self.parts.environment)
        return await orders_from_webhook(self.body, configuration, self._open_forge, request.model, can_ask)

    async def _read_subject(self) -> RunSubject:
        """Return the subject from --event or from the event file, which holds the same JSON or a whole webhook.

        Raises UsageError.
        """
        if self.body is None:
            return parse_event_option(self.request.event or "")
        if not is_webhook(self.body):
            return parse_event_option(self.body.decode("utf-8", "replace"))
        project, subject = await subject_from_webhook(self.body, self._open_forge)
        if project.casefold() != self.request.project.casefold():
            raise UsageError(
                f"The event is of {project}, and --project says {self.request.project}: change one of them."
            )
        return subject

    async def _create_reply(self, earlier: SavedSession) -> OrderRequest:
        request, about = self.request, earlier.about
        if not request.project:
            _check_webhook(self.body or b"")
        project = request.project or project_from_webhook(self.body or b"")
        workflow = request.workflow or about.workflow
        if not workflow:
            raise UsageError(f"{_capitalize(earlier.location)} names no workflow: give --workflow and --project.")
        resolve_workflow(self.parts.configuration, workflow, project)
        subject = RunSubject(iid=about.mr_iid)
        if request.event is not None or (self.body is not None and not about.mr_iid):
            subject = (
                await self._read_subject()
                if request.project
                else (await subject_from_webhook(self.body or b"", self._open_forge))[1]
            )
        if request.execute and not about.mr_iid:
            raise UsageError(
                f"{_capitalize(earlier.location)} does not say for which merge request it was begun, "
                "so it is not posted: "
                "leave --execute out."
            )
        return create_reply_order(
            workflow, project, subject, earlier, request.message, overrides=RunOverrides(model=request.model)
        )

    def _open_forge(self, project: str) -> OptionalForge:
        return OptionalForge.open(project, self.forges, self.parts.configuration)

    def _prepare_session_folder(self, asked: OrderRequest, *, several: bool) -> Path | None:
        """Return the folder for the session; each folder holds one.

        Raises UsageError.
        """
        named = self.request.save  # what is resumed is only read
        if not named:
            return None
        own = f"{asked.order.workflow}-{asked.order.mr_iid}" if several else ""
        return prepare_folder(Path(named) / own, self.earlier)

    async def _run_dry(self, asked: OrderRequest, folder: Path | None) -> FinishedRun:
        parts, wanted = self.parts, asked.order
        applied = resolve_workflow(parts.configuration, wanted.workflow, wanted.project)
        forge = self._open_forge(wanted.project)
        spending = self._day_ledger(applied)
        with temporary_sessions(folder, wanted.session_id) as sessions:
            if self.earlier is not None:
                await self._bring_session(self.earlier, sessions)
            investigating = AgentInvestigator(
                sessions,
                parts.environment,
                spending=spending,
                chosen=parts.chosen,
                clock=parts.clock,
                watchers=watch_every_run(parts.on_event),
                memory=state_folder(parts.environment),
            )
            what, bot_ids = (wanted, parts.configuration, applied), await forge.bot_ids()
            facts = await investigating.gather_facts(*what, asked.target_branch, bot_ids=bot_ids)
            settings = parts.configuration.settings
            opinion = await form_opinion(wanted, facts, KnownFailureTracker(None, parts.clock), settings)
            opinion = replace(opinion, background=describe_background(wanted, facts, opinion.failures))
            text, tools = (
                task_text(wanted, asked.target_branch, opinion.verdict),
                await forge.finding_tools(applied, wanted.mr_iid),
            )
            result = await investigating.investigate(
                InvestigationRequest(*what, text, tools=tools, bot_ids=bot_ids, opinion=opinion)
            )
        return FinishedRun(wanted, result, settings, saved=folder)

    def _day_ledger(self, applied: ResolvedWorkflow) -> SpendingStore | None:
        """Return the shared record of spending if there is a daily limit, because that limit counts all runs."""
        if applied.usd_per_day is None:
            return None
        settings = self.parts.configuration.settings
        return spending_ledger(
            state_paths(settings, self.parts.environment).create_folders(), settings, self.parts.clock.now
        )

    async def _bring_session(self, earlier: SavedSession, sessions: SessionStore) -> None:
        """Copy the earlier session to the store of this run, unless it is there; a dry run changes only the copy."""
        if earlier.folder is None:
            if not self.request.execute:
                await copy_session(_open_session_store(self.parts), sessions, earlier.session_id)
            return
        with temporary_sessions(earlier.folder, earlier.session_id) as source:
            if await asyncio.to_thread(_are_different_folders, source, sessions, earlier.session_id):
                await copy_session(source, sessions, earlier.session_id)

    async def _run_posting(
        self, executing: PostingRunner, asked: OrderRequest, folder: Path | None
    ) -> FinishedRun | NothingToRun:
        if self.earlier is not None:
            await self._bring_session(self.earlier, executing.sessions)
        try:
            done = await executing.run_order(asked)
        finally:
            if folder is not None and await executing.sessions.load_entries(asked.order.session_id):
                with temporary_sessions(folder, asked.order.session_id) as sessions:
                    await copy_session(executing.sessions, sessions, asked.order.session_id)
        return done if isinstance(done, NothingToRun) else replace(done, saved=folder)


def _are_different_folders(one: FolderSessionStore, other: SessionStore, session_id: str) -> bool:
    """Return whether the session is in two different folders, not in one folder with two names."""
    if not isinstance(other, FolderSessionStore):
        return True
    here, there = session_folder(one.folder, session_id), session_folder(other.folder, session_id)
    return not (there.exists() and here.samefile(there))


def _open_session_store(parts: RunEnvironment) -> SessionStore:
    settings = parts.configuration.settings
    return session_store(state_paths(settings, parts.environment), settings, parts.clock.now)


def _capitalize(words: str) -> str:
    return words[:1].upper() + words[1:]


def _check_webhook(body: bytes) -> None:
    """Raise EventUnreadable if the body is not a webhook's."""
    if not is_webhook(body):
        raise EventUnreadable(
            "The event file holds no webhook's body, which would say workflow and project: name another file, or give "
            "--workflow and --project too."
        )


def is_webhook(body: bytes) -> bool:
    """Return whether the body has `object_kind`, as every webhook of GitLab does."""
    return "object_kind" in (decode_json_object(body) or {})


_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def run_command(config: str | None, request: RunRequest, chosen: SandboxChoice, *, verbose: bool) -> int:
    """Run `hummingbird run` and return its exit code: answers go to standard output, all else to standard error.

    Raises HummingbirdError if it cannot start.
    """
    configuration = load_config(find_config(config, os.environ, Path.cwd()), os.environ)
    check_sandbox_choice(configuration.settings, chosen)
    body = None if request.event_file is None else _read_event_file(request.event_file)
    parts = RunEnvironment(
        configuration=configuration, environment=os.environ, chosen=chosen, on_event=RunProgress(verbose=verbose)
    )
    codes: list[int] = []
    ended: list[int] = []

    async def run_until_ended() -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None, "a coroutine that asyncio runs is a task"

        def end(number: int) -> None:
            ended.append(number)
            task.cancel()

        for number in _ENDING_SIGNALS:
            loop.add_signal_handler(number, end, number)
        await run_orders(parts, request, body, lambda done: codes.append(_print_run(done)))

    try:
        with log_to_terminal(configuration, verbose=verbose):
            asyncio.run(run_until_ended())
    except KeyboardInterrupt:
        _print_resume_hint(request)
        raise
    except asyncio.CancelledError:
        if not ended:
            raise
        _print_resume_hint(request)
        return 128 + ended[0]
    return max(codes)


def _read_event_file(path: str) -> bytes:
    """Return the content of the file, or of standard input for "-".

    Raises InputUnreadable.
    """
    try:
        content = sys.stdin.buffer.read(EVENT_BYTES + 1) if path == "-" else _read_limited(Path(path))
    except OSError as error:
        raise InputUnreadable(f"The event file {path} cannot be read: {error.strerror}. Name another one.") from error
    if len(content) > EVENT_BYTES:
        raise InputUnreadable(f"{path} is larger than {EVENT_BYTES:,} bytes, and no webhook is: name another file.")
    return content


def _read_limited(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(EVENT_BYTES + 1)


def _print_run(done: FinishedRun | NothingToRun) -> int:
    """Print the outcome of an order and return its exit code."""
    if isinstance(done, NothingToRun):
        _print_error(f"hummingbird: {done.sentence}")
        return 1
    print_markdown(f"{done.text}\n\n{done.bill}" if done.text else done.bill)
    for sentence in done.remarks:
        _print_error(f"hummingbird: {sentence}")
    if done.saved is not None:
        _print_error(f"The session is in {done.saved}; continue with --resume-session and --message.")
    if done.posted:
        _print_error(f"Posted to {done.posted}")
    return done.exit_code


def _print_resume_hint(request: RunRequest) -> None:
    if folder := request.save:
        _print_error(f"The session so far is in {folder}; continue with --resume-session {folder} --message 'Go on.'")
    elif request.execute:
        _print_error(
            "The merge request has a note of ours without a result; a reply to that note continues the session."
        )
    else:
        _print_error("The session was not kept; with --save-session FOLDER the next one is.")


def _print_error(sentence: str) -> None:
    click.echo(sentence, err=True)

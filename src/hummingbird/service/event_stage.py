"""Turn one GitLab event into the work orders that it leads to: the first stage of the service.

`triggers` decides from the event and the configuration alone. This module asks GitLab what such a decision depends on:
which merge request, whose thread, which access. It writes nothing but answers and resolved threads, and looks each of
them up first, because an event may be processed twice.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

import msgspec

from hummingbird.config.configuration import Configuration, ResolvedWorkflow
from hummingbird.core.errors import EventUnreadable, GitLabNotFound, GitLabUnavailable
from hummingbird.core.findings import is_dismissal
from hummingbird.core.limits import NOTE_APPEARS_S
from hummingbird.core.orders import EventEnvelope, OrderCause, RunOverrides, WorkOrder, order_id_for, session_id_for
from hummingbird.gitlab.webhook_events import (
    EmojiChanged,
    GitLabUser,
    IgnoredEvent,
    MergeRequestChanged,
    NoteWritten,
    PipelineChanged,
)
from hummingbird.gitlab.write.protocol import (
    DEVELOPER,
    GitLabWriter,
    GitLabWriters,
    MergeRequestDetails,
    MergeRequestThread,
    NoteKind,
    NoteMarker,
    text_digest,
)
from hummingbird.service import note_text
from hummingbird.service.event_parser import parse_event
from hummingbird.service.note_commands import CanAsk, can_ask_nothing, find_override_fault
from hummingbird.service.pipeline_settle import is_green
from hummingbird.service.protocols import Skipped
from hummingbird.service.publisher import ResultPublisher
from hummingbird.service.thread_history import find_session_overrides, open_threads, stale_threads
from hummingbird.service.triggers import (
    AnswerDecision,
    AutomaticDecision,
    CommandDecision,
    ContinueDecision,
    IgnoreDecision,
    RecountDecision,
    decide_trigger,
    ignore_reason,
)
from hummingbird.service.votes import VoteTracker

_log = logging.getLogger("hummingbird.service")
EXTERNAL_SOURCE = "external"


@dataclass(frozen=True, slots=True)
class TriggerHandler:
    """Handle an event that starts workflows by itself, without a person asking.

    Skips are only logged, never posted: nobody asked for anything. `skip_reasons` collects them.
    """

    event: EventEnvelope
    incoming: PipelineChanged | MergeRequestChanged | NoteWritten
    configuration: Configuration
    forge: GitLabWriter
    publisher: ResultPublisher
    now: float
    skip_reasons: list[str] = field(default_factory=list)

    async def create_orders(self, decision: AutomaticDecision) -> tuple[WorkOrder, ...]:
        """Resolve the threads that the event settles and return an order for each workflow that starts."""
        made: list[WorkOrder] = []
        for request in await self._find_merge_requests():
            if why := await self._stale_reason(request):
                self._log_skip(why)
                continue
            await self._resolve_threads(decision, request)
            made += await self._start_workflows(decision, request)
        return tuple(made)

    async def _find_merge_requests(self) -> Sequence[MergeRequestDetails]:
        """Return the event's own merge request, or the open ones whose head is the pipeline's commit."""
        if isinstance(self.incoming, PipelineChanged) and not self.incoming.merge_request:
            found = await self.forge.merge_requests_at(self.incoming.sha)
            if not found:
                self._log_skip("no open merge request has this commit as its head")
            return found
        try:
            return [await self.forge.merge_request(self._iid)]
        except GitLabNotFound as error:
            self._log_skip(str(error))
            return []

    @property
    def _iid(self) -> int:
        incoming = self.incoming
        return incoming.merge_request if isinstance(incoming, PipelineChanged) else incoming.change.iid

    async def _stale_reason(self, request: MergeRequestDetails) -> str:
        """Return why the merge request is no longer, or not yet, what the event is about; empty if it is."""
        change, incoming = request.change, self.incoming
        if self.event.forced:
            return ""
        if change.state != "opened":
            return f"!{change.iid} is {change.state or 'not open'}"
        if not change.head:
            return f"!{change.iid} has no commit yet"
        if not isinstance(incoming, PipelineChanged) or incoming.sha == change.head:
            return ""
        current = await self._is_merge_of_head(incoming, request)
        return "" if current else f"the head of !{change.iid} has moved on from that pipeline"

    async def _is_merge_of_head(self, event: PipelineChanged, request: MergeRequestDetails) -> bool:
        """Return whether a pipeline on another commit is a merged-results pipeline of the current head.

        Such a pipeline runs on a commit that GitLab made from the head and the target branch. The pipeline id alone
        does not prove it: until a new head has a pipeline, GitLab still reports that of the old head as the newest.
        """
        if request.head_pipeline_id != event.pipeline_id:
            return False
        parents = await self.forge.parents(event.sha)
        return request.change.head in parents or request.in_train or not parents

    async def _resolve_threads(self, decision: AutomaticDecision, request: MergeRequestDetails) -> None:
        """Resolve the threads that the event settles; no limit on new runs keeps them open."""
        if not decision.resolve_stale and not decision.resolve_all:
            return
        iid, head = request.change.iid, request.change.head
        threads = await self.forge.threads(iid)
        over = [thread for name in decision.resolve_stale for thread in stale_threads(threads, name, head)]
        over += await self._threads_to_resolve(decision.resolve_all, request, threads)
        if over:
            await self.publisher.resolve_threads(iid, over)
            self.skip_reasons.append(f"resolved threads of !{iid}: {len(over)}")
            _log.info("Event %s: %s.", self.event.identity, self.skip_reasons[-1])

    async def _threads_to_resolve(
        self, names: Iterable[str], request: MergeRequestDetails, threads: Sequence[MergeRequestThread]
    ) -> list[MergeRequestThread]:
        """Return all open threads of the workflows once every check on the head is green.

        Other pipelines may have run on the same head, so one that succeeded is not enough.
        """
        found = [thread for name in names for thread in open_threads(threads, name)]
        if not found:
            return []
        pipeline = self.incoming.pipeline_id if isinstance(self.incoming, PipelineChanged) else 0
        if is_green(await self.forge.checks(request.change.head, pipeline)):
            return found
        self._log_skip("something on the head is not green yet, so its threads stay open")
        return []

    async def _start_workflows(self, decision: AutomaticDecision, request: MergeRequestDetails) -> list[WorkOrder]:
        allowed = [name for name in decision.start if self._is_workflow_wanted(name, request)]
        if not allowed:
            return []
        if why := await self._access_denied_reason(request):
            self._log_skip(why)
            return []
        return [self._build_order(decision.cause, name, request) for name in allowed]

    def _is_workflow_wanted(self, name: str, request: MergeRequestDetails) -> bool:
        """Apply the workflow's ignore lists to the author and branch of the merge request too."""
        applied = self.configuration.resolve(name, self.incoming.project.path)
        assert applied is not None, "routing names what is for the project"
        why = ignore_reason(applied, username=request.author, branch=request.change.source_branch)
        if why:
            self._log_skip(why)
        return not why

    async def _access_denied_reason(self, request: MergeRequestDetails) -> str:
        """Return why nobody may start a run: both the actor and the author of the code must be Developers."""
        actor = self._actor
        if await self.forge.access_level(actor.id) < DEVELOPER:
            return f"{actor.username or 'whoever caused it'} is not a developer of the project{self._advice}"
        if await self.forge.access_level(request.change.author_id) < DEVELOPER:
            return f"the author of !{request.change.iid} is not a developer of the project"
        return ""

    @property
    def _advice(self) -> str:
        """Advise what to do if the actor is a build service's own user.

        That user creates the pipelines for the statuses that it reports. Without the role Developer no run ever starts
        for them.
        """
        if not isinstance(self.incoming, PipelineChanged) or self.incoming.source != EXTERNAL_SOURCE:
            return ""
        return ", and reports statuses: give that user the role Developer if what it reports is to be looked at"

    @property
    def _actor(self) -> GitLabUser:
        return self.incoming.author if isinstance(self.incoming, NoteWritten) else self.incoming.actor

    def _build_order(self, cause: OrderCause, workflow: str, request: MergeRequestDetails) -> WorkOrder:
        project, change, forced = self.incoming.project.path, request.change, self.event.forced
        about = f"{change.head} {self.event.identity}" if forced else change.head  # a replay gets its own session
        session_id = session_id_for(project, change.iid, workflow, about)
        return WorkOrder(
            id=order_id_for(session_id, self.event.identity),
            session_id=session_id,
            cause=cause,
            workflow=workflow,
            project=project,
            mr_iid=change.iid,
            sha=change.head,
            pipeline_id=self.incoming.pipeline_id if isinstance(self.incoming, PipelineChanged) else 0,
            actor_id=self._actor.id,
            actor=self._actor.username,
            forced=forced,
            made_at=self.now,
        )

    def _log_skip(self, reason: str) -> None:
        self.skip_reasons.append(reason.rstrip("."))
        _log.info("Event %s: no run started: %s.", self.event.identity, self.skip_reasons[-1])


_SESSION_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")  # session ids become names of folders, objects and queue groups


@dataclass(frozen=True, slots=True)
class NoteHandler:
    """Handle a note in which a person asks for something: a command, or a reply in one of our threads.

    Whoever addressed us gets an answer. `skip_reasons` collects why nothing runs.
    """

    event: EventEnvelope
    note: NoteWritten
    configuration: Configuration
    forge: GitLabWriter
    publisher: ResultPublisher
    now: float
    can_ask: CanAsk
    skip_reasons: list[str] = field(default_factory=list)

    async def create_orders(
        self, decision: CommandDecision | AnswerDecision | ContinueDecision
    ) -> tuple[WorkOrder, ...]:
        """Return the order that the note asks for, or post an answer and return nothing."""
        thread = await self.forge.thread(self.note.change.iid, self.note.discussion_id)
        if isinstance(decision, ContinueDecision) and not _is_our_thread(thread):
            self._log_skip(
                "GitLab has no such thread"
                if thread is None
                else "no note of ours in the thread names a session (see former_bot_ids and session_marker_prefix)"
            )
            return ()
        if thread is None or not self._is_note_genuine(thread):
            return self._handle_missing_note()
        if isinstance(decision, ContinueDecision):
            return await self._create_reply_order(decision, thread)
        if not await self._check_access():
            return ()
        return await (
            self._post_answer(decision.text)
            if isinstance(decision, AnswerDecision)
            else self._create_command_order(decision)
        )

    async def _create_command_order(self, decision: CommandDecision) -> tuple[WorkOrder, ...]:
        project, iid = self.note.project.path, self.note.change.iid
        applied = self.configuration.resolve(decision.workflow, project)
        assert applied is not None, "routing names what is for the project"
        if fault := self._find_fault(decision.overrides, applied):
            return await self._post_answer(fault)
        head = (await self.forge.merge_request(iid)).change.head
        session_id = session_id_for(project, iid, decision.workflow, f"note {self.note.note_id}")
        order = self._build_order(OrderCause.COMMAND, decision.workflow, session_id, head, decision.message)
        return (msgspec.structs.replace(order, overrides=decision.overrides),)

    def _is_note_genuine(self, thread: MergeRequestThread) -> bool:
        """Return whether GitLab has this note with the same author and text.

        Whoever knows a webhook's secret, which projects may share, or may write to the event queue can send any text in
        anybody's name. GitLab knows who wrote what.
        """
        said = text_digest(self.note.text)
        found = next((note for note in thread.notes if note.id == self.note.note_id), None)
        return found is not None and found.author_id == self.note.author.id and found.text_digest == said

    def _handle_missing_note(self) -> tuple[WorkOrder, ...]:
        """Raise GitLabUnavailable while the note may only be slow to appear; ignore the event afterwards."""
        if 0 <= self.now - self.event.at < NOTE_APPEARS_S and not self.event.forced:
            raise GitLabUnavailable(
                f"Note {self.note.note_id} is not visible in GitLab yet. It will be looked up again later."
            )
        self._log_skip("GitLab knows of no such note by this author: it is gone, or was edited, or the event is forged")
        return ()

    async def _create_reply_order(
        self, decision: ContinueDecision, thread: MergeRequestThread
    ) -> tuple[WorkOrder, ...]:
        marker = thread.marker
        assert marker is not None, "or the thread is not ours"
        if not await self._check_access():
            return ()
        if marker.part is NoteKind.FINDING and is_dismissal(decision.message):
            self._log_skip("the finding is dismissed")
            await self.publisher.acknowledge_dismissal(self.note)
            return ()
        applied = self._find_workflow(marker)
        if applied is None:
            return await self._post_answer(note_text.workflow_gone_text(marker.wf, self.configuration.settings))
        if fault := decision.fault or self._find_fault(decision.overrides, applied):
            return await self._post_answer(fault)
        order = self._build_order(OrderCause.REPLY, applied.workflow, marker.id, marker.sha, decision.message)
        return (
            msgspec.structs.replace(
                order, overrides=decision.overrides.merge_over(self._earlier_overrides(thread, applied))
            ),
        )

    def _find_workflow(self, marker: NoteMarker) -> ResolvedWorkflow | None:
        """Return the thread's workflow; old markers do not name one, and then it is the project's first."""
        found = self.configuration.resolve_project(self.note.project.path)
        return next((one for one in found if one.workflow == marker.wf or not marker.wf), None)

    def _build_order(self, cause: OrderCause, workflow: str, session_id: str, sha: str, message: str) -> WorkOrder:
        return WorkOrder(
            id=order_id_for(session_id, f"note {self.note.note_id}"),
            session_id=session_id,
            cause=cause,
            workflow=workflow,
            project=self.note.project.path,
            mr_iid=self.note.change.iid,
            sha=sha,
            actor_id=self.note.author.id,
            actor=self.note.author.username,
            discussion_id=self.note.discussion_id,
            note_id=self.note.note_id,
            internal=self.note.internal,
            message=message,
            made_at=self.now,
        )

    async def _check_access(self) -> bool:
        """Return whether the author is a Developer; tell anybody else so in the thread."""
        if await self.forge.access_level(self.note.author.id) >= DEVELOPER:
            return True
        self._log_skip(f"{self.note.author.username or 'its author'} is not a developer of the project")
        await self.publisher.post_refusal(self.note)
        return False

    async def _post_answer(self, text: str) -> tuple[WorkOrder, ...]:
        await self.publisher.post_answer(self.note, text)
        return ()

    def _log_skip(self, reason: str) -> None:
        self.skip_reasons.append(reason)
        _log.info("Event %s: no run started: %s.", self.event.identity, reason)

    def _find_fault(self, overrides: RunOverrides, applied: ResolvedWorkflow) -> str:
        return find_override_fault(overrides, applied, self.configuration.settings.models_allowed, self.can_ask)

    def _earlier_overrides(self, thread: MergeRequestThread, applied: ResolvedWorkflow) -> RunOverrides:
        """Return what was chosen earlier in the session, as far as it is still allowed."""
        earlier = find_session_overrides(thread)
        model, limit = RunOverrides(model=earlier.model), RunOverrides(max_iterations=earlier.max_iterations)
        allowed = [one for one in (model, limit) if not self._find_fault(one, applied)]
        return reduce(RunOverrides.merge_over, allowed, RunOverrides())


def _is_our_thread(thread: MergeRequestThread | None) -> bool:
    """Return whether the thread has a marker with a valid session id.

    Maintainers of a project can edit our notes, so a marker may contain anything.
    """
    marker = None if thread is None else thread.marker
    return marker is not None and bool(_SESSION_ID.fullmatch(marker.id))


LoadBody: TypeAlias = Callable[[EventEnvelope], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class EventStage:
    """Process events, each by the configuration that is current when it arrives.

    `configuration` returns the current one, and an event is judged by that one alone. `publisher` posts as that
    configuration says. `can_ask` tells whether there are credentials for a model that a person chooses.
    """

    configuration: Callable[[], Configuration]
    forges: Callable[[Configuration], GitLabWriters]
    publisher: Callable[[GitLabWriter, Configuration], ResultPublisher]
    load_body: LoadBody
    now: Callable[[], float]
    votes: VoteTracker | None = None
    can_ask: CanAsk = can_ask_nothing

    async def process(self, event: EventEnvelope) -> tuple[WorkOrder, ...] | Skipped:
        """Return the orders that the event leads to, or why there are none.

        Raises GitLabWriteError, MissingSetting, CredentialRefused and ObjectStoreUnusable.
        """
        configuration = self.configuration()
        try:
            incoming = parse_event(await self.load_body(event))
        except EventUnreadable as error:
            return _ignore_event(event, str(error))
        if isinstance(incoming, IgnoredEvent):
            return _ignore_event(event, incoming.reason)
        early = decide_trigger(incoming, configuration, frozenset(), forced=event.forced)
        if isinstance(early, IgnoreDecision):  # most events end here, without a request to GitLab
            return _ignore_event(event, early.reason)
        forge = self.forges(configuration).writer_for(incoming.project.path)
        bot_ids = await forge.bot_ids()
        decision = decide_trigger(incoming, configuration, bot_ids, forced=event.forced, can_ask=self.can_ask)
        if isinstance(decision, IgnoreDecision):
            return _ignore_event(event, decision.reason)
        _log.info("Event %s of %s: %s.", event.identity, incoming.project.path, decision.reason)
        if isinstance(incoming, EmojiChanged):
            return await self._recount_votes(event, forge, incoming)
        assert not isinstance(decision, RecountDecision), "only an emoji leads to it"
        publication = self.publisher(forge, configuration)
        if isinstance(decision, AutomaticDecision):
            trigger = TriggerHandler(event, incoming, configuration, forge, publication, self.now())
            orders, reasons = await trigger.create_orders(decision), trigger.skip_reasons
        else:
            assert isinstance(incoming, NoteWritten), "only a note leads to the others"
            note = NoteHandler(event, incoming, configuration, forge, publication, self.now(), self.can_ask)
            orders, reasons = await note.create_orders(decision), note.skip_reasons
        return orders or Skipped(reasons[-1] if reasons else decision.reason)

    async def _recount_votes(self, event: EventEnvelope, forge: GitLabWriter, emoji: EmojiChanged) -> Skipped:
        if self.votes is None:
            return _ignore_event(event, "votes are not kept here")
        return _ignore_event(event, await self.votes.recount(forge, emoji.project.path, emoji.note_id))


def _ignore_event(event: EventEnvelope, reason: str) -> Skipped:
    skipped = Skipped(reason.rstrip("."))
    _log.info("Event %s: ignored: %s.", event.identity, skipped.reason)
    return skipped

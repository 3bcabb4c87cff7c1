"""What begins by itself (R1, R2): which merge request an event is about, which of our threads it settles (N4), and who
is behind it (R5). Skips in silence: nobody asked for anything."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hummingbird.config.configuration import Configuration
from hummingbird.domain.errors import ForgeMissing
from hummingbird.domain.incoming import MergeRequestChanged, NoteWritten, Person, PipelineChanged
from hummingbird.domain.orders import Arrived, Cause, WorkOrder, order_of, session_of
from hummingbird.ports.forge import DEVELOPER, Forge, MergeRequest, Thread
from hummingbird.service.decisions import Automatic
from hummingbird.service.gates import open_threads, stale
from hummingbird.service.publication import Publication
from hummingbird.service.routing import left_alone
from hummingbird.service.settling import green

_log = logging.getLogger("hummingbird.service")
NOT_BEGUN = "nothing is begun, for"
EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class Started:
    event: Arrived
    incoming: PipelineChanged | MergeRequestChanged | NoteWritten
    configuration: Configuration
    forge: Forge
    publication: Publication
    now: float

    async def orders(self, decision: Automatic) -> tuple[WorkOrder, ...]:
        made: list[WorkOrder] = []
        for request in await self._requests():
            if why := await self._outdated(request):
                self._skip(why)
                continue
            await self._resolve(decision, request)
            made += await self._begun(decision, request)
        return tuple(made)

    async def _requests(self) -> Sequence[MergeRequest]:
        """Those that the event is about: its own, or the open ones whose head is that commit (R1)."""
        if isinstance(self.incoming, PipelineChanged) and not self.incoming.merge_request:
            found = await self.forge.requests_at(self.incoming.sha)
            if not found:
                self._skip("no open merge request has this commit as its head")
            return found
        try:
            return [await self.forge.merge_request(self._iid)]
        except ForgeMissing as error:
            self._skip(str(error))
            return []

    @property
    def _iid(self) -> int:
        incoming = self.incoming
        return incoming.merge_request if isinstance(incoming, PipelineChanged) else incoming.change.iid

    async def _outdated(self, request: MergeRequest) -> str:
        """Why nothing is done about a merge request that is no longer, or not yet, what the event is about."""
        change, incoming = request.change, self.incoming
        if self.event.forced:
            return ""
        if change.state != "opened":
            return f"!{change.iid} is {change.state or 'not open'}"
        if not change.head:
            return f"!{change.iid} has no commit yet"
        if not isinstance(incoming, PipelineChanged) or incoming.sha == change.head:
            return ""
        current = await self._merges_head(incoming, request)
        return "" if current else f"the head of !{change.iid} has moved on from that pipeline"

    async def _merges_head(self, event: PipelineChanged, request: MergeRequest) -> bool:
        """Whether a pipeline on another commit is one of merged results, which ran on what GitLab made of the head and
        the target branch (R1). Until a new head has a pipeline, that of the old one is still called the newest."""
        if request.head_pipeline_id != event.pipeline_id:
            return False
        parents = await self.forge.parents(event.sha)
        return request.change.head in parents or request.in_train or not parents

    async def _resolve(self, decision: Automatic, request: MergeRequest) -> None:
        """N4: before any limit is looked at."""
        if not decision.resolve_stale and not decision.resolve_all:
            return
        iid, head = request.change.iid, request.change.head
        threads = await self.forge.threads(iid)
        over = [thread for name in decision.resolve_stale for thread in stale(threads, name, head)]
        over += await self._settled(decision.resolve_all, request, threads)
        if over:
            await self.publication.resolve(iid, over)
            _log.info("Event %s: threads of !%d that are resolved: %d.", self.event.identity, iid, len(over))

    async def _settled(self, names: Iterable[str], request: MergeRequest, threads: Sequence[Thread]) -> list[Thread]:
        """All of a workflow, once nothing on the head is red: other pipelines may have run on it too."""
        found = [thread for name in names for thread in open_threads(threads, name)]
        if not found:
            return []
        pipeline = self.incoming.pipeline_id if isinstance(self.incoming, PipelineChanged) else 0
        if green(await self.forge.checks(request.change.head, pipeline)):
            return found
        self._skip("something on the head is not green yet, so its threads stay open")
        return []

    async def _begun(self, decision: Automatic, request: MergeRequest) -> list[WorkOrder]:
        allowed = [name for name in decision.start if self._wanted(name, request)]
        if not allowed:
            return []
        if why := await self._nobody(request):
            self._skip(why)
            return []
        return [self._order(decision.cause, name, request) for name in allowed]

    def _wanted(self, name: str, request: MergeRequest) -> bool:
        """R4, for the author of the merge request too."""
        applied = self.configuration.applied(name, self.incoming.project.path)
        assert applied is not None, "routing names what is for the project"
        why = left_alone(applied, username=request.author, branch=request.change.source_branch)
        if why:
            self._skip(why)
        return not why

    async def _nobody(self, request: MergeRequest) -> str:
        """R5, I7: who made it happen and who wrote the code both have to be developers."""
        actor = self._actor
        if await self.forge.access(actor.id) < DEVELOPER:
            return f"{actor.username or 'whoever caused it'} is not a developer of the project{self._advice}"
        if await self.forge.access(request.change.author_id) < DEVELOPER:
            return f"the author of !{request.change.iid} is not a developer of the project"
        return ""

    @property
    def _advice(self) -> str:
        """A build service's own user makes the pipelines of the statuses that it reports; then nothing ever begins."""
        if not isinstance(self.incoming, PipelineChanged) or self.incoming.source != EXTERNAL:
            return ""
        return ", and reports statuses: give that user the role Developer if what it reports is to be looked at"

    @property
    def _actor(self) -> Person:
        return self.incoming.author if isinstance(self.incoming, NoteWritten) else self.incoming.actor

    def _order(self, cause: Cause, workflow: str, request: MergeRequest) -> WorkOrder:
        project, change, forced = self.incoming.project.path, request.change, self.event.forced
        about = f"{change.head} {self.event.identity}" if forced else change.head  # a replay is a session of its own
        session_id = session_of(project, change.iid, workflow, about)
        return WorkOrder(
            id=order_of(session_id, self.event.identity),
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

    def _skip(self, reason: str) -> None:
        _log.info("Event %s: %s %s.", self.event.identity, NOT_BEGUN, reason.rstrip("."))

"""The dashboard over what this process keeps (O4): the index of sessions, their journals, the ledger of failures, the
queue. Fulfils web.asked.Desk."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import date
from uuid import uuid4

from hummingbird.adapters.sandboxes.registry import Sandboxes
from hummingbird.assembly.asking import applied_for
from hummingbird.assembly.places import Places
from hummingbird.assembly.sandbox_files import SandboxFiles
from hummingbird.assembly.secrets import all_secrets
from hummingbird.assembly.session_desk import SessionDesk, desk_of
from hummingbird.assembly.shared_stores import known_failures_of, reactions_of
from hummingbird.config.configuration import Configuration
from hummingbird.domain.errors import HummingbirdError, UsageFault
from hummingbird.domain.journal import Entry
from hummingbird.domain.orders import Cause, WorkOrder, order_of, written
from hummingbird.domain.sessions import METADATA, Summary, about, load_summary
from hummingbird.domain.vote_limits import VOTES_KEPT
from hummingbird.domain.web_limits import FAILURE_PROJECTS
from hummingbird.ports.clock import Clock
from hummingbird.ports.known_failures import FailureDay, KnownFailure, KnownFailures
from hummingbird.ports.queue import Queue
from hummingbird.ports.reactions import Rated, Reactions
from hummingbird.ports.session_index import Day, Hit
from hummingbird.web.access import VARIABLE, Access
from hummingbird.web.application import Dashboard
from hummingbird.web.asked import SandboxList
from hummingbird.web.live import Live
from hummingbird.web.pages import Pages

_log = logging.getLogger("hummingbird")
REFRESH_S = 3.0  # between two looks at which sessions have changed
Exposition = Callable[[str], tuple[bytes, str]]


class DashboardDesk:
    def __init__(
        self,
        configuration: Callable[[], Configuration],
        past: SessionDesk,
        ledger: KnownFailures,
        queue: Queue,
        files: SandboxFiles,
        *,
        votes: Reactions,
    ) -> None:
        self._configuration, self._past, self._ledger, self._queue = configuration, past, ledger, queue
        self._files, self._votes = files, votes
        self._refreshing = asyncio.Lock()
        self._fresh_until = 0.0

    @property
    def gitlab(self) -> str:
        return self._configuration().settings.gitlab_url.rstrip("/")

    async def listed(self, limit: int, project: str = "", text: str = "") -> Sequence[Summary]:
        await self._refreshed()
        return await self._past.listed(limit, project, text)

    async def known(self, session_id: str) -> Summary | None:
        for one in await self._past.listed(1, text=session_id):
            if one.session_id == session_id:
                return one
        kept = await self._past.sessions.file(session_id, METADATA)
        return None if kept is None else load_summary(kept)

    async def entries(self, session_id: str) -> Sequence[Entry]:
        return await self._past.entries(session_id)

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        await self._refreshed()
        return await self._past.search(query, limit)

    async def costs(self, since: date) -> Sequence[Day]:
        await self._refreshed()
        return await self._past.days(since)

    async def rated(self, since: float) -> Sequence[Rated]:
        return await self._votes.recent(since, VOTES_KEPT)

    async def projects(self) -> Sequence[str]:
        return await self._ledger.projects(FAILURE_PROJECTS)

    async def failures(self, project: str, limit: int) -> Sequence[KnownFailure]:
        return await self._ledger.recent(project, limit)

    async def trend(self, project: str, since: date) -> Sequence[FailureDay]:
        return await self._ledger.trend(project, since)

    async def trends(
        self, project: str, since: date, fingerprints: Sequence[str]
    ) -> Mapping[str, Sequence[FailureDay]]:
        return await self._ledger.trends(project, since, fingerprints)

    async def files(self, session_id: str) -> SandboxList:
        return await self._files.listed(session_id)

    async def file(self, session_id: str, path: str) -> AsyncGenerator[bytes, None]:
        return await self._files.file(session_id, path)

    async def go_on(self, session_id: str, message: str, once: str) -> None:
        """As an order like any other: in its turn, within the slots, once, whatever dies."""
        begun = about(await self._past.entries(session_id))
        if not begun.project or not begun.workflow:
            raise UsageFault(f"Go on with it in a terminal: hummingbird chat --resume {session_id}")
        applied_for(self._configuration(), begun.workflow, begun.project)
        order = WorkOrder(
            id=order_of(session_id, f"page {once or uuid4().hex}"),
            session_id=session_id,
            cause=Cause.PAGE,
            workflow=begun.workflow,
            project=begun.project,
            mr_iid=begun.mr_iid,
            sha=begun.sha,
            message=message,
            forced=True,
        )
        await self._queue.send(written(order), group=session_id, dedup_id=order.id)

    async def _refreshed(self) -> None:
        """Many who look cost no more than one does. Nobody waits for long: of a store that nobody has indexed yet, what
        is known so far is shown, and the rest goes on behind."""
        async with self._refreshing:
            if time.monotonic() >= self._fresh_until:
                await self._past.caught_up()
                self._fresh_until = time.monotonic() + REFRESH_S


def dashboard_of(
    configuration: Callable[[], Configuration],
    environment: Mapping[str, str],
    queue: Queue,
    places: Places,
    clock: Clock,
    *,
    local: bool,
    sandboxes: Sandboxes,
    exposition: Exposition | None = None,
) -> tuple[Dashboard, Live, SessionDesk] | None:
    """None where it cannot be: that is told, and costs no run anything. `sandboxes` are the caller's to close. Raises
    MissingSetting for a token that is too short."""
    access = Access(environment.get(VARIABLE, "").strip(), local=local, now=clock.now)
    try:
        past = desk_of(configuration(), environment, clock)
    except HummingbirdError as error:
        _log.error("There is no dashboard. %s", error)
        return None
    ledger = known_failures_of(places, configuration().settings)
    files, votes = SandboxFiles(past.sessions, sandboxes), reactions_of(places, configuration().settings)
    desk = DashboardDesk(configuration, past, ledger, queue, files, votes=votes)
    pages = Pages(desk.gitlab, all_secrets(configuration(), environment).mask)
    live = Live(desk.entries, pages.fragment, pages.mask)
    return Dashboard(desk, access, live, pages, exposition), live, past

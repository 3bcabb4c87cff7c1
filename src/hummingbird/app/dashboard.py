"""Answers the dashboard's queries from what this process stores: sessions, journals, known failures, the queue."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal
from tempfile import SpooledTemporaryFile
from typing import Protocol
from uuid import uuid4

from hummingbird.agent.session_sandbox import restore_archive
from hummingbird.app.environment_secrets import all_secrets
from hummingbird.app.investigation import link_addresses, result_from_journal
from hummingbird.app.run_request import resolve_workflow
from hummingbird.app.session_catalog import SessionCatalog, open_session_catalog
from hummingbird.app.stores import StatePaths, failure_ledger, spending_ledger, vote_ledger
from hummingbird.config.configuration import Configuration
from hummingbird.core.errors import CommandFailed, HummingbirdError, QueueUnusable, UsageError
from hummingbird.core.journal import JournalEntry, RunEnded, RunStarted, VerdictRecorded
from hummingbird.core.limits import REMOVAL_S
from hummingbird.core.orders import OrderCause, WorkOrder, encode_envelope, order_id_for
from hummingbird.core.protocols.observer import Clock
from hummingbird.core.protocols.queues import Queue
from hummingbird.core.protocols.run_figures import (
    FailureRun,
    RunChoices,
    RunFigures,
    RunQuery,
    SeenPipeline,
    SpendingTables,
)
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT, Sandbox
from hummingbird.core.protocols.sessions import SearchHit, SessionStore
from hummingbird.core.protocols.storage import (
    FailureDay,
    KnownFailure,
    KnownFailureStore,
    RatedNote,
    SpendingStore,
    VoteStore,
)
from hummingbird.core.sessions import METADATA, SessionSummary, find_subject, load_summary
from hummingbird.core.verdicts import ObservedFailure
from hummingbird.core.votes import VOTES_KEPT
from hummingbird.dashboard.access import TOKEN_VARIABLE, DashboardAccess
from hummingbird.dashboard.application import Dashboard
from hummingbird.dashboard.live_updates import LiveUpdates
from hummingbird.dashboard.queries import (
    BUDGETS_SHOWN,
    FAILURE_PROJECTS,
    FILE_BYTES,
    FILES_S,
    FILES_SHOWN,
    LOOKS_AT_ONCE,
    BudgetUse,
    QueueState,
    SandboxFile,
    SandboxList,
)
from hummingbird.dashboard.rendering import format_size as shown_size
from hummingbird.dashboard.views import PageRenderer
from hummingbird.evidence.citations.checker import CheckedAnswer, CitationMode
from hummingbird.sandboxes.registry import SandboxRegistry
from hummingbird.service.failure_summary import write_unfolded

# The archive of a session's sandbox comes from untrusted commands: it is unpacked in another sandbox, never on this
# machine.


_IN_MEMORY_BYTES = 1024 * 1024
_CHUNK_BYTES = 256 * 1024


class SandboxMaker(Protocol):
    """Creates sandboxes of one kind that are not started yet. The caller closes them."""

    async def open(self) -> None: ...

    def make(self) -> Sandbox: ...


class SavedSandboxFiles:
    def __init__(self, sessions: SessionStore, sandboxes: SandboxMaker) -> None:
        self._sessions, self._sandboxes = sessions, sandboxes
        self._looks = asyncio.Semaphore(LOOKS_AT_ONCE)

    async def list_files(self, session_id: str) -> SandboxList:
        """Return the saved files of a session's sandbox, none if nothing was saved.

        Raises HummingbirdError.
        """
        async with self._open_sandbox(session_id) as sandbox:
            if sandbox is None:
                return SandboxList(())
            content = bytearray()
            find = f"find . -type f -printf '%s %P\\0' | head -z -n {FILES_SHOWN + 1}"
            async with aclosing(sandbox.stream_exec(find, timeout_s=FILES_S)) as chunks:
                async for chunk in chunks:
                    content += chunk
        found = [line.partition(b" ") for line in bytes(content).split(b"\0") if line]
        files = [SandboxFile(path.decode("utf-8", "replace"), int(size)) for size, _, path in found if size.isdigit()]
        listed = sorted(files[:FILES_SHOWN], key=lambda one: one.path)
        return SandboxList(tuple(listed), more=len(files) > FILES_SHOWN)

    async def open_file(self, session_id: str, path: str) -> AsyncGenerator[bytes, None]:
        """Yield the content of a file. It is copied out of the sandbox first, so that a slow reader keeps no sandbox
        busy.

        Raises UsageError if there is no such file or if it is too large to be downloaded.
        """
        kept = await asyncio.to_thread(SpooledTemporaryFile, _IN_MEMORY_BYTES)
        try:
            async with self._open_sandbox(session_id) as sandbox:
                if sandbox is None or not path or "\0" in path:
                    raise UsageError("There is no such file; load the list of files again.")
                try:
                    async with (
                        asyncio.timeout(FILES_S),
                        aclosing(sandbox.read_file_iter(f"{SANDBOX_ROOT}/{path}")) as chunks,
                    ):
                        await _copy_limited(chunks, kept)
                except CommandFailed as error:
                    raise UsageError(f"The file cannot be read: {error}") from error
        except BaseException:
            kept.close()
            raise
        return _read_and_close(kept)

    @asynccontextmanager
    async def _open_sandbox(self, session_id: str) -> AsyncIterator[Sandbox | None]:
        async with self._looks:
            archive = await self._sessions.load_archive(session_id)
            if archive is None:
                yield None
                return
            await self._sandboxes.open()
            sandbox = self._sandboxes.make()
            try:
                async with asyncio.timeout(FILES_S):
                    await sandbox.start()
                    await restore_archive(sandbox, archive)
                yield sandbox
            except TimeoutError as error:
                raise UsageError("Looking into the sandbox took too long; try again later.") from error
            finally:
                with suppress(HummingbirdError, TimeoutError):
                    async with asyncio.timeout(REMOVAL_S):
                        await sandbox.cleanup()


async def _copy_limited(chunks: AsyncGenerator[bytes, None], kept: "SpooledTemporaryFile[bytes]") -> None:
    left = FILE_BYTES
    async for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise UsageError(
                f"The file is larger than {shown_size(FILE_BYTES)}: pack or split it in the sandbox first."
            )
        await asyncio.to_thread(kept.write, chunk)


async def _read_and_close(kept: "SpooledTemporaryFile[bytes]") -> AsyncGenerator[bytes, None]:
    with closing(kept):
        await asyncio.to_thread(kept.seek, 0)
        while chunk := await asyncio.to_thread(kept.read, _CHUNK_BYTES):
            yield chunk


_log = logging.getLogger("hummingbird")
QUEUE_COUNT_S = 3.0
REFRESH_S = 3.0  # between two looks at which sessions have changed
MetricsExposition = Callable[[str], tuple[bytes, str]]


class StoredDashboardQueries:
    def __init__(
        self,
        configuration: Callable[[], Configuration],
        past: SessionCatalog,
        ledger: KnownFailureStore,
        queue: Queue,
        files: SavedSandboxFiles,
        *,
        votes: VoteStore,
        spending: SpendingStore,
    ) -> None:
        self._configuration, self._catalog, self._ledger, self._queue = configuration, past, ledger, queue
        self._files, self._votes, self._spending = files, votes, spending
        self._refresh_lock = asyncio.Lock()
        self._fresh_until = 0.0

    @property
    def gitlab(self) -> str:
        return self._configuration().settings.gitlab_url.rstrip("/")

    async def find_runs(self, query: RunQuery, limit: int) -> Sequence[SessionSummary]:
        await self._refresh_index()
        return await self._catalog.figures.find_runs(query, limit)

    async def run_choices(self) -> RunChoices:
        await self._refresh_index()
        return await self._catalog.figures.run_choices()

    async def run_figures(self, since: float, project: str = "") -> RunFigures:
        await self._refresh_index()
        return await self._catalog.figures.run_figures(since, project)

    async def spending_tables(self, since: float) -> SpendingTables:
        await self._refresh_index()
        return await self._catalog.figures.spending_tables(since)

    async def list_pipelines(
        self, project: str, limit: int, *, of_branches: bool, before: int = 0
    ) -> Sequence[SeenPipeline]:
        await self._refresh_index()
        return await self._catalog.figures.list_pipelines(project, limit, of_branches=of_branches, before=before)

    async def failure_runs(self, project: str, fingerprints: Sequence[str], limit: int) -> Sequence[FailureRun]:
        await self._refresh_index()
        return await self._catalog.figures.failure_runs(project, fingerprints, limit)

    async def queue_state(self) -> QueueState:
        try:
            async with asyncio.timeout(QUEUE_COUNT_S):
                return QueueState(await self._queue.count_messages())
        except (QueueUnusable, TimeoutError) as error:
            _log.warning("The messages of the queue could not be counted: %s", str(error) or "no answer in time")
            return QueueState()

    async def budget_uses(self, projects: Sequence[str]) -> Sequence[BudgetUse]:
        configuration, shown = self._configuration(), projects[:BUDGETS_SHOWN]
        spent = dict(zip(shown, await asyncio.gather(*map(self._spent_today, shown)), strict=True))
        return [
            BudgetUse(project, one.workflow, _dollars(one.usd_per_run), _dollars(one.usd_per_day), spent[project])
            for project in shown
            for one in configuration.resolve_project(project)
        ]

    async def _spent_today(self, project: str) -> float | None:
        try:
            return float(await self._spending.usd_today(project))
        except HummingbirdError as error:
            _log.warning("What %s has spent today could not be read: %s", project, error)
            return None

    async def find_summary(self, session_id: str) -> SessionSummary | None:
        for one in await self._catalog.list_sessions(1, text=session_id):
            if one.session_id == session_id:
                return one
        kept = await self._catalog.sessions.read_file(session_id, METADATA)
        return None if kept is None else load_summary(kept)

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        return await self._catalog.load_entries(session_id)

    async def search(self, query: str, limit: int) -> Sequence[SearchHit]:
        await self._refresh_index()
        return await self._catalog.search(query, limit)

    async def load_ratings(self, since: float) -> Sequence[RatedNote]:
        return await self._votes.list_recent(since, VOTES_KEPT)

    async def list_projects(self) -> Sequence[str]:
        return await self._ledger.list_projects(FAILURE_PROJECTS)

    async def list_failures(self, project: str, limit: int) -> Sequence[KnownFailure]:
        return await self._ledger.list_recent(project, limit)

    async def find_failure(self, project: str, fingerprint: str) -> KnownFailure | None:
        return await self._ledger.find_failure(project, fingerprint)

    async def failure_trend(self, project: str, since: date) -> Sequence[FailureDay]:
        return await self._ledger.trend(project, since)

    async def failure_trends(
        self, project: str, since: date, fingerprints: Sequence[str]
    ) -> Mapping[str, Sequence[FailureDay]]:
        return await self._ledger.trends(project, since, fingerprints)

    async def list_files(self, session_id: str) -> SandboxList:
        return await self._files.list_files(session_id)

    async def open_file(self, session_id: str, path: str) -> AsyncGenerator[bytes, None]:
        return await self._files.open_file(session_id, path)

    async def continue_session(self, session_id: str, message: str, once: str) -> None:
        """Queue the message as an order like any other, so that it waits its turn and survives a crash."""
        begun = find_subject(await self._catalog.load_entries(session_id))
        if not begun.project or not begun.workflow:
            raise UsageError(f"Continue it in a terminal: hummingbird chat --resume {session_id}")
        resolve_workflow(self._configuration(), begun.workflow, begun.project)
        order = WorkOrder(
            id=order_id_for(session_id, f"page {once or uuid4().hex}"),
            session_id=session_id,
            cause=OrderCause.PAGE,
            workflow=begun.workflow,
            project=begun.project,
            mr_iid=begun.mr_iid,
            sha=begun.sha,
            message=message,
            forced=True,
        )
        await self._queue.send(encode_envelope(order), group=session_id, dedup_id=order.id)

    async def _refresh_index(self) -> None:
        """Refresh the session index once for all who wait for it.

        Nobody waits long: if the store was never indexed, the pages show what is known so far and indexing continues.
        """
        async with self._refresh_lock:
            if time.monotonic() >= self._fresh_until:
                await self._catalog.catch_up()
                self._fresh_until = time.monotonic() + REFRESH_S


def _dollars(limit: Decimal | None) -> float | None:
    return None if limit is None else float(limit)


def read_posted_answer(configuration: Configuration, entries: Sequence[JournalEntry]) -> CheckedAnswer:
    """Return the newest answer of a session as it is posted, with the counts from its note, or an empty one.

    As in the note, the rules' verdict comes first: what failed, whose failure it is, what to do next. It stays there
    when somebody asked further.
    """
    ends = [number for number, one in enumerate(entries, 1) if isinstance(one, RunEnded) and one.answered]
    if not ends:
        return CheckedAnswer("")
    begun = find_subject(entries)
    try:
        mode = CitationMode(resolve_workflow(configuration, begun.workflow, begun.project).declared.citations)
    except HummingbirdError:  # a chat, or a workflow that was removed since
        mode = CitationMode.STRICT
    told = entries[: ends[-1]]  # a run that goes on has no outcome yet
    result = result_from_journal(told, known=link_addresses(configuration.settings), citations=mode)
    verdicts = (one.verdict for one in reversed(told) if isinstance(one, VerdictRecorded))
    is_reply = result.verdict is None and any(isinstance(one, VerdictRecorded) for one in told)
    result = replace(result, failures=_seen_failures(told), verdict=result.verdict or next(verdicts, None))
    order = WorkOrder(
        id="",
        session_id="",
        cause=OrderCause.REPLY if is_reply else OrderCause.PIPELINE,
        workflow=begun.workflow,
        project=begun.project,
        mr_iid=begun.mr_iid,
        sha=begun.sha,
        pipeline_id=begun.pipeline_id,
    )
    return CheckedAnswer(write_unfolded(order, result, configuration.settings), result.tallies)


def _seen_failures(entries: Sequence[JournalEntry]) -> Sequence[ObservedFailure]:
    """Return the failures that were known when the newest run about a failure began."""
    runs = (one.background for one in reversed(entries) if isinstance(one, RunStarted))
    return next((one.failures for one in runs if one is not None and one.failures), ())


def create_dashboard(
    configuration: Callable[[], Configuration],
    environment: Mapping[str, str],
    queue: Queue,
    places: StatePaths,
    clock: Clock,
    *,
    local: bool,
    sandboxes: SandboxRegistry,
    exposition: MetricsExposition | None = None,
) -> tuple[Dashboard, LiveUpdates, SessionCatalog] | None:
    """Create the dashboard; log why and return None if that is impossible, because runs do not need it.

    The caller closes `sandboxes`. Raises MissingSetting for a token that is too short.
    """
    access = DashboardAccess(environment.get(TOKEN_VARIABLE, "").strip(), local=local, now=clock.now)
    try:
        past = open_session_catalog(configuration(), environment, clock)
    except HummingbirdError as error:
        _log.error("There is no dashboard. %s", error)
        return None
    ledger = failure_ledger(places, configuration().settings)
    files, votes = SavedSandboxFiles(past.sessions, sandboxes), vote_ledger(places, configuration().settings)
    spending = spending_ledger(places, configuration().settings, clock.now)
    queries = StoredDashboardQueries(configuration, past, ledger, queue, files, votes=votes, spending=spending)
    mask = all_secrets(configuration(), environment).mask
    pages = PageRenderer(queries.gitlab, mask, lambda entries: read_posted_answer(configuration(), entries))
    live = LiveUpdates(queries.load_entries, pages.entry_fragment, pages.mask)
    return Dashboard(queries, access, live, pages, exposition), live, past

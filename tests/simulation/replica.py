"""A replica of the service: the real `HummingbirdService`, with simulated parts where it meets the outside."""

import asyncio
import random
import sqlite3
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from starlette.types import ASGIApp

from hummingbird.agent.loop_config import LoopConfig
from hummingbird.app import investigation, library, service
from hummingbird.app.service import HummingbirdService
from hummingbird.app.stores import state_paths
from hummingbird.config import document
from hummingbird.config.loader import ConfigWatcher
from hummingbird.config.settings import Settings
from hummingbird.core.errors import HummingbirdError
from hummingbird.core.journal import JournalEntry, SessionOpened
from hummingbird.core.limits import QUEUE_BODY_BYTES, RUNS_PER_MR, WORKFLOW_ITERATIONS
from hummingbird.core.orders import EventEnvelope, WorkOrder
from hummingbird.core.protocols.queues import Queue, QueueMessage
from hummingbird.core.sessions import SEGMENT_BYTES
from hummingbird.gitlab.write import client as write_client
from hummingbird.gitlab.write import project_writer
from hummingbird.lab.gitlab.case_loader import WRITE_TOKEN
from hummingbird.models import transport
from hummingbird.models.http_model import HttpModel
from hummingbird.queues import sqlite_queue, sqs
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.service import event_ingress, votes
from hummingbird.service.protocols import FailedOrder, RetryLater, Skipped
from hummingbird.service.worker import Worker
from hummingbird.storage import bucket_journal
from hummingbird.storage.bucket_failure_store import BucketKnownFailureStore
from hummingbird.storage.bucket_journal import BucketJournal
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.journals import DegradingJournal, FileJournal
from hummingbird.storage.spending_store import BucketSpendingStore, SqliteSpendingStore
from hummingbird.storage.vote_store import BucketVoteStore
from tests.simulation.agent_parts import (
    MODEL,
    MODEL_URL,
    PRICES,
    SimulatedProvider,
    SimulatedSandboxes,
    SimulatedSource,
    create_model_client,
    note_request,
)
from tests.simulation.disk import SimulatedDisk
from tests.simulation.event_loop import PROCESS, SimulatedLoop, start_in
from tests.simulation.gitlab_service import (
    SECOND_PROJECT,
    SECRET,
    URL,
    HookMessage,
    SimulatedGitLab,
    create_simulated_client,
)
from tests.simulation.network import Network
from tests.simulation.object_store import ADDRESS, SimulatedBucket, SimulatedObjectStore
from tests.simulation.script import EventKind, Script
from tests.simulation.sqs_service import SimulatedSqs, SqsMessage, open_simulated_queue

_SPENT = "SELECT micro_usd FROM spending"
VISIBILITY_S = 120
POLL_S = 20.0
RESTART_S = 10.0
DAYS_OF_VOTES = 2  # each is an object that a process reads when it starts
HOOK_S = 10.0  # GitLab waits no longer for the receiver of a webhook


@dataclass(slots=True)
class Services:
    """The services of one simulated world, which all replicas share."""

    network: Network
    queue: SimulatedSqs
    bucket: SimulatedBucket
    gitlab: SimulatedGitLab
    provider: SimulatedProvider
    segment_bytes: int = 0
    body_bytes: int = 0
    outcomes: list[tuple[float, str, WorkOrder, object]] = field(default_factory=list)
    event_outcomes: list[tuple[EventEnvelope, object]] = field(default_factory=list)
    disk: SimulatedDisk | None = None  # of the host, if all replicas are on one
    check_commit: Callable[[BucketJournal | FileJournal, int], None] | None = None
    note_entry: Callable[[str, JournalEntry], None] | None = None
    note_spending: Callable[[Decimal, Decimal | None], None] | None = None
    recorded_spending: Callable[[], Decimal] | None = None
    state: Path = Path()
    working: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # who works on an order
    holders: dict[str, str] = field(default_factory=dict)  # who received a message of the host's queue last

    @property
    def sessions(self) -> Path | None:
        """The folder of the sessions, if all replicas are on one host."""
        return None if self.disk is None else self.state / "sessions"

    def queued_bodies(self, *, dead: bool = False) -> list[str]:
        """Return the messages that wait or are worked on, or the dead letters."""
        if self.disk is None:
            return [one.body for one in (self.queue.dead_letters if dead else self.queue.messages)]
        return [str(row[0]) for row in self._ask("queue.sqlite", f"SELECT body FROM messages WHERE dead = {dead:d}")]

    def host_holders(self, group: str) -> set[str]:
        """Return who holds messages of the group in the queue of the host, by the clock of the host."""
        held = f"SELECT id FROM messages WHERE dead = 0 AND group_name = '{group}' AND visible_at > {time.time()}"
        return {self.holders.get(str(row[0]), "") for row in self._ask("queue.sqlite", held)}

    def host_spending(self) -> Decimal:
        return sum((Decimal(row[0]) / 1_000_000 for row in self._ask("sessions/spending.sqlite", _SPENT)), Decimal(0))

    def _ask(self, file: str, query: str) -> list[Any]:
        path = self.state / file
        if not path.exists():
            return []
        with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.OperationalError):  # it has no table yet
            return connection.execute(query).fetchall()
        return []


class _SimulatedHttpServer:
    """Stands in for `BoundedHttpServer`: nobody connects, webhooks are handed to the application."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self.app, self.port = app, port
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        await self._stopped.wait()

    def stop(self) -> None:
        self._stopped.set()


compose_once = lru_cache(maxsize=64)(document._compose)  # each process reads the same text
CONFIG_CHANGES = (EventKind.RELOAD, EventKind.BREAK_CONFIG, EventKind.DROP_WORKFLOW)
TURNS, USD_PER_RUN, USD_PER_DAY = 6, "0.035", "0.25"


@dataclass(frozen=True, slots=True)
class ProjectLimits:
    """What the configuration of a project allows at most."""

    internal: bool
    runs: int = RUNS_PER_MR
    iterations: int = WORKFLOW_ITERATIONS
    usd_per_run: Decimal | None = None
    usd_per_day: Decimal | None = None

    def are_used_up(self, answered: int, usd: Decimal) -> bool:
        """Return whether only one more answer is due."""
        return answered >= self.iterations - 1 or (self.usd_per_run is not None and usd >= self.usd_per_run)


def project_limits(script: Script, project: str) -> ProjectLimits:
    """Return what `write_config` allows a project."""
    limits = ProjectLimits(script.internal)
    if script.tight:
        usd_per_run = None if script.reviews else Decimal(USD_PER_RUN)
        limits = ProjectLimits(script.internal, 2, TURNS, usd_per_run, Decimal(USD_PER_DAY))
    if project == SECOND_PROJECT:
        return replace(limits, internal=not script.internal, runs=1)
    return limits


def write_config(folder: Path, script: Script, reloads: int = 0, fault: EventKind | None = None) -> Path:
    """Write the configuration of all replicas; `reloads` says how often it changed, `fault` what is wrong with it."""
    prompt = folder / "prompt.md"
    prompt.write_text("Find out why it failed.\n", encoding="utf-8")
    common = {"prompt": "prompt.md", "internal_notes": script.internal}
    if script.tight:
        budgets = {"usd_per_day": float(USD_PER_DAY), **({} if script.reviews else {"usd_per_run": float(USD_PER_RUN)})}
        common |= {"max_runs_per_mr": 2, "max_iterations": TURNS - 3 * (reloads % 2), "budgets": budgets}
    projects: dict[str, object] = {"*": {}}
    if script.projects > 1:
        projects[SECOND_PROJECT] = {"max_runs_per_mr": 1, "internal_notes": not script.internal}
    analyze = {
        **common,
        "trigger": "pipeline",
        "auto_resolve_on_push": True,
        "auto_resolve_on_success": True,
        "projects": projects,
    }
    review = {**common, "trigger": "merge_request", "inline_findings": True, "projects": projects}
    changes = any(event.kind in CONFIG_CHANGES for event in script.events)
    settings = {
        "gitlab_url": URL,
        "model": MODEL,
        "prices": PRICES,
        "config_poll_seconds": 20 if changes else 600,
        "settle_seconds": script.settle_s,
        "max_concurrent_agents": 2 + reloads % 2,
    }
    file = folder / "hummingbird.yaml"
    named = "standby" if fault is EventKind.DROP_WORKFLOW else "analyze"
    workflows = {named: analyze, **({"review": review} if script.reviews else {})}
    if named == "standby":
        del analyze["trigger"]
    text = yaml.safe_dump({"settings": settings, "workflows": workflows}, sort_keys=False)
    file.write_text("workflows: [" if fault is EventKind.BREAK_CONFIG else text, encoding="utf-8")
    return file


@contextmanager
def simulated_parts(services: Services) -> Iterator[None]:
    """Put simulated parts where the service meets the outside."""
    network, gitlab = services.network, services.gitlab

    def objects() -> SimulatedObjectStore:
        return SimulatedObjectStore(network, services.bucket)

    @contextmanager
    def note_work(identity: str) -> Iterator[None]:
        """Note who works on what; whoever is alive and does so already has lost its lease."""
        process, working = PROCESS.get(), services.working[identity]
        for other in working - {process}:
            if not network.loop.is_dead(other):
                network.note_fault("lease expired under its holder", other)
        working.add(process)
        try:
            yield
        finally:
            working.discard(process)

    class ObservedWorker(Worker):
        """Notes what became of each order."""

        def __init__(self, *given: Any, process_event: Any, process_order: Any, **named: Any) -> None:
            async def observed_event(event: EventEnvelope) -> tuple[WorkOrder, ...] | Skipped:
                with note_work(event.identity):
                    outcome: tuple[WorkOrder, ...] | Skipped = await process_event(event)
                services.event_outcomes.append((event, outcome))
                return outcome

            async def observed(order: WorkOrder, *, last_try: bool) -> RetryLater | Skipped | FailedOrder | None:
                with note_work(order.id):
                    outcome: RetryLater | Skipped | FailedOrder | None = await process_order(order, last_try=last_try)
                services.outcomes.append((network.loop.time(), PROCESS.get(), order, outcome))
                return outcome

            super().__init__(*given, process_event=observed_event, process_order=observed, **named)

    def check_commits(commit: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
        async def checked_commit(journal: Any) -> None:
            entries = len(journal.entries())
            await commit(journal)
            if services.check_commit is not None:
                services.check_commit(journal, entries)

        return checked_commit

    append = DegradingJournal.append

    def observed_append(journal: DegradingJournal, entry: JournalEntry) -> None:
        append(journal, entry)
        first = journal.entries()[0]
        if services.note_entry is not None and isinstance(first, SessionOpened):
            services.note_entry(first.project, entry)

    def check_spending(usd_today: Callable[[Any, str], Awaitable[Decimal]]) -> Callable[..., Awaitable[Decimal]]:
        async def checked_usd_today(ledger: Any, project: str) -> Decimal:
            assert services.recorded_spending is not None
            assert services.note_spending is not None
            recorded = services.recorded_spending()
            usd = None
            try:
                usd = await usd_today(ledger, project)
            finally:
                services.note_spending(recorded, usd)
            return usd

        return checked_usd_today

    insert = sqlite_queue._insert

    def logged_insert(file: sqlite3.Connection, group: str, body: str) -> str:
        message_id = insert(file, group, body)
        services.queue.log.append((network.loop.time(), PROCESS.get(), "send", SqsMessage(message_id, group, body)))
        return message_id

    lease_message = SqliteQueue._lease_message

    def observed_lease(queue: SqliteQueue, file: sqlite3.Connection, row: sqlite3.Row, now: float) -> QueueMessage:
        services.holders[str(row["id"])] = PROCESS.get()
        return lease_message(queue, file, row, now)

    host: dict[str, Any] = {"open_queue": lambda *_: open_simulated_queue(network, services.queue, VISIBILITY_S)}
    host |= {
        "open_object_store": lambda *_, **__: objects(),
        "session_store": lambda _, __, now: BucketSessionStore(objects(), ADDRESS, now),
        "spending_ledger": lambda _, __, now, patience: BucketSpendingStore(objects(), ADDRESS, now, patience),
        "failure_ledger": lambda _, __, patience: BucketKnownFailureStore(objects(), ADDRESS, patience),
        "vote_ledger": lambda _, __, patience: BucketVoteStore(objects(), ADDRESS, patience),
    }
    if services.disk is not None:
        host = {"open_queue": open_host_queue}
    replaced: dict[Any, dict[str, Any]] = {
        service: {
            "Worker": ObservedWorker,
            "BoundedHttpServer": _SimulatedHttpServer,
            "SandboxRegistry": lambda *_: SimulatedSandboxes(network),
            "create_dashboard": lambda *_, **__: None,
            **host,
        },
        library: {
            "create_sandboxes": lambda *_: SimulatedSandboxes(network),
            "LoopConfig": partial(LoopConfig, random=random.Random(network.draw(0, 1))),  # it would draw a new one
        },
        investigation: {"create_sources": lambda *_: [SimulatedSource(gitlab)]},
        write_client: {"create_http_client": lambda *_: create_simulated_client(gitlab)},
        transport: {"create_http_client": lambda *_: create_model_client(services.provider)},
        HttpModel: {"generate": note_request(HttpModel.generate)},
        sqs: {"QUEUE_POLL_S": POLL_S},
        event_ingress: {"QUEUE_BODY_BYTES": services.body_bytes or QUEUE_BODY_BYTES},
        SqliteQueue: {"_lease_message": observed_lease},
        sqlite_queue: {"QUEUE_LOOK_S": POLL_S / 20, "QUEUE_LOOK_CAP_S": POLL_S / 4, "_insert": logged_insert},
        BucketSpendingStore: {"usd_today": check_spending(BucketSpendingStore.usd_today)},
        SqliteSpendingStore: {"usd_today": check_spending(SqliteSpendingStore.usd_today)},
        document: {"_compose": compose_once},
        votes: {"VOTES_KEPT_S": DAYS_OF_VOTES * 86400.0},
        bucket_journal: {"SEGMENT_BYTES": services.segment_bytes or SEGMENT_BYTES},
        BucketJournal: {"commit": check_commits(BucketJournal.commit)},
        FileJournal: {"commit": check_commits(FileJournal.commit)},
        DegradingJournal: {"append": observed_append},
    }

    with ExitStack() as patched:
        for module, parts in replaced.items():
            for name, part in parts.items():
                patched.enter_context(patch.object(module, name, part))
        defaults = project_writer.GitLabProjectWriters.__init__.__kwdefaults__
        patched.enter_context(patch.dict(defaults, {"now": time.time}))
        yield


def open_host_queue(settings: Settings, environment: Mapping[str, str]) -> SqliteQueue:
    """Return the queue of a host; its own default is the clock of the interpreter, which nothing replaces."""
    return SqliteQueue(state_paths(settings, environment).queue, VISIBILITY_S, time.time)


def open_operator_queue(services: Services) -> Queue:
    """Return the queue as the operator's commands open it."""
    if services.disk is None:
        return open_simulated_queue(services.network, services.queue, VISIBILITY_S)
    return SqliteQueue(services.state / "queue.sqlite", VISIBILITY_S, time.time)


class Replica:
    """One process of the service. A restarted one is another process under the next name."""

    def __init__(self, number: int, services: Services, config: Path, skews: dict[str, float]) -> None:
        self.number, self._services, self._config, self._skews = number, services, config, skews
        self._starts = 0
        self.skew = 0.0
        self.process = ""
        self._serving: HummingbirdService | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def loop(self) -> SimulatedLoop:
        return self._services.network.loop

    @property
    def is_alive(self) -> bool:
        return self._running is not None and not self._running.done() and not self.loop.is_dead(self.process)

    async def start_soon(self) -> None:
        """Start a new process, as often as it takes: on a full disk it ends at once."""
        while True:
            try:
                return self.start()
            except HummingbirdError:
                self.kill()
                await asyncio.sleep(RESTART_S)

    def start(self) -> None:
        """Start a new process."""
        self._starts += 1
        self.process = f"r{self.number}.{self._starts}"
        self._skews[self.process] = self.skew
        start_in(self.process, self._start)

    def _start(self) -> None:
        environment = {
            "HUMMINGBIRD_HOME": str(self._config.parent / "state"),
            "HUMMINGBIRD_WEBHOOK_SECRET": SECRET,
            "ORCHESTRATOR_GITLAB_TOKEN": WRITE_TOKEN,
            "OPENAI_API_KEY": "key-of-the-model",
            "OPENAI_BASE_URL": MODEL_URL,
        }
        self._serving = HummingbirdService(ConfigWatcher(self._config, environment), environment)
        self._running = self.loop.create_task(self._serving.run(signals=False))

    def kill(self) -> None:
        self.loop.kill(self.process)
        if self._services.disk is not None:
            self._services.disk.release(self.process)

    def set_skew(self, seconds: float) -> None:
        """Set the clock of this process and of those that follow it."""
        self.skew = seconds
        if self.process:
            self._skews[self.process] = seconds

    def stop(self) -> None:
        """Stop gently, as before an update."""
        if self._serving is not None and self.is_alive:
            start_in(self.process, self._serving.stop)

    async def receive(self, message: HookMessage) -> int:
        """Hand over a webhook; the status of the response, 0 if there is none."""
        if self._serving is None or not self.is_alive:
            return 0
        answer: asyncio.Future[int] = self.loop.create_future()
        start_in(self.process, self.loop.create_task, self._handle(message, answer))
        try:
            async with asyncio.timeout(HOOK_S):
                return await answer
        except TimeoutError:
            return 0

    async def _handle(self, message: HookMessage, answer: "asyncio.Future[int]") -> None:
        assert self._serving is not None
        server: Any = self._serving._http_server

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": message.body, "more_body": False}

        async def send(part: Any) -> None:
            if part["type"] == "http.response.start" and not answer.done():
                answer.set_result(int(part["status"]))

        headers = [(name.lower().encode(), value.encode()) for name, value in message.headers.items()]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/webhooks/gitlab",
            "raw_path": b"/webhooks/gitlab",
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("10.0.0.2", 1),
            "server": ("hummingbird", 8080),
        }
        await server.app(scope, receive, send)

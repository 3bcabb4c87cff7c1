"""A replica of the service: the real `HummingbirdService`, with simulated parts where it meets the outside."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from starlette.types import ASGIApp

from hummingbird.agent.loop_config import LoopConfig
from hummingbird.app import investigation, library, service
from hummingbird.app.service import HummingbirdService
from hummingbird.config.loader import ConfigWatcher
from hummingbird.core.orders import EventEnvelope, WorkOrder
from hummingbird.gitlab.write import client as write_client
from hummingbird.gitlab.write import project_writer
from hummingbird.lab.gitlab.case_loader import WRITE_TOKEN
from hummingbird.queues import sqs
from hummingbird.service.protocols import FailedOrder, RetryLater, Skipped
from hummingbird.service.worker import Worker
from hummingbird.storage.bucket_failure_store import BucketKnownFailureStore
from hummingbird.storage.bucket_journal import BucketJournal
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.spending_store import BucketSpendingStore
from hummingbird.storage.vote_store import BucketVoteStore
from tests.simulation.agent_parts import MODEL, SimulatedModels, SimulatedProvider, SimulatedSandboxes, SimulatedSource
from tests.simulation.event_loop import PROCESS, SimulatedLoop, start_in
from tests.simulation.gitlab_service import SECRET, URL, HookMessage, SimulatedGitLab, create_simulated_client
from tests.simulation.network import Network
from tests.simulation.object_store import ADDRESS, SimulatedBucket, SimulatedObjectStore
from tests.simulation.sqs_service import SimulatedSqs, open_simulated_queue

VISIBILITY_S = 120
POLL_S = 20.0
HOOK_S = 10.0  # GitLab waits no longer for the receiver of a webhook


@dataclass(slots=True)
class Services:
    """The services of one simulated world, which all replicas share."""

    network: Network
    queue: SimulatedSqs
    bucket: SimulatedBucket
    gitlab: SimulatedGitLab
    provider: SimulatedProvider
    outcomes: list[tuple[float, str, WorkOrder, object]] = field(default_factory=list)
    event_outcomes: list[tuple[EventEnvelope, object]] = field(default_factory=list)
    check_commit: Callable[[BucketJournal, int], None] | None = None


class _SimulatedHttpServer:
    """Stands in for `BoundedHttpServer`: nobody connects, webhooks are handed to the application."""

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self.app, self.port = app, port
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        await self._stopped.wait()

    def stop(self) -> None:
        self._stopped.set()


def write_config(folder: Path, settings: Mapping[str, object]) -> Path:
    """Write the configuration that all replicas read."""
    prompt = folder / "prompt.md"
    prompt.write_text("Find out why it failed.\n", encoding="utf-8")
    workflow = {
        "trigger": "pipeline",
        "prompt": "prompt.md",
        "auto_resolve_on_push": True,
        "auto_resolve_on_success": True,
        "projects": {"*": {}},
    }
    file = folder / "hummingbird.yaml"
    content = {
        "settings": {"gitlab_url": URL, "model": MODEL, "config_poll_seconds": 600, **settings},
        "workflows": {"analyze": workflow},
    }
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return file


@contextmanager
def simulated_parts(services: Services) -> Iterator[None]:
    """Put simulated parts where the service meets the outside."""
    network, gitlab = services.network, services.gitlab

    def objects() -> SimulatedObjectStore:
        return SimulatedObjectStore(network, services.bucket)

    class ObservedWorker(Worker):
        """Notes what became of each order."""

        def __init__(self, *given: Any, process_event: Any, process_order: Any, **named: Any) -> None:
            async def observed_event(event: EventEnvelope) -> tuple[WorkOrder, ...] | Skipped:
                outcome: tuple[WorkOrder, ...] | Skipped = await process_event(event)
                services.event_outcomes.append((event, outcome))
                return outcome

            async def observed(order: WorkOrder, *, last_try: bool) -> RetryLater | Skipped | FailedOrder | None:
                outcome: RetryLater | Skipped | FailedOrder | None = await process_order(order, last_try=last_try)
                services.outcomes.append((network.loop.time(), PROCESS.get(), order, outcome))
                return outcome

            super().__init__(*given, process_event=observed_event, process_order=observed, **named)

    commit = BucketJournal.commit

    async def checked_commit(journal: BucketJournal) -> None:
        entries = len(journal.entries())
        await commit(journal)
        if services.check_commit is not None:
            services.check_commit(journal, entries)

    replaced: dict[Any, dict[str, Any]] = {
        service: {
            "Worker": ObservedWorker,
            "BoundedHttpServer": _SimulatedHttpServer,
            "SandboxRegistry": lambda *_: SimulatedSandboxes(network),
            "create_dashboard": lambda *_, **__: None,
            "open_queue": lambda *_: open_simulated_queue(network, services.queue, VISIBILITY_S),
            "open_object_store": lambda *_, **__: objects(),
            "session_store": lambda _, __, now: BucketSessionStore(objects(), ADDRESS, now),
            "spending_ledger": lambda _, __, now, patience: BucketSpendingStore(objects(), ADDRESS, now, patience),
            "failure_ledger": lambda _, __, patience: BucketKnownFailureStore(objects(), ADDRESS, patience),
            "vote_ledger": lambda _, __, patience: BucketVoteStore(objects(), ADDRESS, patience),
        },
        library: {
            "ModelRegistry": lambda *_, **__: SimulatedModels(services.provider),
            "create_sandboxes": lambda *_: SimulatedSandboxes(network),
            "LoopConfig": partial(LoopConfig, random=random.Random(network.draw(0, 1))),  # it would draw a new one
        },
        investigation: {"create_sources": lambda *_: [SimulatedSource(gitlab)]},
        write_client: {"create_http_client": lambda *_: create_simulated_client(gitlab)},
        sqs: {"QUEUE_POLL_S": POLL_S},
        BucketJournal: {"commit": checked_commit},
    }

    with ExitStack() as patched:
        for module, parts in replaced.items():
            for name, part in parts.items():
                patched.enter_context(patch.object(module, name, part))
        defaults = project_writer.GitLabProjectWriters.__init__.__kwdefaults__
        patched.enter_context(patch.dict(defaults, {"now": time.time}))
        yield


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
            "ANTHROPIC_API_KEY": "key-of-the-model",
        }
        self._serving = HummingbirdService(ConfigWatcher(self._config, environment), environment)
        self._running = self.loop.create_task(self._serving.run(signals=False))

    def kill(self) -> None:
        self.loop.kill(self.process)

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

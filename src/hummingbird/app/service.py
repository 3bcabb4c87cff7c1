"""`hummingbird serve`: builds the service from a configuration and runs it.

service = HummingbirdService(ConfigWatcher(path, os.environ), os.environ, host="127.0.0.1", port=8080)
await service.run()
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hummingbird import __version__
from hummingbird.app.console import JsonLineFormatter, LogMasker, OneLineFormatter, SystemClock
from hummingbird.app.dashboard import create_dashboard
from hummingbird.app.environment_secrets import environment_secrets, split_environment, tool_secret_values
from hummingbird.app.gitlab_write import ForgeCache
from hummingbird.app.http_server import BoundedHttpServer, check_exposure, is_loopback
from hummingbird.app.investigation import AgentInvestigator
from hummingbird.app.model_choice import missing_model_credentials, model_check
from hummingbird.app.sandboxes import (
    SandboxChoice,
    check_kube_cluster,
    check_sandbox_choice,
    choose_for_service,
    resolve_sandbox,
    sandbox_sentence,
)
from hummingbird.app.stores import (
    failure_ledger,
    open_queue,
    session_store,
    spending_ledger,
    sqs_region,
    state_paths,
    vote_ledger,
)
from hummingbird.config.configuration import ORCHESTRATOR_VARIABLE, Configuration
from hummingbird.config.env_requirements import SECRET_VARIABLE, SIGNING_VARIABLE, write_token_requirements
from hummingbird.config.loader import ConfigWatcher, find_config
from hummingbird.config.settings import Settings
from hummingbird.core.errors import ConfigurationError, HummingbirdError, MissingSetting
from hummingbird.core.limits import QUEUE_TAKEN_S, REAP_EVERY_S, SERVE_GRACE_S
from hummingbird.core.masking import Secrets
from hummingbird.core.orders import EventEnvelope, WorkOrder
from hummingbird.core.protocols.observer import Clock, RunWatcher
from hummingbird.core.protocols.queues import Queue
from hummingbird.core.text import shorten_line
from hummingbird.gitlab.write.protocol import GitLabWriter
from hummingbird.queues.sqs import SqsInbox
from hummingbird.sandboxes.registry import SandboxRegistry
from hummingbird.service.event_ingress import EventIngress, EventQueueReader
from hummingbird.service.event_stage import EventStage
from hummingbird.service.failure_history import KnownFailureTracker
from hummingbird.service.protocols import Skipped
from hummingbird.service.publisher import ResultPublisher
from hummingbird.service.run_stage import RunStage
from hummingbird.service.votes import VotePoller, VoteTracker
from hummingbird.service.webhook import WebhookAuth, create_webhook_app, create_webhook_auth
from hummingbird.service.worker import Worker
from hummingbird.storage.compare_and_swap import BucketCircuitBreaker
from hummingbird.storage.registry import open_object_store
from hummingbird.telemetry.delivery import create_sentry, create_traces, header_secrets
from hummingbird.telemetry.metric_definitions import DEAD_LETTERS_S, PolledGauge
from hummingbird.telemetry.metrics import Metrics

_log = logging.getLogger("hummingbird")


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Metrics, and traces and Sentry if configured; `watchers` observe every run. Belongs to one event loop."""

    metrics: Metrics
    watchers: tuple[RunWatcher, ...]
    closing: tuple[Callable[[], Awaitable[None]], ...] = ()

    async def close(self) -> None:
        """Deliver what is left, within TELEMETRY_CLOSE_S."""
        await asyncio.gather(*(close() for close in self.closing))


def start_telemetry(
    environment: Mapping[str, str], version: str, secrets: Secrets, *, ca_bundle: str = ""
) -> Telemetry:
    """Start what the environment configures.

    Raises MissingSetting for an invalid address or DSN and for an extra that is not installed, before anything starts.
    """
    known = Secrets([*secrets.values, *header_secrets(environment)])
    metrics = Metrics(version)
    reporting = create_sentry(environment, version, known, ca_bundle)
    tracing = create_traces(environment, version, known, ca_bundle)
    watchers: list[RunWatcher] = [metrics]
    closing: list[Callable[[], Awaitable[None]]] = []
    if tracing is not None:
        watchers.append(tracing)
        closing.append(tracing.close)
    if reporting is not None:
        reporting.begin()
        closing.append(reporting.aclose)
    return Telemetry(metrics, tuple(watchers), tuple(closing))


_NO_MODEL = "At least one workflow has no model that can be asked; see the log, or run `hummingbird doctor`."
# These settings are read once, at the start; changes of all others apply from the next message on.
_NEEDS_RESTART = ("sqs_queue_url", "sqs_fifo_queue_url", "session_store_url", "ca_bundle")
Sleep = Callable[[float], Awaitable[None]]


async def watch_config(watch: ConfigWatcher, sleep: Sleep = asyncio.sleep) -> None:
    """Reload the configuration when its file changes, until cancelled. Report an invalid file once and ignore it."""
    begun = watch.current.settings
    while True:
        await sleep(watch.current.settings.config_poll_seconds)
        found = await asyncio.to_thread(watch.poll)
        if isinstance(found, ConfigurationError):
            _log.error("The configuration was changed and is invalid, so the old one stays in use.")
            for fault in found.faults:
                _log.error("Configuration: %s", fault)
        elif found is not None:
            _log.info("The configuration %s was changed; it applies to all work that starts from now on.", found.name)
            _warn_of_restart(begun, found)


def _warn_of_restart(begun: Settings, found: Configuration) -> None:
    changed = [name for name in _NEEDS_RESTART if getattr(begun, name) != getattr(found.settings, name)]
    if changed:
        names = ", ".join("session_store" if name == "session_store_url" else name for name in changed)
        _log.warning("Changing %s requires a restart.", names)


_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class HummingbirdService:
    """The running service: HTTP server, queue worker, event inbox and background tasks.

    `watchers` observe every run; `metrics`, if given, is one of them. `on_event_processed` is told what each event led
    to. The constructor raises OperatorError if the port is open to strangers without a secret or taken, or if folders
    cannot be created. Belongs to the event loop that it runs in.
    """

    def __init__(
        self,
        watch: ConfigWatcher,
        environment: Mapping[str, str],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        chosen: SandboxChoice | None = None,
        clock: Clock | None = None,
        watchers: Sequence[RunWatcher] = (),
        metrics: Metrics | None = None,
        grace_s: float = SERVE_GRACE_S,
        on_event_processed: Callable[[tuple[WorkOrder, ...] | Skipped], None] | None = None,
    ) -> None:
        self._watch, self._environment, self._on_event_processed = watch, environment, on_event_processed
        self._chosen, self._clock = chosen or choose_for_service(environment), clock or SystemClock()
        self._metrics = metrics or Metrics()
        self._watchers, self._grace_s = (*watchers, *(() if metrics else (self._metrics,))), grace_s
        self._dead_letters: float | None = None
        settings = watch.current.settings
        self._gate = create_webhook_gate(environment, self._clock)
        check_exposure(host, guarded=not self._gate.is_open)
        self._places = state_paths(settings, environment).create_folders()
        self._queue = open_queue(settings, environment)
        self._ingress = EventIngress(
            self._queue, open_object_store(self._places.objects, ca_bundle=settings.ca_bundle), self._clock.now
        )
        self._patience = BucketCircuitBreaker()
        self._votes = vote_ledger(self._places, settings, self._patience)
        given, _ = split_environment(environment)
        self._sandboxes = SandboxRegistry(resolve_sandbox(settings, self._chosen), given, self._clock, _log.warning)
        dashboard = create_dashboard(
            lambda: watch.current,
            environment,
            self._queue,
            self._places,
            self._clock,
            local=is_loopback(host),
            sandboxes=self._sandboxes,
            exposition=self._metrics.exposition,
        )
        routes = dashboard[0].routes if dashboard else ()
        self._live = dashboard[1] if dashboard else None
        self._catalog = dashboard[2] if dashboard else None
        self._http_server = BoundedHttpServer(
            create_webhook_app(
                self._gate,
                self._ingress,
                beside=routes,
                report=self._metrics.count_webhook,
                warning=lambda: _NO_MODEL if missing_model_credentials(watch.current, environment) else "",
            ),
            host,
            port,
        )
        self._stops: list[Callable[[], None]] = []
        self._stop_requested = False

    @property
    def chosen(self) -> SandboxChoice:
        return self._chosen

    @property
    def port(self) -> int:
        return self._http_server.port

    @property
    def queue(self) -> Queue:
        return self._queue

    def stop(self) -> None:
        """Take no more work and let runs finish; a second call parks them at once. Call it on the loop's thread."""
        self._stop_requested = True  # also if nothing has started yet
        for stop in self._stops:
            stop()

    async def run(self, *, signals: bool = True) -> None:
        """Run until `stop`, with `signals` also until SIGTERM or SIGINT. Raise what made one of the parts fail."""
        settings = self._watch.current.settings
        async with AsyncExitStack() as opened:
            if signals:  # first, so that signals are handled until everything is closed
                await opened.enter_async_context(_handle_signals(self.stop))
            opened.push_async_callback(self._queue.close)
            forges = ForgeCache(self._environment)
            opened.push_async_callback(forges.close)
            if self._catalog is not None:
                opened.push_async_callback(self._catalog.stop_refresh)
            worker = self._create_worker(forges)
            self._metrics.register_gauge(PolledGauge.SLOTS_TAKEN, lambda: worker.running)
            self._metrics.register_gauge(PolledGauge.SLOTS, lambda: self._watch.current.settings.max_concurrent_agents)
            self._metrics.register_gauge(PolledGauge.DEAD_LETTERS, lambda: self._dead_letters)
            self._stops = [self._http_server.stop, worker.stop, *([self._live.close] if self._live else ())]
            parts = [self._http_server.run(), worker.run()]
            if settings.sqs_queue_url:
                inbox = open_event_inbox(settings)
                opened.push_async_callback(inbox.close)
                events = EventQueueReader(inbox, self._ingress)
                self._stops.append(events.stop)
                parts.append(events.run())
            await opened.enter_async_context(self._run_background_tasks(forges))
            if self._stop_requested:
                self.stop()
            await self._run_parts([asyncio.ensure_future(part) for part in parts])

    async def _run_parts(self, parts: "list[asyncio.Future[None]]") -> None:
        """Wait until all parts have ended; if one fails, stop the others."""
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_EXCEPTION)
            if any(part.done() and not part.cancelled() and part.exception() for part in parts):
                self.stop()
            await asyncio.gather(*parts)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.wait(parts)

    def _create_worker(self, forges: ForgeCache) -> Worker:
        def current() -> Configuration:
            return self._watch.current

        def publisher(forge: GitLabWriter, configuration: Configuration) -> ResultPublisher:
            return ResultPublisher(forge, configuration, self._clock)

        async def process_event(event: EventEnvelope) -> tuple[WorkOrder, ...] | Skipped:
            outcome = await events.process(event)
            if self._on_event_processed is not None:
                self._on_event_processed(outcome)
            return outcome

        now, votes = self._clock.now, VoteTracker(self._votes, self._clock)
        ledger = failure_ledger(self._places, self._watch.current.settings, self._patience)
        known, investigator = KnownFailureTracker(ledger, self._clock), self._create_investigator()
        can_ask = model_check(current, self._environment)
        events = EventStage(current, forges, publisher, self._ingress.load_body, now, votes, can_ask)
        runs = RunStage(current, forges, publisher, investigator, known, now, votes=votes, can_ask=can_ask)
        if self._live is not None:
            runs = replace(runs, notify_page=self._live.show_message)
        return Worker(
            self._queue,
            self._ingress,
            lambda: current().settings.max_concurrent_agents,
            process_event=process_event,
            process_order=runs.process,
            visibility_s=QUEUE_TAKEN_S,
            grace_s=self._grace_s,
        )

    def _create_investigator(self) -> AgentInvestigator:
        settings = self._watch.current.settings
        return AgentInvestigator(
            session_store(self._places, settings, self._clock.now),
            self._environment,
            spending=spending_ledger(self._places, settings, self._clock.now, self._patience),
            chosen=self._chosen,
            clock=self._clock,
            watchers=(*self._watchers, *([self._live] if self._live else ())),
            memory=self._places.state,
        )

    @asynccontextmanager
    async def _run_background_tasks(self, forges: ForgeCache) -> AsyncIterator[None]:
        """Run the tasks that have no end of their own, and cancel them at the end."""
        harvest = VotePoller(lambda: self._watch.current, forges, self._votes, self._clock, self._metrics.set_votes)
        work = [watch_config(self._watch), self._reap_sandboxes(), self._count_dead_letters(), harvest.poll_forever()]
        if self._catalog is not None:
            work.append(self._catalog.catch_up())  # so that the first visitor of the dashboard does not wait for it
        tasks = [asyncio.create_task(one) for one in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._sandboxes.close()

    async def _count_dead_letters(self) -> None:
        """Count dead letters for the metrics, forever."""
        while True:
            try:
                self._dead_letters = len(await self._queue.list_dead_letters())
            except HummingbirdError:
                self._dead_letters = None  # unknown
            await self._clock.sleep(DEAD_LETTERS_S)

    async def _reap_sandboxes(self) -> None:
        """Remove overdue sandboxes, forever; a cluster that is unreachable now may be back later."""
        while True:
            try:
                await self._sandboxes.reap_forever()
                return
            except HummingbirdError as error:
                _log.error("Overdue sandboxes could not be removed: %s", error)
            await self._clock.sleep(REAP_EVERY_S)


def open_event_inbox(settings: Settings) -> SqsInbox:
    url = settings.sqs_queue_url
    return SqsInbox(url, region=sqs_region(url), ca_bundle=settings.ca_bundle)


def create_webhook_gate(environment: Mapping[str, str], clock: Clock) -> WebhookAuth:
    """Return the check of webhooks that the environment configures.

    Raises MissingSetting for a signing token that cannot be used.
    """
    secret = environment.get(SECRET_VARIABLE, "").strip()
    try:
        return create_webhook_auth(clock.now, secret, environment.get(SIGNING_VARIABLE, ""))
    except MissingSetting as error:
        raise MissingSetting(f"{SIGNING_VARIABLE} cannot be used: {error}") from error


@asynccontextmanager
async def _handle_signals(stop: Callable[[], None]) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    for one in _STOP_SIGNALS:
        loop.add_signal_handler(one, _on_signal, stop, one)
    try:
        yield
    finally:
        for one in _STOP_SIGNALS:
            with suppress(ValueError):
                loop.remove_signal_handler(one)


def _on_signal(stop: Callable[[], None], one: signal.Signals) -> None:
    _log.info("%s: stopping. No new work is taken; runs are finished or parked.", one.name)
    stop()


_PURPOSES_CHARS = 200


def serve_command(
    config: str | None,
    host: str,
    port: int,
    chosen: SandboxChoice,
    *,
    grace: float | None,
    verbose: bool,
    log_format: str = "text",
) -> int:
    """Run `hummingbird serve` and return its exit code.

    Raises OperatorError if it cannot start.
    """
    masking = log_to_stderr(verbose=verbose, log_format=log_format)
    watch = ConfigWatcher(find_config(config, os.environ, Path.cwd()), os.environ)
    masking.configuration = lambda: watch.current
    check_sandbox_choice(watch.current.settings, chosen)
    check_kube_cluster(resolve_sandbox(watch.current.settings, chosen), os.environ)
    asyncio.run(_run_with_telemetry(watch, host, port, chosen, SERVE_GRACE_S if grace is None else grace))
    return 0


async def _run_with_telemetry(
    watch: ConfigWatcher, host: str, port: int, chosen: SandboxChoice, grace_s: float
) -> None:
    secrets = environment_secrets(os.environ, tool_secret_values(watch.current, os.environ))
    telemetry = start_telemetry(os.environ, __version__, secrets, ca_bundle=watch.current.settings.ca_bundle)
    try:
        service = HummingbirdService(
            watch,
            os.environ,
            host=host,
            port=port,
            chosen=chosen,
            watchers=telemetry.watchers,
            metrics=telemetry.metrics,
            grace_s=grace_s,
        )
        await _announce_and_run(watch, host, service)
    except HummingbirdError:
        raise
    except Exception:  # logged here, because Sentry reads the log; raised again
        _log.exception("The service ended because of a bug.")
        raise
    finally:
        await telemetry.close()


async def _announce_and_run(watch: ConfigWatcher, host: str, serving: HummingbirdService) -> None:
    where = f"http://{f'[{host}]' if ':' in host else host}:{serving.port}/webhooks/gitlab"
    names = ", ".join(watch.current.workflows) or "none"
    _log.info("Webhooks are received at %s. Configuration: %s; workflows: %s.", where, watch.current.name, names)
    _log.info("The dashboard is at %s.", where.removesuffix("webhooks/gitlab"))
    _log.info("%s", sandbox_sentence(watch.current.settings, serving.chosen))
    _warn_of_missing_token(watch.current)
    for sentence in missing_model_credentials(watch.current, os.environ):
        _log.error("%s", sentence)
    await serving.run()
    _log.info("The service has stopped; all work is finished or parked.")


def _warn_of_missing_token(configuration: Configuration) -> None:
    """Warn at the start, because a missing token would only show at the first event."""
    purposes = [
        need.purpose for need in write_token_requirements(configuration) if not need.find_set_variable(os.environ)
    ]
    if purposes:
        names = shorten_line(", ".join(purposes), _PURPOSES_CHARS)
        _log.warning(
            "%s is not set; it %s. Until it is set, events of these projects start nothing.",
            ORCHESTRATOR_VARIABLE,
            names,
        )


def log_to_stderr(*, verbose: bool, log_format: str = "text") -> LogMasker:
    """Log each message as one line; libraries of others only from warnings on.

    Returns the masker, to which the caller gives the configuration once it is loaded.
    """
    lines, masking = logging.StreamHandler(sys.stderr), LogMasker()
    sentence = OneLineFormatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z", masking)
    lines.setFormatter(JsonLineFormatter(masking) if log_format == "json" else sentence)
    root = logging.getLogger()
    root.handlers = [lines]
    root.setLevel(logging.WARNING)
    _log.setLevel(logging.DEBUG if verbose else logging.INFO)
    return masking

"""Everything that `serve` is, put together from a configuration (E1–E4, G4, X6).

    serving = Serving(Watch(path, os.environ), os.environ, host="127.0.0.1", port=8080)
    await serving.run()

Belongs to the event loop it is run in. What any of the parts does, they know themselves.
"""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace

from hummingbird.adapters.queues.sqs_inbox import SqsInbox
from hummingbird.adapters.sandboxes.registry import Sandboxes
from hummingbird.adapters.stores.exchanging import Patience
from hummingbird.adapters.stores.objects import objects_at
from hummingbird.adapters.telemetry.measures import Level
from hummingbird.adapters.telemetry.metrics import Metrics
from hummingbird.assembly.clock import SystemClock
from hummingbird.assembly.dashboard import dashboard_of
from hummingbird.assembly.forges import ForgesOf
from hummingbird.assembly.http_door import HttpDoor, check_reach, is_loopback
from hummingbird.assembly.investigating import Investigating
from hummingbird.assembly.places import places
from hummingbird.assembly.queueing import open_queue, region_of
from hummingbird.assembly.reloading import keep_looking
from hummingbird.assembly.sandboxes import Chosen, wanted_sandbox
from hummingbird.assembly.secrets import for_runs
from hummingbird.assembly.session_stores import sessions_of
from hummingbird.assembly.shared_stores import known_failures_of, reactions_of, spending_of
from hummingbird.config.configuration import Configuration
from hummingbird.config.needed import SECRET_VARIABLE, SIGNING_VARIABLE
from hummingbird.config.settings import Settings
from hummingbird.config.watch import Watch
from hummingbird.domain.errors import HummingbirdError, MissingSetting
from hummingbird.domain.limits import QUEUE_TAKEN_S, REAP_EVERY_S, SERVE_GRACE_S
from hummingbird.domain.orders import Arrived, WorkOrder
from hummingbird.domain.telemetry_limits import DEAD_LETTERS_S
from hummingbird.ports.clock import Clock
from hummingbird.ports.forge import Forge, Forges
from hummingbird.ports.observer import RunWatcher
from hummingbird.ports.queue import Queue
from hummingbird.service.admission import Gate, gate
from hummingbird.service.arrivals import Arrivals
from hummingbird.service.events_queue import EventsQueue
from hummingbird.service.harvesting import Harvest
from hummingbird.service.ingress import Ingress
from hummingbird.service.investigating import Investigator
from hummingbird.service.known import Known
from hummingbird.service.opinions import Opinions
from hummingbird.service.publication import Publication
from hummingbird.service.runs import Runs
from hummingbird.service.stages import Later
from hummingbird.service.webhook import application
from hummingbird.service.worker import Worker
from hummingbird.web.live import Live

_log = logging.getLogger("hummingbird")
_STOPS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class BothStages:
    """Fulfils service.stages.Stages."""

    arrivals: Arrivals
    runs: Runs

    async def arrived(self, event: Arrived) -> tuple[WorkOrder, ...]:
        return await self.arrivals.arrived(event)

    async def ordered(self, order: WorkOrder, *, last_try: bool) -> Later | None:
        return await self.runs.ordered(order, last_try=last_try)


def stages_of(
    configuration: Callable[[], Configuration],
    forges: Callable[[Configuration], Forges],
    *,
    investigator: Investigator,
    known: Known,
    ingress: Ingress,
    clock: Clock,
    live: Live | None = None,
    opinions: Opinions | None = None,
) -> BothStages:
    def publication(forge: Forge, holding: Configuration) -> Publication:
        return Publication(forge, holding, clock)

    runs = Runs(configuration, forges, publication, investigator, known, clock.now, opinions=opinions)
    return BothStages(
        Arrivals(configuration, forges, publication, ingress.body_of, clock.now, opinions),
        replace(runs, tell=live.say) if live else runs,
    )


class Serving:
    """`stop` may be called from the event loop's thread; a second time it parks at once. `watchers` see every journal
    entry of every run; `metrics` is one of them, if it is given. Raises OperatorError when it is made: for a door that
    anybody could enter, a port that is taken, folders that cannot be made."""

    def __init__(
        self,
        watch: Watch,
        environment: Mapping[str, str],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        chosen: Chosen | None = None,
        clock: Clock | None = None,
        watchers: Sequence[RunWatcher] = (),
        metrics: Metrics | None = None,
        grace_s: float = SERVE_GRACE_S,
    ) -> None:
        self._watch, self._environment = watch, environment
        self._chosen, self._clock = chosen or Chosen(), clock or SystemClock()
        self._metrics = metrics or Metrics()
        self._watchers, self._grace_s = (*watchers, *(() if metrics else (self._metrics,))), grace_s
        self._dead_letters: float | None = None
        settings = watch.current.settings
        self._gate = gate_of(environment, self._clock)
        check_reach(host, guarded=not self._gate.is_open)
        self._places = places(settings, environment).made()
        self._queue = open_queue(settings, environment)
        self._ingress = Ingress(
            self._queue, objects_at(self._places.objects, ca_bundle=settings.ca_bundle), self._clock.now
        )
        self._patience = Patience()
        self._votes = reactions_of(self._places, settings, self._patience)
        given, _ = for_runs(environment)
        self._sandboxes = Sandboxes(wanted_sandbox(settings, self._chosen), given, self._clock, _log.warning)
        dashboard = dashboard_of(
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
        self._past = dashboard[2] if dashboard else None
        self._door = HttpDoor(
            application(self._gate, self._ingress, beside=routes, told=self._metrics.event), host, port
        )
        self._stops: list[Callable[[], None]] = []
        self._unwanted = False

    @property
    def port(self) -> int:
        return self._door.port

    @property
    def queue(self) -> Queue:
        return self._queue

    def stop(self) -> None:
        self._unwanted = True  # also if nothing has begun yet
        for stop in self._stops:
            stop()

    async def run(self, *, signals: bool = True) -> None:
        """Until there is a stop, by SIGTERM or SIGINT too where `signals` says so. Raises what a part of it could not
        cope with."""
        settings = self._watch.current.settings
        async with AsyncExitStack() as opened:
            if signals:  # until all is closed: what was received and not begun is given back then
                await opened.enter_async_context(_heard(self.stop))
            opened.push_async_callback(self._queue.close)
            forges = ForgesOf(self._environment)
            opened.push_async_callback(forges.close)
            if self._past is not None:
                opened.push_async_callback(self._past.rest)
            worker = self._worker(forges)
            self._metrics.observe(Level.SLOTS_TAKEN, lambda: worker.running)
            self._metrics.observe(Level.SLOTS, lambda: self._watch.current.settings.max_concurrent_agents)
            self._metrics.observe(Level.DEAD_LETTERS, lambda: self._dead_letters)
            self._stops = [self._door.stop, worker.stop, *([self._live.close] if self._live else ())]
            parts = [self._door.run(), worker.run()]
            if settings.sqs_queue_url:
                inbox = events_inbox(settings)
                opened.push_async_callback(inbox.close)
                events = EventsQueue(inbox, self._ingress)
                self._stops.append(events.stop)
                parts.append(events.run())
            await opened.enter_async_context(self._beside(forges))
            if self._unwanted:
                self.stop()
            await self._together([asyncio.ensure_future(part) for part in parts])

    async def _together(self, parts: "list[asyncio.Future[None]]") -> None:
        """Ends when all of them have; when one fails, the others are stopped."""
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_EXCEPTION)
            if any(part.done() and not part.cancelled() and part.exception() for part in parts):
                self.stop()
            await asyncio.gather(*parts)
        finally:
            for part in parts:
                part.cancel()
            await asyncio.wait(parts)

    def _worker(self, forges: ForgesOf) -> Worker:
        def current() -> Configuration:
            return self._watch.current

        ledger = known_failures_of(self._places, self._watch.current.settings, self._patience)
        stages = stages_of(
            current,
            forges,
            investigator=self._investigator(),
            known=Known(ledger, self._clock),
            ingress=self._ingress,
            clock=self._clock,
            live=self._live,
            opinions=Opinions(self._votes, self._clock),
        )
        return Worker(
            self._queue,
            stages,
            self._ingress,
            lambda: current().settings.max_concurrent_agents,
            visibility_s=QUEUE_TAKEN_S,
            grace_s=self._grace_s,
        )

    def _investigator(self) -> Investigating:
        settings = self._watch.current.settings
        return Investigating(
            sessions_of(self._places, settings, self._clock.now),
            self._environment,
            spending=spending_of(self._places, settings, self._clock.now, self._patience),
            chosen=self._chosen,
            clock=self._clock,
            watchers=(*self._watchers, *([self._live] if self._live else ())),
            memory=self._places.state,
        )

    @asynccontextmanager
    async def _beside(self, forges: ForgesOf) -> AsyncIterator[None]:
        """What goes on all the time and has no end of its own."""
        harvest = Harvest(lambda: self._watch.current, forges, self._votes, self._clock, self._metrics.voted)
        work = [keep_looking(self._watch), self._reaping(), self._counting(), harvest.keep_looking()]
        if self._past is not None:
            work.append(self._past.caught_up())  # so that the first who looks at the dashboard need not wait for it
        tasks = [asyncio.create_task(one) for one in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await self._sandboxes.close()

    async def _counting(self) -> None:
        """Dead letters, for those who watch the metrics."""
        while True:
            try:
                self._dead_letters = len(await self._queue.dead())
            except HummingbirdError:
                self._dead_letters = None  # nobody knows
            await self._clock.sleep(DEAD_LETTERS_S)

    async def _reaping(self) -> None:
        """A pool that cannot be reached now may be later; runs that need it say so too."""
        while True:
            try:
                await self._sandboxes.keep_reaping()
                return
            except HummingbirdError as error:
                _log.error("Sandboxes that are overdue are not removed: %s", error)
            await self._clock.sleep(REAP_EVERY_S)


def events_inbox(settings: Settings) -> SqsInbox:
    url = settings.sqs_queue_url
    return SqsInbox(url, region=region_of(url), ca_bundle=settings.ca_bundle)


def gate_of(environment: Mapping[str, str], clock: Clock) -> Gate:
    """Raises MissingSetting."""
    secret = environment.get(SECRET_VARIABLE, "").strip()
    try:
        return gate(clock.now, secret, environment.get(SIGNING_VARIABLE, ""))
    except MissingSetting as error:
        raise MissingSetting(f"{SIGNING_VARIABLE} cannot be used: {error}") from error


@asynccontextmanager
async def _heard(stop: Callable[[], None]) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    for one in _STOPS:
        loop.add_signal_handler(one, _told, stop, one)
    try:
        yield
    finally:
        for one in _STOPS:
            with suppress(ValueError):
                loop.remove_signal_handler(one)


def _told(stop: Callable[[], None], one: signal.Signals) -> None:
    _log.info("%s: nothing more is taken; what runs is finished or parked.", one.name)
    stop()

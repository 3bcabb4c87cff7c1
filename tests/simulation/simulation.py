"""Play a script: replicas of the real service in a simulated world, until all is settled.

played = play(make_script(42))
played.violations, played.covered
"""

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from hummingbird.core.errors import QueueUnusable, UsageError
from hummingbird.core.protocols.storage import RatedNote
from hummingbird.core.votes import VOTES_KEPT
from hummingbird.service.envelopes import hash_name
from hummingbird.storage.vote_store import BucketVoteStore, SqliteVoteStore
from tests.simulation.agent_parts import SimulatedProvider
from tests.simulation.disk import SimulatedDisk, temporary_folder
from tests.simulation.event_loop import WORLD, SimulatedLoop, SimulationStuckError, start_in
from tests.simulation.gitlab_service import DEVELOPER, OUTSIDER, HookMessage, SimulatedGitLab
from tests.simulation.invariants import InvariantWatch
from tests.simulation.network import Network, Trouble
from tests.simulation.object_store import ADDRESS, SimulatedBucket, SimulatedObjectStore
from tests.simulation.replica import Replica, Services, open_operator_queue, simulated_parts, write_config
from tests.simulation.script import CALM_AT, MANY, EventKind, Script, ScriptEvent
from tests.simulation.sqs_service import SimulatedSqs
from tests.simulation.virtual_time import virtual_time

LONGEST_S = 3600.0  # in which all is settled once the world behaves again
QUIET_S = 45.0  # without a message, after which all is settled
RESEND_S = 61.0  # until somebody sends a webhook again that nobody took


@dataclass(slots=True)
class Played:
    """What came of a script."""

    script: Script
    violations: list[str] = field(default_factory=list)
    covered: Counter[tuple[str, str]] = field(default_factory=Counter)
    virtual_s: float = 0.0
    calls: int = 0
    steps: int = 0
    notes: int = 0
    orders: int = 0
    trace: list[str] = field(default_factory=list)


class World:
    """One world, its replicas, and what is still to happen."""

    def __init__(
        self, script: Script, network: Network, folder: Path, skews: dict[str, float], disk: SimulatedDisk | None
    ) -> None:
        self.script, self.network, self.loop = script, network, network.loop
        loop = network.loop
        gitlab = SimulatedGitLab(self.network, script.merge_requests, script.projects)
        queue = SimulatedSqs(self.network, short_share=script.short_polls)
        provider = SimulatedProvider(self.network, tireless=script.tight, answer_s=script.answer_s)
        self.services = Services(
            self.network,
            queue,
            SimulatedBucket(),
            gitlab,
            provider,
            segment_bytes=script.segment_bytes,
            body_bytes=script.body_bytes,
            disk=disk,
        )
        self.services.state = folder / "state"
        self.watch = InvariantWatch(self.services, script)
        self._folder, self._reloads = folder, 0
        self._config_fault: EventKind | None = None
        config = self._write_config()
        self.replicas = [Replica(number + 1, self.services, config, skews) for number in range(script.replicas)]
        self._random = random.Random(f"world {script.seed}")
        self._armed: dict[str, tuple[int, ScriptEvent, Replica]] = {}
        self._aimed: list[ScriptEvent] = []
        self._hooks_under_way = 0
        self._twice = self._late = 0
        self._late_s = self._twice_s = 0.0
        gitlab.on_event.append(self._send_hook)
        loop.on_step = self._on_step
        self.network.on_call = self._on_call

    def _write_config(self) -> Path:
        return write_config(self._folder, self.script, self._reloads, self._config_fault)

    async def run(self) -> None:
        """Let everything happen, then wait until all is settled."""
        for event in self.script.events:
            if event.kind is EventKind.SKEW and not event.at:
                self._skew(event)
        for replica in self.replicas:
            replica.start()
        for event in self.script.events:
            await self._sleep_until(event.at)
            if self.watch.violations:
                return
            self._happen(event)
        await self._settle()

    async def _sleep_until(self, at: float) -> None:
        if (left := at - self.loop.time()) > 0:
            await asyncio.sleep(left)

    def _replica(self, event: ScriptEvent) -> Replica:
        return self.replicas[(event.replica - 1) % len(self.replicas)]

    def _happen(self, event: ScriptEvent) -> None:
        if self.network.trace is not None:
            self.network.trace.append(f"{self.loop.time():10.3f} {WORLD:6} ## {event.describe().partition('| ')[2]}")
        gitlab, number = self.services.gitlab, event.number
        match event.kind:
            case EventKind.FAIL_PIPELINE:
                gitlab.fail_pipeline(number)
            case EventKind.PASS_PIPELINE:
                gitlab.pass_pipeline(number)
            case EventKind.PUSH:
                gitlab.push(number)
            case EventKind.REPLY:
                gitlab.reply(number, "Why does it say no?")
            case EventKind.OUTSIDER:
                gitlab.reply(number, "Tell me all.", who=OUTSIDER)
            case EventKind.COMMAND:
                gitlab.write(number, "/hummingbird analyze Look again.")
            case EventKind.RESOLVE:
                gitlab.resolve(number)
            case EventKind.EDIT:
                gitlab.edit_last_note(number, "Never mind.")
            case EventKind.DELETE:
                gitlab.delete_last_note(number)
            case EventKind.ASK_REVIEW:
                gitlab.write(number, "/hummingbird review")
            case EventKind.DISMISS:
                gitlab.dismiss(number)
            case EventKind.VOTE | EventKind.OUTSIDER_VOTE:
                gitlab.vote(number, DEVELOPER if event.kind is EventKind.VOTE else OUTSIDER)
            case EventKind.REMOVE_OURS:
                gitlab.remove_note_of_ours(number)
            case EventKind.CLOSE:
                gitlab.close_merge_request(number)
            case EventKind.REOPEN:
                gitlab.reopen_merge_request(number)
            case EventKind.RETRY:
                self._spawn(self._retry_jobs(event))
            case EventKind.REVIVE:
                self._spawn(self._revive_dead_letters())
            case EventKind.RELOAD:
                self._reloads += 1
                self._write_config()
            case EventKind.BREAK_CONFIG | EventKind.DROP_WORKFLOW:
                self._spawn(self._change_config(event))
            case EventKind.CRASH | EventKind.PAUSE | EventKind.POWER_CUT:
                replica = self._replica(event)
                if event.service:
                    self._aimed.append(event)
                elif replica.is_alive:
                    self._armed[replica.process] = (
                        self.loop.steps.get(replica.process, 0) + event.count,
                        event,
                        replica,
                    )
            case EventKind.STOP:
                self.network.note_fault("gentle stop", self._replica(event).process)
                self._restart_after(self._replica(event), event.seconds, stop=True)
            case EventKind.SKEW:
                self._skew(event)
            case EventKind.DISK_FULL:
                self._spawn(self._fill_disk(event))
            case EventKind.TROUBLE | EventKind.CUT_OFF:
                self._make_trouble(event)
            case EventKind.DUPLICATE_HOOK:
                self._twice, self._twice_s = self._twice + 1, event.seconds
            case EventKind.DELAY_HOOK:
                self._late, self._late_s = self._late + 1, event.seconds

    def _skew(self, event: ScriptEvent) -> None:
        """Set a clock forward or back; a host has one clock."""
        for replica in [self._replica(event)] if event.replica else self.replicas:
            replica.set_skew(event.seconds)

    def _cut_power(self, event: ScriptEvent) -> None:
        """Let the host die, and all that was not flushed with it."""
        assert self.services.disk is not None
        for replica in self.replicas:
            replica.kill()
            self._restart_after(replica, event.seconds)
        self.services.disk.cut_power()
        self.watch.check_acknowledged("After a power cut")

    async def _fill_disk(self, event: ScriptEvent) -> None:
        assert self.services.disk is not None
        self.network.note_fault(event.kind.value, self.replicas[0].process)
        self.services.disk.is_full = True
        await asyncio.sleep(event.seconds)
        self.services.disk.is_full = False

    async def _retry_jobs(self, event: ScriptEvent) -> None:
        """Let the failed jobs run again, and end."""
        if run := self.services.gitlab.retry_pipeline(event.number):
            await asyncio.sleep(event.seconds)
            self.services.gitlab.end_retried(run, "success" if event.count else "failed")

    async def _revive_dead_letters(self) -> None:
        """Send all dead letters anew, as the operator does by the command."""
        queue = open_operator_queue(self.services)
        with suppress(QueueUnusable, UsageError):  # while somebody else lists them, they cannot be found
            for letter in await queue.list_dead_letters():
                self.watch.note_revived(letter.body)
                self.network.covered[EventKind.REVIVE.value, "dead letter"] += 1
                await queue.retry_dead_letter(letter.id)
        await queue.close()

    async def _change_config(self, event: ScriptEvent) -> None:
        """Put another configuration in place for some time."""
        self._config_fault = event.kind
        self._write_config()
        await asyncio.sleep(event.seconds)
        self._config_fault = None
        self._write_config()

    def _make_trouble(self, event: ScriptEvent) -> None:
        process = self._replica(event).process if event.replica else ""
        until, count = self.loop.time() + event.seconds, event.count
        if event.kind is EventKind.CUT_OFF:
            self.network.note_fault(event.kind.value, process)
            count = MANY
        trouble = Trouble(event.service, event.fate, until, count, process, within=event.within)
        self.network.troubles.append(trouble)

    def _on_call(self, process: str, service: str, what: str) -> None:
        """Arm what is to come after such a call."""
        replica = next(one for one in self.replicas if one.process == process)
        for event in self._aimed:
            if event.replica in (0, replica.number) and event.service == service and event.within in what:
                self._aimed.remove(event)
                self._armed[process] = (self.loop.steps[process] + event.count, event, replica)
                return

    def _on_step(self, process: str) -> None:
        """Kill or pause the process if its time has come."""
        armed = self._armed.get(process)
        if armed is None or self.loop.steps[process] < armed[0]:
            return
        _, event, replica = self._armed.pop(process)
        self.network.note_fault(event.kind.value, process)
        if self.network.trace is not None:
            self.network.trace.append(
                f"{self.loop.time():10.3f} {process:6} !! {event.kind.value} {event.seconds:.0f} s"
            )
        if event.kind is EventKind.PAUSE:
            self.loop.pause(process, event.seconds)
        elif event.kind is EventKind.POWER_CUT:
            self._cut_power(event)
        else:
            replica.kill()
            self._restart_after(replica, event.seconds)

    def _restart_after(self, replica: Replica, seconds: float, *, stop: bool = False) -> None:
        if stop:
            replica.stop()
        self._spawn(self._restart(replica, replica.process, seconds))

    async def _restart(self, replica: Replica, process: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        while replica.process == process and replica.is_alive:  # a gentle stop takes its time  # noqa: ASYNC110
            await asyncio.sleep(1)
        if replica.process == process:
            await replica.start_soon()

    def _spawn(self, work: object) -> None:
        start_in(WORLD, self.loop.create_task, work)

    def _send_hook(self, message: HookMessage) -> None:
        delay = 0.0
        if self._late:
            self._late, delay = self._late - 1, self._late_s
            self.network.covered["webhook late", message.name] += 1
        copies = 1
        if self._twice:
            self._twice, copies = self._twice - 1, 2
            self.network.covered["webhook twice", message.name] += 1
        for copy in range(copies):
            self._hooks_under_way += 1
            self._spawn(self._deliver(message, delay + copy * self.network.draw(0.0, self._twice_s)))

    async def _deliver(self, message: HookMessage, delay: float) -> None:
        """Hand the webhook to one of the replicas; if nobody takes it, somebody sends it again later."""
        await asyncio.sleep(delay)
        while True:
            await asyncio.sleep(self.network.draw(0.001, 0.2))
            alive = [replica for replica in self.replicas if replica.is_alive]
            status = await self._random.choice(alive).receive(message) if alive else 0
            if status == 202:
                self.watch.accepted.add(_identity(message))
            if 200 <= status < 500 and status != 408:
                break
            await asyncio.sleep(RESEND_S)
        self._hooks_under_way -= 1

    async def _settle(self) -> None:
        """Wait until nothing is left to do; from CALM_AT on, nothing goes wrong any more."""
        quiet_since: float | None = None
        bad_until = max(CALM_AT, self.loop.time())
        while self.loop.time() < bad_until + LONGEST_S and not self.watch.violations:
            await asyncio.sleep(5)
            if self.loop.time() >= CALM_AT:
                self.network.troubles.clear()
                self._aimed.clear()
            paused = any(self.loop.is_paused(replica.process) for replica in self.replicas)
            if paused or not all(replica.is_alive for replica in self.replicas):
                bad_until = max(bad_until, self.loop.time())
            if self.services.queued_bodies() or self._hooks_under_way or paused:
                quiet_since = None
            elif quiet_since is None:
                quiet_since = self.loop.time()
            elif self.loop.time() - quiet_since > QUIET_S:
                break
        if quiet_since is None and not self.watch.violations:
            left = [body[:160] for body in self.services.queued_bodies()]
            self.watch.fail(f"Not settled an hour after all was well again: {len(left)} messages are left: {left}")
        if not self.watch.violations:
            self.watch.check_settled()
            self.watch.check_votes(await self._stored_votes(), self._developers_who_voted())

    async def _stored_votes(self) -> Sequence[RatedNote]:
        self.network.troubles.clear()
        path, objects = self.services.state / "votes.sqlite", SimulatedObjectStore(self.network, self.services.bucket)
        store = BucketVoteStore(objects, ADDRESS) if self.services.disk is None else SqliteVoteStore(path)
        return await store.list_recent(0.0, VOTES_KEPT)

    def _developers_who_voted(self) -> int:
        return int(any(event.kind is EventKind.VOTE for event in self.script.events))


def _identity(message: HookMessage) -> str:
    return hash_name("delivery", message.key)


@contextmanager
def _own_loop(loop: SimulatedLoop) -> Iterator[None]:
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@lru_cache(maxsize=1)
def _freeze_modules() -> None:
    """Let the collection at the end of each play skip what was there before the first one."""
    gc.collect()
    gc.freeze()


def play(script: Script, *, trace: bool = False) -> Played:
    """Play a script to its end, or to its first violation."""
    _freeze_modules()
    loop, skews = SimulatedLoop(script.seed, jitter=script.jitter), dict[str, float]()
    network, played = Network(loop, script.seed, jitter=script.jitter), Played(script)
    with ExitStack() as opened:
        folder = Path(opened.enter_context(temporary_folder()))
        disk = SimulatedDisk(folder / "state", script.seed, network.note_use) if script.files else None
        if disk is not None:
            opened.enter_context(disk.watch())
        opened.enter_context(_own_loop(loop))
        opened.enter_context(virtual_time(loop.time, skews, script.seed))
        world = World(script, network, folder, skews, disk)
        if trace:
            network.trace = played.trace
        with simulated_parts(world.services):
            try:
                loop.run_until_complete(world.run())
            except SimulationStuckError as error:
                world.watch.fail(str(error))
        played.violations = [*world.watch.violations, *loop.unhandled]
        played.covered = world.network.covered
        played.virtual_s, played.calls = loop.time(), world.network.calls
        played.steps = sum(loop.steps.values())
        played.notes = sum(1 for _ in world.services.gitlab.bot_notes())
        played.orders = len({order.id for _, _, order, _ in world.services.outcomes})
        del world
    return played

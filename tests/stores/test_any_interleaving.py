"""S1, L2, L4: whatever the order in which orders and replies are delivered and redelivered, and wherever the processes
that work on them die, hang or lose an answer of the store, the session is one line and a valid conversation."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hummingbird.adapters.stores import bucket_journal
from hummingbird.adapters.stores.bucket_sessions import BucketSessions
from hummingbird.adapters.stores.folder_sessions import FolderSessions
from hummingbird.adapters.stores.objects import BucketObjects
from hummingbird.agent.loop import Loop
from hummingbird.agent.setup import Setup
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.assembly.held_session import held
from hummingbird.assembly.investigating import _done, _ended
from hummingbird.assembly.library import Agent
from hummingbird.domain.conversation import Conversation
from hummingbird.domain.errors import JournalTaken, ObjectsUnusable
from hummingbird.domain.history import problems
from hummingbird.domain.journal import (
    EndReason,
    Entry,
    ModelAnswered,
    RunEnded,
    RunStarted,
    Source,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.domain.messages import AssistantMessage, UserMessage
from hummingbird.domain.orders import Cause, WorkOrder
from hummingbird.domain.runs import Outcome
from hummingbird.domain.session_limits import LEASE_S
from hummingbird.domain.tools import ToolSpec
from hummingbird.lab.scripted import ScriptedClock, ScriptedModel, calls, says
from hummingbird.ports.journal import Journal
from hummingbird.ports.model import ModelReply, ModelRequest
from hummingbird.ports.sessions import Sessions
from hummingbird.ports.tool import ToolContext
from tests.contracts.sessions.mortal import Died, Life, MortalObjects, MortalSessions
from tests.contracts.sessions.unreliable import Mood
from tests.thoroughly import also, tries

ID = "session"
_NOT_TAKEN = frozenset({Mood.REFUSED, Mood.LATE})
CAUSES = (Cause.PIPELINE, Cause.REPLY, Cause.REPLY, Cause.MERGE_REQUEST)


def order(number: int) -> WorkOrder:
    return WorkOrder(
        id=f"order-{number}", session_id=ID, cause=CAUSES[number], workflow="w", project="acme/widgets", mr_iid=7
    )


ORDERS = [order(number) for number in range(len(CAUSES))]


def text_of(wanted: WorkOrder) -> str:
    return f'{{"order": "{wanted.id}"}}'


class Delivered(msgspec.Struct, frozen=True):
    """To a process that dies or hangs at that moment of its life, 0 for neither. `moods`: of its first writes."""

    order: int
    dies_at: int = 0
    hangs_at: int = 0
    moods: tuple[Mood, ...] = ()


class LeasesOver(msgspec.Struct, frozen=True):
    """Whoever hangs has given no sign of life for too long."""


class WentOn(msgspec.Struct, frozen=True):
    """The process that has hung the longest."""


class LateWrites(msgspec.Struct, frozen=True):
    """What was on its way to the store has arrived."""


Event: TypeAlias = Delivered | LeasesOver | WentOn | LateWrites


class Talking:
    """As much of an agent as an order needs, with a model that a script plays."""

    def __init__(self, journal: Journal, setup: Setup) -> None:
        self._journal, self._setup = journal, setup

    def entries(self) -> Sequence[Entry]:
        return self._journal.entries()

    async def arun(self, text: str, *, run_id: str, source: Source) -> Outcome:
        return await Loop(self._journal, self._setup, ID).run(text, run_id=run_id, source=source)

    async def ago_on(self) -> Outcome:
        return await Loop(self._journal, self._setup, ID).go_on()


class Looking:
    """A tool whose effects are counted by the call that had them."""

    spec = ToolSpec("look", "Looks.", {"type": "object"}, trusted=True)

    def __init__(self, life: Life, effects: Counter[str]) -> None:
        self._life, self._effects = life, effects

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        await self._life.moment()
        self._effects[context.call_id] += 1
        await self._life.moment()
        return f"seen {self._effects.total()}"


def answered(request: ModelRequest) -> ModelReply:
    """Looks twice at once, then once, then has an answer."""
    last = max(at for at, message in enumerate(request.messages) if isinstance(message, UserMessage))
    turns = sum(isinstance(message, AssistantMessage) for message in request.messages[last:])
    match turns:
        case 0:
            return calls(("look", f'{{"at": {last}}}'), ("look", "{}"))
        case 1:
            return calls(("look", f'{{"again": {last}}}'), text="once more")
        case _:
            return says(f"because of {last}")


class World:
    """One session, the processes that work on it, and somebody who reads along."""

    def __init__(self, sessions_of: Callable[["World", Life], Sessions]) -> None:
        self.clock = ScriptedClock()
        self.effects: Counter[str] = Counter()
        self.stores: list[MortalObjects] = []
        self._sessions_of = sessions_of
        self._reader = sessions_of(self, Life())
        self._seen: list[Entry] = []
        self._reading = asyncio.Lock()  # calls of one answer run, and are watched, at the same time
        self._hung: list[tuple[Life, asyncio.Task[None]]] = []
        self.behind = False

    async def happen(self, event: Event) -> None:
        match event:
            case Delivered():
                self.behind = self.behind or not _NOT_TAKEN.isdisjoint(event.moods)
                life = Life(event.dies_at, event.hangs_at, self.read_along)
                await self._deliver(ORDERS[event.order], life, event.moods)
            case LeasesOver():
                self.clock.pass_by(LEASE_S + 1)
            case WentOn() if self._hung:
                await self._go_on()
            case LateWrites():
                for store in self.stores:
                    await store.arrive()
            case _:
                pass
        await self.read_along()

    async def read_along(self) -> None:
        """What was read once is the beginning of whatever is read later, and no history is ever invalid."""
        async with self._reading:
            found = list(await self._reader.entries(ID))
            assert found[: len(self._seen)] == self._seen
            if len(found) > len(self._seen):
                assert not list(problems(Conversation.of(found).view()))
            self._seen = found

    async def finish(self) -> list[Entry]:
        """Everybody goes on, then every order is delivered once more, to somebody in good health."""
        while self._hung:
            await self._go_on()
        for wanted in ORDERS:
            self.clock.pass_by(LEASE_S + 1)
            await self._deliver(wanted, Life(watch=self.read_along), ())
        await self.read_along()
        return self._seen

    async def _deliver(self, wanted: WorkOrder, life: Life, moods: Sequence[Mood]) -> None:
        sessions = MortalSessions(self._sessions_of(self, life), life)
        if self.stores:
            self.stores[-1].moods.extend(moods)
        task = asyncio.create_task(self._work(sessions, wanted, life))
        hanging = asyncio.create_task(life.hanging.wait())
        await asyncio.wait({task, hanging}, return_when=asyncio.FIRST_COMPLETED)
        hanging.cancel()
        if task.done():
            await task
        else:
            self._hung.append((life, task))

    async def _go_on(self) -> None:
        life, task = self._hung.pop(0)
        life.go_on()
        await task

    async def _work(self, sessions: Sessions, wanted: WorkOrder, life: Life) -> None:
        """As an investigator conducts it. What finds the session in use, or nothing to reply to, the queue brings back
        later."""
        try:
            session = await held(sessions, ID, lambda _: None, needed=wanted.cause is Cause.REPLY)
            try:
                if not _done(session.journal.entries(), wanted):
                    agent = cast(Agent, Talking(session.journal, self._setup(life)))
                    await _ended(agent, wanted, text_of(wanted))
            finally:
                await session.put_away()
        except (JournalTaken, ObjectsUnusable):
            pass
        except BaseException:
            if not life.dead:
                raise

    def _setup(self, life: Life) -> Setup:
        model = ScriptedModel([answered] * 30)
        toolbox = Toolbox([Looking(life, self.effects)])
        return Setup(models=[model], toolbox=toolbox, system="You are under test.", clock=self.clock)


def check(world: World, entries: Sequence[Entry]) -> None:
    assert list(problems(Conversation.of(entries).view())) == []
    assert not Conversation.of(entries).unsettled
    heard, said = _heard(entries), Counter(entry.text for entry in entries if isinstance(entry, UserSaid))
    ended = Counter(entry.run_id for entry in entries if isinstance(entry, RunEnded))
    for wanted in ORDERS:
        assert _done(entries, wanted)
        assert heard[wanted.id] == ended[wanted.id] == said[text_of(wanted)] <= 1
        assert said[text_of(wanted)] == 1 or wanted.checked  # what began by itself may be answered already
    assert heard.total() == ended.total() == said.total()
    reasons = {entry.reason for entry in entries if isinstance(entry, RunEnded)}
    assert reasons <= {EndReason.COMPLETED, EndReason.INTERRUPTED}  # the last: its process died, and another order came
    for ids in (
        [entry.call_id for entry in entries if isinstance(entry, ModelAnswered)],
        [entry.call_id for entry in entries if isinstance(entry, ToolStarted)],
        [entry.call_id for entry in entries if isinstance(entry, ToolFinished)],
    ):
        assert len(ids) == len(set(ids))
    if not world.behind:  # a run goes on without a store that is away (S2): nobody else knows then what it has begun
        assert set(world.effects.values()) <= {1}
        assert set(world.effects) <= {entry.call_id for entry in entries if isinstance(entry, ToolStarted)}


def _heard(entries: Sequence[Entry]) -> Counter[str]:
    """How often each run was begun and had something to answer."""
    found: Counter[str] = Counter()
    run_id = ""
    for entry in entries:
        if isinstance(entry, RunStarted):
            run_id = entry.run_id
        elif isinstance(entry, UserSaid):
            found[run_id] += 1
    return found


numbers = st.integers(0, len(ORDERS) - 1)
moments = st.integers(1, 90)
some_moods = st.lists(st.sampled_from([mood for mood in Mood if mood is not Mood.HANGING]), max_size=12).map(tuple)
harmless = st.one_of(
    st.builds(Delivered, numbers),
    st.builds(Delivered, numbers, dies_at=moments),
    st.builds(Delivered, numbers, dies_at=moments),
    st.builds(Delivered, numbers, hangs_at=moments),
    st.builds(Delivered, numbers, hangs_at=moments),
    st.just(LeasesOver()),
    st.just(LeasesOver()),
    st.just(WentOn()),
)
unsure = st.one_of(
    harmless,
    st.builds(Delivered, numbers, moods=some_moods),
    st.builds(Delivered, numbers, hangs_at=moments, moods=some_moods),
    st.just(LateWrites()),
)


async def play(world: World, events: Sequence[Event]) -> None:
    before = asyncio.all_tasks()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bucket_journal, "SEGMENT_BYTES", 700)
            patch.setattr(bucket_journal, "COMMIT_REST_S", 0.0)
            for event in events:
                await world.happen(event)
            check(world, await world.finish())
    finally:
        left = asyncio.all_tasks() - before  # signs of life of those who died
        for task in left:
            task.cancel()
        with suppress(Died):
            await asyncio.gather(*left, return_exceptions=True)


def in_a_bucket() -> World:
    bucket = BucketObjects.in_memory()

    def sessions(world: World, life: Life) -> Sessions:
        world.stores.append(MortalObjects(bucket, life))
        return BucketSessions(world.stores[-1], "memory://", world.clock.now)

    return World(sessions)


@pytest.mark.parametrize("beginning", [1, *map(also, range(2, 6))])
async def test_whoever_hangs_at_any_moment_and_is_followed_does_nothing_twice_s1(beginning: int) -> None:
    for moment in range(2 * beginning, 101, 10):
        await play(in_a_bucket(), [Delivered(0, hangs_at=moment), LeasesOver(), Delivered(0), WentOn()])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "hanging",
    [
        [Delivered(1, hangs_at=7)],  # a reply that finds nothing, and takes back what it had opened
        [Delivered(1, dies_at=7), LeasesOver(), Delivered(0, hangs_at=5)],  # who clears away what such a one left
    ],
)
async def test_who_hangs_before_a_delete_leaves_a_new_session_alone(hanging: list[Event]) -> None:
    await play(in_a_bucket(), [*hanging, LeasesOver(), Delivered(0), WentOn()])


@pytest.mark.thorough
@settings(max_examples=tries(45), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events=st.lists(harmless, min_size=1, max_size=9))
async def test_any_interleaving_is_one_valid_conversation_in_a_bucket_s1(events: list[Event]) -> None:
    await play(in_a_bucket(), events)


@pytest.mark.thorough
@settings(max_examples=tries(45), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events=st.lists(unsure, min_size=1, max_size=9))
async def test_any_interleaving_with_a_store_that_loses_answers_is_one_valid_conversation_s1(
    events: list[Event],
) -> None:
    await play(in_a_bucket(), events)


@pytest.mark.thorough
@settings(max_examples=tries(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events=st.lists(harmless, min_size=1, max_size=9))
async def test_any_interleaving_is_one_valid_conversation_in_a_directory_s1(events: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await play(World(lambda world, life: FolderSessions(Path(folder))), events)

"""Whatever the order in which orders and replies are delivered and redelivered, and wherever the processes
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

from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.app.investigation import _entries_of_finished_run, _run_or_resume
from hummingbird.app.library import Agent
from hummingbird.app.session_holder import open_session
from hummingbird.core.conversation import Conversation
from hummingbird.core.errors import ObjectStoreUnusable, SessionTaken
from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import (
    EndReason,
    JournalEntry,
    MessageSource,
    ModelAnswered,
    RunEnded,
    RunStarted,
    ToolFinished,
    ToolStarted,
    UserSaid,
)
from hummingbird.core.messages import AssistantMessage, UserMessage, find_problems
from hummingbird.core.orders import OrderCause, WorkOrder
from hummingbird.core.protocols.model import ModelReply, ModelRequest
from hummingbird.core.protocols.sessions import Journal, SessionStore
from hummingbird.core.protocols.tools import ToolContext
from hummingbird.core.sessions import LEASE_S
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.storage import bucket_journal
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.object_store import BucketObjectStore
from tests.contracts.sessions.mortal import Died, Life, MortalObjects, MortalSessions
from tests.contracts.sessions.unreliable import Mood
from tests.standins.scripted_model import ScriptedClock, ScriptedModel, text_reply, tool_call_reply
from tests.thoroughly import also, tries

ID = "session"
_NOT_TAKEN = frozenset({Mood.REFUSED, Mood.LATE})
CAUSES = (OrderCause.PIPELINE, OrderCause.REPLY, OrderCause.REPLY, OrderCause.MERGE_REQUEST)


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

    def __init__(self, journal: Journal, setup: LoopConfig) -> None:
        self._journal, self._setup = journal, setup

    def entries(self) -> Sequence[JournalEntry]:
        return self._journal.entries()

    async def arun(self, text: str, *, run_id: str, source: MessageSource) -> RunOutcome:
        return await AgentLoop(self._journal, self._setup, ID).run(text, run_id=run_id, source=source)

    async def ago_on(self) -> RunOutcome:
        return await AgentLoop(self._journal, self._setup, ID).resume()


class Looking:
    """A tool whose effects are counted by the call that had them."""

    spec = ToolSpec("look", "Looks.", {"type": "object"}, trusted=True)

    def __init__(self, life: Life, effects: Counter[str]) -> None:
        self._life, self._effects = life, effects

    def is_available(self) -> bool:
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
            return tool_call_reply(("look", f'{{"at": {last}}}'), ("look", "{}"))
        case 1:
            return tool_call_reply(("look", f'{{"again": {last}}}'), text="once more")
        case _:
            return text_reply(f"because of {last}")


class World:
    """One session, the processes that work on it, and somebody who reads along."""

    def __init__(self, sessions_of: Callable[["World", Life], SessionStore]) -> None:
        self.clock = ScriptedClock()
        self.effects: Counter[str] = Counter()
        self.stores: list[MortalObjects] = []
        self._sessions_of = sessions_of
        self._reader = sessions_of(self, Life())
        self._seen: list[JournalEntry] = []
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
                self.clock.advance(LEASE_S + 1)
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
            found = list(await self._reader.load_entries(ID))
            assert found[: len(self._seen)] == self._seen
            if len(found) > len(self._seen):
                assert not list(find_problems(Conversation.from_entries(found).view()))
            self._seen = found

    async def finish(self) -> list[JournalEntry]:
        """Everybody goes on, then every order is delivered once more, to somebody in good health."""
        while self._hung:
            await self._go_on()
        for wanted in ORDERS:
            self.clock.advance(LEASE_S + 1)
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

    async def _work(self, sessions: SessionStore, wanted: WorkOrder, life: Life) -> None:
        """As an investigator conducts it. What finds the session in use, or nothing to reply to, the queue brings back
        later."""
        try:
            session = await open_session(sessions, ID, lambda _: None, needed=wanted.cause is OrderCause.REPLY)
            try:
                if not _entries_of_finished_run(session.journal.entries(), wanted):
                    agent = cast(Agent, Talking(session.journal, self._setup(life)))
                    await _run_or_resume(agent, wanted, text_of(wanted))
            finally:
                await session.store_and_release()
        except (SessionTaken, ObjectStoreUnusable):
            pass
        except BaseException:
            if not life.dead:
                raise

    def _setup(self, life: Life) -> LoopConfig:
        model = ScriptedModel([answered] * 30)
        toolbox = Toolbox([Looking(life, self.effects)])
        return LoopConfig(models=[model], toolbox=toolbox, system="You are under test.", clock=self.clock)


def check(world: World, entries: Sequence[JournalEntry]) -> None:
    assert list(find_problems(Conversation.from_entries(entries).view())) == []
    assert not Conversation.from_entries(entries).pending_calls
    heard, said = _heard(entries), Counter(entry.text for entry in entries if isinstance(entry, UserSaid))
    ended = Counter(entry.run_id for entry in entries if isinstance(entry, RunEnded))
    for wanted in ORDERS:
        assert _entries_of_finished_run(entries, wanted)
        assert heard[wanted.id] == ended[wanted.id] == said[text_of(wanted)] <= 1
        assert said[text_of(wanted)] == 1 or wanted.needs_check  # what began by itself may be answered already
    assert heard.total() == ended.total() == said.total()
    reasons = {entry.reason for entry in entries if isinstance(entry, RunEnded)}
    assert reasons <= {EndReason.COMPLETED, EndReason.INTERRUPTED}  # the last: its process died, and another order came
    for ids in (
        [entry.call_id for entry in entries if isinstance(entry, ModelAnswered)],
        [entry.call_id for entry in entries if isinstance(entry, ToolStarted)],
        [entry.call_id for entry in entries if isinstance(entry, ToolFinished)],
    ):
        assert len(ids) == len(set(ids))
    if not world.behind:  # a run goes on without a store that is away: nobody else knows then what it has begun
        assert set(world.effects.values()) <= {1}
        assert set(world.effects) <= {entry.call_id for entry in entries if isinstance(entry, ToolStarted)}


def _heard(entries: Sequence[JournalEntry]) -> Counter[str]:
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
    bucket = BucketObjectStore.in_memory()

    def sessions(world: World, life: Life) -> SessionStore:
        world.stores.append(MortalObjects(bucket, life))
        return BucketSessionStore(world.stores[-1], "memory://", world.clock.now)

    return World(sessions)


@pytest.mark.parametrize("beginning", [1, *map(also, range(2, 6))])
async def test_whoever_hangs_at_any_moment_and_is_followed_does_nothing_twice(beginning: int) -> None:
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
async def test_any_interleaving_is_one_valid_conversation_in_a_bucket(events: list[Event]) -> None:
    await play(in_a_bucket(), events)


@pytest.mark.thorough
@settings(max_examples=tries(45), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events=st.lists(unsure, min_size=1, max_size=9))
async def test_any_interleaving_with_a_store_that_loses_answers_is_one_valid_conversation(
    events: list[Event],
) -> None:
    await play(in_a_bucket(), events)


@pytest.mark.thorough
@settings(max_examples=tries(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events=st.lists(harmless, min_size=1, max_size=9))
async def test_any_interleaving_is_one_valid_conversation_in_a_directory(events: list[Event]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await play(World(lambda world, life: FolderSessionStore(Path(folder))), events)

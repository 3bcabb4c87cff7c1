"""A conversation with the agent, for whoever shows it (C1–C5): fulfils chat.partner.Partner.

Holds a session only while something is done in it, and follows its journal, so that what is shown of it is what is
kept, whoever wrote it.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from uuid import uuid4

from hummingbird.agent.budget import ceiling
from hummingbird.agent.chat_prompt import CHAT_RULES, sizes
from hummingbird.agent.interruptible import Interrupted, Interruptible
from hummingbird.agent.making_room import RoomMaker
from hummingbird.agent.state import RunState
from hummingbird.assembly.chat_desk import WHEREABOUTS, About, ChatDesk
from hummingbird.assembly.chat_mind import Mind, memory_of
from hummingbird.assembly.chat_rules import usual
from hummingbird.assembly.library import Agent
from hummingbird.assembly.session_desk import SessionDesk
from hummingbird.chat.partner import Offered, Preview, Standing
from hummingbird.domain.chat_limits import PROMPT_GRACE_S
from hummingbird.domain.errors import NothingGained, SandboxUnavailable, UsageFault
from hummingbird.domain.events import Told
from hummingbird.domain.journal import Delegated, Entry, SessionOpened, ToolDecided, ToolStarted
from hummingbird.domain.memory import Paper
from hummingbird.domain.runs import Outcome
from hummingbird.domain.sessions import Summary, about, summary
from hummingbird.domain.text import shortened
from hummingbird.domain.todos import Todo, Todos
from hummingbird.ports.context import Projection
from hummingbird.ports.sandbox import ROOT
from hummingbird.ports.session_index import Hit

_NUMBER = re.compile("[0-9]{1,9}")
NEWS_S = 1.0  # between two looks at what goes on in the background
_GRANT_CHARS = 160


class ChatPartner:
    def __init__(self, desk: ChatDesk, past: SessionDesk | None, subject: About) -> None:
        self._desk, self._past, self._subject = desk, past, subject
        self._asked_about = subject
        self._go_to(uuid4().hex, RunState(), (), subject)
        self._agent: Agent | None = None
        self._mind: Mind | None = None
        self._sandbox = True
        self._model = ""
        self._last_model = ""  # of the agent before: the next one is made when something is said
        self._preview: tuple[int, Projection] | None = None
        self._entering = Interruptible(PROMPT_GRACE_S)
        self._beside: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """What goes on beside the conversation: the index is brought up to date, processes that end are told of."""
        for work in (self._refreshed(), self._watched(), self._desk.ready()):
            task = asyncio.create_task(work)
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)

    async def prepare(self) -> None:
        """Everything that can be wrong with the beginning is told now. Raises OperatorError."""
        await self._ready()
        if self._desk.servers.expected:  # their tools are not there yet: an agent that is used is made with them
            await self._leave(keep_mind=True)

    async def sizes(self) -> Sequence[tuple[str, int]]:
        """What each part of the prompt and each tool weighs."""
        async with self._turn() as agent:
            await agent.room()
            assert self._mind is not None
            toolbox = agent.setup.toolbox
            return sizes(self._desk.prompt_parts(self._mind.parts, self._subject, toolbox.notes), toolbox.definitions)

    # What is asked between two runs

    def standing(self) -> Standing:
        state, agent = self._state, self._agent
        setup = None if agent is None else agent.setup
        models = {} if setup is None else {model.name: model for model in setup.models}
        model = models.get(state.model) or next(iter(models.values()), None)
        most = 0 if setup is None or model is None else ceiling(setup.limits, model.context_tokens)
        delegate = None if agent is None else agent.delegate
        return Standing(
            session_id=self._session_id,
            model=self._model or (model.name if model else state.model or self._last_model),
            context_tokens=state.context_tokens,
            ceiling=most,
            bill=state.ledger.bill(),
            plan=self._desk.parts.plan,
            background=(*self._desk.terminal.standing(), *(delegate.standing() if delegate else ())),
        )

    async def listed(self, limit: int, words: str = "") -> Sequence[Summary]:
        past = self._needed_past()
        await past.refresh()
        return await past.listed(limit, text=words)

    async def search(self, words: str, limit: int) -> Sequence[Hit]:
        past = self._needed_past()
        await past.caught_up()
        return await past.search(words, limit)

    def tools(self) -> Sequence[Offered]:
        agent = self._made()
        rules = self._desk.rules.rules
        return [
            Offered(spec.name, spec.toolset, shortened(spec.description.split(". ")[0], 100), usual(rules, spec))
            for spec in (tool.spec for tool in agent.tools)
        ]

    def memory(self) -> str:
        remembered = memory_of(self._desk.places.state, self._subject.project).read()
        parts = []
        for paper in Paper:
            text = remembered.of(paper).text
            parts.append(
                f"## {paper.file} ({len(text):,} of {self._desk.room.of(paper):,} characters)\n\n{text or '—'}"
            )
        return "\n\n".join([*parts, *remembered.faults])

    def todos(self) -> Sequence[Todo]:
        return Todos.of(self._desk.keeping.entries()).all

    def grants(self) -> Sequence[str]:
        started, lines = dict[tuple[int, str], str](), list[str]()
        kept = self._desk.keeping.entries()
        entries = [(e.task, e.entry) if isinstance(e, Delegated) else (0, e) for e in kept]
        for task, entry in entries:
            if isinstance(entry, ToolStarted):
                started[task, entry.call_id] = shortened(entry.arguments, _GRANT_CHARS)
        for task, entry in entries:
            if isinstance(entry, ToolDecided) and entry.scope in {"session", "always"}:
                lines.append(f"{entry.name} {started.get((task, entry.call_id), '')} ({entry.scope})")
        return lines

    async def save(self, folder: str) -> Path:
        await self.settled()
        place = Path(folder or f"hummingbird-{self._session_id[:8]}")
        return await self._needed_past().exported(self._session_id, self._desk.parts.workspace / _at_home(place))

    # What is said

    async def say(self, text: str) -> Outcome:
        self._entering.reset()
        async with AsyncExitStack() as stack:
            try:
                agent = await self._entering.run(stack.enter_async_context(self._turn()))
            except Interrupted as stopped:
                raise UsageFault("Interrupted before it was sent: nothing was said.") from stopped
            return await agent.arun(text, self._frozen())

    def interrupt(self) -> None:
        self._entering.stop()
        if self._agent is not None:
            self._agent.interrupt()

    def steer(self, text: str) -> None:
        if self._agent is None:
            raise UsageFault("Nothing is running; send it as a message.")
        self._agent.steer(text)

    async def attach(self, name: str, content: bytes) -> str:
        path = f"{ROOT}/attached/{uuid4().hex[:6]}-{name}"
        async with self._turn() as agent:
            await agent.put_file(path, content)
        return path

    async def stop(self, which: str = "") -> str:
        delegate = None if self._agent is None else self._agent.delegate
        if which.strip():
            if not _NUMBER.fullmatch(which.strip()):
                what = shortened(which, 40)
                raise UsageFault(
                    f"{what!r} is no number; /stop lists what goes on when it is given none that is there."
                )
            number = int(which)
            return delegate.cancel(number) if delegate and number > 1_000 else await self._desk.terminal.stop(number)
        self.interrupt()
        if delegate is not None:
            delegate.cancel()
        return await self._desk.terminal.stop(None)

    # Which session, which model

    async def new(self) -> str:
        await self._leave()
        self._go_to(uuid4().hex, RunState(), (), self._asked_about)
        return self._session_id

    async def resume(self, beginning: str, named: About | None = None) -> Summary:
        """What the session is about stays what it is about. Raises UsageFault if it is something else than what was
        `named` along with it."""
        session_id = await self._needed_past().named(beginning)
        async with self._desk.keeping.turn(session_id, needed=True) as session:
            entries = tuple(session.journal.entries())
        subject = _subject(entries)
        if named is not None:
            _agreed(session_id, subject, named)
        await self._leave()
        state, made = await asyncio.to_thread(lambda: (RunState.of(entries), summary(entries, session_id)))
        self._go_to(session_id, state, entries, subject)
        return made

    def _go_to(self, session_id: str, state: RunState, entries: Sequence[Entry], subject: About) -> None:
        self._session_id, self._state, self._subject = session_id, state, subject
        self._desk.keeping.at(session_id, entries)

    async def newest(self, named: About | None = None) -> Summary:
        """Goes on with the session that changed last. Raises UsageFault if there is none, and as `resume`."""
        past = self._needed_past()
        await past.refresh()
        for found in await past.listed(1):
            return await self.resume(found.session_id, named)
        raise UsageFault("There is no session to go on with yet; start one with hummingbird chat.")

    async def switch_model(self, name: str) -> str:
        agent = self._made()
        self._model = agent.switch_model(name)
        return self._model

    # What is done to a conversation

    async def compress(self, focus: str = "") -> Preview:
        async with self._revising() as room:
            try:
                made = await room.proposed(focus)
            except NothingGained as error:
                return Preview(refusal=str(error))
        self._preview = len(self._desk.keeping.entries()), made
        return Preview(made.last - made.first, made.tokens_before, made.tokens_after, made.summary)

    async def apply(self, preview: Preview) -> None:
        async with self._revising() as room:
            if self._preview is None or self._preview[0] != len(self._desk.keeping.entries()):
                raise UsageFault("The conversation has gone on since; look again with /compress.")
            room.apply(self._preview[1])
        self._preview = None

    async def uncompress(self) -> bool:
        async with self._revising() as room:
            return room.take_back()

    async def undo(self) -> str:
        async with self._revising() as room:
            return room.undo()

    async def undo_edit(self) -> str:
        return await asyncio.to_thread(self._desk.workspace.undo)

    def go_on_from(self, before: "ChatPartner") -> None:
        """Who had the same conversation in the same workspace until now."""
        self._desk.workspace.go_on_from(before._desk.workspace)

    async def close(self) -> None:
        for task in tuple(self._beside):
            task.cancel()
        if self._beside:
            await asyncio.wait(set(self._beside))
        await self._leave()
        if self._past is not None:
            await self._past.rest()
        await self._desk.close()
        await self.settled()

    async def settled(self) -> None:
        """What was said is kept whole, with the files beside it, and the session is anybody's."""
        await self._desk.keeping.settled()

    # Behind it

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Agent]:
        """The session, held, and its agent. What somebody else has written since is in it."""
        await self._desk.ready(telling=True)
        await self._ready()
        async with self._desk.keeping.turn(self._session_id) as session:
            entries = tuple(session.journal.entries())
            self._state = await asyncio.to_thread(self._state.caught_up, entries)
            agent = await self._equipped()
            agent.know(self._state)
            try:
                yield agent
            finally:
                agent.put_down()

    async def _ready(self) -> None:
        if self._mind is None:
            self._mind = await asyncio.to_thread(self._desk.mind, self._subject.project)
            for sentence in self._mind.faults:
                self._desk.parts.on_trouble(sentence)
        self._made()

    async def _equipped(self) -> Agent:
        """With a sandbox; without one where there is none, from then on."""
        agent = self._made()
        try:
            await agent.equipped()
        except SandboxUnavailable as error:
            self._desk.parts.on_trouble(f"Going on without a sandbox. {error}")
            self._sandbox, self._agent = False, None
            await agent.aclose()
            return self._made()
        return agent

    def _made(self) -> Agent:
        if self._agent is None:
            self._mind = self._mind or self._desk.mind(self._subject.project)
            self._agent = self._desk.agent(self._session_id, self._subject, self._mind, sandbox=self._sandbox)
            if self._model:
                self._agent.switch_model(self._model)
        return self._agent

    @asynccontextmanager
    async def _revising(self) -> AsyncIterator[RoomMaker]:
        async with self._turn() as agent:
            room = await agent.room(self._frozen())
            yield room
            await room.commit()

    def _frozen(self) -> str | None:
        """The prompt that a chat began with stays its prompt (C7, L5); memory that has changed is for the next."""
        system, here = self._state.conversation.system, self._desk.whereabouts
        same_place = here in system if here else WHEREABOUTS not in system  # its files are those of another folder
        return system if system.startswith(CHAT_RULES[:200]) and same_place else None

    async def _leave(self, *, keep_mind: bool = False) -> None:
        agent, self._agent, self._preview = self._agent, None, None
        self._last_model = agent.setup.models[0].name if agent else self._last_model
        self._mind = self._mind if keep_mind else None
        if agent is not None:
            await agent.aclose()

    def _needed_past(self) -> SessionDesk:
        if self._past is None:
            raise UsageFault("The index of sessions cannot be used here, as was told at the beginning.")
        return self._past

    async def _refreshed(self) -> None:
        if self._past is not None:
            await self._past.caught_up()

    async def _watched(self) -> None:
        while True:
            await asyncio.sleep(NEWS_S)
            self._desk.tell_trouble()
            for sentence in self._desk.terminal.news():
                if self._desk.parts.on_event is not None:
                    self._desk.parts.on_event(Told(sentence))


def _at_home(place: Path) -> Path:
    """Raises UsageFault for the home of somebody who is not known here."""
    try:
        return place.expanduser()
    except RuntimeError as error:
        raise UsageFault(f"There is no home directory for {shortened(str(place), 80)}: name the whole path.") from error


def _subject(entries: Sequence[Entry]) -> About:
    begun = about(entries)
    talked = any(isinstance(entry, SessionOpened) and entry.workflow for entry in entries[:1])
    return About(begun.project, begun.workflow, prompted=talked)


def _agreed(session_id: str, is_about: About, named: About) -> None:
    for option, theirs, ours in (
        ("--project", is_about.project, named.project),
        ("--workflow", is_about.workflow, named.workflow),
    ):
        if ours and ours.casefold() != theirs.casefold():
            raise UsageFault(
                f"Session {session_id[:8]} is about {theirs or 'none'}, and {option} says {ours}: leave {option} out "
                "to go on with it, or leave the session out to begin one."
            )

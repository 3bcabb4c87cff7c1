"""`hummingbird chat`: holds a conversation with the agent, in a terminal, over a pipe, or for one question.

`ChatPartner` holds a session only while something is done in it. Between two messages others may continue the session,
so it reads the journal again before each turn.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from hummingbird.agent.budget import context_ceiling
from hummingbird.agent.context_files.memory_pages import MemoryKind
from hummingbird.agent.interrupts import PROMPT_GRACE_S, InterruptibleWork, WorkInterrupted
from hummingbird.agent.journal_views import find_user_requests
from hummingbird.agent.prompts import CHAT_RULES, prompt_sizes
from hummingbird.agent.run_state import RunState
from hummingbird.agent.session_compactor import SessionCompactor
from hummingbird.agent.todo_list import Todo, TodoList
from hummingbird.app.chat_context import WORKSPACE_SENTENCE_START, ChatContext, ChatOptions, ChatSubject
from hummingbird.app.chat_memory import ChatKnowledge, open_memory
from hummingbird.app.chat_permissions import default_action, parse_personal_rule
from hummingbird.app.chat_workbench import (
    COMMANDS_FOLDER,
    NotesForModel,
    OwnCommands,
    git_diff,
    measure_context,
    needs_title,
    note_about_command,
    remember_line,
    run_own_command,
    without_notes,
    write_title,
)
from hummingbird.app.library import Agent
from hummingbird.app.model_choice import selectable_models
from hummingbird.app.session_catalog import SessionCatalog, fork_session, open_session_catalog
from hummingbird.app.session_holder import TurnSessionHolder
from hummingbird.app.stores import session_store, spending_ledger, state_paths
from hummingbird.chat.partner import (
    ChatPermissions,
    ChatStatus,
    ChatToolInfo,
    CompactionPreview,
    LastExchange,
    find_last_exchange,
)
from hummingbird.chat.screen import SESSION_IMAGE_BYTES
from hummingbird.config.field_types import PROJECT
from hummingbird.core.errors import (
    CompactionFailed,
    JournalUnwritable,
    SandboxUnavailable,
    SessionUnreadable,
    UsageError,
)
from hummingbird.core.events import RunOutcome, StatusMessage
from hummingbird.core.journal import (
    Delegated,
    JournalEntry,
    SessionOpened,
    SessionRenamed,
    ToolDecided,
    ToolStarted,
)
from hummingbird.core.messages import ImagePart, UserMessage
from hummingbird.core.permissions import GrantScope, PermissionMode
from hummingbird.core.projections import render_transcript
from hummingbird.core.protocols.context_engine import CompactionProposal
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT
from hummingbird.core.protocols.sessions import SearchHit
from hummingbird.core.sessions import SUMMARY_CHARS, SessionSummary, find_subject, summarise_session
from hummingbird.core.text import replace_surrogates, shorten_line

_IMAGE_NAME = re.compile(r"\[image \d+: [^\n]*?, [\d,]+ bytes\]")
_NUMBER = re.compile("[0-9]{1,9}")
_TITLE_GRACE_S = 1.0  # that leaving waits for the title of a session
BACKGROUND_POLL_S = 1.0  # between two checks of background processes
_GRANT_CHARS = 160
_LISTED_SESSIONS = 10_000  # that are looked through for the newest one of a folder


class ChatPartner:
    """Implements `chat.partner.Partner` with an `Agent` per session."""

    def __init__(self, context: ChatContext, past: SessionCatalog | None, subject: ChatSubject) -> None:
        self._context, self._catalog, self._subject = context, past, subject
        self._new_session_subject = subject
        self._switch_session(uuid4().hex, RunState(), (), subject)
        self._agent: Agent | None = None
        self._knowledge: ChatKnowledge | None = None
        self._sandbox = True
        self._model = ""
        self._last_model = ""  # of the previous agent: the next one is created with the next message
        self._context_limit = 0  # of the last agent, until the next one is there
        self._preview: tuple[int, CompactionProposal] | None = None
        self._notes = NotesForModel()
        self._edit_marks: list[int] = []  # how many edits there were when each message of this chat was sent
        self._images: dict[str, ImagePart] = {}  # by the text that stands for them
        self._titling: asyncio.Task[None] | None = None
        self._entering = InterruptibleWork(PROMPT_GRACE_S)
        self._background_tasks: set[asyncio.Task[None]] = set()

    def start_background_tasks(self) -> None:
        """Update the session index, connect to MCP servers and report finished processes, beside the conversation."""
        for work in (self._refresh_catalog(), self._watch_background(), self._context.wait_for_servers()):
            task = asyncio.create_task(work)
            self._background_tasks.add(task)
            task.add_done_callback(self._background_tasks.discard)

    async def prepare(self) -> None:
        """Create the agent now, so that wrong settings show before the first message.

        Raises OperatorError.
        """
        await self._prepare_agent()
        if self._context.servers.has_servers:  # create the agent again once their tools are known
            await self._close_agent(keep_mind=True)

    async def measure_prompt(self) -> Sequence[tuple[str, int]]:
        """Return the size of each part of the prompt and of each tool."""
        async with self._hold_turn() as agent:
            await agent.open_compactor()
            assert self._knowledge is not None
            toolbox = agent.setup.toolbox
            return prompt_sizes(
                self._context.complete_prompt_parts(self._knowledge.parts, self._subject, toolbox.notes),
                toolbox.definitions,
            )

    # Questions between two runs

    def status(self) -> ChatStatus:
        state, agent = self._state, self._agent
        setup = None if agent is None else agent.setup
        models = {} if setup is None else {model.name: model for model in setup.models}
        model = models.get(state.model) or next(iter(models.values()), None)
        if setup is not None and model is not None:
            self._context_limit = context_ceiling(setup.limits, model.context_tokens)
        delegate = None if agent is None else agent.delegate
        return ChatStatus(
            session_id=self._session_id,
            model=self._model or (model.name if model else state.model or self._last_model),
            context_tokens=state.context_tokens,
            context_limit=self._context_limit,
            bill=state.ledger.bill(),
            mode=self._context.chat_rules.mode,
            is_kept=self._context.session_holder.keeps(self._session_id),
            background=(*self._context.terminal.list_running(), *(delegate.status_lines() if delegate else ())),
        )

    async def list_sessions(self, limit: int, words: str = "") -> Sequence[SessionSummary]:
        past = self._require_catalog()
        await past.refresh()
        return await past.list_sessions(limit, text=words)

    async def search_sessions(self, words: str, limit: int) -> Sequence[SearchHit]:
        past = self._require_catalog()
        await past.catch_up()
        return await past.search(words, limit)

    def tools(self) -> Sequence[ChatToolInfo]:
        agent = self._get_agent()
        rules = self._context.rules.rules
        return [
            ChatToolInfo(
                spec.name, spec.toolset, shorten_line(spec.description.split(". ")[0], 100), default_action(rules, spec)
            )
            for spec in (tool.spec for tool in agent.tools)
        ]

    def memory_text(self) -> str:
        remembered = open_memory(self._context.places.state, self._subject.project).read()
        parts = []
        for paper in MemoryKind:
            text = remembered.page_of(paper).text
            parts.append(
                f"## {paper.file_name} ({len(text):,} of {self._context.room.chars_for(paper):,} "
                f"characters)\n\n{text or '—'}"
            )
        return "\n\n".join([*parts, *remembered.faults])

    def todos(self) -> Sequence[Todo]:
        return TodoList.from_entries(self._context.session_holder.entries()).all

    def switch_mode(self, mode: PermissionMode) -> None:
        self._context.chat_rules.mode = mode

    def permissions(self) -> ChatPermissions:
        rules = self._context.chat_rules
        configured = self._context.parts.configuration.chat.permissions
        return ChatPermissions(
            rules.mode,
            tuple((one.line, one.scope.value) for one in rules.personal),
            tuple(one.to_rule().title for one in configured),
        )

    async def add_permission(self, line: str, *, always: bool = False) -> None:
        rule = parse_personal_rule(line, GrantScope.ALWAYS if always else GrantScope.SESSION)
        await self._context.chat_rules.add(rule, "/permissions")

    async def remove_permission(self, number: int) -> str:
        return (await self._context.chat_rules.remove(number)).line

    def grants(self) -> Sequence[str]:
        started, lines = dict[tuple[int, str], str](), list[str]()
        kept = self._context.session_holder.entries()
        entries = [(e.task, e.entry) if isinstance(e, Delegated) else (0, e) for e in kept]
        for task, entry in entries:
            if isinstance(entry, ToolStarted):
                started[task, entry.call_id] = shorten_line(entry.arguments, _GRANT_CHARS)
        for task, entry in entries:
            if isinstance(entry, ToolDecided) and entry.scope in {"session", "always"}:
                lines.append(f"{entry.name} {started.get((task, entry.call_id), '')} ({entry.scope})")
        return lines

    async def export_session(self, folder: str) -> Path:
        await self.wait_until_stored()
        place = Path(folder or f"hummingbird-{self._session_id[:8]}")
        return await self._require_catalog().export_session(
            self._session_id, self._context.parts.workspace / _expand_home(place)
        )

    # Messages

    async def say(self, text: str) -> RunOutcome:
        self._entering.reset()
        async with AsyncExitStack() as stack:
            try:
                agent = await self._entering.run(stack.enter_async_context(self._hold_turn()))
            except WorkInterrupted as stopped:
                raise UsageError("Interrupted before it was sent: nothing was said.") from stopped
            self._edit_marks.append(self._context.workspace.change_position)
            images = [image for named, image in self._images.items() if named in text]
            outcome = await agent.arun(self._notes.append_to(text), self._session_prompt(), images=images)
            if outcome.answered and self._context.gives_titles and needs_title(agent.entries(), self.messages()):
                self._titling = asyncio.create_task(
                    write_title(self._context.session_holder, agent.setup, self._session_id, text, outcome.text)
                )
            return outcome

    def interrupt(self) -> None:
        self._entering.stop()
        if self._agent is not None:
            self._agent.interrupt()

    def steer(self, text: str) -> None:
        if self._agent is None:
            raise UsageError("Nothing is running that could be steered; send the text as a message.")
        self._agent.steer(text)

    async def attach(self, name: str, content: bytes) -> str:
        path = f"{SANDBOX_ROOT}/attached/{uuid4().hex[:6]}-{name}"
        async with self._hold_turn() as agent:
            await agent.put_file(path, content)
        return path

    def attach_image(self, image: ImagePart) -> str:
        model = self._get_agent().setup.models[0]
        if not model.takes_images:
            raise UsageError(f"The model {model.name} takes no images, so nothing is sent: choose another with /model.")
        said = (one for one in self._state.conversation.view() if isinstance(one, UserMessage))
        if sum(len(each.data) for one in said for each in one.images) + len(image.data) > SESSION_IMAGE_BYTES * 4 // 3:
            raise UsageError(
                f"The images of this session have more than {SESSION_IMAGE_BYTES:,} bytes: go on in a /new one."
            )
        named = (
            f"[image {len(self._images) + 1}: {image.name}, {len(image.data) * 3 // 4 - image.data.count('='):,} bytes]"
        )
        self._images[named] = image
        return named

    async def stop(self, which: str = "") -> str:
        delegate = None if self._agent is None else self._agent.delegate
        if which.strip():
            if not _NUMBER.fullmatch(which.strip()):
                what = shorten_line(which, 40)
                raise UsageError(
                    f"{what!r} is not a number; /stop lists what goes on when it is given none that is there."
                )
            number = int(which)
            return delegate.cancel(number) if delegate and number > 1_000 else await self._context.terminal.stop(number)
        self.interrupt()
        if delegate is not None:
            delegate.cancel()
        return await self._context.terminal.stop(None)

    # Sessions and models

    async def start_session(self) -> str:
        await self._close_agent()
        self._switch_session(uuid4().hex, RunState(), (), self._new_session_subject)
        return self._session_id

    async def resume(self, beginning: str, named: ChatSubject | None = None) -> SessionSummary:
        """Resume the session whose id starts with this text; it keeps its subject.

        Raises UsageError if that differs from the subject that was `named` with it.
        """
        session_id = await self._require_catalog().find_session_id(beginning)
        async with self._context.session_holder.hold_turn(session_id, needed=True) as session:
            entries = tuple(session.journal.entries())
        subject = _subject_of_session(entries)
        if named is not None:
            _check_resumed_subject(session_id, subject, named)
        await self._close_agent()
        state, made = await asyncio.to_thread(
            lambda: (RunState.from_entries(entries), summarise_session(entries, session_id))
        )
        self._switch_session(session_id, state, entries, subject)
        return made

    def _switch_session(
        self, session_id: str, state: RunState, entries: Sequence[JournalEntry], subject: ChatSubject
    ) -> None:
        self._session_id, self._state, self._subject = session_id, state, subject
        self._edit_marks = []
        self._context.session_holder.switch_to(session_id, entries)

    async def resume_newest(self, named: ChatSubject | None = None) -> SessionSummary:
        """Resume the session of this folder that changed last.

        Raises UsageError if there is none, and what `resume` raises.
        """
        past = self._require_catalog()
        await past.refresh()
        here = str(self._context.parts.workspace)
        for found in await past.list_sessions(_LISTED_SESSIONS):
            if found.about.folder == here:
                return await self.resume(found.session_id, named)
        raise UsageError(
            f"There is no session in {here} to continue yet; start one with hummingbird chat, or choose one of "
            "another folder with --resume."
        )

    def last_exchange(self) -> LastExchange | None:
        return find_last_exchange(self._context.session_holder.entries())

    async def fork(self) -> str:
        past = self._require_catalog()
        await self.wait_until_stored()
        before = summarise_session(self._context.session_holder.entries(), self._session_id)
        if not before.entries:
            raise UsageError("Nothing was said yet: there is nothing to copy.")
        made = uuid4().hex
        await fork_session(past.sessions, self._session_id, made, f"{before.title} (copy)")
        await self.resume(made)
        return made

    async def rename(self, title: str) -> None:
        if not self._context.session_holder.entries():
            raise UsageError("Nothing was said yet: name it after the first message.")
        async with self._context.session_holder.hold_turn(self._session_id) as session:
            shown = shorten_line(replace_surrogates(title), SUMMARY_CHARS)
            session.journal.append(SessionRenamed(at=self._context.parts.clock.now(), title=shown))
            await session.journal.commit()

    async def model_names(self) -> Sequence[str]:
        parts = self._context.parts
        return await asyncio.to_thread(selectable_models, parts.configuration, parts.environment)

    async def switch_model(self, name: str) -> str:
        agent = self._get_agent()
        self._model = agent.switch_model(name)
        return self._model

    # Changes to the conversation

    async def preview_compaction(self, focus: str = "") -> CompactionPreview:
        async with self._open_compactor() as room:
            try:
                made = await room.propose(focus, asked=True)
            except CompactionFailed as error:
                return CompactionPreview(refusal=str(error))
        self._preview = len(self._context.session_holder.entries()), made
        return CompactionPreview(made.last - made.first, made.tokens_before, made.tokens_after, made.summary)

    async def apply_compaction(self, preview: CompactionPreview) -> None:
        async with self._open_compactor() as room:
            if self._preview is None or self._preview[0] != len(self._context.session_holder.entries()):
                raise UsageError("The conversation has gone on since; look again with /compress.")
            room.apply(self._preview[1])
        self._preview = None

    async def undo_compaction(self) -> bool:
        async with self._open_compactor() as room:
            return room.undo_compaction()

    async def undo_message(self) -> str:
        said = [one for one in self._state.conversation.view() if isinstance(one, UserMessage)]
        async with self._open_compactor() as room:
            text = without_notes(room.undo_turn())
        for one in said[-1:]:  # which may be sent again, also by another process than the one that read them
            self._images.update(zip(_IMAGE_NAME.findall(one.text), one.images, strict=False))
        self._edit_marks = self._edit_marks[:-1]
        return text

    def messages(self) -> Sequence[str]:
        return [without_notes(ask.text) for ask in find_user_requests(self._context.session_holder.entries())]

    def changed_files(self, messages: int = 1) -> Sequence[str]:
        marks = self._edit_marks[-messages:]
        return self._context.workspace.changed_since(marks[0]) if marks else ()

    async def undo_edits(self, messages: int = 1) -> Sequence[str]:
        marks = self._edit_marks[-messages:]
        return await asyncio.to_thread(self._context.workspace.undo_since, marks[0]) if marks else ()

    # What the person does beside the model

    async def run_command(self, command: str) -> str:
        output, exit_code = await run_own_command(self._context.terminal, command, self._context.secrets.mask)
        self._notes.add(note_about_command(command, output, exit_code))
        return output if exit_code == 0 else f"{output}\n(exit code {exit_code})".lstrip()

    async def remember(self, text: str) -> str:
        memory = open_memory(self._context.places.state, self._subject.project)
        return await remember_line(
            memory, text, self._context.parts.clock.now(), self._context.room, self._context.secrets
        )

    @property
    def _own_commands(self) -> OwnCommands:
        skills = self._knowledge.listed_skills if self._knowledge else ()
        folders = (self._context.parts.workspace / COMMANDS_FOLDER, self._context.places.state / "commands")
        return OwnCommands(folders, skills)

    def own_commands(self) -> Mapping[str, str]:
        return self._own_commands.describe()

    def expand_command(self, name: str, argument: str) -> str:
        return self._own_commands.expand(name, argument)

    def servers(self) -> Sequence[str]:
        names = self._context.parts.configuration.chat.mcp_servers
        tools = [tool.spec.name for tool in self._context.servers.tools]
        told = [f"{name}: {sum(one.startswith(f'mcp_{name}') for one in tools)} tools" for name in names]
        return [*told, *self._context.servers.trouble]

    def context_parts(self) -> Sequence[tuple[str, int]]:
        standing = self.status()
        return measure_context(self._state.conversation, standing.context_tokens, standing.context_limit)

    async def workspace_diff(self) -> str:
        return self._context.secrets.mask(
            await git_diff(self._context.parts.workspace, self._context.parts.environment)
        )

    def transcript(self) -> str:
        return render_transcript(self._context.session_holder.entries())

    async def undo_edit(self) -> str:
        return await asyncio.to_thread(self._context.workspace.undo)

    def take_over_edits(self, before: "ChatPartner") -> None:
        """Take over the edits of the partner that had this conversation before, so that they can be undone."""
        self._context.workspace.inherit_state(before._context.workspace)

    async def close(self) -> None:
        if self._titling is not None:
            _, late = await asyncio.wait({self._titling}, timeout=_TITLE_GRACE_S)
            for task in late:
                task.cancel()
        for task in tuple(self._background_tasks):
            task.cancel()
        if self._background_tasks:
            await asyncio.wait(set(self._background_tasks))
        await self._close_agent()
        if self._catalog is not None:
            await self._catalog.stop_refresh()
        await self._context.close()
        await self.wait_until_stored()

    async def wait_until_stored(self) -> None:
        """Wait until the session is stored with all its files and released."""
        await self._context.session_holder.wait_until_stored()

    @asynccontextmanager
    async def _hold_turn(self) -> AsyncIterator[Agent]:
        """Hold the session for one turn and yield its agent, with what others have written meanwhile."""
        await self._context.wait_for_servers(telling=True)
        await self._prepare_agent()
        async with self._context.session_holder.hold_turn(self._session_id) as session:
            entries = tuple(session.journal.entries())
            self._state = await asyncio.to_thread(self._state.catch_up, entries)
            agent = await self._prepare_sandbox()
            agent.use_state(self._state)
            try:
                yield agent
            finally:
                agent.close_journal()

    async def _prepare_agent(self) -> None:
        if self._knowledge is None:
            self._knowledge = await asyncio.to_thread(self._context.load_knowledge, self._subject.project)
            for sentence in self._knowledge.faults:
                self._context.parts.on_trouble(sentence)
        self._get_agent()

    async def _prepare_sandbox(self) -> Agent:
        """Return the agent with a running sandbox, or from now on without one if none can be started."""
        agent = self._get_agent()
        try:
            await agent.prepare_setup()
        except SandboxUnavailable as error:
            self._context.parts.on_trouble(f"Going on without a sandbox. {error}")
            self._sandbox, self._agent = False, None
            await agent.aclose()
            return self._get_agent()
        return agent

    def _get_agent(self) -> Agent:
        if self._agent is None:
            self._knowledge = self._knowledge or self._context.load_knowledge(self._subject.project)
            self._agent = self._context.create_agent(
                self._session_id, self._subject, self._knowledge, sandbox=self._sandbox
            )
            if self._model:
                self._agent.switch_model(self._model)
        return self._agent

    @asynccontextmanager
    async def _open_compactor(self) -> AsyncIterator[SessionCompactor]:
        async with self._hold_turn() as agent:
            room = await agent.open_compactor(self._session_prompt())
            yield room
            await room.commit()

    def _session_prompt(self) -> str | None:
        """Return the prompt that the session began with; changed memory applies to the next session.

        Return None if that prompt is about another workspace or was not written by a chat.
        """
        system, here = self._state.conversation.system, self._context.workspace_sentence
        same_place = here in system if here else WORKSPACE_SENTENCE_START not in system
        return system if system.startswith(CHAT_RULES[:200]) and same_place else None

    async def _close_agent(self, *, keep_mind: bool = False) -> None:
        agent, self._agent, self._preview = self._agent, None, None
        self._last_model = agent.setup.models[0].name if agent else self._last_model
        self._knowledge = self._knowledge if keep_mind else None
        if agent is not None:
            await agent.aclose()

    def _require_catalog(self) -> SessionCatalog:
        if self._catalog is None:
            raise UsageError("The index of sessions cannot be used here, as was told at the beginning.")
        return self._catalog

    async def _refresh_catalog(self) -> None:
        if self._catalog is not None:
            await self._catalog.catch_up()

    async def _watch_background(self) -> None:
        while True:
            await asyncio.sleep(BACKGROUND_POLL_S)
            self._context.report_trouble()
            for sentence in self._context.terminal.pop_finish_messages():
                self._notes.add(sentence)
                if self._context.parts.on_event is not None:
                    self._context.parts.on_event(StatusMessage(sentence))


def _expand_home(place: Path) -> Path:
    """Expand `~`.

    Raises UsageError for the home of an unknown user.
    """
    try:
        return place.expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"There is no home directory for {shorten_line(str(place), 80)}: name the whole path."
        ) from error


def _subject_of_session(entries: Sequence[JournalEntry]) -> ChatSubject:
    begun = find_subject(entries)
    talked = any(isinstance(entry, SessionOpened) and entry.workflow for entry in entries[:1])
    return ChatSubject(begun.project, begun.workflow, with_prompt=talked)


def _check_resumed_subject(session_id: str, is_about: ChatSubject, named: ChatSubject) -> None:
    for option, stored, requested in (
        ("--project", is_about.project, named.project),
        ("--workflow", is_about.workflow, named.workflow),
    ):
        if requested and requested.casefold() != stored.casefold():
            raise UsageError(
                f"Session {session_id[:8]} is about {stored or 'none'}, and {option} says {requested}: leave {option} "
                "out to continue it, or leave the session out to begin one."
            )


ANY_SUBJECT = ChatSubject()
MAX_PROMPT_BYTES = 16_000  # of prompt and tools together, in the default chat


async def create_partner(
    parts: ChatOptions,
    subject: ChatSubject = ANY_SUBJECT,
    *,
    resume: str = "",
    newest: bool = False,
    named: bool = False,
) -> ChatPartner:
    """Create a partner that is ready for the first message.

    With `named`, a resumed session must be about `subject`; otherwise `subject` is only for new sessions. Raises
    OperatorError if it cannot start.
    """
    check_chat_options(parts, subject)
    watcher, last = parts.on_event, ""

    def tell(sentence: str) -> None:
        """Report a problem that persists, like a full disk, once and not after each message."""
        nonlocal last
        if sentence != last:
            last = sentence
            if watcher is not None:
                watcher(StatusMessage(sentence))

    parts = replace(parts, on_trouble=tell)
    past = _open_catalog(parts)
    context = _create_context(parts, past)
    partner = ChatPartner(context, past, subject)
    try:
        if resume or newest:
            wanted = subject if named else None
            await (partner.resume(resume, wanted) if resume else partner.resume_newest(wanted))
        await partner.prepare()
    except BaseException:
        await partner.close()  # which releases the session
        raise
    partner.start_background_tasks()
    return partner


def check_chat_options(parts: ChatOptions, subject: ChatSubject) -> None:
    """Raise UsageError for a folder, project or workflow that does not exist; the error lists those that do."""
    if not parts.workspace.is_dir():
        raise UsageError(f"There is no folder {parts.workspace}: name another one with --workspace.")
    configuration = parts.configuration
    if subject.project and not PROJECT.fullmatch(subject.project):
        raise UsageError(
            f"{shorten_line(subject.project, 80)!r} is not the path of a project: write it like group/project."
        )
    if subject.workflow and subject.workflow not in configuration.workflows:
        known = ", ".join(configuration.workflows) or "none"
        raise UsageError(f"There is no workflow {subject.workflow!r}. There are: {known}.")
    if subject.workflow and configuration.resolve(subject.workflow, subject.project) is None:
        raise UsageError(f"The workflow {subject.workflow} is not for {subject.project}; leave --workflow out.")


def measure_prompt(parts: ChatOptions, subject: ChatSubject = ANY_SUBJECT) -> Sequence[tuple[str, int]]:
    """Return the size in bytes of each part of the prompt and of each tool."""
    return asyncio.run(_measure_prompt(parts, subject))


class _SilentClarifier:
    """Never asks anybody; its presence adds the clarify tool, which is to be measured too."""

    async def clarify(self, question: str, choices: Sequence[str]) -> str:
        return ""


async def _measure_prompt(parts: ChatOptions, subject: ChatSubject) -> Sequence[tuple[str, int]]:
    partner = await create_partner(replace(parts, clarifier=_SilentClarifier()), subject)
    try:
        return await partner.measure_prompt()
    finally:
        await partner.close()


def _open_catalog(parts: ChatOptions) -> SessionCatalog | None:
    """Return the catalog, or None if it cannot be opened: the chat then works without other sessions."""
    try:
        return open_session_catalog(parts.configuration, parts.environment, parts.clock)
    except (JournalUnwritable, SessionUnreadable) as error:
        parts.on_trouble(f"Other sessions cannot be searched or listed. {error}")
        return None


def _create_context(parts: ChatOptions, past: SessionCatalog | None) -> ChatContext:
    settings = parts.configuration.settings
    there = state_paths(settings, parts.environment).create_folders()
    sessions = session_store(there, settings, parts.clock.now) if past is None else past.sessions
    spending = spending_ledger(there, settings, parts.clock.now)
    return ChatContext(parts, TurnSessionHolder(sessions, parts.on_trouble, spending), past)

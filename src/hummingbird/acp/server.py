"""The ACP server: implements the methods of the protocol and serves an editor over standard input and output.

A method answers or fails with a sentence; no failure ends the process.
"""

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

from acp import Agent, run_agent
from acp.exceptions import RequestError
from acp.interfaces import Client
from acp.meta import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    CloseSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from hummingbird import __version__
from hummingbird.acp import EditorBackend
from hummingbird.acp.session import (
    INTERNAL_ERROR,
    MODE_OPTION,
    MODEL_OPTION,
    EditorSession,
    is_plan_mode,
    session_modes,
)
from hummingbird.acp.stdio_transport import INVALID_PARAMS, EditorTransport
from hummingbird.acp.updates import CONVERSATIONS, FOLDERS_BYTES, LISTED, TITLE_CHARS, thought_chunk
from hummingbird.core.errors import HummingbirdError, UsageError
from hummingbird.core.journal import JournalEntry
from hummingbird.core.json_codec import InvalidJson, decode_lenient_json
from hummingbird.core.sessions import SessionSummary
from hummingbird.core.text import replace_surrogates, shorten_line

_log = logging.getLogger("hummingbird")
_EMPTY = "empty"


class SessionFolders:
    """Remembers in which folder each editor session began, so that session/list shows those of the editor's project.

    It also remembers which of them have no message yet: nothing else knows of those, and they can be loaded too. The
    file has one line of JSON per session, and another one when its first message comes, each appended in one write. If
    it cannot be used, only this is lost: any session with a message can be continued in any folder.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, session_id: str, folder: Path, *, is_empty: bool = False) -> None:
        line = json.dumps([session_id, str(folder), *([_EMPTY] if is_empty else [])]).encode() + b"\n"
        try:
            if self._path.exists() and self._path.stat().st_size > FOLDERS_BYTES:
                self._shorten()
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            _log.warning("Could not write the folder of a session to %s: %s", self._path, error.strerror)

    def load(self) -> dict[str, str]:
        """Return the folders by session id."""
        return {session_id: folder for session_id, (folder, _) in self._read().items()}

    def is_empty(self, session_id: str) -> bool:
        """Tell whether the session began in an editor and has no message yet."""
        return self._read().get(session_id, ("", False))[1]

    def _read(self) -> dict[str, tuple[str, bool]]:
        """Return folder and emptiness by session id; the last line of a session counts."""
        try:
            lines = self._path.read_bytes()[-2 * FOLDERS_BYTES :].splitlines()
        except OSError:
            return {}
        return dict(pair for line in lines if (pair := _parse_line(line)) is not None)

    def _shorten(self) -> None:
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        kept = self._path.read_bytes()[-FOLDERS_BYTES // 2 :].split(b"\n", 1)[-1]
        beside.write_bytes(kept)
        beside.replace(self._path)


def _parse_line(line: bytes) -> tuple[str, tuple[str, bool]] | None:
    try:
        found = decode_lenient_json(line)
    except InvalidJson:
        return None
    match found:
        case [str(session_id), str(folder), *more]:
            return session_id, (folder, _EMPTY in more)
        case _:
            return None


NO_SUCH_SESSION = -32002
_SESSION_BUSY = "Something is under way in that session: cancel it, or wait until it has ended."
_MCP_SERVERS_IGNORED = (
    "MCP servers of the editor are not used ({names}): each server needs a list of the tools it may offer. Declare "
    "them in chat.mcp_servers of Hummingbird's configuration."
)


class EditorAgent:
    """Implements `acp.Agent` for one editor, with several conversations at the same time."""

    def __init__(self, conversations: EditorBackend, folders: SessionFolders) -> None:
        self.backend, self._folders = conversations, folders
        self._sessions: dict[str, EditorSession] = {}
        self._empty: set[str] = set()  # of those, the ones that have no message yet
        self._session_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._beginning = 0
        self._can_clarify = False
        self._editor: Client | None = None

    def on_connect(self, conn: Client) -> None:
        self._editor = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        """Answer with the one protocol version that we speak; an editor that does not speak it disconnects."""
        elicitation = client_capabilities.elicitation if client_capabilities else None
        self._can_clarify = elicitation is not None and elicitation.form is not None
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="hummingbird", title="Hummingbird", version=__version__),
            auth_methods=[],
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=False, audio=False, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=False, sse=False),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
            ),
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        with self._translate_errors():
            raise UsageError(
                "There is nothing to sign in to: keys of models come from the environment of this process."
            )

    # Conversations

    async def new_session(self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> NewSessionResponse:
        with self._translate_errors():
            session = await self._begin_session(cwd)
            self._empty.add(session.session_id)
            await asyncio.to_thread(self._folders.add, session.session_id, session.workspace, is_empty=True)
            meta = _note_ignored_servers(session, mcp_servers)
            asyncio.get_running_loop().call_soon(session.outbox.open)  # after the response, which names the session
            return NewSessionResponse(
                session_id=session.session_id,
                modes=self._session_modes(session),
                config_options=session.options,
                field_meta=meta,
            )

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        async with self._session_lock(session_id):
            entries = await self._load_entries(session_id)
            session = await self._begin_session(cwd, session_id)
            meta = _note_ignored_servers(session, mcp_servers)
            session.replay(entries)
            session.outbox.open()
            await session.outbox.wait_until_sent()
            return LoadSessionResponse(
                modes=self._session_modes(session), config_options=session.options, field_meta=meta
            )

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """Open a session like `load_session`, but without replaying it: the editor still has the messages."""
        async with self._session_lock(session_id):
            await self._load_entries(session_id)
            session = await self._begin_session(cwd, session_id)
            meta = _note_ignored_servers(session, mcp_servers)
            asyncio.get_running_loop().call_soon(session.outbox.open)
            return ResumeSessionResponse(
                modes=self._session_modes(session), config_options=session.options, field_meta=meta
            )

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """List sessions; with a folder, leave out those that began in another folder.

        Sessions of terminals and merge requests have no folder and are always listed.
        """
        with self._translate_errors():
            first = _parse_cursor(cursor)
            known = await asyncio.to_thread(self._folders.load)
            here = str(_resolve_folder(cwd)) if cwd else str(Path.cwd())
            found = await self.backend.list_sessions(first + LISTED + 1)
            page = found[first : first + LISTED]
            shown = [one for one in page if not cwd or known.get(one.session_id, here) == here]
            more = str(first + LISTED) if len(found) > first + LISTED else None
            return ListSessionsResponse(
                sessions=[_session_info(one, known.get(one.session_id, here)) for one in shown], next_cursor=more
            )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        async with self._session_lock(session_id):
            session = self._open_session(session_id)
            del self._sessions[session_id]
            self._empty.discard(session_id)
            await session.close()
            return CloseSessionResponse()

    # In a conversation

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        with self._translate_errors():
            session = self._open_session(session_id)
            if session_id not in self._empty:
                return PromptResponse(stop_reason=await session.prompt(prompt))
            self._empty.discard(session_id)
            # beside the message: a cancel may be right behind it, and must find it
            noting = asyncio.create_task(asyncio.to_thread(self._folders.add, session_id, session.workspace))
            try:
                return PromptResponse(stop_reason=await session.prompt(prompt))
            finally:
                await noting

    async def cancel(self, session_id: str, **_: Any) -> None:
        if (session := self._sessions.get(session_id)) is not None:
            session.cancel()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        with self._translate_errors():
            plan = is_plan_mode(mode_id, plan_only=self.backend.plan_only)
            await self._open_session(session_id).choose_mode(plan=plan)
            return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        with self._translate_errors():
            session = self._open_session(session_id)
            if config_id == MODE_OPTION:
                await session.choose_mode(plan=is_plan_mode(str(value), plan_only=self.backend.plan_only))
            elif config_id == MODEL_OPTION:
                await session.choose_model(str(value))
            else:
                raise UsageError(
                    f"There is no option {shorten_line(config_id, 40)!r}; there are: {MODE_OPTION}, {MODEL_OPTION}."
                )
            return SetSessionConfigOptionResponse(config_options=session.options)

    async def close(self) -> None:
        """Close all conversations in parallel."""
        sessions, self._sessions = self._sessions, {}
        await asyncio.gather(*(one.close() for one in sessions.values()), return_exceptions=True)

    # Internals

    @asynccontextmanager
    async def _session_lock(self, session_id: str) -> AsyncIterator[None]:
        """Hold the lock for opening and closing this session. It exists only while somebody uses it."""
        with self._translate_errors():
            async with self._session_locks.setdefault(session_id, asyncio.Lock()):
                yield

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn every error into the protocol's RequestError, with a masked sentence."""
        try:
            yield
        except RequestError as error:
            raise RequestError(error.code, self.backend.mask(replace_surrogates(str(error))), error.data) from error
        except HummingbirdError as error:
            code = INVALID_PARAMS if isinstance(error, UsageError) else INTERNAL_ERROR
            raise RequestError(code, self.backend.mask(replace_surrogates(str(error)))) from error
        except Exception as error:  # border: one request; the other conversations go on
            _log.exception("A request of the editor failed")
            sentence = self.backend.mask(replace_surrogates(f"unexpected {type(error).__name__}: {error}"))
            raise RequestError(INTERNAL_ERROR, sentence) from error

    def _client(self) -> Client:
        assert self._editor is not None
        return self._editor

    def _open_session(self, session_id: str) -> EditorSession:
        if (session := self._sessions.get(session_id)) is None:
            shown = shorten_line(session_id, TITLE_CHARS)
            raise RequestError(NO_SUCH_SESSION, f"No session {shown} is open here: open it with session/load first.")
        return session

    async def _load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        """Return what a session holds; one without a message is stored first, because nothing has stored it.

        Raises RequestError with the protocol's code if there is no such session.
        """
        try:
            return await self.backend.load_entries(session_id)
        except UsageError as error:
            if not await asyncio.to_thread(self._folders.is_empty, session_id):
                raise RequestError(NO_SUCH_SESSION, str(error)) from error
        self._empty.add(session_id)
        await self.backend.store_session(session_id)
        return await self.backend.load_entries(session_id)

    async def _begin_session(self, cwd: str, resume: str = "") -> EditorSession:
        """Begin a session, or reopen one that is open already.

        Raises UsageError if a message is being processed in it, before or after the new one has begun: it must not be
        cut off. To resume a session, hold its lock.
        """
        folder = await asyncio.to_thread(_resolve_folder, cwd)
        before = self._sessions.get(resume)
        if before is not None and before.has_pending_prompts:
            raise UsageError(_SESSION_BUSY)
        if len(self._sessions) + self._beginning >= CONVERSATIONS and before is None:
            raise UsageError(f"{CONVERSATIONS} sessions are open here: close one with session/close.")
        session = EditorSession(self._client, self.backend, folder, clarifies=self._can_clarify, resume=resume)
        self._beginning += 1
        try:
            await session.begin()
        finally:
            self._beginning -= 1
        if before is not None and before.has_pending_prompts:
            await session.close()
            raise UsageError(_SESSION_BUSY)
        self._sessions[session.session_id] = session
        if before is not None:
            await before.close()
        return session

    def _session_modes(self, session: EditorSession) -> Any:
        return session_modes(plan=session.plan, plan_only=self.backend.plan_only)


def _resolve_folder(cwd: str) -> Path:
    """Return the normalized path of the folder. Raises UsageError if it is not absolute or does not exist."""
    shown = shorten_line(replace_surrogates(cwd), TITLE_CHARS)
    if not cwd.startswith("/") or "\x00" in cwd:
        raise UsageError(f"cwd has to be an absolute path, and {shown!r} is none.")
    path = Path(os.path.normpath(cwd))
    if not path.is_dir():
        raise UsageError(f"There is no folder {shown}: open one that exists.")
    return path


def _note_ignored_servers(session: EditorSession, servers: Sequence[Any] | None) -> dict[str, Any] | None:
    """Say in the response, in the log and to the person that the editor's MCP servers are not used."""
    if not servers:
        return None
    names = ", ".join(shorten_line(replace_surrogates(str(one.name)), 40) for one in servers[:10])
    sentence = _MCP_SERVERS_IGNORED.format(names=names)
    _log.warning("%s", sentence)
    session.outbox.put(thought_chunk(f"{sentence}\n\n"))
    return {"hummingbird": {"notes": [sentence]}}


def _parse_cursor(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 9:
        raise UsageError("The cursor is not valid: begin without one.")
    return int(cursor)


def _session_info(one: SessionSummary, folder: str) -> SessionInfo:
    changed = datetime.fromtimestamp(one.changed_at, UTC).isoformat() if one.changed_at else None
    return SessionInfo(
        session_id=one.session_id, cwd=folder, title=replace_surrogates(one.title) or None, updated_at=changed
    )


_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def serve_editor(conversations: EditorBackend, folders: SessionFolders) -> int:
    """Serve the editor until it disconnects or a signal ends us; return the exit code.

    Only the protocol is written to standard output: anything else that is printed there, also by child processes, goes
    to standard error.
    """
    agent = EditorAgent(conversations, folders)
    with _private_streams() as (reading, writing):
        wire = EditorTransport(reading, writing)
        with _finish_on_signals(wire):
            try:
                # session/resume and session/close are stable in the protocol, but the library still calls them
                # unstable. It answers requests for missing methods by itself.
                await run_agent(cast(Agent, agent), wire, use_unstable_protocol=True)
            finally:
                await agent.close()
    return 0


@contextmanager
def _private_streams() -> Iterator[tuple[int, int]]:
    """Yield private copies of standard input and output, which no child process inherits.

    Meanwhile descriptor 0 is /dev/null and descriptor 1 is standard error.
    """
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield reading, writing
    finally:
        os.dup2(writing, 1)


@contextmanager
def _finish_on_signals(wire: EditorTransport) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for one in _ENDING_SIGNALS:
        loop.add_signal_handler(one, wire.finish)
    try:
        yield
    finally:
        for one in _ENDING_SIGNALS:
            with suppress(ValueError):
                loop.remove_signal_handler(one)

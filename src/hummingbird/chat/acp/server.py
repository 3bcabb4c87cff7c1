"""What an editor can ask of us: the methods of the protocol. Each answers, or fails with a sentence; none ends us."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

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
from hummingbird.chat.acp.choices import MODE, MODEL, checked_mode, modes_of
from hummingbird.chat.acp.conversations import Conversations
from hummingbird.chat.acp.folders import Folders
from hummingbird.chat.acp.limits import CONVERSATIONS, LISTED, TITLE_CHARS
from hummingbird.chat.acp.outbox import thought
from hummingbird.chat.acp.session import INTERNAL, EditorSession
from hummingbird.chat.acp.wire import INVALID_PARAMS
from hummingbird.domain.errors import HummingbirdError, UsageFault
from hummingbird.domain.sessions import Summary
from hummingbird.domain.text import plain, shortened

_log = logging.getLogger("hummingbird")
NO_SUCH_SESSION = -32002
_UNDER_WAY = "Something is under way in that session: cancel it, or wait until it has ended."
_IGNORED = (
    "MCP servers of the editor are not used ({names}): each server needs a list of the tools it may offer. Declare "
    "them in chat.mcp_servers of Hummingbird's configuration."
)


class EditorAgent:
    """Fulfils `acp.Agent`. Several conversations at once."""

    def __init__(self, conversations: Conversations, folders: Folders) -> None:
        self.conversations, self._folders = conversations, folders
        self._sessions: dict[str, EditorSession] = {}
        self._one_at_a_time: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._beginning = 0
        self._clarifies = False
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
        """There is one version that we speak; an editor that cannot speak it leaves."""
        elicitation = client_capabilities.elicitation if client_capabilities else None
        self._clarifies = elicitation is not None and elicitation.form is not None
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
        with self._sentences():
            raise UsageFault(
                "There is nothing to sign in to: keys of models come from the environment of this process."
            )

    # Conversations

    async def new_session(self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any) -> NewSessionResponse:
        with self._sentences():
            session = await self._begun(cwd)
            await asyncio.to_thread(self._folders.add, session.session_id, session.workspace)
            meta = _note(session, mcp_servers)
            asyncio.get_running_loop().call_soon(session.outbox.open)  # behind the answer, which names the session
            return NewSessionResponse(
                session_id=session.session_id,
                modes=self._modes(session),
                config_options=session.options,
                field_meta=meta,
            )

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        async with self._alone(session_id):
            entries = await self.conversations.entries(session_id)
            session = await self._begun(cwd, session_id)
            meta = _note(session, mcp_servers)
            session.replay(entries)
            session.outbox.open()
            await session.outbox.drained()
            return LoadSessionResponse(modes=self._modes(session), config_options=session.options, field_meta=meta)

    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        """As `load_session`, for an editor that remembers what was said."""
        async with self._alone(session_id):
            await self.conversations.entries(session_id)
            session = await self._begun(cwd, session_id)
            meta = _note(session, mcp_servers)
            asyncio.get_running_loop().call_soon(session.outbox.open)
            return ResumeSessionResponse(modes=self._modes(session), config_options=session.options, field_meta=meta)

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        """With a folder, those that began in another one are left out; those of terminals and merge requests, which can
        be gone on with anywhere, are not."""
        with self._sentences():
            first = _offset(cursor)
            known = await asyncio.to_thread(self._folders.known)
            here = str(_folder(cwd)) if cwd else str(Path.cwd())
            found = await self.conversations.listed(first + LISTED + 1)
            page = found[first : first + LISTED]
            shown = [one for one in page if not cwd or known.get(one.session_id, here) == here]
            more = str(first + LISTED) if len(found) > first + LISTED else None
            return ListSessionsResponse(
                sessions=[_listed(one, known.get(one.session_id, here)) for one in shown], next_cursor=more
            )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        async with self._alone(session_id):
            session = self._session(session_id)
            del self._sessions[session_id]
            await session.close()
            return CloseSessionResponse()

    # In a conversation

    async def prompt(self, session_id: str, prompt: Sequence[Any], **_: Any) -> PromptResponse:
        with self._sentences():
            return PromptResponse(stop_reason=await self._session(session_id).prompt(prompt))

    async def cancel(self, session_id: str, **_: Any) -> None:
        if (session := self._sessions.get(session_id)) is not None:
            session.cancel()

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        with self._sentences():
            plan = checked_mode(mode_id, plan_only=self.conversations.plan_only)
            await self._session(session_id).choose_mode(plan=plan)
            return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        with self._sentences():
            session = self._session(session_id)
            if config_id == MODE:
                await session.choose_mode(plan=checked_mode(str(value), plan_only=self.conversations.plan_only))
            elif config_id == MODEL:
                await session.choose_model(str(value))
            else:
                raise UsageFault(f"There is no option {shortened(config_id, 40)!r}; there are: {MODE}, {MODEL}.")
            return SetSessionConfigOptionResponse(config_options=session.options)

    async def close(self) -> None:
        """Every conversation, at once."""
        sessions, self._sessions = self._sessions, {}
        await asyncio.gather(*(one.close() for one in sessions.values()), return_exceptions=True)

    # Behind it

    @asynccontextmanager
    async def _alone(self, session_id: str) -> AsyncIterator[None]:
        """Whoever opens or closes this session waits for the others that do. A lock is there while it is wanted."""
        with self._sentences():
            async with self._one_at_a_time.setdefault(session_id, asyncio.Lock()):
                yield

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Whatever goes wrong becomes the protocol's own error, with our sentence."""
        try:
            yield
        except RequestError as error:
            raise RequestError(error.code, self.conversations.mask(plain(str(error))), error.data) from error
        except HummingbirdError as error:
            code = INVALID_PARAMS if isinstance(error, UsageFault) else INTERNAL
            raise RequestError(code, self.conversations.mask(plain(str(error)))) from error
        except Exception as error:  # border: one request; the other conversations go on
            _log.exception("A request of the editor failed")
            told = self.conversations.mask(plain(f"unexpected {type(error).__name__}: {error}"))
            raise RequestError(INTERNAL, told) from error

    def _client(self) -> Client:
        assert self._editor is not None
        return self._editor

    def _session(self, session_id: str) -> EditorSession:
        if (session := self._sessions.get(session_id)) is None:
            shown = shortened(session_id, TITLE_CHARS)
            raise RequestError(NO_SUCH_SESSION, f"No session {shown} is open here: open it with session/load first.")
        return session

    async def _begun(self, cwd: str, resume: str = "") -> EditorSession:
        """One that is open already is begun anew, unless something is under way in it, also by then: what was said
        meanwhile is not cut off. To resume one, be alone with it."""
        folder = await asyncio.to_thread(_folder, cwd)
        before = self._sessions.get(resume)
        if before is not None and before.working:
            raise UsageFault(_UNDER_WAY)
        if len(self._sessions) + self._beginning >= CONVERSATIONS and before is None:
            raise UsageFault(f"{CONVERSATIONS} sessions are open here: close one with session/close.")
        session = EditorSession(self._client, self.conversations, folder, clarifies=self._clarifies, resume=resume)
        self._beginning += 1
        try:
            await session.begin()
        finally:
            self._beginning -= 1
        if before is not None and before.working:
            await session.close()
            raise UsageFault(_UNDER_WAY)
        self._sessions[session.session_id] = session
        if before is not None:
            await before.close()
        return session

    def _modes(self, session: EditorSession) -> Any:
        return modes_of(plan=session.plan, plan_only=self.conversations.plan_only)


def _folder(cwd: str) -> Path:
    """Raises UsageFault."""
    shown = shortened(plain(cwd), TITLE_CHARS)
    if not cwd.startswith("/") or "\x00" in cwd:
        raise UsageFault(f"cwd has to be an absolute path, and {shown!r} is none.")
    path = Path(os.path.normpath(cwd))
    if not path.is_dir():
        raise UsageFault(f"There is no folder {shown}: open one that exists.")
    return path


def _note(session: EditorSession, servers: Sequence[Any] | None) -> dict[str, Any] | None:
    """What we do not do of what was asked, for the answer, the log and the person."""
    if not servers:
        return None
    names = ", ".join(shortened(plain(str(one.name)), 40) for one in servers[:10])
    sentence = _IGNORED.format(names=names)
    _log.warning("%s", sentence)
    session.outbox.put(thought(f"{sentence}\n\n"))
    return {"hummingbird": {"notes": [sentence]}}


def _offset(cursor: str | None) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 9:
        raise UsageFault("That cursor is none of ours: begin without one.")
    return int(cursor)


def _listed(one: Summary, folder: str) -> SessionInfo:
    changed = datetime.fromtimestamp(one.changed_at, UTC).isoformat() if one.changed_at else None
    return SessionInfo(session_id=one.session_id, cwd=folder, title=plain(one.title) or None, updated_at=changed)

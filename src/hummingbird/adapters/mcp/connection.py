"""One session with a server, in a task of its own: the library wants it closed by the task that opened it, while
whoever opens, calls and closes may be anybody.

Translates what the library raises. Knows no restarts, no tools of ours and no time limits of calls.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from hummingbird.adapters.mcp.content import Answer
from hummingbird.adapters.mcp.limits import ABANDONING_S, PAGES, TOOLS, Bounds
from hummingbird.adapters.mcp.link import Link
from hummingbird.adapters.mcp.settings import ServerSettings
from hummingbird.adapters.mcp.tolerant import Tolerant
from hummingbird.domain.errors import AnswerUnusable, SourceDown, SourceRefused

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.dispatcher import ProgressFnT

Listing: TypeAlias = list[Mapping[str, Any]]

_TERMINATED = "Session terminated"  # what the library says for 404 within a session
_BAD_STATUS = "Server returned an error response"  # and for most others
_HEARING_S = 0.05  # that it is the connection which has ended, not one request
_FINDING_OUT_S = 1.0  # how a program ended that has closed its output


class ServerSaid(Exception):
    """A tool failed, in the server's own words. Not of our tree on purpose: what is ours the model reads as ours, and
    this may have been written by anybody, so the agent fences it (T8)."""


class Connection:
    """`changed` is called when the server says that its tools are others now."""

    def __init__(self, settings: ServerSettings, link: Link, bounds: Bounds, changed: Callable[[], None]) -> None:
        self._settings = settings
        self._link = link
        self._bounds = bounds
        self._changed = changed
        self._over = asyncio.Event()
        self._opened: asyncio.Future[Listing] = asyncio.get_running_loop().create_future()
        self._session: ClientSession | None = None
        self._calls: set[asyncio.Task[Answer]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self._task is not None and not self._task.done() and not self._over.is_set()

    @property
    def over(self) -> bool:
        """Not only lost, but cleared away: how it ended is known."""
        return self._task is not None and self._task.done()

    async def open(self) -> Listing:
        """The wanted tools as the server lists them. Raises SourceDown with the rest of a sentence that begins with the
        server's name. To be closed afterwards, opened or not."""
        self._task = asyncio.ensure_future(self._live())
        self._task.add_done_callback(_seen)
        either: set[asyncio.Future[Any]] = {self._opened, self._task}
        await asyncio.wait(either, timeout=self._bounds.open_s, return_when=asyncio.FIRST_COMPLETED)
        if self._opened.done():
            return self._opened.result()
        why = self.explained() if self._task.done() else await self._given_up()
        raise SourceDown(" It ".join([why, *self._link.remarks()]))

    async def call(self, tool: str, arguments: Mapping[str, Any], progress: "ProgressFnT") -> Answer:
        """Cancelled, it is over at once and the server is told. Raises ServerSaid or a SourceError."""
        work = asyncio.ensure_future(self._called(tool, arguments, progress))
        self._calls.add(work)
        work.add_done_callback(self._calls.discard)
        work.add_done_callback(_seen)
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work}, timeout=ABANDONING_S)
            raise
        return work.result()

    async def close(self) -> None:
        for work in self._calls:
            work.cancel()
        if self._calls:
            await asyncio.wait(self._calls, timeout=ABANDONING_S)
        self._over.set()
        if self._task is None:
            return
        if not self._opened.done():
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=self._bounds.close_s)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=self._bounds.close_s)

    async def _given_up(self) -> str:
        await self.close()
        by_hand = "run its command or look at its address by hand, and see whether it speaks MCP"
        return f"did not answer within {self._bounds.open_s:g} s: {by_hand}."

    def explained(self) -> str:
        """Why it is over, once it is."""
        from mcp import MCPError, types  # noqa: PLC0415 - slow to import, and only who has servers pays for it

        task = self._task
        cause = _cause(task.exception() if task is not None and task.done() and not task.cancelled() else None)
        if isinstance(cause, AnswerUnusable):
            return f"{cause}: look at it by hand, or take it out of the configuration."
        closed = isinstance(cause, MCPError) and cause.code == types.CONNECTION_CLOSED
        return self._link.explained(None if closed else cause)

    def remarks(self) -> list[str]:
        return self._link.remarks()

    async def _live(self) -> None:
        """From the first byte to the last."""
        from mcp import ClientSession, types  # noqa: PLC0415 - as above
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher  # noqa: PLC0415 - as above

        quieten()
        async with self._link.streams() as (incoming, outgoing):
            dispatcher = Tolerant(JSONRPCDispatcher(incoming, outgoing), self._settings.wants, self._over.set)
            us = types.Implementation(name="hummingbird", version="1")
            async with ClientSession(dispatcher=dispatcher, client_info=us, message_handler=self._heard) as session:
                await _greeted(session)
                await self._listed(session, dispatcher.listed)
                self._session = session
                self._opened.set_result(dispatcher.listed)
                await self._over.wait()

    async def _listed(self, session: "ClientSession", listed: Listing) -> None:
        from mcp import types  # noqa: PLC0415 - as above

        cursor: str | None = None
        for _ in range(PAGES):
            page = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            following = (await session.list_tools(params=page)).next_cursor
            if not following or following == cursor or len(listed) > TOOLS:
                return
            cursor = following

    async def _heard(self, message: object) -> None:
        from mcp import types  # noqa: PLC0415 - as above

        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    async def _called(self, tool: str, arguments: Mapping[str, Any], progress: "ProgressFnT") -> Answer:
        from mcp import MCPError, types  # noqa: PLC0415 - as above
        from pydantic import ValidationError  # noqa: PLC0415 - as above

        assert self._session is not None
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        try:
            result = await self._session.send_request(
                types.CallToolRequest(params=params), types.CallToolResult, progress_callback=progress
            )
        except MCPError as error:
            await self._lost(tool, error.code == types.CONNECTION_CLOSED, error.message)
            raise ServerSaid(error.message) from None
        except ValidationError:
            raise AnswerUnusable(f"{self._who} gave an answer that is none of MCP's. Try another tool.") from None
        except (SourceRefused, AnswerUnusable) as error:
            raise type(error)(f"{self._who} {error}.") from error
        text = "".join(part.text for part in result.content if isinstance(part, types.TextContent))
        return Answer(text, result.is_error is True)

    async def _lost(self, tool: str, closed: bool, words: str) -> None:
        """Raises a SourceError where the connection is to blame, not the call."""
        if words == _BAD_STATUS:
            raise SourceRefused(f"{self._who} {self._link.explained(None)}")
        if words == _TERMINATED:
            self._over.set()
            raise SourceDown(f"{self._who} has forgotten our session, and {tool} did nothing: call it again.")
        with suppress(TimeoutError):  # what waits is told before we are
            await asyncio.wait_for(self._over.wait(), _HEARING_S if closed else 0)
        if not self._over.is_set() or self._task is None:
            return
        await asyncio.wait({self._task}, timeout=_FINDING_OUT_S)
        raise SourceDown(
            f"{self._who} broke off during {tool}; nobody knows whether it took effect. Look before calling it again: "
            "the next call starts the server anew."
        )

    @property
    def _who(self) -> str:
        return f"MCP server {self._settings.name!r}"


async def _greeted(session: "ClientSession") -> None:
    """The handshake that nearly all servers know, then the one of those that know no other."""
    from mcp import MCPError, types  # noqa: PLC0415 - as above

    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND):
            raise
        await session.discover()


def quieten() -> None:
    """The library logs what servers send, as warnings and with tracebacks: that would be written over the terminal."""
    for name in ("mcp", "client"):
        log = logging.getLogger(name)
        if not log.handlers:
            log.addHandler(logging.NullHandler())
        log.propagate = False


def _cause(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _seen(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()

"""One session with an MCP server, which runs in a task of its own.

The MCP library must close a session in the task that opened it, while any task may open, call and close ours. This
module translates the library's errors; restarts and time limits of calls are in `client`.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from hummingbird.core.errors import SourceRefused, SourceResponseInvalid, SourceUnavailable
from hummingbird.core.protocols.tools import ForeignToolError
from hummingbird.mcp import CANCEL_NOTICE_S, MAX_PAGES, MAX_TOOLS, McpLimits, McpServerSettings
from hummingbird.mcp.server_text import ToolCallAnswer, answer_from_result
from hummingbird.mcp.transports import McpTransport

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.shared.dispatcher import Dispatcher, ProgressFnT

_FINAL_RESULT_TYPES = (None, "complete")


class TolerantDispatcher:
    """The library's dispatcher, with a check of ours before the library's.

    The library refuses a whole list because of one broken tool, and a whole answer because of one odd part; we keep the
    rest. `wanted_tools` are the configured tools as the server describes them. `ended` is called when the connection
    has ended.
    """

    def __init__(self, inner: "Dispatcher[Any]", wants: Callable[[str], bool], ended: Callable[[], None]) -> None:
        self._inner = inner
        self._wants = wants
        self._ended = ended
        self.wanted_tools: list[Mapping[str, Any]] = []

    async def run(self, *arguments: Any, **options: Any) -> None:
        try:
            await self._inner.run(*arguments, **options)
        finally:
            self._ended()

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        await self._inner.notify(method, params, opts)

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:
        result = await self._inner.send_raw_request(method, params, opts)
        if method == "tools/list":
            return self._clean_tool_list(result)
        return _to_text_result(result) if method == "tools/call" else result

    def _clean_tool_list(self, result: dict[str, Any]) -> dict[str, Any]:
        tools = result.get("tools")
        if not isinstance(tools, list):
            raise SourceResponseInvalid("gave no list of tools")
        named = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
        wanted = [tool for tool in named if self._wants(tool["name"])]
        self.wanted_tools += wanted
        cleaned = [{"name": tool["name"], "inputSchema": tool["inputSchema"]} for tool in wanted if _has_schema(tool)]
        return result | {"tools": cleaned}


def _has_schema(tool: Mapping[str, Any]) -> bool:
    schema = tool.get("inputSchema")
    return isinstance(schema, dict) and schema.get("type") == "object"


def _to_text_result(result: dict[str, Any]) -> dict[str, Any]:
    if result.get("resultType") not in _FINAL_RESULT_TYPES:
        raise SourceRefused("asks for more than a call can give it (input, a model or files of ours); none is offered")
    answer = answer_from_result(result)
    kept = {name: value for name, value in result.items() if name not in ("structuredContent", "_meta")}
    return kept | {"content": [{"type": "text", "text": answer.text}], "isError": answer.failed}


ToolListing: TypeAlias = list[Mapping[str, Any]]

_TERMINATED = "Session terminated"  # the library's message for status 404 within a session
_BAD_STATUS = "Server returned an error response"  # and for most other statuses
_LISTING_PAUSE_S = 1.0  # for a server that says over and over that its tools changed
_HEARING_S = 0.05  # wait to learn whether the whole connection has ended, or only one request
_FINDING_OUT_S = 1.0  # wait to learn how a program ended that has closed its output


class McpToolError(ForeignToolError):
    """A server's tool failed; the message is the server's own text."""


class McpConnection:
    """One connection to a server.

    `listed` is called with the list of tools that the server has after it said that the list changed. Some say so at
    every start, with the same list.
    """

    def __init__(
        self,
        settings: McpServerSettings,
        link: McpTransport,
        bounds: McpLimits,
        listed: Callable[[ToolListing], None],
    ) -> None:
        self._settings = settings
        self._link = link
        self._bounds = bounds
        self._listed = listed
        self._list_changed = asyncio.Event()
        self._over = asyncio.Event()
        self._opened: asyncio.Future[ToolListing] = asyncio.get_running_loop().create_future()
        self._session: ClientSession | None = None
        self._calls: set[asyncio.Task[ToolCallAnswer]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done() and not self._over.is_set()

    @property
    def is_over(self) -> bool:
        """Whether the session has ended and is cleaned up, so that the reason is known."""
        return self._task is not None and self._task.done()

    async def open(self) -> ToolListing:
        """Connect and return the wanted tools as the server lists them.

        Raises SourceUnavailable; the message continues a sentence that begins with the server's name. The caller must
        call `close` afterwards, also after a failure.
        """
        self._task = asyncio.ensure_future(self._run_session())
        self._task.add_done_callback(_retrieve_exception)
        either: set[asyncio.Future[Any]] = {self._opened, self._task}
        await asyncio.wait(either, timeout=self._bounds.open_s, return_when=asyncio.FIRST_COMPLETED)
        if self._opened.done():
            return self._opened.result()
        why = self.explain_end() if self._task.done() else await self._give_up()
        raise SourceUnavailable(" It ".join([why, *self._link.remarks()]))

    async def call(self, tool: str, arguments: Mapping[str, Any], progress: "ProgressFnT") -> ToolCallAnswer:
        """Call a tool. On cancellation, return at once and tell the server. Raises McpToolError or a SourceError."""
        work = asyncio.ensure_future(self._call_tool(tool, arguments, progress))
        self._calls.add(work)
        work.add_done_callback(self._calls.discard)
        work.add_done_callback(_retrieve_exception)
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work}, timeout=CANCEL_NOTICE_S)
            raise
        return work.result()

    async def close(self) -> None:
        for work in self._calls:
            work.cancel()
        if self._calls:
            await asyncio.wait(self._calls, timeout=CANCEL_NOTICE_S)
        self._over.set()
        if self._task is None:
            return
        if not self._opened.done():
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=self._bounds.close_s)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=self._bounds.close_s)

    async def _give_up(self) -> str:
        await self.close()
        by_hand = "run its command or look at its address by hand, and see whether it speaks MCP"
        return f"did not answer within {self._bounds.open_s:g} s: {by_hand}."

    def explain_end(self) -> str:
        """Return why the connection has ended. Call it only after the end."""
        from mcp import MCPError, types

        task = self._task
        cause = _first_cause(task.exception() if task is not None and task.done() and not task.cancelled() else None)
        if isinstance(cause, SourceResponseInvalid):
            return f"{cause}: look at it by hand, or take it out of the configuration."
        closed = isinstance(cause, MCPError) and cause.code == types.CONNECTION_CLOSED
        return self._link.explain_failure(None if closed else cause)

    def remarks(self) -> list[str]:
        return self._link.remarks()

    async def _run_session(self) -> None:
        """Run the session from the start of the connection to its end."""
        from mcp import ClientSession, types
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

        silence_library_logs()
        async with self._link.open_streams() as (incoming, outgoing):
            dispatcher = TolerantDispatcher(JSONRPCDispatcher(incoming, outgoing), self._settings.wants, self._over.set)
            us = types.Implementation(name="hummingbird", version="1")
            async with ClientSession(
                dispatcher=dispatcher, client_info=us, message_handler=self._on_message
            ) as session:
                await _handshake(session)
                await self._list_tools(session, dispatcher.wanted_tools)
                self._session = session
                self._opened.set_result(dispatcher.wanted_tools)
                listing = asyncio.ensure_future(self._list_again(session, dispatcher))
                listing.add_done_callback(_retrieve_exception)
                try:
                    await self._over.wait()
                finally:
                    listing.cancel()

    async def _list_tools(self, session: "ClientSession", listed: ToolListing) -> None:
        from mcp import types

        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            following = (await session.list_tools(params=page)).next_cursor
            if not following or following == cursor or len(listed) > MAX_TOOLS:
                return
            cursor = following

    async def _list_again(self, session: "ClientSession", dispatcher: TolerantDispatcher) -> None:
        """List the tools whenever the server says that they changed; what fails here fails in the next call too."""
        from mcp import MCPError
        from pydantic import ValidationError

        while True:
            await self._list_changed.wait()
            self._list_changed.clear()
            dispatcher.wanted_tools = []
            with suppress(MCPError, SourceRefused, SourceResponseInvalid, ValidationError):
                await self._list_tools(session, dispatcher.wanted_tools)
                self._listed(dispatcher.wanted_tools)
            await asyncio.sleep(_LISTING_PAUSE_S)

    async def _on_message(self, message: object) -> None:
        from mcp import types

        if isinstance(message, types.ToolListChangedNotification):
            self._list_changed.set()

    async def _call_tool(self, tool: str, arguments: Mapping[str, Any], progress: "ProgressFnT") -> ToolCallAnswer:
        from mcp import MCPError, types
        from pydantic import ValidationError

        assert self._session is not None
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        try:
            result = await self._session.send_request(
                types.CallToolRequest(params=params), types.CallToolResult, progress_callback=progress
            )
        except MCPError as error:
            await self._raise_if_disconnected(tool, error.code == types.CONNECTION_CLOSED, error.message)
            raise McpToolError(error.message) from None
        except ValidationError:
            raise SourceResponseInvalid(
                f"{self._label} gave an answer that is not valid MCP. Try another tool."
            ) from None
        except (SourceRefused, SourceResponseInvalid) as error:
            raise type(error)(f"{self._label} {error}.") from error
        text = "".join(part.text for part in result.content if isinstance(part, types.TextContent))
        return ToolCallAnswer(text, result.is_error is True)

    async def _raise_if_disconnected(self, tool: str, closed: bool, words: str) -> None:
        """Raise a SourceError if the connection failed rather than the call."""
        if words == _BAD_STATUS:
            raise SourceRefused(f"{self._label} {self._link.explain_failure(None)}")
        if words == _TERMINATED:
            self._over.set()
            raise SourceUnavailable(f"{self._label} has forgotten our session, and {tool} did nothing: call it again.")
        with suppress(TimeoutError):  # the call fails shortly before the end of the connection is noticed
            await asyncio.wait_for(self._over.wait(), _HEARING_S if closed else 0)
        if not self._over.is_set() or self._task is None:
            return
        await asyncio.wait({self._task}, timeout=_FINDING_OUT_S)
        raise SourceUnavailable(
            f"{self._label} broke off during {tool}; it is unknown whether it took effect. Look before "
            "calling it again: "
            "the next call starts the server again."
        )

    @property
    def _label(self) -> str:
        return f"MCP server {self._settings.name!r}"


async def _handshake(session: "ClientSession") -> None:
    """Try the handshake that nearly all servers know, then the newer one for servers that know no other."""
    from mcp import MCPError, types

    try:
        await session.initialize()
    except MCPError as error:
        if error.code not in (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND):
            raise
        await session.discover()


def silence_library_logs() -> None:
    """Stop the library from logging what servers send, with tracebacks, into the terminal."""
    for name in ("mcp", "client"):
        log = logging.getLogger(name)
        if not log.handlers:
            log.addHandler(logging.NullHandler())
        log.propagate = False


def _first_cause(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()

"""One configured server over a whole session: its tools, frozen when it opens (L5), and its failures, which cost it
alone. Dies it, the next call starts it anew: a few times, each time a little later. A call is never repeated."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hummingbird.adapters.mcp.connection import Connection, Listing, ServerSaid
from hummingbird.adapters.mcp.limits import PROGRESS_CHARS, PROGRESS_EVERY_S, Bounds
from hummingbird.adapters.mcp.link import Link
from hummingbird.adapters.mcp.offered import Offer, missing, offers, specified
from hummingbird.adapters.mcp.settings import ServerSettings
from hummingbird.adapters.mcp.words import Trouble, line
from hummingbird.domain.errors import SourceDown, SourceRefused
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import ByteStream, Output, ToolContext

_PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ServedTool:
    spec: ToolSpec
    name: str
    server: "Server"

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        return await self.server.call(self.name, arguments, context)


class Server:
    """`link` makes the next connection."""

    def __init__(self, settings: ServerSettings, link: Callable[[], Link], bounds: Bounds, trouble: Trouble) -> None:
        self._settings = settings
        self._link = link
        self._bounds = bounds
        self._trouble = trouble
        self._who = f"MCP server {settings.name!r}"
        self._connection: Connection | None = None
        self._offers: dict[str, Offer] = {}
        self._present: frozenset[str] = frozenset()  # those that it has now, unchanged
        self._connecting = asyncio.Lock()
        self._leaving: set[asyncio.Task[None]] = set()
        self._failures, self._since, self._closed = 0, 0.0, False

    @property
    def trouble(self) -> tuple[str, ...]:
        return self._trouble.sentences

    async def open(self) -> None:
        """Never raises for what the server does: that is told in `trouble`, and it has no tools then."""
        try:
            listing = await self._connect()
        except SourceDown:
            return
        self._offers, faults = offers(listing)
        self._present = frozenset(self._offers)
        for fault in (*faults, *missing(listing, self._settings)):
            self._trouble.tell(f"{self._who} {fault}")

    def tools(self, taken: set[str]) -> list[ServedTool]:
        """Under names that are not taken yet; those are added."""
        found = []
        for offer in self._offers.values():
            spec = specified(offer, self._settings, taken)
            if spec.name in taken:
                self._trouble.tell(
                    f"{self._who} offers two tools with one name, {line(offer.name)!r}: one is left out."
                )
                continue
            taken.add(spec.name)
            found.append(ServedTool(spec, offer.name, self))
        return found

    async def call(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        """Raises ServerSaid for what the tool calls an error, otherwise a SourceError."""
        seconds = self._settings.timeout_s
        shown = _Shown(context.progress)
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connected(tool)
                try:
                    answer = await connection.call(tool, arguments, shown)
                finally:
                    shown.over = True
        except TimeoutError:
            raise SourceDown(
                f"{self._who} did not answer {tool} within {seconds:g} s; it was told to stop. Ask for less, or do "
                "without it."
            ) from None
        finally:
            self._note()
        if answer.failed:
            raise ServerSaid(answer.text or "the tool failed and did not say why")
        return self._bounded(answer.text)

    async def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            await self._connection.close()
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def _connected(self, tool: str) -> Connection:
        async with self._connecting:
            if self._connection is None or not self._connection.alive:
                await self._restart()
            if tool not in self._present:
                raise SourceRefused(f"{self._who} does not offer {tool} any more since it was started anew.")
            assert self._connection is not None
            return self._connection

    async def _restart(self) -> None:
        if self._closed:
            raise SourceDown(f"{self._who} is closed: the session is over.")
        if time.monotonic() - self._since > self._bounds.steady_s:
            self._failures = 0
        if self._failures >= len(self._bounds.back_off_s):
            raise SourceDown(f"{self._who} failed {self._failures + 1} times and is left alone. Do without its tools.")
        await asyncio.sleep(self._bounds.back_off_s[self._failures])
        self._failures += 1
        self._since = time.monotonic()
        try:
            listing = await self._connect()
        except SourceDown:
            raise SourceDown(f"{self._who} ended and could not be started again. Do without its tools.") from None
        self._compare(listing)

    async def _connect(self) -> Listing:
        self._note()
        if self._connection is not None:
            self._let_go(self._connection)
        self._connection = connection = Connection(self._settings, self._link(), self._bounds, self._changed)
        try:
            listing = await connection.open()
        except (SourceDown, asyncio.CancelledError) as error:
            if isinstance(error, SourceDown) and not self._closed:
                self._trouble.tell(f"{self._who} {error}")
            self._let_go(connection)
            self._connection = None
            raise
        self._since = time.monotonic()
        self._note()
        return listing

    def _let_go(self, connection: Connection) -> None:
        """Without waiting for it: an interrupt does not."""
        leaving = asyncio.ensure_future(connection.close())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    def _compare(self, listing: Listing) -> None:
        """A tool that is another one now must not run under the old one's description."""
        now, _ = offers(listing)
        if now != self._offers:
            self._changed()
        self._present = frozenset(name for name, offer in self._offers.items() if now.get(name) == offer)

    def _changed(self) -> None:
        self._trouble.tell(
            f"{self._who} offers other tools than when this session began: start a new session to use them."
        )

    def _note(self) -> None:
        connection = self._connection
        if connection is None:
            return
        for remark in connection.remarks():
            self._trouble.tell(f"{self._who} {remark}")
        if connection.over and not self._closed:
            self._trouble.tell(f"{self._who} {connection.explained()}")

    def _bounded(self, text: str) -> Output:
        most = self._bounds.result_bytes
        if len(text) <= most // 4:
            return text
        whole = text.encode()
        if len(whole) <= most:
            return text
        note = f"Only the first {most:,} of {len(whole):,} bytes are here; ask for less at once to see the rest."
        return ByteStream(_pieces(whole[:most].decode("utf-8", "ignore").encode()), note=note)


class _Shown:
    """Progress, for whoever watches: not more often than eyes follow, and nothing once the call is over."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._last = 0.0
        self.over = False

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = time.monotonic()
        if self.over or now - self._last < PROGRESS_EVERY_S:
            return
        self._last = now
        counted = f"{progress:g}" + (f" of {total:g}" if total else "")
        self._show(line(message, PROGRESS_CHARS) if message else counted)


async def _pieces(whole: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(whole), _PIECE_BYTES):
        yield whole[start : start + _PIECE_BYTES]

"""Keeps the configured MCP servers open during a session and offers their tools.

The tools are fixed when a server opens. A failing server affects only its own tools. The next call starts it again, a
few times and with growing delays; a call is never repeated.
"""

import asyncio
import hashlib
import importlib
import re
import time
from collections.abc import AsyncIterator, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hummingbird.core.errors import MissingSetting, SourceRefused, SourceUnavailable, ToolDefinitionError, require_extra
from hummingbird.core.json_codec import InvalidJson, encode_json
from hummingbird.core.limits import PROGRESS_CHARS, TOOL_NAME_CHARS
from hummingbird.core.protocols.tools import ByteStream, ToolContext, ToolOutput
from hummingbird.core.tool_spec import ToolEffect, ToolSpec
from hummingbird.mcp import (
    DEFAULT_LIMITS,
    DESCRIPTION_CHARS,
    EVERY_TOOL,
    MAX_TOOLS,
    PROGRESS_EVERY_S,
    SCHEMA_BYTES,
    McpLimits,
    McpServerSettings,
)
from hummingbird.mcp.connection import McpConnection, McpToolError, ToolListing
from hummingbird.mcp.server_text import TroubleLog, to_line, to_printable
from hummingbird.mcp.transports import McpHttpTransport, McpStdioTransport, McpTransport

TOOLSET = "mcp"
_ALL_EFFECTS = frozenset(ToolEffect)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")
_MARK_CHARS = 6


@dataclass(frozen=True, slots=True)
class McpToolOffer:
    """A tool as the server describes it, with bounded text and a checked schema.

    Annotations of the server are ignored: only the operator says that a tool merely reads.
    """

    name: str
    description: str
    schema: Mapping[str, Any]


def parse_tool_list(listing: Sequence[Mapping[str, Any]]) -> tuple[dict[str, McpToolOffer], list[str]]:
    """Return the tools that can be offered, and why others cannot.

    Each reason continues a sentence that begins with the server's name.
    """
    found: dict[str, McpToolOffer] = {}
    faults: list[str] = []
    for raw in listing[:MAX_TOOLS]:
        try:
            offer = parse_tool(raw)
        except ToolDefinitionError as broken:
            faults.append(f"has a tool {to_line(str(raw.get('name')))!r} that is left out: {broken}.")
            continue
        if found.setdefault(offer.name, offer) is not offer:
            faults.append(f"lists {to_line(offer.name)!r} twice: the second is left out.")
    if len(listing) > MAX_TOOLS:
        faults.append(f"has more than {MAX_TOOLS} tools, and the first are used: name those that you want in `tools`.")
    return found, faults


def find_missing_tools(listing: Sequence[Mapping[str, Any]], settings: McpServerSettings) -> list[str]:
    """Return complaints about names in the configuration that match no tool, phrased as in `parse_tool_list`."""
    listed = {str(raw.get("name")) for raw in listing}
    absent = [each for each in settings.tools if each != EVERY_TOOL and each not in listed]
    stray = [each for each in settings.read_tools if each != EVERY_TOOL and not settings.wants(each)]
    return [
        *(f"has no tool {each!r}: fix the name in `tools`, or take it out." for each in absent),
        *(f"has {each!r} in its `read_tools` and not in its `tools`: add it there." for each in stray),
    ]


def parse_tool(raw: Mapping[str, Any]) -> McpToolOffer:
    """Parse one tool. Raises ToolDefinitionError with the reason, as the end of a sentence."""
    name, description = str(raw.get("name", "")), raw.get("description")
    words = to_printable(description).strip() if isinstance(description, str) else ""
    return McpToolOffer(
        name, words[: DESCRIPTION_CHARS - 1] + "…" if len(words) > DESCRIPTION_CHARS else words, _parse_schema(raw)
    )


def build_spec(offer: McpToolOffer, settings: McpServerSettings, taken: Container[str]) -> ToolSpec:
    reads = settings.only_reads(offer.name)
    whose = f"MCP server {to_line(settings.name, 40)}"
    return ToolSpec(
        name=tool_name(settings.name, offer.name, taken),
        description=f"{whose}: {offer.description or to_line(offer.name)}",
        schema=offer.schema,
        toolset=TOOLSET,
        effects=frozenset({ToolEffect.READ}) if reads else _ALL_EFFECTS,
        timeout_s=settings.timeout_s,
        foreign=True,
    )


def tool_name(server: str, tool: str, taken: Container[str] = ()) -> str:
    """Return the name for the model, the same in every session unless another tool has taken it."""
    name = f"mcp_{_NOT_IN_NAMES.sub('_', server)}_{_NOT_IN_NAMES.sub('_', tool)}"
    if len(name) <= TOOL_NAME_CHARS and name not in taken:
        return name
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "replace")).hexdigest()[:_MARK_CHARS]
    return f"{name[: TOOL_NAME_CHARS - _MARK_CHARS - 1]}_{mark}"


def _parse_schema(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = raw.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ToolDefinitionError("its input schema is not a JSON Schema of type 'object'")
    schema = {"properties": {}, **schema}  # some providers refuse a schema without properties
    try:
        encoded = encode_json(schema)
    except InvalidJson:
        raise ToolDefinitionError("its input schema cannot be written as JSON") from None
    if len(encoded) > SCHEMA_BYTES:
        raise ToolDefinitionError(f"its input schema has {len(encoded):,} bytes, and {SCHEMA_BYTES:,} are allowed")
    _check_schema(schema)
    return schema


def _check_schema(schema: dict[str, Any]) -> None:
    import jsonschema_rs  # a compiled library, loaded when the first tool is checked

    try:
        jsonschema_rs.validator_for(schema, retriever=_refuse_remote_reference)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise ToolDefinitionError(f"its input schema is broken ({to_line(str(error))})") from error


def _refuse_remote_reference(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {to_line(uri, 120)}")


_PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class McpTool:
    """One tool of a server, as the agent calls it."""

    spec: ToolSpec
    name: str
    server: "McpServerClient"

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return await self.server.call(self.name, arguments, context)


class McpServerClient:
    """One configured server over a whole session, restarted when it fails. `link` makes the next connection."""

    def __init__(
        self, settings: McpServerSettings, link: Callable[[], McpTransport], bounds: McpLimits, trouble: TroubleLog
    ) -> None:
        self._settings = settings
        self._link = link
        self._bounds = bounds
        self._trouble = trouble
        self._label = f"MCP server {settings.name!r}"
        self._connection: McpConnection | None = None
        self._offers: dict[str, McpToolOffer] = {}
        self._available_names: frozenset[str] = frozenset()  # offered tools that the server still has unchanged
        self._connecting = asyncio.Lock()
        self._leaving: set[asyncio.Task[None]] = set()
        self._failures, self._since, self._closed = 0, 0.0, False

    @property
    def trouble(self) -> tuple[str, ...]:
        return self._trouble.sentences

    async def open(self) -> None:
        """Connect and list the tools. Failures of the server are not raised but added to `trouble`."""
        try:
            listing = await self._connect()
        except SourceUnavailable:
            return
        self._offers, faults = parse_tool_list(listing)
        self._available_names = frozenset(self._offers)
        for fault in (*faults, *find_missing_tools(listing, self._settings)):
            self._trouble.add(f"{self._label} {fault}")

    def build_tools(self, taken: set[str]) -> list[McpTool]:
        """Return the tools under names that are not taken yet, and add these names to `taken`."""
        found = []
        for offer in self._offers.values():
            spec = build_spec(offer, self._settings, taken)
            if spec.name in taken:
                self._trouble.add(
                    f"{self._label} offers two tools with one name, {to_line(offer.name)!r}: one is left out."
                )
                continue
            taken.add(spec.name)
            found.append(McpTool(spec, offer.name, self))
        return found

    async def call(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Call a tool. Raises McpToolError for what the tool calls an error, otherwise a SourceError."""
        seconds = self._settings.timeout_s
        shown = _ProgressThrottle(context.progress)
        try:
            async with asyncio.timeout(seconds):
                connection = await self._get_connection(tool)
                try:
                    answer = await connection.call(tool, arguments, shown)
                finally:
                    shown.is_over = True
        except TimeoutError:
            raise SourceUnavailable(
                f"{self._label} did not answer {tool} within {seconds:g} s; it was told to stop. Ask for less, or do "
                "without it."
            ) from None
        finally:
            self._collect_remarks()
        if answer.failed:
            raise McpToolError(answer.text or "the tool failed and did not say why")
        return self._limit_output(answer.text)

    async def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            await self._connection.close()
        if self._leaving:
            await asyncio.wait(self._leaving)

    async def _get_connection(self, tool: str) -> McpConnection:
        async with self._connecting:
            if self._connection is None or not self._connection.is_alive:
                await self._restart()
            if tool not in self._available_names:
                raise SourceRefused(f"{self._label} does not offer {tool} any more as it did when this session began.")
            assert self._connection is not None
            return self._connection

    async def _restart(self) -> None:
        if self._closed:
            raise SourceUnavailable(f"{self._label} is closed: the session is over.")
        if time.monotonic() - self._since > self._bounds.steady_s:
            self._failures = 0
        if self._failures >= len(self._bounds.back_off_s):
            raise SourceUnavailable(
                f"{self._label} failed {self._failures + 1} times and is left alone. Do without its tools."
            )
        await asyncio.sleep(self._bounds.back_off_s[self._failures])
        self._failures += 1
        self._since = time.monotonic()
        try:
            listing = await self._connect()
        except SourceUnavailable:
            raise SourceUnavailable(
                f"{self._label} ended and could not be started again. Do without its tools."
            ) from None
        self._compare_tools(listing)

    async def _connect(self) -> ToolListing:
        self._collect_remarks()
        if self._connection is not None:
            self._close_later(self._connection)
        self._connection = connection = McpConnection(self._settings, self._link(), self._bounds, self._compare_tools)
        try:
            listing = await connection.open()
        except (SourceUnavailable, asyncio.CancelledError) as error:
            if isinstance(error, SourceUnavailable) and not self._closed:
                self._trouble.add(f"{self._label} {error}")
            self._close_later(connection)
            self._connection = None
            raise
        self._since = time.monotonic()
        self._collect_remarks()
        return listing

    def _close_later(self, connection: McpConnection) -> None:
        """Close the connection in the background, so that an interrupt need not wait for it."""
        leaving = asyncio.ensure_future(connection.close())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    def _compare_tools(self, listing: ToolListing) -> None:
        """Withdraw tools that changed, because they must not run under their old description."""
        now, _ = parse_tool_list(listing)
        if now != self._offers:
            self._trouble.add(
                f"{self._label} offers other tools than when this session began: start a new session to use them."
            )
        self._available_names = frozenset(name for name, offer in self._offers.items() if now.get(name) == offer)

    def _collect_remarks(self) -> None:
        connection = self._connection
        if connection is None:
            return
        for remark in connection.remarks():
            self._trouble.add(f"{self._label} {remark}")
        if connection.is_over and not self._closed:
            self._trouble.add(f"{self._label} {connection.explain_end()}")

    def _limit_output(self, text: str) -> ToolOutput:
        most = self._bounds.result_bytes
        if len(text) <= most // 4:
            return text
        whole = text.encode()
        if len(whole) <= most:
            return text
        note = f"Only the first {most:,} of {len(whole):,} bytes are here; ask for less at once to see the rest."
        return ByteStream(_chunks(whole[:most].decode("utf-8", "ignore").encode()), note=note)


class _ProgressThrottle:
    """Shows progress at most every `PROGRESS_EVERY_S` seconds, and nothing once the call is over."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._last = 0.0
        self.is_over = False

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = time.monotonic()
        if self.is_over or now - self._last < PROGRESS_EVERY_S:
            return
        self._last = now
        counted = f"{progress:g}" + (f" of {total:g}" if total else "")
        self._show(to_line(message, PROGRESS_CHARS) if message else counted)


async def _chunks(whole: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(whole), _PIECE_BYTES):
        yield whole[start : start + _PIECE_BYTES]


class McpServers:
    """All configured servers.

    `environment` is where PATH, HOME and LANG of the started programs come from. `mask` hides secrets in messages.
    `tools` does not change after `open`; `trouble` grows when a server fails later.
    """

    def __init__(
        self,
        settings: Iterable[McpServerSettings],
        environment: Mapping[str, str],
        *,
        mask: Callable[[str], str] = str,
        ca_bundle: str = "",
        bounds: McpLimits = DEFAULT_LIMITS,
    ) -> None:
        self._settings = tuple(settings)
        self._environment = environment
        self._mask = mask
        self._ca_bundle = ca_bundle
        self._bounds = bounds
        self._servers: list[McpServerClient] = []
        self._faults: list[str] = []
        self.tools: tuple[McpTool, ...] = ()

    @property
    def has_servers(self) -> bool:
        """Whether any server is configured."""
        return bool(self._settings)

    @property
    def trouble(self) -> tuple[str, ...]:
        return tuple(self._faults) + tuple(each for server in self._servers for each in server.trouble)

    async def open(self) -> None:
        """Open all servers at once. Never raises for what a server does."""
        if not self._settings:
            return
        try:
            require_extra("mcp", "mcp", "A tool server")
        except MissingSetting as missing:
            self._faults.append(str(missing))
            return
        await asyncio.to_thread(
            importlib.import_module, "mcp"
        )  # takes most of a second, during which the terminal must stay responsive
        self._servers = [self._create_server(each) for each in self._settings if self._is_usable(each)]
        await asyncio.gather(*(server.open() for server in self._servers))
        taken: set[str] = set()
        self.tools = tuple(tool for server in self._servers for tool in server.build_tools(taken))

    async def close(self) -> None:
        """Close all servers; they and everything they started have ended afterwards."""
        await asyncio.gather(*(server.close() for server in self._servers))

    def _is_usable(self, settings: McpServerSettings) -> bool:
        if bool(settings.command) == bool(settings.url):
            self._faults.append(f"MCP server {settings.name!r} needs either `command` or `url`: set one of them.")
        elif not settings.tools:
            self._faults.append(
                f"MCP server {settings.name!r} was not started: its `tools` name none. Name those you want, or '*'."
            )
        else:
            return True
        return False

    def _create_server(self, settings: McpServerSettings) -> McpServerClient:
        trouble = TroubleLog(self._mask)

        def link() -> McpTransport:
            if settings.command:
                return McpStdioTransport(settings, self._environment, self._bounds, trouble)
            return McpHttpTransport(settings, self._ca_bundle, self._bounds)

        return McpServerClient(settings, link, self._bounds, trouble)

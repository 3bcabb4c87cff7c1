"""Tools asked without a model: lists as records, logs as a stream that nobody holds. What cannot be read is a sentence
of ours, never an error; what a source said of it stands in the log of the service.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.verdict_limits import LOOK_ITEMS, LOOK_LIST_BYTES, LOOK_LOG_BYTES
from hummingbird.evidence.json_lines import INCOMPLETE
from hummingbird.ports.tool import ByteStream, Output, Tool, ToolContext

Raw: TypeAlias = Mapping[str, Any]
_log = logging.getLogger("hummingbird")


class Reads:
    """`unseen` grows by what could not be read."""

    def __init__(self, tools: Sequence[Tool], secrets: Secrets, session_id: str = "") -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self.secrets = secrets
        self._context = ToolContext(session_id, "look")
        self.unseen: list[str] = []

    def miss(self, sentence: str) -> None:
        if sentence not in self.unseen:
            self.unseen.append(sentence)

    async def listed(self, name: str, what: str, **arguments: Any) -> list[Raw] | None:
        """Records of a list, as many as came; None if it could not be read at all."""
        content = await self._content(name, what, arguments)
        if content is None:
            return None
        records = [record for line in content.split(b"\n") if (record := _record(line)) is not None][:LOOK_ITEMS]
        if any(INCOMPLETE in record for record in records):
            self.miss(f"{what} could not be read whole.")
        return [record for record in records if INCOMPLETE not in record]

    async def one(self, name: str, what: str, **arguments: Any) -> Raw | None:
        content = await self._content(name, what, arguments)
        return None if content is None else _record(content)

    async def streamed(
        self, name: str, what: str, feed: Callable[[bytes], None], *, quiet: bool = False, **arguments: Any
    ) -> bool:
        """Feeds all of it, masked; False if it could not be read to its end, which nobody is told if it is `quiet`."""
        masking = self.secrets.stream()

        async def through(output: Output) -> None:
            if not isinstance(output, ByteStream):
                raise _Nothing(str(output))
            async for chunk in _bounded(output.chunks, LOOK_LOG_BYTES):
                feed(masking.feed(chunk))
            feed(masking.end(b""))

        return await self._asked(name, what, arguments, through, quiet=quiet)

    async def _content(self, name: str, what: str, arguments: Mapping[str, Any]) -> bytes | None:
        parts: list[bytes] = []

        async def taken(output: Output) -> None:
            if isinstance(output, ByteStream):
                parts.extend([chunk async for chunk in _bounded(output.chunks, LOOK_LIST_BYTES)])
            elif not isinstance(output, str):  # a sentence says that there is nothing
                parts.append(msgspec.json.encode(output))

        read = await self._asked(name, what, arguments, taken)
        return self.secrets.stream().end(b"".join(parts)) if read else None

    async def _asked(
        self,
        name: str,
        what: str,
        arguments: Mapping[str, Any],
        taken: Callable[[Output], Awaitable[None]],
        *,
        quiet: bool = False,
    ) -> bool:
        tool = self._tools.get(name)
        if tool is None:
            self.miss(f"{what} was not looked at: this workflow has no {name}.")
            return False
        try:
            await taken(await tool(arguments, self._context))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - border: a tool may raise what it likes, and a look ends no run
            told = str(error) if isinstance(error, HummingbirdError) else type(error).__name__
            _log.info("%s could not be read before the run: %s", what, self.secrets.mask(told))
            if not quiet:
                self.miss(f"{what} could not be read.")
            return False
        return True


class _TooLong(HummingbirdError):
    """More than is looked at."""


class _Nothing(HummingbirdError):
    """A sentence stands where a log should be."""


async def _bounded(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    size = 0
    try:
        async for chunk in chunks:
            size += len(chunk)
            if size > most:
                raise _TooLong(f"It is longer than the {most:,} bytes that are looked at.")
            yield chunk
    finally:
        if (close := getattr(chunks, "aclose", None)) is not None:
            await close()


def _record(line: bytes) -> Raw | None:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None

"""A tool's output as the text a model reads: masked, fenced, bounded. Nothing a tool returns can flood a conversation.

What is ours stands outside the fence: what the source says of itself, that something was left out. Knows no sandbox.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Protocol

import msgspec

from hummingbird.agent.described import described
from hummingbird.agent.tools.fence import fenced
from hummingbird.agent.tools.preview import clipped
from hummingbird.domain.errors import HummingbirdError
from hummingbird.domain.limits import INLINE_RESULT_BYTES, METADATA_BYTES, RESULT_FRAME_BYTES
from hummingbird.domain.plain_text import PlainText
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import ByteStream, Json

NOTHING = "[no output]"


class Shape(Protocol):
    """Turns an output into what stands in the conversation; the sandbox's auto-spill is another one (T4)."""

    async def __call__(self, spec: ToolSpec, output: str | Json | ByteStream) -> str: ...


class Ready(str):
    """An output that is as the model shall read it: its tool has masked, fenced and bounded it, part by part."""

    __slots__ = ()


class Inline:
    """For sessions without a sandbox: keeps head and tail of what is too long and says what was left out."""

    def __init__(self, secrets: Secrets | None = None) -> None:
        self._secrets = secrets or Secrets()

    async def __call__(self, spec: ToolSpec, output: str | Json | ByteStream) -> str:
        if isinstance(output, Ready):
            return str(output)  # a plain one: journals hold no other kind
        if isinstance(output, ByteStream):
            return await self._from_stream(spec, output)
        room = INLINE_RESULT_BYTES - RESULT_FRAME_BYTES
        return framed(spec, bounded(as_text(output, self._secrets.mask), room))

    async def _from_stream(self, spec: ToolSpec, stream: ByteStream) -> str:
        """Reads to the end without holding more than head and tail. What came of one that breaks off is shown."""
        room = INLINE_RESULT_BYTES - RESULT_FRAME_BYTES
        head, tail, size, said = b"", b"", 0, noted(stream.note, self._secrets)
        try:
            async with aclosing(clean(stream, self._secrets)) as chunks:
                async for chunk in chunks:
                    size += len(chunk)
                    head += chunk[: max(0, room - len(head))]
                    tail = (tail + chunk[-room:])[-room:]
        except Exception as error:
            if not size:
                raise
            said = f"[{spec.name} broke off after {size} bytes ({why(error)}). Not the whole:]{said}"
        if stream.binary:
            binary = f"[{size} bytes of binary {stream.suffix} from {spec.name}; not shown]"
            return with_metadata(spec, f"{said}\n{binary}" if said else binary)
        return framed(spec, head.decode("utf-8", "replace") if size <= room else _cut(head, tail, size, room), said)


async def inline(spec: ToolSpec, output: str | Json | ByteStream) -> str:
    """`Inline` where no credential is known."""
    return await Inline()(spec, output)


def framed(spec: ToolSpec, text: str, said: str = "") -> str:
    """The text as the model reads it: what we say of it, the text, fenced unless it is our own, and the source's
    metadata (T6, T8)."""
    body = text if spec.trusted else fenced(text, spec.name) if text else NOTHING
    return with_metadata(spec, f"{said}\n{body}" if said else body)


def noted(note: str, secrets: Secrets) -> str:
    """A tool's own words about its output, as one line beside it."""
    return f"[{clipped(' '.join(secrets.mask(plain(note)).split()), METADATA_BYTES)}]" if note else ""


def why(error: BaseException) -> str:
    """Our own errors are sentences; of others only the name, their words may be an outsider's."""
    return shortened(str(error), 200) if isinstance(error, HummingbirdError) else type(error).__name__


def with_metadata(spec: ToolSpec, text: str) -> str:
    """What its source says of itself is part of each of its results, whichever way they go (T6)."""
    if not spec.metadata:
        return text
    said = "; ".join(f"{name}: {value}" for name, value in spec.metadata.items())
    return f"{text}\n[{clipped(' '.join(said.split()), METADATA_BYTES)}]"


def failed(spec: ToolSpec, error: BaseException) -> str:
    """A tool's failure. Our own sentences are ours; what other errors say may quote an outsider."""
    if spec.trusted or isinstance(error, HummingbirdError):
        return f"{spec.name} failed: {described(error)}"
    words = described(error).removeprefix(type(error).__name__).removeprefix(": ")
    room = INLINE_RESULT_BYTES - RESULT_FRAME_BYTES
    return framed(spec, bounded(words, room), f"{spec.name} failed: {type(error).__name__}.")


def as_text(output: str | Json, mask: Callable[[str], str]) -> str:
    """Text as it is, anything else as JSON; masked, and fit to be sent."""
    if isinstance(output, str):
        return mask(plain(output))
    return msgspec.json.encode(_masked(msgspec.to_builtins(output), mask)).decode()


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    """String by string: in the text of the JSON quotes and backslashes inside a credential would hide it."""
    if isinstance(value, str):
        return mask(plain(value))
    if isinstance(value, Mapping):
        found: dict[str, Any] = {}
        for key, inner in value.items():
            name = mask(plain(str(key)))
            unlike = name if name not in found else f"{name} {len(found)}"  # two that are masked stay two
            found[unlike] = _masked(inner, mask)
        return found
    return [_masked(inner, mask) for inner in value] if isinstance(value, list | tuple) else value


async def clean(
    stream: ByteStream, secrets: Secrets, seen: Callable[[bytes], None] | None = None
) -> AsyncGenerator[bytes, None]:
    """The stream's bytes, credentials masked across the borders of chunks too unless it is binary (T7), terminals'
    sequences taken out before that. Closes it. Of one that breaks off, what might have become a credential is never
    shown. `seen` gets the text with the sequences in it, masked by itself: who sees it may show half a line."""
    async with _closed_in_the_end(stream.chunks) as chunks:
        if stream.binary:
            async for chunk in chunks:
                yield _bytes(chunk)
            return
        masking, plain_text = secrets.stream(), PlainText() if stream.terminal else None
        coloured = secrets.stream()
        async for chunk in chunks:
            raw = _bytes(chunk)
            if seen is not None:
                seen(coloured.feed(raw))
            if safe := masking.feed(plain_text.feed(raw) if plain_text else raw):
                yield safe
        if seen is not None:
            seen(coloured.end(b""))
        if rest := masking.end(plain_text.end() if plain_text else b""):
            yield rest


@asynccontextmanager
async def _closed_in_the_end(chunks: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    try:
        yield chunks
    finally:
        if (close := getattr(chunks, "aclose", None)) is not None:
            await close()


def _bytes(chunk: object) -> bytes:
    if not isinstance(chunk, bytes | bytearray | memoryview):
        raise TypeError(f"a stream of bytes brought {type(chunk).__name__}")
    return bytes(chunk)


def bounded(text: str, room: int = INLINE_RESULT_BYTES) -> str:
    """The text, or its head and tail."""
    if len(text) <= room // 4:  # four bytes is the most a character takes
        return plain(text)
    content = text.encode("utf-8", "replace")
    if len(content) <= room:
        return plain(text)
    return _cut(content[:room], content[-room:], len(content), room)


def _cut(head: bytes, tail: bytes, size: int, room: int) -> str:
    half = room // 2
    left_out = size - 2 * half
    first, last = head[:half].decode("utf-8", "replace"), tail[-half:].decode("utf-8", "replace")
    return f"{first}\n[… {left_out} of {size} bytes left out here …]\n{last}"

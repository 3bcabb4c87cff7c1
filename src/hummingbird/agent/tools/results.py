"""Turn a tool's output into the text that a model reads: masked, fenced and limited in size.

What we add stands outside the fence: the source's metadata, and that something was left out.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from hummingbird.agent.tools.preview import clip_bytes
from hummingbird.core.errors import HummingbirdError, describe_error
from hummingbird.core.limits import INLINE_RESULT_BYTES, METADATA_BYTES, RESULT_FRAME_BYTES
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ByteStream, ForeignToolError, Json
from hummingbird.core.text import TerminalTextCleaner, replace_surrogates, shorten_line
from hummingbird.core.tool_spec import ToolSpec

OPENING = '<untrusted tool="{tool}" id="{mark}">'
CLOSING = '</untrusted id="{mark}">'
MARK_CHARS = 16


def fence_untrusted(text: str, tool: str) -> str:
    """Put the text between two lines that mark it as material that outsiders could have written, not as instructions.

    Both lines carry the first digits of the text's own digest. So the text cannot close its own fence, and the same
    text is fenced the same way in a replay.
    """
    mark = _fence_id(text)
    return f"{OPENING.format(tool=tool, mark=mark)}\n{text}\n{CLOSING.format(mark=mark)}"


_FENCE_LINE = re.compile(r"</?untrusted [^>\n]*>")


def without_fence(text: str) -> str:
    """Return a tool's result without the marks that tell the model that outsiders may have written it."""
    return "\n".join(line for line in text.split("\n") if not _FENCE_LINE.fullmatch(line))


def fence_size_bytes(tool: str) -> int:
    """Return the size of a fence without its content."""
    return len(fence_untrusted("", tool).encode())


def _fence_id(text: str) -> str:
    """Return a digest that does not occur in the text.

    Finding a text that contains its own digest takes 2**55 tries, which can be bought; so it is checked.
    """
    seen = text.lower()
    mark = _digest(text.encode("utf-8", "replace"))
    while mark in seen:
        mark = _digest(mark.encode() + text.encode("utf-8", "replace"))
    return mark


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:MARK_CHARS]


NO_OUTPUT = "[no output]"


class ResultShape(Protocol):
    """Turns an output into the text in the conversation; `InlineShape` and `SpillShape` are the two kinds."""

    @property
    def most_bytes(self) -> int:
        """Return how long a result may be; what is longer is cut without regard to fences."""
        ...

    async def __call__(self, spec: ToolSpec, output: str | Json | ByteStream) -> str: ...


class ReadyText(str):
    """An output whose tool has masked, fenced and limited it already."""

    __slots__ = ()


class InlineShape:
    """The shape for sessions without a sandbox: keeps head and tail of a long output and says what was left out."""

    def __init__(self, secrets: Secrets | None = None, max_inline_bytes: int = 0) -> None:
        self._secrets = secrets or Secrets()
        self._room = max(max_inline_bytes, INLINE_RESULT_BYTES - RESULT_FRAME_BYTES)

    @property
    def most_bytes(self) -> int:
        return self._room + RESULT_FRAME_BYTES

    async def __call__(self, spec: ToolSpec, output: str | Json | ByteStream) -> str:
        if isinstance(output, ReadyText):
            return str(output)  # journals hold plain strings only
        if isinstance(output, ByteStream):
            return await self._shape_stream(spec, output)
        return frame_result(spec, limit_text(output_to_text(output, self._secrets.mask), self._room))

    async def _shape_stream(self, spec: ToolSpec, stream: ByteStream) -> str:
        """Read to the end without holding more than head and tail; show what came before a stream broke off."""
        room = self._room
        head, tail, size, said = b"", b"", 0, note_line(stream.note, self._secrets)
        try:
            async with aclosing(clean_stream(stream, self._secrets)) as chunks:
                async for chunk in chunks:
                    size += len(chunk)
                    head += chunk[: max(0, room - len(head))]
                    tail = (tail + chunk[-room:])[-room:]
        except Exception as error:  # border: a source may raise anything; what came before it counts
            if not size:
                raise
            said = f"[{spec.name} broke off after {size} bytes ({short_reason(error)}). Not the whole:]{said}"
        if stream.binary:
            binary = f"[{size} bytes of binary {stream.suffix} from {spec.name}; not shown]"
            return add_metadata(spec, f"{said}\n{binary}" if said else binary)
        return frame_result(
            spec, head.decode("utf-8", "replace") if size <= room else _cut_middle(head, tail, size, room), said
        )


def frame_result(spec: ToolSpec, text: str, said: str = "") -> str:
    """Return the text as the model reads it.

    That is what we say about it, the text itself (fenced unless it is our own), and the source's metadata.
    """
    body = text if spec.trusted else fence_untrusted(text, spec.name) if text else NO_OUTPUT
    return add_metadata(spec, f"{said}\n{body}" if said else body)


def note_line(note: str, secrets: Secrets) -> str:
    """Return a tool's own words about its output as one line beside it."""
    return f"[{clip_bytes(' '.join(secrets.mask(replace_surrogates(note)).split()), METADATA_BYTES)}]" if note else ""


def short_reason(error: BaseException) -> str:
    """Return the message of our own errors, and only the name of others, whose words may be an outsider's."""
    return shorten_line(str(error), 200) if isinstance(error, HummingbirdError) else type(error).__name__


def add_metadata(spec: ToolSpec, text: str) -> str:
    """Append what the source says about itself, which is part of each of its results."""
    if not spec.metadata:
        return text
    said = "; ".join(f"{name}: {value}" for name, value in spec.metadata.items())
    return f"{text}\n[{clip_bytes(' '.join(said.split()), METADATA_BYTES)}]"


def tool_failure_text(spec: ToolSpec, error: BaseException) -> str:
    """Describe a tool's failure; the words of errors that are not ours may quote an outsider and are fenced."""
    if spec.trusted or isinstance(error, HummingbirdError):
        return f"{spec.name} failed: {describe_error(error)}"
    words = describe_error(error).removeprefix(type(error).__name__).removeprefix(": ")
    room = INLINE_RESULT_BYTES - RESULT_FRAME_BYTES
    said = (
        f"{spec.name} failed and says:"
        if isinstance(error, ForeignToolError)
        else f"{spec.name} failed: {type(error).__name__}."
    )
    return frame_result(spec, limit_text(words, room), said)


def output_to_text(output: str | Json, mask: Callable[[str], str]) -> str:
    """Return text as it is and anything else as JSON, masked and valid Unicode."""
    if isinstance(output, str):
        return mask(replace_surrogates(output))
    return msgspec.json.encode(_mask_value(msgspec.to_builtins(output), mask)).decode()


def _mask_value(value: Any, mask: Callable[[str], str]) -> Any:
    """Mask string by string: in JSON text, escaped quotes and backslashes inside a credential would hide it."""
    if isinstance(value, str):
        return mask(replace_surrogates(value))
    if isinstance(value, Mapping):
        found: dict[str, Any] = {}
        for key, inner in value.items():
            name = mask(replace_surrogates(str(key)))
            unlike = name if name not in found else f"{name} {len(found)}"  # two masked keys stay distinct
            found[unlike] = _mask_value(inner, mask)
        return found
    return [_mask_value(inner, mask) for inner in value] if isinstance(value, list | tuple) else value


async def clean_stream(
    stream: ByteStream, secrets: Secrets, seen: Callable[[bytes], None] | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield the stream's bytes without credentials and terminal sequences, and close it.

    Credentials are masked across the borders of chunks too, after terminal sequences were removed; binary streams stay
    as they are. If the stream breaks off, text that might have become a credential is never shown. `seen` gets the
    masked text with the terminal sequences.
    """
    async with _close_at_end(stream.chunks) as chunks:
        if stream.binary:
            async for chunk in chunks:
                yield _check_bytes(chunk)
            return
        masking, plain_text = secrets.open_stream(), TerminalTextCleaner() if stream.terminal else None
        coloured = secrets.open_stream()
        async for chunk in chunks:
            raw = _check_bytes(chunk)
            if seen is not None:
                seen(coloured.feed(raw))
            if safe := masking.feed(plain_text.feed(raw) if plain_text else raw):
                yield safe
        if seen is not None:
            seen(coloured.end(b""))
        if rest := masking.end(plain_text.end() if plain_text else b""):
            yield rest


@asynccontextmanager
async def _close_at_end(chunks: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    try:
        yield chunks
    finally:
        if (close := getattr(chunks, "aclose", None)) is not None:
            await close()


def _check_bytes(chunk: object) -> bytes:
    if not isinstance(chunk, bytes | bytearray | memoryview):
        raise TypeError(f"a stream of bytes brought {type(chunk).__name__}")
    return bytes(chunk)


def limit_text(text: str, room: int = INLINE_RESULT_BYTES) -> str:
    """Return the text, or its head and tail if it is too long."""
    if len(text) <= room // 4:  # a character takes at most four bytes
        return replace_surrogates(text)
    content = text.encode("utf-8", "replace")
    if len(content) <= room:
        return replace_surrogates(text)
    return _cut_middle(content[:room], content[-room:], len(content), room)


def _cut_middle(head: bytes, tail: bytes, size: int, room: int) -> str:
    half = room // 2
    left_out = size - 2 * half
    first, last = head[:half].decode("utf-8", "replace"), tail[-half:].decode("utf-8", "replace")
    return f"{first}\n[… {left_out} of {size} bytes left out here …]\n{last}"

"""A tool's output as the text a model reads. Bounded: nothing a tool returns can flood a conversation."""

from typing import Protocol

import msgspec

from hummingbird.domain.limits import INLINE_RESULT_BYTES
from hummingbird.domain.text import plain
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import ByteStream, Json


class Shape(Protocol):
    """Turns an output into what stands in the conversation; the sandbox's auto-spill is another one (T4)."""

    async def __call__(self, spec: ToolSpec, output: str | Json | ByteStream) -> str: ...


async def inline(spec: ToolSpec, output: str | Json | ByteStream) -> str:
    """Keeps head and tail of what is too long and says what was left out."""
    if isinstance(output, ByteStream):
        return await _from_stream(spec, output)
    return bounded(output if isinstance(output, str) else msgspec.json.encode(output).decode())


def bounded(text: str) -> str:
    """The text, or its head and tail."""
    if len(text) <= INLINE_RESULT_BYTES // 4:  # four bytes is the most a character takes
        return plain(text)
    content = text.encode("utf-8", "replace")
    if len(content) <= INLINE_RESULT_BYTES:
        return plain(text)
    return _cut(content[:INLINE_RESULT_BYTES], content[-INLINE_RESULT_BYTES:], len(content))


async def _from_stream(spec: ToolSpec, stream: ByteStream) -> str:
    """Reads to the end without holding more than head and tail."""
    head, tail, size = b"", b"", 0
    async for chunk in stream.chunks:
        size += len(chunk)
        if len(head) < INLINE_RESULT_BYTES:
            head += chunk[: INLINE_RESULT_BYTES - len(head)]
        tail = (tail + chunk)[-INLINE_RESULT_BYTES:]
    if stream.binary:
        return f"[{size} bytes of binary {stream.suffix} from {spec.name}; not shown]"
    if size <= INLINE_RESULT_BYTES:
        return head.decode("utf-8", "replace")
    return _cut(head, tail, size)


def _cut(head: bytes, tail: bytes, size: int) -> str:
    half = INLINE_RESULT_BYTES // 2
    left_out = size - 2 * half
    first, last = head[:half].decode("utf-8", "replace"), tail[-half:].decode("utf-8", "replace")
    return f"{first}\n[… {left_out} of {size} bytes left out here …]\n{last}"

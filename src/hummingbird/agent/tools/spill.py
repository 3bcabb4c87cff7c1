"""Auto-spill (T4): an output too long for the conversation goes whole into the sandbox, the model gets a preview.

One of the shapes an output can take. Streams are piped through; what is held is the beginning, until it is known that
it fits, and what the preview keeps. Knows no backend and no tool but by its specification.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

from hummingbird.agent.tools.deposit import Bytes, Outgoing, Passing, laid_out, outgoing, pieces, put
from hummingbird.agent.tools.digested import DigestedLines, Output
from hummingbird.agent.tools.evidence import by_evidence
from hummingbird.agent.tools.preview import Preview, Previews, clipped
from hummingbird.agent.tools.results import Ready, as_text, framed, with_metadata
from hummingbird.agent.tools.shelf import Shelf
from hummingbird.agent.workbench import Workbench
from hummingbird.domain.errors import CommandFailed, SandboxBroken, SandboxUnavailable
from hummingbird.domain.limits import (
    ERROR_TEXT_CHARS,
    INLINE_RESULT_BYTES,
    MAX_INLINE_BYTES,
    PREVIEW_BYTES,
    RESULT_FRAME_BYTES,
)
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.tool import ByteStream, Json

NOT_SAVED = (SandboxBroken, SandboxUnavailable, CommandFailed)


class Spill:
    """A `Shape`. `max_inline_bytes` is a workflow's own; more than a conversation takes of any result is spilled
    whatever it says."""

    def __init__(
        self,
        bench: Workbench,
        secrets: Secrets,
        *,
        max_inline_bytes: int = MAX_INLINE_BYTES,
        previews: Previews = by_evidence,
        shelf: Shelf | None = None,
        digested: DigestedLines | None = None,
    ) -> None:
        self.bench = bench
        self.secrets = secrets
        self.max_inline_bytes = min(max_inline_bytes, INLINE_RESULT_BYTES - RESULT_FRAME_BYTES)
        self.previews = previews
        self.shelf = shelf or Shelf()
        self._digested = digested

    async def __call__(self, spec: ToolSpec, output: str | Json | ByteStream) -> str:
        text = await self._shaped(spec, output)
        news = self.bench.news()
        return f"{news}\n{text}" if news else text

    def digesting(self) -> Output | None:
        """For an output that a source sends and a command may print later."""
        return None if self._digested is None else self._digested.output()

    async def _shaped(self, spec: ToolSpec, output: str | Json | ByteStream) -> str:
        if isinstance(output, Ready):
            return str(output)  # a plain one: journals hold no other kind
        if isinstance(output, ByteStream):
            return await self._from_stream(spec, output)
        text = as_text(output, self.secrets.mask)
        if len(text.encode()) <= self.max_inline_bytes:
            return framed(spec, text)
        return await self._from_text(spec, *laid_out(output, text))

    async def _from_text(self, spec: ToolSpec, content: bytes, suffix: str) -> str:
        """It is in memory, so all of it is previewed whatever becomes of the sandbox."""
        preview = self.previews(suffix)
        passing = Passing(preview, self.digesting())
        passing.note(content)
        passing.end()
        said = await self._save(spec, Outgoing(pieces(content), suffix), passing)
        return self.previewed(spec, said, preview)

    async def _from_stream(self, spec: ToolSpec, stream: ByteStream) -> str:
        preview = None if stream.binary else self.previews(stream.suffix)
        coloured = preview is not None and stream.terminal
        out = outgoing(stream, self.secrets, preview.feed if preview is not None and coloured else None)
        passing = Passing(None if coloured else preview, None if out.binary else self.digesting())
        async with aclosing(out.chunks), aclosing(passing.through(out.chunks)) as chunks:
            begun = b"" if out.binary else await _begun(chunks, self.max_inline_bytes)
            if not out.binary and len(begun) <= self.max_inline_bytes:
                return _short(spec, begun, passing, out.note)
            said = await self._save(spec, replace(out, chunks=_joined(begun, chunks)), passing) + out.note
        return with_metadata(spec, said) if preview is None else self.previewed(spec, said, preview)

    def previewed(self, spec: ToolSpec, said: str, preview: Preview, most_bytes: int = PREVIEW_BYTES) -> str:
        """All of it together is within the budget, whatever the workflow's inline size is (T5). Masked once more: a
        preview that has seen colours has seen what stood between them."""
        frame = len(framed(spec, "x", said).encode()) - 1
        text = self.secrets.mask(preview.text(most_bytes - frame))
        return framed(spec, clipped(text, most_bytes - frame), said)

    async def _save(self, spec: ToolSpec, out: Outgoing, passing: Passing) -> str:
        """What we say of it: where it is, or why it is nowhere."""
        try:
            async with aclosing(out.chunks) as chunks, self.bench.using() as sandbox:
                path = await self.shelf.path(sandbox, spec.name, out.suffix)
                path = await put(sandbox, path, chunks, passing)
        except NOT_SAVED as error:
            why = clipped(str(error), ERROR_TEXT_CHARS)
            return f"[{spec.name} returned at least {passing.size} bytes, which were not saved. {why}{_only(out)}]"
        if passing.broke is not None:
            return f"[{broken_off(spec.name, path, passing, out)}{_below(out)}]"
        return f"[{spec.name} returned {passing.measured(out)}. All of it is in {path}{_below(out)}]"


def broken_off(name: str, path: str, passing: Passing, out: Outgoing) -> str:
    return f"{name} broke off after {passing.measured(out)} ({passing.why}). What came, not the whole, is in {path}"


def _below(out: Outgoing) -> str:
    return "" if out.binary else "; this is a preview:"


def _only(out: Outgoing) -> str:
    return "" if out.binary else " Only this preview is left:"


def _short(spec: ToolSpec, content: bytes, passing: Passing, note: str) -> str:
    text = content.decode("utf-8", "replace")
    if passing.broke is None:
        return framed(spec, text, note)
    if not content:
        raise passing.broke
    broke = f"[{spec.name} broke off after {passing.size} bytes ({passing.why}). Not the whole:]"
    return framed(spec, text, broke + note)


async def _begun(chunks: Bytes, room: int) -> bytes:
    """All of it, or a little more than fits."""
    begun = bytearray()
    async for chunk in chunks:
        begun += chunk
        if len(begun) > room:
            break
    return bytes(begun)


async def _joined(begun: bytes, rest: AsyncIterator[bytes]) -> Bytes:
    if begun:
        yield begun
    async for chunk in rest:
        yield chunk

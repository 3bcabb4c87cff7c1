"""A tool's output on its way into a file of the sandbox (T3, T4): masked, counted and previewed as it comes by, never
held. What breaks off in the middle is kept under a name that says so."""

import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from hummingbird.agent.tools.digested import Output
from hummingbird.agent.tools.preview import Preview
from hummingbird.agent.tools.results import as_text, clean, noted, why
from hummingbird.agent.tools.shelf import ending
from hummingbird.domain.errors import CommandFailed
from hummingbird.domain.limits import FRAME_BYTES
from hummingbird.domain.secrets import Secrets
from hummingbird.ports.sandbox import Sandbox
from hummingbird.ports.tool import ByteStream, Json

Bytes: TypeAlias = AsyncGenerator[bytes, None]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An output as the bytes of a file. `suffix` is fit for a name."""

    chunks: Bytes
    suffix: str
    binary: bool = False
    note: str = ""


def outgoing(
    output: str | Json | ByteStream, secrets: Secrets, seen: Callable[[bytes], None] | None = None
) -> Outgoing:
    """`seen` gets the text of a stream before terminals' sequences are taken out of it."""
    if isinstance(output, ByteStream):
        note = noted(output.note, secrets)
        return Outgoing(clean(output, secrets, seen), ending(output.suffix), output.binary, note)
    content, suffix = laid_out(output, as_text(output, secrets.mask))
    return Outgoing(pieces(content), suffix)


def laid_out(output: str | Json, text: str) -> tuple[bytes, str]:
    """The text of an output as the content of a file, and its suffix. JSON gets lines, for grep to find some."""
    return (text.encode(), "txt") if isinstance(output, str) else (msgspec.json.format(text, indent=2).encode(), "json")


async def pieces(content: bytes) -> Bytes:
    for start in range(0, len(content), FRAME_BYTES):
        yield content[start : start + FRAME_BYTES]


class Passing:
    """What is known of an output that comes by: its size, its lines, a preview, digests of its lines where somebody
    wants to know them again, and why it broke off if it did."""

    def __init__(self, preview: Preview | None = None, digested: Output | None = None) -> None:
        self._preview = preview
        self._digested = digested
        self._newlines = 0
        self._last = b""
        self.size = 0
        self.broke: Exception | None = None

    @property
    def lines(self) -> int:
        return self._newlines + bool(self._last and self._last != b"\n")

    def note(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._newlines += chunk.count(b"\n")
        self._last = chunk[-1:] or self._last
        if self._preview is not None:
            self._preview.feed(chunk)
        if self._digested is not None:
            self._digested.feed(chunk)

    def end(self) -> None:
        if self._digested is not None:
            self._digested.end()

    async def through(self, chunks: AsyncIterator[bytes]) -> Bytes:
        """The same chunks. Ends, and remembers why, where their source fails."""
        try:
            async for chunk in chunks:
                self.note(chunk)
                yield chunk
        except Exception as error:  # noqa: BLE001 - border: a source may raise anything; what came before it counts
            self.broke = error
        self.end()

    def measured(self, out: Outgoing) -> str:
        return f"{self.size} bytes of binary {out.suffix}" if out.binary else f"{self.size} bytes, {self.lines} lines"

    @property
    def why(self) -> str:
        return "" if self.broke is None else why(self.broke)


async def put(sandbox: Sandbox, path: str, chunks: AsyncIterator[bytes], passing: Passing) -> str:
    """Where it is now. Raises CommandFailed, SandboxBroken; and what ended it when not one byte of it had come."""
    await sandbox.stream_to_file(path, chunks)
    if passing.broke is None:
        return path
    partial = f"{path}.part"
    done = await sandbox.exec(f"mv -f -- {shlex.quote(path)} {shlex.quote(partial)}")
    if done.exit_code:
        raise CommandFailed(f"It broke off after {passing.size} bytes; {path} is not whole.", done.exit_code)
    if not passing.size:
        raise passing.broke
    return partial

"""Spill long outputs: save the whole output in a file of the sandbox and show the model a preview.

Streams are piped through. Only the beginning is held, until it is known whether all of it fits, and what the preview
keeps.
"""

import re
import shlex
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import msgspec

from hummingbird.agent.session_sandbox import SessionSandbox
from hummingbird.agent.tools.preview import OutputPreview, PreviewFactory, clip_bytes, create_evidence_preview
from hummingbird.agent.tools.results import (
    ReadyText,
    add_metadata,
    clean_stream,
    frame_result,
    note_line,
    output_to_text,
    short_reason,
)
from hummingbird.core.errors import CommandFailed, SandboxBroken, SandboxUnavailable
from hummingbird.core.journal import JournalEntry, ToolFinished
from hummingbird.core.limits import (
    ERROR_TEXT_CHARS,
    FRAME_BYTES,
    INLINE_RESULT_BYTES,
    MAX_INLINE_BYTES,
    PREVIEW_BYTES,
    RESULT_FRAME_BYTES,
    SUFFIX_CHARS,
)
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.sandbox import SPILL_FOLDER, Sandbox
from hummingbird.core.protocols.tools import ByteStream, Json
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.evidence.bounds import DIGESTED_LINE_BYTES, DIGESTED_LINES
from hummingbird.evidence.citations.diffs import FileLineRange, diff_line_ranges, is_diff

DIGITS = 9
_HIGHEST = (
    rf"ls -1A {SPILL_FOLDER} 2>/dev/null | sed -n 's/^.*_\([0-9]\{{1,{DIGITS}\}}\)\..*$/\1/p' | sort -n | tail -n 1"
)
_MENTIONED = re.compile(rf"{SPILL_FOLDER}/\w+_([0-9]{{1,{DIGITS}}})\.", re.ASCII)


class SpillPaths:
    """Names files in the sandbox /tmp/data/_out/NAME_N.ext, with one count for all of them.

    A number is used once, even if others put files there or the sandbox was restored. `last` is the highest number
    taken so far, though its file may be gone.
    """

    def __init__(self, last: int = 0) -> None:
        self._last = last

    async def next_path(self, sandbox: Sandbox, name: str, suffix: str) -> str:
        """Return a path that no file has."""
        found = (await sandbox.exec(_HIGHEST)).stdout.strip()  # commands may have put files there
        present = int(found) if found.isdigit() and len(found) <= DIGITS else 0
        self._last = max(self._last, present) + 1
        return f"{SPILL_FOLDER}/{_safe_stem(name)}_{self._last}.{safe_suffix(suffix)}"


def safe_suffix(suffix: str) -> str:
    """Return the suffix without other characters than letters, digits and dots, like `tar.gz` or `log`."""
    kept = re.sub(r"[^A-Za-z0-9.]", "", suffix)
    return re.sub(r"\.+", ".", kept)[:SUFFIX_CHARS].strip(".") or "txt"


def highest_spill_number(entries: Iterable[JournalEntry]) -> int:
    """Return the highest number in a session's results: a file that the model knows must not become another."""
    texts = (entry.text for entry in entries if isinstance(entry, ToolFinished) and SPILL_FOLDER in entry.text)
    return max((int(number) for text in texts for number in _MENTIONED.findall(text)), default=0)


def _safe_stem(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name) or "output"


_UNKNOWN = 0  # the digest of a line that is too long to be recognised


class LineDigests:
    """Digests of the lines that one run fetched into the sandbox.

    A model sees a long log through commands, and a command can print anything. So each line on its way into a file is
    remembered as a 64-bit number, in order: enough to say later whether and where a printed line was fetched. No text
    is held, and what an earlier process fetched is not known here.

    `is_full` means that not every line fitted.
    """

    def __init__(self, most: int = DIGESTED_LINES) -> None:
        self.room = most
        self._outputs: list[OutputDigest] = []
        self.is_full = False

    def new_output(self) -> "OutputDigest":
        """Return the digest of a new output, to be fed as it streams by."""
        made = OutputDigest(self)
        self._outputs.append(made)
        return made

    @property
    def line_ranges(self) -> Sequence[FileLineRange]:
        return [stretch for one in self._outputs for stretch in one.stretches]

    def find_lines(self, lines: Iterable[str]) -> Mapping[str, frozenset[int]]:
        """Return the line numbers at which each of the lines was fetched."""
        wanted: dict[int, list[str]] = {}
        for line in lines:
            wanted.setdefault(hash(line.encode("utf-8", "replace")), []).append(line)
        found: dict[str, set[int]] = {}
        for output in self._outputs if wanted else ():
            for number, digest in output.matching_lines(wanted.keys()):
                for line in wanted[digest]:
                    found.setdefault(line, set()).add(number)
        return {line: frozenset(numbers) for line, numbers in found.items()}


class OutputDigest:
    """The line digests of one output while it streams by."""

    def __init__(self, lines: LineDigests) -> None:
        self._lines = lines
        self._rest = b""  # the beginning of an incomplete line
        self._too_long = False
        self._diff: bool | None = None
        self._digests = array("q")
        self.stretches: list[FileLineRange] = []

    def matching_lines(self, wanted: Iterable[int]) -> list[tuple[int, int]]:
        """Return the numbers of lines whose digest is wanted, each with its digest."""
        known = frozenset(wanted)
        return [(number, digest) for number, digest in enumerate(self._digests, 1) if digest in known]

    def feed(self, chunk: bytes) -> None:
        last = chunk.rfind(b"\n")
        if last >= 0:
            self._add_lines(self._rest + chunk[:last])
            self._rest = b""
        self._rest += chunk[last + 1 :]
        if len(self._rest) > DIGESTED_LINE_BYTES:
            self._rest, self._too_long = b"", True

    def end(self) -> None:
        if self._rest or self._too_long:
            self._add_lines(self._rest)
        self._rest = b""

    def _add_lines(self, block: bytes) -> None:
        """Add whole lines, the last without its line break."""
        digests = array("q", map(hash, block.split(b"\n")))
        if self._too_long:
            digests[0], self._too_long = _UNKNOWN, False
        if len(digests) > self._lines.room:
            self._lines.is_full = True
            return
        self._lines.room -= len(digests)
        self._digests += digests
        if self._diff is None:
            self._diff = is_diff(block[:64].decode("utf-8", "replace"))
        if self._diff:
            self.stretches += diff_line_ranges(block.decode("utf-8", "replace").split("\n"))


ByteChunks: TypeAlias = AsyncGenerator[bytes, None]


@dataclass(frozen=True, slots=True)
class OutgoingFile:
    """An output as the bytes of a file; `suffix` is safe in a file name."""

    chunks: ByteChunks
    suffix: str
    binary: bool = False
    note: str = ""


def to_outgoing_file(
    output: str | Json | ByteStream, secrets: Secrets, seen: Callable[[bytes], None] | None = None
) -> OutgoingFile:
    """Return the output as a file; `seen` gets the text of a stream before terminal sequences are removed."""
    if isinstance(output, ByteStream):
        note = note_line(output.note, secrets)
        return OutgoingFile(clean_stream(output, secrets, seen), safe_suffix(output.suffix), output.binary, note)
    content, suffix = format_for_file(output, output_to_text(output, secrets.mask))
    return OutgoingFile(split_chunks(content), suffix)


def format_for_file(output: str | Json, text: str) -> tuple[bytes, str]:
    """Return the content and suffix of the file; JSON is indented, so that grep finds lines."""
    return (text.encode(), "txt") if isinstance(output, str) else (msgspec.json.format(text, indent=2).encode(), "json")


async def split_chunks(content: bytes) -> ByteChunks:
    for start in range(0, len(content), FRAME_BYTES):
        yield content[start : start + FRAME_BYTES]


class OutputMeter:
    """Measures an output that streams by: its size, lines, preview, line digests, and why it broke off if it did."""

    def __init__(self, preview: OutputPreview | None = None, digested: OutputDigest | None = None) -> None:
        self._preview = preview
        self._digest = digested
        self._newlines = 0
        self._last = b""
        self.size = 0
        self.error: Exception | None = None

    @property
    def lines(self) -> int:
        return self._newlines + bool(self._last and self._last != b"\n")

    def measure(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._newlines += chunk.count(b"\n")
        self._last = chunk[-1:] or self._last
        if self._preview is not None:
            self._preview.feed(chunk)
        if self._digest is not None:
            self._digest.feed(chunk)

    def end(self) -> None:
        if self._digest is not None:
            self._digest.end()

    async def pass_through(self, chunks: AsyncIterator[bytes]) -> ByteChunks:
        """Yield the same chunks; if their source fails, end and remember why."""
        try:
            async for chunk in chunks:
                self.measure(chunk)
                yield chunk
        except Exception as error:  # noqa: BLE001 - border: a source may raise anything; what came before it counts
            self.error = error
        self.end()

    def describe_size(self, out: OutgoingFile) -> str:
        return f"{self.size} bytes of binary {out.suffix}" if out.binary else f"{self.size} bytes, {self.lines} lines"

    @property
    def error_reason(self) -> str:
        return "" if self.error is None else short_reason(self.error)


async def write_to_sandbox(sandbox: Sandbox, path: str, chunks: AsyncIterator[bytes], passing: OutputMeter) -> str:
    """Write the chunks to a file and return its path; an output that broke off gets the suffix `.part`.

    Raises CommandFailed and SandboxBroken, and the source's error if not one byte had come.
    """
    await sandbox.stream_to_file(path, chunks)
    if passing.error is None:
        return path
    partial = f"{path}.part"
    done = await sandbox.exec(f"mv -f -- {shlex.quote(path)} {shlex.quote(partial)}")
    if done.exit_code:
        raise CommandFailed(f"It broke off after {passing.size} bytes; {path} is not whole.", done.exit_code)
    if not passing.size:
        raise passing.error
    return partial


SAVE_ERRORS = (SandboxBroken, SandboxUnavailable, CommandFailed)


class SpillShape:
    """The shape for sessions with a sandbox.

    `max_inline_bytes` is the workflow's own limit for one output; a command has two outputs, stdout and stderr.
    """

    def __init__(
        self,
        bench: SessionSandbox,
        secrets: Secrets,
        *,
        max_inline_bytes: int = MAX_INLINE_BYTES,
        previews: PreviewFactory = create_evidence_preview,
        shelf: SpillPaths | None = None,
        digested: LineDigests | None = None,
    ) -> None:
        self.sandbox = bench
        self.secrets = secrets
        self.max_inline_bytes = max_inline_bytes
        self.previews = previews
        self.paths = shelf or SpillPaths()
        self._digested = digested

    @property
    def most_bytes(self) -> int:
        return max(INLINE_RESULT_BYTES, 2 * (self.max_inline_bytes + RESULT_FRAME_BYTES))

    async def __call__(self, spec: ToolSpec, output: str | Json | ByteStream) -> str:
        text = await self._shape(spec, output)
        news = self.sandbox.take_news()
        return f"{news}\n{text}" if news else text

    def new_digest(self) -> OutputDigest | None:
        """Return a digest for an output that a source sends and a command may print later."""
        return None if self._digested is None else self._digested.new_output()

    async def _shape(self, spec: ToolSpec, output: str | Json | ByteStream) -> str:
        if isinstance(output, ReadyText):
            return str(output)  # journals hold plain strings only
        if isinstance(output, ByteStream):
            return await self._shape_stream(spec, output)
        text = output_to_text(output, self.secrets.mask)
        if len(text.encode()) <= self.max_inline_bytes:
            return frame_result(spec, text)
        return await self._shape_text(spec, *format_for_file(output, text))

    async def _shape_text(self, spec: ToolSpec, content: bytes, suffix: str) -> str:
        """Save and preview a text; it is in memory, so all of it is previewed even if the sandbox fails."""
        preview = self.previews(suffix)
        passing = OutputMeter(preview, self.new_digest())
        passing.measure(content)
        passing.end()
        said = await self._save_output(spec, OutgoingFile(split_chunks(content), suffix), passing)
        return self.frame_preview(spec, said, preview)

    async def _shape_stream(self, spec: ToolSpec, stream: ByteStream) -> str:
        preview = None if stream.binary else self.previews(stream.suffix)
        coloured = preview is not None and stream.terminal
        out = to_outgoing_file(stream, self.secrets, preview.feed if preview is not None and coloured else None)
        passing = OutputMeter(None if coloured else preview, None if out.binary else self.new_digest())
        async with aclosing(out.chunks), aclosing(passing.pass_through(out.chunks)) as chunks:
            begun = b"" if out.binary else await _read_beginning(chunks, self.max_inline_bytes)
            if not out.binary and len(begun) <= self.max_inline_bytes:
                return _frame_short_stream(spec, begun, passing, out.note)
            said = await self._save_output(spec, replace(out, chunks=_join_chunks(begun, chunks)), passing)
        return add_metadata(spec, said) if preview is None else self.frame_preview(spec, said, preview)

    def frame_preview(self, spec: ToolSpec, said: str, preview: OutputPreview, most_bytes: int = PREVIEW_BYTES) -> str:
        """Return the framed preview, at most `most_bytes` in all.

        It is masked once more: a preview of coloured text has seen credentials that terminal sequences split.
        """
        frame = len(frame_result(spec, "x", said).encode()) - 1
        text = self.secrets.mask(preview.text(most_bytes - frame))
        return frame_result(spec, clip_bytes(text, most_bytes - frame), said)

    async def _save_output(self, spec: ToolSpec, out: OutgoingFile, passing: OutputMeter) -> str:
        """Save the output and return our words about it: where it is, or why it was not saved, and the tool's note."""
        try:
            async with aclosing(out.chunks) as chunks, self.sandbox.use() as sandbox:
                path = await self.paths.next_path(sandbox, spec.name, out.suffix)
                path = await write_to_sandbox(sandbox, path, chunks, passing)
        except SAVE_ERRORS as error:
            why = clip_bytes(str(error), ERROR_TEXT_CHARS)
            hint = _not_saved_hint(out)
            return f"[{spec.name} returned at least {passing.size} bytes, which were not saved. {why}{hint}]{out.note}"
        if passing.error is not None:
            return f"[{break_off_message(spec.name, path, passing, out)}{_preview_hint(out)}]{out.note}"
        said = f"[{spec.name} returned {passing.describe_size(out)}. All of it is in {path}{_preview_hint(out)}]"
        return f"{said}{out.note}\n{msgspec.json.encode(saved_fields(path, passing, out)).decode()}"


def saved_fields(path: str, passing: OutputMeter, out: OutgoingFile) -> dict[str, Any]:
    """Return where an output was saved, under the field names that existing prompts expect."""
    told: dict[str, Any] = {"saved_to": path, "bytes": passing.size}
    return told if out.binary else {**told, "lines": passing.lines}


def break_off_message(name: str, path: str, passing: OutputMeter, out: OutgoingFile) -> str:
    size = passing.describe_size(out)
    return f"{name} broke off after {size} ({passing.error_reason}). What came, not the whole, is in {path}"


def _preview_hint(out: OutgoingFile) -> str:
    return "" if out.binary else "; this is a preview:"


def _not_saved_hint(out: OutgoingFile) -> str:
    return "" if out.binary else " Only this preview is left:"


def _frame_short_stream(spec: ToolSpec, content: bytes, passing: OutputMeter, note: str) -> str:
    text = content.decode("utf-8", "replace")
    if passing.error is None:
        return frame_result(spec, text, note)
    if not content:
        raise passing.error
    broke = f"[{spec.name} broke off after {passing.size} bytes ({passing.error_reason}). Not the whole:]"
    return frame_result(spec, text, broke + note)


async def _read_beginning(chunks: ByteChunks, room: int) -> bytes:
    """Return all of it, or a little more than fits."""
    begun = bytearray()
    async for chunk in chunks:
        begun += chunk
        if len(begun) > room:
            break
    return bytes(begun)


async def _join_chunks(begun: bytes, rest: AsyncIterator[bytes]) -> ByteChunks:
    if begun:
        yield begun
    async for chunk in rest:
        yield chunk

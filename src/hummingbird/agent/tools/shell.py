"""`sandbox_exec` (T3): a command in the session's sandbox, and its outcome as a model reads it.

Each of stdout and stderr is an output of its own: labelled, fenced, and in a file when it is long. Knows no backend.
"""

import shlex
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from hummingbird.agent.tools.deposit import Passing
from hummingbird.agent.tools.preview import Preview
from hummingbird.agent.tools.results import NOTHING, Ready, clean, framed
from hummingbird.agent.tools.spill import NOT_SAVED, Spill
from hummingbird.domain.errors import CommandFailed, SandboxBroken
from hummingbird.domain.limits import (
    EXEC_TIMEOUT_CAP_S,
    EXEC_TIMEOUT_S,
    INLINE_RESULT_BYTES,
    PREVIEW_BYTES,
    RESULT_FRAME_BYTES,
    TOOL_TIMEOUT_S,
)
from hummingbird.domain.text import shortened
from hummingbird.domain.tools import Effect, ToolSpec
from hummingbird.ports.sandbox import ROOT, SPILLED, Executed
from hummingbird.ports.tool import ByteStream, Output, ToolContext

NAME = "sandbox_exec"
TEXT, BINARY = "txt", "bin"
DESCRIPTION = f"""\
Runs a shell command (sh -c) in your sandbox, in {ROOT}, and returns its exit code, stdout and stderr. There are \
python3, jq, yq, grep, sed, awk, find, tar and coreutils, and no network. Files in {ROOT} stay for the whole session. \
Whatever a command starts ends with it: nothing goes on in the background. Output that is too long to show is saved \
whole in a file below {SPILLED}, and you get its path and a preview; ask for what you need (grep -n, jq, \
sed -n '100,150p') rather than for everything.\
"""
NOTES = f"""\
Your sandbox keeps files in {ROOT}. Results that are too long to show are saved whole below {SPILLED}, and you get the \
path with a preview: search in the file with {NAME} instead of making the call again.\
"""


def spec(timeout_s: float = EXEC_TIMEOUT_S) -> ToolSpec:
    """`timeout_s`: of a command whose call names none."""
    return ToolSpec(
        name=NAME,
        description=DESCRIPTION,
        schema={
            "type": "object",
            "properties": {
                "command": {"type": "string", "minLength": 1, "description": "For sh -c; several lines are fine."},
                "timeout_s": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "description": f"When to end it; {timeout_s:g} unless given, at most {EXEC_TIMEOUT_CAP_S:g}.",
                },
            },
            "required": ["command"],
            "additionalProperties": False,
        },
        toolset="sandbox",
        effects=frozenset({Effect.EXEC}),
        timeout_s=EXEC_TIMEOUT_CAP_S + TOOL_TIMEOUT_S,  # the command's own, and the start and the files around it
        notes=NOTES,
    )


SPEC = spec()
# Both streams must fit into one result, which is cut without regard to fences when it does not
_ROOM = (INLINE_RESULT_BYTES - 2 * RESULT_FRAME_BYTES) // 2


@dataclass(frozen=True, slots=True)
class _Stream:
    """One of a command's two outputs. `kept` is all of it unless it weighs more; then `file` has it, if anything has.
    `doubtful`: something went wrong that may have been its file."""

    name: str
    kept: bytes
    size: int
    file: str
    doubtful: bool

    @property
    def binary(self) -> bool:
        return b"\0" in self.kept

    def fits(self, room: int) -> bool:
        return self.size <= min(room, len(self.kept)) and not self.binary


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a preview was made of: all of a stream, or its beginning."""

    passing: Passing
    preview: Preview
    whole: bool


class Shell:
    def __init__(self, spill: Spill, timeout_s: float = EXEC_TIMEOUT_S) -> None:
        self._spill = spill
        self._timeout_s = timeout_s
        self._spec = spec(timeout_s)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        limit = min(float(arguments.get("timeout_s", self._timeout_s)), EXEC_TIMEOUT_CAP_S)
        try:
            async with self._spill.bench.using() as sandbox:
                done = await sandbox.exec(arguments["command"], timeout_s=limit)
        except SandboxBroken as error:
            raise SandboxBroken(
                f"The sandbox broke, so nothing is known of the command's outcome. {error} Your next call gets a new "
                "one, with your files as far as they were saved."
            ) from error
        return Ready(await self._told(done, limit))

    async def _told(self, done: Executed, limit: float) -> str:
        streams = (
            _Stream("stdout", done.stdout, done.stdout_bytes, done.stdout_file, bool(done.complaint)),
            _Stream("stderr", done.stderr, done.stderr_bytes, done.stderr_file, bool(done.complaint)),
        )
        room = min(self._spill.max_inline_bytes, _ROOM)
        long = sum(not stream.fits(room) for stream in streams)
        parts = [
            self._inline(stream) if stream.fits(room) else await self._saved(stream, PREVIEW_BYTES // long)
            for stream in streams
        ]
        return "\n".join([_verdict(done, limit), *parts])

    def _inline(self, stream: _Stream) -> str:
        if not stream.kept:
            return f"{stream.name}: {NOTHING}"
        text = self._spill.secrets.mask(stream.kept.decode("utf-8", "replace"))
        return framed(SPEC, text, f"{stream.name}:")

    async def _saved(self, stream: _Stream, most_bytes: int) -> str:
        path = ""
        try:
            path = await self._put(stream)
            where = _where(stream, path)
        except NOT_SAVED as error:
            where = f"it was not saved ({shortened(str(error), 200)})"
        if stream.binary:
            return f"{stream.name}: {stream.size} bytes that are no text; {where}"
        seen = await self._look(stream, path)
        measured = f"{stream.size} bytes, {seen.passing.lines} lines" if seen.whole else f"{stream.size} bytes"
        of_what = "A preview:" if seen.whole else "A preview of its beginning:"
        return self._spill.previewed(SPEC, f"{stream.name}: {measured}; {where}. {of_what}", seen.preview, most_bytes)

    async def _put(self, stream: _Stream) -> str:
        """The path under which all of it can be found, empty when nothing has all of it. Raises what is NOT_SAVED."""
        if stream.size > len(stream.kept) and not stream.file:
            return ""
        async with self._spill.bench.using() as sandbox:
            suffix = BINARY if stream.binary else TEXT
            path = await self._spill.shelf.path(sandbox, f"{NAME}_{stream.name}", suffix)
            if not stream.file:
                await sandbox.write_file(path, stream.kept)
                return path
            moved = await sandbox.exec(f"mv -f -- {shlex.quote(stream.file)} {shlex.quote(path)}")
            if moved.exit_code:
                raise CommandFailed("Its file was gone before the command had ended.", moved.exit_code)
        return path

    async def _look(self, stream: _Stream, path: str) -> _Seen:
        """For the preview: what only the sandbox has is read back without being held; else what we were given."""
        if stream.file and path:
            with suppress(*NOT_SAVED):
                return await self._read(path)
        seen = self._seen(whole=stream.size <= len(stream.kept))
        masking = self._spill.secrets.stream()
        seen.passing.note(masking.end(stream.kept) if seen.whole else masking.feed(stream.kept))
        return seen

    async def _read(self, path: str) -> _Seen:
        seen = self._seen(whole=True)
        async with self._spill.bench.using() as sandbox:
            content = ByteStream(sandbox.read_file_iter(path))
            async with aclosing(clean(content, self._spill.secrets)) as chunks:
                async for chunk in chunks:
                    seen.passing.note(chunk)
        return seen

    def _seen(self, *, whole: bool) -> _Seen:
        preview = self._spill.previews(TEXT)
        return _Seen(Passing(preview), preview, whole)


def _where(stream: _Stream, path: str) -> str:
    if not path:
        return "only its beginning was kept"
    return f"what could be kept of it is in {path}" if stream.file and stream.doubtful else f"all of it is in {path}"


def _verdict(done: Executed, limit: float) -> str:
    said = f"exit code {done.exit_code}"
    if done.timed_out:
        said = (
            f"The command was ended after {limit:g} s with everything it had started (exit code {done.exit_code}). Ask "
            f"for less, or give a larger timeout_s, at most {EXEC_TIMEOUT_CAP_S:g}."
        )
    return f"{said}\n[Note: {shortened(done.complaint, 300)}.]" if done.complaint else said

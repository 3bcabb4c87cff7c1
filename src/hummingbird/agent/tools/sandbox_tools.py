"""The tools of a session with a sandbox: run commands, and fetch a source's output into a file.

A command's stdout and stderr are separate outputs: each is labelled, fenced, and in a file when it is long. A fetch
gives the model path, size and lines, but none of the content; the source's tool passes the same hooks and permissions
as if the model had called it.
"""

import asyncio
import posixpath
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import msgspec

from hummingbird.agent.interrupts import is_outside_interrupt, run_within
from hummingbird.agent.session_sandbox import SessionSandbox
from hummingbird.agent.tools.preview import OutputPreview, PreviewFactory, create_evidence_preview
from hummingbird.agent.tools.results import (
    NO_OUTPUT,
    ReadyText,
    add_metadata,
    clean_stream,
    frame_result,
    tool_failure_text,
)
from hummingbird.agent.tools.spill import (
    SAVE_ERRORS,
    LineDigests,
    OutputMeter,
    SpillPaths,
    SpillShape,
    break_off_message,
    highest_spill_number,
    saved_fields,
    to_outgoing_file,
    write_to_sandbox,
)
from hummingbird.core.errors import ArgumentsInvalid, CallTimedOut, CommandFailed, SandboxBroken
from hummingbird.core.journal import JournalEntry
from hummingbird.core.limits import (
    CONCURRENT_TOOLS,
    EXEC_TIMEOUT_CAP_S,
    EXEC_TIMEOUT_S,
    FETCHES,
    MAX_INLINE_BYTES,
    PATH_BYTES,
    PREVIEW_BYTES,
    TOOL_TIMEOUT_S,
)
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT, SPILL_FOLDER, ExecResult
from hummingbird.core.protocols.tools import ByteStream, Tool, ToolContext, ToolOutput
from hummingbird.core.text import shorten_line
from hummingbird.core.tool_spec import ToolEffect, ToolSpec

EXEC_NAME = "sandbox_exec"
TEXT_SUFFIX, BINARY_SUFFIX = "txt", "bin"
EXEC_DESCRIPTION = f"""\
Runs a shell command (sh -c) in your sandbox, in {SANDBOX_ROOT}, and returns its exit code, stdout and stderr. \
There are python3, grep, sed, awk, find, tar and coreutils, in most sandboxes jq and yq too (`command -v jq` tells), \
and no network. \
Files in {SANDBOX_ROOT} stay for the whole session. Whatever a command starts ends with it: nothing goes on \
in the background. Output that is too long to show is saved \
whole in a file below {SPILL_FOLDER}, and you get its path and a preview; ask for what you need (grep -n, \
sed -n '100,150p') rather than for everything.\
"""
EXEC_NOTES = f"""\
Your sandbox keeps files in {SANDBOX_ROOT}. Results that are too long to show are saved whole below {SPILL_FOLDER}, \
and you get the path with a preview: search in the file with {EXEC_NAME} instead of making the call again.\
"""


def exec_spec(timeout_s: float = EXEC_TIMEOUT_S) -> ToolSpec:
    """Return the specification; `timeout_s` is that of a command whose call names none."""
    return ToolSpec(
        name=EXEC_NAME,
        description=EXEC_DESCRIPTION,
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
        effects=frozenset({ToolEffect.EXEC}),
        timeout_s=EXEC_TIMEOUT_CAP_S
        + TOOL_TIMEOUT_S,  # the command's own time, plus time for the sandbox's start and the files
        notes=EXEC_NOTES,
    )


EXEC_SPEC = exec_spec()


@dataclass(frozen=True, slots=True)
class _CommandStream:
    """One of a command's two outputs.

    `kept` is its beginning, or all of it if it is short; `file` has all of a longer one, if anything has. `doubtful`
    means that something went wrong, perhaps with its file.
    """

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
class _StreamPreview:
    """A preview of all of a stream, or of its beginning."""

    passing: OutputMeter
    preview: OutputPreview
    whole: bool


class SandboxExecTool:
    """The tool `sandbox_exec`: runs a command in the session's sandbox."""

    def __init__(self, spill: SpillShape, timeout_s: float = EXEC_TIMEOUT_S) -> None:
        self._spill = spill
        self._timeout_s = timeout_s
        self._spec = exec_spec(timeout_s)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        limit = min(float(arguments.get("timeout_s", self._timeout_s)), EXEC_TIMEOUT_CAP_S)
        try:
            async with self._spill.sandbox.use() as sandbox:
                done = await sandbox.exec(arguments["command"], timeout_s=limit)
        except SandboxBroken as error:
            raise SandboxBroken(
                f"The sandbox broke, so the command's outcome is unknown. {error} Your next call gets a new "
                "one, with your files as far as they were saved."
            ) from error
        return ReadyText(await self._describe_result(done, limit))

    async def _describe_result(self, done: ExecResult, limit: float) -> str:
        streams = (
            _CommandStream("stdout", done.stdout, done.stdout_bytes, done.stdout_file, bool(done.complaint)),
            _CommandStream("stderr", done.stderr, done.stderr_bytes, done.stderr_file, bool(done.complaint)),
        )
        room = self._spill.max_inline_bytes
        long = sum(not stream.fits(room) for stream in streams)
        fields: dict[str, Any] = {"exit_code": done.exit_code}
        parts = [
            self._show_inline(stream)
            if stream.fits(room)
            else await self._save_and_preview(stream, PREVIEW_BYTES // long, fields)
            for stream in streams
        ]
        measures = [msgspec.json.encode(fields).decode()] if long else []
        return "\n".join([_exit_sentence(done, limit), *measures, *parts])

    def _show_inline(self, stream: _CommandStream) -> str:
        if not stream.kept:
            return f"{stream.name}: {NO_OUTPUT}"
        text = self._spill.secrets.mask(stream.kept.decode("utf-8", "replace"))
        return frame_result(EXEC_SPEC, text, f"{stream.name}:")

    async def _save_and_preview(self, stream: _CommandStream, most_bytes: int, fields: dict[str, Any]) -> str:
        """Save the stream and return a preview; add where it is and its measures to `fields`."""
        path = ""
        try:
            path = await self._save_stream(stream)
            where = _file_sentence(stream, path)
        except SAVE_ERRORS as error:
            where = f"it was not saved ({shorten_line(str(error), 200)})"
        fields[f"{stream.name}_truncated"] = True
        if path:
            fields[f"{stream.name}_file"] = path
        fields[f"{stream.name}_bytes"] = stream.size
        if stream.binary:
            return f"{stream.name}: {stream.size} bytes that are not text; {where}"
        seen = await self._preview_stream(stream, path)
        if seen.whole:
            fields[f"{stream.name}_lines"] = seen.passing.lines
        measured = f"{stream.size} bytes, {seen.passing.lines} lines" if seen.whole else f"{stream.size} bytes"
        of_what = "A preview:" if seen.whole else "A preview of its beginning:"
        return self._spill.frame_preview(
            EXEC_SPEC, f"{stream.name}: {measured}; {where}. {of_what}", seen.preview, most_bytes
        )

    async def _save_stream(self, stream: _CommandStream) -> str:
        """Return the path of the whole stream; empty when nothing has all of it.

        Raises SAVE_ERRORS.
        """
        if stream.size > len(stream.kept) and not stream.file:
            return ""
        async with self._spill.sandbox.use() as sandbox:
            suffix = BINARY_SUFFIX if stream.binary else TEXT_SUFFIX
            path = await self._spill.paths.next_path(sandbox, f"{EXEC_NAME}_{stream.name}", suffix)
            if not stream.file:
                await sandbox.write_file(path, stream.kept)
                return path
            moved = await sandbox.exec(f"mv -f -- {shlex.quote(stream.file)} {shlex.quote(path)}")
            if moved.exit_code:
                raise CommandFailed("Its file was gone before the command had ended.", moved.exit_code)
        return path

    async def _preview_stream(self, stream: _CommandStream, path: str) -> _StreamPreview:
        """Return a preview of the file in the sandbox, read back as a stream, else of the part that we have."""
        if stream.file and path:
            with suppress(*SAVE_ERRORS):
                return await self._preview_file(path)
        seen = self._new_preview(whole=stream.size <= len(stream.kept))
        masking = self._spill.secrets.open_stream()
        seen.passing.measure(masking.end(stream.kept) if seen.whole else masking.feed(stream.kept))
        return seen

    async def _preview_file(self, path: str) -> _StreamPreview:
        seen = self._new_preview(whole=True)
        async with self._spill.sandbox.use() as sandbox:
            content = ByteStream(sandbox.read_file_iter(path))
            async with aclosing(clean_stream(content, self._spill.secrets)) as chunks:
                async for chunk in chunks:
                    seen.passing.measure(chunk)
        return seen

    def _new_preview(self, *, whole: bool) -> _StreamPreview:
        preview = self._spill.previews(TEXT_SUFFIX)
        return _StreamPreview(OutputMeter(preview), preview, whole)


def _file_sentence(stream: _CommandStream, path: str) -> str:
    if not path:
        return "only its beginning was kept"
    return f"what could be kept of it is in {path}" if stream.file and stream.doubtful else f"all of it is in {path}"


def _exit_sentence(done: ExecResult, limit: float) -> str:
    said = f"exit code {done.exit_code}"
    if done.timed_out:
        said = (
            f"The command was ended after {limit:g} s with everything it had started (exit code {done.exit_code}). Ask "
            f"for less, or give a larger timeout_s, at most {EXEC_TIMEOUT_CAP_S:g}."
        )
    return f"{said}\n[Note: {shorten_line(done.complaint, 300)}.]" if done.complaint else said


FETCH_NAME, FETCH_BATCH_NAME = "fetch_to_sandbox", "fetch_batch_to_sandbox"
_FETCH_DESCRIPTION = f"""\
The whole output goes into a file below {SANDBOX_ROOT} in your sandbox, under a path that you choose, \
and you get its path, size and number of lines, not the content. Use it for logs and other \
long material that you want to search in.\
"""


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """What to fetch, and the path of the file."""

    tool: str
    arguments: Mapping[str, Any]
    path: str


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What the model reads about a fetch, and the same as fields; `whole` means that nothing is missing."""

    whole: bool
    text: str
    fields: Mapping[str, Any]


class FetchTool:
    """The tool `fetch_to_sandbox`: one fetch. `sources` are the session's source tools, at least one."""

    def __init__(self, spill: SpillShape, sources: Sequence[Tool]) -> None:
        self._spill = spill
        self._sources = {tool.spec.name: tool.spec for tool in sources}
        self._spec = ToolSpec(
            name=FETCH_NAME,
            description=f"Calls one of the source tools and saves what it returns. {_FETCH_DESCRIPTION}",
            schema=_fetch_schema(self._sources),
            toolset="sandbox",
            timeout_s=_fetch_timeout_s(self._sources),
            mentions={FETCH_BATCH_NAME: f"For several at once there is {FETCH_BATCH_NAME}."},
        )

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        done = await self.fetch(_parse_request(arguments), context)
        return ReadyText(f"{done.text}\n{msgspec.json.encode(done.fields).decode()}")

    async def fetch(self, order: FetchRequest, context: ToolContext) -> FetchResult:
        """Call the source's tool and save its output.

        Raises what the source's tool raises, CallTimedOut, CommandFailed and SandboxBroken.
        """
        output = await context.call(order.tool, order.arguments)
        spec = self._sources[order.tool]
        try:
            done = await run_within(spec.timeout_s, self._store(order, output))
        except TimeoutError as error:
            late = f"Saving what {order.tool} returned took more than {spec.timeout_s:g} s; ask for less."
            raise CallTimedOut(late) from error
        return replace(done, text=add_metadata(spec, done.text))

    async def _store(self, order: FetchRequest, output: ToolOutput) -> FetchResult:
        out = to_outgoing_file(output, self._spill.secrets)
        passing = OutputMeter(digested=None if out.binary else self._spill.new_digest())
        incoming = passing.pass_through(out.chunks)
        async with aclosing(out.chunks), aclosing(incoming), self._spill.sandbox.use() as sandbox:
            path = await write_to_sandbox(sandbox, order.path, incoming, passing)
        fields = saved_fields(path, passing, out)
        if passing.error is not None:
            broke = break_off_message(order.tool, path, passing, out)
            return FetchResult(False, broke + out.note, {**fields, "error": broke})
        return FetchResult(True, f"{path}: {passing.describe_size(out)}{out.note}", fields)


class FetchBatchTool:
    """The tool `fetch_batch_to_sandbox`: several fetches at once, each reported separately."""

    def __init__(self, fetch: FetchTool, sources: Sequence[Tool]) -> None:
        self._fetch = fetch
        specs = {tool.spec.name: tool.spec for tool in sources}
        self._sources = specs
        rounds = -(-FETCHES // CONCURRENT_TOOLS)
        several = {"type": "array", "items": _fetch_schema(specs), "minItems": 1, "maxItems": FETCHES}
        self._spec = ToolSpec(
            name=FETCH_BATCH_NAME,
            description=f"Calls source tools at the same time, up to {FETCHES}, and saves what each returns. "
            f"{_FETCH_DESCRIPTION}",
            schema=_object_schema({"fetches": several}),
            toolset="sandbox",
            timeout_s=rounds * _fetch_timeout_s(specs),
        )

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        orders = [_parse_request(each) for each in arguments["fetches"]]
        if twice := {order.path for order in orders if [other.path for other in orders].count(order.path) > 1}:
            raise ArgumentsInvalid(f"Two fetches would write {min(twice)}; give each its own path.")
        slots = asyncio.Semaphore(CONCURRENT_TOOLS)
        async with asyncio.TaskGroup() as group:
            works = [group.create_task(self._fetch_one(order, context, slots)) for order in orders]
        results = [work.result() for work in works]
        good = sum(result.whole for result in results)
        fields = msgspec.json.encode({"results": [result.fields for result in results]}).decode()
        texts = (result.text for result in results)
        return ReadyText("\n".join([f"{good} of {len(results)} fetched.", *texts, fields]))

    async def _fetch_one(self, order: FetchRequest, context: ToolContext, slots: asyncio.Semaphore) -> FetchResult:
        async with slots:
            try:
                return await self._fetch.fetch(order, context)
            except BaseException as error:  # border: one that fails does not take the others with it
                if is_outside_interrupt(error):
                    raise
                why = tool_failure_text(self._sources[order.tool], error)
                ours = why.split("\n", 1)[0]  # behind it an outsider may speak
                return FetchResult(False, f"{order.path}: nothing was saved. {why}", {"error": ours})


def _parse_request(arguments: Mapping[str, Any]) -> FetchRequest:
    return FetchRequest(arguments["tool"], arguments["arguments"], resolve_path(arguments["path"]))


def resolve_path(path: str) -> str:
    """Return the absolute path, which must be below SANDBOX_ROOT and outside our own folder.

    Raises ArgumentsInvalid. Links need no check: nothing outside the sandbox can be reached through them.
    """
    found = posixpath.normpath(posixpath.join(SANDBOX_ROOT, path))
    if not found.startswith(f"{SANDBOX_ROOT}/") or not path.isprintable() or path.endswith("/"):
        raise ArgumentsInvalid(
            f"{shorten_line(path, 200)!r} is not a path for a file below {SANDBOX_ROOT}; choose one there."
        )
    if f"{found}/".startswith(f"{SPILL_FOLDER}/"):
        raise ArgumentsInvalid(
            f"{SPILL_FOLDER} is where long results are put; choose another path below {SANDBOX_ROOT}."
        )
    if len(found.encode("utf-8", "replace")) > PATH_BYTES:
        raise ArgumentsInvalid(f"That path is longer than {PATH_BYTES} bytes; choose a shorter one.")
    return found


def _fetch_timeout_s(sources: Mapping[str, ToolSpec]) -> float:
    """Return as long as the slowest source may take, and as long again for saving its output."""
    return TOOL_TIMEOUT_S + 2 * max(spec.timeout_s for spec in sources.values())


def _fetch_schema(sources: Mapping[str, ToolSpec]) -> dict[str, Any]:
    return _object_schema(
        {
            "tool": {"type": "string", "enum": list(sources), "description": "The source tool to call."},
            "arguments": {"type": "object", "description": "Its arguments, as when you call it yourself."},
            "path": {
                "type": "string",
                "minLength": 1,
                "description": f"Below {SANDBOX_ROOT}, for example {SANDBOX_ROOT}/job.log.",
            },
        }
    )


def _object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SANDBOX_TOOLS = (EXEC_NAME, FETCH_NAME, FETCH_BATCH_NAME)


@dataclass(frozen=True, slots=True)
class SandboxToolset:
    """What a session with a sandbox has in addition: three tools and the shape of all results.

    `tools` join the session's own, `shape` goes into the loop's configuration, and `sandbox.checkpoint` must be called
    after each batch of calls.
    """

    tools: tuple[Tool, ...]
    shape: SpillShape
    sandbox: SessionSandbox


@runtime_checkable
class UsesSandbox(Protocol):
    """A tool that uses the session's sandbox if there is one."""

    def use_sandbox(self, spill: SpillShape) -> None: ...


def create_sandbox_tools(
    bench: SessionSandbox,
    tools: Iterable[Tool],
    secrets: Secrets,
    *,
    entries: Iterable[JournalEntry] = (),
    max_inline_bytes: int = MAX_INLINE_BYTES,
    exec_timeout_s: float = EXEC_TIMEOUT_S,
    previews: PreviewFactory = create_evidence_preview,
    digested: LineDigests | None = None,
) -> SandboxToolset:
    """Create the sandbox tools of a session.

    `tools` are the session's other tools: those with a source can be fetched from. `entries` is its journal so far, so
    that no file number is used twice. `digested` gets the lines of what goes into files.
    """
    shelf, tools = SpillPaths(highest_spill_number(entries)), list(tools)
    spill = SpillShape(
        bench, secrets, max_inline_bytes=max_inline_bytes, previews=previews, shelf=shelf, digested=digested
    )
    shell = SandboxExecTool(spill, exec_timeout_s)
    for tool in tools:
        if isinstance(tool, UsesSandbox):
            tool.use_sandbox(spill)
    sources = [tool for tool in tools if tool.spec.source]
    if not sources:
        return SandboxToolset((shell,), spill, bench)
    fetch = FetchTool(spill, sources)
    return SandboxToolset((shell, fetch, FetchBatchTool(fetch, sources)), spill, bench)

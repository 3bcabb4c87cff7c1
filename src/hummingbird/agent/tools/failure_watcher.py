"""Collect what a run comes across, from the output of the sources' tools as it streams by.

    watcher = FailureWatcher(secrets)
    Agent(…, sources=[watcher.watch_source(one) for one in sources(…)])
    …
    watcher.failures  # once the run has ended: what failed, for the ledger of known failures
    watcher.readings  # and what was read, for the verdict

The watcher wraps the tools themselves. A preview would see too little: neither short output that stays in the
conversation, nor what is fetched into a file, nor which tool it came from, and so whether it is the log of a successful
job. What the model reads does not change. What an earlier process saw of the same run is not known here.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import msgspec

from hummingbird.agent.failed_logs import FailedLogReader, RawRecord, ToolReading, parse_records
from hummingbird.agent.failure_facts import RequestFinder
from hummingbird.core.limits import FAILURES_SEEN
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ByteStream, DataSource, Tool, ToolContext, ToolOutput
from hummingbird.core.text import replace_surrogates
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.core.verdicts import ObservedFailure
from hummingbird.evidence.bounds import LOOK_ITEMS, LOOK_LIST_BYTES, RUN_READINGS
from hummingbird.evidence.report_preview import INCOMPLETE_KEY

# Tools that show what ran and how it ended. Diffs, files and comments only quote failures, and green logs have none.
WATCHED_TOOLS = frozenset(
    {
        "gitlab_get_job_log",
        "gitlab_get_job_artifact",
        "gitlab_get_test_report",
        "konflux_list_pipelineruns",
        "konflux_list_taskruns",
        "konflux_get_pod_log",
        "tf_get_results",
        "tf_get_test_log",
    }
)


def _task_run_record(raw: RawRecord) -> RawRecord:
    """Return which pod belongs to which run; a whole TaskRun may have 50 KB."""
    metadata, status = raw.get("metadata"), raw.get("status")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    run = labels.get("tekton.dev/pipelineRun") if isinstance(labels, dict) else None
    return {"run": run, "pod": status.get("podName") if isinstance(status, dict) else None}


def _file_record(raw: RawRecord) -> RawRecord:
    return {name: raw.get(name) for name in ("new_path", "old_path")}


_PATCH_NAMES = re.compile(rb"^(?:\+\+\+ b/|rename to )(?P<new>.+)|^(?:--- a/|rename from )(?P<old>.+)", re.MULTILINE)


def _patch_records(lines: bytes) -> list[RawRecord]:
    """Return the files that a patch names.

    A line of a file may be taken for a name; such a mistake can only blame the change, never excuse it.
    """
    found = (match.groupdict() for match in _PATCH_NAMES.finditer(lines))
    return [
        {f"{key}_path": name.decode("utf-8", "replace").rstrip() for key, name in each.items() if name}
        for each in found
    ]


def _picked_records(pick: Callable[[RawRecord], RawRecord]) -> Callable[[bytes], list[RawRecord]]:
    return lambda lines: [one if INCOMPLETE_KEY in one else pick(one) for one in parse_records(lines)]


# What a verdict needs of the tools that list what failed and what was changed.
LISTING_TOOLS: Mapping[str, Callable[[bytes], list[RawRecord]]] = {
    "gitlab_get_commit_statuses": parse_records,
    "gitlab_get_pipeline_jobs": parse_records,
    "gitlab_get_mr_diff": _picked_records(_file_record),
    "gitlab_get_mr_unified_diff": _patch_records,
    "konflux_list_taskruns": _picked_records(_task_run_record),
}


class FailureWatcher:
    """Watches the tools whose names are in `watched`, and those that list what failed and what was changed."""

    def __init__(self, secrets: Secrets, watched: Set[str] = WATCHED_TOOLS) -> None:
        self._secrets = secrets
        self._watched = watched
        self._found: dict[str, ObservedFailure] = {}
        self._readings: list[ToolReading] = []

    @property
    def failures(self) -> tuple[ObservedFailure, ...]:
        """Return each failure once, in the order in which they were seen; at most FAILURES_SEEN."""
        return tuple(self._found.values())

    @property
    def readings(self) -> tuple[ToolReading, ...]:
        """Return what was read to its end, in order; at most RUN_READINGS."""
        return tuple(self._readings)

    def watch_source(self, source: DataSource) -> DataSource:
        """Return the same source with its tools watched."""
        return _WatchedSource(source, tuple(map(self.watch_tool, source.tools)))

    def watch_tool(self, tool: Tool) -> Tool:
        return _WatchedTool(tool, self) if tool.spec.name in self._watched | LISTING_TOOLS.keys() else tool

    def watch_output(
        self, output: ToolOutput, name: str = "", arguments: Mapping[str, Any] | None = None
    ) -> ToolOutput:
        """Return the same output; a stream is watched while somebody else reads it, as far as it comes."""
        if isinstance(output, ByteStream) and output.binary:
            return output
        fails = not name or name in self._watched
        watch = _OutputWatch(self._secrets, name, dict(arguments or {}), fails=fails)
        if isinstance(output, ByteStream):
            return replace(output, chunks=self._watch_stream(output.chunks, watch))
        content = output if isinstance(output, str) else msgspec.json.encode(output).decode()
        watch.feed(replace_surrogates(content).encode())
        self._add_reading(watch, whole=True, kept=not isinstance(output, str))
        return output

    async def _watch_stream(self, chunks: AsyncIterator[bytes], watch: "_OutputWatch") -> AsyncGenerator[bytes, None]:
        whole = False
        try:
            async for chunk in chunks:
                watch.feed(chunk)
                yield chunk
            whole = True
        finally:
            self._add_reading(watch, whole=whole)
            if (close := getattr(chunks, "aclose", None)) is not None:
                await close()

    def _add_reading(self, watch: "_OutputWatch", *, whole: bool, kept: bool = True) -> None:
        """Keep the failures that were seen, and the reading if the output arrived whole: half a log may lack the cause.

        With `kept` False there is no reading: a tool that answers with a sentence says that there is nothing to read.
        """
        reading = watch.end(whole=whole)
        for failure in reading.log.failures if reading.log is not None else ():
            if len(self._found) < FAILURES_SEEN:
                self._found.setdefault(failure.fingerprint, failure)
        if kept and whole and reading.whole and len(self._readings) < RUN_READINGS:
            self._readings.append(reading)


class _OutputWatch:
    """Reads one output while it streams by."""

    def __init__(self, secrets: Secrets, name: str, arguments: dict[str, Any], *, fails: bool) -> None:
        self._name, self._arguments = name, arguments
        self._masking = secrets.open_stream()
        self._log = FailedLogReader(secrets) if fails else None
        self._requests = RequestFinder()
        self._parse = LISTING_TOOLS.get(name)
        self._rest = bytearray()  # the beginning of a line
        self._records: list[RawRecord] = []
        self._whole = True

    def feed(self, chunk: bytes) -> None:
        self._feed_masked(self._masking.feed(chunk))

    def end(self, *, whole: bool) -> ToolReading:
        """Return what was read; what broke off may end in half a credential, which is not read."""
        if whole:
            self._feed_masked(self._masking.end(b""))
            self._add_records(bytes(self._rest))
        return ToolReading(
            tool=self._name,
            arguments=self._arguments,
            log=None if self._log is None or self._log.is_empty else self._log.build(),
            records=tuple(self._records),
            requests=tuple(self._requests.ids),
            whole=self._whole,
        )

    def _feed_masked(self, chunk: bytes) -> None:
        if self._log is not None:
            self._log.feed(chunk)
            self._requests.feed(chunk)
        if self._parse is None:
            return
        lines, newline, rest = chunk.rpartition(b"\n")
        if newline:
            self._add_records(bytes(self._rest + lines))
            self._rest = bytearray()
        self._rest += rest
        if len(self._rest) > LOOK_LIST_BYTES:
            self._rest, self._whole = bytearray(), False

    def _add_records(self, lines: bytes) -> None:
        found = self._parse(lines) if self._parse is not None else []
        self._whole = self._whole and not any(INCOMPLETE_KEY in record for record in found)
        self._records += found[: LOOK_ITEMS - len(self._records)]


class _WatchedTool:
    def __init__(self, tool: Tool, seen: FailureWatcher) -> None:
        self._tool = tool
        self._seen = seen

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    def is_available(self) -> bool:
        return self._tool.is_available()

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return self._seen.watch_output(await self._tool(arguments, context), self.spec.name, arguments)


class _WatchedSource:
    def __init__(self, source: DataSource, tools: tuple[Tool, ...]) -> None:
        self._source = source
        self._tools = tools

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def tools(self) -> Sequence[Tool]:
        return self._tools

    @property
    def secrets(self) -> Sequence[str]:
        return self._source.secrets

    async def close(self) -> None:
        await self._source.close()

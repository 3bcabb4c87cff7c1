"""Collect the failures that a run comes across, from the output of the sources' tools as it streams by.

    watcher = FailureWatcher(secrets)
    Agent(…, sources=[watcher.watch_source(one) for one in sources(…)])
    …
    watcher.failures  # once the run has ended

The watcher wraps the tools themselves. A preview would see too little: neither short output that stays in the
conversation, nor what is fetched into a file, nor which tool it came from, and so whether it is the log of a successful
job. What the model reads does not change. What an earlier process saw of the same run is not known here.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import msgspec

from hummingbird.core.limits import FAILURES_SEEN, FAILURES_SEEN_AT_ONCE, KNOWN_EXCERPT_CHARS, KNOWN_FIELD_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ByteStream, DataSource, Tool, ToolContext, ToolOutput
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.core.verdicts import ObservedFailure
from hummingbird.evidence.explanation import CertainFailure, FailureDetector

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


class FailureWatcher:
    """Watches the tools whose names are in `watched`."""

    def __init__(self, secrets: Secrets, watched: Set[str] = WATCHED_TOOLS) -> None:
        self._secrets = secrets
        self._watched = watched
        self._found: dict[str, ObservedFailure] = {}

    @property
    def failures(self) -> tuple[ObservedFailure, ...]:
        """Return each failure once, in the order in which they were seen; at most FAILURES_SEEN."""
        return tuple(self._found.values())

    def watch_source(self, source: DataSource) -> DataSource:
        """Return the same source with its tools watched."""
        return _WatchedSource(source, tuple(map(self.watch_tool, source.tools)))

    def watch_tool(self, tool: Tool) -> Tool:
        return _WatchedTool(tool, self) if tool.spec.name in self._watched else tool

    def watch_output(self, output: ToolOutput) -> ToolOutput:
        """Return the same output; a stream is watched while somebody else reads it, as far as it comes."""
        if isinstance(output, ByteStream):
            return output if output.binary else replace(output, chunks=self._watch_stream(output.chunks))
        content = output if isinstance(output, str) else msgspec.json.encode(output).decode()
        failing = FailureDetector()
        failing.feed(self._secrets.open_stream().end(replace_surrogates(content).encode()))
        self._add_failures(failing)
        return output

    async def _watch_stream(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        failing, masking = FailureDetector(), self._secrets.open_stream()
        try:
            async for chunk in chunks:
                failing.feed(masking.feed(chunk))
                yield chunk
            failing.feed(masking.end(b""))
        finally:
            self._add_failures(failing)
            if (close := getattr(chunks, "aclose", None)) is not None:
                await close()

    def _add_failures(self, failing: FailureDetector) -> None:
        for failed in failing.find_failures()[:FAILURES_SEEN_AT_ONCE]:
            known = failed.region.fingerprint
            if known not in self._found and len(self._found) < FAILURES_SEEN:
                self._found[known] = to_failure_seen(failed, self._secrets)


def to_failure_seen(failed: CertainFailure, secrets: Secrets) -> ObservedFailure:
    """Return the failure, masked once more: without terminal sequences, a credential that they split is whole again."""
    region = failed.region
    return ObservedFailure(
        fingerprint=region.fingerprint,
        kind=str(region.kind),
        class_=str(region.blame.class_),
        title=shorten_line(secrets.mask(replace_surrogates(failed.title)), KNOWN_FIELD_CHARS),
        excerpt=secrets.mask(replace_surrogates(region.excerpt))[:KNOWN_EXCERPT_CHARS],
    )


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
        return self._seen.watch_output(await self._tool(arguments, context))


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

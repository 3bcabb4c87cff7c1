"""The failures that a run comes across (N8): read off what the sources' tools bring, as it streams by.

    seen = SeenFailures(secrets)
    Agent(…, sources=[seen.source(one) for one in sources(…)])
    …
    seen.found  # once the run has ended

Stands around the tools themselves. A preview would see too little: neither what is short enough to stay in the
conversation, nor what is fetched into a file, nor which tool it came from, and so whether it is the log of a job that
went well. Nothing that the model reads is changed by it. What an earlier process saw of the same run is not known here.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import msgspec

from hummingbird.domain.failures import FailureSeen
from hummingbird.domain.limits import FAILURES_SEEN, FAILURES_SEEN_AT_ONCE, KNOWN_EXCERPT_CHARS, KNOWN_FIELD_CHARS
from hummingbird.domain.secrets import Secrets
from hummingbird.domain.text import plain, shortened
from hummingbird.domain.tools import ToolSpec
from hummingbird.evidence.failing import Failed, Failing
from hummingbird.ports.source import Source
from hummingbird.ports.tool import ByteStream, Output, Tool, ToolContext

# What ran and how it ended. Not among them: diffs, files and talk, where failures are quoted, and green logs.
WATCHED = frozenset(
    {
        "gitlab_get_job_log",
        "gitlab_get_test_report",
        "konflux_list_pipelineruns",
        "konflux_list_taskruns",
        "konflux_get_pod_log",
        "tf_get_results",
        "tf_get_test_log",
    }
)


class SeenFailures:
    """`watched` are the names of the tools whose outputs are looked at."""

    def __init__(self, secrets: Secrets, watched: Set[str] = WATCHED) -> None:
        self._secrets = secrets
        self._watched = watched
        self._found: dict[str, FailureSeen] = {}

    @property
    def found(self) -> tuple[FailureSeen, ...]:
        """Each once, in the order in which they were seen; FAILURES_SEEN at most."""
        return tuple(self._found.values())

    def source(self, source: Source) -> Source:
        """The same, with its tools watched."""
        return _WatchedSource(source, tuple(map(self.tool, source.tools)))

    def tool(self, tool: Tool) -> Tool:
        return _WatchedTool(tool, self) if tool.spec.name in self._watched else tool

    def seen(self, output: Output) -> Output:
        """The same output. A stream is looked at while somebody else reads it, to its end or as far as it comes."""
        if isinstance(output, ByteStream):
            return output if output.binary else replace(output, chunks=self._through(output.chunks))
        content = output if isinstance(output, str) else msgspec.json.encode(output).decode()
        failing = Failing()
        failing.feed(self._secrets.stream().end(plain(content).encode()))
        self._take(failing)
        return output

    async def _through(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        failing, masking = Failing(), self._secrets.stream()
        try:
            async for chunk in chunks:
                failing.feed(masking.feed(chunk))
                yield chunk
            failing.feed(masking.end(b""))
        finally:
            self._take(failing)
            if (close := getattr(chunks, "aclose", None)) is not None:
                await close()

    def _take(self, failing: Failing) -> None:
        for failed in failing.failed()[:FAILURES_SEEN_AT_ONCE]:
            known = failed.region.fingerprint
            if known not in self._found and len(self._found) < FAILURES_SEEN:
                self._found[known] = failure_seen(failed, self._secrets)


def failure_seen(failed: Failed, secrets: Secrets) -> FailureSeen:
    """Masked once more: terminals' sequences are gone now, and what stood between them is one word again."""
    region = failed.region
    return FailureSeen(
        fingerprint=region.fingerprint,
        kind=str(region.kind),
        class_=str(region.blame.class_),
        title=shortened(secrets.mask(plain(failed.title)), KNOWN_FIELD_CHARS),
        excerpt=secrets.mask(plain(region.excerpt))[:KNOWN_EXCERPT_CHARS],
    )


class _WatchedTool:
    def __init__(self, tool: Tool, seen: SeenFailures) -> None:
        self._tool = tool
        self._seen = seen

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    def available(self) -> bool:
        return self._tool.available()

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> Output:
        return self._seen.seen(await self._tool(arguments, context))


class _WatchedSource:
    def __init__(self, source: Source, tools: tuple[Tool, ...]) -> None:
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

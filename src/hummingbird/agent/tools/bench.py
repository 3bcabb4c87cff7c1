"""What a session with a sandbox has more than one without: three tools and the shape of all results (T3, T4)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hummingbird.agent.tools.digested import DigestedLines
from hummingbird.agent.tools.evidence import by_evidence
from hummingbird.agent.tools.fetch import ONE, SEVERAL, Fetch, FetchBatch
from hummingbird.agent.tools.preview import Previews
from hummingbird.agent.tools.shelf import Shelf, taken
from hummingbird.agent.tools.shell import NAME, Shell
from hummingbird.agent.tools.spill import Spill
from hummingbird.agent.workbench import Workbench
from hummingbird.domain.journal import Entry
from hummingbird.domain.limits import EXEC_TIMEOUT_S, MAX_INLINE_BYTES
from hummingbird.domain.secrets import Secrets
from hummingbird.ports.tool import Tool

SANDBOX_TOOLS = (NAME, ONE, SEVERAL)


@dataclass(frozen=True, slots=True)
class Bench:
    """`tools` join the session's own, `shape` is its setup's; after each batch of calls `bench.checkpoint` is due."""

    tools: tuple[Tool, ...]
    shape: Spill
    bench: Workbench


@runtime_checkable
class WorksAtBench(Protocol):
    """A tool that uses the session's sandbox where there is one."""

    def work_at(self, spill: Spill) -> None: ...


def equipped(
    bench: Workbench,
    tools: Iterable[Tool],
    secrets: Secrets,
    *,
    entries: Iterable[Entry] = (),
    max_inline_bytes: int = MAX_INLINE_BYTES,
    exec_timeout_s: float = EXEC_TIMEOUT_S,
    previews: Previews = by_evidence,
    digested: DigestedLines | None = None,
) -> Bench:
    """`tools` are the session's other ones: those with a source can be fetched from. `entries` is its journal so far,
    so that no number of a file is used twice. `digested` gets the lines of what goes into files."""
    shelf, tools = Shelf(taken(entries)), list(tools)
    spill = Spill(bench, secrets, max_inline_bytes=max_inline_bytes, previews=previews, shelf=shelf, digested=digested)
    shell = Shell(spill, exec_timeout_s)
    for tool in tools:
        if isinstance(tool, WorksAtBench):
            tool.work_at(spill)
    sources = [tool for tool in tools if tool.spec.source]
    if not sources:
        return Bench((shell,), spill, bench)
    fetch = Fetch(spill, sources)
    return Bench((shell, fetch, FetchBatch(fetch, sources)), spill, bench)

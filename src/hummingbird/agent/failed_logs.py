"""Read what failed, with tools and without a model: lists as records, and of log streams only the failures.

What cannot be read becomes a sentence, never an error.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from hummingbird.core.errors import HummingbirdError
from hummingbird.core.json_codec import decode_json_object
from hummingbird.core.limits import KNOWN_EXCERPT_CHARS, KNOWN_FIELD_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ByteStream, Tool, ToolContext, ToolOutput
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.core.verdicts import ObservedFailure
from hummingbird.evidence.bounds import LOOK_FINGERPRINTS, LOOK_ITEMS, LOOK_LIST_BYTES, LOOK_LOG_BYTES, LOOK_TEXT_CHARS
from hummingbird.evidence.explanation import CertainFailure, FailureDetector
from hummingbird.evidence.gitlab_jobs import RunnerTrace
from hummingbird.evidence.headlines import read_headline
from hummingbird.evidence.logs.log_preview import Baseline
from hummingbird.evidence.regions import CONFIDENT, EvidenceAnalysis, EvidenceLine, Region
from hummingbird.evidence.report_preview import INCOMPLETE_KEY

RawRecord: TypeAlias = Mapping[str, Any]
_log = logging.getLogger("hummingbird")


class ToolReader:
    """Call tools without a model, and read lists as records and logs as streams.

    What cannot be read becomes a sentence in `missing`, never an error; the details go to the log.
    """

    def __init__(self, tools: Sequence[Tool], secrets: Secrets, session_id: str = "") -> None:
        self._tools = {tool.spec.name: tool for tool in tools}
        self.secrets = secrets
        self._context = ToolContext(session_id, "look")
        self.missing: list[str] = []

    def has_tool(self, name: str) -> bool:
        return name in self._tools

    def add_missing(self, sentence: str) -> None:
        if sentence not in self.missing:
            self.missing.append(sentence)

    async def read_list(self, name: str, what: str, *, quiet: bool = False, **arguments: Any) -> list[RawRecord] | None:
        """Return the records of a list, as many as there are; None if it could not be read at all.

        With `quiet`, that is only logged.
        """
        content = await self._read_content(name, what, arguments, quiet=quiet)
        if content is None:
            return None
        records = parse_records(content)
        if any(INCOMPLETE_KEY in record for record in records):
            self.add_missing(f"{what} could not be read whole.")
        return [record for record in records if INCOMPLETE_KEY not in record]

    async def read_record(self, name: str, what: str, **arguments: Any) -> RawRecord | None:
        content = await self._read_content(name, what, arguments)
        return None if content is None else decode_json_object(content)

    async def stream_output(
        self, name: str, what: str, feed: Callable[[bytes], None], *, quiet: bool = False, **arguments: Any
    ) -> bool:
        """Feed all output, masked; return False if it could not be read to its end.

        With `quiet`, that is only logged.
        """
        masking = self.secrets.open_stream()

        async def feed_output(output: ToolOutput) -> None:
            if not isinstance(output, ByteStream):
                raise _NoStream(str(output))
            async for chunk in _limit_bytes(output.chunks, LOOK_LOG_BYTES):
                feed(masking.feed(chunk))
            feed(masking.end(b""))

        return await self._call_tool(name, what, arguments, feed_output, quiet=quiet)

    async def _read_content(
        self, name: str, what: str, arguments: Mapping[str, Any], *, quiet: bool = False
    ) -> bytes | None:
        parts: list[bytes] = []

        async def collect_output(output: ToolOutput) -> None:
            if isinstance(output, ByteStream):
                parts.extend([chunk async for chunk in _limit_bytes(output.chunks, LOOK_LIST_BYTES)])
            elif not isinstance(output, str):  # a string only says that there is nothing
                parts.append(msgspec.json.encode(output))

        read = await self._call_tool(name, what, arguments, collect_output, quiet=quiet)
        return self.secrets.open_stream().end(b"".join(parts)) if read else None

    async def _call_tool(
        self,
        name: str,
        what: str,
        arguments: Mapping[str, Any],
        taken: Callable[[ToolOutput], Awaitable[None]],
        *,
        quiet: bool = False,
    ) -> bool:
        tool = self._tools.get(name)
        if tool is None and quiet:
            return False
        if tool is None:
            self.add_missing(f"{what} was not looked at: this workflow has no {name}.")
            return False
        try:
            await taken(await tool(arguments, self._context))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - border: a tool may raise what it likes, and a look ends no run
            told = str(error) if isinstance(error, HummingbirdError) else type(error).__name__
            _log.info("%s could not be read before the run: %s", what, self.secrets.mask(told))
            if not quiet:
                self.add_missing(f"{what} could not be read.")
            return False
        return True


class _StreamTooLong(HummingbirdError):
    """The output is longer than what is read."""


class _NoStream(HummingbirdError):
    """The tool returned a sentence instead of a log."""


async def _limit_bytes(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    size = 0
    try:
        async for chunk in chunks:
            size += len(chunk)
            if size > most:
                raise _StreamTooLong(f"It is longer than the {most:,} bytes that are looked at.")
            yield chunk
    finally:
        if (close := getattr(chunks, "aclose", None)) is not None:
            await close()


def parse_records(content: bytes) -> list[RawRecord]:
    """Return the records of a list of JSON lines, up to the number that is looked at."""
    found = map(decode_json_object, content.split(b"\n"))
    return list(islice((record for record in found if record is not None), LOOK_ITEMS))


_LETTERS = 4  # that a line needs to be meaningful


@dataclass(frozen=True, slots=True)
class FailedLog:
    """What the log of a failed job shows.

    `only_runner_wrote` means that the job's script never started. `causes` holds the meaningful lines of each failure,
    the likeliest cause first; `excerpts` all of their lines. `failures` are for the ledger of known failures. Where no
    failure is certain, `likeliest` is what stands out most. `further` are the fingerprints of failures that are too
    many to be remembered.
    """

    analysis: EvidenceAnalysis
    fingerprints: tuple[str, ...] = ()
    causes: tuple[tuple[str, ...], ...] = ()
    excerpts: tuple[str, ...] = ()
    only_runner_wrote: bool = False
    failures: tuple[ObservedFailure, ...] = ()
    likeliest: ObservedFailure | None = None
    further: tuple[str, ...] = ()

    def text(self, green: Baseline | None = None) -> str:
        """Return the lines of the failures, without failures that are in the log of a green run too."""
        new = [text for text, lines in zip(self.excerpts, self.causes, strict=True) if not is_in_log(lines, green)]
        return "\n".join(new or self.excerpts)[:LOOK_TEXT_CHARS]

    def analysis_without(self, green: Baseline | None) -> EvidenceAnalysis:
        """Return the analysis without regions that are in the log of a green run too, unless all of them are."""
        new = tuple(region for region in self.analysis.regions if not is_in_log(_meaningful_lines(region), green))
        return replace(self.analysis, regions=new) if new else self.analysis

    def is_in_green_log(self, green: Baseline | None) -> bool | None:
        """Return whether every failure is in the log of a green run too.

        A single failure that is not is enough for False, because a job can print any lines of its green log.
        """
        if green is None or not any(self.causes):
            return None
        return all(is_in_log(lines, green) for lines in self.causes if lines)


def is_in_log(lines: tuple[str, ...], green: Baseline | None) -> bool:
    return green is not None and bool(lines) and all(map(green.contains, lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReading:
    """What one call of a source's tool brought, as far as a verdict needs it.

    `log` is None for lists. `requests` are the ids of Testing Farm requests that a log names. `whole` means that
    nothing is missing.
    """

    tool: str
    arguments: Mapping[str, Any]
    log: FailedLog | None = None
    records: tuple[RawRecord, ...] = ()
    requests: tuple[str, ...] = ()
    whole: bool = True


async def read_log(reads: ToolReader, job_id: int) -> FailedLog | None:
    """Return what the log of a GitLab job shows; None if it could not be read."""
    return await read_failed_log(reads, "gitlab_get_job_log", f"The log of job {job_id}", job_id=job_id)


async def read_failed_log(
    reads: ToolReader, name: str, what: str, *, also: Callable[[bytes], None] | None = None, **arguments: Any
) -> FailedLog | None:
    """Return what a log or report shows that the tool `name` brings; `also` gets the same bytes.

    An empty one counts as one that could not be read.
    """
    reader = FailedLogReader(reads.secrets)

    def feed(chunk: bytes) -> None:
        reader.feed(chunk)
        if also is not None:
            also(chunk)

    if not await reads.stream_output(name, what, feed, **arguments):
        return None
    if reader.is_empty:
        reads.add_missing(f"{what} is empty.")
        return None
    return reader.build()


class FailedLogReader:
    """Reads a log or report that streams by, masked already, and keeps only its failures."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._detector, self._trace = FailureDetector(), RunnerTrace()

    def feed(self, chunk: bytes) -> None:
        self._detector.feed(chunk)
        self._trace.feed(chunk)

    @property
    def is_empty(self) -> bool:
        return self._detector.analysis.size == 0

    def build(self) -> FailedLog:
        found, analysis = self._detector.find_failures(), self._detector.analysis
        failed = found[:LOOK_FINGERPRINTS]
        regions = [one.region for one in failed] or list(analysis.regions[:1])
        return FailedLog(
            analysis=analysis,
            fingerprints=tuple(dict.fromkeys(one.region.fingerprint for one in failed)),
            causes=tuple(map(_meaningful_lines, regions)),
            excerpts=tuple(region.excerpt for region in regions),
            only_runner_wrote=self._trace.only_runner_wrote,
            failures=tuple(to_failure_seen(_with_announced(one, analysis), self._secrets) for one in failed),
            likeliest=None if failed else _likeliest_failure(analysis, self._secrets),
            further=tuple(dict.fromkeys(one.region.fingerprint for one in found[LOOK_FINGERPRINTS:])),
        )


def _with_announced(failure: CertainFailure, analysis: EvidenceAnalysis) -> CertainFailure:
    """Add the line that follows a line with a colon at its end, if it is in another region: the two belong together."""
    follows = {line.number: line for region in analysis.regions for line in region.lines}
    own, lines = {line.number for line in failure.region.lines}, list[EvidenceLine]()
    for line in failure.region.lines:
        lines.append(line)
        if line.text.rstrip().endswith(":") and line.number + 1 not in own and line.number + 1 in follows:
            lines.append(follows[line.number + 1])
    return replace(failure, region=replace(failure.region, lines=tuple(lines)))


def _likeliest_failure(analysis: EvidenceAnalysis, secrets: Secrets) -> ObservedFailure | None:
    """Return what stands out most. It has no fingerprint, because it is too uncertain to recognise a failure by."""
    if not analysis.regions:
        return None
    blamed = (region for region in analysis.regions if region.blame.rule == analysis.blame.rule)
    region = next(blamed, analysis.regions[0])
    headline = read_headline("", region.excerpt)
    seen = to_failure_seen(CertainFailure(region, headline.lines[headline.key] if headline.lines else ""), secrets)
    return replace(seen, fingerprint="")


def to_failure_seen(failed: CertainFailure, secrets: Secrets) -> ObservedFailure:
    """Return the failure, masked once more: without terminal sequences, a credential that they split is whole again."""
    region = failed.region
    blame = region.blame
    return ObservedFailure(
        fingerprint=region.fingerprint,
        kind=str(region.kind),
        class_=str(region.blame.class_),
        title=shorten_line(secrets.mask(replace_surrogates(failed.title)), KNOWN_FIELD_CHARS),
        excerpt=secrets.mask(replace_surrogates(region.excerpt))[:KNOWN_EXCERPT_CHARS],
        rule=blame.rule,
        why=blame.why if blame.confidence >= CONFIDENT else "",
        line=next((line.number for line in region.lines if line.text.strip() == failed.title.strip()), region.first),
    )


def _meaningful_lines(region: Region) -> tuple[str, ...]:
    return tuple(line.text for line in region.lines if sum(map(str.isalpha, line.text)) >= _LETTERS)


async def read_green_log(reads: ToolReader, name: str, branch: str) -> Baseline | None:
    """Return the log of the same job's last green run on the branch; a missing one is not reported."""
    green = Baseline()
    what = "The log of a green run"
    fed = await reads.stream_output(
        "gitlab_get_baseline_job_log", what, green.feed, quiet=True, job_name=name, ref=branch
    )
    green.feed(b"\n")
    return green if fed else None

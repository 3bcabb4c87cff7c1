"""Failures that a run comes across: seen on every way that an output can take, and no others."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hummingbird.agent.tools.failure_watcher import LISTING_TOOLS, WATCHED_TOOLS, FailureWatcher
from hummingbird.agent.tools.results import InlineShape
from hummingbird.agent.tools.sandbox_tools import FETCH_NAME, create_sandbox_tools
from hummingbird.core.errors import SourceUnavailable
from hummingbird.core.limits import FAILURES_SEEN, KNOWN_EXCERPT_CHARS, KNOWN_FIELD_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import ByteStream, ToolContext, ToolOutput
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.evidence.bounds import LOOK_FINGERPRINTS
from hummingbird.gitlab.read.source import TOOL_TEMPLATES as GITLAB
from hummingbird.konflux.source import TOOL_TEMPLATES as KONFLUX
from hummingbird.lab.case import find_case
from hummingbird.testing_farm import TestingFarmSettings
from hummingbird.testing_farm.source import TestingFarmSource
from tests.agent.benches import in_pieces, start, workbench
from tests.agent.stage import results_in, stage
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

LOG = "gitlab_get_job_log"
SECRET = "hunter2-hunter2"
RED = (find_case("compiler-error").folder / "logs/code-quality.log").read_bytes()
CONTEXT = ToolContext("session-1", "call-1")


class Brings:
    """A source's tool that brings what it was given."""

    def __init__(self, output: ToolOutput, name: str = LOG) -> None:
        self.spec = ToolSpec(name, "Brings.", {"type": "object"}, source="gitlab")
        self._output = output

    def is_available(self) -> bool:
        return True

    async def __call__(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return self._output


def stream(*chunks: bytes, **given: Any) -> ByteStream:
    return ByteStream(in_pieces(chunks), "log", **given)


async def read(output: ToolOutput) -> bytes:
    assert isinstance(output, ByteStream)
    return b"".join([chunk async for chunk in output.chunks])


def suites(*tests: str) -> str:
    cases = [
        {"status": "failed", "name": test, "system_output": f"E   AssertionError: {test} is lost"} for test in tests
    ]
    return f'{{"total_count":1}}\n{json.dumps({"name": "unit", "test_cases": cases})}\n'


async def test_a_log_that_streams_by_is_seen_and_arrives_as_it_was() -> None:
    seen = FailureWatcher(Secrets())
    output = await seen.watch_tool(Brings(stream(RED[:5000], RED[5000:], terminal=True)))({}, CONTEXT)
    assert not any(seen.failures)
    assert await read(output) == RED
    (failure,) = seen.failures
    assert (failure.kind, failure.class_) == ("compiler error", "code")
    assert failure.title.startswith("error[E0063]: missing field")
    assert "event_mapper/combat/tests.rs:73:26" in failure.excerpt
    assert len(failure.fingerprint) == 16


async def test_what_is_short_enough_to_stay_in_the_conversation_is_seen_too() -> None:
    seen = FailureWatcher(Secrets())
    tool = seen.watch_tool(Brings(stream(b"TypeError: pages is not iterable in ledger.py\n")))
    model = ScriptedModel([tool_call_reply((LOG, "{}")), text_reply("Done.")])
    played = stage(model, tools=[tool], shape=InlineShape())
    await played.run()
    assert "TypeError" in results_in(played.requests[-1])[0].text
    assert ["TypeError" in failure.title for failure in seen.failures] == [True]


async def test_what_is_spilled_into_a_file_and_what_is_fetched_into_one_is_seen_too(tmp_path: Path) -> None:
    async with workbench(tmp_path) as bench:
        await start(bench)
        for name, arguments in ((LOG, "{}"), (FETCH_NAME, json.dumps({"tool": LOG, "arguments": {}, "path": "a.log"}))):
            seen = FailureWatcher(Secrets())
            tool = seen.watch_tool(Brings(stream(RED, terminal=True)))
            made = create_sandbox_tools(bench, [tool], Secrets(), max_inline_bytes=256)
            model = ScriptedModel([tool_call_reply((name, arguments)), text_reply("Done.")])
            await stage(model, tools=[tool, *made.tools], shape=made.shape).run()
            assert [failure.kind for failure in seen.failures] == ["compiler error"], name


@pytest.mark.parametrize(
    "output", [suites("test_pages"), json.loads(suites("test_pages").splitlines()[1])], ids=["text", "json"]
)
async def test_output_that_is_no_stream_is_seen(output: ToolOutput) -> None:
    seen = FailureWatcher(Secrets())
    assert await seen.watch_tool(Brings(output, "gitlab_get_test_report"))({}, CONTEXT) == output
    assert [failure.title for failure in seen.failures] == ["FAILED unit > test_pages"]


@pytest.mark.parametrize("name", ["gitlab_get_baseline_job_log", "gitlab_get_mr_discussions", "gitlab_get_file_at_ref"])
async def test_green_logs_and_files_that_quote_a_failure_are_not_looked_at(name: str) -> None:
    seen = FailureWatcher(Secrets())
    tool = Brings(stream(RED), name)
    assert seen.watch_tool(tool) is tool


async def test_the_log_of_a_job_that_went_well_has_none() -> None:
    seen = FailureWatcher(Secrets())
    await read(
        await seen.watch_tool(Brings(stream(b"TypeError: pages is not iterable\n", b"Job succeeded\n")))({}, CONTEXT)
    )
    assert seen.failures == ()


async def test_what_is_remembered_is_masked_across_chunks_and_colours() -> None:
    seen = FailureWatcher(Secrets([SECRET]))
    chunks = [b"TypeError: no user with hunter2-", b"hunter2 here\nTypeError: nor hunter2\x1b[31m-hunter2 there\n"]
    await read(await seen.watch_tool(Brings(stream(*chunks, terminal=True)))({}, CONTEXT))
    assert seen.failures
    assert SECRET not in repr(seen.failures)
    assert "[masked]" in repr(seen.failures)


async def test_a_title_is_masked_though_colours_hid_the_secret_in_the_stream() -> None:
    seen = FailureWatcher(Secrets([SECRET]))
    line = b"TypeError: no user with hunter2\x1b[31m-hunter2 in ledger.py\n"
    await read(await seen.watch_tool(Brings(stream(line, terminal=True)))({}, CONTEXT))
    assert [failure.title for failure in seen.failures] == ["TypeError: no user with [masked] in ledger.py"]


async def test_a_failure_that_shows_a_secret_is_known_again_once_that_was_changed() -> None:
    known: set[str] = set()
    for secret in ("alpha-bravo-charlie", "delta-echo-foxtrot"):
        seen = FailureWatcher(Secrets([secret]))
        await read(
            await seen.watch_tool(Brings(stream(f"TypeError: no ledger for {secret} here\n".encode())))({}, CONTEXT)
        )
        known.update(failure.fingerprint for failure in seen.failures)
    assert len(known) == 1


@pytest.mark.thorough
async def test_each_is_told_once_in_bounded_number_and_size() -> None:
    seen = FailureWatcher(Secrets())
    for start_at in range(0, 200, 10):
        report = suites(*(f"test_{word}" * 60 for word in _words(start_at, 10)))
        seen.watch_output(report)
        seen.watch_output(report)
        assert len(seen.failures) <= LOOK_FINGERPRINTS * (start_at // 10 + 1)
    assert len(seen.failures) == FAILURES_SEEN == len({failure.fingerprint for failure in seen.failures})
    assert all(len(failure.title) <= KNOWN_FIELD_CHARS for failure in seen.failures)
    assert all(len(failure.excerpt) <= KNOWN_EXCERPT_CHARS for failure in seen.failures)


async def test_of_a_log_that_breaks_off_what_came_is_seen_and_the_error_stays_what_it_was() -> None:
    async def breaking() -> AsyncIterator[bytes]:
        yield b"TypeError: pages is not iterable in ledger.py\n"
        raise SourceUnavailable("GitLab hung up.")

    seen = FailureWatcher(Secrets())
    output = await seen.watch_tool(Brings(ByteStream(breaking(), "log")))({}, CONTEXT)
    with pytest.raises(SourceUnavailable):
        await read(output)
    assert len(seen.failures) == 1


async def test_a_stream_that_nobody_reads_to_its_end_is_closed() -> None:
    closed = []

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"still building\n"
        finally:
            closed.append(True)

    output = FailureWatcher(Secrets()).watch_output(ByteStream(endless(), "log"))
    assert isinstance(output, ByteStream)
    async for _ in output.chunks:
        break
    await output.chunks.aclose()  # type: ignore[attr-defined]  # of a generator
    assert closed == [True]


async def test_what_is_no_text_is_left_alone() -> None:
    output = stream(RED, binary=True)
    assert FailureWatcher(Secrets()).watch_output(output) is output


def test_the_watched_tools_are_ones_that_the_sources_have() -> None:
    farm = TestingFarmSource(TestingFarmSettings())
    assert {*GITLAB, *KONFLUX, *(tool.spec.name for tool in farm.tools)} >= WATCHED_TOOLS | LISTING_TOOLS.keys()


def test_a_watched_source_is_otherwise_the_same() -> None:
    farm = TestingFarmSource(TestingFarmSettings())
    watched = FailureWatcher(Secrets()).watch_source(farm)
    assert (watched.name, watched.secrets) == (farm.name, farm.secrets)
    assert [tool.spec for tool in watched.tools] == [tool.spec for tool in farm.tools]
    assert all(tool.is_available() for tool in watched.tools)


def _words(start_at: int, count: int) -> list[str]:
    """Different ones, made of letters: numbers are no part of a fingerprint."""
    return ["".join(chr(97 + int(digit)) for digit in f"{number:04}") for number in range(start_at, start_at + count)]

"""A log too long to be shown goes into the sandbox; `digest` looks there where the preview is not enough."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hummingbird.agent.tools.preview import HeadTailPreview
from hummingbird.agent.tools.sandbox_tools import SandboxToolset, create_sandbox_tools
from hummingbird.core.journal import ToolStarted
from hummingbird.core.limits import CONCURRENT_TOOLS, DIGEST_LOGS, MAX_INLINE_BYTES
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.tools import Tool
from hummingbird.models.rules_report import analysis_tools
from tests.agent.benches import content, start, workbench
from tests.models.rules_report.forge import Forge, listed
from tests.models.rules_report.play import Played, play
from tests.models.rules_report.samples import COMPILE, TEST, log, long_log


@asynccontextmanager
async def bench_for(tools: list[Tool], **given: Any) -> AsyncIterator[SandboxToolset]:
    async with workbench() as bench:
        await start(bench)
        yield create_sandbox_tools(bench, tools, Secrets(), **given)


async def played_on_a_bench(forge: Forge, **given: Any) -> Played:
    tools = forge.tools()
    async with bench_for(tools, **given) as bench:
        return await play(forge.order, [*bench.tools, *tools], shape=bench.shape)


def commands(played: Played) -> list[str]:
    return [
        entry.arguments for entry in played.entries if isinstance(entry, ToolStarted) and entry.name == "sandbox_exec"
    ]


@pytest.mark.parametrize(("sample", "verdict"), [(COMPILE, "code"), (TEST, "test")])
async def test_it_searches_the_file_when_the_preview_does_not_show_why(sample: str, verdict: str) -> None:
    """The failure stands in the middle: head and tail of the log, which is all the preview has, do not hold it."""
    forge = Forge([listed(901, "build")], {901: long_log(sample, "engine")})
    played = await played_on_a_bench(forge, previews=lambda _: HeadTailPreview())
    assert played.text.split("\n")[2].startswith(f"**Verdict: {verdict}**")
    assert forge.shape.count("log") == 1
    assert len(commands(played)) == 2
    shown = {"code": "4004: src/engine.c:42:5: error:", "test": "4007: E       AssertionError"}[verdict]
    assert shown in played.text


@pytest.mark.thorough
@pytest.mark.parametrize(("sample", "verdict"), [(COMPILE, "code"), (TEST, "test")])
async def test_a_preview_chosen_by_evidence_saves_it_the_search(sample: str, verdict: str) -> None:
    """The same log, previewed as sessions do by default."""
    forge = Forge([listed(901, "build")], {901: long_log(sample, "engine")})
    played = await played_on_a_bench(forge)
    assert played.text.split("\n")[2].startswith(f"**Verdict: {verdict}**")
    assert commands(played) == []


@pytest.mark.thorough
async def test_it_finds_its_way_where_almost_nothing_is_shown_inline() -> None:
    """Even the answers of its own commands go to files, and previews of them number what is numbered already."""
    forge = Forge([listed(901, "build")], {901: long_log(COMPILE, "engine")})
    played = await played_on_a_bench(forge, max_inline_bytes=300)
    assert "4004: src/engine.c:42:5: error:" in played.text
    assert "**Verdict: code**" in played.text


@pytest.mark.thorough
async def test_it_does_not_search_when_the_preview_says_enough() -> None:
    forge = Forge([listed(901, "build")], {901: long_log(COMPILE, "engine", after=0)})
    played = await played_on_a_bench(forge)
    assert played.text.split("\n")[2].startswith("**Verdict: code**")
    assert commands(played) == []


@pytest.mark.thorough
async def test_a_log_that_explains_nothing_is_looked_into_twice_and_no_more() -> None:
    forge = Forge([listed(901, "build")], {901: "\n".join(f"step {number} done" for number in range(5000))})
    played = await played_on_a_bench(forge)
    assert len(commands(played)) == 2
    assert "**Verdict: unknown**" in played.text
    assert "`build`: only parts of its log were seen" in played.text


@pytest.mark.thorough
async def test_a_list_of_jobs_too_long_to_be_shown_is_searched_for_the_failed_ones() -> None:
    jobs = [listed(number, f"unit test number {number}", "success") for number in range(1000, 1100)]
    jobs.insert(57, listed(2000, "build"))
    forge = Forge(jobs, {2000: log(COMPILE, "engine")})
    played = await played_on_a_bench(forge)
    assert played.text.split("\n")[2].startswith("**Verdict: code**")
    assert [arguments["job_id"] for name, arguments in forge.calls if name == "gitlab_get_job_log"] == [2000]
    assert len(commands(played)) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["odd name.log", "quote'd.log", "$(touch pwned).log", "-n.log", "semi;colon.log"])
async def test_paths_in_commands_are_quoted_whatever_they_are_called(name: str) -> None:
    path = f"/tmp/data/{name}"
    async with workbench() as bench:
        sandbox = await start(bench)
        await sandbox.write_file(path, b"one\nan error here\nthree\n")
        for command in (
            analysis_tools.command_for_search(path),
            analysis_tools.command_for_lines_around(path, 2),
            analysis_tools.command_for_tail(path),
        ):
            done = await sandbox.exec(command)
            assert (done.exit_code, done.stderr) == (0, b"")
            assert b"2: an error here" in done.stdout
        assert (await sandbox.exec("ls")).stdout.decode().split("\n") == [name, ""]
        assert await content(bench, path) == b"one\nan error here\nthree\n"


def test_the_answers_to_its_commands_are_short_enough_to_be_read_and_its_logs_are_read_at_once() -> None:
    """Else each look would have to be looked into, and eight logs would take several rounds."""
    assert "head -c 3500" in analysis_tools.command_for_lines_around("/tmp/data/x", 5)
    assert MAX_INLINE_BYTES > 3500
    assert DIGEST_LOGS <= CONCURRENT_TOOLS

"""Suggestions tried with git in a real sandbox before anybody can click on them."""

import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from hummingbird.agent.session_sandbox import SessionSandbox
from hummingbird.agent.tools.finding_report import (
    APPLIES,
    NAME,
    SOURCE,
    SPEC,
    ReportFindingTool,
    SuggestionTester,
    findings_from_entries,
)
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.agent.tools.sandbox_tools import create_sandbox_tools
from hummingbird.agent.tools.spill import SpillShape
from hummingbird.core.diffs import Diff, FileDiff
from hummingbird.core.errors import ArgumentsInvalid, SandboxUnavailable
from hummingbird.core.findings import SuggestedEdit, apply_edits, edit_problem, split_lines
from hummingbird.core.journal import ToolFinished
from hummingbird.core.limits import SUGGESTION_ABOVE, SUGGESTION_FILE_BYTES
from hummingbird.core.masking import Secrets
from hummingbird.core.protocols.sandbox import SANDBOX_ROOT, ExecResult, Sandbox
from hummingbird.core.protocols.tools import ByteStream, Tool, ToolContext, ToolOutput
from tests.agent.benches import Delegating, shell, start, workbench
from tests.agent.stage import stage, tool
from tests.core.clicking import clicked
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

HEAD = "e" * 40
PATH = "src/app.py"


def added(content: bytes) -> Diff:
    """The diff of a file that is new, as GitLab shows it."""
    lines = [line.decode("utf-8", "replace") for line in split_lines(content)]
    text = "".join(f"+{line}" if line.endswith("\n") else f"+{line}\n\\ No newline at end of file\n" for line in lines)
    return Diff([FileDiff(old_path=PATH, new_path=PATH, text=f"@@ -0,0 +1,{len(lines)} @@\n{text}")])


async def streamed(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 7):
        yield content[at : at + 7]


def serving(content: bytes) -> ToolContext:
    """A run in which the file can be fetched."""

    async def call(name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        assert (name, arguments) == (SOURCE, {"path": PATH, "ref": HEAD})
        return ByteStream(streamed(content), "py")

    return ToolContext("session-1", "call-1", call=call)


class Bench:
    """A tool at a real sandbox, with a file at the head of the merge request."""

    def __init__(self, bench: SessionSandbox, content: bytes, *, secrets: Secrets | None = None) -> None:
        self.tool = ReportFindingTool(added(content), head=HEAD)
        self.context = serving(content)
        self.lines = len(split_lines(content))
        create_sandbox_tools(bench, [self.tool], secrets or Secrets())

    async def reported(self, line: int, suggestion: str | None, **more: Any) -> str:
        said = {"text": f"Finding {random.random()}", **more}
        given = {"file": PATH, "line": line, "severity": "minor", **said}
        wanted = given if suggestion is None else {**given, "suggestion": suggestion}
        answer = await self.tool(Toolbox([self.tool]).validate(SPEC, wanted), self.context)
        assert isinstance(answer, str)
        return answer


@pytest.mark.parametrize(
    ("content", "line", "suggestion", "more"),
    [
        (b"one\ntwo\nthree\n", 2, "2", {}),
        (b"one\ntwo\nthree\n", 2, "", {}),
        (b"one\ntwo\nthree", 3, "3\n4", {}),
        (b"one\r\ntwo\r\n", 2, "2", {}),
        (b"\tone\n\ttwo\n", 1, "\t\tif x:\n\t\t\tone", {}),
        (b"one\ntwo\nthree\n", 3, "all", {"first_line": 1}),
        (b"only", 1, "", {}),
        ("eins\nzwölf\n".encode(), 2, "zwölf `mal`", {}),
    ],
)
async def test_git_applies_what_fits(content: bytes, line: int, suggestion: str, more: dict[str, Any]) -> None:
    async with workbench() as bench:
        await start(bench)
        at = Bench(bench, content)
        assert (await at.reported(line, suggestion, **more)).endswith(APPLIES)
        assert [finding.applies_cleanly for finding in at.tool.findings] == [True]
        assert await shell(bench, f"ls -A {SANDBOX_ROOT}") == ""


@pytest.mark.parametrize(
    ("content", "line", "suggestion", "why"),
    [
        (b"one\r\ntwo\r\n", 1, "1\n2", "CR LF"),
        (b"one\ntwo\n", 1, "one", "changes nothing"),
        (b"one\ntwo\n", 1, "  ", "empty line"),
    ],
)
async def test_what_does_not_apply_is_said_at_once_and_is_no_finding(
    content: bytes, line: int, suggestion: str, why: str
) -> None:
    async with workbench() as bench:
        await start(bench)
        at = Bench(bench, content)
        with pytest.raises(ArgumentsInvalid, match=why):
            await at.reported(line, suggestion)
        assert at.tool.findings == ()
        await at.reported(line, None)
        assert len(at.tool.findings) == 1


async def test_two_suggestions_that_collide_are_noticed_and_two_beside_each_other_are_not() -> None:
    async with workbench() as bench:
        await start(bench)
        at = Bench(bench, b"x\nx\nx\nx\n")
        assert (await at.reported(2, "a\nb\nc", first_line=1)).endswith(APPLIES)
        with pytest.raises(ArgumentsInvalid, match="changes line 2 already"):
            await at.reported(3, "d", first_line=2)
        assert (await at.reported(3, "d")).endswith(APPLIES)
        assert (await at.reported(4, "")).endswith(APPLIES)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("zw\xf6lf\n".encode("latin-1"), "not in UTF-8"),
        (b"a\0b\n", "not text"),
        (b"x" * (SUGGESTION_FILE_BYTES + 1), "too large"),
        (b"key = hunter22\n", "holds a credential"),
    ],
)
async def test_what_cannot_be_tried_is_a_finding_whose_suggestion_is_code(content: bytes, why: str) -> None:
    async with workbench() as bench:
        await start(bench)
        at = Bench(bench, content, secrets=Secrets(["hunter22"]))
        said = await at.reported(1, "new")
        assert f"could not be tried, for the file {why.removeprefix('the file ')}" in said or why in said
        assert [(finding.suggestion, finding.applies_cleanly) for finding in at.tool.findings] == [("new", False)]


@pytest.mark.thorough
async def test_without_a_sandbox_or_a_source_nothing_is_tried() -> None:
    given = {"file": PATH, "line": 1, "severity": "minor", "text": "Odd.", "suggestion": "new"}
    alone = ReportFindingTool(added(b"old\n"), head=HEAD)
    assert "there is no sandbox" in str(await alone(given, serving(b"old\n")))
    async with workbench() as bench:
        await start(bench)
        sourceless = Bench(bench, b"old\n")
        sourceless.context = ToolContext("session-1", "call-1")
        assert "the file could not be read" in await sourceless.reported(1, "new")
        moved = Bench(bench, b"old\n")
        moved.context = serving(b"other\n")
        assert "has changed meanwhile" in await moved.reported(1, "new")


class NoGit(Delegating):
    """A sandbox without it."""

    async def exec(self, command: str, stdin: Any = b"", **given: Any) -> ExecResult:
        return await super().exec(f"PATH=/nonexistent; {command}", stdin, **given)


class Meddling(Delegating):
    """A sandbox in which the file is another one."""

    async def write_file(self, path: str, content: bytes) -> None:
        await super().write_file(path, b"meddled\n" if path.endswith("/file") else content)


class Obliging(Delegating):
    """A sandbox whose git says yes and does nothing."""

    async def exec(self, command: str, stdin: Any = b"", **given: Any) -> ExecResult:
        return await super().exec(f"git() {{ :; }}; {command.replace('git apply', 'git')}", stdin, **given)


def unavailable() -> Sandbox:
    raise SandboxUnavailable("There is none.")


@pytest.mark.thorough
async def test_a_sandbox_that_does_not_start_or_has_no_git_is_said() -> None:
    async with workbench(make=unavailable) as bench:
        assert "there is no sandbox" in await Bench(bench, b"old\n").reported(1, "new")
    async with workbench(make=NoGit) as bench:
        await start(bench)
        assert "there is no git in the sandbox" in await Bench(bench, b"old\n").reported(1, "new")


@pytest.mark.thorough
@pytest.mark.parametrize("make", [Meddling, Obliging])
async def test_git_is_asked_and_what_it_made_is_looked_at(make: type[Delegating]) -> None:
    async with workbench(make=make) as bench:
        await start(bench)
        with pytest.raises(ArgumentsInvalid, match="git refuses it"):
            await Bench(bench, b"old\n").reported(1, "new")


@pytest.mark.thorough
async def test_what_is_accepted_gives_exactly_the_file_that_is_meant() -> None:
    """Random files and suggestions: git in the sandbox, our own reckoning, and GitLab's click agree."""
    chance, accepted = random.Random(20), 0
    async with workbench() as bench:
        await start(bench)
        for _ in range(120):
            content, change = _case(chance)
            trying = SuggestionTester(HEAD)
            trying.use_sandbox(SpillShape(bench, Secrets()))
            try:
                why = await trying.test(PATH, change, added(content), serving(content))
            except ArgumentsInvalid:
                assert edit_problem(content, change)
                continue
            assert why == ""
            accepted += 1
            block = f"{change.text}\n" if change.text else ""
            above = change.last - change.first
            assert apply_edits(content, [change]).decode() == clicked(content.decode(), change.last, above, block)
    assert accepted > 60


def _case(chance: random.Random) -> tuple[bytes, SuggestedEdit]:
    def words() -> str:
        return "".join(chance.choice("ab\t é\\+-@") for _ in range(chance.randrange(6)))

    end = chance.choice(["\n", "\n", "\r\n"])
    lines = [words() + end for _ in range(chance.randrange(1, 7))]
    lines[-1] = chance.choice([lines[-1], f"z{words()}"])
    first = chance.randrange(1, len(lines) + 1)
    text = "\n".join(words() for _ in range(chance.randrange(1, 4)))
    return "".join(lines).encode(), SuggestedEdit(first, chance.randrange(first, len(lines) + 1), text)


async def test_a_range_lies_in_the_diff_above_its_line_and_goes_with_a_suggestion() -> None:
    long = ReportFindingTool(added(b"x\n" * 300))
    given = {"file": PATH, "severity": "minor", "text": "Odd.", "suggestion": "y"}
    for wrong, why in [
        ({"line": 5, "first_line": 6}, "not below line"),
        ({"line": 250, "first_line": 250 - SUGGESTION_ABOVE - 1}, "at most"),
    ]:
        with pytest.raises(ArgumentsInvalid, match=why):
            await long({**given, **wrong}, ToolContext("s", "c"))
    short = ReportFindingTool(Diff([FileDiff(old_path=PATH, new_path=PATH, text="@@ -1,9 +5,2 @@\n+a\n+b\n")]))
    with pytest.raises(ArgumentsInvalid, match="Line 4 is not in the diff"):
        await short({**given, "line": 6, "first_line": 4}, ToolContext("s", "c"))
    with pytest.raises(ArgumentsInvalid, match="goes with a suggestion"):
        await short({"file": PATH, "line": 6, "first_line": 5, "severity": "nit", "text": "x"}, ToolContext("s", "c"))


@pytest.mark.thorough
async def test_a_journal_tells_which_suggestions_were_tried() -> None:
    """Through the loop, with the file from a source's tool and real git."""
    content = b"one\ntwo\n"

    async def get(**_: Any) -> ByteStream:
        return ByteStream(streamed(content), "py")

    given = '{"file":"src/app.py","line":%d,"severity":"nit","text":"Odd %d.","suggestion":"%s"}'
    async with workbench() as bench:
        await start(bench)
        tools: list[Tool] = [ReportFindingTool(added(content), head=HEAD), tool(SOURCE, get, source="gitlab")]
        equipment = create_sandbox_tools(bench, tools, Secrets())
        script = [
            tool_call_reply((NAME, given % (1, 1, "1")), (NAME, given % (2, 2, " "))),
            tool_call_reply((NAME, given % (2, 3, "2"))),
            text_reply("ok"),
        ]
        on = stage(ScriptedModel(script), tools=[*tools, *equipment.tools], shape=equipment.shape)
        await on.run()
    assert len(on.written(ToolFinished)) == 3
    found = findings_from_entries(on.journal.entries())
    assert [(finding.suggestion, finding.applies_cleanly) for finding in found] == [("1", True), ("2", True)]


async def test_nobody_makes_a_journal_say_that_an_untried_suggestion_was_tried() -> None:
    """A finding whose own words end like our sentence."""
    tool_alone = ReportFindingTool(added(b"old\n"))
    given = {"file": PATH, "line": 1, "severity": "minor", "text": APPLIES, "suggestion": "new"}
    assert not str(await tool_alone(given, ToolContext("s", "c"))).endswith(APPLIES)
    assert not tool_alone.findings[0].applies_cleanly

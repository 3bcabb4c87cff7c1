"""Commands of the host: their output, their time, and those that go on beside the conversation."""

import asyncio
import re
import resource
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hummingbird.agent.tools.registry import Toolbox
from hummingbird.core.errors import ArgumentsInvalid, CallDenied, CommandFailed, UsageError
from hummingbird.core.protocols.tools import ToolContext
from hummingbird.core.shell.values import (
    BACKGROUND_FINISHED,
    BACKGROUND_KEPT_BYTES,
    COMMAND_BYTES,
    COMMAND_KEPT_BYTES,
    PROCESS_READ_BYTES,
)
from hummingbird.core.tool_spec import ToolEffect
from hummingbird.sandboxes.host.terminal import HostTerminal, OutputBuffer
from hummingbird.sandboxes.host.workspace import Workspace
from tests.sandboxes.host.hosting import ENVIRONMENT, called, context, processes_with, seen_soon


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[HostTerminal]:
    made = HostTerminal(tmp_path, {**ENVIRONMENT, "GIVEN": "yes"})
    yield made
    await made.close()


async def run(terminal: HostTerminal, command: str, **arguments: Any) -> tuple[str, str]:
    return await called(terminal.tools[0], command=command, **arguments)


def timeless(text: str) -> str:
    """Without the seconds that something took, of which a busy machine makes more."""
    return re.sub(r"\d+ s\b", "N s", text)


async def process(terminal: HostTerminal, action: str, **arguments: Any) -> tuple[str, str]:
    return await called(terminal.tools[1], action=action, **arguments)


async def test_a_command_runs_in_the_workspace_and_says_how_it_ended(terminal: HostTerminal, tmp_path: Path) -> None:
    note, output = await run(terminal, "pwd; echo oops >&2; exit 3")
    assert output == f"{tmp_path}\noops\n"
    assert re.fullmatch(r"Exit code 3 after \d+\.\d s\.", note)
    assert (await run(terminal, "kill -KILL $$"))[0].startswith("Exit code 137")
    assert (await run(terminal, "no-such-program"))[0].startswith("Exit code 127")


async def test_a_command_gets_the_environment_it_is_given_and_nobody_to_type(
    terminal: HostTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITLAB_TOKEN", "glpat-canary")
    _, output = await run(terminal, "env; cat; test -t 0 || echo no terminal")
    assert "GIVEN=yes" in output
    assert "canary" not in output
    for line in ("NO_COLOR=1", "PAGER=cat", "GIT_TERMINAL_PROMPT=0", "no terminal"):
        assert line in output


async def test_bytes_that_are_no_text_and_nuls_come_through(terminal: HostTerminal) -> None:
    _, output = await run(terminal, r"printf 'a\000b\377c'")
    assert output == "a\ufffdb\ufffdc"


async def test_output_without_end_is_bounded_in_memory_and_in_time(terminal: HostTerminal) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    note, output = await run(terminal, "echo begin; yes", timeout_s=2)
    assert note.startswith("Ended after 2 s with everything it had started.")
    assert output.startswith("begin\ny\n")
    assert output.endswith("y\n")
    assert "bytes of the output were not kept" in output
    assert len(output) < COMMAND_KEPT_BYTES + 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
    assert not processes_with("begin; yes")


@pytest.mark.thorough
async def test_all_that_was_written_before_the_end_is_there(terminal: HostTerminal) -> None:
    for _ in range(5):
        assert (await run(terminal, "head -c 300000 /dev/zero | tr '\\0' x; echo; echo last"))[1].endswith("\nlast\n")


async def test_the_last_lines_are_shown_while_a_command_runs(terminal: HostTerminal, tmp_path: Path) -> None:
    seen: list[str] = []

    def show(line: str) -> None:
        seen.append(line)
        (tmp_path / {"step 1": "one", "step 1\nstep 2": "two"}[line]).touch()

    await called(
        terminal.tools[0],
        context(show),
        command="printf '\\033[31mstep 1\\033[0m\\n'; until test -e one; do sleep 0.05; done; "
        "echo step 2; until test -e two; do sleep 0.05; done",
    )
    assert seen == ["step 1", "step 1\nstep 2"]


async def test_a_background_command_gets_a_number_and_can_be_listed_read_and_killed(
    terminal: HostTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hummingbird.sandboxes.host.terminal.BACKGROUND_GLANCE_S", 2)
    note, output = await run(terminal, "echo up; sleep 71.25; echo never", background=True)
    assert timeless(note).startswith("In the background. Process 1 running N s. Bytes 0 to 3 of 3.")
    assert output == "up\n"
    assert timeless((await process(terminal, "list"))[1]) == "1 running N s: echo up; sleep 71.25; echo never"
    assert list(map(timeless, terminal.list_running())) == ["1 running N s: echo up; sleep 71.25; echo never"]
    assert (await process(terminal, "read", number=1))[1] == ""
    assert (await process(terminal, "read", number=1, offset=0))[1] == "up\n"
    assert (await process(terminal, "kill", number=1))[1] == "Process 1 was ended: echo up; sleep 71.25; echo never"
    assert not processes_with("71.25")
    assert terminal.list_running() == ()
    assert "1 was ended by you after N s" in timeless((await process(terminal, "list"))[1])


@pytest.mark.thorough
async def test_reading_goes_on_where_it_stopped(terminal: HostTerminal) -> None:
    await run(terminal, "seq -f 'line %.0f' 20000; sleep 72.25", background=True)
    assert await seen_soon(lambda: terminal.get_process(1).output.total > BACKGROUND_KEPT_BYTES)
    first = await process(terminal, "read", number=1, offset=0)
    assert len(first[1]) == PROCESS_READ_BYTES
    assert f"Go on with offset {PROCESS_READ_BYTES}." in first[0]
    second = await process(terminal, "read", number=1)
    assert (first[1] + second[1]).startswith("line 1\nline 2\n")
    beyond = await process(terminal, "read", number=1, offset=BACKGROUND_KEPT_BYTES // 2)
    assert "before them were not kept" in beyond[0]


async def test_what_fails_at_once_in_the_background_is_said_at_once(
    terminal: HostTerminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hummingbird.sandboxes.host.terminal.BACKGROUND_GLANCE_S", 10)
    note, output = await run(terminal, "echo broken; exit 4", background=True)
    assert "Process 1 ended with exit code 4 after N s" in timeless(note)
    assert output == "broken\n"
    assert terminal.pop_finish_messages() == ()


@pytest.mark.thorough
async def test_the_end_of_a_background_process_is_news_once(terminal: HostTerminal, tmp_path: Path) -> None:
    await run(terminal, "sleep 73.25", background=True)
    await run(terminal, "until test -e go; do sleep 0.05; done; exit 6", background=True)
    assert terminal.pop_finish_messages() == ()
    (tmp_path / "go").touch()
    assert await seen_soon(lambda: len(terminal.list_running()) == 1)
    assert list(map(timeless, terminal.pop_finish_messages())) == [
        "Process 2 ended with exit code 6 after N s: until test -e go; do sleep 0.05; done; exit 6."
    ]
    assert terminal.pop_finish_messages() == ()
    await terminal.stop(1)
    assert terminal.pop_finish_messages() == ()


async def test_what_a_command_leaves_running_holds_nobody_up_and_gets_a_number(terminal: HostTerminal) -> None:
    """#77178: a daemon keeps the pipe open; #115490: and is listed."""
    async with asyncio.timeout(60):
        note, output = await run(terminal, "sleep 74.25 & echo started")
    assert output == "started\n"
    assert note == "Exit code 0. Something it started still runs; that is process 1 now."
    assert list(map(timeless, terminal.list_running())) == ["1 running N s: sleep 74.25 & echo started"]
    assert "left something running" in (await process(terminal, "list"))[1]
    assert await terminal.stop(None) == "1 process was ended."
    assert not processes_with("74.25")


async def test_stop_says_what_it_did(terminal: HostTerminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hummingbird.sandboxes.host.terminal.BACKGROUND_GLANCE_S", 10)
    assert await terminal.stop(None) == "Nothing runs in the background."
    with pytest.raises(UsageError, match=r"There is no process 9\. There are: none\."):
        await terminal.stop(9)
    await run(terminal, "true", background=True)
    assert await terminal.stop(1) == "Process 1 had ended before: true"


@pytest.mark.thorough
async def test_stop_ends_also_what_is_being_waited_for(terminal: HostTerminal) -> None:
    call = asyncio.ensure_future(run(terminal, "sleep 75.25"))
    assert await seen_soon(lambda: len(processes_with("75.25")) > 1)
    assert await terminal.stop(None) == "1 process was ended."
    assert (await call)[0] == "It was ended by the user."


@pytest.mark.thorough
async def test_only_so_many_are_kept(terminal: HostTerminal, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        await run(terminal, "sleep 76.25", background=True)
    monkeypatch.setattr("hummingbird.sandboxes.host.terminal.BACKGROUND_RUNNING", 2)
    with pytest.raises(CommandFailed, match="End one of them first"):
        await run(terminal, "sleep 76.5", background=True)
    assert "What it left running was ended" in (await run(terminal, "sleep 76.75 & true"))[0]
    assert await seen_soon(lambda: not processes_with("76.5") and not processes_with("76.75"))
    assert len(terminal.list_running()) == 2
    monkeypatch.setattr("hummingbird.sandboxes.host.terminal.BACKGROUND_FINISHED", 3)
    monkeypatch.setattr("hummingbird.sandboxes.host.terminal.BACKGROUND_GLANCE_S", 10)
    await terminal.stop(None)
    for _ in range(5):
        await run(terminal, "true", background=True)
    assert (await process(terminal, "list"))[1].count("\n") <= 4
    assert BACKGROUND_FINISHED > 3


async def test_a_catastrophe_is_refused_here_too(terminal: HostTerminal, tmp_path: Path) -> None:
    with pytest.raises(CallDenied, match=r"Refused, whatever is approved: It deletes / with everything in it\."):
        await run(terminal, "touch ran; r''m -rf /")
    assert not (tmp_path / "ran").exists()


async def test_a_command_that_cannot_be_run_says_why(terminal: HostTerminal, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="Put a longer one into a file"):
        await run(terminal, "echo " + "x" * COMMAND_BYTES)
    with pytest.raises(CommandFailed, match="at most"):
        await run(terminal, "echo \0")
    with pytest.raises(ArgumentsInvalid, match="To read, give the number"):
        await process(terminal, "read")
    with pytest.raises(CommandFailed, match="There is no process 7"):
        await process(terminal, "kill", number=7)
    gone = HostTerminal(tmp_path / "gone", ENVIRONMENT)
    with pytest.raises(CommandFailed, match="could not be started: No such file or directory"):
        await run(gone, "true")
    await terminal.close()
    with pytest.raises(CommandFailed, match="closed"):
        await run(terminal, "true")


def test_processes_go_on_from_one_event_loop_to_the_next(tmp_path: Path) -> None:
    """A library without a loop of its own calls with a new one each time."""
    terminal = HostTerminal(tmp_path, ENVIRONMENT)
    asyncio.run(run(terminal, "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done; sleep 77.25", background=True))
    until = time.monotonic() + 60
    while terminal.get_process(1).output.total < 10 and time.monotonic() < until:
        time.sleep(0.01)
    assert asyncio.run(process(terminal, "read", number=1, offset=0))[1] == "1\n2\n3\n4\n5\n"
    asyncio.run(terminal.close())
    assert not processes_with("77.25")


@pytest.mark.thorough
def test_nothing_of_ours_stays_open(tmp_path: Path) -> None:
    terminal = HostTerminal(tmp_path, ENVIRONMENT)
    asyncio.run(run(terminal, "true"))
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(5):
        asyncio.run(run(terminal, "true"))
        asyncio.run(run(terminal, "sleep 5", timeout_s=0.05))
    assert len([*Path("/proc/self/fd").iterdir()]) <= before


def test_commands_can_do_anything_and_looking_after_them_runs_something(tmp_path: Path) -> None:
    commands, processes = (tool.spec for tool in HostTerminal(tmp_path, ENVIRONMENT).tools)
    assert commands.effects == {ToolEffect.EXEC, ToolEffect.WRITE, ToolEffect.SEND}
    assert processes.effects == {ToolEffect.EXEC}
    assert {commands.toolset, processes.toolset} == {"terminal"}


def test_what_a_model_is_told_of_these_tools_is_short(tmp_path: Path) -> None:
    tools = [*Workspace(tmp_path).tools, *HostTerminal(tmp_path, ENVIRONMENT).tools]
    for tool in Toolbox(tools).definitions:
        assert len(tool.name) + len(tool.description) + len(str(dict(tool.schema))) <= 1_100, tool.name


@pytest.mark.thorough
def test_a_rolling_output_keeps_both_ends_whatever_the_pieces() -> None:
    text = b"".join(b"%06d\n" % n for n in range(10_000))
    for size in (1, 7, 1000, 70_000):
        rolling = OutputBuffer(1_000)
        for at in range(0, len(text), size):
            rolling.add(text[at : at + size])
        assert rolling.total == len(text)
        assert rolling.read_slice(0, 9_999).content == text[:500]
        assert rolling.read_slice(len(text) - 500, 9_999).content == text[-500:]
        assert rolling.read_slice(500, 9_999).lost_bytes == len(text) - 1_000
        assert rolling.read_slice(len(text) + 5, 10).content == b""
        assert rolling.full_content().startswith(text[:500] + b"\n[69000 bytes")
        assert rolling.last_lines(2) == ["009998", "009999"]


@pytest.mark.thorough
async def test_background_processes_belong_to_the_task_of_their_run(terminal: HostTerminal) -> None:
    """Also what a command that was waited for leaves running; another task's go on."""
    words = ["c2-mine", "c2-left", "c2-other"]
    mine = ToolContext("session", "call", extras={"task_id": "nightly"})
    other = ToolContext("session", "call", extras={"task_id": "weekly"})
    tool = terminal.tools[0]
    await called(tool, mine, command=f"exec -a {words[0]} sleep 60", background=True)
    await called(tool, mine, command=f"(exec -a {words[1]} sleep 60) >/dev/null 2>&1 &")
    await called(tool, other, command=f"exec -a {words[2]} sleep 60", background=True)
    assert [line.split()[0] for line in terminal.list_running("nightly")] == ["1", "2"]
    assert len(terminal.list_running()) == 3
    assert await terminal.stop_task("nightly") == 2
    assert terminal.list_running("nightly") == ()
    assert [bool(processes_with(word)) for word in words] == [False, False, True]
    assert await terminal.stop_task("nightly") == await terminal.stop_task("") == 0
    assert len(terminal.list_running("weekly")) == 1

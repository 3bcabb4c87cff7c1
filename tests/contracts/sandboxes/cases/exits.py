"""How a command ended is told as the shell tells it."""

import asyncio

from hummingbird.core.protocols.sandbox import Sandbox
from tests.contracts.sandboxes.questions import gone, running, said
from tests.contracts.sandboxes.stage import Stage


async def _code(sandbox: Sandbox, command: str) -> int:
    return (await sandbox.exec(command)).exit_code


async def exit_codes_arrive_unchanged(stage: Stage) -> None:
    wanted = [1, 42, 255]
    codes = await asyncio.gather(*(_code(stage.sandbox, f"exit {code}") for code in wanted))
    assert codes == wanted


async def an_unknown_command_ends_with_127_and_the_shells_words(stage: Stage) -> None:
    done = await stage.sandbox.exec("no-such-command-here")
    assert done.exit_code == 127
    assert b"no-such-command-here" in done.stderr
    assert done.stdout == b""


async def a_file_that_may_not_be_run_ends_with_126(stage: Stage) -> None:
    done = await stage.sandbox.exec("echo echo hello > not-a-program; ./not-a-program")
    assert done.exit_code == 126
    assert b"not-a-program" in done.stderr


async def a_syntax_error_is_the_commands_own_failure(stage: Stage) -> None:
    done = await stage.sandbox.exec("if then (")
    assert done.exit_code == 2
    assert b"yntax" in done.stderr


async def death_by_a_signal_is_128_and_its_number(stage: Stage) -> None:
    numbers = [11, 15]
    codes = await asyncio.gather(*(_code(stage.sandbox, f"kill -{number} $$; sleep 60") for number in numbers))
    assert codes == [128 + number for number in numbers]


async def the_last_command_of_a_pipe_decides(stage: Stage) -> None:
    assert await said(stage.sandbox, "false | true && yes | head -n 1 && ! true | false") == b"y\n"


async def a_command_that_kills_everything_it_can_reach_kills_itself_alone(stage: Stage) -> None:
    """Whatever it hits, the sandbox goes on and what was written is still there."""
    assert await _code(stage.sandbox, "echo kept > kept; sleep 7101 & kill -9 -1; sleep 7101") == 137
    await gone(stage.sandbox, "7101")
    assert await said(stage.sandbox, "cat kept") == b"kept\n"


async def a_command_that_kills_its_supervisor_leaves_nothing_running(stage: Stage) -> None:
    done = await stage.sandbox.exec("setsid sleep 7102 & kill -9 $PPID; sleep 7102")
    assert done.exit_code == 137
    assert done.complaint
    await gone(stage.sandbox, "7102")


async def process_1_cannot_be_killed_from_inside(stage: Stage) -> None:
    """Nor told to leave, which a command that ends every Python it finds would do."""
    await said(stage.sandbox, "for number in 1 2 3 6 9 11 13 14 15; do kill -$number 1; done; true")
    assert await said(stage.sandbox, "echo still here") == b"still here\n"


async def a_command_that_kills_its_own_group_ends_alone(stage: Stage) -> None:
    assert await _code(stage.sandbox, "sleep 7103 & kill -9 0") == 137
    assert await running(stage.sandbox, "7103") == []

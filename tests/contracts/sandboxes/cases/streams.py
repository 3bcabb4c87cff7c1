"""A streamed command: its output as it comes, as fast as it is taken."""

from contextlib import aclosing

import pytest

from hummingbird.core.errors import CommandFailed
from tests.contracts.sandboxes.questions import at, content, running, said, taken
from tests.contracts.sandboxes.stage import Stage

_MUCH = 200
_COUNTED = "i=0; while [ $i -lt {0} ]; do i=$((i+1)); head -c 1048576 /dev/zero; echo $i > {1}; done"


async def output_comes_while_the_command_runs(stage: Stage) -> None:
    """It says something and waits for an answer that is given only after that was heard."""
    command = "echo first; until [ -e answer ]; do sleep 0.02; done; echo second"
    async with aclosing(stage.sandbox.stream_exec(command)) as stream:
        assert await anext(stream) == b"first\n"
        await stage.sandbox.write_file(at("answer"), b"")
        assert b"".join([chunk async for chunk in stream]) == b"second\n"


async def a_slow_listener_holds_the_command_up(stage: Stage) -> None:
    """Far less has been written than it wants to write once it has stopped getting on."""
    async with aclosing(stage.sandbox.stream_exec(_COUNTED.format(_MUCH, "counted"))) as stream:
        size = len(await anext(stream))
        seen, now = -1, 0
        while seen != now:
            seen, now = now, int(await said(stage.sandbox, "sleep 0.3; cat counted 2>/dev/null || echo 0"))
        assert now < _MUCH
        size += sum([len(chunk) async for chunk in stream])
    assert size == _MUCH * 1048576
    assert await content(stage.sandbox, at("counted")) == b"%d\n" % _MUCH


async def closing_the_stream_early_ends_the_command(stage: Stage) -> None:
    command = "echo first; trap '' TERM PIPE; setsid sleep 7501 & sleep 7501"
    async with aclosing(stage.sandbox.stream_exec(command)) as stream:
        assert await anext(stream) == b"first\n"
    assert await running(stage.sandbox, "7501") == []


async def closing_a_stream_that_was_never_read_starts_nothing(stage: Stage) -> None:
    stream = stage.sandbox.stream_exec("touch never-run")
    await stream.aclose()
    assert (await stage.sandbox.exec("test -e never-run")).exit_code == 1


async def a_failure_at_the_end_comes_after_the_output(stage: Stage) -> None:
    received: list[bytes] = []
    with pytest.raises(CommandFailed, match=r"exit code 42.*it went wrong") as caught:
        await taken(stage.sandbox.stream_exec("echo output; echo it went wrong >&2; exit 42"), received)
    assert b"".join(received) == b"output\n"
    assert caught.value.exit_code == 42


async def a_flood_of_errors_does_not_hold_up_the_output(stage: Stage) -> None:
    """stderr is for the sentence of a failure; what is too much of it is let go."""
    command = "head -c 5000000 /dev/zero >&2; echo output; head -c 5000000 /dev/zero >&2"
    assert b"".join([chunk async for chunk in stage.sandbox.stream_exec(command)]) == b"output\n"


async def a_streamed_command_killed_by_itself_fails_with_137(stage: Stage) -> None:
    with pytest.raises(CommandFailed) as caught:
        async for _ in stage.sandbox.stream_exec("kill -9 $PPID; sleep 7502"):
            pass
    assert caught.value.exit_code == 137

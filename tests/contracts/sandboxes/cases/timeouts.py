"""A time-out ends the whole tree, inside, and says so."""

import shlex
import tracemalloc

import pytest

from hummingbird.core.errors import CommandFailed
from hummingbird.core.limits import EXEC_KEPT_BYTES
from hummingbird.core.protocols.sandbox import ExecResult, Sandbox
from tests.contracts.sandboxes.questions import MIB, Endless, python, running, said, taken
from tests.contracts.sandboxes.stage import Stage

SOON_S = 1.5
_STUBBORN = "trap '' TERM HUP INT; sleep {0} & while :; do sleep {0}; done"


async def _timed_out(sandbox: Sandbox, command: str, marker: str) -> ExecResult:
    """Runs until its time is over; nothing of it may be left."""
    done = await sandbox.exec(command, timeout_s=SOON_S)
    assert done.timed_out, done
    assert done.exit_code != 0
    assert await running(sandbox, marker) == []
    return done


async def a_time_out_says_so_and_keeps_what_was_written(stage: Stage) -> None:
    done = await _timed_out(stage.sandbox, "echo begun; echo trouble >&2; sleep 7201", "7201")
    assert (done.stdout, done.stderr) == (b"begun\n", b"trouble\n")
    assert done.exit_code == 128 + 15


async def a_command_that_ignores_sigterm_is_killed(stage: Stage) -> None:
    done = await _timed_out(stage.sandbox, _STUBBORN.format(7202), "7202")
    assert done.exit_code == 137


async def grandchildren_that_ignore_sigterm_are_killed(stage: Stage) -> None:
    stubborn = _STUBBORN.format(7203)
    nested = f"sh -c {shlex.quote(f'sh -c {shlex.quote(stubborn)} & wait')} & wait"
    await _timed_out(stage.sandbox, nested, "7203")


async def grandchildren_in_sessions_of_their_own_are_killed(stage: Stage) -> None:
    away = f"setsid sh -c {shlex.quote(_STUBBORN.format(7204))} & setsid nohup sleep 7204 & wait"
    await _timed_out(stage.sandbox, away, "7204")


async def a_stopped_tree_is_killed(stage: Stage) -> None:
    """A stopped process hears no SIGTERM."""
    await _timed_out(stage.sandbox, "sleep 7205 & kill -STOP $!; kill -STOP $$; echo never", "7205")


async def a_command_may_tidy_up_when_its_time_is_over(stage: Stage) -> None:
    done = await _timed_out(stage.sandbox, "trap 'echo tidied; exit 3' TERM; sleep 7206 & wait", "7206")
    assert (done.exit_code, done.stdout) == (3, b"tidied\n")


async def endless_output_is_bounded_in_memory_and_ends_in_time(stage: Stage) -> None:
    """Both streams: what is kept is the beginning, what it weighed is told."""
    command = "yes error >&2 & yes"
    tracemalloc.start()
    try:
        done = await stage.sandbox.exec(command, timeout_s=SOON_S)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    await said(stage.sandbox, "rm -rf _out")
    assert done.timed_out
    assert (len(done.stdout), len(done.stderr)) == (EXEC_KEPT_BYTES, EXEC_KEPT_BYTES)
    assert min(done.stdout_bytes, done.stderr_bytes) > EXEC_KEPT_BYTES
    assert peak < 16 * MIB


async def input_that_never_ends_does_not_outlast_the_time_out(stage: Stage) -> None:
    source = Endless()
    done = await stage.sandbox.exec("cat >/dev/null", source(), timeout_s=SOON_S)
    assert done.timed_out
    assert source.given > 0
    assert source.left


async def input_that_never_comes_does_not_outlast_the_time_out(stage: Stage) -> None:
    source = Endless(most=0)
    done = await stage.sandbox.exec("cat", source(), timeout_s=SOON_S)
    assert (done.timed_out, done.stdout, source.left) == (True, b"", True)


async def a_streamed_command_that_takes_too_long_fails_and_says_so(stage: Stage) -> None:
    received: list[bytes] = []
    with pytest.raises(CommandFailed, match=r"ended after 1\.5 s") as caught:
        await taken(stage.sandbox.stream_exec("echo begun; exec sleep 7207", timeout_s=SOON_S), received)
    assert b"".join(received) == b"begun\n"
    assert caught.value.exit_code == 128 + 15


async def a_streamed_command_nobody_listens_to_is_ended_in_time(stage: Stage) -> None:
    """Its output has nowhere to go, and that must not keep its time from being over."""
    stream = stage.sandbox.stream_exec("yes; sleep 7208", timeout_s=SOON_S)
    try:
        assert await anext(stream)
        await said(stage.sandbox, python(_UNTIL_GONE), timeout_s=30)
    finally:
        await stream.aclose()


_UNTIL_GONE = """
import os, time
def alive():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open("/proc/%s/cmdline" % pid, "rb").read() == b"yes\\0":
                return True
        except OSError:
            pass
    return False
while alive():
    time.sleep(0.02)
"""

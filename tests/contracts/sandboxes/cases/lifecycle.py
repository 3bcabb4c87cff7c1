"""A sandbox's beginning and end: nothing before, nothing after, and nothing left."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from hummingbird.core.errors import SandboxBroken
from hummingbird.core.protocols.sandbox import Sandbox
from tests.contracts.sandboxes.questions import Endless, at, broken, said, there
from tests.contracts.sandboxes.stage import Stage


async def a_sandbox_knows_its_name(stage: Stage) -> None:
    assert stage.sandbox.name == stage.backend.name


async def before_its_start_every_verb_says_that_it_is_broken(stage: Stage) -> None:
    await broken(stage.backend.make())


async def cleaning_up_twice_or_without_a_start_is_fine(stage: Stage) -> None:
    before = await stage.backend.traces()
    sandbox = stage.backend.make()
    await sandbox.cleanup()
    await sandbox.start()
    await asyncio.gather(sandbox.cleanup(), sandbox.cleanup())
    await sandbox.cleanup()
    await _left(stage, before)


async def nothing_is_left_after_the_end(stage: Stage) -> None:
    """Neither here nor in the next sandbox, also when commands were running until then."""
    before = await stage.backend.traces()
    async with stage.fresh() as sandbox:
        assert await stage.backend.traces() != before
        await sandbox.write_file(at("old/left-file"), b"left")
        command = "touch /tmp/left-file begun; setsid sleep 7801 & sleep 7801"
        running = asyncio.create_task(sandbox.exec(command))
        await there(sandbox, at("begun"))
    await asyncio.wait({running})
    assert isinstance(running.exception(), SandboxBroken)
    await _left(stage, before)
    assert "left-file" not in host_names("/tmp") | host_names("/tmp/data/old")
    async with stage.fresh() as other:
        assert await said(other, "find / -xdev -name left-file 2>/dev/null; find /tmp /dev/shm -type f; true") == b""


async def the_end_of_a_sandbox_is_not_the_outcome_of_its_commands(stage: Stage) -> None:
    """Each verb that is under way says that the sandbox is broken."""
    async with stage.fresh() as sandbox:
        tasks = await under_way(sandbox)
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [SandboxBroken] * 3, outcomes


async def after_its_end_every_verb_says_that_it_is_broken(stage: Stage) -> None:
    sandbox = stage.backend.make()
    await sandbox.start()
    await sandbox.cleanup()
    await broken(sandbox)


async def a_reader_that_has_stopped_listening_does_not_hold_up_the_end(stage: Stage) -> None:
    """More is on its way to it than any buffer holds."""
    async with stage.fresh() as sandbox:
        await said(sandbox, "head -c 50000000 /dev/zero > long")
        reading, stream = sandbox.read_file_iter(at("long")), sandbox.stream_exec("yes")
        assert await anext(reading)
        assert await anext(stream)
        async with asyncio.timeout(30):
            await sandbox.cleanup()
    for stopped in (reading, stream):
        with pytest.raises(SandboxBroken):
            assert sum([len(chunk) async for chunk in stopped]) < 0


async def a_start_that_is_cancelled_leaves_nothing(stage: Stage) -> None:
    """At whatever moment: the pauses only make it likely that these are different ones."""
    before = await stage.backend.traces()
    for pause in (0, 0.01, 0.1):
        sandbox = stage.backend.make()
        task = asyncio.create_task(sandbox.start())
        await asyncio.sleep(pause)
        if not task.cancel():
            await sandbox.cleanup()
        await asyncio.wait({task})
        with pytest.raises(SandboxBroken):
            await sandbox.exec("true")
        await _left(stage, before)
        await sandbox.cleanup()


async def cleaning_up_that_is_cancelled_can_be_repeated(stage: Stage) -> None:
    before = await stage.backend.traces()
    sandbox = stage.backend.make()
    await sandbox.start()
    task = asyncio.create_task(sandbox.cleanup())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    await sandbox.cleanup()
    await _left(stage, before)


async def a_sandbox_that_was_left_for_a_reply_is_no_longer_ours(stage: Stage) -> None:
    """Where the backend cannot keep it, that is its end; what a pool keeps, a new sandbox takes back."""
    before = await stage.backend.traces()
    sandbox = stage.backend.make()
    try:
        await sandbox.start()
        await sandbox.linger("a-session")
        await broken(sandbox)
        await _left(stage, before)
    finally:
        await sandbox.cleanup()


def host_names(folder: str) -> set[str]:
    """On this side."""
    return {path.name for path in Path(folder).glob("*")}


async def under_way(sandbox: Sandbox) -> "Sequence[asyncio.Task[object]]":
    """A command, a streamed command and a file, each in its middle."""

    async def stream() -> None:
        async for _ in sandbox.stream_exec("touch streaming; yes; sleep 7802"):
            await asyncio.sleep(0)

    source = Endless(most=1_000_000)
    verbs = (
        sandbox.exec("echo out; touch commanding; sleep 7802"),
        stream(),
        sandbox.stream_to_file(at("f"), source()),
    )
    tasks = [asyncio.create_task(verb) for verb in verbs]
    await there(sandbox, at("streaming"), at("commanding"))
    await source.stuck.wait()
    return tasks


async def _left(stage: Stage, before: set[str]) -> None:
    """Returns once only that is there which was there before; what stays, the case's own limit complains about."""
    async with asyncio.timeout(45):
        while (await stage.backend.traces()) - before:  # noqa: ASYNC110 - kernels and clusters set no event of ours
            await asyncio.sleep(0.05)

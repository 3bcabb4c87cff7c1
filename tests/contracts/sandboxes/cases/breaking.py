"""A sandbox that breaks is an error with a name of its own, never the output of a command."""

import asyncio

import pytest

from hummingbird.core.errors import SandboxBroken
from tests.contracts.sandboxes.cases.lifecycle import under_way
from tests.contracts.sandboxes.questions import at, broken, content, said
from tests.contracts.sandboxes.stage import Stage


async def every_verb_under_way_is_told_that_its_sandbox_was_killed(stage: Stage) -> None:
    """A command, a stream, a writer; what had been written until then is not passed off as all there was."""
    async with stage.fresh() as sandbox:
        tasks = await under_way(sandbox)
        await stage.backend.kill(sandbox)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [SandboxBroken] * 3, outcomes


async def a_reader_is_told_that_its_sandbox_was_killed(stage: Stage) -> None:
    async with stage.fresh() as sandbox:
        await said(sandbox, "head -c 100000000 /dev/zero > long")
        reading = sandbox.read_file_iter(at("long"))
        assert await anext(reading)
        await stage.backend.kill(sandbox)
        with pytest.raises(SandboxBroken):
            assert sum([len(chunk) async for chunk in reading]) < 0


async def after_it_was_killed_every_verb_says_so_and_a_new_one_works(stage: Stage) -> None:
    before = await stage.backend.traces()
    sandbox = stage.backend.make()
    await sandbox.start()
    await stage.backend.kill(sandbox)
    await broken(sandbox)
    await sandbox.cleanup()
    async with stage.fresh() as other:
        await other.write_file(at("f"), b"new")
        assert await content(other, at("f")) == b"new"
    assert not (await stage.backend.traces()) - before

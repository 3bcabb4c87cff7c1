"""The same between processes."""

import asyncio
import os
import signal

import pytest

from hummingbird.core.errors import SessionTaken
from hummingbird.core.journal import UserSaid
from tests.contracts.sessions.stage import ID, OPENED, Stage, committed, said

_THEIRS = UserSaid(text="from another process")


async def another_process_is_told_that_it_is_taken(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    async with stage.other_process("attempt") as process:
        told, _ = await process.communicate()
    assert told.decode().startswith("SessionTaken Another process is using")
    await session.release()
    async with stage.other_process("attempt") as process:
        told, _ = await process.communicate()
    assert told == b"opened with 1\n"


async def what_another_process_has_is_read_and_neither_opened_nor_removed(stage: Stage) -> None:
    await stage.told(OPENED)
    async with stage.other_process("hold") as process:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"open\n"
        assert await stage.entries() == [OPENED, _THEIRS]
        with pytest.raises(SessionTaken):
            await stage.opened()
        with pytest.raises(SessionTaken):
            await stage.sessions.remove(ID)
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
    await stage.told(*said(1))
    assert await stage.entries() == [OPENED, _THEIRS, *said(1)]


async def what_a_killed_process_had_goes_on(stage: Stage) -> None:
    async with stage.other_process("hold") as process:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"open\n"
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
    stage.leases_run_out()
    await asyncio.gather(stage.told(OPENED))
    assert await stage.entries() == [_THEIRS, OPENED]

"""One has a session at a time."""

import asyncio

import pytest

from hummingbird.core.errors import SessionTaken
from hummingbird.core.protocols.sessions import Session
from tests.contracts.sessions.stage import ID, OPENED, Stage, committed, said


async def a_second_opener_is_told_that_it_is_taken(stage: Stage) -> None:
    session = await stage.opened()
    for _ in range(2):  # before there is anything in it, and after
        before = await stage.stored()
        with pytest.raises(SessionTaken, match="Another process is using"):
            await stage.opened()
        assert await stage.stored() == before
        await committed(session, OPENED)
    assert await stage.entries() == [OPENED, OPENED]


async def whoever_was_refused_gets_it_after_the_release(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    with pytest.raises(SessionTaken):
        await stage.opened()
    await session.release()
    await committed(await stage.opened(), *said(1))
    assert await stage.entries() == [OPENED, *said(1)]


async def of_many_who_open_at_once_one_has_it(stage: Stage) -> None:
    for turn in range(4):
        found = await asyncio.gather(*(stage.opened() for _ in range(6)), return_exceptions=True)
        ours = [one for one in found if not isinstance(one, BaseException)]
        assert len(ours) == 1
        assert all(isinstance(one, SessionTaken) for one in found if one is not ours[0])
        session: Session = ours[0]
        await committed(session, *said(turn))
        await session.release()
    assert await stage.entries() == list(said(0, 1, 2, 3))


async def an_opening_that_is_given_up_at_any_moment_keeps_nobody_from_the_next(stage: Stage) -> None:
    """Ctrl-C just after Enter: neither a thread nor a write that is on its way is called back by it."""
    sessions = stage.sessions
    for ticks in range(41):
        opening = asyncio.ensure_future(sessions.open(ID))
        for _ in range(ticks):
            await asyncio.sleep(0)
        if opening.cancel():
            with pytest.raises(asyncio.CancelledError):
                await opening
        else:
            await opening.result().release()
        session = await sessions.open(ID)
        await committed(session, *said(ticks))
        await session.release()
    assert await stage.entries() == list(said(*range(41)))


async def another_session_is_not_in_the_way(stage: Stage) -> None:
    await committed(await stage.opened(), OPENED)
    await committed(await stage.opened("another"), OPENED, *said(1))
    assert await stage.entries(ID) == [OPENED]
    assert await stage.entries("another") == [OPENED, *said(1)]

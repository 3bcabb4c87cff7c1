"""Whoever gave no sign of life for too long may be followed by another one, and learns of it before it does anything
more."""

import asyncio
from collections.abc import Sequence

import pytest

from hummingbird.core.errors import ArchiveUnusable, SessionTaken
from hummingbird.core.protocols.sessions import Session
from hummingbird.core.protocols.storage import ObjectInfo, ObjectVersion
from tests.contracts.sessions.stage import ID, OPENED, Stage, chunks, committed, said
from tests.contracts.sessions.unreliable import UnreliableObjects


async def _overtaken(stage: Stage) -> tuple[Session, Session]:
    """Somebody who hung, and who has the session by now."""
    one = await stage.opened()
    await committed(one, OPENED)
    stage.leases_run_out()
    other = await stage.opened()
    await committed(other, *said(1))
    return one, other


async def _untouched(stage: Stage, before: dict[str, bytes], other: Session) -> None:
    """Nothing of the loser is there, and the other one goes on."""
    assert await stage.stored() == before
    await committed(other, *said(2))
    assert await stage.entries() == [OPENED, *said(1, 2)]


async def a_commit_of_somebody_who_was_overtaken_stores_nothing(stage: Stage) -> None:
    one, other = await _overtaken(stage)
    before = await stage.stored()
    for number in (7, 8):
        with pytest.raises(SessionTaken):
            await committed(one, *said(number))
    with pytest.raises(SessionTaken):
        await one.catch_up()
    await one.release()
    await _untouched(stage, before, other)


async def a_file_of_somebody_who_was_overtaken_is_not_kept(stage: Stage) -> None:
    one, other = await _overtaken(stage)
    await other.write_files({"transcript.md": b"newer"})
    before = await stage.stored()
    with pytest.raises(SessionTaken):
        await one.write_files({"transcript.md": b"old"})
    await _untouched(stage, before, other)


async def a_checkpoint_of_somebody_who_was_overtaken_is_not_kept(stage: Stage) -> None:
    one, other = await _overtaken(stage)
    await other.archives.put(ID, chunks(b"newer"))
    before = await stage.stored()
    with pytest.raises(ArchiveUnusable, match="Another process is using") as caught:
        await one.archives.put(ID, chunks(b"old"))
    assert isinstance(caught.value.__cause__, SessionTaken)
    await _untouched(stage, before, other)


async def a_release_of_somebody_who_was_overtaken_stores_nothing(stage: Stage) -> None:
    one, other = await _overtaken(stage)
    one.journal.append(said(7)[0])
    before = await stage.stored()
    await one.release()
    await _untouched(stage, before, other)


async def somebody_who_had_written_nothing_takes_nothing_away(stage: Stage) -> None:
    one = await stage.opened()
    stage.leases_run_out()
    other = await stage.opened()
    await committed(other, OPENED, *said(1))
    before = await stage.stored()
    await one.release()
    await _untouched(stage, before, other)


async def somebody_who_was_overtaken_by_one_that_is_gone_learns_it_too(stage: Stage) -> None:
    one, other = await _overtaken(stage)
    await other.release()
    with pytest.raises(SessionTaken):
        await committed(one, *said(7))
    assert await stage.entries() == [OPENED, *said(1)]


async def whoever_hung_and_was_not_followed_goes_on(stage: Stage) -> None:
    one = await stage.opened()
    await committed(one, OPENED)
    stage.leases_run_out()
    await committed(one, *said(1))
    with pytest.raises(SessionTaken):
        await stage.opened()
    assert await stage.entries() == [OPENED, *said(1)]


async def somebody_whose_session_was_removed_learns_it(stage: Stage) -> None:
    one = await stage.opened()
    await committed(one, OPENED)
    stage.leases_run_out()
    assert await stage.sessions.remove(ID)
    with pytest.raises(SessionTaken):
        await committed(one, *said(7))
    await one.release()
    assert await stage.stored() == {}


async def what_somebody_still_seals_of_a_removed_session_is_not_in_the_way(stage: Stage) -> None:
    stage.segments_hold(100)
    one = await stage.opened()
    await committed(one, OPENED, *said(7, 8))
    stage.leases_run_out()
    assert await stage.sessions.remove(ID)
    with pytest.raises(SessionTaken):
        await committed(one, *said(9))
    other = await stage.opened()
    for number in range(4):
        await committed(other, *said(number))
    await other.release()
    assert await stage.entries() == list(said(0, 1, 2, 3))


async def a_removal_that_died_in_the_middle_leaves_no_session(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    await session.write_files({"context.json": b'[{"role":"user","content":"why?"}]'})
    await session.release()
    with stage.patch.context() as patch:
        patch.setattr(UnreliableObjects, "delete", _dies)
        with pytest.raises(_DiedError):
            await stage.sessions.remove(ID)
    assert await stage.entries() == []
    assert list(await stage.sessions.list_sessions()) == []
    with pytest.raises(SessionTaken):  # who removes it may still be at it
        await stage.opened()
    stage.leases_run_out()
    fresh = await stage.opened()
    assert list(fresh.journal.entries()) == []
    await committed(fresh, *said(2))
    assert await stage.entries() == list(said(2))
    assert await stage.sessions.read_file(ID, "context.json") is None


async def a_removal_that_died_in_the_middle_is_done_the_next_time(stage: Stage) -> None:
    await stage.told(OPENED)
    with stage.patch.context() as patch:
        patch.setattr(UnreliableObjects, "delete", _dies)
        with pytest.raises(_DiedError):
            await stage.sessions.remove(ID)
    stage.leases_run_out()
    assert await stage.sessions.remove(ID)
    assert await stage.stored() == {}


async def a_removal_that_hung_leaves_alone_what_was_begun_meanwhile(stage: Stage) -> None:
    """A derived id is begun anew while somebody is stopped in the middle of removing it."""
    await stage.told(OPENED)
    begun: list[bool] = []

    async def hangs(objects: UnreliableObjects, prefix: str) -> Sequence[ObjectInfo]:
        found = await listed(objects, prefix)
        if not begun and await stage.entries() == []:  # marked by now
            begun.append(True)
            stage.leases_run_out()
            fresh = await stage.opened()
            await committed(fresh, *said(2))
            await fresh.write_files({"transcript.md": b"new"})
        return found

    listed = UnreliableObjects.list_objects
    with stage.patch.context() as patch:
        patch.setattr(UnreliableObjects, "list_objects", hangs)
        with pytest.raises(SessionTaken):
            await stage.sessions.remove(ID)
    assert begun
    assert await stage.entries() == list(said(2))


class _DiedError(Exception):
    """The process is no more."""


async def _dies(*_: object) -> None:
    raise _DiedError


async def a_lease_that_is_got_after_nobody_waits_for_it_is_given_back(stage: Stage) -> None:
    """Ctrl-C while the bucket takes its time: the prompt is back at once, and the next message waits for the release
    instead of being told of another process."""
    await stage.told(OPENED)
    swap, written, gate = stage.between.compare_and_swap, asyncio.Event(), asyncio.Event()

    async def slow(name: str, content: bytes, known: ObjectVersion | None) -> ObjectVersion | None:
        version = await swap(name, content, known)
        written.set()
        await gate.wait()
        return version

    stage.patch.setattr(stage.between, "compare_and_swap", slow)
    sessions = stage.sessions
    opening = asyncio.ensure_future(sessions.open(ID))
    await written.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(opening, 10)  # the gate is shut until then
    following = asyncio.ensure_future(sessions.open(ID))
    await asyncio.sleep(0.05)
    assert not following.done()
    gate.set()
    await (await following).release()
    assert await stage.entries() == [OPENED]


async def a_release_that_is_cancelled_at_any_moment_gives_the_lease_back(stage: Stage) -> None:
    await stage.told(OPENED)
    for ticks in range(1, 13):
        session = await stage.opened()
        release = asyncio.ensure_future(session.release())
        for _ in range(ticks):
            await asyncio.sleep(0)
        release.cancel()
        await asyncio.wait({release})
    assert (await stage.opened()).journal.entries() == [OPENED]

"""A write whose fate nobody knows is neither lost nor doubled, and nobody takes himself for somebody else."""

import asyncio

import pytest

from hummingbird.core.errors import JournalWriteDelayed, ObjectStoreUnusable, SessionTaken
from hummingbird.core.protocols.sessions import Session
from hummingbird.storage import bucket_journal
from tests.contracts.sessions.stage import ID, OPENED, Stage, committed, said, segments
from tests.contracts.sessions.unreliable import Mood

_CERTAIN = (Mood.FINE, Mood.ANSWER_LOST, Mood.DENIED)  # a look tells what became of it
_NOT_YET = (Mood.REFUSED, Mood.LATE)


async def _tried(session: Session, *numbers: int) -> bool:
    try:
        await committed(session, *said(*numbers))
    except JournalWriteDelayed:
        return False
    return True


async def a_commit_whose_answer_was_lost_is_told_by_a_look(stage: Stage) -> None:
    session = await stage.opened()
    for number, mood in enumerate(_CERTAIN):
        stage.between.moods.append(mood)
        assert await _tried(session, number)
        assert await stage.entries() == list(said(*range(number + 1)))


async def a_commit_that_was_not_taken_goes_along_with_the_next(stage: Stage) -> None:
    session = await stage.opened()
    for number, mood in enumerate(_NOT_YET):
        stage.between.moods.append(mood)
        assert not await _tried(session, 2 * number)
        with pytest.raises(JournalWriteDelayed):  # it is left alone for a while
            await session.journal.commit()
        session.journal.append(said(2 * number + 1)[0])
        await session.catch_up()
        assert await stage.entries() == list(said(*range(2 * number + 2)))
    assert await stage.between.arrive() == [False]
    assert await stage.entries() == list(said(*range(4)))


async def a_write_that_comes_late_counts_once(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    for number in (0, 2, 4):
        stage.between.moods.append(Mood.LATE)
        assert not await _tried(session, number)
        assert await stage.between.arrive() == [True]
        session.journal.append(said(number + 1)[0])
        await session.catch_up()
        assert await stage.entries() == [OPENED, *said(*range(number + 2))]


async def a_late_write_with_nothing_after_it_is_known_as_our_own(stage: Stage) -> None:
    session = await stage.opened()
    stage.between.moods.append(Mood.LATE)
    assert not await _tried(session, 0)
    assert await stage.between.arrive() == [True]
    await session.catch_up()
    await session.write_files({"transcript.md": b"x"})
    await session.release()
    assert await stage.entries() == list(said(0))
    await stage.told(*said(1))
    assert await stage.entries() == list(said(0, 1))


async def a_store_that_hangs_is_given_up_on_and_its_write_counts_once(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    with stage.patch.context() as patch:
        patch.setattr(bucket_journal, "COMMIT_S", 0.1)
        stage.between.moods.append(Mood.HANGING)
        with pytest.raises(JournalWriteDelayed, match="did not answer"):
            await committed(session, *said(0))
    assert await stage.between.arrive() == [True]
    await session.catch_up()
    await committed(session, *said(1))
    assert await stage.entries() == [OPENED, *said(0, 1)]


async def a_late_write_of_somebody_who_was_overtaken_is_never_there(stage: Stage) -> None:
    one = await stage.opened()
    await committed(one, OPENED)
    stage.between.moods.append(Mood.LATE)
    assert not await _tried(one, 7)
    stage.leases_run_out()
    other = await stage.opened()
    assert await stage.between.arrive() == [False]
    await committed(other, *said(0))
    with pytest.raises(SessionTaken):
        await one.catch_up()
    assert await stage.entries() == [OPENED, *said(0)]


async def a_late_write_before_the_other_one_came_is_part_of_the_line(stage: Stage) -> None:
    one = await stage.opened()
    stage.between.moods.append(Mood.LATE)
    assert not await _tried(one, 0)
    assert await stage.between.arrive() == [True]
    stage.leases_run_out()
    other = await stage.opened()
    await committed(other, *said(1))
    with pytest.raises(SessionTaken):
        await one.catch_up()
    assert await stage.entries() == list(said(0, 1))


async def opening_is_certain_where_a_look_tells(stage: Stage) -> None:
    for number, mood in enumerate(_CERTAIN):
        stage.between.moods.append(mood)
        session = await stage.opened()
        await committed(session, *said(number))
        await session.release()
    assert await stage.entries() == list(said(0, 1, 2))


async def an_opening_that_was_not_taken_is_told_and_takes_nothing(stage: Stage) -> None:
    stage.between.moods.append(Mood.REFUSED)
    with pytest.raises(ObjectStoreUnusable):
        await stage.opened()
    assert await stage.stored() == {}
    await stage.told(OPENED)
    assert await stage.entries() == [OPENED]


async def a_release_is_certain_where_a_look_tells(stage: Stage) -> None:
    for number, mood in enumerate(_CERTAIN):
        session = await stage.opened()  # at once: the one before let go of it
        session.journal.append(said(number)[0])
        stage.between.moods.append(mood)
        await session.release()
        assert await stage.entries() == list(said(*range(number + 1)))


async def a_release_without_a_store_never_raises_and_ends_with_the_lease(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    stage.between.away = True
    session.journal.append(said(7)[0])
    await session.release()
    stage.between.away = False
    with pytest.raises(SessionTaken):
        await stage.opened()
    stage.leases_run_out()
    await stage.told(*said(0))
    assert await stage.entries() == [OPENED, *said(0)]


async def sealing_is_certain_whatever_becomes_of_an_answer(stage: Stage) -> None:
    stage.segments_hold(1)  # every commit seals
    session = await stage.opened()
    await committed(session, *said(0, 1))
    for number, mood in enumerate((*_CERTAIN, *_NOT_YET), 2):
        stage.between.moods.append(mood)  # of the segment, not of the tail
        session.journal.append(said(number)[0])
        try:
            await session.journal.commit()
        except JournalWriteDelayed:
            await session.catch_up()
        await stage.between.arrive()
        assert await stage.entries() == list(said(*range(number + 1)))
    assert len(list(segments(await stage.stored()))) >= 4


async def a_store_that_is_away_is_told_by_every_verb(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    stage.between.away = True
    sessions = stage.sessions
    for verb in (sessions.open(ID), sessions.load_entries(ID), sessions.list_sessions(), sessions.remove(ID)):
        with pytest.raises(ObjectStoreUnusable):
            await verb
    with pytest.raises(ObjectStoreUnusable):
        await session.write_files({"transcript.md": b"x"})
    stage.between.away = False
    await session.catch_up()
    assert await stage.entries() == [OPENED]


async def a_sign_of_life_is_given_without_anybody_asking(stage: Stage) -> None:
    stage.patch.setattr(bucket_journal, "LEASE_BEAT_S", 0.3)
    session = await stage.opened()
    await committed(session, OPENED)
    stage.leases_run_out()
    before = await stage.stored()
    async with asyncio.timeout(45):
        while await stage.stored() == before:  # noqa: ASYNC110 - nobody tells; the store is asked
            await asyncio.sleep(0.05)
    with pytest.raises(SessionTaken):
        await stage.opened()

"""What was committed is what is there, for whoever comes next."""

import asyncio

import pytest

from hummingbird.core.errors import JournalUnwritable, UsageError
from tests.contracts.sessions.stage import ID, OPENED, Stage, chunks, committed, said
from tests.storage.samples import SAMPLES

NO_IDS = ("", "..", "a/b", "a b", "ä", "a\n", "-", "x" * 129, ".hidden", "a\0")


async def what_was_committed_is_there_when_it_is_opened_again(stage: Stage) -> None:
    await stage.told(*SAMPLES)
    await stage.told(*said(1, 2))
    session = await stage.opened()
    assert session.id == ID
    assert list(session.journal.entries()) == [*SAMPLES, *said(1, 2)]
    assert await stage.entries() == [*SAMPLES, *said(1, 2)]


async def what_was_only_appended_is_there_after_a_release(stage: Stage) -> None:
    session = await stage.opened()
    session.journal.append(OPENED)
    await session.journal.commit()
    session.journal.append(said(1)[0])
    await session.release()
    assert await stage.entries() == [OPENED, *said(1)]


async def commits_without_news_change_nothing(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    before = await stage.stored()
    await session.journal.commit()
    assert await stage.stored() == before


async def commits_at_the_same_time_store_everything_once(stage: Stage) -> None:
    session = await stage.opened()
    session.journal.append(OPENED)
    for entry in said(*range(8)):
        session.journal.append(entry)
        await asyncio.sleep(0)
    await asyncio.gather(*(session.journal.commit() for _ in range(4)))
    assert await stage.entries() == [OPENED, *said(*range(8))]


async def a_commit_that_is_cancelled_has_stored_all_or_nothing(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    session.journal.append(said(1)[0])
    doing = asyncio.ensure_future(session.journal.commit())
    await asyncio.sleep(0)
    doing.cancel()
    await asyncio.wait({doing})  # it may have been quicker
    await committed(session, said(2)[0])
    assert await stage.entries() == [OPENED, *said(1, 2)]


async def a_reader_sees_a_growing_beginning_and_changes_nothing(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    for number in range(5):
        before = await stage.stored()
        assert await stage.entries() == [OPENED, *said(*range(number))]
        assert await stage.stored() == before
        await committed(session, *said(number))
    assert len(session.journal.entries()) == 6


async def a_session_that_is_none_has_no_entries_and_no_files(stage: Stage) -> None:
    assert await stage.entries("nobody") == []
    assert await stage.sessions.read_file("nobody", "transcript.md") is None
    assert await stage.sessions.load_archive("nobody") is None
    assert await stage.stored() == {}


async def an_empty_session_leaves_nothing_behind(stage: Stage) -> None:
    session = await stage.opened()
    assert list(session.journal.entries()) == []
    await session.release()
    assert await stage.stored() == {}
    assert list(await stage.sessions.list_sessions()) == []


async def a_release_may_be_repeated_and_takes_nothing_from_who_came_after(stage: Stage) -> None:
    first = await stage.opened()
    await first.release()
    second = await stage.opened()
    await committed(second, OPENED)
    await first.release()
    await committed(second, *said(1))
    await second.release()
    await second.release()
    assert await stage.entries() == [OPENED, *said(1)]


async def what_was_released_takes_nothing_more(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    await session.release()
    with pytest.raises(JournalUnwritable):
        await committed(session, *said(1))
    assert await stage.entries() == [OPENED]


async def files_beside_the_journal_are_kept_and_replaced(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    for content in (b"1\xff", b"", b"2" * 100_000):
        await session.write_files({"transcript.md": content})
        assert await stage.sessions.read_file(ID, "transcript.md") == content
    assert await stage.sessions.read_file(ID, "metadata.json") is None
    assert await stage.entries() == [OPENED]


async def keeping_a_file_stores_what_was_appended_before_it(stage: Stage) -> None:
    """A file that is made of the journal is never ahead of it."""
    session = await stage.opened()
    session.journal.append(OPENED)
    await session.write_files({"transcript.md": b"made of it"})
    assert await stage.entries() == [OPENED]


async def a_checkpoint_is_kept_whole_and_replaced(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    for pieces in ((b"ab", b"c"), (b"later",)):
        assert await session.archives.put(ID, chunks(*pieces)) == len(b"".join(pieces))
        for archive in (await session.archives.get(ID), await stage.sessions.load_archive(ID)):
            assert archive is not None
            assert b"".join([piece async for piece in archive.chunks]) == b"".join(pieces)


async def an_id_that_is_none_is_refused_by_every_verb(stage: Stage) -> None:
    sessions = stage.sessions
    for name in NO_IDS:
        for verb in (sessions.open, sessions.load_entries, sessions.load_archive, sessions.remove):
            with pytest.raises(UsageError, match="is not usable"):
                await verb(name)
        with pytest.raises(UsageError, match="is not usable"):
            await sessions.read_file(name, "transcript.md")
    assert await stage.stored() == {}


async def ids_that_begin_alike_are_sessions_of_their_own(stage: Stage) -> None:
    await stage.told(OPENED, session_id="a")
    await stage.told(OPENED, *said(1), session_id="a-b")
    assert await stage.sessions.remove("a")
    assert await stage.entries("a-b") == [OPENED, *said(1)]
    assert [kept.session_id for kept in await stage.sessions.list_sessions()] == ["a-b"]

"""Removed is removed: with all it has, and not while somebody has it."""

import pytest

from hummingbird.core.errors import SessionTaken
from tests.contracts.sessions.stage import ID, OPENED, Stage, chunks, committed, said


async def a_session_is_removed_with_all_it_has(stage: Stage) -> None:
    stage.segments_hold(300)
    session = await stage.opened()
    for number in range(6):
        await committed(session, *said(number))
    await session.write_files({"context.json": b"{}"})
    await session.archives.put(ID, chunks(b"packed"))
    await session.release()
    await stage.told(OPENED, session_id="another")
    assert await stage.sessions.remove(ID)
    assert await stage.entries() == []
    assert [kept.session_id for kept in await stage.sessions.list_sessions()] == ["another"]
    assert all("another" in name for name in await stage.stored())
    assert not await stage.sessions.remove(ID)


async def what_is_not_there_is_not_removed(stage: Stage) -> None:
    assert not await stage.sessions.remove("nobody")
    assert await stage.stored() == {}


async def a_session_that_somebody_has_is_not_removed(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    before = await stage.stored()
    with pytest.raises(SessionTaken):
        await stage.sessions.remove(ID)
    assert await stage.stored() == before
    await committed(session, *said(1))
    assert await stage.entries() == [OPENED, *said(1)]


async def a_removed_session_begins_anew(stage: Stage) -> None:
    await stage.told(OPENED, *said(1))
    assert await stage.sessions.remove(ID)
    await stage.told(*said(2))
    assert await stage.entries() == list(said(2))


async def what_nobody_can_read_can_be_removed(stage: Stage) -> None:
    for content in (b"", b"\xff\n", b'{"kind":"session_opened","format":99}\n', b'{"tail":99,"holder":"x"}\n'):
        await stage.told(OPENED)
        await stage.change(lambda _, given=content: given)  # type: ignore[misc] # mypy: a lambda's default
        assert await stage.sessions.remove(ID)
        assert await stage.stored() == {}


async def one_that_has_only_an_older_file_can_be_removed(stage: Stage) -> None:
    await stage.write("context.json", b"[]")
    assert await stage.sessions.remove(ID)
    assert await stage.stored() == {}


async def left_overs_without_a_journal_are_removed(stage: Stage) -> None:
    await stage.write("transcript.md", b"left")
    assert await stage.sessions.remove(ID)
    assert await stage.stored() == {}


async def one_that_changed_since_it_was_listed_is_not_removed(stage: Stage) -> None:
    await stage.told(OPENED)
    (kept,) = await stage.sessions.list_sessions()
    await stage.told(*said(1))
    assert not await stage.sessions.remove(ID, kept.stamp)
    assert await stage.entries() == [OPENED, *said(1)]
    (kept,) = await stage.sessions.list_sessions()
    assert await stage.sessions.remove(ID, kept.stamp)
    assert await stage.stored() == {}


async def a_session_that_went_on_since_it_was_seen_is_not_removed(stage: Stage) -> None:
    """Retention asks a person, and that takes time."""
    await stage.told(OPENED)
    (seen,) = await stage.sessions.list_sessions()
    session = await stage.opened()
    await committed(session, *said(1))
    await session.release()
    assert not await stage.sessions.remove(ID, seen.stamp)
    assert await stage.entries() == [OPENED, *said(1)]
    (now,) = await stage.sessions.list_sessions()
    assert await stage.sessions.remove(ID, now.stamp)
    assert await stage.entries() == []

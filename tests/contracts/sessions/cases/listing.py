"""What a list says of sessions."""

import asyncio

from tests.contracts.sessions.stage import ID, OPENED, Stage, committed, said


async def nothing_is_listed_where_nothing_is(stage: Stage) -> None:
    assert list(await stage.sessions.list_sessions()) == []


async def the_last_changed_is_listed_first(stage: Stage) -> None:
    for name in ("b", "a"):
        await stage.told(OPENED, session_id=name)
        await asyncio.sleep(1.05)  # some stores tell whole seconds
    await stage.told(*said(1), session_id="b")
    found = await stage.sessions.list_sessions()
    assert [kept.session_id for kept in found] == ["b", "a"]
    assert [kept.changed_at for kept in found] == sorted((kept.changed_at for kept in found), reverse=True)


async def a_stamp_is_another_one_after_every_commit(stage: Stage) -> None:
    stage.segments_hold(400)
    session = await stage.opened()
    stamps = set()
    for number in range(12):
        await committed(session, *said(number))
        (kept,) = await stage.sessions.list_sessions()
        stamps.add(kept.stamp)
    assert len(stamps) == 12


async def a_stamp_stays_when_a_file_was_read_or_nothing_happened(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED)
    await session.write_files({"transcript.md": b"x"})
    await session.release()
    before = list(await stage.sessions.list_sessions())
    await stage.entries()
    await stage.sessions.read_file(ID, "transcript.md")
    assert list(await stage.sessions.list_sessions()) == before


async def a_size_is_that_of_all_its_files(stage: Stage) -> None:
    await stage.told(OPENED)
    (before,) = await stage.sessions.list_sessions()
    session = await stage.opened()
    await session.write_files({"transcript.md": b"x" * 100_000})
    await session.release()
    (after,) = await stage.sessions.list_sessions()
    assert 100_000 - 1000 < after.size - before.size < 100_000 + 1000
    assert after.size == sum(map(len, (await stage.stored()).values()))


async def what_is_no_session_is_not_listed(stage: Stage) -> None:
    await stage.told(OPENED)
    await stage.write("transcript.md", b"nothing else is left of it", session_id="left-over")
    assert [kept.session_id for kept in await stage.sessions.list_sessions()] == [ID]

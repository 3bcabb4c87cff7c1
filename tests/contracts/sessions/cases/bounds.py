"""A journal has a size that it does not outgrow."""

import pytest

from hummingbird.core.errors import JournalUnwritable, SessionTaken
from hummingbird.core.journal import UserSaid, dump_entry
from hummingbird.core.protocols.sessions import Session
from tests.contracts.sessions.stage import OPENED, Stage, committed, said


async def a_full_journal_takes_no_more_and_loses_nothing(stage: Stage) -> None:
    stage.segments_hold(200)
    stage.journals_hold(1000)
    session = await stage.opened()
    await committed(session, OPENED)
    with pytest.raises(JournalUnwritable, match=r"1,000 bytes; start a new session") as caught:
        await _fill(session)
    assert not isinstance(caught.value, SessionTaken)
    await session.release()
    found = await stage.entries()
    assert found == [OPENED, *said(*range(len(found) - 1))]
    assert 1000 - len(dump_entry(said(9)[0])) < sum(len(dump_entry(entry)) for entry in found) <= 1000


async def _fill(session: Session) -> None:
    for number in range(100):
        await committed(session, *said(number))


async def what_still_fits_is_taken_after_what_did_not(stage: Stage) -> None:
    stage.journals_hold(1000)
    session = await stage.opened()
    await committed(session, OPENED)
    with pytest.raises(JournalUnwritable):
        session.journal.append(UserSaid(text="x" * 1000))
    await committed(session, *said(1))
    assert list(session.journal.entries()) == await stage.entries() == [OPENED, *said(1)]

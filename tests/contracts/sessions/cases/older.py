"""Sessions of older formats go on."""

import json

import pytest

from hummingbird.core.conversation import Conversation
from hummingbird.core.errors import SessionUnreadable
from hummingbird.core.journal import HistoryImported, SessionOpened
from hummingbird.core.messages import UserMessage
from tests.contracts.sessions.stage import ID, OPENED, Stage, committed, said

_CHAT = [{"role": "user", "content": "why?"}, {"role": "assistant", "content": "because"}]
_OLD = json.dumps(_CHAT).encode()
_FIRST = json.dumps({"format_version": 1, "system": "rules", "messages": _CHAT}).encode()


async def an_older_session_is_read_as_it_is(stage: Stage) -> None:
    for content in (_OLD, _FIRST):
        await stage.write("context.json", content)
        before = await stage.stored()
        opened, history = await stage.entries()
        assert isinstance(opened, SessionOpened)
        assert isinstance(history, HistoryImported)
        assert list(history.messages) == _CHAT
        assert await stage.stored() == before


async def an_older_session_is_brought_up_to_date_once(stage: Stage) -> None:
    await stage.write("context.json", _FIRST)
    session = await stage.opened()
    assert [type(entry) for entry in session.journal.entries()] == [SessionOpened, HistoryImported]
    assert all(entry.at > 0 for entry in session.journal.entries())
    await session.release()
    assert len(await stage.entries()) == 2
    await stage.told(*said(1))
    found = await stage.entries()
    assert found[2:] == said(1)
    said_first = Conversation.from_entries(found).view()[0]
    assert isinstance(said_first, UserMessage)
    assert said_first.text == "why?"


async def a_journal_is_what_counts_beside_an_older_file(stage: Stage) -> None:
    session = await stage.opened()
    await committed(session, OPENED, *said(1))
    await session.write_files({"context.json": _OLD})
    await session.release()
    assert await stage.entries() == [OPENED, *said(1)]
    assert list((await stage.opened()).journal.entries()) == [OPENED, *said(1)]


async def an_older_file_that_nobody_can_read_stays_as_it_is(stage: Stage) -> None:
    for content, words in ((b"{", "not JSON"), (b'{"format_version":99}', "newer"), (b'{"a":1}', "no format")):
        await stage.write("context.json", content)
        before = await stage.stored()
        for _ in range(2):  # the first one lets go of it
            with pytest.raises(SessionUnreadable, match=words):
                await stage.opened()
        with pytest.raises(SessionUnreadable, match=words):
            await stage.entries()
        assert await stage.stored() == before
        assert await stage.sessions.read_file(ID, "context.json") == content

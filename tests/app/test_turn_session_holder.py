"""A session that is held for one turn at a time, with what is written beside it."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hummingbird.app.session_holder import STORING_LOOK_S, TurnSessionHolder
from hummingbird.core.errors import JournalUnwritable, ObjectStoreUnusable, SessionTaken
from hummingbird.core.journal import SessionOpened, UserSaid
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.orders import OrderCause
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.object_store import BucketObjectStore
from tests.app.chats import home
from tests.app.conducting import Stage, order, shell
from tests.standins.vendors.script import Turn

OPENED = SessionOpened(session_id="session", system="Be brief.", format=JOURNAL_FORMAT)


class Kept:
    def __init__(self, folder: Path, sessions: SessionStore | None = None) -> None:
        self.told: list[str] = []
        self.sessions = sessions or FolderSessionStore(folder)
        self.keeping = TurnSessionHolder(self.sessions, self.told.append)
        self.keeping.switch_to("session", ())

    async def said(self, *texts: str, session: str = "session") -> None:
        async with self.keeping.hold_turn(session) as held:
            if not held.journal.entries():
                held.journal.append(OPENED)
            for text in texts:
                held.journal.append(UserSaid(text=text))
        await self.keeping.wait_until_stored()

    async def free(self, session: str = "session") -> bool:
        try:
            await (await self.sessions.open(session)).release()
        except SessionTaken:
            return False
        return True


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


async def chunks(gate: asyncio.Event, content: bytes = b"x") -> AsyncIterator[bytes]:
    await gate.wait()
    yield content


async def test_a_session_is_held_for_a_turn_and_free_after_it(kept: Kept) -> None:
    async with kept.keeping.hold_turn("session") as held:
        held.journal.append(OPENED)
        assert not await kept.free()
        assert kept.keeping.open_journal("session") is held.journal
        with pytest.raises(JournalUnwritable, match="not open"):
            kept.keeping.open_journal("another")
    await kept.keeping.wait_until_stored()
    assert await kept.free()
    with pytest.raises(JournalUnwritable, match="between two turns"):
        kept.keeping.open_journal("session")
    assert kept.keeping.entries() == (OPENED,)


async def test_a_turn_that_failed_lets_go_too(kept: Kept) -> None:
    async def fail() -> None:
        async with kept.keeping.hold_turn("session") as held:
            held.journal.append(OPENED)
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await fail()
    await kept.keeping.wait_until_stored()
    assert await kept.free()
    await kept.said("next")


@pytest.mark.parametrize("place", ["folder", "bucket"])
@pytest.mark.parametrize("needed", [False, True])
async def test_a_turn_that_is_interrupted_at_any_moment_leaves_the_session_free(
    tmp_path: Path, place: str, *, needed: bool
) -> None:
    """Ctrl-C just after Enter locked it for good. Also where it is not there, and a turn that needs it is refused."""
    bucket = BucketSessionStore(BucketObjectStore.in_memory(), "memory://", time.time)
    kept = Kept(tmp_path, bucket if place == "bucket" else None)
    for ticks in range(41):
        session = f"session-{ticks}" if needed else "session"
        turn = asyncio.ensure_future(_entered(kept, session, needed=needed))
        for _ in range(ticks):
            await asyncio.sleep(0)
        turn.cancel()
        await asyncio.wait({turn})
        assert turn.cancelled() or isinstance(turn.exception(), ObjectStoreUnusable)
        await kept.said(f"{ticks}", session=session)
        assert len(await kept.sessions.load_entries(session)) == (2 if needed else 2 + ticks)
        assert await kept.free(session)
    assert kept.told == []


async def _entered(kept: Kept, session: str, *, needed: bool) -> None:
    async with kept.keeping.hold_turn(session, needed=needed):
        await asyncio.Event().wait()


async def test_what_cannot_be_gone_on_with_is_let_go_of(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the opening of a session and the turn nothing keeps it either."""

    def fails(*_: object) -> None:
        raise SessionTaken("Another process is using it; wait for it.")

    with monkeypatch.context() as patch:
        patch.setattr(kept.keeping, "_append_unstored", fails)
        with pytest.raises(SessionTaken):
            await kept.said("lost")
    await kept.said("next")
    assert await kept.free()


async def test_a_session_that_somebody_has_is_refused_and_the_next_turn_is_not(kept: Kept) -> None:
    other = await kept.sessions.open("session")
    with pytest.raises(SessionTaken):
        await kept.said("mine")
    await other.release()
    await kept.said("mine")
    assert len(kept.keeping.entries()) == 2


async def test_who_comes_while_somebody_else_is_still_storing_the_session_waits_a_moment(kept: Kept) -> None:
    """A turn has ended for whoever spoke before the session is anybody's."""
    other = await kept.sessions.open("session")
    mine = asyncio.create_task(kept.said("mine"))
    await asyncio.sleep(STORING_LOOK_S)
    assert not mine.done()
    await other.release()
    await mine
    assert len(await kept.sessions.load_entries("session")) == 2


async def test_a_checkpoint_under_way_outlasts_the_turn_and_the_next_one_waits_for_it(kept: Kept) -> None:
    """The person has their prompt back; nobody else has the session before its files are whole."""
    archives, gate = kept.keeping.archives, asyncio.Event()
    assert archives is not None
    async with kept.keeping.hold_turn("session") as held:
        held.journal.append(OPENED)
        saving = asyncio.create_task(archives.put("session", chunks(gate)))
        await asyncio.sleep(0)
    assert not saving.done()
    assert not await kept.free()
    following = asyncio.create_task(kept.said("next"))
    await asyncio.sleep(0.05)
    assert not following.done()
    gate.set()
    await asyncio.gather(saving, following)
    await kept.keeping.wait_until_stored()
    assert await kept.free()
    assert await kept.sessions.load_archive("session") is not None


async def test_files_of_one_session_never_go_to_another(kept: Kept) -> None:
    """A checkpoint that comes late finds another session held."""
    await kept.said("mine")
    await kept.said("theirs", session="other")
    archives, gate = kept.keeping.archives, asyncio.Event()
    assert archives is not None
    gate.set()
    async with kept.keeping.hold_turn("other"):
        late = asyncio.create_task(archives.put("session", chunks(gate, b"of the first")))
        await asyncio.sleep(0.05)
        assert not late.done()  # nobody writes beside a session that is not held
    await late
    await kept.keeping.wait_until_stored()
    assert await kept.sessions.load_archive("other") is None
    found = await kept.sessions.load_archive("session")
    assert found is not None
    assert b"".join([chunk async for chunk in found.chunks]) == b"of the first"


async def test_what_is_shown_is_of_the_session_at_hand(kept: Kept) -> None:
    """A last checkpoint of the one before does not bring it back."""
    await kept.said("mine")
    kept.keeping.switch_to("other", (OPENED,))
    async with kept.keeping.hold_turn("session"):
        assert kept.keeping.entries() == (OPENED,)
    assert kept.keeping.entries() == (OPENED,)


async def test_what_somebody_else_went_on_with_is_not_overwritten(kept: Kept, tmp_path: Path) -> None:
    """What could not be stored is told to be missing; theirs stays."""
    await kept.said("one")
    journal = tmp_path / "session" / "journal.jsonl"
    before = journal.read_bytes()
    moved = tmp_path / "away"
    (tmp_path / "session").rename(moved)
    (tmp_path / "session").write_text("in the way")
    await kept.said("mine")
    (tmp_path / "session").unlink()
    moved.rename(tmp_path / "session")
    theirs = Kept(tmp_path)
    await theirs.said("theirs")
    async with kept.keeping.hold_turn("session") as held:
        said = [one.text for one in held.journal.entries() if isinstance(one, UserSaid)]
    await kept.keeping.wait_until_stored()
    assert said == ["one", "theirs"]
    assert any("could not be stored were dropped" in one for one in kept.told)
    assert journal.read_bytes().startswith(before)


@pytest.mark.thorough
async def test_a_session_of_the_service_goes_on_in_a_chat_and_back_again(tmp_path: Path) -> None:
    """With the files of its sandbox; each side sees what the other wrote."""
    turns = [
        *(shell("echo evidence > note"), Turn(text="The test is flaky.")),
        *(shell("cat note"), Turn(text="It says evidence.")),
        Turn(text="As you said in the chat."),
    ]
    with home(tmp_path, *turns) as here:
        service = Stage(here.state, here.lab)
        await service.conduct(order())
        settings = service.configuration()
        async with here.chat(configuration=settings, toolsets=("sandbox", "recall"), resume="session") as mine:
            outcome = await mine.say("What does the note say?")
            assert outcome.text == "It says evidence."
            assert mine.status().bill.attempts == 4
        assert "acme/widgets" in here.system(2)
        assert "evidence" in str(here.lab.requests[3].body["messages"][-1])
        await service.conduct(order(order_id="second", cause=OrderCause.REPLY), "And now?")
        heard = here.heard(4)
        assert {"What does the note say?", "It says evidence.", "And now?"} <= set(heard)
        assert heard.index("It says evidence.") < heard.index("And now?")
    said = [one.text for one in service.entries() if isinstance(one, UserSaid)]
    assert said[1:] == ["What does the note say?", "And now?"]

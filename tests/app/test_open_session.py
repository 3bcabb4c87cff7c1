"""The session of one run is kept where it can be, and is never in the way of the run."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from hummingbird.app.session_holder import OpenSession, open_session
from hummingbird.core.errors import (
    ArchiveUnusable,
    JournalDamaged,
    ObjectStoreUnusable,
    SessionTaken,
    SessionUnreadable,
)
from hummingbird.core.journal import JournalEntry, RunEnded, SessionOpened, UserSaid
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.core.protocols.tools import Tool
from hummingbird.core.sessions import LEASE_S, SEGMENT_BYTES, load_summary
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.storage.bucket_journal import parse_tail, segment_name
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.folder_sessions import FolderSession, FolderSessionStore
from hummingbird.storage.journals import FileJournal
from tests.app.conducting import ShakyObjects, Stage, order, staged
from tests.standins.function_tool import FunctionTool
from tests.standins.vendors.script import Call, Turn

OPENED = SessionOpened(session_id="session", system="Be brief.", format=JOURNAL_FORMAT)
FIRST, SECOND = UserSaid(text="one"), UserSaid(text="two")
TAIL = "sessions/session/journal/tail.jsonl"
BESIDE = ("context.json", "transcript.md", "metadata.json")


class Kept:
    """A bucket and a clock; as many hosts as there are calls."""

    def __init__(self) -> None:
        self.objects, self.now = ShakyObjects(), 1000.0
        self.told: list[str] = []

    @property
    def sessions(self) -> BucketSessionStore:
        return BucketSessionStore(self.objects, "memory://", lambda: self.now)

    async def held(self, *, needed: bool = False) -> OpenSession:
        return await open_session(self.sessions, "session", self.told.append, needed=needed)

    async def begun(self, *entries: JournalEntry) -> None:
        """A session that an earlier run left."""
        await said(session := await self.held(), *entries)
        await session.store_and_release()

    async def entries(self) -> list[JournalEntry]:
        return list(await self.sessions.load_entries("session"))


async def said(session: OpenSession, *entries: JournalEntry) -> None:
    for entry in entries:
        session.journal.append(entry)
        await session.journal.commit()


@pytest.fixture
def kept() -> Kept:
    return Kept()


async def test_what_can_be_made_of_a_journal_stands_beside_it_afterwards(kept: Kept) -> None:
    await kept.begun(OPENED, FIRST)
    assert (await kept.entries(), kept.told) == ([OPENED, FIRST], [])
    files = [await kept.sessions.read_file("session", name) or b"" for name in BESIDE]
    assert all(files)
    summary = load_summary(files[-1])
    assert summary is not None
    assert (summary.session_id, summary.entries) == ("session", 2)
    await (await kept.sessions.open("session")).release()  # nobody has it any more


async def test_what_stands_beside_a_journal_is_made_while_others_go_on(kept: Kept, tmp_path: Path) -> None:
    """Of a long session it takes longer than a key may take to appear. One loop is for all who type and run."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    class Counting:
        """The session of a folder; how often others had their turn before anything was to be kept."""

        def __init__(self, session: FolderSession) -> None:
            self.id, self.journal, self.archives = session.id, session.journal, session.archives
            self.release, self.catch_up = session.release, session.catch_up
            self.before = -1

        async def write_files(self, files: Mapping[str, bytes]) -> None:
            self.before = ticks

    found = Counting(await FolderSessionStore(tmp_path).open("session"))
    session = OpenSession(found, kept.told.append)
    await said(session, OPENED, FIRST)
    others = asyncio.create_task(tick())
    await session.store_and_release()
    others.cancel()
    assert found.before > 0


async def test_files_that_a_killed_process_did_not_write_are_made_of_the_journal_by_the_next(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "session" / "journal.jsonl")
    for entry in (OPENED, FIRST):
        journal.append(entry)
    journal.close()
    sessions, told = FolderSessionStore(tmp_path), list[str]()
    await (await open_session(sessions, "session", told.append, needed=True)).store_and_release()
    assert "one" in (await sessions.read_file("session", "transcript.md") or b"").decode()
    assert told == []


async def test_a_session_that_never_began_leaves_nothing(kept: Kept) -> None:
    await kept.begun()
    assert (await kept.objects.content(), kept.told) == ({}, [])


@pytest.mark.parametrize("needed", [True, False])
async def test_a_store_that_can_only_be_read_gives_what_came_before_and_stays_as_it_was(
    kept: Kept, needed: bool
) -> None:
    """A reply has all it needs, and nobody is promised that it is kept."""
    await kept.begun(OPENED, FIRST)
    before = await kept.objects.content()
    kept.objects.refused = ("",)
    session = await kept.held(needed=needed)
    assert list(session.journal.entries()) == [OPENED, FIRST]
    assert session.archives is None
    await said(session, SECOND)
    kept.objects.refused = ()
    await session.store_and_release()
    assert list(session.journal.entries()) == [OPENED, FIRST, SECOND]
    assert await kept.objects.content() == before
    assert len(kept.told) == 1
    assert "not saved" in kept.told[0]
    assert "make room" in kept.told[0]


async def test_a_store_that_cannot_be_read_is_no_reason_not_to_begin(kept: Kept) -> None:
    """An order says all that it needs."""
    await kept.begun(OPENED, FIRST)
    before = await kept.objects.content()
    kept.objects.down = True
    session = await kept.held()
    assert list(session.journal.entries()) == []
    await said(session, OPENED, SECOND)
    kept.objects.down = False
    await session.store_and_release()
    assert await kept.objects.content() == before
    assert len(kept.told) == 1
    assert "cannot be reached" in kept.told[0]


async def test_a_reply_does_without_a_store_that_cannot_be_read_not_at_all_s3(kept: Kept) -> None:
    await kept.begun(OPENED, FIRST)
    kept.objects.down = True
    with pytest.raises(ObjectStoreUnusable, match="cannot be reached"):
        await kept.held(needed=True)
    assert kept.told == []


async def test_a_folder_that_cannot_be_made_is_told_at_once(tmp_path: Path) -> None:
    """As on a disk that is read-only."""
    (tmp_path / "session").write_text("a file where a folder should be")
    told: list[str] = []
    session = await open_session(FolderSessionStore(tmp_path), "session", told.append, needed=False)
    await said(session, OPENED)
    await session.store_and_release()
    assert (list(session.journal.entries()), len(told)) == ([OPENED], 1)


@pytest.mark.parametrize("needed", [True, False])
async def test_a_session_that_somebody_has_is_refused(kept: Kept, tmp_path: Path, needed: bool) -> None:
    """Two must not go on with it."""
    for sessions in (kept.sessions, FolderSessionStore(tmp_path)):
        theirs = await sessions.open("session")
        with pytest.raises(SessionTaken):
            await open_session(sessions, "session", kept.told.append, needed=needed)
        await theirs.release()
    assert kept.told == []


@pytest.mark.parametrize(
    ("content", "error"), [(b"torn", JournalDamaged), (b"{}\n", JournalDamaged), (b'{"tail":9}\n', SessionUnreadable)]
)
async def test_a_session_that_nobody_can_read_is_not_begun_anew(
    kept: Kept, content: bytes, error: type[Exception]
) -> None:
    """It may be all that somebody has."""
    await kept.objects.put(TAIL, content)
    with pytest.raises(error):
        await kept.held()
    assert await kept.objects.content() == {TAIL: content}


async def test_a_store_that_is_away_for_a_while_misses_nothing_and_nobody_is_told(kept: Kept) -> None:
    session = await kept.held()
    await said(session, OPENED)
    kept.objects.down = True
    await said(session, FIRST)
    kept.objects.down = False
    await said(session, SECOND)
    assert await kept.entries() == [OPENED], "it is left in peace for a while"
    await session.store_and_release()
    assert (await kept.entries(), kept.told) == ([OPENED, FIRST, SECOND], [])
    assert all([await kept.sessions.read_file("session", name) for name in BESIDE])


async def test_a_store_that_stays_away_has_what_it_had_and_that_is_told(kept: Kept) -> None:
    """And once the lease has run out, others go on with it."""
    await kept.begun(OPENED, FIRST)
    session = await kept.held()
    before = await kept.objects.content()
    kept.objects.down = True
    await said(session, SECOND, SECOND)
    await session.store_and_release()
    assert list(session.journal.entries()) == [OPENED, FIRST, SECOND, SECOND]
    assert len(kept.told) == 1
    assert "cannot be reached" in kept.told[0]
    kept.objects.down = False
    assert await kept.objects.content() == before
    kept.now += LEASE_S + 1
    other = await kept.held()
    assert list(other.journal.entries()) == [OPENED, FIRST]
    await other.store_and_release()


async def test_a_segment_that_is_not_ours_is_told_and_not_in_the_way(kept: Kept) -> None:
    """Whatever somebody did to the bucket."""
    session = await kept.held()
    await said(session, OPENED, UserSaid(text="x" * SEGMENT_BYTES))
    head = parse_tail((await kept.objects.content())[TAIL]).head
    await kept.objects.put(f"sessions/session/{segment_name(head.first, head.life)}", b"not ours\n")
    await said(session, FIRST)
    await session.store_and_release()
    assert session.journal.entries()[-1] == FIRST
    assert len(kept.told) == 1
    assert "does not belong to this session" in kept.told[0]


@pytest.mark.parametrize("newer", [False, True])
async def test_whoever_lost_the_session_learns_it_and_writes_nothing_there(kept: Kept, newer: bool) -> None:
    """A process that hung leaves to the other one what is the other one's, of whichever version that is."""
    session = await kept.held()
    await said(session, OPENED)
    kept.now += LEASE_S + 1
    theirs = await kept.sessions.open("session")
    theirs.journal.append(SECOND)
    await theirs.journal.commit()
    await theirs.release()
    if newer:
        await kept.objects.put(TAIL, b'{"tail":9,"what":"is new"}\n')
    before = await kept.objects.content()
    session.journal.append(FIRST)
    with pytest.raises(SessionTaken):
        await session.journal.commit()
    with pytest.raises(SessionTaken):
        session.journal.append(FIRST)
    await session.store_and_release()
    assert await kept.objects.content() == before
    assert [one.partition(".")[0] for one in kept.told] == ["The last messages are not part of this session any more"]


async def test_files_do_not_go_beside_a_journal_that_does_not_speak_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that takes no line any more may well take an archive; and nobody else gets the session meanwhile."""
    sessions, told = FolderSessionStore(tmp_path), list[str]()
    session = await open_session(sessions, "session", told.append, needed=False)
    await said(session, OPENED)
    archives = session.archives
    assert archives is not None
    await archives.put("session", _pieces(b"before"))
    with monkeypatch.context() as full:
        full.setattr("hummingbird.storage.journals.JOURNAL_BYTES", 1)
        full.setattr(session.journal._journal, "_most", 1)
        session.journal.append(FIRST)
    with pytest.raises(ArchiveUnusable, match="no longer stored"):
        await archives.put("session", _pieces(b"after"))
    with pytest.raises(SessionTaken):
        await sessions.open("session")
    await session.store_and_release()
    assert (tmp_path / "session" / "sandbox.tar.gz").read_bytes() == b"before"
    assert list(await sessions.load_entries("session")) == [OPENED]
    assert "has reached its limit" in told[0]


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_s3_a_reply_whose_session_went_away_in_the_very_moment_does_not_begin_a_new_one(kept: Kept) -> None:
    with pytest.raises(ObjectStoreUnusable, match="session session no longer exists"):
        await kept.held(needed=True)
    assert await kept.objects.content() == {}


def tool(name: str, function: object) -> Tool:
    return FunctionTool(ToolSpec(name, "Does it.", {"type": "object", "properties": {}}), function)  # type: ignore[arg-type] # any


def calling(*names: str) -> Sequence[Turn]:
    return [Turn(calls=(Call(name, {}),)) for name in names]


async def test_a_run_whose_store_is_away_in_the_middle_says_nothing_of_it_in_the_end(tmp_path: Path) -> None:
    objects = ShakyObjects()

    async def switch() -> str:
        objects.down = not objects.down
        return "done"

    with staged(tmp_path, *calling("switch", "switch"), Turn(text="report")) as stage:
        sessions = stage.in_bucket(objects)
        done = await stage.conduct(order(), sessions=sessions, tools=[tool("switch", switch)])
    assert (done.outcome.text, done.trouble) == ("report", ())
    assert isinstance((await sessions.load_entries("session"))[-1], RunEnded)
    assert (await sessions.read_file("session", "transcript.md") or b"").endswith(done.transcript.encode())


async def test_a_run_whose_store_stays_away_is_told_with_its_answer(tmp_path: Path) -> None:
    objects = ShakyObjects()

    async def switch() -> str:
        objects.down = True
        return "done"

    with staged(tmp_path, *calling("switch"), Turn(text="report")) as stage:
        sessions = stage.in_bucket(objects)
        done = await stage.conduct(order(), sessions=sessions, tools=[tool("switch", switch)])
    assert done.outcome.text == "report"
    assert len(done.trouble) == 1
    assert "cannot be reached" in done.trouble[0]
    objects.down = False
    assert not [one for one in await sessions.load_entries("session") if isinstance(one, RunEnded)]
    assert set(await objects.content()) == {TAIL}


async def test_a_run_that_lost_its_session_stops_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    """No model is asked any more; the other one's run is the one that is told."""
    objects = ShakyObjects()
    with staged(tmp_path, *calling("steal")) as stage:
        others = BucketSessionStore(objects, "memory://", lambda: stage.clock.now() + LEASE_S + 1)
        steal = tool("steal", lambda: stolen(others))
        with pytest.raises(SessionTaken):
            await stage.conduct(order(), sessions=stage.in_bucket(objects), tools=[steal])
        assert len(stage.lab.requests) == 1
        entries = await others.load_entries("session")
    assert entries[-1] == msgspec.structs.replace(SECOND, at=entries[-1].at)
    assert not [one for one in entries if isinstance(one, RunEnded)]
    assert set(await objects.content()) == {TAIL}


async def stolen(sessions: SessionStore) -> str:
    session = await sessions.open("session")
    session.journal.append(SECOND)
    await session.journal.commit()
    await session.release()
    return "done"


async def test_cancelling_a_run_stores_what_there_is_and_lets_go_of_it(tmp_path: Path) -> None:
    objects, reached = ShakyObjects(), asyncio.Event()

    async def wait() -> str:
        reached.set()
        await asyncio.sleep(60)
        return "never"

    with staged(tmp_path, *calling("wait")) as stage:
        running = asyncio.create_task(cancellable(stage, objects, tool("wait", wait)))
        async with asyncio.timeout(60):
            await reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await (await stage.in_bucket(objects).open("session")).release()
    assert {"sessions/session/context.json", "sessions/session/transcript.md"} < set(await objects.content())


async def cancellable(stage: Stage, objects: ShakyObjects, wait: Tool) -> None:
    await stage.conduct(order(), sessions=stage.in_bucket(objects), tools=[wait])

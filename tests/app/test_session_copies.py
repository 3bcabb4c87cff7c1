"""Sessions that go from one store to another and in folders that people name: nothing that was kept is lost to a copy
."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hummingbird.app.session_catalog import (
    SavedSession,
    SessionCatalog,
    copy_session,
    find_saved_session,
    prepare_folder,
    temporary_sessions,
)
from hummingbird.core.errors import SessionTaken, UsageError
from hummingbird.core.journal import HistoryImported, JournalEntry, MessageSource, SessionOpened, UserSaid, dump_entry
from hummingbird.core.limits import JOURNAL_FORMAT
from hummingbird.core.protocols.sessions import SessionStore
from hummingbird.core.sessions import SessionSubject
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.folder_sessions import FolderSessionStore
from hummingbird.storage.object_store import BucketObjectStore
from hummingbird.storage.session_index import open_session_index
from tests.app.conducting import ShakyObjects

OPENED = SessionOpened(session_id="abc", system="Be brief.", format=JOURNAL_FORMAT)
ORDERED = UserSaid(text='{"workflow": "w", "project": "a/b", "mr_iid": 7, "sha": 5}', source=MessageSource.ORDER)
MORE = UserSaid(text="And?")
OLD_ORDER = '{"workflow": "w", "project": "a/b", "iid": 7}'
LEGACY = json.dumps([{"role": "user", "content": OLD_ORDER}, {"role": "assistant", "content": "The disk."}]).encode()
NO_ARCHIVE = b"\x1f\x8b this would burst if anybody opened it \xff"  # so nobody does


def stored(kind: str, folder: Path) -> SessionStore:
    return FolderSessionStore(folder) if kind == "folder" else in_bucket(ShakyObjects())


def in_bucket(objects: ShakyObjects | BucketObjectStore) -> BucketSessionStore:
    return BucketSessionStore(objects, "memory://", lambda: 1000.0)


async def kept(
    sessions: SessionStore, *entries: JournalEntry, archive: bytes = b"", transcript: bytes = b""
) -> SessionStore:
    session = await sessions.open("abc")
    for entry in entries:
        session.journal.append(entry)
    await session.journal.commit()
    if archive:
        await session.archives.put("abc", pieces(archive))
    if transcript:
        await session.write_files({"transcript.md": transcript})
    await session.release()
    return sessions


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for first in range(0, len(content), 7):
        yield content[first : first + 7]


async def archive_of(sessions: SessionStore) -> bytes | None:
    archive = await sessions.load_archive("abc")
    return None if archive is None else b"".join([chunk async for chunk in archive.chunks])


def in_folder(folder: Path, *entries: JournalEntry) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "journal.jsonl").write_bytes(b"".join(map(dump_entry, entries)))
    return folder


def nowhere(tmp_path: Path) -> FolderSessionStore:
    return FolderSessionStore(tmp_path / "no sessions")


@pytest.fixture(params=[("folder", "bucket"), ("bucket", "folder"), ("folder", "folder"), ("bucket", "bucket")])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[SessionStore, SessionStore]:
    """Where a session comes from, and where it goes."""
    one, other = request.param
    return stored(one, tmp_path / "source"), stored(other, tmp_path / "target")


async def test_a_session_in_a_folder_says_what_it_is_about(tmp_path: Path) -> None:
    """What is of another kind than it should be is not known."""
    folder = in_folder(tmp_path / "one", OPENED, ORDERED, MORE)
    about = SessionSubject(workflow="w", project="a/b", mr_iid=7)
    assert await find_saved_session(str(folder), nowhere(tmp_path)) == SavedSession(
        f"the session in {folder}", "abc", about, folder
    )


@pytest.mark.parametrize("kind", ["folder", "bucket"])
async def test_a_session_of_the_store_is_found_by_its_id(tmp_path: Path, kind: str) -> None:
    """S3"""
    store = await kept(stored(kind, tmp_path / "store"), OPENED, ORDERED)
    about = SessionSubject(workflow="w", project="a/b", mr_iid=7)
    assert await find_saved_session("abc", store) == SavedSession(f"session abc of {store.address}", "abc", about, None)


@pytest.mark.parametrize("named", ["nobody", "not/an/id", "../abc"])
async def test_what_is_neither_folder_nor_session_is_one_sentence_that_names_both(tmp_path: Path, named: str) -> None:
    store = await kept(FolderSessionStore(tmp_path / "store"), OPENED)
    with pytest.raises(UsageError) as refused:
        await find_saved_session(named, store)
    assert str(refused.value).startswith(f"{named} is not a folder that --save-session has filled, and no id: ")


async def test_the_beginning_of_an_id_is_enough_where_it_is_clear_whose_it_is(tmp_path: Path) -> None:
    """S3"""
    store = await kept(FolderSessionStore(tmp_path / "store"), OPENED, ORDERED)
    assert (await find_saved_session("ab", store)).session_id == "abc"
    await (await store.open("abd")).release()  # one that never began is none
    other = await store.open("abe")
    other.journal.append(OPENED)
    await other.release()
    with pytest.raises(UsageError, match="2 sessions begin with ab"):
        await find_saved_session("ab", store)


async def test_a_name_that_no_disk_takes_is_one_sentence_too(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be used"):
        await find_saved_session("x" * 5000, nowhere(tmp_path))


async def test_a_journal_without_a_beginning_is_no_session(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no session in"):
        await find_saved_session(str(in_folder(tmp_path / "one")), nowhere(tmp_path))


async def test_looking_at_a_session_that_somebody_writes_changes_nothing(tmp_path: Path) -> None:
    """A last line that is not whole yet is that process's."""
    folder = in_folder(tmp_path / "one", OPENED, ORDERED)
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"kind":"user_s')
    before = (folder / "journal.jsonl").read_bytes()
    await find_saved_session(str(folder), nowhere(tmp_path))
    assert (folder / "journal.jsonl").read_bytes() == before


@pytest.mark.parametrize("name", ["journal.jsonl", "transcript.md", "sandbox.tar.gz", "context.json", "metadata.json"])
def test_a_folder_with_any_file_of_a_session_is_not_taken_for_a_new_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UsageError, match=name):
        prepare_folder(tmp_path)


def test_other_files_are_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "event.json").touch()
    assert prepare_folder(tmp_path) == tmp_path


async def test_a_folder_with_the_same_session_is_ready_for_it_and_one_with_another_is_not(tmp_path: Path) -> None:
    going_on = await find_saved_session(str(in_folder(tmp_path / "one", OPENED, ORDERED)), nowhere(tmp_path))
    assert prepare_folder(in_folder(tmp_path / "two", OPENED), going_on) == tmp_path / "two"
    other = SessionOpened(session_id="other", system="Be brief.", format=JOURNAL_FORMAT)
    with pytest.raises(UsageError, match="another session"):
        prepare_folder(in_folder(tmp_path / "three", other), going_on)


@pytest.mark.parametrize(("ours", "theirs", "then"), [(2, 0, 2), (2, 1, 2), (1, 2, 2), (2, 2, 2), (0, 2, 2)])
async def test_the_longer_one_stays(both: tuple[SessionStore, SessionStore], ours: int, theirs: int, then: int) -> None:
    """And with it what belongs to it."""
    source, target = both
    entries = (OPENED, ORDERED)
    if ours:
        await kept(source, *entries[:ours], archive=b"ours", transcript=b"ours")
    if theirs:
        await kept(target, *entries[:theirs], archive=b"theirs", transcript=b"theirs")
    await copy_session(source, target, "abc")
    assert list(await target.load_entries("abc")) == list(entries[:then])
    whose = b"ours" if ours > theirs else b"theirs"
    assert await target.read_file("abc", "transcript.md") == whose
    assert await archive_of(target) == whose
    assert list(await source.load_entries("abc")) == list(entries[:ours])


async def test_two_that_parted_are_both_left_alone(both: tuple[SessionStore, SessionStore]) -> None:
    source, target = both
    await kept(source, OPENED, ORDERED, archive=b"ours")
    await kept(target, OPENED, MORE, archive=b"theirs")
    with pytest.raises(UsageError, match="continued differently"):
        await copy_session(source, target, "abc")
    assert list(await source.load_entries("abc")) == [OPENED, ORDERED]
    assert list(await target.load_entries("abc")) == [OPENED, MORE]
    assert await archive_of(target) == b"theirs"
    await (await target.open("abc")).release()  # nobody has it


async def test_an_archive_travels_as_bytes_that_nobody_opens(both: tuple[SessionStore, SessionStore]) -> None:
    """Archives are never unpacked by the host."""
    source, target = both
    await kept(source, OPENED, archive=NO_ARCHIVE)
    await copy_session(source, target, "abc")
    assert await archive_of(target) == NO_ARCHIVE


async def test_a_session_that_is_not_there_leaves_nothing_behind(both: tuple[SessionStore, SessionStore]) -> None:
    source, target = both
    await copy_session(source, target, "abc")
    assert await target.list_sessions() == []


async def test_a_session_that_somebody_has_there_is_left_alone(both: tuple[SessionStore, SessionStore]) -> None:
    source, target = both
    await kept(source, OPENED, ORDERED)
    await kept(target, OPENED)
    held = await target.open("abc")
    with pytest.raises(SessionTaken):
        await copy_session(source, target, "abc")
    await held.release()
    assert list(await target.load_entries("abc")) == [OPENED]


async def test_the_archive_is_there_before_the_journal_that_tells_of_it(tmp_path: Path) -> None:
    """Whoever dies in between leaves an earlier session, not a journal with the sandbox of an earlier one."""
    objects = ShakyObjects()
    source = await kept(FolderSessionStore(tmp_path), OPENED, ORDERED, archive=b"ours")
    target = await kept(in_bucket(objects), OPENED, archive=b"theirs")
    objects.refused = ("sandbox.tar.gz",)
    with pytest.raises(Exception, match="make room"):
        await copy_session(source, target, "abc")
    assert list(await target.load_entries("abc")) == [OPENED]


async def test_files_of_a_session_are_their_owners_alone(tmp_path: Path) -> None:
    source = await kept(in_bucket(ShakyObjects()), OPENED, archive=b"ours", transcript=b"ours")
    await copy_session(source, FolderSessionStore(tmp_path), "abc")
    found = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "abc").iterdir()}
    assert found == dict.fromkeys(["journal.jsonl", "sandbox.tar.gz", "transcript.md"], 0o600)


async def test_a_folder_of_an_older_format_is_a_session(tmp_path: Path) -> None:
    """With nothing but a context.json, as an earlier program left it; looking at it changes nothing."""
    (tmp_path / "context.json").write_bytes(LEGACY)
    found = await find_saved_session(str(tmp_path), nowhere(tmp_path))
    assert found.about == SessionSubject(workflow="w", project="a/b", mr_iid=7)
    assert not (tmp_path / "journal.jsonl").exists()
    assert prepare_folder(tmp_path, found) == tmp_path
    with temporary_sessions(tmp_path, found.session_id) as sessions:
        session = await sessions.open(found.session_id)
        opened, history = session.journal.entries()
        await session.release()
    assert isinstance(opened, SessionOpened)
    assert isinstance(history, HistoryImported)
    assert [one["content"] for one in history.messages] == [OLD_ORDER, "The disk."]


@pytest.mark.parametrize("kind", ["folder", "bucket"])
async def test_a_session_of_an_older_format_goes_to_a_store_and_back(tmp_path: Path, kind: str) -> None:
    """That it was brought up to date at different times does not make two of it."""
    (tmp_path / "context.json").write_bytes(LEGACY)
    store, found = stored(kind, tmp_path / "store"), await find_saved_session(str(tmp_path), nowhere(tmp_path))
    for _ in range(2):
        with temporary_sessions(tmp_path, found.session_id) as sessions:
            await copy_session(sessions, store, found.session_id)
            session = await store.open(found.session_id)
            session.journal.append(MORE)
            await session.journal.commit()
            await session.release()
            await copy_session(store, sessions, found.session_id)
    again = await find_saved_session(str(tmp_path), nowhere(tmp_path))
    assert (again.session_id, again.about) == (found.session_id, found.about)
    with temporary_sessions(tmp_path, found.session_id) as sessions:
        assert list(await sessions.load_entries(found.session_id))[2:] == [MORE, MORE]


async def test_what_is_written_to_a_session_is_in_its_folder_at_once(tmp_path: Path) -> None:
    """Also a killed process leaves it behind; the rest is gone."""
    with temporary_sessions(tmp_path, "abc") as sessions:
        session = await sessions.open("abc")
        session.journal.append(OPENED)
        assert (tmp_path / "journal.jsonl").read_bytes() == dump_entry(OPENED)
        await session.release()
    assert (tmp_path / "journal.jsonl").read_bytes() == dump_entry(OPENED)
    assert not sessions.folder.exists()


async def test_without_a_folder_nothing_is_left(tmp_path: Path) -> None:
    with temporary_sessions(None, "abc") as sessions:
        await kept(sessions, OPENED)
        assert list(await sessions.load_entries("abc")) == [OPENED]
    assert not sessions.folder.exists()


async def test_a_damaged_session_is_told_once_and_again_when_it_has_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = tmp_path / "sessions" / "broken" / "journal.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_bytes(b"no entry\n")
    catalog = SessionCatalog(
        FolderSessionStore(tmp_path / "sessions"), open_session_index(tmp_path / "index.db", str, print)
    )
    for _ in range(2):
        await catalog.refresh()
    assert caplog.text.count("Session broken is not in the index") == 1
    journal.write_bytes(b"no entry either\n")
    await catalog.refresh()
    assert caplog.text.count("Session broken is not in the index") == 2

"""The contract on a directory, and what can happen to one alone."""

import asyncio
import gc
import shutil
import time
from pathlib import Path

import msgspec
import pytest

from hummingbird.core.errors import ObjectStoreUnusable, SessionTaken
from hummingbird.core.journal import dump_entry
from hummingbird.storage import journals
from hummingbird.storage.folder_sessions import FolderSessionStore
from tests.contracts.sessions.backends.folder import FolderSite
from tests.contracts.sessions.stage import ID, OPENED, Case, Stage, said
from tests.contracts.sessions.suite import ACROSS_PROCESSES, EVERYWHERE

pytestmark = pytest.mark.every_case


@pytest.mark.parametrize("case", [*EVERYWHERE, *ACROSS_PROCESSES], ids=lambda case: case.__name__)
async def test_a_directory_keeps_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    await Stage(FolderSite(tmp_path / "sessions"), monkeypatch).play(case)


async def test_a_removal_that_died_in_the_middle_leaves_no_session_and_is_done_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(FolderSite(tmp_path), monkeypatch)
    await stage.told(OPENED)
    await stage.told(OPENED, session_id="another")
    with monkeypatch.context() as patch:
        patch.setattr("hummingbird.storage.folder_sessions.shutil.rmtree", lambda *_, **__: None)
        assert await stage.sessions.remove(ID)
    assert len(_names(tmp_path)) == 2
    assert await stage.entries() == []
    assert [kept.session_id for kept in await stage.sessions.list_sessions()] == ["another"]
    await stage.told(*said(1))
    assert await stage.entries() == list(said(1))
    assert not await stage.sessions.remove("nobody")
    assert _names(tmp_path) == [ID, "another"]


async def test_a_file_that_cannot_be_looked_at_hides_no_session_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So does one that is renamed between its name and its size, which a turn does after each answer."""
    stage = Stage(FolderSite(tmp_path), monkeypatch)
    await stage.told(OPENED)
    for number in range(20):  # wherever the journal stands among them
        loop = tmp_path / ID / f"{number}.tmp"
        loop.symlink_to(loop)
    assert [kept.session_id for kept in await stage.sessions.list_sessions()] == [ID]


async def test_a_session_that_was_killed_while_brought_up_to_date_keeps_its_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(FolderSite(tmp_path), monkeypatch)
    await stage.write("context.json", b'[{"role":"user","content":"why?"},{"role":"assistant","content":"so"}]')
    whole = await stage.entries()
    await stage.write("journal.jsonl", dump_entry(whole[0]) + dump_entry(whole[1])[:20])
    assert await stage.entries() == whole
    session = await stage.opened()
    assert [msgspec.structs.replace(entry, at=0.0) for entry in session.journal.entries()] == whole
    await session.release()
    assert len(await stage.entries()) == 2


async def test_a_session_whose_older_file_cannot_be_reached_is_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(FolderSite(tmp_path), monkeypatch)

    async def fails(*_: object) -> bytes:
        raise ObjectStoreUnusable("The disk failed.")

    with monkeypatch.context() as patch:
        patch.setattr(FolderSessionStore, "_read_old_format", fails)
        with pytest.raises(ObjectStoreUnusable):
            await stage.opened()
    await stage.told(OPENED)
    assert await stage.entries() == [OPENED]


async def test_a_folder_that_goes_away_while_it_is_opened_is_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a store that cannot be written: a run would go on without a record then."""
    stage = Stage(FolderSite(tmp_path), monkeypatch)
    made = journals._make_directories

    def taken_away(path: Path) -> list[Path]:
        directories = made(path)
        path.parent.rmdir()
        return directories

    with monkeypatch.context() as patch:
        patch.setattr(journals, "_make_directories", taken_away)
        with pytest.raises(SessionTaken):
            await stage.opened()
    await stage.told(OPENED)


async def test_a_journal_that_was_removed_before_it_could_be_locked_is_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise everything would be written into a file that has no name any more."""
    stage = Stage(FolderSite(tmp_path), monkeypatch)
    await stage.told(OPENED)
    lock = journals._lock

    def removed_first(path: Path, fd: int) -> None:
        shutil.rmtree(path.parent)
        lock(path, fd)

    with monkeypatch.context() as patch:
        patch.setattr(journals, "_lock", removed_first)
        with pytest.raises(SessionTaken):
            await stage.opened()
    await stage.told(*said(1))
    assert await stage.entries() == list(said(1))


@pytest.mark.timeout(60)
async def test_a_commit_that_meets_a_flush_which_has_just_ended_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor keep everything else of this process waiting."""
    session = await Stage(FolderSite(tmp_path), monkeypatch).opened()
    session.journal.append(OPENED)
    first = asyncio.ensure_future(session.journal.commit())
    await asyncio.sleep(0)
    time.sleep(0.2)  # noqa: ASYNC251 - the disk is done meanwhile, and nobody has heard of it
    await asyncio.sleep(0)
    session.journal.append(said(1)[0])
    await session.journal.commit()
    await first
    await session.release()


async def test_a_slow_disk_gives_back_what_nobody_waits_for_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread goes on after Ctrl-C and gets the lock; whoever opens the session next has it all the same."""
    lock, sessions = journals._lock, FolderSessionStore(tmp_path)

    def slow(path: Path, fd: int) -> None:
        time.sleep(0.01)
        lock(path, fd)
        time.sleep(0.01)

    monkeypatch.setattr(journals, "_lock", slow)
    took_s: list[float] = []
    for ticks in range(41):
        opening = asyncio.ensure_future(sessions.open(ID))
        for _ in range(ticks):
            await asyncio.sleep(0)
        await asyncio.sleep(0.015 * (ticks % 2))  # before it has the lock, and with it
        assert opening.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await opening
        took_s.append(time.monotonic() - began)
        await (await sessions.open(ID)).release()
    assert max(took_s) < 30.0
    assert _names(tmp_path) == []


async def test_an_opening_that_is_given_up_and_fails_says_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sessions, other = FolderSessionStore(tmp_path), FolderSessionStore(tmp_path)
    theirs = await other.open(ID)
    opening = asyncio.ensure_future(sessions.open(ID))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    with pytest.raises(SessionTaken):
        await sessions.open(ID)
    await theirs.release()
    await (await sessions.open(ID)).release()
    gc.collect()
    assert not caplog.records


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())

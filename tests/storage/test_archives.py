"""A session's archive is one file that appears whole, is bounded, and is never looked into."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from hummingbird.core.errors import ArchiveTooLarge, ArchiveUnusable, UsageError
from hummingbird.storage.folder_sessions import FolderArchiveStore

BOMB = b"\x1f\x8b not really gzip, and nobody finds out"


async def chunks(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def read(archives: FolderArchiveStore, session: str = "s1") -> bytes | None:
    found = await archives.get(session)
    return None if found is None else b"".join([chunk async for chunk in found.chunks])


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


async def test_what_is_put_is_what_is_got_for_each_session_its_own(tmp_path: Path) -> None:
    """Bytes go in and come out as they are."""
    archives = FolderArchiveStore(tmp_path)
    large = os.urandom(1_000_000)
    assert await archives.put("s1", chunks([BOMB, b"", large])) == len(BOMB) + len(large)
    await archives.put("s2", chunks([b"two"]))
    assert await read(archives) == BOMB + large
    assert await read(archives, "s2") == b"two"
    assert await read(archives, "s3") is None
    assert files(tmp_path) == ["s1/sandbox.tar.gz", "s2/sandbox.tar.gz"]


async def test_an_archive_says_when_it_was_saved(tmp_path: Path) -> None:
    archives = FolderArchiveStore(tmp_path)
    await archives.put("s1", chunks([b"x"]))
    os.utime(tmp_path / "s1" / "sandbox.tar.gz", (1_700_000_000, 1_700_000_000))
    found = await archives.get("s1")
    assert found is not None
    assert found.saved_at == 1_700_000_000


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    await FolderArchiveStore(tmp_path).put("s1", chunks([b"x"]))
    assert mode(tmp_path / "s1" / "sandbox.tar.gz") == 0o600


async def test_one_over_the_cap_is_refused_while_it_streams_and_the_earlier_one_stays(tmp_path: Path) -> None:
    """Not more than a chunk over the cap is ever written."""
    archives = FolderArchiveStore(tmp_path, most_bytes=100)
    await archives.put("s1", chunks([b"a" * 100]))
    taken = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            taken.append(1)
            yield b"b" * 40

    with pytest.raises(ArchiveTooLarge, match="more than 100 bytes"):
        await archives.put("s1", endless())
    assert len(taken) == 3
    assert await read(archives) == b"a" * 100
    assert files(tmp_path) == ["s1/sandbox.tar.gz"]


async def test_one_that_breaks_off_or_is_cancelled_leaves_the_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    archives = FolderArchiveStore(tmp_path)
    await archives.put("s1", chunks([b"first"]))
    waiting = asyncio.Event()

    async def breaking() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionResetError("gone")  # an OSError that is not the disk's

    async def stuck() -> AsyncIterator[bytes]:
        yield b"half"
        waiting.set()
        await asyncio.Event().wait()

    with pytest.raises(ConnectionResetError):
        await archives.put("s1", breaking())
    putting = asyncio.create_task(archives.put("s1", stuck()))
    await waiting.wait()
    putting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await putting
    assert await read(archives) == b"first"
    assert files(tmp_path) == ["s1/sandbox.tar.gz"]


def left_behind(folder: Path) -> None:
    (folder / "s1").mkdir()
    (folder / "s1" / ".sandbox.tar.gz.0123.part").write_bytes(b"half")
    (folder / "s1" / "journal.jsonl").write_bytes(b"{}")


async def test_what_a_dead_process_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    """And nothing else of the session is touched."""
    left_behind(tmp_path)
    archives = FolderArchiveStore(tmp_path)
    assert await read(archives) is None
    await archives.put("s1", chunks([b"new"]))
    assert files(tmp_path) == ["s1/journal.jsonl", "s1/sandbox.tar.gz"]


@pytest.mark.parametrize("session", ["", "../s1", "a/b", "a\0b", ".", "x" * 200, "s 1"])
async def test_a_session_id_is_never_a_path(tmp_path: Path, session: str) -> None:
    archives = FolderArchiveStore(tmp_path / "inner")
    with pytest.raises(UsageError):
        await archives.put(session, chunks([b"x"]))
    with pytest.raises(UsageError):
        await archives.get(session)
    assert files(tmp_path) == []


def blocked(folder: Path) -> Path:
    (folder / "file").write_bytes(b"in the way")
    (folder / "s1" / "sandbox.tar.gz").mkdir(parents=True)
    return folder


async def test_a_disk_that_says_no_is_an_error_with_a_name(tmp_path: Path) -> None:
    folder = blocked(tmp_path)
    with pytest.raises(ArchiveUnusable, match=r"cannot be used: .*\. Free space or fix it\."):
        await FolderArchiveStore(folder / "file").put("s1", chunks([b"x"]))
    with pytest.raises(ArchiveUnusable):
        await FolderArchiveStore(folder / "file").get("s1")
    with pytest.raises(ArchiveUnusable):
        await read(FolderArchiveStore(folder))
    with pytest.raises(ArchiveUnusable):
        await FolderArchiveStore(folder).put("s1", chunks([b"x"]))


async def test_a_full_disk_is_told_and_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archives = FolderArchiveStore(tmp_path)
    await archives.put("s1", chunks([b"first"]))

    def full(_: int, __: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("hummingbird.storage.folder_sessions.os.write", full)
        with pytest.raises(ArchiveUnusable, match="No space left on device"):
            await archives.put("s1", chunks([b"second"]))
    assert await read(archives) == b"first"
    assert files(tmp_path) == ["s1/sandbox.tar.gz"]

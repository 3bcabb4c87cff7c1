"""The files of a session between a machine and the store that machines share (S1, S2)."""

from pathlib import Path

import pytest

from hummingbird.assembly.session_files import SessionFiles
from hummingbird.domain.errors import ObjectsUnusable
from tests.assembly.conducting import KeptObjects

JOURNAL = "sessions/s/journal.jsonl"


def put(folder: Path, journal: str, archive: str = "") -> None:
    (folder / "s").mkdir(parents=True, exist_ok=True)
    (folder / "s" / "journal.jsonl").write_text(journal)
    if archive:
        (folder / "s" / "sandbox.tar.gz").write_text(archive)


def journal(folder: Path) -> str:
    file = folder / "s" / "journal.jsonl"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize(
    ("here", "there", "afterwards"),
    [
        ("", "", ""),
        ("", "a\nb\n", "a\nb\n"),
        ("a\n", "a\nb\n", "a\nb\n"),
        ("a\nb\n", "a\n", "a\nb\n"),
        ("a\n", "", "a\n"),
        ("a\nmine\n", "a\ntheirs\n", "a\ntheirs\n"),
    ],
)
async def test_the_newer_journal_is_gone_on_with(tmp_path: Path, here: str, there: str, afterwards: str) -> None:
    """Where two hosts have parted, the one that was stored is the one that was told."""
    objects = KeptObjects()
    if here:
        put(tmp_path, here)
    if there:
        objects.kept[JOURNAL] = there.encode()
    await SessionFiles(tmp_path, objects).fetch("s")
    assert journal(tmp_path) == afterwards


async def test_what_one_stores_another_fetches(tmp_path: Path) -> None:
    objects = KeptObjects()
    put(tmp_path / "one", "a\n", "packed")
    one = SessionFiles(tmp_path / "one", objects)
    await one.tell("s", "# Told")
    await one.store("s")
    other = SessionFiles(tmp_path / "other", objects)
    await other.fetch("s")
    folder = tmp_path / "other" / "s"
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "journal.jsonl": "a\n",
        "sandbox.tar.gz": "packed",
        "transcript.md": "# Told",
    }
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


async def test_what_another_host_has_stored_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    """S2: a process that hung, whose order another one has carried out, leaves the store as it is."""
    objects = KeptObjects()
    objects.kept |= {JOURNAL: b"a\ntheirs\n", "sessions/s/transcript.md": b"theirs"}
    put(tmp_path, "a\nmine\n", "mine")
    before = dict(objects.kept)
    with pytest.raises(ObjectsUnusable, match="gone on with this session"):
        await SessionFiles(tmp_path, objects).store("s")
    assert objects.kept == before


async def test_a_journal_is_stored_after_what_belongs_to_it(tmp_path: Path) -> None:
    """S1: whoever dies in between leaves an earlier session, not a journal with the sandbox of an earlier one."""
    objects = KeptObjects()
    put(tmp_path, "a\n", "packed")
    await SessionFiles(tmp_path, objects).store("s")
    assert list(objects.kept) == ["sessions/s/sandbox.tar.gz", JOURNAL]


async def test_nothing_is_stored_of_a_session_that_is_not_there(tmp_path: Path) -> None:
    objects = KeptObjects()
    await SessionFiles(tmp_path, objects).store("s")
    assert objects.kept == {}


async def test_without_a_store_everything_stays_here(tmp_path: Path) -> None:
    files = SessionFiles(tmp_path)
    put(tmp_path, "a\n")
    await files.fetch("s")
    await files.store("s")
    assert await files.known("s")


async def test_a_store_that_is_down_is_no_unknown_session(tmp_path: Path) -> None:
    """S3: who replied is not told that the session has expired when nobody could look."""
    objects = KeptObjects()
    objects.down = True
    with pytest.raises(ObjectsUnusable):
        await SessionFiles(tmp_path, objects).known("s")

"""An index that cannot be read is begun anew, also while other processes use it; nothing that was put is lost."""

import asyncio
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hummingbird.core.errors import JournalUnwritable, SessionUnreadable
from hummingbird.storage.session_index import SqliteSessionIndex, open_session_index
from tests.storage.index_process import growing
from tests.storage.indexed_sessions import found, made, put, session

WORKER = Path(__file__).parent / "index_process.py"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


def raw(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        found = connection.execute(query).fetchall()
        connection.commit()
        return found
    finally:
        connection.close()


def spoil(path: Path, kept: int) -> None:
    """All but the first bytes of it become nonsense."""
    raw(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    overwrite(path, kept)


def overwrite(path: Path, kept: int) -> None:
    """In place, as a disk does it."""
    with path.open("r+b") as file:
        file.seek(kept)
        file.write(b"nonsense" * (max(5_000, path.stat().st_size // 8)))


def content(path: Path) -> bytes:
    return path.read_bytes()


def remove(path: Path) -> None:
    path.unlink()


async def filled(path: Path, told: list[str] | None = None) -> SqliteSessionIndex:
    index = made(path, told)
    for number in range(40):
        await put(index, f"s{number}", session(f"s{number}", *(f"word{number} {'filling ' * 80}" for _ in range(4))))
    return index


def whole(path: Path) -> bool:
    raw(path, "INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    return raw(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("kept", [0, 50, 100])
async def test_what_is_no_database_is_put_aside_when_it_is_opened(path: Path, kept: int) -> None:
    await filled(path)
    spoil(path, kept)
    told: list[str] = []
    index = made(path, told)
    aside = path.with_name("index.sqlite.damaged")
    assert told == [f"{path} was damaged; a new one is used, and the old one is now {aside} until you delete it."]
    assert aside.read_bytes().endswith(b"nonsense")
    assert await index.stamps() == {}
    await put(index, "one", session("one", "again"))
    assert (await found(index, "again"), len(told)) == (["one"], 1)


@pytest.mark.parametrize("kept", [4096, 8192, 40_960])
async def test_what_is_damaged_while_it_is_used_is_begun_anew(path: Path, kept: int) -> None:
    """Whatever is asked first; all that is missing is missed."""
    told: list[str] = []
    index = await filled(path, told)
    spoil(path, kept)
    await put(index, "one", session("one", "again"))
    await index.list_sessions(99)
    await index.search("filling")
    missing = {f"s{number}" for number in range(40)} - set(await index.stamps())
    assert (len(told), len(missing)) == (1, 40)
    index = await filled(path, told)
    assert len(await index.stamps()) in {40, 41}
    assert await found(index, "word7") == ["s7"]
    assert (whole(path), len(told)) == (True, 1)


@pytest.mark.thorough
async def test_an_index_whose_words_are_lost_is_begun_anew_by_a_search(path: Path) -> None:
    """SQLite finds that only when it looks for some."""
    told: list[str] = []
    index = await filled(path, told)
    raw(path, "UPDATE words_data SET block = x'00112233445566778899'")
    assert (await found(index, "word7"), len(told)) == ([], 1)
    assert await index.stamps() == {}


@pytest.mark.thorough
async def test_one_that_another_process_began_anew_is_used_at_once(path: Path) -> None:
    told: list[str] = []
    first = await filled(path, told)
    spoil(path, 0)
    second = made(path, told)
    await put(second, "one", session("one", "again"))
    assert (await found(first, "again"), set(await first.stamps()), len(told)) == (["one"], {"one"}, 1)
    await put(first, "two", session("two", "again"))
    del first
    assert sorted(await found(second, "again")) == ["one", "two"]
    assert whole(path)


@pytest.mark.thorough
async def test_a_newer_versions_file_is_left_alone(path: Path) -> None:
    index = await filled(path)
    raw(path, "PRAGMA user_version = 99")
    before = content(path)
    with pytest.raises(SessionUnreadable, match="newer version; update this one to use the index of sessions"):
        await index.search("filling")
    with pytest.raises(SessionUnreadable, match="newer version"):
        open_session_index(path, str, pytest.fail)
    assert content(path) == before
    assert not path.with_name("index.sqlite.foreign").exists()


async def test_somebody_elses_file_is_kept_and_a_second_one_is_not_touched(path: Path) -> None:
    raw(path, "CREATE TABLE recipes (title)")
    told: list[str] = []
    await put(made(path, told), "one", session("one", "hello"))
    aside = path.with_name("index.sqlite.foreign")
    assert raw(aside, "SELECT name FROM sqlite_master") == [("recipes",)]
    assert told == [
        f"{path} was not the index of sessions; a new one is used, and the old one is now {aside} until you delete it."
    ]
    remove(path)
    raw(path, "CREATE TABLE songs (title)")
    with pytest.raises(SessionUnreadable, match="move both away"):
        open_session_index(path, str, pytest.fail)
    assert raw(path, "SELECT name FROM sqlite_master") == [("songs",)]


async def test_a_place_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "file" / "index.sqlite", tmp_path / "folder"):
        with pytest.raises(JournalUnwritable, match="cannot be used as the index of sessions: "):
            open_session_index(place, str, pytest.fail)


@pytest.mark.thorough
async def test_nobody_else_can_read_the_index(path: Path) -> None:
    """It holds what was said."""
    index = await filled(path)
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert (set(modes.values()), len(modes), len(await index.stamps())) == ({0o600}, 4, 40)


async def start(path: Path, name: str, rounds: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, str(WORKER), str(path), name, str(rounds), stdout=asyncio.subprocess.PIPE
    )


@pytest.mark.thorough
async def test_processes_that_put_the_same_and_other_sessions_at_once_lose_and_double_nothing(path: Path) -> None:
    """Four make the file and write at once; all of them put a shared session, also as it was earlier."""
    names, rounds = ("one", "two", "three", "four"), 25
    others = [await start(path, name, rounds) for name in names]
    told = [(await other.communicate())[0] for other in others]
    assert told == [b"done\n"] * 4
    index = made(path)
    assert await index.stamps() == dict.fromkeys((*names, "shared"), f"{rounds}")
    expected = [(name, number, 0) for name in sorted((*names, "shared")) for number in range(2, rounds + 2)]
    rows = raw(path, "SELECT s.session, number, part FROM texts t JOIN sessions s ON s.id = t.session ORDER BY 1, 2")
    assert rows == expected
    assert raw(path, "SELECT count(*) FROM words WHERE words MATCH 'everywhere'") == [(len(expected),)]
    assert whole(path)
    texts = [one.text for one in await index.texts_around("shared", 1, 0, 99)]
    assert texts == [f"number{number} of shared everywhere" for number in range(rounds)]


@pytest.mark.thorough
async def test_processes_that_find_the_index_damaged_at_once_begin_one_new_index(path: Path) -> None:
    """While they write, again and again; in the end each puts what is missing, as its callers do."""
    made(path)
    rounds = 240  # so many that somebody still writes when it is damaged
    others = [await start(path, name, rounds) for name in ("one", "two", "three")]
    for kept in (0, 100, 0):
        await asyncio.sleep(0.4)
        with suppress(FileNotFoundError):  # it was just put aside
            overwrite(path, kept)
    told = [(await other.communicate())[0].decode().splitlines() for other in others]
    assert [(other.returncode, lines[-1]) for other, lines in zip(others, told, strict=True)] == [(0, "done")] * 3
    troubles = [line for lines in told for line in lines[:-1]]
    assert troubles
    assert all("was damaged; a new one is used" in line for line in troubles)
    index = made(path)
    for name in ("one", "two", "three", "shared"):
        await put(index, name, growing(name, rounds), f"{rounds}")
    assert await index.stamps() == dict.fromkeys(("one", "two", "three", "shared"), f"{rounds}")
    assert raw(path, "SELECT count(*) FROM texts") == [(4 * rounds,)]
    assert whole(path)

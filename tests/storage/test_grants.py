"""Grants that hold for always, in a file."""

import asyncio
import fcntl
import resource
import signal
import stat
import sys
from pathlib import Path

import msgspec
import pytest

from hummingbird.core.errors import JournalUnwritable, UsageError
from hummingbird.core.permissions import PermissionGrant
from hummingbird.storage.grants import FileGrants

NOON = 1_800_000_000.0
A, B = (
    PermissionGrant("a" * 64, 'terminal {"command":"make"}', "Ada"),
    PermissionGrant("b" * 64, 'terminal {"command":"ü"}', "Ada"),
)


def grants(path: Path) -> FileGrants:
    return FileGrants(path, lambda: NOON)


def saved(path: Path) -> list[dict[str, str]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


async def test_what_was_saved_is_there_for_its_project_and_for_no_other(tmp_path: Path) -> None:
    path = tmp_path / "not" / "yet" / "grants.jsonl"
    assert await grants(path).list_keys("one") == frozenset()
    assert not path.exists()
    await grants(path).save("one", A)
    await grants(path).save("one", B)
    await grants(path).save("two", B)
    assert await grants(path).list_keys("one") == {A.key, B.key}
    assert await grants(path).list_keys("two") == {B.key}
    assert await grants(path).list_keys("") == frozenset()


async def test_people_can_read_it_and_others_cannot(tmp_path: Path) -> None:
    """One line each, with the command, who granted it and when."""
    path = tmp_path / "grants.jsonl"
    await grants(path).save("one", B)
    assert saved(path) == [
        {"at": "2027-01-15T08:00:00+00:00", "project": "one", "command": B.command, "granted_by": "Ada", "key": B.key}
    ]
    assert "ü" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_saving_it_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "grants.jsonl"
    for grant in (A, B, A, A):
        await grants(path).save("one", grant)
    assert [line["key"] for line in saved(path)] == [A.key, B.key]


async def test_a_grant_is_taken_back_by_deleting_its_line_also_while_somebody_uses_the_file(tmp_path: Path) -> None:
    """Nothing is remembered that is not in the file."""
    path = tmp_path / "grants.jsonl"
    used = grants(path)
    await used.save("one", A)
    await used.save("one", B)
    path.write_text("\n" + path.read_text().splitlines()[1] + "\n\n")
    assert await used.list_keys("one") == {B.key}
    path.unlink()
    assert await used.list_keys("one") == frozenset()
    await used.save("one", A)
    assert await used.list_keys("one") == {A.key}


async def test_a_line_whose_end_an_editor_left_out_counts_and_the_next_one_stands_below_it(tmp_path: Path) -> None:
    path = tmp_path / "grants.jsonl"
    await grants(path).save("one", A)
    path.write_text(path.read_text().rstrip("\n"))
    assert await grants(path).list_keys("one") == {A.key}
    await grants(path).save("one", B)
    assert [line["key"] for line in saved(path)] == [A.key, B.key]


async def test_a_line_cut_off_anywhere_is_no_grant_and_does_not_harm_the_others(tmp_path: Path) -> None:
    """Whenever the power went."""
    path = tmp_path / "grants.jsonl"
    await grants(path).save("one", A)
    first = path.read_bytes()
    await grants(path).save("one", B)
    both = path.read_bytes()
    for end in range(len(first), len(both) - 1):
        path.write_bytes(both[:end])
        assert await grants(path).list_keys("one") == {A.key}
    for torn in (both[:-20], first + b"\0" * 100):
        path.write_bytes(torn)
        await grants(path).save("one", B)
        assert path.read_bytes() == both


@pytest.mark.parametrize("line", [b"{}", b"make", b'{"key":1}', b"\xff\xfe", b"[" * 10_000])
async def test_a_line_that_is_no_grant_is_said_with_its_number(tmp_path: Path, line: bytes) -> None:
    """A file that somebody broke is not taken for one without grants, and nothing is added to it."""
    path = tmp_path / "grants.jsonl"
    await grants(path).save("one", A)
    path.write_bytes(path.read_bytes() + line + b"\n")
    for attempt in (grants(path).list_keys("one"), grants(path).save("one", B)):
        with pytest.raises(UsageError, match=r"Line 2 of .*grants\.jsonl is not a grant; fix it"):
            await attempt


async def test_processes_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    """Real processes, each with its own grants and one that all of them give."""
    path = tmp_path / "grants.jsonl"
    code = (
        "import asyncio, sys; from pathlib import Path;"
        "from hummingbird.storage.grants import FileGrants;"
        "from hummingbird.core.permissions import PermissionGrant;"
        "g = FileGrants(Path(sys.argv[1]), lambda: 0.0);"
        "[asyncio.run(g.save('one', PermissionGrant(key, 'x' * 3000, 'me')))"
        " for n in range(15) for key in (f'{sys.argv[2]}-{n}', f'all-{n}')]"
    )
    others = [await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(path), str(n)) for n in range(3)]
    assert [await other.wait() for other in others] == [0, 0, 0]
    keys = [line["key"] for line in saved(path)]
    assert len(keys) == len(set(keys)) == 60
    assert await grants(path).list_keys("one") == set(keys)


async def test_a_file_that_another_process_holds_is_waited_for_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading goes on meanwhile."""
    monkeypatch.setattr("hummingbird.clients.sqlite_files.LOCK_WAIT_S", 0.05)
    path = tmp_path / "grants.jsonl"
    await grants(path).save("one", A)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(JournalUnwritable, match="Another process holds"):
            await grants(path).save("one", B)
        assert await grants(path).list_keys("one") == {A.key}
    await grants(path).save("one", B)
    assert await grants(path).list_keys("one") == {A.key, B.key}


async def test_a_place_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "grants.jsonl").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "grants.jsonl", tmp_path / "file" / "grants.jsonl"):
        with pytest.raises(JournalUnwritable, match="cannot be used"):
            await grants(path).save("one", A)
        with pytest.raises(JournalUnwritable, match="cannot be used"):
            await grants(path).list_keys("one")


async def test_a_disk_that_is_full_is_said_and_leaves_no_half_grant(tmp_path: Path) -> None:
    """The line that did not fit is cut off by the next one."""
    path = tmp_path / "grants.jsonl"
    await grants(path).save("one", A)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    was = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50, before[1]))
    try:
        with pytest.raises(JournalUnwritable, match="cannot be used: File too large"):
            await grants(path).save("one", B)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, was)
    assert await grants(path).list_keys("one") == {A.key}
    await grants(path).save("one", B)
    assert [line["key"] for line in saved(path)] == [A.key, B.key]


async def test_rules_are_kept_beside_grants_and_can_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "grants.jsonl"
    store = FileGrants(path, lambda: 1_800_000_000.0)
    await store.save("one", PermissionGrant("a" * 64, "terminal ls", "Ada"))
    await store.save_rule("one", "allow terminal(git diff *)", "Ada")
    await store.save_rule("one", "allow terminal(git diff *)", "Ada")
    await store.save_rule("two", "deny terminal(rm *)", "Ada")
    assert store.list_rules("one") == ("allow terminal(git diff *)",)
    assert await store.list_keys("one") == {"a" * 64}
    await store.remove_rule("one", "allow terminal(git diff *)")
    assert (store.list_rules("one"), store.list_rules("two")) == ((), ("deny terminal(rm *)",))
    assert await store.list_keys("one") == {"a" * 64}

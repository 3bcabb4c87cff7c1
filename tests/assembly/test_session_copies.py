"""Sessions in folders that people name: nothing that was kept is lost to a copy (G6, S2)."""

from pathlib import Path

import pytest

from hummingbird.assembly.about import About
from hummingbird.assembly.session_copies import Saved, brought, copied_back, prepared, saved, sessions_for
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.journal import Entry, SessionOpened, Source, UserSaid, dump
from hummingbird.domain.limits import JOURNAL_FORMAT

OPENED = SessionOpened(session_id="abc", system="Be brief.", format=JOURNAL_FORMAT)
ORDERED = UserSaid(text='{"workflow": "w", "project": "a/b", "mr_iid": 7, "sha": 5}', source=Source.ORDER)
MORE = UserSaid(text="And?")


def kept(folder: Path, *entries: Entry, archive: bytes = b"") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "journal.jsonl").write_bytes(b"".join(map(dump, entries)))
    if archive:
        (folder / "sandbox.tar.gz").write_bytes(archive)
    return folder


def length(folder: Path) -> int:
    return len((folder / "journal.jsonl").read_bytes().splitlines())


def test_a_session_says_what_it_is_about(tmp_path: Path) -> None:
    """What is of another kind than it should be is not known."""
    folder = kept(tmp_path / "one", OPENED, ORDERED, MORE)
    assert saved(folder) == Saved(folder, "abc", About(workflow="w", project="a/b", mr_iid=7))


@pytest.mark.parametrize("text", ["Hello!", "[1]", '"x"', "7"])
def test_a_session_that_no_order_began_is_about_nothing_known(tmp_path: Path, text: str) -> None:
    folder = kept(tmp_path / "one", OPENED, UserSaid(text=text, source=Source.ORDER))
    assert saved(folder).about == About()


def test_a_journal_without_a_beginning_is_no_session(tmp_path: Path) -> None:
    with pytest.raises(UsageFault, match="run it anew"):
        saved(kept(tmp_path / "one"))


@pytest.mark.parametrize("name", ["journal.jsonl", "transcript.md", "sandbox.tar.gz"])
def test_a_folder_with_any_file_of_a_session_is_not_taken_for_a_new_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UsageFault, match=name):
        prepared(tmp_path)


def test_other_files_are_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "event.json").touch()
    assert prepared(tmp_path) == tmp_path


def test_an_earlier_state_of_the_same_session_makes_room(tmp_path: Path) -> None:
    """With all that belonged to it: a sandbox of another time is worse than none."""
    target = kept(tmp_path / "two", OPENED, archive=b"old")
    prepared(target, saved(kept(tmp_path / "one", OPENED, ORDERED)))
    assert length(target) == 2
    assert not (target / "sandbox.tar.gz").exists()
    assert (target / "journal.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_later_state_of_the_same_session_does_not(tmp_path: Path) -> None:
    target = kept(tmp_path / "two", OPENED, ORDERED)
    with pytest.raises(UsageFault, match="another session"):
        prepared(target, saved(kept(tmp_path / "one", OPENED)))
    assert length(target) == 2


@pytest.mark.parametrize(("ours", "theirs", "then"), [(2, 0, 2), (2, 1, 2), (1, 2, 2), (2, 2, 2)])
def test_the_service_has_the_longer_one_afterwards(tmp_path: Path, ours: int, theirs: int, then: int) -> None:
    entries, sessions = (OPENED, ORDERED), tmp_path / "sessions"
    if theirs:
        kept(sessions / "abc", *entries[:theirs])
    brought(saved(kept(tmp_path / "one", *entries[:ours], archive=b"packed")), sessions)
    assert length(sessions / "abc") == then
    assert (sessions / "abc" / "sandbox.tar.gz").exists() == (ours > theirs)


def test_two_that_parted_are_both_left_alone(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    kept(sessions / "abc", OPENED, MORE)
    with pytest.raises(UsageFault, match="in another way"):
        brought(saved(kept(tmp_path / "one", OPENED, ORDERED)), sessions)
    assert (sessions / "abc" / "journal.jsonl").read_bytes().endswith(dump(MORE))


def test_a_session_that_never_began_takes_nothing_away(tmp_path: Path) -> None:
    folder = kept(tmp_path / "one", OPENED)
    copied_back(tmp_path / "sessions", "abc", folder)
    assert length(folder) == 1


def test_what_is_written_to_a_session_is_in_its_folder_at_once(tmp_path: Path) -> None:
    """Also a killed process leaves it behind; the rest is gone."""
    with sessions_for("abc", tmp_path, None) as sessions:
        (sessions / "abc" / "journal.jsonl").write_text("line\n")
        assert (tmp_path / "journal.jsonl").read_text() == "line\n"
    assert (tmp_path / "journal.jsonl").exists()
    assert not sessions.exists()

"""What a chat does when something is broken (the issue's bad input): one sentence, nothing lost, and on it goes."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hummingbird.app.chat_context import ChatSubject
from hummingbird.app.sandboxes import SandboxChoice
from hummingbird.core.errors import SessionUnreadable, UsageError
from hummingbird.core.journal import UserSaid
from hummingbird.core.limits import JOURNAL_FORMAT
from tests.app.chats import Home, home
from tests.standins.vendors.script import Turn


async def test_where_there_is_no_sandbox_everything_goes_on_without_one(tmp_path: Path) -> None:
    """The issue: told once; also by what comes before the first message."""
    with home(tmp_path, Turn(text="ok")) as here:
        here.environment["KUBECONFIG"] = str(tmp_path / "nothing")
        async with here.chat(toolsets=("sandbox", "todo"), chosen=SandboxChoice("k8spool")) as mine:
            with pytest.raises(UsageError, match="no message"):
                await mine.undo_message()
            assert (await mine.say("hello")).text == "ok"
            with pytest.raises(UsageError, match="no sandbox"):
                await mine.attach("log", b"x")
        assert len([one for one in here.told if one.startswith("Going on without a sandbox.")]) == 1
        assert [tool["name"] for tool in here.lab.requests[0].body["tools"]] == ["todo"]


async def test_a_session_of_a_newer_format_is_one_sentence_and_the_chat_goes_on(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="ok"), Turn(text="fine")) as here:
        async with here.chat() as mine:
            await mine.say("hello")
            session = mine.status().session_id
            journal = here.journal_of(session)
            newer = here.journal_of("e" * 32)
            newer.parent.mkdir()
            newer.write_text(journal.read_text().replace(f'"format":{JOURNAL_FORMAT}', '"format":99'))
            before = newer.read_bytes()
            with pytest.raises(SessionUnreadable) as told:
                await mine.resume("e" * 32)
            assert "\n" not in str(told.value)
            assert (await mine.say("still here?")).text == "fine"
            assert mine.status().session_id == session
        assert newer.read_bytes() == before


@pytest.mark.parametrize("trouble", ["corrupt", "a folder"])
async def test_a_broken_index_is_in_nobody_s_way(tmp_path: Path, trouble: str) -> None:
    with home(tmp_path, Turn(text="ok"), Turn(text="still ok")) as here:
        async with here.chat() as mine:
            await mine.say("hello")
            session = mine.status().session_id
            await mine.list_sessions(1)
        [index] = here.state.glob("sessions-*.sqlite")
        for beside in here.state.glob("sessions-*.sqlite*"):
            beside.unlink()
        if trouble == "corrupt":
            index.write_bytes(b"no database at all" * 500)
        else:
            index.mkdir()
        async with here.chat() as mine:
            if trouble == "corrupt":
                assert [one.session_id for one in await mine.list_sessions(5)] == [session]
            else:
                with pytest.raises(UsageError, match="index"):
                    await mine.list_sessions(5)
                assert any("cannot be searched" in one for one in here.told)
            assert (await mine.say("hello")).text == "still ok"


@pytest.mark.thorough
async def test_a_store_that_is_away_takes_nothing_out_of_a_conversation(tmp_path: Path) -> None:
    """The issue: one clear sentence, and nothing lost; once it is back, all of it is kept."""
    with home(tmp_path, *[Turn(text=f"answer {n}") for n in range(4)]) as here:
        async with here.chat() as mine:
            await mine.say("one")
            session = mine.status().session_id
            folder = here.journal_of(session).parent
            moved = folder.with_name("elsewhere")
            folder.rename(moved)
            folder.write_text("in the way")  # a file where the folder should be: nothing can be written
            assert (await mine.say("two")).text == "answer 1"
            assert (await mine.say("three")).text == "answer 2"
            await mine.wait_until_stored()
            assert not mine.status().is_kept, "nobody is told to resume it"
            folder.unlink()
            moved.rename(folder)
            assert (await mine.say("four")).text == "answer 3"
            await mine.wait_until_stored()
            assert mine.status().is_kept
        _all_of_it(here, session)


@pytest.mark.thorough
async def test_a_full_disk_takes_nothing_out_of_a_conversation(tmp_path: Path) -> None:
    """The issue: the journal can be opened, and takes no more."""
    with home(tmp_path, *[Turn(text=f"answer {n}") for n in range(4)]) as here:
        async with here.chat() as mine:
            await mine.say("one")
            session = mine.status().session_id
            with _no_file_longer_than(here.journal_of(session).stat().st_size):
                await mine.say("two")
                await mine.say("three")
            assert (await mine.say("four")).text == "answer 3"
        _all_of_it(here, session)


def _all_of_it(here: Home, session: str) -> None:
    assert here.heard(3) == ["one", "answer 0", "two", "answer 1", "three", "answer 2", "four"]
    assert any("not saved" in one for one in here.told)
    said = [one.text for one in here.entries(session) if isinstance(one, UserSaid)]
    assert said == ["one", "two", "three", "four"]


@contextmanager
def _no_file_longer_than(size: int) -> Iterator[None]:
    """As a full disk does it: what is there can be read, what is new is refused."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_what_is_exported_is_the_session(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="ok")) as here:
        async with here.chat() as mine:
            await mine.say("hello")
            place = await mine.export_session(str(tmp_path / "mine"))
        assert (place / "journal.jsonl").exists()


async def test_chats_without_the_store_of_sessions_know_only_themselves(tmp_path: Path) -> None:
    with home(tmp_path) as here, pytest.raises(UsageError, match="There is no session in"):
        async with here.chat(newest=True):
            pass


@pytest.mark.parametrize(
    ("subject", "match"),
    [
        (ChatSubject("no project"), "is not the path of a project"),
        (ChatSubject("a/b", "nothing"), "There is no workflow"),
    ],
)
async def test_what_cannot_be_talked_about_is_told_at_the_beginning(
    tmp_path: Path, subject: ChatSubject, match: str
) -> None:
    with home(tmp_path) as here, pytest.raises(UsageError, match=match):
        async with here.chat(subject):
            pass

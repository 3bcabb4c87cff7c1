"""Sessions as a person goes on with them: by folder, renamed, copied, rewound."""

import threading
from pathlib import Path

import pytest

from hummingbird.chat.partner import LastExchange
from hummingbird.core.errors import UsageError
from hummingbird.core.journal import SessionRenamed
from tests.app.chats import Yes, calling, home
from tests.app.family import until
from tests.standins.vendors.script import Fault, Turn


async def test_continue_takes_the_newest_session_of_this_folder(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="mine"), Turn(text="theirs")) as here:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        async with here.chat() as partner:
            await partner.say("in my folder")
            mine = partner.status().session_id
        async with here.chat(workspace=elsewhere) as partner:
            await partner.say("somewhere else")
        async with here.chat(newest=True) as partner:
            assert partner.status().session_id == mine
            assert partner.last_exchange() == LastExchange("in my folder", "mine")
            listed = {one.title: (one.about.folder, one.last_words) for one in await partner.list_sessions(9)}
        assert listed == {
            "in my folder": (str(here.workspace), "mine"),
            "somewhere else": (str(elsewhere), "theirs"),
        }
        nowhere = tmp_path / "nowhere"
        nowhere.mkdir()
        with pytest.raises(UsageError, match="There is no session in"):
            async with here.chat(workspace=nowhere, newest=True):
                pass


async def test_a_session_can_be_named_and_gone_on_with_in_a_copy(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="one"), Turn(text="two"), Turn(text="three")) as here:
        async with here.chat() as partner:
            with pytest.raises(UsageError, match="Nothing was said yet"):
                await partner.rename("early")
            await partner.say("first")
            await partner.rename("Wings")
            original = partner.status().session_id
            copy = await partner.fork()
            assert partner.status().session_id == copy != original
            await partner.say("only in the copy")
            window = partner.status().context_limit
            await partner.resume(original)
            assert partner.status().context_limit == window > 0, "also before the next message"
            await partner.say("only in the original")
            assert list(partner.messages()) == ["first", "only in the original"]
            listed = await partner.list_sessions(9)
            titles = {one.session_id: one.title for one in listed}
            assert all(one.changed_at > 1_700_000_000 for one in listed), "also right after it was named"
        assert titles == {original: "Wings", copy: "Wings (copy)"}
        assert here.heard(1)[-1] == "only in the copy"
        assert "first" in here.heard(1)


async def test_models_to_choose_are_those_of_the_configuration_and_of_the_keys(tmp_path: Path) -> None:
    with home(tmp_path) as here:
        async with here.chat(configuration=here.configuration("settings: {model: openai-chat:mine}")) as partner:
            found = await partner.model_names()
    assert found[:2] == ["openai-chat:mine", "anthropic:claude-sonnet-5-5"]
    assert all(name.startswith("anthropic:claude-") for name in found[1:])
    assert len(found) > 5


async def test_a_message_is_taken_back_with_the_files_that_it_changed(tmp_path: Path) -> None:
    turns = [calling("file_edit", path="a.txt", new="1\n"), Turn(text="done")]
    turns += [
        calling("file_edit", path="a.txt", new="2\n"),
        calling("file_edit", path="b.txt", new="2\n"),
        Turn(text="ok"),
    ]
    with home(tmp_path, *turns) as here:
        async with here.chat(asker=Yes()) as partner:
            await partner.say("make it")
            await partner.say("change it")
            assert list(partner.changed_files()) == ["a.txt", "b.txt"]
            await partner.undo_edits()
            assert await partner.undo_message() == "change it"
            assert (here.workspace / "a.txt").read_text() == "1\n"
            assert not (here.workspace / "b.txt").exists()
            assert list(partner.changed_files()) == ["a.txt"]
            assert list(partner.messages()) == ["make it"]


LONG_ASK = "Why does the test of rows without a price fail since yesterday, and what would you change?"


async def test_a_model_names_a_session_without_holding_up_the_next_message(tmp_path: Path) -> None:
    tried = threading.Event()
    slow = Fault("slow", until=tried, turn=Turn(text='**"Rows without a price"**.\nAnd more.'))
    with home(tmp_path, Turn(text="one"), slow, Turn(text="two")) as here:
        async with here.chat(titles=True) as partner:
            await partner.say(LONG_ASK)
            await until(lambda: len(here.lab.requests) == 2)
            assert (await partner.say("and then?")).text == "two"
            tried.set()
            session = partner.status().session_id
            await until(lambda: any(isinstance(one, SessionRenamed) for one in here.entries(session)))
            assert [one.title for one in await partner.list_sessions(9)] == ["Rows without a price"]
            here.script(Turn(text="three"))
            await partner.say("once more")
            assert partner.status().bill.attempts == 4, "what the title cost is in the bill"
        assert here.heard(3) == [LONG_ASK, "one", "and then?", "two", "once more"]


@pytest.mark.parametrize(("said", "titles"), [("in my folder", "true"), (LONG_ASK, "false")])
async def test_a_short_message_is_a_title_and_titles_can_be_off(tmp_path: Path, said: str, titles: str) -> None:
    with home(tmp_path, Turn(text="mine")) as here:
        async with here.chat(titles=True, configuration=here.configuration(f"chat: {{titles: {titles}}}")) as partner:
            await partner.say(said)
        async with here.chat() as partner:
            assert [one.title for one in await partner.list_sessions(9)] == [said]


async def test_without_a_model_that_names_it_a_session_keeps_its_first_words(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="one"), Fault("status", status=400), Turn(text="two"), Turn(text="three")) as here:
        async with here.chat(titles=True) as partner:
            await partner.say(LONG_ASK)
            await until(lambda: len(here.lab.requests) == 2)
            await partner.say("and then?")
            await partner.say("and then?")
        async with here.chat() as partner:
            assert [one.title for one in await partner.list_sessions(9)] == [LONG_ASK]

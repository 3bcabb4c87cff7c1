"""What a conversation finds, saves and takes back of what went before it (C3, C5, C7, C10)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hummingbird.adapters.stores.folder_sessions import FolderSessions
from hummingbird.assembly.chatting import ANYTHING, partner_of
from hummingbird.assembly.partner import ChatPartner
from hummingbird.assembly.session_desk import desk_of
from hummingbird.chat.acp.conversations import Wanted
from hummingbird.chat.headless import Piping, answer_one
from hummingbird.cli.acp_work import EditorConversations
from hummingbird.domain.errors import ObjectsUnusable, UsageFault
from hummingbird.lab.vendors.script import Turn
from hummingbird.ports.observer import Observer
from hummingbird.ports.permissions import Asker
from hummingbird.ports.person import Clarifier
from hummingbird.ports.sessions import Kept
from tests.assembly.chats import Home, Yes, calling, home


def result(here: Home) -> str:
    """What the model was last told by a tool."""
    return str(here.lab.requests[-1].body["messages"][-1])


async def test_c7_recall_finds_what_was_said_here_a_moment_ago_and_what_others_said_meanwhile(tmp_path: Path) -> None:
    search = calling("recall", action="search", query="zanzibar"), calling("recall", action="search", query="ulanbator")
    turns = [Turn(text="noted"), search[0], Turn(text="found"), Turn(text="noted too"), search[1], Turn(text="found")]
    with home(tmp_path, *turns) as here:
        async with here.chat() as mine, here.chat() as theirs:
            await mine.say("The word is zanzibar.")
            before = mine.standing().session_id
            await mine.new()
            await mine.say("What was the word?")
            assert before in result(here)
            assert [hit.summary.session_id for hit in await mine.search("zanzibar", 5)][:1] == [before]
            await theirs.say("The city is ulanbator.")
            await mine.say("What was the city?")
            assert theirs.standing().session_id in result(here)


async def test_c7_an_index_that_cannot_be_brought_up_to_date_is_searched_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: FolderSessions) -> Sequence[Kept]:
        raise ObjectsUnusable("The sessions cannot be reached.")

    with home(tmp_path, Turn(text="noted")) as here:
        async with here.chat() as mine:
            await mine.say("The word is zanzibar.")
            await mine.search("zanzibar", 5)
            monkeypatch.setattr(FolderSessions, "listed", away)
            assert len(await mine.search("zanzibar", 5)) >= 1


@pytest.mark.thorough
async def test_c3_a_session_is_saved_as_often_as_one_likes_and_where_it_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "my home"))
    with home(tmp_path, *[Turn(text="ok")] * 3) as here:
        async with here.chat() as mine:
            await mine.say("one")
            assert await mine.save("kept") == here.workspace / "kept"
            await mine.say("two")
            assert await mine.save("kept") == here.workspace / "kept"
            assert "two" in (here.workspace / "kept" / "transcript.md").read_text()
            assert await mine.save("~/kept") == tmp_path / "my home" / "kept"
            assert (await mine.save("")).parent == here.workspace
            await mine.new()
            await mine.say("three")
            with pytest.raises(UsageFault, match="holds another session"):
                await mine.save("kept")
            with pytest.raises(UsageFault, match="no home directory"):
                await mine.save("~nobody-of-that-name/kept")


@pytest.mark.parametrize("which", ["²", "1" * 5_000, "-1", "x"])
async def test_c3_what_is_no_number_is_told_so(tmp_path: Path, which: str) -> None:
    with home(tmp_path) as here:
        async with here.chat() as mine:
            with pytest.raises(UsageFault, match="is no number"):
                await mine.stop(which)


async def test_c5_a_model_is_offered_no_question_where_nobody_can_answer_it(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="ok")) as here:

        async def made(observer: Observer, asker: Asker, clarifier: Clarifier | None) -> ChatPartner:
            return await partner_of(here.parts(on_event=observer, asker=asker, clarifier=clarifier))

        assert await answer_one(made, "hello", Piping(here.workspace, lambda _: {})) == 0
        offered = {tool["name"] for tool in here.lab.requests[0].body["tools"]}
        assert "todo" in offered
        assert "clarify" not in offered


@pytest.mark.thorough
async def test_c10_changes_of_files_can_be_taken_back_by_whoever_goes_on_with_the_conversation(tmp_path: Path) -> None:
    """An editor's change of mode makes another partner of the same session."""
    edit = calling("file_edit", path="notes.txt", new="mine\n")
    with home(tmp_path, edit, Turn(text="done")) as here:
        async with here.chat(asker=Yes()) as first:
            await first.say("write it")
            assert (here.workspace / "notes.txt").read_text() == "mine\n"
            await first.settled()
            parts = here.parts()
            editors = EditorConversations(parts, ANYTHING, desk_of(parts.configuration, parts.environment, parts.clock))
            session, seen = first.standing().session_id, parts.on_event
            assert seen is not None
            second = await editors.partner(Wanted(here.workspace, seen, Yes(), None, session, plan=True, before=first))
            assert "notes.txt" in await second.undo_edit()
            await second.close()
        assert not (here.workspace / "notes.txt").exists()

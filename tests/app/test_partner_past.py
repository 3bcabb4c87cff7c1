"""What a conversation finds, saves and takes back of what went before it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hummingbird.acp import ConversationRequest
from hummingbird.app.chat import ANY_SUBJECT, ChatPartner, create_partner
from hummingbird.app.editor import ConfiguredEditorBackend
from hummingbird.app.session_catalog import open_session_catalog
from hummingbird.chat.headless import HeadlessSettings, answer_one
from hummingbird.core.errors import ObjectStoreUnusable, UsageError
from hummingbird.core.protocols.interaction import Clarifier, PermissionAsker
from hummingbird.core.protocols.observer import RunObserver
from hummingbird.core.protocols.sessions import StoredSession
from hummingbird.storage.folder_sessions import FolderSessionStore
from tests.app.chats import Home, Yes, calling, home
from tests.standins.vendors.script import Turn


def result(here: Home) -> str:
    """What the model was last told by a tool."""
    return str(here.lab.requests[-1].body["messages"][-1])


async def test_recall_finds_what_was_said_here_a_moment_ago_and_what_others_said_meanwhile(tmp_path: Path) -> None:
    search = calling("recall", action="search", query="zanzibar"), calling("recall", action="search", query="ulanbator")
    turns = [Turn(text="noted"), search[0], Turn(text="found"), Turn(text="noted too"), search[1], Turn(text="found")]
    with home(tmp_path, *turns) as here:
        async with here.chat() as mine, here.chat() as theirs:
            await mine.say("The word is zanzibar.")
            before = mine.status().session_id
            await mine.start_session()
            await mine.say("What was the word?")
            assert before in result(here)
            assert [hit.summary.session_id for hit in await mine.search_sessions("zanzibar", 5)][:1] == [before]
            await theirs.say("The city is ulanbator.")
            await mine.say("What was the city?")
            assert theirs.status().session_id in result(here)


async def test_an_index_that_cannot_be_brought_up_to_date_is_searched_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(_: FolderSessionStore) -> Sequence[StoredSession]:
        raise ObjectStoreUnusable("The sessions cannot be reached.")

    with home(tmp_path, Turn(text="noted")) as here:
        async with here.chat() as mine:
            await mine.say("The word is zanzibar.")
            await mine.search_sessions("zanzibar", 5)
            monkeypatch.setattr(FolderSessionStore, "list_sessions", away)
            assert len(await mine.search_sessions("zanzibar", 5)) >= 1


@pytest.mark.thorough
async def test_a_session_is_saved_as_often_as_one_likes_and_where_it_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "my home"))
    with home(tmp_path, *[Turn(text="ok")] * 3) as here:
        async with here.chat() as mine:
            await mine.say("one")
            assert await mine.export_session("kept") == here.workspace / "kept"
            await mine.say("two")
            assert await mine.export_session("kept") == here.workspace / "kept"
            assert "two" in (here.workspace / "kept" / "transcript.md").read_text()
            assert await mine.export_session("~/kept") == tmp_path / "my home" / "kept"
            assert (await mine.export_session("")).parent == here.workspace
            await mine.start_session()
            await mine.say("three")
            with pytest.raises(UsageError, match="holds another session"):
                await mine.export_session("kept")
            with pytest.raises(UsageError, match="no home directory"):
                await mine.export_session("~nobody-of-that-name/kept")


@pytest.mark.parametrize("which", ["²", "1" * 5_000, "-1", "x"])
async def test_what_is_no_number_is_told_so(tmp_path: Path, which: str) -> None:
    with home(tmp_path) as here:
        async with here.chat() as mine:
            with pytest.raises(UsageError, match="is not a number"):
                await mine.stop(which)


async def test_a_model_is_offered_no_question_where_nobody_can_answer_it(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="ok")) as here:

        async def made(observer: RunObserver, asker: PermissionAsker, clarifier: Clarifier | None) -> ChatPartner:
            return await create_partner(here.parts(on_event=observer, asker=asker, clarifier=clarifier))

        assert await answer_one(made, "hello", HeadlessSettings(here.workspace, lambda _: {})) == 0
        offered = {tool["name"] for tool in here.lab.requests[0].body["tools"]}
        assert "todo" in offered
        assert "clarify" not in offered


@pytest.mark.thorough
async def test_changes_of_files_can_be_taken_back_by_whoever_goes_on_with_the_conversation(tmp_path: Path) -> None:
    """An editor's change of mode makes another partner of the same session."""
    edit = calling("file_edit", path="notes.txt", new="mine\n")
    with home(tmp_path, edit, Turn(text="done")) as here:
        async with here.chat(asker=Yes()) as first:
            await first.say("write it")
            assert (here.workspace / "notes.txt").read_text() == "mine\n"
            await first.wait_until_stored()
            parts = here.parts()
            editors = ConfiguredEditorBackend(
                parts, ANY_SUBJECT, open_session_catalog(parts.configuration, parts.environment, parts.clock)
            )
            session, seen = first.status().session_id, parts.on_event
            assert seen is not None
            second = await editors.create_partner(
                ConversationRequest(here.workspace, seen, Yes(), None, session, plan=True, before=first)
            )
            assert "notes.txt" in await second.undo_edit()
            await second.close()
        assert not (here.workspace / "notes.txt").exists()

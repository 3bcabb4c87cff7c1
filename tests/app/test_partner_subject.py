"""What a conversation is about stays with its session, whoever goes on with it."""

from pathlib import Path

import pytest

from hummingbird.agent.context_files.memory_pages import MemoryKind
from hummingbird.app.chat import create_partner
from hummingbird.app.chat_context import ChatSubject
from hummingbird.core.errors import UsageError
from tests.app.chats import calling, home
from tests.standins.vendors.script import Turn

WIDGETS = ChatSubject("acme/widgets")


async def test_a_chat_that_was_begun_about_a_project_is_about_it_when_it_is_gone_on_with(tmp_path: Path) -> None:
    """Its tools, its prompt and its memory: what is learnt of a project is not written down for all of them."""
    fact = calling("memory", action="add", file=MemoryKind.MEMORY.value, text="The tests need a database.")
    with home(tmp_path, Turn(text="ok"), fact, Turn(text="done")) as here:
        async with here.chat(WIDGETS) as mine:
            await mine.say("Why is the pipeline red?")
            session = mine.status().session_id
        async with here.chat(resume=session) as mine:
            await mine.say("Remember that.")
            assert "The tests need a database." in mine.memory_text()
            assert [one.title for one in await mine.list_sessions(1)] == ["Why is the pipeline red?"]
            assert [one.about.project for one in await mine.list_sessions(1)] == ["acme/widgets"]
        assert here.system(1) == here.system(0)
        assert "about the GitLab project acme/widgets" in here.system(0)
    assert not (tmp_path / "state" / "memory" / MemoryKind.MEMORY.file_name).exists()


@pytest.mark.thorough
async def test_a_session_and_another_project_named_together_are_refused_with_a_sentence(tmp_path: Path) -> None:
    with home(tmp_path, Turn(text="ok"), Turn(text="ok")) as here:
        async with here.chat(WIDGETS) as mine:
            await mine.say("one")
            session = mine.status().session_id
            await mine.start_session()
        async with here.chat() as mine:
            await mine.say("about nothing")
            other = mine.status().session_id
        for resumed, named, said in (
            (session, ChatSubject("acme/gadgets"), "about acme/widgets, and --project says acme/gadgets"),
            (other, WIDGETS, "about none, and --project says acme/widgets"),
        ):
            with pytest.raises(UsageError, match=said):
                await create_partner(here.parts(), named, resume=resumed, named=True)
        with pytest.raises(UsageError, match="about none, and --project"):
            await create_partner(here.parts(), WIDGETS, newest=True, named=True)
        agreed = await create_partner(here.parts(), ChatSubject("Acme/Widgets"), resume=session, named=True)
        assert agreed.status().session_id == session
        await agreed.close()


@pytest.mark.thorough
async def test_what_a_chat_was_asked_to_be_about_is_not_brought_into_another_session(tmp_path: Path) -> None:
    """An editor's or a terminal's project is that of the sessions begun there; /new goes back to it."""
    with home(tmp_path, *[Turn(text="ok")] * 3) as here:
        async with here.chat() as mine:
            await mine.say("about nothing")
            session = mine.status().session_id
        async with here.chat(WIDGETS) as mine:
            await mine.resume(session)
            await mine.say("still about nothing")
            await mine.start_session()
            await mine.say("about the project")
        assert "acme/widgets" not in here.system(1)
        assert "acme/widgets" in here.system(2)

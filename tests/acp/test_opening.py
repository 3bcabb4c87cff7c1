"""Sessions that are opened and closed at the same time: one of each is left, and nothing else."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError
from acp.helpers import text_block
from acp.schema import ClientCapabilities, ElicitationCapabilities, ElicitationFormCapabilities

from hummingbird.acp import ConversationRequest
from hummingbird.acp.server import EditorAgent, SessionFolders
from hummingbird.chat.partner import Partner
from hummingbird.core.journal import JournalEntry
from hummingbird.core.sessions import SessionSummary
from tests.acp.editor import Editor
from tests.chat.scripted_partner import SESSION, ScriptedPartner

pytestmark = pytest.mark.asyncio


class Slow:
    """Fulfils Conversations. A partner is there when `gate` is open; `made` keeps them."""

    models: Sequence[str] = ("scripted:bird",)
    plan_only = False

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.made: list[ScriptedPartner] = []
        self.wanted = 0

    async def create_partner(self, wanted: ConversationRequest) -> Partner:
        self.wanted += 1
        await self.gate.wait()
        assert wanted.clarifier is not None
        self.made.append(ScriptedPartner(wanted.observer, wanted.asker, wanted.clarifier))
        return self.made[-1]

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        return ()

    async def store_session(self, session_id: str) -> None:
        raise AssertionError

    async def list_sessions(self, limit: int) -> Sequence[SessionSummary]:
        raise AssertionError

    def mask(self, text: str) -> str:
        return text

    @property
    def open(self) -> list[ScriptedPartner]:
        return [one for one in self.made if not one.closed]


class Stage:
    def __init__(self, folder: Path) -> None:
        self.rest, self.folder = Slow(), folder
        self.agent = EditorAgent(self.rest, SessionFolders(folder / "folders"))
        self.agent.on_connect(Editor())  # type: ignore[arg-type]  # as much of one as is asked

    def load(self) -> "asyncio.Task[Any]":
        return asyncio.create_task(self.agent.load_session(str(self.folder), SESSION))

    async def until_wanted(self, partners: int) -> None:
        async with asyncio.timeout(60):
            while self.rest.wanted < partners:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.005)


@pytest.fixture
async def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    forms = ElicitationCapabilities(form=ElicitationFormCapabilities())
    await made.agent.initialize(1, ClientCapabilities(elicitation=forms))
    return made


async def test_two_loads_of_one_session_leave_one_partner(stage: Stage) -> None:
    loads = [stage.load(), stage.load(), stage.load()]
    await stage.until_wanted(1)
    await asyncio.sleep(0.05)
    stage.rest.gate.set()
    await asyncio.gather(*loads)
    assert stage.rest.open == stage.rest.made[-1:]
    await stage.agent.close()
    assert stage.rest.open == []
    assert not stage.agent._session_locks, "a lock is dropped when nobody wants it"


async def test_a_message_that_comes_while_its_session_is_loaded_again_is_answered(stage: Stage) -> None:
    stage.rest.gate.set()
    await stage.load()
    [first], answer = stage.rest.made, asyncio.Event()

    async def wait(text: str) -> str:
        await answer.wait()
        return f"heard {text}"

    first.script = lambda _, text: wait(text)
    stage.rest.gate.clear()
    again = stage.load()
    await stage.until_wanted(2)
    said = asyncio.create_task(stage.agent.prompt(SESSION, [text_block("hello")]))
    async with asyncio.timeout(60):
        while not first.heard:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.005)
    stage.rest.gate.set()
    with pytest.raises(RequestError, match="Something is under way"):
        await again
    answer.set()
    assert (await said).stop_reason == "end_turn"
    assert stage.rest.open == [first]
    await stage.agent.close()


async def test_a_session_that_is_closed_while_it_is_loaded_is_closed(stage: Stage) -> None:
    stage.rest.gate.set()
    await stage.load()
    stage.rest.gate.clear()
    again = stage.load()
    await stage.until_wanted(2)
    closed = asyncio.create_task(stage.agent.close_session(SESSION))
    await asyncio.sleep(0.01)
    stage.rest.gate.set()
    await asyncio.gather(again, closed)
    assert stage.rest.open == []
    with pytest.raises(RequestError, match="No session"):
        await stage.agent.prompt(SESSION, [text_block("hello")])

"""What a change of mode does to a run under way, and to the partners before and after it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from acp.helpers import text_block

from hummingbird.acp import ConversationRequest
from hummingbird.acp.session import EditorSession
from hummingbird.chat.partner import ChatStatus
from hummingbird.chat.screen import MESSAGE_BYTES
from hummingbird.core.errors import HummingbirdError, UsageError
from hummingbird.core.journal import JournalEntry
from hummingbird.core.permissions import PermissionMode
from hummingbird.core.sessions import SessionSummary
from tests.acp.editor import Editor
from tests.chat.scripted_partner import BILL, SESSION, ScriptedPartner


class Bird(ScriptedPartner):
    """One of a mode. `models` False: it knows none but its own."""

    def __init__(self, wanted: ConversationRequest, *, models: bool) -> None:
        super().__init__(wanted.observer, wanted.asker, wanted.clarifier)  # type: ignore[arg-type]  # it asks nobody
        self.plan, self.models, self.stopped = wanted.plan, models, 0
        self.before = wanted.before
        self.fault: HummingbirdError | None = None
        self.closing, self.may_close = asyncio.Event(), asyncio.Event()
        self.may_close.set()

    def status(self) -> ChatStatus:
        mode = PermissionMode.PLAN if self.plan else PermissionMode.ASK
        return ChatStatus(SESSION, "scripted:bird", 1, 2, BILL, mode, ("1 sleep",) if self.list else ())

    async def switch_model(self, name: str) -> str:
        if not self.models:
            raise UsageError(f"There is no model {name}.")
        return await super().switch_model(name)

    async def stop(self, which: str = "") -> str:
        self.stopped += 1
        return await super().stop(which)

    async def close(self) -> None:
        self.closing.set()
        await self.may_close.wait()
        await super().close()
        if self.fault is not None:
            raise self.fault


class Nest:
    """Conversations: what was made, in its order."""

    plan_only = False
    models: Sequence[str] = ()

    def __init__(self) -> None:
        self.birds: list[Bird] = []
        self.know_models = True
        self.keeping: Callable[[], Awaitable[Any]] = lambda: asyncio.sleep(0)

    async def create_partner(self, wanted: ConversationRequest) -> Bird:
        self.birds.append(Bird(wanted, models=self.know_models))
        return self.birds[-1]

    async def load_entries(self, session_id: str) -> Sequence[JournalEntry]:
        return []

    async def store_session(self, session_id: str) -> None:
        await self.keeping()

    async def list_sessions(self, limit: int) -> Sequence[SessionSummary]:
        return []

    def mask(self, text: str) -> str:
        return text

    @property
    def closed(self) -> list[bool]:
        return [bird.closed for bird in self.birds]


async def begun(folder: Path) -> tuple[EditorSession, Nest, Editor]:
    nest, editor = Nest(), Editor()
    session = EditorSession(lambda: editor, nest, folder, clarifies=False)  # type: ignore[arg-type, return-value]  # an editor without files
    await session.begin()
    session.outbox.open()
    return session, nest, editor


def said(session: EditorSession, text: str) -> "asyncio.Task[str]":
    return asyncio.ensure_future(session.prompt([text_block(text)]))


async def hover(partner: ScriptedPartner, text: str) -> str:
    await asyncio.Event().wait()
    return "never"


async def until_heard(bird: Bird) -> None:
    async with asyncio.timeout(60):
        while not bird.heard:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.005)


async def test_nothing_runs_in_ask_mode_once_the_editor_shows_plan(tmp_path: Path) -> None:
    session, nest, editor = await begun(tmp_path)
    nest.birds[0].script = hover
    run, waiting = said(session, "go"), said(session, "and then")
    await until_heard(nest.birds[0])
    await session.choose_mode(plan=True)
    assert await run == "cancelled"
    assert await waiting == "end_turn"
    assert [bird.heard for bird in nest.birds] == [["go"], ["and then"]]
    assert nest.birds[1].plan
    told = [update.session_update for _, update in editor.updates]
    assert "the run is interrupted" in editor.text("agent_thought_chunk")
    assert told.index("agent_thought_chunk") < told.index("current_mode_update")
    await session.close()
    assert nest.closed == [True, True]


async def test_who_had_the_conversation_before_a_change_of_mode_is_known_to_who_has_it_then(tmp_path: Path) -> None:
    """So that changes of files can still be taken back."""
    session, nest, _ = await begun(tmp_path)
    await session.choose_mode(plan=True)
    assert await said(session, "hi") == "end_turn"
    assert [bird.before for bird in nest.birds] == [None, nest.birds[0]]
    await session.close()


async def test_what_goes_on_in_the_background_is_stopped_too(tmp_path: Path) -> None:
    session, nest, editor = await begun(tmp_path)
    await session.choose_mode(plan=True)
    assert (nest.birds[0].stopped, editor.text("agent_thought_chunk")) == (0, "")
    await session.choose_mode(plan=False)
    nest.birds[0].list = [object()]  # type: ignore[list-item]  # only whether there is any
    await session.choose_mode(plan=True)
    assert nest.birds[0].stopped == 1
    await session.close()


async def test_a_message_that_is_being_put_away_is_said_in_the_new_mode(tmp_path: Path) -> None:
    session, nest, _ = await begun(tmp_path)
    nest.birds[0].shelf.clear()
    run = said(session, "x" * (MESSAGE_BYTES + 1))
    await asyncio.sleep(0.05)
    await session.choose_mode(plan=True)
    nest.birds[0].shelf.set()
    assert await run == "end_turn"
    assert nest.birds[0].heard == []
    assert nest.birds[1].plan
    assert nest.birds[1].attached
    assert "all of them in the file /kept/message.txt" in nest.birds[1].heard[0]
    await session.close()


async def test_a_mode_that_is_changed_twice_at_once_is_the_last_one(tmp_path: Path) -> None:
    session, nest, _ = await begun(tmp_path)
    await session.choose_mode(plan=True)
    nest.keeping = lambda: session.choose_mode(plan=False)
    assert await said(session, "hi") == "end_turn"
    assert [bird.plan for bird in nest.birds if bird.heard] == [False]
    await session.choose_mode(plan=True)
    assert await said(session, "once more") == "end_turn"
    assert [bird.plan for bird in nest.birds if "once more" in bird.heard] == [True]
    await session.close()
    assert all(nest.closed)


async def test_a_partner_that_cannot_be_used_is_closed_and_the_one_before_stays(tmp_path: Path) -> None:
    session, nest, _ = await begun(tmp_path)
    await session.choose_model("wren")
    await session.choose_mode(plan=True)
    nest.know_models = False
    with pytest.raises(UsageError, match="no model scripted:wren"):
        await said(session, "hi")
    assert nest.closed == [False, True]
    nest.know_models = True
    assert await said(session, "hi again") == "end_turn"
    assert [bird.heard for bird in nest.birds] == [["/model wren"], [], ["/model scripted:wren", "hi again"]]
    assert nest.closed == [True, True, False]
    await session.close()
    assert nest.closed == [True, True, True]


async def test_a_partner_is_closed_although_its_message_is_cancelled_meanwhile(tmp_path: Path) -> None:
    session, nest, _ = await begun(tmp_path)
    await session.choose_mode(plan=True)
    nest.birds[0].may_close.clear()
    run = said(session, "hi")
    await nest.birds[0].closing.wait()
    session.cancel()
    nest.birds[0].may_close.set()
    assert await run == "cancelled"
    await session.close()
    assert nest.closed == [True, True]


async def test_a_partner_that_does_not_close_well_costs_the_next_message_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session, nest, _ = await begun(tmp_path)
    nest.birds[0].fault = UsageError("The sandbox is gone.")
    await session.choose_mode(plan=True)
    assert await said(session, "hi") == "end_turn"
    assert "The sandbox is gone." in caplog.text
    await session.close()

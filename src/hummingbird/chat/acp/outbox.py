"""What an editor is to be shown of one conversation, in its order. Observers hand it in and go on; it is sent as fast
as the editor reads, and what still waits grows together: pieces of one text into one, progress into the last word.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from acp.helpers import text_block
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionInfoUpdate,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)

from hummingbird.domain.text import plain

Update: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
)


def spoken(text: str) -> AgentMessageChunk:
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(plain(text)))


def thought(text: str) -> AgentThoughtChunk:
    return AgentThoughtChunk(session_update="agent_thought_chunk", content=text_block(plain(text)))


def asked(text: str) -> UserMessageChunk:
    return UserMessageChunk(session_update="user_message_chunk", content=text_block(plain(text)))


class Outbox:
    """Nothing leaves before `open`: an editor has to know of a conversation before it is told about it."""

    def __init__(self, send: Callable[[Update], Awaitable[None]]) -> None:
        self._send = send
        self._waiting: deque[Update] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._opened = False

    def open(self) -> None:
        self._opened = True
        self._go_on()

    def put(self, update: Update) -> None:
        joined = _joined(self._waiting[-1], update) if self._waiting else None
        if joined is None:
            self._waiting.append(update)
        else:
            self._waiting[-1] = joined
        self._go_on()

    async def drained(self) -> None:
        """Returns when the editor has been told everything."""
        while self._sending is not None and not self._sending.done():
            await asyncio.wait({self._sending})

    def _go_on(self) -> None:
        if self._opened and self._waiting and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._sent())

    async def _sent(self) -> None:
        with suppress(ConnectionError):  # nobody listens any more; whoever notices ends us
            while self._waiting:
                await self._send(self._waiting.popleft())
        self._waiting.clear()


def _joined(last: Update, update: Update) -> Update | None:
    """None: they stay two."""
    if isinstance(last, AgentMessageChunk | AgentThoughtChunk) and type(last) is type(update):
        first, second = last.content, update.content
        if isinstance(first, TextContentBlock) and isinstance(second, TextContentBlock):
            return spoken(first.text + second.text) if _is_spoken(last) else thought(first.text + second.text)
    if isinstance(last, ToolCallProgress) and isinstance(update, ToolCallProgress):
        same = last.tool_call_id == update.tool_call_id and last.status == update.status == "in_progress"
        return update if same else None
    return None


def _is_spoken(chunk: AgentMessageChunk | AgentThoughtChunk) -> bool:
    return isinstance(chunk, AgentMessageChunk)

"""Standard input and output, until the editor is gone or we are told to end. Standard output carries the protocol and
nothing else: whatever else writes there, be it a child process, writes to standard error.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import cast

from acp import Agent, run_agent

from hummingbird.chat.acp.conversations import Conversations
from hummingbird.chat.acp.folders import Folders
from hummingbird.chat.acp.server import EditorAgent
from hummingbird.chat.acp.wire import StdioWire

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def serve_editor(conversations: Conversations, folders: Folders) -> int:
    """The exit code, when all conversations and their processes have ended."""
    agent = EditorAgent(conversations, folders)
    with _private_streams() as (reading, writing):
        wire = StdioWire(reading, writing)
        with _ended_by_signals(wire):
            try:
                # Resuming and closing are stable in the protocol; the library still calls them unstable. Methods that
                # are missing it answers by itself.
                await run_agent(cast(Agent, agent), wire, use_unstable_protocol=True)
            finally:
                await agent.close()
    return 0


@contextmanager
def _private_streams() -> Iterator[tuple[int, int]]:
    """Descriptors of ours alone, which no child inherits."""
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield reading, writing
    finally:
        os.dup2(writing, 1)


@contextmanager
def _ended_by_signals(wire: StdioWire) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for one in _ENDING:
        loop.add_signal_handler(one, wire.finish)
    try:
        yield
    finally:
        for one in _ENDING:
            with suppress(ValueError):
                loop.remove_signal_handler(one)

"""A run that can be killed at any of its journal entries: `python -m tests.crash.victim FOLDER ENTRY`.

Kills itself with SIGKILL right after entry number ENTRY was written, or, for a negative one, right after that many
effects of its tool and before any of them is settled. No handler, no `finally`, no flush.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from hummingbird.agent.budget import RunLimits
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.core.events import EntryRecorded, RunEvent, RunOutcome
from hummingbird.core.journal import ModelAnswered
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.storage.journals import FileJournal
from tests.standins.function_tool import FunctionTool
from tests.standins.scripted_model import ScriptedClock, ScriptedModel, ScriptLine, text_reply, tool_call_reply

SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
ANSWERS: list[ScriptLine] = [
    tool_call_reply(("note", '{"what":"one"}', "c1")),
    tool_call_reply(("note", '{"what":"two"}', "c2"), ("note", '{"what":"three"}', "c3")),
    tool_call_reply(("note", '{"what":"four"}', "c4"), text="nearly there"),
    text_reply("all noted"),
]


def effects(folder: Path) -> list[str]:
    path = folder / "effects"
    return path.read_text().split() if path.exists() else []


def loop_on(folder: Path, kill_after: int = 0) -> tuple[AgentLoop, ScriptedModel, FileJournal]:
    """A loop whose model goes on where the journal ends, with a tool whose effect can be counted."""

    async def note(what: str) -> str:
        with (folder / "effects").open("a") as file:
            file.write(f"{what}\n")
        if len(effects(folder)) == -kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"noted {what}"

    seen = 0

    def watch(event: RunEvent) -> None:
        nonlocal seen
        seen += isinstance(event, EntryRecorded)
        if seen == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    journal = FileJournal(folder / "journal.jsonl")
    answered = sum(isinstance(entry, ModelAnswered) for entry in journal.entries())
    model = ScriptedModel(ANSWERS[answered:])
    setup = LoopConfig(
        models=[model],
        toolbox=Toolbox([FunctionTool(ToolSpec("note", "Notes it.", SCHEMA), note)]),
        system="Note things.",
        clock=ScriptedClock(),
        limits=RunLimits(),
        observers=[watch],
    )
    return AgentLoop(journal, setup, "s1"), model, journal


async def run(folder: Path, kill_after: int) -> RunOutcome:
    loop, model, journal = loop_on(folder, kill_after)
    outcome = await (loop.resume() if loop.state.active else loop.run("note all"))
    model.assert_consumed()
    journal.close()
    return outcome


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2])))

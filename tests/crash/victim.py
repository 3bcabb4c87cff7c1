"""A run that can be killed at any of its journal entries: `python -m tests.crash.victim FOLDER ENTRY`.

Kills itself with SIGKILL right after entry number ENTRY was written, or, for a negative one, right after that many
effects of its tool and before any of them is settled. No handler, no `finally`, no flush.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from hummingbird.adapters.stores.journal import FileJournal
from hummingbird.agent.budget import Limits
from hummingbird.agent.loop import Loop
from hummingbird.agent.setup import Setup
from hummingbird.agent.tools.function import FunctionTool
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.domain.events import Event, Recorded
from hummingbird.domain.journal import ModelAnswered
from hummingbird.domain.runs import Outcome
from hummingbird.domain.tools import ToolSpec
from hummingbird.lab.scripted import Line, ScriptedClock, ScriptedModel, calls, says

SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
ANSWERS: list[Line] = [
    calls(("note", '{"what":"one"}', "c1")),
    calls(("note", '{"what":"two"}', "c2"), ("note", '{"what":"three"}', "c3")),
    calls(("note", '{"what":"four"}', "c4"), text="nearly there"),
    says("all noted"),
]


def effects(folder: Path) -> list[str]:
    path = folder / "effects"
    return path.read_text().split() if path.exists() else []


def loop_on(folder: Path, kill_after: int = 0) -> tuple[Loop, ScriptedModel, FileJournal]:
    """A loop whose model goes on where the journal ends, with a tool whose effect can be counted."""

    async def note(what: str) -> str:
        with (folder / "effects").open("a") as file:
            file.write(f"{what}\n")
        if len(effects(folder)) == -kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"noted {what}"

    seen = 0

    def watch(event: Event) -> None:
        nonlocal seen
        seen += isinstance(event, Recorded)
        if seen == kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    journal = FileJournal(folder / "journal.jsonl")
    answered = sum(isinstance(entry, ModelAnswered) for entry in journal.entries())
    model = ScriptedModel(ANSWERS[answered:])
    setup = Setup(
        models=[model],
        toolbox=Toolbox([FunctionTool(ToolSpec("note", "Notes it.", SCHEMA), note)]),
        system="Note things.",
        clock=ScriptedClock(),
        limits=Limits(),
        observers=[watch],
    )
    return Loop(journal, setup, "s1"), model, journal


async def run(folder: Path, kill_after: int) -> Outcome:
    loop, model, journal = loop_on(folder, kill_after)
    outcome = await (loop.go_on() if loop.state.active else loop.run("note all"))
    model.assert_consumed()
    journal.close()
    return outcome


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2])))

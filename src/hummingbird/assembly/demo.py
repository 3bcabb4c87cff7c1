"""`hummingbird demo`: the loop investigates a real failed CI log, with a recorded model instead of a live one.

Everything but the model is the real thing: tools, journal, budgets, projections.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hummingbird.adapters.models.registry import Models
from hummingbird.adapters.stores.journal import FileJournal
from hummingbird.agent.budget import Limits
from hummingbird.agent.loop import Loop, Setup
from hummingbird.agent.prompts import system_prompt
from hummingbird.agent.tools.function import FunctionTool
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.assembly.clock import SystemClock
from hummingbird.domain.errors import ArgumentsInvalid, UsageFault
from hummingbird.domain.journal import Source
from hummingbird.domain.runs import Outcome
from hummingbird.domain.tools import ToolSpec
from hummingbird.domain.transcript import transcript
from hummingbird.ports.model import Model
from hummingbird.ports.observer import Observer
from hummingbird.ports.tool import Tool

CASE = Path(__file__).parent.parent / "lab" / "cases" / "registry-timeout"
ORDER = '{"project":"hashicorp/terraform","job":"e2e tests, windows","log":"job.log","session_id":"%s"}'
INSTRUCTIONS = (
    "A CI job failed. Find out why from its log and say whether the change under test caused it. "
    "Quote the lines that show it, with their numbers."
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def log_tools(path: Path) -> list[Tool]:
    """Two tools over one log: enough to investigate with."""
    lines = [_ANSI.sub("", line) for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]

    async def search_log(pattern: str, limit: int = 20) -> str:
        try:
            wanted = re.compile(pattern)
        except re.error as error:
            raise ArgumentsInvalid(f"not a regular expression: {error}") from error
        found = [f"{number}: {line}" for number, line in enumerate(lines, 1) if wanted.search(line)]
        return "\n".join([*found[:limit], f"[{len(found)} of {len(lines)} lines match]"])

    async def read_log(first: int, last: int) -> str:
        return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1) if first <= number <= last)

    return [
        FunctionTool(
            ToolSpec(
                name="search_log",
                description="Lines of the job's log that match a regular expression, with their numbers. Start here.",
                schema=_object({"pattern": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}, "pattern"),
            ),
            search_log,
        ),
        FunctionTool(
            ToolSpec(
                name="read_log",
                description="A range of lines of the job's log, both ends included.",
                schema=_object({"first": {"type": "integer"}, "last": {"type": "integer"}}, "first", "last"),
            ),
            read_log,
        ),
    ]


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


async def investigate(
    model: Model, journal: FileJournal, session_id: str, observers: Iterable[Observer] = ()
) -> Outcome:
    toolbox = Toolbox(log_tools(CASE / "job.log"))
    setup = Setup(
        models=[model],
        toolbox=toolbox,
        system=system_prompt(toolbox.notes, INSTRUCTIONS),
        clock=SystemClock(),
        limits=Limits(iterations=10),
        observers=tuple(observers),
    )
    return await Loop(journal, setup, session_id).run(ORDER % session_id, source=Source.ORDER)


async def demo(folder: Path, session_id: str, observers: Iterable[Observer] = ()) -> Outcome:
    """Plays the case into `folder`: journal.jsonl and transcript.md are there afterwards."""
    if (folder / "journal.jsonl").exists():
        raise UsageFault(f"{folder} already holds a session; name another folder.")
    models = Models({}, now=SystemClock().now)
    journal = FileJournal(folder / "journal.jsonl")
    try:
        model = models.resolve(f"replay:{CASE}")
        outcome = await investigate(model, journal, session_id, observers)
        told = folder / "transcript.md"
        told.touch(mode=0o600)  # as private as the journal it is made of
        told.write_text(transcript(journal.entries()), encoding="utf-8")
    finally:
        journal.close()
        await models.close()
    return outcome

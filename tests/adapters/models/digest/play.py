"""Runs `digest` through the real loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hummingbird.adapters.models.digest.model import DigestModel
from hummingbird.adapters.stores.journal import MemoryJournal
from hummingbird.agent.budget import Limits
from hummingbird.agent.loop import Loop
from hummingbird.agent.setup import Setup
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.domain.journal import Entry, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.domain.runs import Outcome
from hummingbird.lab.scripted import ScriptedClock
from hummingbird.ports.model import Model
from hummingbird.ports.tool import Tool
from tests.agent.stage import check_outcome

WORKFLOW = "A pipeline failed. Find out which jobs failed and why, and whether this merge request did it."


@dataclass
class Played:
    outcome: Outcome
    entries: Sequence[Entry]

    @property
    def text(self) -> str:
        return self.outcome.text

    @property
    def started(self) -> list[str]:
        """The tools that were called."""
        return [entry.name for entry in self.entries if isinstance(entry, ToolStarted)]

    @property
    def refused(self) -> list[str]:
        """Calls that did not run: unknown tools, arguments that do not fit."""
        finished = [entry for entry in self.entries if isinstance(entry, ToolFinished)]
        return [entry.text for entry in finished if entry.outcome not in {ToolOutcome.OK, ToolOutcome.ERROR}]


def digest() -> DigestModel:
    return DigestModel()


def setup_of(
    tools: Sequence[Tool],
    models: Sequence[Model] = (),
    limits: Limits | None = None,
    system: str = WORKFLOW,
    **more: Any,
) -> Setup:
    return Setup(
        models=models or [digest()],
        toolbox=Toolbox(tools),
        system=system,
        clock=ScriptedClock(),
        limits=limits or Limits(),
        **more,
    )


async def play(said: str, tools: Sequence[Tool], *others: str, **setup: Any) -> Played:
    """One run for each thing that is said; what the last one came to."""
    journal, made = MemoryJournal(), setup_of(tools, **setup)
    outcome = await Loop(journal, made, "session-1").run(said)
    for text in others:
        outcome = await Loop(journal, made, "session-1").run(text)
    check_outcome(outcome, journal.entries())
    return Played(outcome, journal.entries())

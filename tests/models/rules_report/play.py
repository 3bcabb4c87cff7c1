"""Runs `digest` through the real loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hummingbird.agent.budget import RunLimits
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.core.events import RunOutcome
from hummingbird.core.journal import JournalEntry, ToolFinished, ToolOutcome, ToolStarted
from hummingbird.core.protocols.model import Model
from hummingbird.core.protocols.tools import Tool
from hummingbird.models.rules_report.rules_model import RulesModel
from hummingbird.storage.journals import MemoryJournal
from tests.agent.stage import check_outcome
from tests.standins.scripted_model import ScriptedClock

WORKFLOW = "A pipeline failed. Find out which jobs failed and why, and whether this merge request did it."


@dataclass
class Played:
    outcome: RunOutcome
    entries: Sequence[JournalEntry]

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


def digest() -> RulesModel:
    return RulesModel()


def setup_of(
    tools: Sequence[Tool],
    models: Sequence[Model] = (),
    limits: RunLimits | None = None,
    system: str = WORKFLOW,
    **more: Any,
) -> LoopConfig:
    return LoopConfig(
        models=models or [digest()],
        toolbox=Toolbox(tools),
        system=system,
        clock=ScriptedClock(),
        limits=limits or RunLimits(),
        **more,
    )


async def play(said: str, tools: Sequence[Tool], *others: str, **setup: Any) -> Played:
    """One run for each thing that is said; what the last one came to."""
    journal, made = MemoryJournal(), setup_of(tools, **setup)
    outcome = await AgentLoop(journal, made, "session-1").run(said)
    for text in others:
        outcome = await AgentLoop(journal, made, "session-1").run(text)
    check_outcome(outcome, journal.entries())
    return Played(outcome, journal.entries())

"""Hummingbird in the overhead benchmark: the whole loop, a durable journal on disk included."""

import asyncio
import tempfile
from pathlib import Path

from benchmarks.overhead import dialogue
from benchmarks.overhead.meter import Meter
from hummingbird.agent.budget import RunLimits
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.app.console import SystemClock
from hummingbird.core.protocols.sessions import Journal
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.models.registry import ModelRegistry
from hummingbird.storage.journals import FileJournal
from tests.standins.function_tool import FunctionTool


async def converse(meter: Meter, journal: Journal) -> str:
    async def echo(text: str) -> str:
        return meter.echo(text)

    spec = ToolSpec(dialogue.TOOL_NAME, dialogue.TOOL_DESCRIPTION, dialogue.TOOL_SCHEMA)
    clock = SystemClock()
    environment = {
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": meter.url,
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{meter.url}/v1",
    }
    models = ModelRegistry(environment, now=clock.now)
    chat = meter.dialect == "chat"
    name = f"openai-chat:{dialogue.MODEL_CHAT}" if chat else f"anthropic:{dialogue.MODEL_ANTHROPIC}"
    setup = LoopConfig(
        models=[models.resolve(name)],
        toolbox=Toolbox([FunctionTool(spec, echo)]),
        system=dialogue.SYSTEM,
        clock=clock,
        limits=RunLimits(iterations=meter.turns * 2, context_tokens=None, warns=False),
    )
    outcome = await AgentLoop(journal, setup).run(dialogue.QUESTION)
    await models.close()
    journal.close()
    return outcome.text


if __name__ == "__main__":
    clock = Meter()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:  # a real disk: /tmp is often memory
        clock.finish(asyncio.run(converse(clock, FileJournal(Path(scratch) / "journal.jsonl"))))

"""Hummingbird in the overhead benchmark: the whole loop, a durable journal on disk included."""

import asyncio
import tempfile
from pathlib import Path

from benchmarks.overhead import dialogue
from benchmarks.overhead.meter import Meter
from hummingbird.adapters.models.registry import Models
from hummingbird.adapters.stores.journal import FileJournal
from hummingbird.agent.budget import Limits
from hummingbird.agent.loop import Loop
from hummingbird.agent.setup import Setup
from hummingbird.agent.tools.function import FunctionTool
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.assembly.clock import SystemClock
from hummingbird.domain.tools import ToolSpec
from hummingbird.ports.journal import Journal


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
    models = Models(environment, now=clock.now)
    chat = meter.dialect == "chat"
    name = f"openai-chat:{dialogue.MODEL_CHAT}" if chat else f"anthropic:{dialogue.MODEL_ANTHROPIC}"
    setup = Setup(
        models=[models.resolve(name)],
        toolbox=Toolbox([FunctionTool(spec, echo)]),
        system=dialogue.SYSTEM,
        clock=clock,
        limits=Limits(iterations=meter.turns * 2, context_tokens=None, warns=False),
    )
    outcome = await Loop(journal, setup).run(dialogue.QUESTION)
    await models.close()
    journal.close()
    return outcome.text


if __name__ == "__main__":
    clock = Meter()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:  # a real disk: /tmp is often memory
        clock.finish(asyncio.run(converse(clock, FileJournal(Path(scratch) / "journal.jsonl"))))

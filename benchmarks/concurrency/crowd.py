"""Many runs in one process: each its own conversation, journal and tool, one HTTP client for all.

Run as a process of its own, so that its memory is nobody else's; prints one JSON line.
"""

import argparse
import asyncio
import json
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.overhead import dialogue
from benchmarks.overhead.meter import peak_rss_mb
from hummingbird.agent.budget import RunLimits
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.app.console import SystemClock
from hummingbird.core.protocols.model import Model
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.models.registry import ModelRegistry
from hummingbird.storage.journals import FileJournal
from tests.standins.function_tool import FunctionTool

NAME = f"anthropic:{dialogue.MODEL_ANTHROPIC}"


async def one_run(model: Model, folder: Path, turns: int) -> str:
    async def echo(text: str) -> str:
        return dialogue.echo(text)

    spec = ToolSpec(dialogue.TOOL_NAME, dialogue.TOOL_DESCRIPTION, dialogue.TOOL_SCHEMA)
    setup = LoopConfig(
        models=[model],
        toolbox=Toolbox([FunctionTool(spec, echo)]),
        system=dialogue.SYSTEM,
        clock=SystemClock(),
        limits=RunLimits(iterations=turns * 2, context_tokens=None, warns=False),
    )
    journal = FileJournal(folder / "journal.jsonl")
    try:
        outcome = await AgentLoop(journal, setup).run(dialogue.QUESTION)
    finally:
        journal.close()
    return outcome.reason.value if outcome.answered and dialogue.FINAL in outcome.text else outcome.sentence


async def crowd(url: str, runs: int, turns: int) -> dict[str, object]:
    models = ModelRegistry({"ANTHROPIC_API_KEY": "none"})
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:
        made = [
            models.resolve(f"anthropic:{dialogue.MODEL_ANTHROPIC}", base_url=f"{url}/{number}")
            for number in range(runs)
        ]
        await one_run(models.resolve(NAME, base_url=f"{url}/first"), Path(scratch) / "first", turns)
        before_mb, cpu_s, wall_s = peak_rss_mb(), time.process_time(), time.perf_counter()
        ends = await asyncio.gather(*(one_run(m, Path(scratch) / str(n), turns) for n, m in enumerate(made)))
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    await models.close()
    after_mb = peak_rss_mb()
    return {
        "runs": runs,
        "turns": turns,
        "ends": Counter(ends),
        "peak_rss_mb": round(after_mb, 1),
        "rss_per_run_kb": round((after_mb - before_mb) * 1024 / runs, 1),
        "cpu_ms_per_turn": round(cpu_s * 1000 / (runs * turns), 2),
        "wall_s": round(wall_s, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--turns", type=int, required=True)
    wanted = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a journal and a connection for every run
    print(json.dumps(asyncio.run(crowd(wanted.url, wanted.runs, wanted.turns))))


if __name__ == "__main__":
    main()

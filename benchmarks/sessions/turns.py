"""What the journal takes of a turn's CPU: the same run with the journal kept, and with it in memory.

The model is scripted and in this process, so a turn is little else than the loop: an answer with one call, its result
of 1 KB, four entries and two commits. CPU of the process, the kernel's part of flushing among it.
"""

import asyncio
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.overhead import dialogue
from hummingbird.agent.budget import RunLimits
from hummingbird.agent.loop import AgentLoop
from hummingbird.agent.loop_config import LoopConfig
from hummingbird.agent.tools.registry import Toolbox
from hummingbird.app.console import SystemClock
from hummingbird.core.journal import JournalEntry, dump_entry
from hummingbird.core.protocols.sessions import Journal
from hummingbird.core.tool_spec import ToolSpec
from hummingbird.storage.bucket_sessions import BucketSessionStore
from hummingbird.storage.journals import FileJournal, MemoryJournal
from hummingbird.storage.object_store import BucketObjectStore
from tests.standins.function_tool import FunctionTool
from tests.standins.scripted_model import ScriptedModel, text_reply, tool_call_reply

Kept = Callable[[int], Awaitable[float]]  # turns → CPU seconds of that run
OURS = "**a file**, two flushes a turn"
MOST_MS = 0.3  # what a turn's journal may cost
_TOOL = ToolSpec(dialogue.TOOL_NAME, dialogue.TOOL_DESCRIPTION, dialogue.TOOL_SCHEMA)


class BareJournal(MemoryJournal):
    """The least that is as durable: no lock, no care for lines cut off, no thread for a disk that takes its time."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def append(self, entry: JournalEntry) -> None:
        os.write(self._fd, dump_entry(entry))
        super().append(entry)

    async def flush(self) -> None:
        return

    async def commit(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


async def _echo(text: str) -> str:
    return dialogue.echo(text)


async def spent_s(journal: Journal, turns: int) -> float:
    """CPU of one run."""
    asked = [tool_call_reply((_TOOL.name, f'{{"text": "{dialogue.asked(turn)}"}}')) for turn in range(turns)]
    model = ScriptedModel([*asked, text_reply(dialogue.FINAL)])
    toolbox = Toolbox([FunctionTool(_TOOL, _echo)])
    limits = RunLimits(iterations=turns * 2, context_tokens=None, usd=None, warns=False)
    loop = AgentLoop(journal, LoopConfig([model], toolbox, dialogue.SYSTEM, SystemClock(), limits))
    gc.collect()
    began = time.process_time()
    outcome = await loop.run(dialogue.QUESTION)
    spent = time.process_time() - began
    model.assert_consumed()
    if outcome.text != dialogue.FINAL:
        raise SystemExit(f"The run ended otherwise: {outcome.sentence or outcome.text:.200}")
    return spent


async def in_memory(turns: int) -> float:
    return await spent_s(MemoryJournal(), turns)


async def in_a_file(turns: int, made: Callable[[Path], Journal] = FileJournal) -> float:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:  # a real disk: /tmp is often memory
        journal = made(Path(scratch) / "journal.jsonl")
        try:
            return await spent_s(journal, turns)
        finally:
            journal.close()


async def in_a_bucket(turns: int) -> float:
    """Of a store in this process: its own work is in it, a network's is not."""
    session = await BucketSessionStore(BucketObjectStore.in_memory(), "memory://", time.time).open("measured")
    try:
        return await spent_s(session.journal, turns)
    finally:
        await session.release()


WAYS: dict[str, Kept] = {
    "in memory, nothing kept": in_memory,
    "bare: encode, `os.write`, `os.fdatasync`": partial(in_a_file, made=BareJournal),
    OURS: in_a_file,
    "a bucket (obstore's, in memory), two conditional writes a turn": in_a_bucket,
}


async def measured(turns: int, repeats: int) -> list[list[float]]:
    """For each repeat CPU ms per turn of each way, in the order of WAYS. They take turns, so that a busy minute of the
    machine hits all of them."""
    for way in WAYS.values():
        await way(5)  # imports and first uses
    return [[await way(turns) * 1_000 / turns for way in WAYS.values()] for _ in range(repeats)]


def report(*, quick: bool) -> None:
    turns, repeats = (50, 3) if quick else (300, 15)
    found = asyncio.run(measured(turns, repeats))
    print(f"## Sessions: what the journal takes of a turn's CPU, {turns} turns, median of {repeats}\n")
    print("The difference and the ratio are taken within each repeat.\n")
    print("| journal | CPU ms/turn | over memory, ms/turn | lowest, highest | ÷ memory | at most |")
    print("|---|--:|--:|--:|--:|--:|")
    for column, name in enumerate(WAYS):
        print(_row(name, column, found))
    print(flush=True)


def _row(name: str, column: int, found: Sequence[Sequence[float]]) -> str:
    over = sorted(row[column] - row[0] for row in found)
    spent, ratio = (statistics.median(each) for each in ([r[column] for r in found], [r[column] / r[0] for r in found]))
    bound = f"{MOST_MS} ms" if name == OURS else ""
    spread = f"{over[0]:.2f}, {over[-1]:.2f}"
    return f"| {name} | {spent:.2f} | {statistics.median(over):.2f} | {spread} | {ratio:.2f}× | {bound} |"


if __name__ == "__main__":
    report(quick=False)

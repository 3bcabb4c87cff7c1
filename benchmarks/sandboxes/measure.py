"""One contender's figures. Memory is the orchestrator's own: the highest resident size over what it was before."""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.sandboxes.contenders import PIECE, Contender


@dataclass(frozen=True, slots=True)
class Amounts:
    rounds: int
    commands: int
    stream_bytes: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class Figures:
    round_trip_ms: float
    command_ms: float
    stream_mb_s: float
    write_mb_s: float
    read_mb_s: float
    peak_mb: float


async def _content(size: int) -> AsyncIterator[bytes]:
    piece = bytes(range(256)) * (PIECE // 256)
    for _ in range(size // PIECE):
        yield piece


def _forget_the_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS:")


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise AssertionError(field)


async def round_trip_ms(contender: Contender) -> float:
    began = time.perf_counter()
    await contender.open()
    await contender.run()
    await contender.close()
    return (time.perf_counter() - began) * 1000


async def command_ms(contender: Contender) -> float:
    began = time.perf_counter()
    await contender.run()
    return (time.perf_counter() - began) * 1000


async def figures(contender: Contender, amounts: Amounts) -> Figures:
    trips = [await round_trip_ms(contender) for _ in range(amounts.rounds)]
    await contender.open()
    try:
        await contender.run()
        commands = [await command_ms(contender) for _ in range(amounts.commands)]
        before = _forget_the_peak()
        began = time.perf_counter()
        await contender.swallow(_content(amounts.stream_bytes))
        streamed = time.perf_counter()
        await contender.write(_content(amounts.file_bytes))
        written = time.perf_counter()
        size = await contender.read()
        read = time.perf_counter()
        assert size == amounts.file_bytes // PIECE * PIECE
        peak = _status("VmHWM:") - before
    finally:
        await contender.close()
    return Figures(
        median(trips),
        median(commands),
        amounts.stream_bytes / 1e6 / (streamed - began),
        amounts.file_bytes / 1e6 / (written - streamed),
        amounts.file_bytes / 1e6 / (read - written),
        peak / 1e6,
    )

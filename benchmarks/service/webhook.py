"""How many webhooks a second the door keeps, beside a bare endpoint that keeps them as durably and does nothing else.

All doors are served by the same uvicorn, in processes of their own, to one client with several connections. What was
acknowledged is counted in the file afterwards.
"""

import asyncio
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rivals.setup import ROOT
from benchmarks.service.crowd import CASE
from benchmarks.service.doors import FILE, TABLES
from benchmarks.service.process import SECRET
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from hummingbird.service.webhook import WEBHOOK_PATH

LANES = 16
NAMES = {
    "bare": "bare starlette, one INSERT, synchronous=FULL",
    "normal": "bare starlette, one INSERT, synchronous=NORMAL (not durable)",
    "ours": "**Hummingbird**: secret, bounds, identity, deduplication, synchronous=FULL",
}


@dataclass(frozen=True, slots=True)
class Found:
    per_s: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float


def report(*, quick: bool) -> None:
    number, repeats = (200, 1) if quick else (3_000, 5)
    body = event()
    found: dict[str, list[Found]] = {name: [] for name in NAMES}
    for _ in range(repeats):
        for name, rows in found.items():
            rows.append(measured(name, number, body))
    print(f"## Service: the webhook's endpoint, {len(body)} bytes an event, {LANES} connections\n")
    print(f"{number:,} events each, median of {repeats}, interleaved; the ratio is taken within each repeat.\n")
    print(
        "| endpoint | requests/s ÷ bare FULL | requests/s | p50 ms | p99 ms | CPU ms a request |\n"
        "|---|--:|--:|--:|--:|--:|"
    )
    for name, rows in found.items():
        ratio = statistics.median(row.per_s / plain.per_s for row, plain in zip(rows, found["bare"], strict=True))
        per_s, p50 = (statistics.median(getattr(row, each) for row in rows) for each in ("per_s", "p50_ms"))
        p99, cpu = (statistics.median(getattr(row, each) for row in rows) for each in ("p99_ms", "cpu_ms"))
        print(f"| {NAMES[name]} | {ratio:.2f}× | {per_s:.0f} | {p50:.1f} | {p99:.1f} | {cpu:.2f} |")
    print(f"\nLoad {', '.join(f'{each:.1f}' for each in os.getloadavg())} at the end.\n")


def measured(kind: str, number: int, body: bytes) -> Found:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with _served(kind, folder) as (process, port):
            asyncio.run(_sent(port, LANES, body))  # connections, imports and the file are there afterwards
            cpu, begun = _cpu_s(process.pid), time.perf_counter()
            spans = sorted(asyncio.run(_sent(port, number, body)))
            wall, cpu = time.perf_counter() - begun, _cpu_s(process.pid) - cpu
        with closing(sqlite3.connect(folder / FILE)) as file:
            kept = file.execute(f"SELECT count(*) FROM {TABLES[kind]}").fetchone()[0]
    if kept != number + LANES:
        raise SystemExit(f"{kind} has kept {kept} of {number + LANES}.")
    return Found(number / wall, spans[number // 2] * 1000, spans[number * 99 // 100] * 1000, cpu * 1000 / number)


def event() -> bytes:
    with Scene(find_case(CASE)) as scene:
        return scene.webhook_event()[1]


@contextmanager
def _served(kind: str, folder: Path) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    argv = [sys.executable, "-m", "benchmarks.service.doors", kind, str(folder)]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.stdin.close()


async def _sent(port: int, number: int, body: bytes) -> list[float]:
    """Seconds of each. A client of sockets alone: one of a library would take longer than the doors."""
    spans: list[float] = []
    waiting = iter(range(number))

    async def lane() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in waiting:
            begun = time.perf_counter()
            writer.write(_request(body))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            answer = await reader.readexactly(length)
            spans.append(time.perf_counter() - begun)
            assert head.startswith(b"HTTP/1.1 202"), head + answer
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(lane() for _ in range(LANES)))
    return spans


def _request(body: bytes) -> bytes:
    head = (
        f"POST {WEBHOOK_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
        f"application/json\r\nContent-Length: {len(body)}\r\n"
        f"X-Gitlab-Event: Pipeline Hook\r\nX-Gitlab-Token: {SECRET}\r\nIdempotency-Key: {uuid.uuid4()}\r\n\r\n"
    )
    return head.encode() + body


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    report(quick="--quick" in sys.argv)

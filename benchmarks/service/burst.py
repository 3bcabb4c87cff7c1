"""Many webhooks at once, and then several replies in each of many threads: all answered, once, and in order.

GitLab and the model's vendor are one process, `hummingbird serve` another, this one sends and looks. Every run asks the
model twice and runs one command in a bubblewrap sandbox. Prints a table; ends with a complaint if anything is missing,
twice, or out of order.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.rivals.setup import ROOT
from benchmarks.service.crowd import ENDS, MODEL, WORKFLOW, Hook, Seen, most_at_once
from benchmarks.service.process import SECRET, Service, serving
from hummingbird.gitlab.write.protocol import NoteKind
from hummingbird.queues.sqlite_queue import SqliteQueue

LANES = 32  # connections that the webhooks come over
TURNS = 2
PATIENCE_S = 560.0
_REPLY = re.compile(r"This answers reply-(\d+)")


@dataclass(frozen=True, slots=True)
class Size:
    webhooks: int = 200
    slots: tuple[int, ...] = (4, 64)
    threads: int = 20
    replies: int = 3
    delay_s: float = 0.5


FULL, QUICK = Size(), Size(webhooks=20, slots=(4,), threads=3, replies=2, delay_s=0.1)


class World:
    """The other process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.where: dict[str, str] = self._heard()

    def hooks(self, words: str) -> list[Hook]:
        return [Hook(**each) for each in self._asked(words)]

    def seen(self) -> list[Seen]:
        return [Seen(**each) for each in self._asked("seen")]

    def _asked(self, words: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{words}\n")
        self._process.stdin.flush()
        return self._heard()

    def _heard(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


@contextmanager
def world(size: Size) -> Iterator[World]:
    argv = [sys.executable, "-m", "benchmarks.service.world", str(size.webhooks), str(size.delay_s)]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield World(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def report(size: Size) -> None:
    print(f"## Service: {size.webhooks} webhooks in one burst\n")
    print(
        f"Failed pipelines of {size.webhooks} merge requests over {LANES} connections; a run is {TURNS} answers of the "
        f"model, each after {size.delay_s} s, and one command in bubblewrap. Seconds: p50 / p99 from the webhook on. "
        f"Then {size.replies} replies in each of {size.threads} threads: all answered, in their order.\n"
    )
    print(
        "| runs at once | answered once | most at once | webhook's answer | placeholder | result | wall s "
        "| ÷ the model's time | CPU ms of the service a run | RSS MB before, peak |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    rows = [_row(size, slots) for slots in size.slots]
    if len(rows) > 1:
        more, runs = rows[-1].peak_mb - rows[0].peak_mb, rows[-1].most - rows[0].most
        print(f"\nOne run more at once takes {more / max(1, runs):.1f} MB of the service.")
    print(f"\nLoad {', '.join(f'{each:.1f}' for each in os.getloadavg())} at the end.\n")


@dataclass(frozen=True, slots=True)
class Row:
    line: str
    most: int
    peak_mb: float


def _row(size: Size, slots: int) -> Row:
    with tempfile.TemporaryDirectory() as place, world(size) as other:
        folder = Path(place)
        given = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": other.where["model"]}
        with serving(folder, configuration(other.where["gitlab"], slots), given) as service:
            row = _burst(size, slots, service, other)
            replied = _replies(size, service, other)
        left = asyncio.run(_left(folder / "state" / "queue.sqlite"))
        complaints = [*replied, *left]
        if complaints:
            log = (folder / "serve.log").read_text(errors="replace")
            raise SystemExit("\n".join([*complaints, log[-4000:]]))
    print(row.line, flush=True)
    return row


def configuration(gitlab: str, slots: int) -> str:
    lines = [
        *("settings:", f"  gitlab_url: {gitlab}", "  settle_seconds: 0", "  internal_notes: false"),
        *(f"  model: {MODEL}", f"  max_concurrent_agents: {slots}"),
        *("workflows:", f"  {WORKFLOW}:", "    trigger: pipeline", "    prompt: look.md"),
        *("    data_sources: {gitlab: {token_env: READER}}", '    projects: {"*": {}}'),
    ]
    return "\n".join(lines) + "\n"


def _burst(size: Size, slots: int, service: Service, other: World) -> Row:
    hooks = other.hooks("failures")
    before, cpu = service.memory_mb("VmRSS"), service.cpu_s()
    sent, answered = asyncio.run(send(service.url, hooks))
    seen = until_ended(other, service, size.webhooks)
    ends = {note.iid: note.at for note in seen if note.part in ENDS}
    places = {note.iid: note.at for note in seen if note.part == NoteKind.PLACEHOLDER.value}
    wrong = [iid for iid, times in Counter((note.iid, note.part) for note in seen).items() if times != 1]
    if wrong or set(ends) != set(sent) or set(places) != set(sent):
        raise SystemExit(f"Not answered exactly once: {wrong[:5]}, {len(places)} placeholders, {len(ends)} ends.")
    if failed := [note.text for note in seen if note.part == NoteKind.FAILED.value]:
        raise SystemExit(f"{len(failed)} runs failed: {failed[0]}")
    wall = max(ends.values()) - min(sent.values())
    ideal = size.webhooks * TURNS * size.delay_s / slots
    peak, most = service.memory_mb("VmHWM"), most_at_once(seen)
    cells = [
        *(str(slots), f"{len(ends)} of {size.webhooks}", str(most), spread(answered, sent), spread(places, sent)),
        *(spread(ends, sent), f"{wall:.1f}", f"{wall / ideal:.2f}×"),
        *(f"{(service.cpu_s() - cpu) * 1000 / size.webhooks:.0f}", f"{before:.0f}, {peak:.0f}"),
    ]
    return Row(f"| {' | '.join(cells)} |", most, peak)


def _replies(size: Size, service: Service, other: World) -> list[str]:
    """Complaints."""
    hooks = other.hooks(f"replies {size.replies} {size.threads}")
    asyncio.run(send(service.url, hooks, lanes=1))
    seen = until_ended(other, service, size.webhooks + len(hooks))
    found: dict[int, list[int]] = defaultdict(list)
    for note in sorted(seen, key=lambda each: each.at):
        if said := _REPLY.search(note.text):
            found[note.iid].append(int(said[1]))
    wanted = list(range(size.replies))
    if len(found) != size.threads:
        return [f"Of {size.threads} threads only {len(found)} were answered."]
    return [
        f"The replies of !{iid} were answered in the order {order}." for iid, order in found.items() if order != wanted
    ]


async def _left(queue_file: Path) -> list[str]:
    queue = SqliteQueue(queue_file, 60)
    try:
        dead, waiting = await queue.list_dead_letters(), await queue.receive(10, 0)
    finally:
        await queue.close()
    return [f"A dead letter: {each.body[:300]}" for each in dead] + [
        f"Left over: {each.body[:300]}" for each in waiting
    ]


async def send(url: str, hooks: Sequence[Hook], lanes: int = LANES) -> tuple[dict[int, float], dict[int, float]]:
    """When each was sent and when it was answered, by what it is about."""
    sent: dict[int, float] = {}
    answered: dict[int, float] = {}
    waiting = iter(hooks)

    async def lane(client: httpx2.AsyncClient) -> None:
        for hook in waiting:
            sent[hook.about] = time.monotonic()
            answer = await client.post(url, content=hook.body, headers={**hook.headers, "X-Gitlab-Token": SECRET})
            answered[hook.about] = time.monotonic()
            assert answer.status_code == 202, answer.text

    async with httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=lanes)) as client:
        await asyncio.gather(*(lane(client) for _ in range(lanes)))
    return sent, answered


def until_ended(other: World, service: Service, number: int) -> list[Seen]:
    until = time.monotonic() + PATIENCE_S
    while True:
        seen = other.seen()
        if sum(note.part in ENDS for note in seen) >= number:
            return seen
        if time.monotonic() > until or service.process.poll() is not None:
            raise SystemExit(f"Only {sum(note.part in ENDS for note in seen)} of {number} ended in {PATIENCE_S:.0f} s.")
        time.sleep(0.5)


def spread(times: dict[int, float], since: dict[int, float]) -> str:
    spans = sorted(times[each] - since[each] for each in since)
    return f"{spans[len(spans) // 2]:.2f} / {spans[min(len(spans) - 1, len(spans) * 99 // 100)]:.2f}"


if __name__ == "__main__":
    report(QUICK if "--quick" in sys.argv else FULL)
